//! Certificate signing requests.

use crate::{Condition, Meta, kind};
use object::Value;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CertificateSigningRequest {
    pub metadata: Meta,
    pub spec: CertificateSigningRequestSpec,
    pub status: CertificateSigningRequestStatus,
}

kind!(CertificateSigningRequest, "certificates.k8s.io/v1", "certificatesigningrequests", cluster);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CertificateSigningRequestSpec {
    /// PEM in base64.
    pub request: String,
    pub signer_name: String,
    pub expiration_seconds: Option<i32>,
    pub usages: Vec<String>,
    pub username: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CertificateSigningRequestStatus {
    pub conditions: Vec<Condition>,
    /// PEM in base64.
    pub certificate: String,
}
