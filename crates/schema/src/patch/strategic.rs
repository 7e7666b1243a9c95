//! Strategic merge patch: a merge patch that knows which lists are merged by key, and understands directives.
//!
//! | directive | where | means |
//! |---|---|---|
//! | `$patch: replace` | in an object | take the patch instead of merging it |
//! | `$patch: replace` | as an item | take the other items of the patch instead of merging them |
//! | `$patch: delete` | in an object or item | remove it |
//! | `$retainKeys: [...]` | in an object | remove what is not listed |
//! | `$deleteFromPrimitiveList/f: [...]` | beside list `f` | remove these items |
//! | `$setElementOrder/f: [...]` | beside list `f` | the order the author has in mind |

use super::PatchError;
use crate::node::{Field, NodeId, Patch, Schema, Shape};
use object::{FieldName, Map, Value};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

/// Applies a strategic merge patch to an object of the type `node`.
pub fn strategic_merge_patch(
    schema: &Schema,
    node: NodeId,
    target: &mut Value,
    patch: Value,
) -> Result<(), PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed("a strategic merge patch is an object".to_owned()));
    };
    let Value::Object(fields) = target else {
        return Err(PatchError::Unprocessable("only an object can be patched".to_owned()));
    };
    Merge { schema }.object(fields, patch, Some(node))
}

struct Merge<'a> {
    schema: &'a Schema,
}

/// What the schema says of a field; nothing where it does not know it.
#[derive(Clone, Copy, Default)]
struct Known<'a> {
    node: Option<NodeId>,
    patch: Option<&'a Patch>,
}

impl<'a> Merge<'a> {
    fn object(&self, target: &mut Map, mut patch: Map, node: Option<NodeId>) -> Result<(), PatchError> {
        match patch.remove(DIRECTIVE) {
            None => {}
            Some(directive) => match directive.as_str() {
                Some("merge") => {}
                Some("replace") => {
                    *target = plain_object(patch);
                    return Ok(());
                }
                Some("delete") => {
                    target.clear();
                    return Ok(());
                }
                _ => return Err(PatchError::Malformed(format!("unknown patch type {directive} in a map"))),
            },
        }
        if let Some(retained) = patch.remove(RETAIN_KEYS) {
            retain_keys(target, &patch, &retained)?;
        }
        let mut lists = ListDirectives::take(&mut patch)?;
        for (key, value) in patch {
            let known = self.known(node, &key);
            let (deleted, order) = (lists.deleted.remove(key.as_str()), lists.order.remove(key.as_str()));
            self.field(target, key, value, known, Directives { deleted, order })?;
        }
        // What is left is about lists that the patch itself does not mention.
        let mentioned: Vec<String> = lists.deleted.keys().chain(lists.order.keys()).cloned().collect();
        for key in mentioned {
            let directives = Directives { deleted: lists.deleted.remove(&key), order: lists.order.remove(&key) };
            if target.get(&key).is_some_and(Value::is_array) {
                let known = self.known(node, &key);
                self.field(target, key.into(), Value::Array(Vec::new()), known, directives)?;
            }
        }
        Ok(())
    }

