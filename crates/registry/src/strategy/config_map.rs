//! ConfigMaps, and what they share with Secrets: keys that become file names, a limit, and being sealed.

use crate::strategy::place::{Place, same};
use crate::strategy::{PLAIN, Strategy};
use object::field::{Error, Errors, Path};
use object::{Value, View, base64, name};

pub const STRATEGY: Strategy = Strategy { validate: Some(validate), ..PLAIN };

/// How much one object may carry.
pub const MAX_BYTES: usize = 1024 * 1024;
const SEALED: &str = "field is immutable when `immutable` is set";

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    if let Some(old) = old {
        validate_sealed(new, old, &["data", "binaryData"], errors);
    }
    let map = Place::root(new);
    let mut bytes = 0;
    for (key, value) in map.map("data") {
        validate_key(key, &value.path, errors);
        if new.at("binaryData").has(key) {
            errors.push(Error::invalid(&value.path, key, "duplicate of key present in binaryData"));
        }
        bytes += value.string().len();
    }
    for (key, value) in map.map("binaryData") {
        validate_key(key, &value.path, errors);
        bytes += decoded_len(value.string());
    }
    if bytes > MAX_BYTES {
        // The path that stands for the whole object.
        errors.push(Error::too_long(&Path::default().key(""), MAX_BYTES));
    }
}

pub fn validate_key(key: &str, path: &Path, errors: &mut Errors) {
    errors.extend(name::config_map_key(key).into_iter().map(|message| Error::invalid(path, key, message)));
}

/// Once an object is marked immutable, neither the mark nor the data may change.
pub fn validate_sealed(new: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    if !old.flag("immutable") {
        return;
    }
    let unsealed = Some("immutable").filter(|_| !new.flag("immutable"));
    let changed = fields.iter().copied().filter(|field| !same(new.at(field), old.at(field)));
    errors.extend(unsealed.into_iter().chain(changed).map(|field| Error::forbidden(&Path::new(field), SEALED)));
}

/// The size of what the text encodes.
pub fn decoded_len(text: &str) -> usize {
    base64::decode(text).map_or(0, |bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn keys_become_file_names_and_the_whole_has_a_limit() {
        let good = json!({ "data": { "a.conf": "x" }, "binaryData": { "b": "eA==" } });
        each_mistake_has_its_message(
            &STRATEGY,
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
            &STRATEGY,
            "core.v1.ConfigMap",
            &old,
            &[
                ("data.a", json!("y"), &["data: Forbidden: field is immutable when `immutable` is set"]),
                ("immutable", json!(false), &["immutable: Forbidden: field is immutable when `immutable` is set"]),
            ],
        );
    }
}
