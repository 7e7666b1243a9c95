//! Which fields an object sets.

use super::Invalid;
use super::element::Element;
use super::form::{Form, Place, form, take_group};
use super::set::{Entry, FieldSet};
use crate::node::{NodeId, Schema};
use object::Value;

/// The fields that an object sets. Structures are not fields of their own, unless they are empty or merge as one
/// value; keys of maps and items of lists are, beside what is in them.
pub fn fields_of(schema: &Schema, node: NodeId, object: &Value) -> Result<FieldSet, Invalid> {
    below(schema, Place::root(node), object).map(|(set, _)| set)
}

/// What is set below a place, and whether the value in that place is a leaf.
fn below(schema: &Schema, place: Place, value: &Value) -> Result<(FieldSet, bool), Invalid> {
    let mut set = FieldSet::default();
    match form(schema, place, value) {
        Form::Leaf => return Ok((set, true)),
        Form::Fields(known, fields) => {
            set.entries.reserve(fields.len());
            for (name, value) in fields {
                let child = known.child(name);
                let (children, leaf) =
                    below(schema, child.place, value).map_err(|error| error.below(&Element::field(name)))?;
                let empty_object = value.as_object().is_some_and(|fields| fields.is_empty());
                let member = leaf || empty_object || !child.declared;
                if member || !children.is_empty() {
                    set.entries.push(Entry { element: Element::Field(child.name), member, children });
                }
            }
        }
        Form::Items(known, items) => {
            set.entries.reserve(items.len());
            let sorted = known.sorted(items)?;
            let mut rest = sorted.as_slice();
            while let [(element, item), duplicates @ ..] = take_group(&mut rest) {
                let children = match duplicates {
                    [] => below(schema, known.place(), item).map_err(|error| error.below(element))?.0,
                    // Which of them a field below would belong to cannot be said.
                    _ => FieldSet::default(),
                };
                set.entries.push(Entry { element: element.clone(), member: true, children });
            }
        }
    }
    Ok((set, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use crate::node::{Shape, Struct};
    use object::json;

    fn fields(kind: &str, object: &Value) -> Value {
        fields_of(builtin(), builtin().named(kind).unwrap(), object).unwrap().to_value()
    }

    #[test]
    fn every_kind_of_place_counts_as_its_schema_says() {
        for (why, kind, object, expected) in [
            (
                "structures are not fields, keys of maps are",
                "apps.v1.Deployment",
                json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "replicas": 1, "template": { "spec": { "hostname": "h" } } } }),
                json!({
                    "f:metadata": { "f:labels": { "f:a": {} } },
                    "f:spec": { "f:replicas": {}, "f:template": { "f:spec": { "f:hostname": {} } } },
                }),
            ),
            (
                "structures and maps that merge as one value are leaves",
                "core.v1.Service",
                json!({ "spec": { "selector": { "a": "b" }, "externalIPs": ["1.1.1.1"] } }),
                json!({ "f:spec": { "f:selector": {}, "f:externalIPs": {} } }),
            ),
            (
                "items of sets count by value",
                "core.v1.Pod",
                json!({ "metadata": { "finalizers": ["b", "a"] } }),
                json!({ "f:metadata": { "f:finalizers": { "v:\"a\"": {}, "v:\"b\"": {} } } }),
            ),
            (
                "items with keys count by them, and a default completes the key",
                "core.v1.Container",
                json!({ "name": "c", "ports": [{ "containerPort": 80 }, { "containerPort": 80, "protocol": "UDP" }] }),
                json!({ "f:name": {}, "f:ports": {
                    "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} },
                    "k:{\"containerPort\":80,\"protocol\":\"UDP\"}": { ".": {}, "f:containerPort": {}, "f:protocol": {} },
                } }),
            ),
            (
                "nulls and empty objects are leaves, empty lists are nothing",
                "core.v1.PodSpec",
                json!({ "securityContext": {}, "affinity": null, "containers": [], "tolerations": [] }),
                json!({ "f:securityContext": {}, "f:affinity": {}, "f:tolerations": {} }),
            ),
            (
                "a field may be finer than its type",
                "core.v1.PersistentVolumeSpec",
                json!({ "claimRef": { "name": "x", "namespace": "y" }, "storageClassName": "z" }),
                json!({ "f:claimRef": { "f:name": {}, "f:namespace": {} }, "f:storageClassName": {} }),
            ),
            (
                "duplicates are one item without fields",
                "core.v1.Container",
                json!({ "env": [{ "name": "a", "value": "1" }, { "name": "b", "value": "1" }, { "name": "a", "value": "2" }] }),
                json!({ "f:env": { "k:{\"name\":\"a\"}": {}, "k:{\"name\":\"b\"}": { ".": {}, "f:name": {}, "f:value": {} } } }),
            ),
        ] {
            assert_eq!(fields(kind, &object), expected, "{why}");
        }
    }

    #[test]
    fn without_a_schema_every_key_counts_and_lists_are_leaves() {
        let mut schema = Schema::default();
        let any = schema.add(Shape::Any);
        let open = schema.add(Shape::Struct(Struct { open: true, ..Struct::default() }));
        let object = json!({ "spec": { "a": { "b": 1 }, "list": [{ "name": "x" }], "none": null, "empty": {} } });
        let expected =
            json!({ "f:spec": { ".": {}, "f:a": { ".": {}, "f:b": {} }, "f:list": {}, "f:none": {}, "f:empty": {} } });
        for node in [any, open] {
            assert_eq!(fields_of(&schema, node, &object).unwrap().to_value(), expected);
        }
    }

    #[test]
    fn an_item_without_any_key_is_an_error_that_says_where() {
        let node = builtin().named("core.v1.Pod").unwrap();
        for (object, expected) in [
            (
                json!({ "metadata": { "finalizers": [{}] } }),
                ".metadata.finalizers: element 0: associative list without keys has an element that's a map type",
            ),
            (
                json!({ "spec": { "containers": [{ "name": "c", "env": [null] }] } }),
                ".spec.containers[name=\"c\"].env: element 0: associative list with keys may not have a null element",
            ),
        ] {
            assert_eq!(fields_of(builtin(), node, &object).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn below_the_deepest_level_everything_is_one_value() {
        let mut schema = Schema::default();
        let any = schema.add(Shape::Any);
        let mut object = json!(1);
        for _ in 0..400 {
            object = json!({ "a": object });
        }
        let set = fields_of(&schema, any, &object).unwrap();
        assert_eq!(set.len(), crate::apply::MAX_DEPTH);
        assert_eq!(FieldSet::from_value(&set.to_value()).unwrap(), set);
    }
}
