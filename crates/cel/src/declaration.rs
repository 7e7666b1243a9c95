//! What is declared about a value before there is one: its type, how it is read from JSON, and how large it can get.
//!
//! The type is for the checker, the reading for the evaluator, the size for the estimate of costs. All three come from
//! the same OpenAPI schema, so they are one tree.

use crate::parser::RESERVED;
use crate::types::Type;
use object::{Value as Json, View};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The largest request there can be, in bytes; what has no bound of its own is bounded by it.
pub const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;

const MIN_STRING: u64 = 2;
const DATE_BYTES: u64 = 12;
const MIN_DATE_TIME: u64 = 21;
const MIN_DURATION: u64 = 3;
const MAX_TIME: u64 = 32;

#[derive(Clone, Debug)]
pub struct Declaration {
    pub shape: Shape,
    /// How many characters, items or entries there can be.
    pub max_size: u64,
    /// How many bytes of JSON it takes at least.
    pub min_bytes: u64,
    pub nullable: bool,
}

#[derive(Clone, Debug)]
pub enum Shape {
    /// Of this type, and read as such.
    Plain(Type),
    /// Text that is a day, which counts as the moment it begins.
    Date,
    IntOrString,
    List {
        items: Arc<Declaration>,
        equality: Equality,
    },
    Map {
        keys: Arc<Declaration>,
        values: Arc<Declaration>,
    },
    Object {
        name: Arc<str>,
        /// By the name they have in expressions.
        fields: BTreeMap<String, Field>,
    },
}

#[derive(Clone, Debug)]
pub struct Field {
    /// The name in JSON, which need not be one in expressions.
    pub name: String,
    pub declaration: Arc<Declaration>,
}

/// When lists are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Equality {
    #[default]
    Ordered,
    /// The order of items does not matter.
    Set,
    /// Nor here; items are told apart by these fields.
    Map(Vec<String>),
}

impl Declaration {
    pub fn plain(of: Type) -> Declaration {
        let max_size = match of {
            Type::String | Type::Bytes | Type::Dyn => MAX_REQUEST_BYTES - 2,
            _ => 0,
        };
        let min_bytes = match of {
            Type::Bool => 4,
            Type::String | Type::Bytes => MIN_STRING,
            Type::Timestamp => MIN_DATE_TIME,
            Type::Duration => MIN_DURATION,
            _ => 1,
        };
        Declaration { shape: Shape::Plain(of), max_size, min_bytes, nullable: false }
    }

    pub fn list(items: impl Into<Arc<Declaration>>) -> Declaration {
        let items = items.into();
        let max_size = (MAX_REQUEST_BYTES - 2) / (items.min_bytes + 1);
        let shape = Shape::List { items, equality: Equality::default() };
        Declaration { shape, max_size, min_bytes: 2, nullable: false }
    }

    /// From strings to something.
    pub fn map(values: impl Into<Arc<Declaration>>) -> Declaration {
        let values = values.into();
        let max_size = (MAX_REQUEST_BYTES - 2) / (values.min_bytes + 6);
        let shape = Shape::Map { keys: Arc::new(Declaration::plain(Type::String)), values };
        Declaration { shape, max_size, min_bytes: 2, nullable: false }
    }

    /// An object of this name with these fields.
    pub fn object<D: Into<Arc<Declaration>>>(name: &str, fields: impl IntoIterator<Item = (String, D)>) -> Declaration {
        let fields = fields
            .into_iter()
            .filter_map(|(name, declaration)| Some((escape(&name)?, Field { name, declaration: declaration.into() })));
        let shape = Shape::Object { name: name.into(), fields: fields.collect() };
        Declaration { shape, max_size: 0, min_bytes: 2, nullable: false }
    }

    /// With another bound on its size.
    pub fn at_most(self, max_size: u64) -> Declaration {
        Declaration { max_size, ..self }
    }

