//! Expressions as trees. What is written looks the same here: macros are calls until [`macros`](crate::macros) has
//! expanded them, so a tree can be printed and read again.

use crate::issue::Position;
use std::sync::Arc;

/// Names a node: an index into everything that is known about nodes, such as their positions and types.
pub(crate) type Id = usize;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expr {
    pub(crate) id: Id,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Literal(Literal),
    /// With a leading dot, if it was written so.
    Ident(Arc<str>),
    Select {
        operand: Box<Expr>,
        field: Arc<str>,
        /// `has(operand.field)`, and not the field itself.
        test: bool,
    },
    /// Operators are calls of functions such as `_+_`.
    Call {
        target: Option<Box<Expr>>,
        function: Arc<str>,
        args: Vec<Expr>,
    },
    List(Vec<Item>),
    Map(Vec<Entry>),
    Struct {
        name: Arc<str>,
        fields: Vec<Field>,
    },
    Comprehension(Box<Comprehension>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// An item of a list; an optional one is left out if it has no value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) id: Id,
    pub(crate) name: Arc<str>,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// The one loop there is: `accumulator` starts as `init`, and becomes `step` for each element of `range` while
/// `condition` holds; the value is `result`. All macros that go over something are made of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comprehension {
    pub(crate) range: Expr,
    pub(crate) variable: Arc<str>,
    /// Then the first is the index or the key, and this the element or the value.
    pub(crate) second: Option<Arc<str>>,
    pub(crate) accumulator: Arc<str>,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

impl Comprehension {
    /// Goes over nothing: it is there to give a name to a value, which is worked out when it is first looked at.
    pub(crate) fn is_binding(&self) -> bool {
        matches!(&self.range.kind, Kind::List(items) if items.is_empty())
            && matches!(self.condition.kind, Kind::Literal(Literal::Bool(false)))
    }
}

/// An expression and where its nodes stand.
#[derive(Clone, Debug)]
pub(crate) struct Ast {
    pub(crate) root: Expr,
    /// By [`Id`].
    pub(crate) positions: Vec<Position>,
}

impl Expr {
    /// What the node is made of.
    pub(crate) fn parts(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Literal(_) | Kind::Ident(_) => Vec::new(),
            Kind::Select { operand, .. } => vec![operand],
            Kind::Call { target, args, .. } => target.as_deref().into_iter().chain(args).collect(),
            Kind::List(items) => items.iter().map(|item| &item.value).collect(),
            Kind::Map(entries) => entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect(),
            Kind::Struct { fields, .. } => fields.iter().map(|field| &field.value).collect(),
            Kind::Comprehension(c) => vec![&c.range, &c.init, &c.condition, &c.step, &c.result],
        }
    }

    /// `a.b.c` as one name, if it is one.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select { operand, field, test: false } => Some(format!("{}.{field}", operand.qualified_name()?)),
            _ => None,
        }
    }
}

/// The functions that operators stand for.
pub(crate) mod operator {
    pub(crate) const CONDITIONAL: &str = "_?_:_";
    pub(crate) const AND: &str = "_&&_";
    pub(crate) const OR: &str = "_||_";
    pub(crate) const NOT: &str = "!_";
    pub(crate) const NEGATE: &str = "-_";
    pub(crate) const EQUALS: &str = "_==_";
    pub(crate) const ADD: &str = "_+_";
    pub(crate) const INDEX: &str = "_[_]";
    pub(crate) const OPTIONAL_INDEX: &str = "_[?_]";
    pub(crate) const OPTIONAL_SELECT: &str = "_?._";
    pub(crate) const IN: &str = "@in";
    pub(crate) const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";

    /// Operators between two operands: how they are written, how strongly they bind, and the function.
    pub(crate) const BINARY: [(&str, u8, &str); 14] = [
        ("||", 1, OR),
        ("&&", 2, AND),
        ("<", 3, "_<_"),
        ("<=", 3, "_<=_"),
        (">", 3, "_>_"),
        (">=", 3, "_>=_"),
        ("==", 3, EQUALS),
        ("!=", 3, "_!=_"),
        ("in", 3, IN),
        ("+", 4, ADD),
        ("-", 4, "_-_"),
        ("*", 5, "_*_"),
        ("/", 5, "_/_"),
        ("%", 5, "_%_"),
    ];
}
