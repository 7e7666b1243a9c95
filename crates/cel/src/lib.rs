//! The Common Expression Language as Kubernetes v1.36 uses it: in rules of custom resources, in admission policies and
//! match conditions, and in selectors of devices. Pure, no I/O.
//!
//! ```
//! use cel::{Budget, Declaration, Environment, Variables};
//!
//! let schema = object::json!({ "type": "object", "properties": { "replicas": { "type": "integer" } } });
//! let declared = Declaration::from_schema(&schema, true).expect("a schema that expressions can look at");
//! let environment = Environment::new().variable("self", declared);
//! let rule = environment.compile("self.replicas <= 5")?;
//!
//! let object = object::json!({ "replicas": 3 });
//! let holds = rule.evaluate(&Variables::new().json("self", &object), &mut Budget::default());
//! assert_eq!(holds.unwrap().as_bool(), Some(true));
//! # Ok::<(), cel::Issues>(())
//! ```
//!
//! # The way of an expression
//!
//! ```text
//! lexer, cursor, parser     text to tree; its depth is bounded here, since everything after recurses over it
//! macros                    the tree with one kind of loop instead of all, exists, map, filter, bind and so on
//! checker, unify            a type for each node and the candidates for each call, or messages that point
//! program                   what can be known beforehand: constants, regular expressions, mistakes in literals
//! estimate                  what it may cost at most, from the sizes that were declared
//! evaluator, fold, qualify  a value, or why there is none, and what it did cost
//! ```
//!
//! beside which stand
//!
//! ```text
//! types, declaration      types and signatures; what is declared about values that come from objects
//! value, json, compare    values, how they are read from objects, when they are equal
//! environment, cost       variables and functions, and what calls cost
//! device                  the environment of selectors of devices
//! functions/              the functions themselves, as tables
//! ```
//!
//! # Why it is made so
//!
//! **One row for each way to call a function**: signature, cost, implementation. The checker, the estimate and the
//! evaluator read the same row. So there is no function that one of them does not know, and a function that somebody
//! adds, such as those of an authorizer, is a row like any other.
//!
//! **Values borrow.** What comes from an object is a reference into it together with what was declared about it, and
//! becomes a number or a moment when it is looked at. A rule about one field of a large object costs that field. For
//! the same reason a value is tied to the object and to the program, and cannot outlive them.
//!
//! **What is declared is one tree**: the type the checker sees, how JSON is read, and the bounds the estimate is made
//! of all come from the same schema, and so from the same node.
//!
//! **Costs are upstream's to the unit**, at run time and estimated. They decide which rules a cluster accepts and which
//! it gives up on, so they are part of the API, with what looks odd about them: a chain `a.b.c` as an index or as a
//! branch of a choice is one cheaper than on its own, constant lists are free, `startsWith` is estimated by the prefix
//! and charged by the text.
//!
//! **Errors are values until somebody looks at them**, because `||`, `&&`, `all` and `exists` may not care. The
//! exceptions are the limits on costs: nothing absorbs those.
//!
//! **Deliberately absent:** protocol buffers, and with them enumerations and conversions from and to messages;
//! partial evaluation; extensions that Kubernetes does not offer, such as `math`. An expression that compiles here
//! compiles there.

mod ast;
mod checker;
mod compare;
mod cost;
mod cursor;
mod declaration;
mod device;
mod environment;
mod estimate;
mod evaluator;
mod fold;
mod functions;
mod issue;
mod json;
mod lexer;
mod macros;
mod parser;
mod printer;
mod program;
mod qualify;
mod times;
mod types;
mod unify;
mod value;

pub use cost::{Cost, Range};
pub use declaration::{Declaration, Equality, Field, MAX_REQUEST_BYTES, Shape, escape};
pub use device::{Device, DeviceSelector};
pub use environment::{Arguments, Environment, Implementation};
pub use estimate::{DEFINITION_COST_LIMIT, RULE_COST_LIMIT, exceeds_budget};
pub use functions::semver::Version;
pub use issue::{Issue, Issues, Position};
pub use program::{Budget, MATCH_CONDITIONS_BUDGET, PER_CALL_LIMIT, Program, RUNTIME_BUDGET, Variables};
pub use times::Moment;
pub use types::Type;
pub use value::{Error, Fields, Key, List, Map, Opaque, Text, Value};
