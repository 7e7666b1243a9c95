//! Schemas of custom resources: they have to be structural, so that pruning and defaulting know every field.
//!
//! Structural means that types and fields stand in the skeleton (`properties`, `items`, `additionalProperties`) and never
//! only under `allOf`, `anyOf`, `oneOf` or `not`, which may narrow what the skeleton allows. Expressions are checked where
//! they are compiled.

use crate::strategy::place::Place;
use crate::strategy::value::is_empty;
use object::field::Errors;
use object::{Value, View, json};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// Parts of JSON schema that no schema here may use.
const UNSUPPORTED: [&str; 6] = ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];
/// What only the skeleton may say, and how it is put.
const ONLY_IN_SKELETON: [(&str, &str); 12] = [
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
];
const NESTED_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Everything that is wrong with a schema; one that is not there is somebody else's mistake.
pub fn validate(schema: &Place, errors: &mut Errors) {
    if !schema.is_set() {
        return;
    }
    if schema.field("nullable").flag() {
        schema.field("nullable").forbidden(errors, "nullable cannot be true at the root");
    }
    let mut structural = Errors::new();
    validate_skeleton(schema, Level::Root, &mut structural);
    structural.sort_by_key(ToString::to_string);
    errors.extend(structural);
    validate_schema(schema, Level::Root, errors);
}

/// The schemas below one, with the place they stand at in the skeleton.
fn each_child(schema: &Place, mut visit: impl FnMut(&Place, Level)) {
    let (items, additional) = (schema.field("items"), schema.field("additionalProperties"));
    if items.value().is_object() {
        visit(&items, Level::Item);
    }
    schema.field("properties").entries().for_each(|(_, property)| visit(&property, Level::Field));
    if additional.value().is_object() {
        visit(&additional, Level::Field);
    }
}

/// The schemas that a value has to match as well, or may match.
fn each_nested(schema: &Place, mut visit: impl FnMut(&Place)) {
    NESTED_LISTS.iter().for_each(|list| schema.field(list).items().for_each(|nested| visit(&nested)));
    let not = schema.field("not");
    if not.value().is_object() {
        visit(&not);
    }
}

fn validate_skeleton(schema: &Place, level: Level, errors: &mut Errors) {
    let kind = schema.field("type");
    if kind.text() == "array" && !schema.field("items").is_set() {
        schema.field("items").required(errors, "must be specified");
    }
    if level == Level::Root && schema.field("additionalProperties").is_set() {
        schema.field("additionalProperties").forbidden(errors, "must not be used at the root");
    }
    let (int_or_string, preserve) = (
        schema.field("x-kubernetes-int-or-string").flag(),
        schema.field("x-kubernetes-preserve-unknown-fields").flag(),
    );
    let embedded = schema.field("x-kubernetes-embedded-resource").flag();
    for field in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if int_or_string && schema.field(field).flag() {
            schema.field(field).invalid(errors, "must be false if x-kubernetes-int-or-string is true");
        }
    }
    if embedded && kind.text() != "object" {
        must_be(&kind, "must be object if x-kubernetes-embedded-resource is true", errors);
    } else if kind.is_empty() && !int_or_string && !preserve {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        kind.required(errors, detail);
    } else if level == Level::Root && !kind.is_empty() && kind.text() != "object" {
        kind.invalid(errors, "must be object at the root");
    }
    if embedded && !preserve && schema.field("properties").is_empty() {
        schema.field("properties").required(
            errors,
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        );
    }
    if level == Level::Root || embedded {
        validate_identity(schema, level, errors);
    }
    each_nested(schema, |narrowing| {
        if !(int_or_string && is_int_or_string(schema, narrowing)) {
            validate_narrowing(narrowing, schema, errors);
        }
    });
    each_child(schema, |child, level| validate_skeleton(child, level, errors));
}

/// What is not said is missing; what is said is wrong.
fn must_be(place: &Place, detail: &str, errors: &mut Errors) {
    match place.is_empty() {
        true => place.required(errors, detail),
        false => place.invalid(errors, detail),
    }
}

