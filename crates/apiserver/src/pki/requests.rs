//! Certificates that others ask for: reading what is asked, and signing it.

use super::subject::with_subject;
use super::{Authority, PkiError, random_serial, to_pem};
use rcgen::{CertificateSigningRequestParams, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SanType};
use std::time::{Duration, UNIX_EPOCH};
use x509_parser::prelude::{FromDer, X509Certificate, X509CertificationRequest};

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    pub common_name: String,
    pub organizations: Vec<String>,
    /// How many names for hosts, addresses, addresses of mail and URIs there are.
    pub alternatives: [usize; 4],
}

/// From when until when, both since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub from: Duration,
    pub until: Duration,
}

/// Reads a request, which has to be signed with the key that it is about.
pub fn read_request(pem: &str) -> Result<Requested, PkiError> {
    let params = CertificateSigningRequestParams::from_pem(pem).map_err(invalid)?.params;
    let count = |test: fn(&SanType) -> bool| params.subject_alt_names.iter().filter(|name| test(name)).count();
    let alternatives = [
        count(|name| matches!(name, SanType::DnsName(_))),
        count(|name| matches!(name, SanType::IpAddress(_))),
        count(|name| matches!(name, SanType::Rfc822Name(_))),
        count(|name| matches!(name, SanType::URI(_))),
    ];
    let (common_name, organizations) = subject(pem)?;
    Ok(Requested { common_name, organizations, alternatives })
}

fn subject(pem: &str) -> Result<(String, Vec<String>), PkiError> {
    let der = x509_parser::pem::parse_x509_pem(pem.as_bytes()).map_err(invalid)?.1;
    let (_, request) = X509CertificationRequest::from_der(&der.contents).map_err(invalid)?;
    let subject = &request.certification_request_info.subject;
    let texts = |attributes: &mut dyn Iterator<Item = &x509_parser::x509::AttributeTypeAndValue<'_>>| {
        attributes.filter_map(|attribute| Some(attribute.as_str().ok()?.to_owned())).collect::<Vec<_>>()
    };
    let common_name = texts(&mut subject.iter_common_name()).pop().unwrap_or_default();
    Ok((common_name, texts(&mut subject.iter_organization())))
}

pub(super) fn invalid(error: impl std::fmt::Display) -> PkiError {
    PkiError::Request(error.to_string())
}

impl Authority {
    /// Signs what is asked for, but for the usages that are given, and for no longer than the authority itself lasts.
    pub fn sign_request(&self, pem: &str, usages: &[String], validity: Validity) -> Result<String, PkiError> {
        let mut request = CertificateSigningRequestParams::from_pem(pem).map_err(invalid)?;
        let params = &mut request.params;
        let authority = x509_parser::pem::parse_x509_pem(self.certificate.as_bytes()).map_err(invalid)?.1;
        let (_, authority) = X509Certificate::from_der(&authority.contents).map_err(invalid)?;
        let last = u64::try_from(authority.validity.not_after.timestamp()).map_or(Duration::ZERO, Duration::from_secs);
        params.not_before = (UNIX_EPOCH + validity.from).into();
        params.not_after = (UNIX_EPOCH + validity.until.min(last)).into();
        params.is_ca = IsCa::ExplicitNoCa;
        params.serial_number = Some(random_serial());
        params.use_authority_key_identifier_extension = true;
        (params.key_usages, params.extended_key_usages) = purposes(usages)?;
        let certificate = request.signed_by(&self.issuer)?;
        let asked = x509_parser::pem::parse_x509_pem(pem.as_bytes()).map_err(invalid)?.1;
        let certificate = with_subject(certificate.der(), &asked.contents, self.issuer.key())?;
        Ok(to_pem("CERTIFICATE", &certificate))
    }
}

