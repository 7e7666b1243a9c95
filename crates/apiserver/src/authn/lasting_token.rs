//! Tokens that are kept in secrets and never run out: the day they were last used is noted on their secret, so that
//! those nobody uses can be told from the others. What is done about them is left to the loop that cleans up.

use crate::api::Api;
use crate::identity::{AUTHENTICATED, user};
use crate::local::Local;
use authz::MASTERS;
use object::{Value, View, json};

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// Notes that the token in a secret is used; an error if it is marked invalid. Nobody waits for the note.
pub(super) fn note_use(api: &Api, secret: &Value, account: &str) -> Result<(), String> {
    let metadata = secret.at("metadata");
    let (namespace, name) = (metadata.text("namespace"), metadata.text("name"));
    let labels = metadata.at("labels");
    let today = api.today();
    let uid = metadata.text("uid").to_owned();
    // Another server's clock may be ahead; its note is as good.
    if labels.text(LAST_USED) < today.as_str() && api.authentication.noting.lock().insert(uid.clone()) {
        let api = api.clone();
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        let patch = json!({ "metadata": { "uid": uid, "labels": { LAST_USED: today } } });
        api.ambient.tasks.clone().spawn_until_stopped("use of a token", async move {
            let asker = user("system:apiserver", &[MASTERS, AUTHENTICATED]);
            if let Err(error) = Local::new(api.clone(), asker, "kube-apiserver").patch(&path, &patch).await {
                tracing::info!(%error, path, "the use of a token is not noted");
            }
            api.authentication.noting.lock().remove(&uid);
        });
    }
    if labels.text(INVALID_SINCE).is_empty() {
        return Ok(());
    }
    Err(format!(
        "the token in secret {namespace}/{name} for service account {namespace}/{account} has been marked invalid. Use \
         tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' \
         label from the secret to temporarily allow use of this token"
    ))
}