/// What every object has: its version, kind and metadata.
fn validate_identity(schema: &Place, level: Level, errors: &mut Errors) {
    let properties = schema.field("properties");
    for (name, kind) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let property = properties.key(name);
        if property.is_set() && property.field("type").text() != kind {
            property.field("type").invalid_value(errors, property.field("type").text(), format!("must be {kind}"));
        }
    }
    let metadata = properties.key("metadata");
    if level == Level::Root && metadata.is_set() {
        let allowed_fields = |name: &str| matches!(name, "name" | "generateName");
        let only_names = metadata.value().entries("properties").all(|(name, _)| allowed_fields(name));
        let nothing_else = metadata.value().as_object().is_none_or(|fields| {
            fields.iter().all(|(field, value)| {
                matches!(field.as_str(), "type" | "properties" | "description") || is_empty(value)
            })
        });
        if !(only_names && nothing_else) {
            let detail =
                "must not specify anything other than name and generateName, but metadata is implicitly specified";
            metadata.forbidden(errors, detail);
        }
    }
}

/// The one place where types may be narrowed: a number or a text.
fn is_int_or_string(schema: &Place, narrowing: &Place) -> bool {
    let both = json!([{ "type": "integer" }, { "type": "string" }]);
    let of_schema =
        schema.field("anyOf").value() == &both && schema.field("anyOf").values().contains(narrowing.value());
    let of_first = schema
        .field("allOf")
        .values()
        .first()
        .is_some_and(|first| first.at("anyOf") == &both && first == narrowing.value());
    of_schema || of_first
}

fn validate_narrowing(narrowing: &Place, skeleton: &Place, errors: &mut Errors) {
    for (field, detail) in ONLY_IN_SKELETON {
        let value = narrowing.field(field);
        if !value.is_empty() && value.value().as_bool() != Some(false) {
            value.forbidden(errors, detail);
        }
    }
    for (name, property) in narrowing.field("properties").entries() {
        if name == "metadata" {
            property.forbidden(errors, "must not be specified in a nested context");
        }
        let properties = skeleton.field("properties");
        let in_skeleton = properties.key(name);
        if !in_skeleton.is_set() && !skeleton.field("additionalProperties").value().is_object() {
            in_skeleton.required(errors, format!("because it is defined in {property}"));
        } else {
            validate_narrowing(&property, &in_skeleton, errors);
        }
    }
    let items = narrowing.field("items");
    if items.value().is_object() {
        let in_skeleton = skeleton.field("items");
        if in_skeleton.is_set() {
            validate_narrowing(&items, &in_skeleton, errors);
        } else {
            in_skeleton.required(errors, format!("because it is defined in {items}"));
        }
    }
    each_nested(narrowing, |deeper| validate_narrowing(deeper, skeleton, errors));
}

/// What holds for every schema, wherever it stands.
fn validate_schema(schema: &Place, level: Level, errors: &mut Errors) {
    let kind = schema.field("type");
    if kind.text() == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        kind.forbidden(errors, detail);
    } else if !kind.is_empty() {
        kind.one_of(errors, &TYPES);
    }
    for field in UNSUPPORTED {
        schema.field(field).forbid(errors, &format!("{field} is not supported"));
    }
    if schema.field("uniqueItems").flag() {
        schema
            .field("uniqueItems")
            .forbidden(errors, "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
    }
    if schema.value().at("items").is_array() {
        schema.field("items").forbidden(errors, "items must be a schema object and not an array");
    }
    let additional = schema.field("additionalProperties");
    if !schema.field("properties").is_empty() && additional.is_set() && additional.value().as_bool() != Some(true) {
        additional.forbidden(errors, "additionalProperties and properties are mutual exclusive");
    }
    let preserve = schema.field("x-kubernetes-preserve-unknown-fields");
    if preserve.value().as_bool() == Some(false) {
        preserve.invalid(errors, "must be true or undefined");
    }
    for rule in schema.field("x-kubernetes-validations").items() {
        if rule.field("rule").text().trim().is_empty() {
            rule.field("rule").required(errors, "rule is not specified");
        }
    }
    validate_merging(schema, errors);
    if level == Level::Root {
        let properties = schema.field("properties");
        for name in ["apiVersion", "kind", "metadata"] {
            properties.key(name).field("default").forbid(errors, &format!("must not be set in top-level {name}"));
        }
    }
    each_nested(schema, |schema| validate_schema(schema, Level::Field, errors));
    each_child(schema, |schema, level| validate_schema(schema, level, errors));
}

