//! Tokens of service accounts: signed, for an audience, for a time, and only as long as what they are bound to exists.

use super::jwt::SigningKey;
use super::{Proof, lasting_token};
use crate::api::Api;
use authz::User;
use object::{Value, View, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// For whom tokens are meant that do not say so.
pub(crate) const AUDIENCE: &str = ISSUER;
/// What tells one credential of a user from another.
pub(crate) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// A pod that is deleted keeps its identity until it is really gone, and this long beyond its grace period.
const LEEWAY_SECONDS: i64 = 60;

/// What goes into a token.
#[derive(Debug)]
pub(crate) struct Claims<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) audiences: Vec<String>,
    pub(crate) id: String,
    pub(crate) now: i64,
    pub(crate) seconds: i64,
    /// What else must exist for it to count: `pod`, `secret`, `node`, with name and uid.
    pub(crate) bound: Vec<(&'static str, String, String)>,
}

impl Claims<'_> {
    pub(crate) fn to_value(&self) -> Value {
        let mut own = json!({
            "namespace": self.namespace, "serviceaccount": { "name": self.name, "uid": self.uid },
        });
        for (kind, name, uid) in &self.bound {
            own[*kind] = json!({ "name": name, "uid": uid });
        }
        json!({
            "aud": self.audiences, "exp": self.now + self.seconds, "iat": self.now, "nbf": self.now, "iss": ISSUER,
            "jti": self.id, "kubernetes.io": own,
            "sub": format!("system:serviceaccount:{}:{}", self.namespace, self.name),
        })
    }
}

pub(super) fn authenticate(api: &Api, key: &SigningKey, token: &str, audiences: &[String]) -> Result<Proof, String> {
    let claims = key.verify(token).ok_or("invalid bearer token")?;
    if claims.text("iss") != ISSUER {
        return Err("the token was issued by somebody else".to_owned());
    }
    let now = i64::try_from(api.ambient.clock.wall().0 / 1000).unwrap_or(i64::MAX);
    if claims.int("exp").is_none_or(|expires| expires <= now) {
        return Err("service account token has expired".to_owned());
    }
    if claims.int("nbf").is_some_and(|starts| starts > now + LEEWAY_SECONDS) {
        return Err("service account token is not valid yet".to_owned());
    }
    let meant: Vec<String> = claims
        .items("aud")
        .iter()
        .filter_map(Value::as_str)
        .filter(|a| audiences.iter().any(|b| a == b))
        .map(str::to_owned)
        .collect();
    if meant.is_empty() {
        return Err(format!("token audiences {} is invalid for the target audiences {audiences:?}", claims.at("aud")));
    }
    let own = claims.at("kubernetes.io");
    let namespace = own.text("namespace");
    let account = own.at("serviceaccount");
    exists(api, "serviceaccounts", "ServiceAccount", namespace, account, now)?;
    let mut extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![format!("JTI={}", claims.text("jti"))])]);
    for (kind, table, namespace) in
        [("pod", "pods", namespace), ("secret", "secrets", namespace), ("node", "nodes", "")]
    {
        let bound = own.at(kind);
        if bound.is_null() {
            continue;
        }
        // A node is named for information where a pod is bound.
        if kind != "node" || own.at("pod").is_null() {
            let object = exists(api, table, kind, namespace, bound, now)?;
            if kind == "secret" {
                lasting_token::note_use(api, &object, account.text("name"))?;
            }
        }
        if kind != "secret" {
            for field in ["name", "uid"] {
                extra
                    .insert(format!("authentication.kubernetes.io/{kind}-{field}"), vec![bound.text(field).to_owned()]);
            }
        }
    }
    let user = User {
        name: format!("system:serviceaccount:{namespace}:{}", account.text("name")),
        uid: account.text("uid").to_owned(),
        groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
        extra,
    };
    Ok(Proof { user, audiences: meant })
}

/// What a token is bound to; an error if that is gone, or is another of the same name.
fn exists(api: &Api, table: &str, kind: &str, namespace: &str, bound: &Value, now: i64) -> Result<Arc<Value>, String> {
    let name = bound.text("name");
    let key = match namespace {
        "" => format!("{table}/{name}"),
        namespace => format!("{table}/{namespace}/{name}"),
    };
    let gone = || format!("{kind} {namespace}/{name} has been deleted");
    let object = api.registry.cache.get(key.as_bytes()).ok_or_else(gone)?.shared();
    let metadata = object.at("metadata");
    if metadata.text("uid") != bound.text("uid") {
        return Err(format!("{kind} UID ({}) does not match claim ({})", metadata.text("uid"), bound.text("uid")));
    }
    let deleted = object::time::parse(metadata.text("deletionTimestamp"));
    match deleted {
        Some((ends, _)) if ends + LEEWAY_SECONDS < now => Err(gone()),
        _ => Ok(object),
    }
}
