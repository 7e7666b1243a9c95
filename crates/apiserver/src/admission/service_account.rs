//! ServiceAccount: every pod runs as an account of its namespace, with a token of it where it does not object.
//!
//! Pods that mirror what a node runs by itself have no account, and nothing that an account would give them.

use super::mirror_pod::is_mirror;
use super::{Operation, Review, mirror_pod};
use crate::context::Context;
use crate::naming;
use object::{ApiError, Edit, Value, View, json};
use registry::Object;
use std::sync::{Arc, LazyLock};

const DEFAULT: &str = "default";
const ENFORCE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An hour and a few seconds: a token of this age is known to be one that clients were given by default.
const TOKEN_SECONDS: i64 = 3607;
const DEFAULT_MODE: i64 = 0o644;
/// The lists of containers, and what messages call one of them.
const CONTAINERS: [(&str, &str); 3] =
    [("initContainers", "init container"), ("containers", "container"), ("ephemeralContainers", "ephemeral container")];

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if !review.is("pods", Operation::Create) || is_mirror(review.object) {
        return Ok(());
    }
    let spec = review.object.object_or_new("spec");
    // The older name of the field is still understood, and kept in step.
    let given = [spec.text("serviceAccountName"), spec.text("serviceAccount"), DEFAULT];
    let name = given.into_iter().find(|name| !name.is_empty()).unwrap_or(DEFAULT).to_owned();
    spec.set("serviceAccountName", name.as_str());
    spec.set("serviceAccount", name.as_str());
    let account = find(review, &name)?.shared();
    if automounts(&account, review.object) {
        mount_token(review.object, || naming::generate(VOLUME_PREFIX, &review.ctx.api.ambient.random));
    }
    let (spec, secrets) = (review.object.object_or_new("spec"), account.items("imagePullSecrets"));
    if spec.items("imagePullSecrets").is_empty() && !secrets.is_empty() {
        let names = secrets.iter().map(|secret| json!({ "name": secret.text("name") }));
        spec.set("imagePullSecrets", names.collect::<Vec<_>>());
    }
    Ok(())
}

/// Whether a new pod has only to wait a moment: it runs as the account that a loop makes in every namespace, and its
/// namespace is so new that this has not happened yet.
pub(crate) fn awaits_account(ctx: &Context, pod: &Value) -> bool {
    if ctx.hub.table != "pods" || !ctx.target.subresource.is_empty() || is_mirror(pod) {
        return false;
    }
    let (spec, cache) = (pod.at("spec"), &ctx.api.registry.cache);
    let names = [spec.text("serviceAccountName"), spec.text("serviceAccount"), DEFAULT];
    let name = names.into_iter().find(|name| !name.is_empty());
    let namespace = match pod.at("metadata").text("namespace") {
        "" => &ctx.target.namespace,
        namespace => namespace,
    };
    let lives = |namespace: Arc<Object>| !namespace.shared().at("metadata").has("deletionTimestamp");
    name == Some(DEFAULT)
        && cache.get(format!("serviceaccounts/{namespace}/{DEFAULT}").as_bytes()).is_none()
        && cache.get(format!("namespaces/{namespace}").as_bytes()).is_some_and(lives)
}

pub(super) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    let debugging = review.subresource() == "ephemeralcontainers" && review.operation == Operation::Update;
    if !(review.is("pods", Operation::Create) || review.table() == "pods" && debugging) {
        return Ok(());
    }
    if is_mirror(review.object) && !debugging {
        return mirror_pod::mistake(review.object).map_or(Ok(()), |cause| Err(review.forbid(cause)));
    }
    let name = review.object.at("spec").text("serviceAccountName");
    if name.is_empty() {
        let (namespace, pod) = (review.namespace(), review.name());
        return Err(review.forbid(&format!("no service account specified for pod {namespace}/{pod}")));
    }
    let account = find(review, name)?.shared();
    let enforced = account.at("metadata").at("annotations").text(ENFORCE_SECRETS);
    if !matches!(enforced, "1" | "t" | "T" | "true" | "TRUE" | "True") {
        return Ok(());
    }
    foreign_secret(&account, review.object, debugging).map_or(Ok(()), |cause| Err(review.forbid(&cause)))
}

