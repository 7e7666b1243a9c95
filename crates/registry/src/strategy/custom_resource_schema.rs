//! Schemas of custom resources: they have to be structural, so that pruning and defaulting know every field.
//!
//! Structural means that types and fields stand in the skeleton (`properties`, `items`, `additionalProperties`) and never
//! only under `allOf`, `anyOf`, `oneOf` or `not`, which may narrow what the skeleton allows. Expressions are checked where
//! they are compiled.

use crate::strategy::place::{Place, is_empty};
use object::field::{Error, Errors, Path};
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
    if schema.is_null() {
        return;
    }
    if schema.flag("nullable") {
        errors.push(Error::forbidden(&schema.child("nullable").path, "nullable cannot be true at the root"));
    }
    let mut structural = Errors::new();
    validate_skeleton(schema, Level::Root, &mut structural);
    structural.sort_by_key(ToString::to_string);
    errors.extend(structural);
    validate_schema(schema, Level::Root, errors);
}

/// The schemas below one, with the place they stand at in the skeleton.
fn children<'a>(schema: &Place<'a>) -> Vec<(Place<'a>, Level)> {
    let items = [schema.child("items")].into_iter().filter(|items| items.is_object()).map(|items| (items, Level::Item));
    let additional = [schema.child("additionalProperties")].into_iter().filter(|schema| schema.is_object());
    let properties = schema.map("properties").map(|(_, property)| property);
    items.chain(properties.chain(additional).map(|schema| (schema, Level::Field))).collect()
}

fn nested<'a>(schema: &Place<'a>) -> Vec<Place<'a>> {
    let not = [schema.child("not")].into_iter().filter(|not| not.is_object());
    NESTED_LISTS.iter().flat_map(|field| schema.list(field)).chain(not).collect()
}

fn validate_skeleton(schema: &Place, level: Level, errors: &mut Errors) {
    let kind = schema.text("type");
    let type_path = schema.child("type").path;
    if kind == "array" && !schema.has("items") {
        errors.push(Error::required(&schema.child("items").path, "must be specified"));
    }
    if level == Level::Root && schema.has("additionalProperties") {
        errors.push(Error::forbidden(&schema.child("additionalProperties").path, "must not be used at the root"));
    }
    let (int_or_string, preserve) =
        (schema.flag("x-kubernetes-int-or-string"), schema.flag("x-kubernetes-preserve-unknown-fields"));
    let embedded = schema.flag("x-kubernetes-embedded-resource");
    for field in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if int_or_string && schema.flag(field) {
            errors.push(schema.child(field).invalid("must be false if x-kubernetes-int-or-string is true"));
        }
    }
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => Error::required(&type_path, detail),
            kind => Error::invalid(&type_path, kind, detail),
        });
    } else if kind.is_empty() && !int_or_string && !preserve {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(Error::required(&type_path, detail));
    } else if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(Error::invalid(&type_path, kind, "must be object at the root"));
    }
    if embedded && !preserve && schema.child("properties").is_empty() {
        errors.push(Error::required(
            &schema.child("properties").path,
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ));
    }
    if level == Level::Root || embedded {
        validate_identity(schema, level, errors);
    }
    for narrowing in nested(schema) {
        if !(int_or_string && is_int_or_string(schema, &narrowing)) {
            validate_narrowing(&narrowing, schema.value, &schema.path, errors);
        }
    }
    children(schema).iter().for_each(|(child, level)| validate_skeleton(child, *level, errors));
}

/// What every object has: its version, kind and metadata.
fn validate_identity(schema: &Place, level: Level, errors: &mut Errors) {
    let properties = schema.child("properties");
    for (name, kind) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let property = properties.key(name);
        if !property.is_null() && property.text("type") != kind {
            let path = property.child("type").path;
            errors.push(Error::invalid(&path, property.text("type"), format!("must be {kind}")));
        }
    }
    let metadata = properties.key("metadata");
    if level == Level::Root && !metadata.is_null() {
        let allowed_fields = |name: &str| matches!(name, "name" | "generateName");
        let only_names = metadata.entries("properties").all(|(name, _)| allowed_fields(name));
        let nothing_else = metadata.as_object().is_none_or(|fields| {
            fields.iter().all(|(field, value)| {
                matches!(field.as_str(), "type" | "properties" | "description") || is_empty(value)
            })
        });
        if !(only_names && nothing_else) {
            let detail =
                "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(Error::forbidden(&metadata.path, detail));
        }
    }
}

/// The one place where types may be narrowed: a number or a text.
fn is_int_or_string(schema: &Place, narrowing: &Place) -> bool {
    let both = json!([{ "type": "integer" }, { "type": "string" }]);
    let of_schema = schema.at("anyOf") == &both && schema.items("anyOf").contains(narrowing.value);
    let of_first =
        schema.items("allOf").first().is_some_and(|first| first.at("anyOf") == &both && first == narrowing.value);
    of_schema || of_first
}

