//! The configuration by which machines find the cluster is signed with every token that machines may join with, so that
//! one who knows only such a token can tell whether what it reads, from whomever, is the truth.
//!
//! The ConfigMap `cluster-info` in `kube-public` is made by whoever sets the cluster up; here it only gets its
//! signatures, one `jws-kubeconfig-<id>` for each token, and loses those of tokens that are gone or over.

use crate::token_cleaner::{NAMESPACE as TOKENS, end, field, is_token};
use aws_lc_rs::hmac;
use kinds::{ConfigMap, Key, Object, Secret, Time};
use object::{Edit, base64, json};
use runtime::{Caches, Controller, Plan, Request};
use std::collections::BTreeMap;
use std::sync::Arc;

const NAMESPACE: &str = "kube-public";
const NAME: &str = "cluster-info";
/// The configuration that is signed.
const CONFIGURATION: &str = "kubeconfig";
const SIGNATURE: &str = "jws-kubeconfig-";
const TOKEN_NAME: &str = "bootstrap-token-";

pub(crate) fn controller() -> Controller {
    Controller::new("bootstrap-signer")
        .watches::<ConfigMap>(|map, _| if is_wanted(map) { vec![map.key()] } else { vec![] })
        .watches::<Secret>(|secret, _| if is_token(secret) { vec![Key::new(NAMESPACE, NAME)] } else { vec![] })
        .plans(|caches, request| observe(caches, request).map(|seen| plan(&seen, request.now)).unwrap_or_default())
}

fn is_wanted(map: &ConfigMap) -> bool {
    map.metadata.namespace == NAMESPACE && map.metadata.name == NAME
}

struct Observed {
    map: Arc<Object<ConfigMap>>,
    tokens: Vec<Arc<Object<Secret>>>,
}

fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let map = caches.of::<ConfigMap>().get(&request.key)?;
    let mut tokens = caches.of::<Secret>().in_namespace(TOKENS);
    tokens.retain(|secret| is_token(secret));
    Some(Observed { map, tokens })
}

fn plan(observed: &Observed, now: Time) -> Plan {
    let mut plan = Plan::default();
    let said = observed.map.data();
    let Some(configuration) = said.get(CONFIGURATION) else { return plan };
    let valid: Vec<_> = observed.tokens.iter().filter(|token| end(token).is_none_or(|end| end > now)).collect();
    let mut data: BTreeMap<_, _> = said.iter().filter(|(field, _)| !field.starts_with(SIGNATURE)).map(owned).collect();
    for (id, secret) in valid.iter().filter_map(|token| credentials(token)) {
        data.insert(format!("{SIGNATURE}{id}"), sign(configuration, &id, &secret));
    }
    let mut object = observed.map.json();
    object.set("data", json!(data));
    plan.update(&observed.map, object);
    if let Some(first) = valid.iter().filter_map(|token| end(token)).min() {
        plan.requeue_after(first.since(now));
    }
    plan
}

fn owned((field, text): (&String, &String)) -> (String, String) {
    (field.clone(), text.clone())
}

/// The two halves of a token that may sign.
fn credentials(token: &Object<Secret>) -> Option<(String, String)> {
    let (id, secret) = (field(token, "token-id")?, field(token, "token-secret")?);
    let is_named_so = token.metadata.name.strip_prefix(TOKEN_NAME) == Some(id.as_str());
    let may_sign = field(token, "usage-bootstrap-signing").as_deref() == Some("true");
    (is_named_so && may_sign && !id.is_empty() && !secret.is_empty()).then_some((id, secret))
}

/// A signed token (HS256) without what it is about, which stands beside it (RFC 7515, appendix F).
fn sign(content: &str, id: &str, secret: &str) -> String {
    let header = base64::encode_url(json!({ "alg": "HS256", "kid": id }).to_string().as_bytes());
    let message = format!("{header}.{}", base64::encode_url(content.as_bytes()));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signature = base64::encode_url(hmac::sign(&key, message.as_bytes()).as_ref());
    format!("{header}..{signature}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::NOW;
    use object::{Value, View};
    use std::time::Duration;

    fn token(id: &str, fields: &[(&str, &str)]) -> Arc<Object<Secret>> {
        let mut data = json!({});
        let usual = [("token-id", id), ("token-secret", "0123456789abcdef"), ("usage-bootstrap-signing", "true")];
        for (field, text) in usual.iter().chain(fields) {
            data.set(field, base64::encode(text.as_bytes()));
        }
        let metadata = json!({ "namespace": TOKENS, "name": format!("{TOKEN_NAME}{id}") });
        Arc::new(Object::of(&json!({ "metadata": metadata, "type": "bootstrap.kubernetes.io/token", "data": data })))
    }

    fn planned(data: &Value, tokens: Vec<Arc<Object<Secret>>>) -> Plan {
        let metadata = json!({ "namespace": NAMESPACE, "name": NAME, "uid": "u", "resourceVersion": "1" });
        let map = Arc::new(Object::of(&json!({ "metadata": metadata, "data": data })));
        plan(&Observed { map, tokens }, NOW)
    }

    fn signatures(plan: &Plan) -> Option<Vec<String>> {
        let runtime::Write::Update { object, .. } = plan.writes.first()? else { panic!("{plan:?}") };
        Some(
            object
                .at("data")
                .as_object()
                .unwrap()
                .keys()
                .filter(|key| *key != CONFIGURATION)
                .map(ToString::to_string)
                .collect(),
        )
    }

    #[test]
    fn every_token_that_may_sign_does_and_no_other() {
        let configuration = json!({ "kubeconfig": "truth" });
        for (tokens, expected) in [
            (
                vec![token("aaaaaa", &[]), token("bbbbbb", &[])],
                Some(vec!["jws-kubeconfig-aaaaaa", "jws-kubeconfig-bbbbbb"]),
            ),
            (vec![token("aaaaaa", &[("usage-bootstrap-signing", "false")])], None),
            (vec![token("aaaaaa", &[("token-id", "cccccc")])], None),
            (vec![token("aaaaaa", &[("token-secret", "")])], None),
            (vec![token("aaaaaa", &[("expiration", "2025-12-31T00:00:00Z")])], None),
            (vec![], None),
        ] {
            let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect());
            assert_eq!(signatures(&planned(&configuration, tokens.clone())), expected, "{tokens:?}");
        }
        let without = planned(&json!({ "other": "" }), vec![token("aaaaaa", &[])]);
        assert!(without.is_empty(), "there is nothing to sign");
    }

    #[test]
    fn a_signature_that_is_right_stays_and_others_go() {
        let right = sign("truth", "aaaaaa", "0123456789abcdef");
        let signed = json!({ "kubeconfig": "truth", "jws-kubeconfig-aaaaaa": right });
        assert!(planned(&signed, vec![token("aaaaaa", &[])]).is_empty());
        assert_eq!(signatures(&planned(&signed, vec![])), Some(vec![]));
        let changed = json!({ "kubeconfig": "news", "jws-kubeconfig-aaaaaa": right });
        assert_eq!(planned(&changed, vec![token("aaaaaa", &[])]).writes.len(), 1);
        let soon = planned(&signed, vec![token("aaaaaa", &[("expiration", "2026-01-01T00:01:00Z")])]);
        assert_eq!(soon.requeue_after, Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_signature_is_what_joining_machines_compute() {
        let signature = sign("test-content", "abc123", "my secret token");
        let [header, content, mac] = signature.split('.').collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(base64::decode_url(header).unwrap(), br#"{"alg":"HS256","kid":"abc123"}"#);
        assert_eq!((content, base64::decode_url(mac).unwrap().len()), ("", 32));
    }
}