fn find(review: &Review<'_>, name: &str) -> Result<Arc<Object>, ApiError> {
    let namespace = review.namespace();
    match review.find(&format!("serviceaccounts/{namespace}/{name}")) {
        Some(account) => Ok(account),
        None => Err(review.forbid(&format!(
            "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
        ))),
    }
}

fn automounts(account: &Value, pod: &Value) -> bool {
    let wish = |of: &Value| of.at("automountServiceAccountToken").as_bool();
    wish(pod.at("spec")).or_else(|| wish(account)).unwrap_or(true)
}

/// Mounts the token into every container that has nothing at its place.
fn mount_token(pod: &mut Value, new_name: impl FnOnce() -> String) {
    let spec = pod.object_or_new("spec");
    let mut names = spec.items("volumes").iter().map(|volume| volume.text("name"));
    let existing = names.find(|name| name.starts_with(VOLUME_PREFIX)).map(str::to_owned);
    let has_volume = existing.is_some();
    let name = existing.unwrap_or_else(new_name);
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in spec.each(list) {
            if !container.items("volumeMounts").iter().any(|mount| mount.text("mountPath") == MOUNT_PATH) {
                container.push("volumeMounts", json!({ "name": name, "readOnly": true, "mountPath": MOUNT_PATH }));
                mounted = true;
            }
        }
    }
    if mounted && !has_volume {
        spec.push("volumes", token_volume(&name));
    }
}

