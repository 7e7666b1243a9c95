//! The file that tells clients where the cluster is, how to recognise it, and who they are.

use anyhow::Context;
use apiserver::pki::{Pair, write_private};
use object::{base64, json};
use std::path::Path;

/// Writes a kubeconfig that only its owner may read. JSON is YAML, so clients take it.
pub(crate) fn write(path: &Path, server: &str, authority: &str, client: &Pair) -> anyhow::Result<()> {
    let encode = |pem: &str| base64::encode(pem.as_bytes());
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "setpoint",
        "clusters": [{
            "name": "setpoint",
            "cluster": { "server": server, "certificate-authority-data": encode(authority) },
        }],
        "users": [{
            "name": "kubernetes-admin",
            "user": { "client-certificate-data": encode(&client.certificate), "client-key-data": encode(&client.key) },
        }],
        "contexts": [{ "name": "setpoint", "context": { "cluster": "setpoint", "user": "kubernetes-admin" } }],
    });
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir).with_context(|| format!("making the directory {}", dir.display()))?;
    }
    write_private(path, format!("{config:#}\n").as_bytes()).context("writing the kubeconfig")
}
