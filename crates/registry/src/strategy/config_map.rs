//! ConfigMaps, and what they share with Secrets: keys that become file names, a limit, and being sealed.

use crate::strategy::place::Place;
use crate::strategy::value::same;
use crate::strategy::{PLAIN, Strategy};
use object::field::Errors;
use object::{Value, View, base64, name};

pub const STRATEGY: Strategy = Strategy { validate: Some(validate), ..PLAIN };

/// How much one object may carry.
pub const MAX_BYTES: usize = 1024 * 1024;
const SEALED: &str = "field is immutable when `immutable` is set";

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    if let Some(old) = old {
        validate_sealed(new, old, &["data", "binaryData"], errors);
    }
    let map = Place::object(new);
    let mut bytes = 0;
    for (key, value) in map.field("data").entries() {
        validate_key(key, &value, errors);
        if new.at("binaryData").has(key) {
            value.invalid_value(errors, key, "duplicate of key present in binaryData");
        }
        bytes += value.text().len();
    }
    for (key, value) in map.field("binaryData").entries() {
        validate_key(key, &value, errors);
        bytes += decoded_len(value.text());
    }
    if bytes > MAX_BYTES {
        // The path that stands for the whole object.
        map.key("").too_long(errors, MAX_BYTES);
    }
}

pub fn validate_key(key: &str, value: &Place, errors: &mut Errors) {
    value.text_follows(errors, key, name::config_map_key);
}

/// Once an object is marked immutable, neither the mark nor the data may change.
pub fn validate_sealed(new: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    if !old.flag("immutable") {
        return;
    }
    let unsealed = Some("immutable").filter(|_| !new.flag("immutable"));
    let changed = fields.iter().copied().filter(|field| !same(new.at(field), old.at(field)));
    unsealed.into_iter().chain(changed).for_each(|field| Place::field_of(new, field).forbidden(errors, SEALED));
}

/// The size of what the text encodes.
pub fn decoded_len(text: &str) -> usize {
    base64::decode(text).map_or(0, |bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn keys_become_file_names_and_the_whole_has_a_limit() {
        let good = json!({ "data": { "a.conf": "x" }, "binaryData": { "b": "eA==" } });
        each_mistake_has_its_message(
            "core.v1.ConfigMap",
            &good,
            &[
                (
                    "data",
                    json!({ "b": "" }),
                    &["data[b]: Invalid value: \"b\": duplicate of key present in binaryData"],
                ),
                (
                    "data",
                    json!({ "a b": "" }),
                    &[
                        "data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' \
                   or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
                    ],
                ),
                ("data", json!({ "a": "x".repeat(MAX_BYTES) }), &["[]: Too long: may not be more than 1048576 bytes"]),
            ],
        );
    }

    #[test]
    fn a_sealed_config_map_stays_as_it_is() {
        let old = json!({ "data": { "a": "x" }, "immutable": true });
        each_change_has_its_message(
            "core.v1.ConfigMap",
            &old,
            &[
                ("data.a", json!("y"), &["data: Forbidden: field is immutable when `immutable` is set"]),
                ("immutable", json!(false), &["immutable: Forbidden: field is immutable when `immutable` is set"]),
            ],
        );
    }
}
