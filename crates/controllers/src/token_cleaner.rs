//! Tokens by which machines join are deleted when their time is over. The API server does not believe them then; this
//! loop only tidies up.

use kinds::{Key, Object, Secret, Time};
use object::base64;
use runtime::{Controller, Plan};

const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";

pub(crate) fn controller() -> Controller {
    Controller::new("token-cleaner").watches::<Secret>(keys).plans(|caches, request| {
        caches.of::<Secret>().get(&request.key).map(|secret| plan(&secret, request.now)).unwrap_or_default()
    })
}

fn keys(secret: &Object<Secret>, _: &runtime::Caches) -> Vec<Key> {
    if is_token(secret) { vec![secret.key()] } else { vec![] }
}

fn is_token(secret: &Secret) -> bool {
    secret.metadata.namespace == NAMESPACE && secret.kind == TYPE
}

fn plan(secret: &Object<Secret>, now: Time) -> Plan {
    let mut plan = Plan::default();
    let Some(expiration) = secret.data.get("expiration").filter(|_| is_token(secret)) else { return plan };
    let text = base64::decode(expiration).and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    // What cannot be read is over: a token that lives longer than was meant is worse than one that does not.
    match Time::parse(&text).filter(|end| *end > now) {
        Some(end) => plan.requeue_after(end.since(now)),
        None => plan.delete(secret),
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
