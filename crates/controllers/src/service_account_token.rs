//! Secrets of type `kubernetes.io/service-account-token` hold a token of the account that they name, for whoever needs
//! one that does not run out; and they go with their account.
//!
//! The API server makes the tokens, bound to their secret: when that is deleted, the token is worthless.

use crate::Settings;
use kinds::{Key, Kind, Object, Secret, ServiceAccount};
use object::{ApiError, Edit, Value, View, base64, json};
use runtime::{Caches, Client, Context, Controller, Plan, Request, Target};
use std::sync::Arc;

const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";
/// As long as anybody may ask for: more than a century.
const LIFETIME_SECONDS: i64 = 1 << 32;

pub(crate) fn controller(settings: &Settings) -> Controller {
    let authority = settings.authority.clone();
    Controller::new("tokens-controller")
        .account("kube-controller-manager")
        .watches::<Secret>(|secret, _| if secret.kind == TYPE { vec![secret.key()] } else { vec![] })
        .watches::<ServiceAccount>(secrets_of)
        .plans_with(move |context, request| reconcile(authority.clone(), context, request))
}

fn secrets_of(account: &Object<ServiceAccount>, caches: &Caches) -> Vec<Key> {
    let secrets = caches.of::<Secret>().in_namespace(&account.metadata.namespace);
    let mine = secrets
        .iter()
        .filter(|secret| secret.kind == TYPE && secret.metadata.annotation(NAME) == account.metadata.name);
    mine.map(|secret| secret.key()).collect()
}

async fn reconcile(authority: Arc<str>, context: Context, request: Request) -> Result<Plan, ApiError> {
    let secret = context.caches.of::<Secret>().get(&request.key);
    let Some(secret) = secret.filter(|secret| secret.kind == TYPE && !secret.metadata.is_being_deleted()) else {
        return Ok(Plan::default());
    };
    let key = Key::new(request.key.namespace.as_str(), secret.metadata.annotation(NAME));
    let mut account = context.caches.of::<ServiceAccount>().get(&key);
    if account.is_none() {
        // A secret is not deleted because a cache is behind.
        account = context.client.get::<ServiceAccount>(&key).await?.map(Arc::new);
    }
    let missing = wants(&secret, account.as_deref(), &authority);
    let token = match (&missing, &account) {
        (Wants::Content { token: true }, Some(account)) => Some(issue(&context.client, account, &secret).await?),
        _ => None,
    };
    Ok(plan(&secret, account.as_deref(), &missing, token.as_deref(), &authority))
}

/// What has to be done about a secret.
#[derive(Debug, PartialEq)]
enum Wants {
    Nothing,
    /// Its account is gone, or another one has the name.
    Deletion,
    /// Something is missing or wrong; the token too, or only the rest.
    Content {
        token: bool,
    },
}

fn wants(secret: &Object<Secret>, account: Option<&Object<ServiceAccount>>, authority: &str) -> Wants {
    let uid = secret.metadata.annotation(UID);
    let Some(account) = account.filter(|account| uid.is_empty() || uid == account.metadata.uid) else {
        return Wants::Deletion;
    };
    if account.metadata.is_being_deleted() {
        return Wants::Nothing;
    }
    let data = secret.data();
    let holds = |field: &str, value: &str| data.get(field).is_some_and(|data| *data == encoded(value));
    let has_token = data.get("token").is_some_and(|token| !token.is_empty());
    let is_complete = !uid.is_empty()
        && has_token
        && data.get("namespace").is_some_and(|namespace| !namespace.is_empty())
        && (authority.is_empty() || holds("ca.crt", authority));
    if is_complete { Wants::Nothing } else { Wants::Content { token: !has_token } }
}

async fn issue(client: &Client, account: &Object<ServiceAccount>, secret: &Secret) -> Result<String, ApiError> {
    let bound =
        json!({ "apiVersion": "v1", "kind": "Secret", "name": secret.metadata.name, "uid": secret.metadata.uid });
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": { "audiences": [], "expirationSeconds": LIFETIME_SECONDS, "boundObjectRef": bound },
    });
    let answer = client.post(&Target::new(ServiceAccount::ID, &account.metadata), "token", &request).await?;
    let answer = object::json::parse(&answer.json).map_err(ApiError::internal)?;
    Ok(answer.at("status").text("token").to_owned())
}

fn plan(
    secret: &Object<Secret>,
    account: Option<&Object<ServiceAccount>>,
    wants: &Wants,
    token: Option<&str>,
    authority: &str,
) -> Plan {
    let mut plan = Plan::default();
    match (wants, account) {
        (Wants::Deletion, _) => {
            plan.delete(secret);
        }
        (Wants::Content { .. }, Some(account)) => {
            plan.update(secret, filled(secret, account, token, authority));
        }
        _ => {}
    }
    plan
}

fn filled(secret: &Object<Secret>, account: &ServiceAccount, token: Option<&str>, authority: &str) -> Value {
    let mut object = secret.json();
    let annotations = object.object_or_new("metadata").object_or_new("annotations");
    annotations.set(UID, account.metadata.uid.as_str());
    let data = object.object_or_new("data");
    data.set("namespace", encoded(&secret.metadata.namespace));
    if !authority.is_empty() {
        data.set("ca.crt", encoded(authority));
    }
    if let Some(token) = token {
        data.set("token", encoded(token));
    }
    object
}

fn encoded(text: &str) -> String {
    base64::encode(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(uid: &str, data: &Value) -> Object<Secret> {
        let annotations = if uid.is_empty() { json!({ NAME: "robot" }) } else { json!({ NAME: "robot", UID: uid }) };
        let metadata = json!({ "namespace": "a", "name": "s", "uid": "s", "annotations": annotations });
        Object::of(&json!({ "metadata": metadata, "type": TYPE, "data": data }))
    }

    fn account(uid: &str) -> Object<ServiceAccount> {
        Object::of(&json!({ "metadata": { "namespace": "a", "name": "robot", "uid": uid } }))
    }

    #[test]
    fn a_secret_wants_what_is_missing_and_goes_with_its_account() {
        let complete = json!({ "token": encoded("t"), "namespace": encoded("a"), "ca.crt": encoded("PEM") });
        let old = json!({ "token": encoded("t"), "namespace": encoded("a"), "ca.crt": encoded("OLD") });
        for (secret, account, expected) in [
            (secret("", &json!({})), Some(account("u")), Wants::Content { token: true }),
            (secret("u", &complete), Some(account("u")), Wants::Nothing),
            (secret("u", &old), Some(account("u")), Wants::Content { token: false }),
            (secret("u", &complete), Some(account("other")), Wants::Deletion),
            (secret("u", &complete), None, Wants::Deletion),
        ] {
            assert_eq!(wants(&secret, account.as_ref(), "PEM"), expected, "{secret:?}");
        }
    }

    #[test]
    fn what_was_missing_is_there_afterwards() {
        let (before, account) = (secret("", &json!({ "own": encoded("x") })), account("u"));
        let after = Object::<Secret>::of(&filled(&before, &account, Some("t"), "PEM"));
        assert_eq!(wants(&after, Some(&account), "PEM"), Wants::Nothing);
        assert_eq!(after.data().get("own"), Some(&encoded("x")));
        let plan = plan(&before, Some(&account), &Wants::Content { token: true }, Some("t"), "PEM");
        assert_eq!(plan.summary(), ["update secrets s"]);
    }
}