    /// What a structural schema declares; of the whole object or an embedded one also what every object has. None if
    /// expressions cannot look at it.
    pub fn from_schema(schema: &Json, is_object_root: bool) -> Option<Declaration> {
        declare(schema, is_object_root, "selfType")
    }

    /// The type the checker sees.
    pub fn of_type(self: &Arc<Self>) -> Type {
        match &self.shape {
            Shape::Plain(of) => of.clone(),
            Shape::Date => Type::Timestamp,
            Shape::IntOrString => Type::Dyn,
            Shape::List { items, .. } => Type::list(items.of_type()),
            Shape::Map { keys, values } => Type::map(keys.of_type(), values.of_type()),
            Shape::Object { .. } => Type::Object(self.clone()),
        }
    }

    pub(crate) fn type_name(&self) -> &str {
        match &self.shape {
            Shape::Object { name, .. } => name,
            _ => "object",
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        match &self.shape {
            Shape::Object { fields, .. } => fields.get(name),
            _ => None,
        }
    }
}

fn declare(schema: &Json, is_object_root: bool, name: &str) -> Option<Declaration> {
    let declared = if schema.flag("x-kubernetes-int-or-string") {
        let plain = Declaration { shape: Shape::IntOrString, ..Declaration::plain(Type::Dyn) };
        length(schema).map_or(plain.clone(), |length| plain.at_most(4 * length))
    } else {
        match schema.text("type") {
            "array" => declare_list(schema, name)?,
            "object" => declare_object(schema, is_object_root, name)?,
            "string" => declare_string(schema),
            "boolean" => Declaration::plain(Type::Bool),
            "number" => Declaration::plain(Type::Double),
            "integer" => Declaration::plain(Type::Int),
            _ => return None,
        }
    };
    Some(Declaration { nullable: schema.flag("nullable"), ..declared })
}

/// A bound that is set; one below zero allows nothing.
fn bound(schema: &Json, field: &str) -> Option<u64> {
    schema.int(field).map(|bound| u64::try_from(bound).unwrap_or(0))
}

fn length(schema: &Json) -> Option<u64> {
    bound(schema, "maxLength")
}

fn embedded(schema: &Json) -> bool {
    schema.flag("x-kubernetes-embedded-resource")
}

fn declare_string(schema: &Json) -> Declaration {
    let of = |of: Type, min_bytes, max_size| Declaration { min_bytes, max_size, ..Declaration::plain(of) };
    match schema.text("format") {
        "byte" => of(Type::Bytes, MIN_STRING, length(schema).unwrap_or(MAX_REQUEST_BYTES - 2)),
        "duration" => of(Type::Duration, MIN_DURATION, MAX_TIME),
        "date" => Declaration { shape: Shape::Date, ..of(Type::Timestamp, DATE_BYTES, DATE_BYTES) },
        "date-time" => of(Type::Timestamp, MIN_DATE_TIME, MAX_TIME),
        _ => {
            let longest = schema.items("enum").iter().filter_map(Json::as_str).map(|choice| choice.len() as u64).max();
            // A character takes up to four bytes.
            let max_size = length(schema).map(|length| 4 * length).or(longest).unwrap_or(MAX_REQUEST_BYTES - 2);
            of(Type::String, MIN_STRING, max_size)
        }
    }
}

fn declare_list(schema: &Json, name: &str) -> Option<Declaration> {
    let items = schema.at("items");
    let items = declare(items, embedded(items), &format!("{name}.@items"))?;
    let mut declared = Declaration::list(items);
    if let Shape::List { equality, .. } = &mut declared.shape {
        *equality = match schema.text("x-kubernetes-list-type") {
            "set" => Equality::Set,
            "map" => {
                let keys = schema.items("x-kubernetes-list-map-keys").iter();
                Equality::Map(keys.filter_map(Json::as_str).map(str::to_owned).collect())
            }
            _ => Equality::Ordered,
        };
    }
    let max_size = bound(schema, "maxItems").unwrap_or(declared.max_size);
    Some(declared.at_most(max_size))
}

fn declare_object(schema: &Json, is_object_root: bool, name: &str) -> Option<Declaration> {
    let values = schema.at("additionalProperties");
    if values.is_object() {
        let declared = Declaration::map(declare(values, embedded(values), &format!("{name}.@values"))?);
        let max_size = bound(schema, "maxProperties").unwrap_or(declared.max_size);
        return Some(declared.at_most(max_size));
    }
    let mut min_bytes = 2;
    let mut fields = BTreeMap::new();
    for (field, property) in schema.entries("properties") {
        let Some(declared) = declare(property, embedded(property), &format!("{name}.{field}")) else { continue };
        if schema.items("required").iter().any(|required| required == field) && !property.has("default") {
            min_bytes += field.len() as u64 + declared.min_bytes + 4;
        }
        fields.insert(field.to_owned(), Arc::new(declared));
    }
    if is_object_root && !declares_metadata(schema) {
        let text = Arc::new(Declaration::plain(Type::String));
        for field in ["apiVersion", "kind"] {
            fields.insert(field.to_owned(), text.clone());
        }
        let metadata = ["name", "generateName"].map(|field| (field.to_owned(), text.clone()));
        fields.insert("metadata".to_owned(), Arc::new(Declaration::object(&format!("{name}.metadata"), metadata)));
    }
    Some(Declaration { min_bytes, ..Declaration::object(name, fields) })
}

/// Whether the schema says itself what every object has; then that is what it is.
fn declares_metadata(schema: &Json) -> bool {
    let paths: [&[&str]; 4] =
        [&["kind"], &["apiVersion"], &["metadata", "properties", "name"], &["metadata", "properties", "generateName"]];
    paths.iter().all(|path| schema.at("properties").path(path).text("type") == "string")
}

/// Words of the language that no field can have for its name, beside those that are reserved.
const WORDS: [&str; 4] = ["true", "false", "null", "in"];
/// What may be part of names, and how it is written in expressions.
const ESCAPES: [(&str, &str); 4] = [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// The name of a field as expressions write it; none if they cannot.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if WORDS.contains(&name) || RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let (taken, written) = match ESCAPES.iter().find(|(part, _)| rest.starts_with(part)) {
            Some((part, written)) => (part.len(), *written),
            None if first.is_ascii_alphanumeric() || first == '_' => (1, &rest[..1]),
            None => return None,
        };
        escaped.push_str(written);
        rest = &rest[taken..];
    }
    Some(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn names_are_escaped_so_that_expressions_can_write_them() {
        for (name, escaped) in [
            ("spec", Some("spec")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("namespace", Some("__namespace__")),
            ("1a", None),
            ("", None),
            ("a b", None),
            ("ä", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
        }
    }

    #[test]
    fn bounds_follow_from_a_schema_and_where_it_sets_none_from_the_size_of_requests() {
        let schema = json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": { "type": "string", "maxLength": 10 },
                "colour": { "type": "string", "enum": ["red", "green"] },
                "when": { "type": "string", "format": "date-time" },
                "ports": { "type": "array", "items": { "type": "integer" }, "maxItems": 3 },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                "free": { "x-kubernetes-preserve-unknown-fields": true },
            },
        });
        let declared = Arc::new(Declaration::from_schema(&schema, true).unwrap());
        let size = |field: &str| declared.field(field).map(|field| field.declaration.max_size);
        assert_eq!(size("name"), Some(40));
        assert_eq!(size("colour"), Some(5));
        assert_eq!(size("when"), Some(32));
        assert_eq!(size("ports"), Some(3));
        assert_eq!(size("labels"), Some((MAX_REQUEST_BYTES - 2) / 8));
        assert_eq!(size("kind"), Some(MAX_REQUEST_BYTES - 2));
        assert_eq!(size("free"), None);
        assert_eq!(declared.min_bytes, 2 + 4 + 2 + 4);
        assert_eq!(declared.field("when").unwrap().declaration.of_type(), Type::Timestamp);
        assert!(declared.field("metadata").unwrap().declaration.field("generateName").is_some());
    }
}
