//! What trees are relied on for.

use super::*;
use crate::json;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn json_can_be_written_as_it_is() {
    let (name, list, nothing) = ("n", vec![1, 2], None::<i32>);
    let value = json!({
        "text": name, "list": list, "none": nothing, "nested": { "a": [1, { "b": null }, [true], name.len()] },
        (format!("{name}-1")): 1.5, "empty": {}, "items": [],
    });
    let expected = r#"{"empty":{},"items":[],"list":[1,2],"n-1":1.5,"nested":{"a":[1,{"b":null},[true],1]},"none":null,"text":"n"}"#;
    assert_eq!(value.to_string(), expected);
    assert_eq!(expected.parse::<Value>().unwrap(), value);
}

#[test]
fn fields_are_sorted_and_the_last_of_two_counts() {
    let value: Value = r#"{"b":1,"a":2,"b":3,"c":4}"#.parse().unwrap();
    assert_eq!(value.to_string(), r#"{"a":2,"b":3,"c":4}"#);
}

#[test]
fn copies_share_until_one_of_them_is_changed() {
    let old = json!({ "a": { "b": 1 }, "c": { "d": [{ "e": 2 }] } });
    let mut new = old.clone();
    let same = |new: &Value, path: &[&str]| {
        let at = |value: &Value| path.iter().fold(value.clone(), |value, name| value[*name].clone());
        matches!((at(new), at(&old)), (Value::Object(new), Value::Object(old)) if new.is_same(&old))
    };
    assert!(same(&new, &[]));
    new["a"]["b"] = json!(3);
    assert!(!same(&new, &[]) && !same(&new, &["a"]) && same(&new, &["c"]));
    assert_eq!(old, json!({ "a": { "b": 1 }, "c": { "d": [{ "e": 2 }] } }));
    new["c"]["d"][0]["e"] = json!(4);
    assert_eq!((&old["c"]["d"][0]["e"], &new["c"]["d"][0]["e"]), (&json!(2), &json!(4)));
    new.as_object_mut().unwrap().retain(|name, _| name == "c");
    assert_eq!(new, json!({ "c": { "d": [{ "e": 4 }] } }));
}

#[test]
fn what_is_missing_is_null_to_look_at_and_made_to_be_set() {
    let mut value = json!({ "a": [1] });
    assert_eq!(value["x"]["y"], Value::Null);
    assert_eq!(value["a"][5], Value::Null);
    value["b"]["c"] = json!("d");
    value["a"][0] = json!(2);
    assert_eq!(value, json!({ "a": [2], "b": { "c": "d" } }));
    assert_eq!(value.pointer("/b/c"), Some(&json!("d")));
    assert_eq!(value.pointer("/a/0"), Some(&json!(2)));
    assert_eq!(value.pointer("b"), None);
}

#[test]
fn types_are_read_out_of_trees() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Default)]
    struct Read {
        some_text: String,
        number: Option<i32>,
        map: BTreeMap<String, bool>,
    }
    let read: Read = from_value(&json!({ "someText": "x", "number": 3, "map": { "a": true }, "more": 1 })).unwrap();
    assert_eq!(read, Read { some_text: "x".to_owned(), number: Some(3), map: [("a".to_owned(), true)].into() });
    assert!(from_value::<Read>(&json!({ "number": "three" })).is_err());
}

#[test]
fn numbers_keep_what_they_are() {
    let text = r#"[0,-1,18446744073709551615,1.0,1e21]"#;
    assert_eq!(text.parse::<Value>().unwrap().to_string(), r#"[0,-1,18446744073709551615,1.0,1e+21]"#);
    assert_eq!(json!(1), 1);
    assert_ne!(json!(1.0), json!(1));
}

proptest! {
    /// Whatever is done to a map, it is what a sorted map would be.
    #[test]
    fn a_map_is_a_sorted_map(steps in proptest::collection::vec((0_u8..3, 0_u8..40, any::<i32>()), 0..80)) {
        let (mut map, mut model) = (Map::new(), BTreeMap::new());
        for (what, key, value) in steps {
            let key = format!("key-{key}");
            match what {
                0 => prop_assert_eq!(map.insert(key.as_str(), json!(value)), model.insert(key, json!(value))),
                1 => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                _ => prop_assert_eq!(map.get(&key), model.get(&key)),
            }
        }
        let entries: Vec<(String, Value)> = map.into_iter().map(|(key, value)| (key.into(), value)).collect();
        prop_assert_eq!(entries, model.into_iter().collect::<Vec<_>>());
    }
}
