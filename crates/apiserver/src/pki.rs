//! The cluster's own authority: made at first start, kept beside the data, readable by its owner only.
//!
//! It signs the serving certificate, which is made anew at every start and before it runs out, and the certificates of
//! clients.

mod requests;
mod subject;

pub use requests::{Requested, Validity, read_request};

use object::base64;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SerialNumber,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);
const AUTHORITY_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// As upstream's tools give them.
pub const CLIENT_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
const SERVING_LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
/// The serving certificate is made anew when this much of its life is left.
pub const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{}: {why}", path.display())]
    Content { path: PathBuf, why: String },
    #[error("{0}")]
    Request(String),
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    #[error("a certificate cannot be used: {0}")]
    Use(#[from] rustls::Error),
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pair")
    }
}

#[derive(Debug)]
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Reads the authority in `dir`, or makes one there.
    pub fn open(dir: &Path, now: Duration) -> Result<Self, PkiError> {
        let (certificate_path, key_path) = (dir.join("ca.crt"), dir.join("ca.key"));
        if !certificate_path.exists() {
            let pair = make_authority(now)?;
            write_private(&key_path, pair.key.as_bytes())?;
            write_file(&certificate_path, pair.certificate.as_bytes(), 0o644)?;
        }
        let certificate = read(&certificate_path)?;
        let content = |why: String| PkiError::Content { path: key_path.clone(), why };
        let key = KeyPair::from_pem(&read(&key_path)?).map_err(|error| content(error.to_string()))?;
        let issuer = Issuer::from_ca_cert_pem(&certificate, key)
            .map_err(|error| PkiError::Content { path: certificate_path.clone(), why: error.to_string() })?;
        Ok(Authority { certificate, issuer })
    }

    /// What clients need to recognise this cluster, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Whom to believe when clients show certificates.
    pub fn roots(&self) -> Result<rustls::RootCertStore, PkiError> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.certificate.as_bytes()) {
            let certificate = certificate.map_err(|error| rustls::Error::General(error.to_string()))?;
            roots.add(certificate)?;
        }
        Ok(roots)
    }

    /// A certificate for a user in some groups.
    pub fn client(&self, name: &str, groups: &[&str], now: Duration) -> Result<Pair, PkiError> {
        let mut params = params(name, now, CLIENT_LIFETIME, random_serial());
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    /// A certificate for the API under all names it is reached by.
    pub fn serving(&self, names: &[String], addresses: &[IpAddr], now: Duration) -> Result<CertifiedKey, PkiError> {
        let mut params = params("kube-apiserver", now, SERVING_LIFETIME, random_serial());
        for name in names {
            params.subject_alt_names.push(SanType::DnsName(name.as_str().try_into()?));
        }
        params.subject_alt_names.extend(addresses.iter().map(|address| SanType::IpAddress(*address)));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let pair = self.sign(&params)?;
        let invalid = |error: rustls::pki_types::pem::Error| rustls::Error::General(error.to_string());
        let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>().map_err(invalid)?;
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(invalid)?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        Ok(CertifiedKey::from_der(chain, key, &provider)?)
    }

    fn sign(&self, params: &CertificateParams) -> Result<Pair, PkiError> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// DER as text, under a label such as `CERTIFICATE`.
pub(crate) fn to_pem(label: &str, der: &[u8]) -> String {
    let encoded = base64::encode(der);
    let lines: Vec<&str> = (0..encoded.len()).step_by(64).map(|at| &encoded[at..encoded.len().min(at + 64)]).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn make_authority(now: Duration) -> Result<Pair, PkiError> {
    let mut params = params("kubernetes", now, AUTHORITY_LIFETIME, random_serial());
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.subject_alt_names.push(SanType::DnsName("kubernetes".try_into()?));
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// What all certificates have in common; `now` is since 1970.
fn params(name: &str, now: Duration, lifetime: Duration, serial: SerialNumber) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    // A day of tolerance for clocks that are behind.
    params.not_before = (std::time::UNIX_EPOCH + now.saturating_sub(DAY)).into();
    params.not_after = (std::time::UNIX_EPOCH + now + lifetime).into();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.serial_number = Some(serial);
    params
}

fn random_serial() -> SerialNumber {
    let mut bytes = [0; 16];
    // Serial numbers only have to differ; the generator of the cryptography never fails in practice.
    if aws_lc_rs::rand::fill(&mut bytes).is_err() {
        tracing::warn!("no random serial number");
    }
    bytes[0] &= 0x7f;
    SerialNumber::from_slice(&bytes)
}

fn read(path: &Path) -> Result<String, PkiError> {
    std::fs::read_to_string(path).map_err(|source| PkiError::File { path: path.to_owned(), source })
}

/// Writes a file that only its owner may read.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), PkiError> {
    write_file(path, bytes, 0o600)
}

/// Writes a file at once or not at all, with the given mode from the start.
fn write_file(path: &Path, bytes: &[u8], mode: u32) -> Result<(), PkiError> {
    use std::os::unix::fs::OpenOptionsExt;
    let failed = |source| PkiError::File { path: path.to_owned(), source };
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    let _ = std::fs::remove_file(&temporary);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    std::fs::rename(&temporary, path).map_err(failed)
}
