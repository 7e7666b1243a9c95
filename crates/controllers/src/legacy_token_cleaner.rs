//! Tokens that were once made for every service account, and that nobody has used for a year, are first marked invalid
//! and, a year later, deleted.
//!
//! Only tokens that their account lists are taken for such: those that somebody made by hand stay. When a token was
//! last used is noted on its secret by the API server, which also refuses those marked invalid; who needs such a token
//! after all removes the mark.

use kinds::{ConfigMap, Key, Object, Pod, Secret, ServiceAccount, Time};
use object::{Value, json};
use runtime::{Caches, Controller, DeleteOptions, Plan, Request};
use std::sync::Arc;
use std::time::Duration;

const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
/// Says since when the API server notes what is used.
const TRACKING: (&str, &str) = ("kube-system", "kube-apiserver-legacy-service-account-token-tracking");

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long a token is kept that nobody uses, and then how long one is that is marked.
const PERIOD: Duration = Duration::from_secs(365 * 24 * 3600);

pub(crate) fn controller() -> Controller {
    Controller::new("legacy-service-account-token-cleaner")
        .watches::<Secret>(|secret, _| if secret.kind == TYPE { vec![secret.key()] } else { vec![] })
        .reads::<ConfigMap>()
        .reads::<ServiceAccount>()
        .reads::<Pod>()
        .plans(|caches, request| observe(caches, request).map(|seen| plan(&seen, request.now)).unwrap_or_default())
}

struct Observed {
    secret: Arc<Object<Secret>>,
    /// Since when use has been noted, if that is known.
    tracked: Option<Time>,
    /// Whether the account of the token lists it.
    is_listed: bool,
    /// Whether some pod may depend on it.
    is_mounted: bool,
}

fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let secret = caches.of::<Secret>().get(&request.key).filter(|secret| secret.kind == TYPE)?;
    let Key { namespace, name } = &request.key;
    let tracking = caches.of::<ConfigMap>().named(TRACKING.0, TRACKING.1);
    let account = caches.of::<ServiceAccount>().named(namespace, secret.metadata.annotation(ACCOUNT_NAME));
    let is_old = is_before(secret.metadata.creation_timestamp, request.now);
    Some(Observed {
        tracked: tracking.and_then(|map| date(map.data().get("since")?)),
        is_listed: account.is_some_and(|account| lists(&account, &secret)),
        is_mounted: is_old
            && caches.of::<Pod>().in_namespace(namespace).iter().any(|pod| mentions(&pod.json(), name, false)),
        secret,
    })
}

fn lists(account: &ServiceAccount, secret: &Secret) -> bool {
    let uid = secret.metadata.annotation(ACCOUNT_UID);
    (uid.is_empty() || uid == account.metadata.uid)
        && account.secrets.iter().any(|reference| reference.name == secret.metadata.name)
}

/// Whether a secret of this name is referred to, wherever that is: a field is called `secretName`, or it is the name
/// of something that is called a secret.
fn mentions(value: &Value, name: &str, of_secret: bool) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(field, value)| {
            let is_reference = field == "secretName" || of_secret && field == "name";
            is_reference && value.as_str() == Some(name)
                || mentions(value, name, field.to_lowercase().contains("secret"))
        }),
        Value::Array(items) => items.iter().any(|item| mentions(item, name, of_secret)),
        _ => false,
    }
}

/// The beginning of a day, given as `2026-01-31`.
fn date(text: &str) -> Option<Time> {
    Time::parse(&format!("{text}T00:00:00Z"))
}

/// Whether something happened before the period that ends now.
fn is_before(time: Option<Time>, now: Time) -> bool {
    time.is_some_and(|time| time + PERIOD < now)
}

