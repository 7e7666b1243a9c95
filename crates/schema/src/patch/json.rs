//! JSON patch: a list of operations, made all or none.

use super::PatchError;
use object::Value;

/// More operations than this are refused before the first is made.
pub const MAX_OPERATIONS: usize = 10_000;
/// What `copy` operations may add to an object in all: without a bound, a short patch could double it again and again.
const MAX_COPIED_BYTES: usize = 3 << 20;

/// Applies a JSON patch.
pub fn json_patch(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let Value::Array(operations) = patch else {
        return Err(PatchError::Malformed("a JSON patch is a list of operations".to_owned()));
    };
    if operations.len() > MAX_OPERATIONS {
        let count = operations.len();
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}"
        )));
    }
    let mut result = target.clone();
    let mut copied_bytes = 0;
    for operation in operations {
        apply(&mut result, operation, &mut copied_bytes)?;
    }
    *target = result;
    Ok(())
}

fn apply(document: &mut Value, operation: &Value, copied_bytes: &mut usize) -> Result<(), PatchError> {
    let text = |field: &str| {
        let missing = || PatchError::Malformed(format!("an operation of a JSON patch needs {field:?}: {operation}"));
        operation.get(field).and_then(Value::as_str).ok_or_else(missing)
    };
    let value = || {
        let missing = || PatchError::Malformed(format!("an operation of a JSON patch needs \"value\": {operation}"));
        operation.get("value").cloned().ok_or_else(missing)
    };
    let path = text("path")?;
    match text("op")? {
        "add" => add(document, path, value()?),
        "remove" => remove(document, path).map(drop),
        "replace" => {
            let value = value()?;
            *find(document, path)? = value;
            Ok(())
        }
        "move" => {
            let from = text("from")?;
            if path.starts_with(&format!("{from}/")) {
                return Err(PatchError::Unprocessable(format!("cannot move {from:?} into itself, at {path:?}")));
            }
            let moved = remove(document, from)?;
            add(document, path, moved)
        }
        "copy" => {
            let copied = find(document, text("from")?)?.clone();
            *copied_bytes += copied.to_string().len();
            if *copied_bytes > MAX_COPIED_BYTES {
                return Err(PatchError::Unprocessable(format!(
                    "the copies of a JSON patch exceed {MAX_COPIED_BYTES} bytes"
                )));
            }
            add(document, path, copied)
        }
        "test" => match found(document, path)? == operation.get("value").unwrap_or(&Value::Null) {
            true => Ok(()),
            false => Err(PatchError::Unprocessable(format!("testing path {path} failed"))),
        },
        other => Err(PatchError::Malformed(format!("a JSON patch has no operation {other:?}"))),
    }
}

/// The last step of a pointer and the way to it.
fn split(path: &str) -> Result<(&str, String), PatchError> {
    let (parent, last) = path.rsplit_once('/').ok_or_else(|| missing(path))?;
    Ok((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn missing(path: &str) -> PatchError {
    PatchError::Unprocessable(format!("the path {path:?} does not exist"))
}

fn find<'a>(document: &'a mut Value, path: &str) -> Result<&'a mut Value, PatchError> {
    document.pointer_mut(path).ok_or_else(|| missing(path))
}

/// What a test looks at. A field that is not there is null to it, so that a patch can insist on there being none.
fn found<'a>(document: &'a mut Value, path: &str) -> Result<&'a Value, PatchError> {
    if document.pointer(path).is_none() {
        let (parent, _) = split(path)?;
        return if find(document, parent)?.is_object() { Ok(&Value::Null) } else { Err(missing(path)) };
    }
    find(document, path).map(|value| &*value)
}

