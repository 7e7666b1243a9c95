//! An authority of its own for one server, with a certificate for the server and one for a client.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// All in PEM. The server's own are in files only.
#[derive(Debug)]
pub struct Certificates {
    pub ca: String,
    pub client_certificate: String,
    pub client_key: String,
    directory: PathBuf,
}

impl Certificates {
    /// Makes certificates for a server at this address and writes the server's to a directory.
    pub(super) fn new(server: Ipv4Addr, directory: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca = CertifiedIssuer::self_signed(params, key()).expect("the parameters of the authority are complete");
        let (server_certificate, server_key) = issue(&ca, server);
        let (client_certificate, client_key) = issue(&ca, server);
        for (file, pem) in [("ca", &ca.pem()), ("server", &server_certificate), ("server-key", &server_key)] {
            std::fs::write(path(directory, file), pem).expect("a temporary directory can be written to");
        }
        Certificates { ca: ca.pem(), client_certificate, client_key, directory: directory.to_owned() }
    }

    /// How etcd is told of them.
    pub(super) fn arguments(&self) -> Vec<String> {
        let file = |flag: &str, file: &str| format!("--{flag}={}", path(&self.directory, file).display());
        vec![
            file("trusted-ca-file", "ca"),
            file("cert-file", "server"),
            file("key-file", "server-key"),
            "--client-cert-auth".to_owned(),
        ]
    }
}

fn path(directory: &Path, file: &str) -> PathBuf {
    directory.join(file).with_extension("pem")
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key can be generated")
}

/// A certificate and its key, good for either end of a connection: etcd uses its own for both.
fn issue(ca: &CertifiedIssuer<'_, KeyPair>, server: Ipv4Addr) -> (String, String) {
    let mut params = CertificateParams::new([server.to_string()]).expect("an address is a valid name");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = key();
    let certificate = params.signed_by(&key, ca).expect("the parameters of the certificate are complete");
    (certificate.pem(), key.serialize_pem())
}
