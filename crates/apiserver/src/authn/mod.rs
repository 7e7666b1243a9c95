//! Authentication: who sends a request. Client certificates and bearer tokens; anybody else is anonymous.

mod bootstrap_token;
mod jwt;
mod lasting_token;
mod service_account;
mod static_tokens;

pub use jwt::SigningKey;
pub(crate) use service_account::{AUDIENCE, Claims, ISSUER};
pub use static_tokens::StaticTokens;

use crate::api::Api;
use crate::identity::{self, AUTHENTICATED};
use crate::pipeline::Peer;
use authz::User;
use http::{HeaderMap, header};
use object::{ApiError, Reason, Value, View, json};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How clients are known, besides by their certificates.
#[derive(Debug)]
pub struct Authentication {
    pub(crate) key: SigningKey,
    known: StaticTokens,
    anonymous: Arc<User>,
    /// The UIDs of secrets whose use is being noted: for each, one note at a time is enough.
    noting: Mutex<BTreeSet<String>>,
}

/// What a token proves: who it is, and for whom it was meant where it says so.
struct Proof {
    user: User,
    audiences: Vec<String>,
}

impl Authentication {
    /// `key` signs the tokens of service accounts.
    pub fn new(key: SigningKey, known: StaticTokens) -> Self {
        Authentication { key, known, anonymous: Arc::new(identity::anonymous()), noting: Mutex::default() }
    }

    /// A certificate counts before a token. A token that proves nothing is an error: its owner wants to know.
    pub(crate) fn authenticate(&self, api: &Api, peer: &Peer, headers: &HeaderMap) -> Result<Arc<User>, ApiError> {
        if let Some(user) = &peer.user {
            return Ok(user.clone());
        }
        let Some(authorization) = headers.get(header::AUTHORIZATION) else { return Ok(self.anonymous.clone()) };
        let unauthorized = || ApiError::new(Reason::Unauthorized, "Unauthorized");
        let text = authorization.to_str().map_err(|_| unauthorized())?;
        let (scheme, token) = text.trim().split_once(' ').ok_or_else(unauthorized)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(unauthorized());
        }
        match self.token(api, token.trim(), &[AUDIENCE.to_owned()]) {
            Ok(proof) => Ok(Arc::new(proof.user)),
            Err(why) => {
                tracing::debug!(why, "a token was refused");
                Err(unauthorized())
            }
        }
    }

    /// Who a token belongs to, or why it belongs to nobody.
    fn token(&self, api: &Api, token: &str, audiences: &[String]) -> Result<Proof, String> {
        let proof = match self.known.user(token) {
            Some(user) => Proof { user: user.clone(), audiences: audiences.to_vec() },
            None if bootstrap_token::is_one(token) => {
                Proof { user: bootstrap_token::user(api, token)?, audiences: audiences.to_vec() }
            }
            None => service_account::authenticate(api, &self.key, token, audiences)?,
        };
        Ok(Proof { user: authenticated(proof.user), ..proof })
    }
}

/// Everybody who has proved something is in a group of its own.
fn authenticated(mut user: User) -> User {
    if !user.is_in(AUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

/// Answers a token review; `spec` is the question.
pub(crate) fn review(api: &Api, spec: &Value) -> Value {
    let asked: Vec<String> = spec.items("audiences").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let audiences = if asked.is_empty() { vec![AUDIENCE.to_owned()] } else { asked };
    match api.authentication.token(api, spec.text("token"), &audiences) {
        Ok(proof) => {
            let mut status = json!({ "authenticated": true, "user": identity::to_value(&proof.user) });
            status["audiences"] = json!(proof.audiences);
            status
        }
        Err(error) => json!({ "user": {}, "error": error }),
    }
}

/// The user that a client certificate names: its common name, in the groups that are its organizations.
pub(crate) fn user_of_certificate(der: &[u8]) -> Option<User> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned);
    // Which certificate it was, for audit logs.
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der);
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let extra = [(service_account::CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={hex}")])].into();
    Some(authenticated(User { name, groups: groups.collect(), extra, ..User::default() }))
}