/// Every volume of a token but for its name; a copy costs a fraction of making it anew.
static TOKEN_VOLUME: LazyLock<Value> = LazyLock::new(|| {
    let namespace = json!({ "apiVersion": "v1", "fieldPath": "metadata.namespace" });
    json!({ "projected": { "defaultMode": DEFAULT_MODE, "sources": [
        { "serviceAccountToken": { "expirationSeconds": TOKEN_SECONDS, "path": "token" } },
        { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
        { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": namespace }] } },
    ] } })
});

fn token_volume(name: &str) -> Value {
    let mut volume = TOKEN_VOLUME.clone();
    volume.set("name", name);
    volume
}

/// A secret that a pod refers to and its account does not, in the words of the refusal.
fn foreign_secret(account: &Value, pod: &Value, debugging: bool) -> Option<String> {
    let spec = pod.at("spec");
    let name = account.at("metadata").text("name");
    let lacks = |list: &str, secret: &str| !account.items(list).iter().any(|own| own.text("name") == secret);
    let not_allowed = |who: String, secret: &str| {
        format!(
            "{who} secret.secretName=\"{secret}\" is not allowed because service account {name} does not reference that secret"
        )
    };
    if !debugging {
        let volumes = spec.items("volumes").iter().filter(|volume| volume.has("secret"));
        let mut secrets = volumes.map(|volume| volume.at("secret").text("secretName"));
        if let Some(secret) = secrets.find(|secret| lacks("secrets", secret)) {
            return Some(not_allowed("volume with".to_owned(), secret));
        }
    }
    let lists = CONTAINERS.iter().filter(|(list, _)| (*list == "ephemeralContainers") == debugging);
    for (container, kind) in lists.flat_map(|(list, kind)| spec.items(list).iter().map(move |one| (one, kind))) {
        let who = format!("{kind} {}", container.text("name"));
        for variable in container.items("env").iter().filter(|variable| variable.at("valueFrom").has("secretKeyRef")) {
            let secret = variable.at("valueFrom").at("secretKeyRef").text("name");
            if lacks("secrets", secret) {
                return Some(not_allowed(format!("{who} with envVar {} referencing", variable.text("name")), secret));
            }
        }
        let sources = container.items("envFrom").iter().filter(|source| source.has("secretRef"));
        let mut secrets = sources.map(|source| source.at("secretRef").text("name"));
        if let Some(secret) = secrets.find(|secret| lacks("secrets", secret)) {
            return Some(not_allowed(format!("{who} with envFrom referencing"), secret));
        }
    }
    let pulls = spec.items("imagePullSecrets").iter().map(|secret| secret.text("name")).enumerate();
    let mut foreign = pulls.filter(|(_, secret)| !debugging && lacks("imagePullSecrets", secret));
    foreign.next().map(|(at, secret)| {
        format!("imagePullSecrets[{at}].name=\"{secret}\" is not allowed because service account {name} does not reference that imagePullSecret")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_mounted_where_nothing_else_is() {
        let occupied = json!({ "name": "b", "volumeMounts": [{ "name": "own", "mountPath": MOUNT_PATH }] });
        let mut pod = json!({ "spec": { "initContainers": [{ "name": "a" }], "containers": [occupied] } });
        mount_token(&mut pod, || "kube-api-access-xyz".to_owned());
        let mount = json!([{ "name": "kube-api-access-xyz", "readOnly": true, "mountPath": MOUNT_PATH }]);
        assert_eq!(pod["spec"]["initContainers"][0]["volumeMounts"], mount);
        assert_eq!(pod["spec"]["containers"][0], occupied);
        assert_eq!(pod["spec"]["volumes"][0]["name"], "kube-api-access-xyz");
        let before = pod.clone();
        mount_token(&mut pod, || panic!("the volume is there already"));
        assert_eq!(pod, before, "a second time changes nothing");
    }

    #[test]
    fn a_pod_without_a_free_place_gets_no_volume() {
        let occupied = json!({ "name": "b", "volumeMounts": [{ "name": "own", "mountPath": MOUNT_PATH }] });
        let mut pod = json!({ "spec": { "containers": [occupied] } });
        mount_token(&mut pod, || "kube-api-access-xyz".to_owned());
        assert!(!pod["spec"].has("volumes"));
    }

    #[test]
    fn the_wish_of_the_pod_counts_before_that_of_the_account() {
        for (account, pod, mounted) in [
            (json!(null), json!(null), true),
            (json!(false), json!(null), false),
            (json!(false), json!(true), true),
            (json!(true), json!(false), false),
        ] {
            let account = json!({ "automountServiceAccountToken": account });
            let pod = json!({ "spec": { "automountServiceAccountToken": pod } });
            assert_eq!(automounts(&account, &pod), mounted, "{account} {pod}");
        }
    }

    #[test]
    fn secrets_that_the_account_does_not_list_are_refused_where_it_says_so() {
        let account = json!({ "metadata": { "name": "sa" }, "secrets": [{ "name": "mine" }] });
        let reference = |secret: &str| json!({ "name": "E", "valueFrom": { "secretKeyRef": { "name": secret } } });
        for (spec, cause) in [
            (json!({ "containers": [{ "name": "c", "env": [reference("mine")] }] }), None),
            (
                json!({ "containers": [{ "name": "c", "env": [reference("other")] }] }),
                Some(
                    "container c with envVar E referencing secret.secretName=\"other\" is not allowed because service account sa does not reference that secret",
                ),
            ),
            (
                json!({ "volumes": [{ "secret": { "secretName": "other" } }] }),
                Some(
                    "volume with secret.secretName=\"other\" is not allowed because service account sa does not reference that secret",
                ),
            ),
            (
                json!({ "imagePullSecrets": [{ "name": "other" }] }),
                Some(
                    "imagePullSecrets[0].name=\"other\" is not allowed because service account sa does not reference that imagePullSecret",
                ),
            ),
        ] {
            assert_eq!(foreign_secret(&account, &json!({ "spec": spec }), false).as_deref(), cause, "{spec}");
        }
    }
}
