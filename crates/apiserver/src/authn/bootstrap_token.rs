//! Bootstrap tokens: secrets in `kube-system` with which a machine may join.

use crate::api::Api;
use authz::User;
use object::{Value, View, base64, time};

const GROUP: &str = "system:bootstrappers";

/// `abcdef.0123456789abcdef`
pub(super) fn is_one(token: &str) -> bool {
    let valid =
        |part: &str, length| part.len() == length && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    token.split_once('.').is_some_and(|(id, secret)| valid(id, 6) && valid(secret, 16))
}

pub(super) fn user(api: &Api, token: &str) -> Result<User, String> {
    let refused = || "invalid bearer token".to_owned();
    let (id, secret) = token.split_once('.').ok_or_else(refused)?;
    let key = format!("secrets/kube-system/bootstrap-token-{id}");
    let object = api.registry.cache.get(key.as_bytes()).ok_or_else(refused)?.decode();
    let field = |name: &str| text(object.at("data"), name);
    let now = i64::try_from(api.ambient.clock.wall().0 / 1000).unwrap_or(i64::MAX);
    let expired = match field("expiration").as_str() {
        "" => false,
        expiration => time::parse(expiration).is_none_or(|(seconds, _)| seconds <= now),
    };
    let same =
        aws_lc_rs::constant_time::verify_slices_are_equal(field("token-secret").as_bytes(), secret.as_bytes()).is_ok();
    let usable = object.text("type") == "bootstrap.kubernetes.io/token"
        && !object.at("metadata").has("deletionTimestamp")
        && field("token-id") == id
        && field("usage-bootstrap-authentication") == "true";
    if !usable || !same || expired {
        return Err(refused());
    }
    let extra = field("auth-extra-groups");
    let groups = extra.split(',').map(str::trim).filter(|group| group.starts_with("system:bootstrappers:"));
    let groups = std::iter::once(GROUP).chain(groups).map(str::to_owned).collect();
    Ok(User { name: format!("system:bootstrap:{id}"), groups, ..User::default() })
}

fn text(data: &Value, name: &str) -> String {
    let bytes = base64::decode(data.text(name)).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn bootstrap_tokens_are_told_by_their_form() {
        assert!(super::is_one("abcdef.0123456789abcdef"));
        for other in ["abcdef.0123456789abcde", "ABCDEF.0123456789abcdef", "abcdef", "a.b.c", ""] {
            assert!(!super::is_one(other), "{other}");
        }
    }
}