fn plan(observed: &Observed, now: Time) -> Plan {
    let mut plan = Plan::default();
    let secret = &observed.secret;
    let meta = &secret.metadata;
    if meta.is_being_deleted() || !observed.is_listed {
        return plan;
    }
    // Days count, not hours: what is a day too early is looked at again.
    plan.requeue_after(DAY);
    let was_tracked = observed.tracked.is_some_and(|since| since + DAY + PERIOD <= now);
    let was_used = match meta.labels.get(LAST_USED) {
        // When that was cannot be told, so it may have been today.
        Some(day) => date(day).is_none_or(|day| day + DAY + PERIOD > now),
        None => false,
    };
    if !was_tracked || was_used || observed.is_mounted || !is_before(meta.creation_timestamp, now) {
        return plan;
    }
    match date(meta.label(INVALID_SINCE)) {
        None => {
            let today = now.to_string()[..10].to_owned();
            plan.patch(secret, json!({ "metadata": { "labels": { INVALID_SINCE: today } } }));
        }
        Some(since) if since + DAY + PERIOD <= now => {
            let options = DeleteOptions { unchanged: true, ..DeleteOptions::default() };
            plan.delete_with(secret, options);
        }
        Some(_) => {}
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::NOW;

    const MARK: &[&str] = &["patch secrets t"];
    const DELETE: &[&str] = &["delete secrets t"];

    /// A token made three years ago, listed by its account, in a cluster that has noted use for two.
    fn observed(labels: &Value) -> Observed {
        let metadata =
            json!({ "name": "t", "namespace": "a", "creationTimestamp": "2023-01-01T00:00:00Z", "labels": labels });
        let secret = Arc::new(Object::of(&json!({ "metadata": metadata, "type": TYPE })));
        Observed { secret, tracked: date("2024-01-01"), is_listed: true, is_mounted: false }
    }

    #[test]
    fn a_token_that_nobody_uses_is_marked_and_a_year_later_deleted() {
        for (labels, expected) in [
            (json!({}), MARK),
            (json!({ LAST_USED: "2024-12-30" }), MARK),
            (json!({ LAST_USED: "2025-01-01" }), &[]),
            (json!({ LAST_USED: "yesterday" }), &[]),
            (json!({ INVALID_SINCE: "2025-06-01" }), &[]),
            (json!({ INVALID_SINCE: "2024-12-30" }), DELETE),
            (json!({ INVALID_SINCE: "long ago" }), MARK),
            (json!({ INVALID_SINCE: "2024-06-01", LAST_USED: "2025-12-31" }), &[]),
        ] {
            assert_eq!(plan(&observed(&labels), NOW).summary(), expected, "{labels}");
        }
    }

    #[test]
    fn a_token_that_may_be_needed_stays() {
        let stays = |change: fn(&mut Observed)| {
            let mut observed = observed(&json!({ INVALID_SINCE: "2024-01-01" }));
            change(&mut observed);
            plan(&observed, NOW).writes.is_empty()
        };
        assert!(!stays(|_| ()));
        assert!(stays(|observed| observed.is_listed = false), "made by hand");
        assert!(stays(|observed| observed.is_mounted = true));
        assert!(stays(|observed| observed.tracked = None));
        assert!(stays(|observed| observed.tracked = date("2025-01-01")), "not observed for long enough");
    }

    #[test]
    fn pods_mention_secrets_in_many_ways() {
        for spec in [
            json!({ "volumes": [{ "secret": { "secretName": "t" } }] }),
            json!({ "volumes": [{ "projected": { "sources": [{ "secret": { "name": "t" } }] } }] }),
            json!({ "volumes": [{ "csi": { "nodePublishSecretRef": { "name": "t" } } }] }),
            json!({ "imagePullSecrets": [{ "name": "t" }] }),
            json!({ "containers": [{ "envFrom": [{ "secretRef": { "name": "t" } }] }] }),
            json!({ "initContainers": [{ "env": [{ "valueFrom": { "secretKeyRef": { "name": "t" } } }] }] }),
        ] {
            assert!(mentions(&spec, "t", false), "{spec}");
            assert!(!mentions(&spec, "other", false), "{spec}");
        }
        let namesake = json!({ "containers": [{ "name": "t", "envFrom": [{ "configMapRef": { "name": "t" } }] }] });
        assert!(!mentions(&namesake, "t", false));
    }
}