    fn known(&self, node: Option<NodeId>, key: &str) -> Known<'a> {
        match node.map(|node| self.schema.shape(node)) {
            Some(Shape::Struct(fields)) => fields.field(key).map_or(Known::default(), |field: &'a Field| Known {
                node: Some(field.node),
                patch: Some(&field.patch),
            }),
            Some(Shape::Map(map)) => Known { node: Some(map.values), patch: None },
            _ => Known::default(),
        }
    }

    fn field(
        &self,
        target: &mut Map,
        key: FieldName,
        value: Value,
        known: Known<'_>,
        directives: Directives,
    ) -> Result<(), PatchError> {
        let replaces = known.patch.is_some_and(|patch| patch.replace);
        match (target.get_mut(&key), value) {
            (_, Value::Null) => drop(target.remove(&key)),
            (Some(Value::Object(_)), Value::Object(patch)) if is_deletion(&patch) => drop(target.remove(&key)),
            (Some(Value::Object(fields)), Value::Object(patch)) if !replaces => {
                self.object(fields, patch, known.node)?;
            }
            (Some(Value::Array(items)), Value::Array(patch)) => {
                *items = self.list(items, patch, known, directives)?;
            }
            (None, Value::Array(patch)) => {
                let items = self.list(&[], patch, known, directives)?;
                target.insert(key, Value::Array(items));
            }
            (None, Value::Object(patch)) if is_deletion(&patch) => {}
            (_, value) => drop(target.insert(key, plain(value))),
        }
        Ok(())
    }

    fn list(
        &self,
        original: &[Value],
        patch: Vec<Value>,
        known: Known<'_>,
        directives: Directives,
    ) -> Result<Vec<Value>, PatchError> {
        let Some(merge_key) = known.patch.and_then(|patch| patch.merge.as_deref()) else {
            return Ok(patch.into_iter().map(plain).collect());
        };
        let of_objects = original.iter().chain(&patch).any(Value::is_object);
        // Where the patch does not say in which order things come, it is that of its own items.
        let own_order = || patch.iter().filter(|item| item.get(DIRECTIVE).is_none()).cloned().collect();
        let order: Vec<Value> = directives.order.unwrap_or_else(own_order);
        let merged = match of_objects {
            true => self.objects(original.to_vec(), patch, merge_key, known.node)?,
            false => scalars(original.to_vec(), patch, directives.deleted.as_deref().unwrap_or_default()),
        };
        let identity = |item: &Value| if of_objects { item.get(merge_key).cloned() } else { Some(item.clone()) };
        Ok(in_order(merged, original, &order, identity))
    }

    /// Merges lists whose items are told apart by a key.
    fn objects(
        &self,
        mut merged: Vec<Value>,
        patch: Vec<Value>,
        merge_key: &str,
        node: Option<NodeId>,
    ) -> Result<Vec<Value>, PatchError> {
        let items = node.and_then(|node| match self.schema.shape(node) {
            Shape::List(list) => Some(list.items),
            _ => None,
        });
        if patch.iter().any(|item| item.get(DIRECTIVE).is_some_and(|directive| directive == "replace")) {
            return Ok(patch.into_iter().filter(|item| item.get(DIRECTIVE).is_none()).map(plain).collect());
        }
        for item in patch {
            let Value::Object(item) = item else {
                return Err(PatchError::Malformed(format!("an item of a list merged by {merge_key} is no object")));
            };
            let Some(key) = item.get(merge_key).cloned() else {
                let item = Value::Object(item);
                return Err(PatchError::Malformed(format!(
                    "map: {item} does not contain declared merge key: {merge_key}"
                )));
            };
            let position = merged.iter().position(|found| found.get(merge_key) == Some(&key));
            match position {
                _ if is_deletion(&item) => merged.retain(|found| found.get(merge_key) != Some(&key)),
                Some(at) => match &mut merged[at] {
                    Value::Object(found) => self.object(found, item, items)?,
                    _ => return Err(PatchError::Unprocessable("a list mixes objects and other values".to_owned())),
                },
                None => merged.push(Value::Object(plain_object(item))),
            }
        }
        Ok(merged)
    }
}

/// What a patch says about one list, beside its items.
#[derive(Default)]
struct Directives {
    deleted: Option<Vec<Value>>,
    order: Option<Vec<Value>>,
}

/// The same for all lists of one object, by field.
struct ListDirectives {
    deleted: std::collections::BTreeMap<String, Vec<Value>>,
    order: std::collections::BTreeMap<String, Vec<Value>>,
}

