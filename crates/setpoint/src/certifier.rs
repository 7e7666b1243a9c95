//! Lets loops sign with the cluster's authority, whose key they never see.

use apiserver::pki::{Authority, Validity, read_request};
use controllers::{Asked, Signer};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Certifier(pub(crate) Arc<Authority>);

impl Signer for Certifier {
    fn read(&self, request: &str) -> Result<Asked, String> {
        let asked = read_request(request).map_err(|error| error.to_string())?;
        let [dns_names, addresses, emails, uris] = asked.alternatives;
        let (common_name, organizations) = (asked.common_name, asked.organizations);
        Ok(Asked { common_name, organizations, dns_names, addresses, emails, uris })
    }

    fn sign(&self, request: &str, usages: &[String], from: Duration, until: Duration) -> Result<String, String> {
        self.0.sign_request(request, usages, Validity { from, until }).map_err(|error| error.to_string())
    }
}