/// How lists and maps are merged has to fit what they are.
fn validate_merging(schema: &Place, errors: &mut Errors) {
    let kind = schema.field("type");
    let merging = [
        ("x-kubernetes-map-type", "object", &["atomic", "granular"][..]),
        ("x-kubernetes-list-type", "array", &["atomic", "set", "map"][..]),
    ];
    for (field, wanted, words) in merging {
        let value = schema.field(field);
        if !value.is_set() {
            continue;
        }
        if kind.text() != wanted {
            must_be(&kind, &format!("must be {wanted} if {field} is specified"), errors);
        }
        value.one_of(errors, words);
    }
    let (list, keys) = (schema.field("x-kubernetes-list-type"), schema.field("x-kubernetes-list-map-keys"));
    if !keys.is_empty() && list.text() != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list.is_set() {
            true => list.invalid(errors, detail),
            false => list.required(errors, detail),
        }
    }
    if list.text() != "map" {
        return;
    }
    keys.require_because(errors, "must not be empty if x-kubernetes-list-type is map");
    let items = schema.field("items");
    let properties = items.field("properties");
    for key in schema.field("x-kubernetes-list-map-keys").items() {
        let property = properties.key(key.text());
        let required = items.field("required").values().contains(key.value());
        if !property.is_set() {
            key.invalid(errors, "entries must all be names of item properties");
        } else if !required && !property.field("default").is_set() {
            property.field("default").required(
                errors,
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            );
        }
    }
}

/// A field that objects can be selected by: one value, outside of metadata.
pub fn validate_selectable(path: &Place, schema: &Value, errors: &mut Errors) {
    let steps: Vec<&str> = path.text().trim_start_matches('.').split('.').collect();
    let found = steps.iter().fold(schema, |schema, step| schema.at("properties").at(step));
    if steps.first() == Some(&"metadata") {
        path.invalid(errors, "must not point to fields in metadata");
    } else if found.is_null() {
        let detail = format!("is an invalid path: does not refer to a valid field: {}", path.text());
        path.invalid(errors, detail);
    } else if !matches!(found.text("type"), "string" | "boolean" | "integer") {
        path.invalid(
            errors,
            "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are \
             allowed.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(schema: &Value) -> Vec<String> {
        let mut errors = Errors::new();
        validate(&Place::named(schema, "s"), &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_structural_schema_is_good() {
        let schema = json!({
            "type": "object",
            "properties": {
                "metadata": { "type": "object", "properties": { "name": { "type": "string" } } },
                "spec": {
                    "type": "object",
                    "properties": {
                        "port": { "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                        "names": { "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" },
                        "free": { "type": "object", "additionalProperties": { "type": "string" } },
                        "any": { "x-kubernetes-preserve-unknown-fields": true },
                    },
                    "oneOf": [{ "required": ["port"] }, { "properties": { "names": { "minItems": 1 } } }],
                },
            },
        });
        assert_eq!(messages(&schema), [""; 0]);
    }

    #[test]
    fn what_is_not_structural_is_refused() {
        let field = |schema: Value| json!({ "type": "object", "properties": { "a": schema } });
        let cases = [
            (json!({}), "s.type: Required value: must not be empty at the root"),
            (json!({ "type": "string" }), "s.type: Invalid value: \"string\": must be object at the root"),
            (field(json!({})), "s.properties[a].type: Required value: must not be empty for specified object fields"),
            (
                field(json!({ "type": "array", "items": {} })),
                "s.properties[a].items.type: Required value: must not be empty for specified array items",
            ),
            (field(json!({ "type": "array" })), "s.properties[a].items: Required value: must be specified"),
            (
                field(json!({ "type": "string", "anyOf": [{ "type": "string" }] })),
                "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
            ),
            (
                field(json!({ "type": "object", "oneOf": [{ "properties": { "b": { "minLength": 1 } } }] })),
                "s.properties[a].properties[b]: Required value: because it is defined in \
                 s.properties[a].oneOf[0].properties[b]",
            ),
            (
                json!({ "type": "object", "properties": { "metadata": { "type": "object", "properties": { "labels": { "type": "object" } } } } }),
                "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata \
                 is implicitly specified",
            ),
            (
                field(json!({ "type": "text" })),
                "s.properties[a].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", \
                 \"number\", \"object\", \"string\"",
            ),
            (
                field(
                    json!({ "type": "object", "properties": { "b": { "type": "string" } }, "additionalProperties": false }),
                ),
                "s.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            ),
            (
                field(
                    json!({ "type": "array", "items": { "type": "object", "properties": { "k": { "type": "string" } } },
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"] }),
                ),
                "s.properties[a].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, \
                 so it must have a default or be a required property",
            ),
        ];
        for (schema, message) in cases {
            assert_eq!(messages(&schema), [message], "{schema}");
        }
    }
}
