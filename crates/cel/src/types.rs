//! Types of values, and signatures of functions as text: `list(A).(A) -> int`.

use crate::declaration::Declaration;
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Type {
    /// Of something that did not check; goes with everything, so that one mistake is not told twice.
    Error,
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List(Arc<Type>),
    Map(Arc<(Type, Type)>),
    Optional(Arc<Type>),
    /// The type of types; of which one, if that is known.
    Type(Option<Arc<Type>>),
    /// Something with fields.
    Object(Arc<Declaration>),
    /// Known by its name, and by the functions that take it.
    Abstract(Arc<str>),
    /// Still to be found out: in a signature, the letter; in a check, the number of a variable.
    Param(usize),
}

impl Type {
    pub fn list(items: Type) -> Type {
        Type::List(Arc::new(items))
    }

    pub fn map(keys: Type, values: Type) -> Type {
        Type::Map(Arc::new((keys, values)))
    }

    pub fn optional(of: Type) -> Type {
        Type::Optional(Arc::new(of))
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    fn mentions(&self, param: usize) -> bool {
        *self == Type::Param(param) || self.parts().into_iter().any(|part| part.mentions(param))
    }

    fn replaced(&self, param: usize, with: &Type) -> Type {
        match self {
            Type::Param(other) if *other == param => with.clone(),
            other => other.map_parts(|part| part.replaced(param, with)),
        }
    }

    /// What the type is made of.
    pub(crate) fn parts(&self) -> Vec<&Type> {
        match self {
            Type::List(inner) | Type::Optional(inner) | Type::Type(Some(inner)) => vec![inner],
            Type::Map(inner) => vec![&inner.0, &inner.1],
            _ => Vec::new(),
        }
    }

    /// The type with each of its parts replaced.
    pub(crate) fn map_parts(&self, mut replace: impl FnMut(&Type) -> Type) -> Type {
        match self {
            Type::List(inner) => Type::list(replace(inner)),
            Type::Optional(inner) => Type::optional(replace(inner)),
            Type::Type(Some(inner)) => Type::Type(Some(Arc::new(replace(inner)))),
            Type::Map(inner) => Type::map(replace(&inner.0), replace(&inner.1)),
            other => other.clone(),
        }
    }
}

/// Objects are of the same type if they were declared at the same place.
impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Type::Object(one), Type::Object(other)) => Arc::ptr_eq(one, other),
            (Type::Abstract(one), Type::Abstract(other)) => one == other,
            (Type::Param(one), Type::Param(other)) => one == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other) && self.parts() == other.parts(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Error => "!error!",
            Type::Dyn => "dyn",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Timestamp => "timestamp",
            Type::Duration => "duration",
            Type::Type(None) => "type",
            Type::Abstract(name) => name,
            Type::Object(declaration) => declaration.type_name(),
            Type::List(items) => return write!(f, "list({items})"),
            Type::Map(entries) => return write!(f, "map({}, {})", entries.0, entries.1),
            Type::Optional(inner) => return write!(f, "optional_type({inner})"),
            Type::Type(Some(inner)) => return write!(f, "type({inner})"),
            Type::Param(number) => return write!(f, "_var{number}"),
        })
    }
}

/// The types that have a name of one word. The longer ones are what `type()` gives.
const NAMED: [(&str, Type); 15] = [
    ("dyn", Type::Dyn),
    ("null", Type::Null),
    ("null_type", Type::Null),
    ("bool", Type::Bool),
    ("int", Type::Int),
    ("uint", Type::Uint),
    ("double", Type::Double),
    ("string", Type::String),
    ("bytes", Type::Bytes),
    ("timestamp", Type::Timestamp),
    ("google.protobuf.Timestamp", Type::Timestamp),
    ("duration", Type::Duration),
    ("google.protobuf.Duration", Type::Duration),
    ("type", Type::Type(None)),
    ("error", Type::Error),
];

/// The type an expression names, such as `int` in `type(x) == int`.
pub(crate) fn named(name: &str) -> Option<Type> {
    let name = name.strip_prefix('.').unwrap_or(name);
    match name {
        "list" => Some(Type::list(Type::Dyn)),
        "map" => Some(Type::map(Type::Dyn, Type::Dyn)),
        "optional_type" => Some(Type::optional(Type::Dyn)),
        "dyn" | "null" | "timestamp" | "duration" | "error" => None,
        _ => NAMED.iter().find(|(known, _)| *known == name).map(|(_, named)| named.clone()),
    }
}

/// What a function takes and gives.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Signature {
    /// Whether it is called on its first argument.
    pub(crate) member: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
}

