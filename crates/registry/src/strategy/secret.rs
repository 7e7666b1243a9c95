//! Secrets: what each type must carry, and plain text that is folded into the encoded data.

use crate::strategy::config_map::{MAX_BYTES, decoded_len, validate_key, validate_sealed};
use crate::strategy::place::Place;
use crate::strategy::value::set_if_empty;
use crate::strategy::{PLAIN, Strategy};
use object::field::Errors;
use object::{Edit, Value, View, base64, json};

pub const STRATEGY: Strategy = Strategy { default: Some(default), validate: Some(validate), ..PLAIN };

const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";
const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const BASIC_AUTH: &str = "kubernetes.io/basic-auth";
const SSH_AUTH: &str = "kubernetes.io/ssh-auth";

/// The keys that must be there, whatever is in them. Those that hold JSON must hold an object.
const REQUIRED_KEYS: [(&str, &[&str]); 3] = [
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
];

/// What was written as plain text is kept as data only, so that it is there once.
fn default(secret: &mut Value) {
    if let Value::Object(texts) = secret.remove("stringData") {
        let data = secret.object_or_new("data");
        for (key, text) in texts {
            data.set(&key, base64::encode(text.as_str().unwrap_or_default().as_bytes()));
        }
        if data.as_object().is_some_and(|data| data.is_empty()) {
            secret.remove("data");
        }
    }
    set_if_empty(secret, "type", "Opaque");
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let secret = Place::object(new);
    if let Some(old) = old {
        secret.field("type").unchanged(errors, old.at("type"));
        validate_sealed(new, old, &["data"], errors);
    }
    let mut bytes = 0;
    for (key, value) in secret.field("data").entries() {
        validate_key(key, &value, errors);
        bytes += decoded_len(value.text());
    }
    if bytes > MAX_BYTES {
        secret.field("data").too_long(errors, MAX_BYTES);
    }
    validate_type(&secret, errors);
}

fn validate_type(secret: &Place, errors: &mut Errors) {
    let data = secret.field("data");
    match secret.field("type").text() {
        SERVICE_ACCOUNT_TOKEN => {
            secret.descend(&["metadata", "annotations"]).key(SERVICE_ACCOUNT_NAME).require(errors);
        }
        BASIC_AUTH if !data.field("username").is_set() && !data.field("password").is_set() => {
            ["username", "password"].iter().for_each(|key| data.key(key).required(errors, ""));
        }
        SSH_AUTH => drop(data.key("ssh-privatekey").require(errors)),
        kind => {
            let keys = REQUIRED_KEYS.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, keys)| keys);
            keys.iter().for_each(|key| validate_required_key(&data.key(key), key.starts_with('.'), errors));
        }
    }
}

fn validate_required_key(value: &Place, holds_json: bool, errors: &mut Errors) {
    if !value.is_set() {
        value.required(errors, "");
    } else if holds_json {
        let bytes = base64::decode(value.text()).unwrap_or_default();
        let detail = match object::json::parse(&bytes) {
            Ok(Value::Object(_)) => return,
            Ok(other) => not_an_object(&other),
            Err(_) if bytes.is_empty() => "unexpected end of JSON input".to_owned(),
            Err(error) => error.to_string(),
        };
        value.invalid_value(errors, json!("<secret contents redacted>"), detail);
    }
}

fn not_an_object(value: &Value) -> String {
    let found = match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null | Value::Object(_) => "null",
    };
    format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_change_has_its_message, filled, messages};

    #[test]
    fn plain_text_becomes_data_and_wins_over_it() {
        let secret = json!({ "stringData": { "a": "new", "b": "x" }, "data": { "a": "b2xk", "c": "eQ==" } });
        let secret = filled("core.v1.Secret", &secret);
        assert_eq!(secret["data"], json!({ "a": "bmV3", "b": "eA==", "c": "eQ==" }));
        assert_eq!((secret.get("stringData"), secret.text("type")), (None, "Opaque"));
    }

    #[test]
    fn each_type_asks_for_its_keys() {
        let cases: [(&str, Value, &[&str]); 8] = [
            ("Opaque", json!({}), &[]),
            ("example.com/own", json!({}), &[]),
            ("kubernetes.io/tls", json!({ "tls.key": "" }), &["data[tls.crt]: Required value"]),
            (
                "kubernetes.io/basic-auth",
                json!({}),
                &["data[username]: Required value", "data[password]: Required value"],
            ),
            ("kubernetes.io/basic-auth", json!({ "password": "" }), &[]),
            ("kubernetes.io/ssh-auth", json!({ "ssh-privatekey": "" }), &["data[ssh-privatekey]: Required value"]),
            (
                "kubernetes.io/service-account-token",
                json!({}),
                &["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
            ),
            (
                "kubernetes.io/dockerconfigjson",
                json!({ ".dockerconfigjson": "" }),
                &[
                    "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": unexpected end of JSON input",
                ],
            ),
        ];
        for (kind, data, expected) in cases {
            let secret = json!({ "type": kind, "data": data });
            assert_eq!(messages("core.v1.Secret", &secret, None), *expected, "{secret}");
        }
    }

    #[test]
    fn the_type_stays_and_a_sealed_secret_too() {
        let old = json!({ "type": "a", "data": { "a": "eA==" }, "immutable": true });
        each_change_has_its_message(
            "core.v1.Secret",
            &old,
            &[
                ("type", json!("b"), &["type: Invalid value: \"b\": field is immutable"]),
                ("data.a", json!(""), &["data: Forbidden: field is immutable when `immutable` is set"]),
            ],
        );
    }
}