fn validate_narrowing(narrowing: &Place, skeleton: &Value, skeleton_path: &Path, errors: &mut Errors) {
    for (field, detail) in ONLY_IN_SKELETON {
        let value = narrowing.child(field);
        if !value.is_empty() && value.as_bool() != Some(false) {
            errors.push(Error::forbidden(&value.path, detail));
        }
    }
    for (name, property) in narrowing.map("properties") {
        if name == "metadata" {
            errors.push(Error::forbidden(&property.path, "must not be specified in a nested context"));
        }
        let path = skeleton_path.child("properties").key(name);
        let in_skeleton = skeleton.at("properties").at(name);
        if in_skeleton.is_null() && !skeleton.at("additionalProperties").is_object() {
            errors.push(Error::required(&path, format!("because it is defined in {}", property.path)));
        } else {
            validate_narrowing(&property, in_skeleton, &path, errors);
        }
    }
    let items = narrowing.child("items");
    if items.is_object() {
        let path = skeleton_path.child("items");
        if skeleton.has("items") {
            validate_narrowing(&items, skeleton.at("items"), &path, errors);
        } else {
            errors.push(Error::required(&path, format!("because it is defined in {}", items.path)));
        }
    }
    nested(narrowing).iter().for_each(|deeper| validate_narrowing(deeper, skeleton, skeleton_path, errors));
}

/// What holds for every schema, wherever it stands.
fn validate_schema(schema: &Place, level: Level, errors: &mut Errors) {
    let kind = schema.child("type");
    if kind.string() == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(Error::forbidden(&kind.path, detail));
    } else if !kind.is_empty() {
        kind.one_of(&TYPES, errors);
    }
    for field in UNSUPPORTED {
        schema.child(field).forbidden(&format!("{field} is not supported"), errors);
    }
    if schema.flag("uniqueItems") {
        errors.push(Error::forbidden(
            &schema.child("uniqueItems").path,
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ));
    }
    if schema.at("items").is_array() {
        errors.push(Error::forbidden(&schema.child("items").path, "items must be a schema object and not an array"));
    }
    let additional = schema.child("additionalProperties");
    if !schema.child("properties").is_empty() && !additional.is_null() && additional.as_bool() != Some(true) {
        errors.push(Error::forbidden(&additional.path, "additionalProperties and properties are mutual exclusive"));
    }
    let preserve = schema.child("x-kubernetes-preserve-unknown-fields");
    if preserve.as_bool() == Some(false) {
        errors.push(preserve.invalid("must be true or undefined"));
    }
    for rule in schema.list("x-kubernetes-validations") {
        if rule.text("rule").trim().is_empty() {
            errors.push(Error::required(&rule.child("rule").path, "rule is not specified"));
        }
    }
    validate_merging(schema, errors);
    if level == Level::Root {
        for name in ["apiVersion", "kind", "metadata"] {
            let default = schema.child("properties").key(name).child("default");
            default.forbidden(&format!("must not be set in top-level {name}"), errors);
        }
    }
    nested(schema).iter().for_each(|schema| validate_schema(schema, Level::Field, errors));
    children(schema).iter().for_each(|(schema, level)| validate_schema(schema, *level, errors));
}

/// How lists and maps are merged has to fit what they are.
fn validate_merging(schema: &Place, errors: &mut Errors) {
    let kind = schema.text("type");
    let merging = [
        ("x-kubernetes-map-type", "object", &["atomic", "granular"][..]),
        ("x-kubernetes-list-type", "array", &["atomic", "set", "map"][..]),
    ];
    for (field, wanted, words) in merging {
        let value = schema.child(field);
        if value.is_null() {
            continue;
        }
        if kind != wanted {
            let (path, detail) = (schema.child("type").path, format!("must be {wanted} if {field} is specified"));
            errors.push(if kind.is_empty() {
                Error::required(&path, detail)
            } else {
                Error::invalid(&path, kind, detail)
            });
        }
        value.one_of(words, errors);
    }
    let (list, keys) = (schema.child("x-kubernetes-list-type"), schema.child("x-kubernetes-list-map-keys"));
    if !keys.is_empty() && list.string() != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(if list.is_null() { Error::required(&list.path, detail) } else { list.invalid(detail) });
    }
    if list.string() != "map" {
        return;
    }
    keys.required("must not be empty if x-kubernetes-list-type is map", errors);
    let items = schema.child("items");
    let properties = items.child("properties");
    for key in schema.list("x-kubernetes-list-map-keys") {
        let property = properties.key(key.string());
        let required = items.items("required").contains(key.value);
        if property.is_null() {
            errors.push(key.invalid("entries must all be names of item properties"));
        } else if !required && !property.has("default") {
            errors.push(Error::required(
                &property.child("default").path,
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ));
        }
    }
}

/// A field that objects can be selected by: one value, outside of metadata.
pub fn validate_selectable(path: &Place, schema: &Value, errors: &mut Errors) {
    let steps: Vec<&str> = path.string().trim_start_matches('.').split('.').collect();
    let found = steps.iter().fold(schema, |schema, step| schema.at("properties").at(step));
    if steps.first() == Some(&"metadata") {
        errors.push(path.invalid("must not point to fields in metadata"));
    } else if found.is_null() {
        let detail = format!("is an invalid path: does not refer to a valid field: {}", path.string());
        errors.push(path.invalid(detail));
    } else if !matches!(found.text("type"), "string" | "boolean" | "integer") {
        errors.push(path.invalid(
            "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are \
             allowed.",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(schema: &Value) -> Vec<String> {
        let mut errors = Errors::new();
        validate(&Place::new(schema, &Path::new("s")), &mut errors);
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
