//! Tokens by which machines join are deleted when their time is over. The API server does not believe them then; this
//! loop only tidies up.

use kinds::{Key, Object, Secret, Time};
use object::base64;
use runtime::{Controller, Plan};

/// Where tokens are.
pub(crate) const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";

pub(crate) fn controller() -> Controller {
    Controller::new("token-cleaner").watches::<Secret>(keys).plans(|caches, request| {
        caches.of::<Secret>().get(&request.key).map(|secret| plan(&secret, request.now)).unwrap_or_default()
    })
}

fn keys(secret: &Object<Secret>, _: &runtime::Caches) -> Vec<Key> {
    if is_token(secret) { vec![secret.key()] } else { vec![] }
}

pub(crate) fn is_token(secret: &Secret) -> bool {
    secret.metadata.namespace == NAMESPACE && secret.kind == TYPE
}

/// A field of a token, if it is there and text.
pub(crate) fn field(token: &Object<Secret>, name: &str) -> Option<String> {
    token.data().get(name).and_then(|data| String::from_utf8(base64::decode(data)?).ok())
}

/// When the time of a token is over. What cannot be read is over: a token that lives longer than was meant is worse
/// than one that does not.
pub(crate) fn end(token: &Object<Secret>) -> Option<Time> {
    token.data().contains_key("expiration").then(|| {
        let text = field(token, "expiration").unwrap_or_default();
        Time::parse(&text).unwrap_or_default()
    })
}

fn plan(secret: &Object<Secret>, now: Time) -> Plan {
    let mut plan = Plan::default();
    match end(secret).filter(|_| is_token(secret)) {
        Some(end) if end > now => plan.requeue_after(end.since(now)),
        Some(_) => plan.delete(secret),
        None => &mut plan,
    };
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::NOW;
    use object::json;
    use std::time::Duration;

    #[test]
    fn a_token_goes_when_its_time_is_over() {
        let token = |kind: &str, expiration: Option<&str>| {
            let data = expiration.map(|text| json!({ "expiration": base64::encode(text.as_bytes()) }));
            let metadata = json!({ "namespace": NAMESPACE, "name": "t" });
            Object::<Secret>::of(&json!({ "metadata": metadata, "type": kind, "data": data.unwrap_or(json!({})) }))
        };
        for (secret, expected) in [
            (token(TYPE, Some("2025-12-31T00:00:00Z")), vec!["delete secrets t"]),
            (token(TYPE, Some("soon")), vec!["delete secrets t"]),
            (token(TYPE, Some("2026-01-01T00:01:00Z")), vec![]),
            (token(TYPE, None), vec![]),
            (token("Opaque", Some("2025-12-31T00:00:00Z")), vec![]),
        ] {
            assert_eq!(plan(&secret, NOW).summary(), expected, "{secret:?}");
        }
        let waiting = plan(&token(TYPE, Some("2026-01-01T00:01:00Z")), NOW);
        assert_eq!(waiting.requeue_after, Some(Duration::from_secs(60)));
    }
}