/// Letters that stand for one of some types; wherever the letter stands, it is the same one.
const CLASSES: [(&str, usize, &[Type]); 3] = [
    ("N", 2, &[Type::Int, Type::Uint, Type::Double]),
    ("M", 3, &[Type::Int, Type::Uint, Type::Double]),
    // Whose values can be ordered.
    (
        "O",
        4,
        &[Type::Int, Type::Uint, Type::Double, Type::Bool, Type::Duration, Type::Timestamp, Type::String, Type::Bytes],
    ),
];

impl Signature {
    /// All it stands for: `(N, N) -> N` is one for each type of numbers.
    pub(crate) fn instances(self) -> Vec<Signature> {
        CLASSES.iter().fold(vec![self], |signatures, (_, param, members)| {
            let replaced = |signature: &Signature, member: &Type| Signature {
                args: signature.args.iter().map(|arg| arg.replaced(*param, member)).collect(),
                result: signature.result.replaced(*param, member),
                ..*signature
            };
            let each = |signature: Signature| match signature.args.iter().any(|arg| arg.mentions(*param)) {
                true => members.iter().map(|member| replaced(&signature, member)).collect(),
                false => vec![signature],
            };
            signatures.into_iter().flat_map(each).collect()
        })
    }

    /// From `string.(int) -> string`. None if it is none.
    pub(crate) fn parse(text: &str) -> Option<Signature> {
        let mut rest = text;
        let mut args = Vec::new();
        let member = !rest.starts_with('(');
        if member {
            args.push(parse_type(&mut rest)?);
            rest = rest.strip_prefix('.')?;
        }
        rest = rest.strip_prefix('(')?;
        while !rest.starts_with(')') {
            args.push(parse_type(&mut rest)?);
            rest = rest.strip_prefix(", ").unwrap_or(rest);
        }
        rest = rest.strip_prefix(") -> ")?;
        let result = parse_type(&mut rest)?;
        rest.is_empty().then_some(Signature { member, args, result })
    }

    /// How many type variables there are.
    pub(crate) fn params(&self) -> usize {
        fn highest(of: &Type) -> usize {
            match of {
                Type::Param(number) => number + 1,
                other => other.parts().into_iter().map(highest).max().unwrap_or(0),
            }
        }
        self.args.iter().chain([&self.result]).map(highest).max().unwrap_or(0)
    }
}

fn parse_type(rest: &mut &str) -> Option<Type> {
    // The dot before a parenthesis belongs to the call; the others belong to names.
    let end = rest.find(['(', ')', ',']).unwrap_or(rest.len());
    let name = rest[..end].strip_suffix('.').unwrap_or(&rest[..end]);
    *rest = &rest[name.len()..];
    let parameterized = ["list", "map", "optional", "type"].contains(&name) && rest.starts_with('(');
    let mut parts = Vec::new();
    if parameterized {
        *rest = &rest[1..];
        while !rest.starts_with(')') {
            parts.push(parse_type(rest)?);
            *rest = rest.strip_prefix(", ").unwrap_or(rest);
        }
        *rest = &rest[1..];
    }
    let mut parts = parts.into_iter();
    match name {
        "list" => Some(Type::list(parts.next()?)),
        "optional" => Some(Type::optional(parts.next()?)),
        "map" => Some(Type::map(parts.next()?, parts.next()?)),
        "type" => Some(Type::Type(parts.next().map(Arc::new))),
        "A" | "B" => Some(Type::Param(usize::from(name == "B"))),
        "N" | "M" | "O" => CLASSES.iter().find(|(letter, ..)| *letter == name).map(|(_, param, _)| Type::Param(*param)),
        _ => match NAMED.iter().find(|(known, _)| *known == name) {
            Some((_, named)) => Some(named.clone()),
            None => (!name.is_empty()).then(|| Type::Abstract(name.into())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read_as_they_are_printed_in_messages() {
        let signature = Signature::parse("list(A).(A, map(string, B)) -> optional(A)").unwrap();
        let args: Vec<_> = signature.args.iter().map(ToString::to_string).collect();
        assert_eq!(args, ["list(_var0)", "_var0", "map(string, _var1)"]);
        assert_eq!((signature.member, signature.params()), (true, 2));
        assert_eq!(signature.result.to_string(), "optional_type(_var0)");
        let signature = Signature::parse("net.IP.() -> kubernetes.Quantity").unwrap();
        assert_eq!(signature.args[0], Type::Abstract("net.IP".into()));
        assert_eq!(Signature::parse("() -> int").unwrap().args, []);
        let instances = Signature::parse("list(O).() -> O").unwrap().instances();
        assert_eq!((instances.len(), instances[6].result.clone()), (8, Type::String));
        assert_eq!(Signature::parse("(N, M) -> bool").unwrap().instances().len(), 9);
        for bad in ["int", "(int)", "(int) -> ", "list.( -> int"] {
            assert_eq!(Signature::parse(bad), None, "{bad}");
        }
    }
}