/// An index into a list of `len` items; only where something may be added, the end counts too.
fn index(text: &str, len: usize, path: &str) -> Result<usize, PatchError> {
    let canonical = text == "0" || (!text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()));
    match text.parse::<usize>() {
        Ok(index) if canonical && index < len => Ok(index),
        _ => Err(missing(path)),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    let (parent, last) = split(path)?;
    match find(document, parent)? {
        Value::Object(fields) => drop(fields.insert(last, value)),
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let at = index(&last, items.len() + 1, path)?;
            items.insert(at, value);
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, PatchError> {
    if path.is_empty() {
        return Ok(document.take());
    }
    let (parent, last) = split(path)?;
    match find(document, parent)? {
        Value::Object(fields) => fields.remove(&last).ok_or_else(|| missing(path)),
        Value::Array(items) => {
            let at = index(&last, items.len(), path)?;
            Ok(items.remove(at))
        }
        _ => Err(missing(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn operations_do_what_the_standard_says() {
        let document = json!({ "a": { "b": [1, 2] }, "x/y": 1, "m~n": 2 });
        for (patch, result) in [
            (
                json!([{ "op": "add", "path": "/a/b/1", "value": 9 }]),
                json!({ "a": { "b": [1, 9, 2] }, "x/y": 1, "m~n": 2 }),
            ),
            (
                json!([{ "op": "add", "path": "/a/b/-", "value": 9 }]),
                json!({ "a": { "b": [1, 2, 9] }, "x/y": 1, "m~n": 2 }),
            ),
            (
                json!([{ "op": "add", "path": "/a/b/2", "value": 9 }]),
                json!({ "a": { "b": [1, 2, 9] }, "x/y": 1, "m~n": 2 }),
            ),
            (
                json!([{ "op": "remove", "path": "/x~1y" }, { "op": "remove", "path": "/m~0n" }]),
                json!({ "a": { "b": [1, 2] } }),
            ),
            (json!([{ "op": "replace", "path": "/a", "value": 0 }]), json!({ "a": 0, "x/y": 1, "m~n": 2 })),
            (
                json!([{ "op": "move", "from": "/a/b/0", "path": "/a/c" }]),
                json!({ "a": { "b": [2], "c": 1 }, "x/y": 1, "m~n": 2 }),
            ),
            (
                json!([{ "op": "copy", "from": "/a/b", "path": "/c" }]),
                json!({ "a": { "b": [1, 2] }, "c": [1, 2], "x/y": 1, "m~n": 2 }),
            ),
            (json!([{ "op": "test", "path": "/a/b", "value": [1, 2] }]), document.clone()),
            (json!([{ "op": "test", "path": "/a/z", "value": null }]), document.clone()),
            (json!([{ "op": "add", "path": "", "value": 7 }]), json!(7)),
        ] {
            let mut patched = document.clone();
            json_patch(&mut patched, &patch).unwrap();
            assert_eq!(patched, result, "{patch}");
        }
    }

    #[test]
    fn a_patch_that_fails_changes_nothing() {
        let document = json!({ "a": [1] });
        for patch in [
            json!([{ "op": "remove", "path": "/a" }, { "op": "remove", "path": "/b" }]),
            json!([{ "op": "replace", "path": "/b", "value": 1 }]),
            json!([{ "op": "test", "path": "/a", "value": [2] }]),
            json!([{ "op": "add", "path": "/a/5", "value": 1 }]),
            json!([{ "op": "add", "path": "/a/01", "value": 1 }]),
            json!([{ "op": "add", "path": "/b/c", "value": 1 }]),
            json!([{ "op": "move", "from": "/a", "path": "/a/b" }]),
            json!([{ "op": "fly", "path": "/a" }]),
            json!([{ "op": "add", "path": "/a" }]),
            json!({ "op": "add" }),
        ] {
            let mut patched = document.clone();
            assert!(json_patch(&mut patched, &patch).is_err(), "{patch}");
            assert_eq!(patched, document);
        }
    }

    #[test]
    fn copies_cannot_make_an_object_explode() {
        let mut document = json!({ "a": "x".repeat(1000) });
        let copies = (0..20).map(|n| json!({ "op": "copy", "from": "", "path": format!("/{n}") })).collect();
        assert!(matches!(json_patch(&mut document, &Value::Array(copies)), Err(PatchError::Unprocessable(_))));
        let many = (0..=MAX_OPERATIONS).map(|_| json!({ "op": "test", "path": "", "value": 0 })).collect();
        assert!(matches!(json_patch(&mut document, &Value::Array(many)), Err(PatchError::TooLarge(_))));
    }
}