impl ListDirectives {
    fn take(patch: &mut Map) -> Result<Self, PatchError> {
        let mut taken = ListDirectives { deleted: [].into(), order: [].into() };
        let directives: Vec<String> =
            patch.keys().filter(|key| key.starts_with('$')).map(ToString::to_string).collect();
        for key in directives {
            let (lists, field) = match (key.strip_prefix(DELETE_FROM_LIST), key.strip_prefix(SET_ORDER)) {
                (Some(field), _) => (&mut taken.deleted, field),
                (_, Some(field)) => (&mut taken.order, field),
                // Some types have fields that begin so.
                _ => continue,
            };
            match patch.remove(&key) {
                Some(Value::Array(items)) => drop(lists.insert(field.to_owned(), items)),
                _ => return Err(PatchError::Malformed(format!("{key} must be a list"))),
            }
        }
        Ok(taken)
    }
}

fn retain_keys(target: &mut Map, patch: &Map, retained: &Value) -> Result<(), PatchError> {
    let Some(retained) = retained.as_array() else {
        return Err(PatchError::Malformed(format!("{RETAIN_KEYS} must be a list")));
    };
    let listed = |key: &str| retained.iter().any(|retained| retained == key);
    if let Some(key) = patch.iter().find(|(key, value)| !value.is_null() && !key.starts_with('$') && !listed(key)) {
        return Err(PatchError::Malformed(format!("{RETAIN_KEYS} does not list {:?}, which the patch sets", key.0)));
    }
    target.retain(|key, _| listed(key));
    Ok(())
}

fn is_deletion(patch: &Map) -> bool {
    patch.get(DIRECTIVE).is_some_and(|directive| directive == "delete")
}

fn is_deleted(value: &Value) -> bool {
    value.as_object().is_some_and(is_deletion)
}

/// Merges lists of plain values as sets.
fn scalars(mut merged: Vec<Value>, patch: Vec<Value>, deleted: &[Value]) -> Vec<Value> {
    merged.retain(|item| !deleted.contains(item));
    for item in patch {
        if !merged.contains(&item) {
            merged.push(item);
        }
    }
    merged
}

/// Sorts a merged list: items that `order` names as it says, the others where the original had them, as far as the
/// two do not contradict.
fn in_order(
    merged: Vec<Value>,
    original: &[Value],
    order: &[Value],
    identity: impl Fn(&Value) -> Option<Value>,
) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| {
        let item = identity(item)?;
        list.iter().position(|other| identity(other).as_ref() == Some(&item))
    };
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    others.sort_by_key(|item| place(original, item).unwrap_or(usize::MAX));
    let mut result = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in named {
        while let Some(earlier) = others.next_if(|other| match (place(original, other), place(original, &item)) {
            (Some(other), Some(item)) => other < item,
            _ => false,
        }) {
            result.push(earlier);
        }
        result.push(item);
    }
    result.extend(others);
    result
}

/// What a patch adds where there was nothing: without nulls and directives.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(plain_object(fields)),
        Value::Array(items) => Value::Array(items.into_iter().filter(|item| !is_deleted(item)).map(plain).collect()),
        other => other,
    }
}