/// Usages in the words of the API, as certificates have them.
fn purposes(usages: &[String]) -> Result<(Vec<KeyUsagePurpose>, Vec<ExtendedKeyUsagePurpose>), PkiError> {
    let (mut plain, mut extended) = (Vec::new(), Vec::new());
    for usage in usages {
        match usage.as_str() {
            "signing" | "digital signature" => plain.push(KeyUsagePurpose::DigitalSignature),
            "content commitment" => plain.push(KeyUsagePurpose::ContentCommitment),
            "key encipherment" => plain.push(KeyUsagePurpose::KeyEncipherment),
            "key agreement" => plain.push(KeyUsagePurpose::KeyAgreement),
            "data encipherment" => plain.push(KeyUsagePurpose::DataEncipherment),
            "cert sign" => plain.push(KeyUsagePurpose::KeyCertSign),
            "crl sign" => plain.push(KeyUsagePurpose::CrlSign),
            "encipher only" => plain.push(KeyUsagePurpose::EncipherOnly),
            "decipher only" => plain.push(KeyUsagePurpose::DecipherOnly),
            "any" => extended.push(ExtendedKeyUsagePurpose::Any),
            "server auth" => extended.push(ExtendedKeyUsagePurpose::ServerAuth),
            "client auth" => extended.push(ExtendedKeyUsagePurpose::ClientAuth),
            "code signing" => extended.push(ExtendedKeyUsagePurpose::CodeSigning),
            "email protection" | "s/mime" => extended.push(ExtendedKeyUsagePurpose::EmailProtection),
            "timestamping" => extended.push(ExtendedKeyUsagePurpose::TimeStamping),
            "ocsp signing" => extended.push(ExtendedKeyUsagePurpose::OcspSigning),
            other => return Err(invalid(format!("unrecognized usage values: [{other:?}]"))),
        }
    }
    plain.dedup();
    Ok((plain, extended))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::{CertificateDer, UnixTime};
    use rustls::server::WebPkiClientVerifier;
    use std::sync::Arc;

    /// Of alice, in three organizations, for a host; and she would like to be an authority.
    const REQUEST: &str = "\
-----BEGIN CERTIFICATE REQUEST-----
MIIBOzCB4QIBADBHMRAwDgYDVQQKDAdyZWFkZXJzMRAwDgYDVQQKDAd3cml0ZXJz
MREwDwYDVQQKDAhhdWRpdG9yczEOMAwGA1UEAwwFYWxpY2UwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAATsm5KuBMZBJfn7b9NejwtsH4FX/0Z/mNprGgJTfAMwrYOM
DzOu9T5NTIgXgL6NIlvT4Xy8OvjNr4UQd6PMJrrsoDgwNgYJKoZIhvcNAQkOMSkw
JzAXBgNVHREEEDAOggxob3N0LmV4YW1wbGUwDAYDVR0TBAUwAwEB/zAKBggqhkjO
PQQDAgNJADBGAiEA3RevcWqjgjE58cT8q38C3v1P/nyBG58mjWBmMaQHkT8CIQDZ
cgBlZH4gLitDBULUgetO7x7YP2ivg51uuh9NfuWU6A==
-----END CERTIFICATE REQUEST-----
";

    #[test]
    fn what_is_signed_is_what_was_asked_for_and_no_authority() {
        let dir = tempfile::tempdir().unwrap();
        let now = Duration::from_secs(1_767_225_600);
        let authority = Authority::open(dir.path(), now).unwrap();
        let asked = read_request(REQUEST).unwrap();
        assert_eq!((asked.common_name.as_str(), asked.alternatives), ("alice", [1, 0, 0, 0]));
        assert_eq!(asked.organizations, ["readers", "writers", "auditors"]);
        let long = Validity { from: now, until: now + Duration::from_secs(100 * 365 * 24 * 3600) };
        let signed = authority.sign_request(REQUEST, &["client auth".to_owned()], long).unwrap();
        let der = x509_parser::pem::parse_x509_pem(signed.as_bytes()).unwrap().1;
        let (_, certificate) = X509Certificate::from_der(&der.contents).unwrap();
        let groups = certificate.subject().iter_organization().map(|group| group.as_str().unwrap());
        assert_eq!(groups.collect::<Vec<_>>(), ["readers", "writers", "auditors"]);
        let verifier = WebPkiClientVerifier::builder(Arc::new(authority.roots().unwrap())).build().unwrap();
        let client = CertificateDer::from(der.contents.as_slice());
        verifier.verify_client_cert(&client, &[], UnixTime::since_unix_epoch(now)).unwrap();
        assert!(!certificate.is_ca());
        let years = (certificate.validity().not_after.timestamp() - 1_767_225_600) / (365 * 24 * 3600);
        assert!(years <= 10, "{years} years is longer than the authority itself");
        assert!(authority.sign_request(REQUEST, &["world domination".to_owned()], long).is_err());
        assert!(read_request("nonsense").is_err());
    }
}
