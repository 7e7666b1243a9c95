//! Authentication: who sends a request. Client certificates and bearer tokens; anybody else is anonymous.

use crate::api::Api;
use crate::identity::{self, AUTHENTICATED};
use crate::pipeline::Peer;
use authz::User;
use http::{HeaderMap, header};
use object::{ApiError, Reason};
use std::sync::Arc;

#[derive(Debug)]
pub struct Authentication {
    anonymous: Arc<User>,
}

impl Default for Authentication {
    fn default() -> Self {
        Authentication { anonymous: Arc::new(identity::anonymous()) }
    }
}

impl Authentication {
    /// A certificate counts before a token. A token that proves nothing is an error: its owner wants to know.
    pub(crate) fn authenticate(&self, api: &Api, peer: &Peer, headers: &HeaderMap) -> Result<Arc<User>, ApiError> {
        if let Some(user) = &peer.user {
            return Ok(user.clone());
        }
        let Some(authorization) = headers.get(header::AUTHORIZATION) else { return Ok(self.anonymous.clone()) };
        let _ = (api, authorization);
        Err(ApiError::new(Reason::Unauthorized, "Unauthorized"))
    }
}

/// The user that a client certificate names: its common name, in the groups that are its organizations.
pub fn user_of_certificate(der: &[u8]) -> Option<User> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned);
    let groups = groups.chain([AUTHENTICATED.to_owned()]).collect();
    Some(User { name, groups, ..User::default() })
}

/// Answers a token review.
pub(crate) async fn review(_api: &Api, _spec: &object::Value) -> object::Value {
    object::json!({ "authenticated": false })
}