fn plain_object(fields: Map) -> Map {
    let is_directive = |key: &str| {
        key == DIRECTIVE || key == RETAIN_KEYS || key.starts_with(DELETE_FROM_LIST) || key.starts_with(SET_ORDER)
    };
    let kept = fields.into_iter().filter(|(key, value)| !value.is_null() && !is_deleted(value) && !is_directive(key));
    kept.map(|(key, value)| (key, plain(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use object::json;

    fn patched(kind: &str, original: &Value, patch: Value) -> Result<Value, PatchError> {
        let (schema, mut target) = (builtin(), original.clone());
        strategic_merge_patch(schema, schema.named(kind).unwrap(), &mut target, patch)?;
        Ok(target)
    }

    #[test]
    fn lists_with_a_key_are_merged_by_it() {
        let spec =
            json!({ "containers": [{ "name": "a", "image": "1", "args": ["x"] }, { "name": "b", "image": "1" }] });
        let containers =
            |patch| patched("core.v1.PodSpec", &spec, json!({ "containers": patch })).unwrap()["containers"].clone();
        assert_eq!(
            containers(json!([{ "name": "b", "image": "2" }, { "name": "c", "image": "3", "args": null }])),
            json!([{ "name": "a", "image": "1", "args": ["x"] }, { "name": "b", "image": "2" }, { "name": "c", "image": "3" }])
        );
        assert_eq!(containers(json!([{ "name": "c" }]))[0], json!({ "name": "c" }), "what is new comes first");
        assert_eq!(
            containers(json!([{ "name": "a", "args": ["y"] }]))[0],
            json!({ "name": "a", "image": "1", "args": ["y"] }),
            "a list without a key is replaced"
        );
        assert_eq!(containers(json!([{ "name": "a", "$patch": "delete" }])), json!([{ "name": "b", "image": "1" }]));
        assert_eq!(containers(json!([{ "name": "z" }, { "$patch": "replace" }])), json!([{ "name": "z" }]));
        assert!(matches!(
            patched("core.v1.PodSpec", &spec, json!({ "containers": [{ "image": "2" }] })),
            Err(PatchError::Malformed(message)) if message.contains("does not contain declared merge key: name")
        ));
    }

    #[test]
    fn lists_of_plain_values_are_merged_as_sets() {
        let meta = json!({ "finalizers": ["a", "b"] });
        for (patch, result) in [
            (json!({ "finalizers": ["b", "c"] }), json!(["a", "b", "c"])),
            (json!({ "$deleteFromPrimitiveList/finalizers": ["a"] }), json!(["b"])),
            (
                json!({ "finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["c", "b"] }),
                json!(["c", "b"]),
            ),
            (json!({ "finalizers": null }), json!(null)),
        ] {
            let patched = patched("meta.v1.ObjectMeta", &meta, patch.clone()).unwrap();
            assert_eq!(patched.get("finalizers").cloned().unwrap_or_default(), result, "{patch}");
        }
    }

    #[test]
    fn the_order_of_the_author_wins_and_the_rest_keeps_its_place() {
        let spec = json!({ "containers": [{ "name": "a" }, { "name": "server" }, { "name": "b" }] });
        let patch = json!({
            "$setElementOrder/containers": [{ "name": "b" }, { "name": "new" }, { "name": "a" }],
            "containers": [{ "name": "new" }],
        });
        let names: Vec<_> = patched("core.v1.PodSpec", &spec, patch).unwrap()["containers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|container| container["name"].clone())
            .collect();
        assert_eq!(names, ["server", "b", "new", "a"]);
    }

    #[test]
    fn objects_are_merged_replaced_deleted_or_cut_to_what_is_retained() {
        let deployment = json!({ "spec": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } }, "paused": true } });
        let spec =
            |patch| patched("apps.v1.Deployment", &deployment, json!({ "spec": patch })).unwrap()["spec"].clone();
        assert_eq!(
            spec(json!({ "strategy": { "$retainKeys": ["type"], "type": "Recreate" } })),
            json!({ "strategy": { "type": "Recreate" }, "paused": true })
        );
        assert_eq!(spec(json!({ "strategy": { "$patch": "delete" } })), json!({ "paused": true }));
        assert_eq!(
            spec(json!({ "strategy": { "$patch": "replace", "type": "Recreate" } }))["strategy"],
            json!({ "type": "Recreate" })
        );
        assert_eq!(spec(json!({ "paused": null, "replicas": 2 }))["replicas"], 2);
        assert!(
            patched(
                "apps.v1.Deployment",
                &deployment,
                json!({ "spec": { "strategy": { "$retainKeys": [], "type": "x" } } })
            )
            .is_err()
        );
        assert!(patched("apps.v1.Deployment", &deployment, json!({ "spec": { "$patch": "fly" } })).is_err());
    }

    #[test]
    fn what_is_new_comes_without_nulls_and_directives() {
        let patch = json!({ "spec": { "template": { "metadata": { "labels": { "a": "b", "c": null } } }, "selector": { "$patch": "delete" } } });
        assert_eq!(
            patched("apps.v1.Deployment", &json!({}), patch).unwrap(),
            json!({ "spec": { "template": { "metadata": { "labels": { "a": "b" } } } } })
        );
    }
}
