//! CertificateApproval, CertificateSigning, CertificateSubjectRestriction: who may approve and sign for a signer, and
//! that nobody gets a certificate of an administrator this way.

use super::{Operation, Review};
use object::{ApiError, Edit, Value, View, base64, json};
use x509_parser::prelude::{FromDer, X509CertificationRequest};

pub(super) const REQUESTS: &str = "certificatesigningrequests.certificates.k8s.io";
pub(super) const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

pub(super) fn validate_approval(review: &mut Review<'_>) -> Result<(), ApiError> {
    match review.old {
        Some(old) if is_update(review, "approval") => require(review, old, "approve"),
        _ => Ok(()),
    }
}

pub(super) fn validate_signing(review: &mut Review<'_>) -> Result<(), ApiError> {
    let Some(old) = review.old.filter(|_| is_update(review, "status")) else { return Ok(()) };
    let unchanged = |field: &str| review.object.at("status").at(field) == old.at("status").at(field);
    if unchanged("certificate") && unchanged("conditions") { Ok(()) } else { require(review, old, "sign") }
}

pub(super) fn validate_subject(review: &mut Review<'_>) -> Result<(), ApiError> {
    let spec = review.object.at("spec");
    if !review.is(REQUESTS, Operation::Create) || spec.text("signerName") != CLIENT_SIGNER {
        return Ok(());
    }
    let subject = subject(spec).map_err(|why| review.forbid(&format!("failed to parse CSR: {why}")))?;
    match subject.organizations.iter().any(|name| name == authz::MASTERS) {
        true => Err(review.forbid(&format!("use of {CLIENT_SIGNER} signer with system:masters group is not allowed"))),
        false => Ok(()),
    }
}

/// Writes down who asks, which decides who is approved: only the server says so, after all that others may have said.
pub(super) fn identify(review: &mut Review<'_>) -> Result<(), ApiError> {
    if !review.is(REQUESTS, Operation::Create) {
        return Ok(());
    }
    let user = &review.ctx.user;
    let spec = review.object.object_or_new("spec");
    spec.set("username", user.name.as_str());
    spec.set("groups", user.groups.clone());
    if !user.uid.is_empty() {
        spec.set("uid", user.uid.as_str());
    }
    if !user.extra.is_empty() {
        spec.set("extra", json!(user.extra));
    }
    Ok(())
}

fn is_update(review: &Review<'_>, subresource: &str) -> bool {
    review.table() == REQUESTS && review.subresource() == subresource && review.operation == Operation::Update
}

/// The user must be allowed to act for this signer, or for all of its domain.
fn require(review: &Review<'_>, request: &Value, verb: &str) -> Result<(), ApiError> {
    let signer = request.at("spec").text("signerName");
    let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    let ctx = review.ctx;
    let may = |name| ctx.api.authorization.allows(&ctx.user, verb, "certificates.k8s.io", "signers", name, "");
    if may(signer) || may(&domain) {
        return Ok(());
    }
    Err(review.forbid(&format!("user not permitted to {verb} requests with signerName {signer:?}")))
}

/// Whom a certificate is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
}

/// Reads `spec.request`: PEM, in base64 as all bytes are in JSON.
pub(super) fn subject(spec: &Value) -> Result<Subject, String> {
    const WRONG: &str = "PEM block type must be CERTIFICATE REQUEST";
    let pem = base64::decode(spec.text("request")).ok_or(WRONG)?;
    let (_, block) = x509_parser::pem::parse_x509_pem(&pem).map_err(|_| WRONG)?;
    if block.label != "CERTIFICATE REQUEST" {
        return Err(WRONG.to_owned());
    }
    let (_, request) = X509CertificationRequest::from_der(&block.contents).map_err(|error| error.to_string())?;
    let subject = &request.certification_request_info.subject;
    let text = |name: &x509_parser::x509::AttributeTypeAndValue<'_>| {
        name.as_str().map(str::to_owned).map_err(|error| error.to_string())
    };
    let names = subject.iter_common_name().map(text).collect::<Result<Vec<_>, _>>()?;
    let organizations = subject.iter_organization().map(text).collect::<Result<_, _>>()?;
    Ok(Subject { common_name: names.into_iter().next_back().unwrap_or_default(), organizations })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;
    use rcgen::{CertificateParams, DnType, KeyPair};

    #[test]
    fn the_subject_of_a_request_is_read() {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "system:node:n");
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        let read = subject(&json!({ "request": base64::encode(pem.as_bytes()) })).unwrap();
        let organizations = vec!["system:nodes".to_owned()];
        assert_eq!(read, Subject { common_name: "system:node:n".to_owned(), organizations });
        let wrong = Err("PEM block type must be CERTIFICATE REQUEST".to_owned());
        assert_eq!(subject(&json!({ "request": base64::encode(b"no") })), wrong);
        assert_eq!(subject(&json!({})), wrong);
    }
}
