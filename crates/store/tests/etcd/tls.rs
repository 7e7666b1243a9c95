//! TLS, with and without what it takes.

use super::{ambient, commit};
use store::{Error, Etcd, EtcdClientCertificate, EtcdOptions, EtcdTls, Store, Txn, WatchRequest};
use testkit::etcd::{Etcd as Server, available_versions};

fn options(server: &Server, client: Option<EtcdClientCertificate>) -> EtcdOptions {
    let ca = server.certificates().ca.clone().into();
    EtcdOptions { tls: Some(EtcdTls { ca, client }), ..EtcdOptions::new(server.endpoints()) }
}

#[tokio::test]
async fn a_client_with_a_certificate_is_served() {
    for version in available_versions() {
        let server = Server::start_with_tls(version).await;
        let certificates = server.certificates();
        let client = EtcdClientCertificate {
            certificate: certificates.client_certificate.clone().into(),
            key: certificates.client_key.clone().into(),
        };
        let store = Etcd::connect(&ambient(), options(&server, Some(client))).await.unwrap();
        let mut watch = store.watch(WatchRequest::new("", store.revision().await.unwrap())).await.unwrap();
        let revision = commit(&store, Txn::put("k", "v")).await;
        assert_eq!(watch.next().await.unwrap().revision, revision);
        store.close().await;
    }
}

#[tokio::test]
async fn the_error_says_what_is_missing() {
    for version in available_versions() {
        let server = Server::start_with_tls(version).await;
        let error = Etcd::connect(&ambient(), options(&server, None)).await.expect_err("etcd asks for a certificate");
        let Error::Unavailable(cause) = &error else { panic!("{version:?}: {error}") };
        assert!(
            cause.contains("without a client certificate") && cause.contains(server.endpoint()),
            "{version:?}: {cause}"
        );

        let other = Server::start_with_tls(version).await;
        let wrong = EtcdOptions { endpoints: server.endpoints(), ..options(&other, None) };
        let error = Etcd::connect(&ambient(), wrong).await.expect_err("another authority signed the certificate");
        assert!(error.to_string().contains("invalid peer certificate"), "{version:?}: {error}");

        let plain = EtcdOptions::new(server.endpoints());
        let error = Etcd::connect(&ambient(), plain).await.expect_err("https needs an authority");
        assert!(matches!(error, Error::Invalid(_)), "{error}");
    }
}
