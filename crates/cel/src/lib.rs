//! The Common Expression Language as Kubernetes uses it: in rules of custom resources, in admission policies and match
//! conditions, and in selectors of devices. Pure, no I/O.
mod ast;
mod checker;
mod compare;
mod cost;
mod declaration;
mod environment;
mod estimate;
mod evaluator;
mod functions;
mod issue;
mod json;
mod lexer;
mod macros;
mod parser;
mod printer;
mod program;
mod times;
mod types;
mod unify;
mod value;

pub use cost::{Cost, Range};
pub use declaration::{Declaration, Equality, Field, MAX_REQUEST_BYTES, Shape, escape};
pub use environment::{Arguments, Environment, Implementation};
pub use estimate::{DEFINITION_COST_LIMIT, RULE_COST_LIMIT, exceeds_budget};
pub use functions::semver::Version;
pub use issue::{Issue, Issues, Position};
pub use program::{Budget, MATCH_CONDITIONS_BUDGET, PER_CALL_LIMIT, Program, RUNTIME_BUDGET, Variables};
pub use times::Moment;
pub use types::Type;
pub use value::{Error, Fields, Key, List, Map, Opaque, Text, Value};
