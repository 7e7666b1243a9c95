//! Where the service of the API leads: its endpoints, in both forms, kept up to date with every start.
//!
//! A server that only this machine reaches has none; an address of its own would mean another machine to each reader.

use crate::local::Local;
use object::{ApiError, Edit, Reason, Value, View, json};
use std::net::SocketAddr;

const NAMESPACE: &str = "namespaces/default";

/// Publishes the address that others reach this server at.
pub(super) async fn publish(client: &Local, address: &str) -> Result<(), ApiError> {
    let Some(address) = address.parse().ok().filter(|address: &SocketAddr| !address.ip().is_loopback()) else {
        return Ok(());
    };
    let [endpoints, slice] = objects(address);
    put(client, &format!("/api/v1/{NAMESPACE}/endpoints"), endpoints).await?;
    put(client, &format!("/apis/discovery.k8s.io/v1/{NAMESPACE}/endpointslices"), slice).await
}

fn objects(address: SocketAddr) -> [Value; 2] {
    let (ip, port) = (address.ip().to_string(), address.port());
    let ports = json!([{ "name": "https", "port": port, "protocol": "TCP" }]);
    [
        // The slice below is written here, so nobody has to derive one.
        json!({
            "metadata": { "name": "kubernetes", "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" } },
            "subsets": [{ "addresses": [{ "ip": ip }], "ports": ports }],
        }),
        json!({
            "metadata": { "name": "kubernetes", "labels": { "kubernetes.io/service-name": "kubernetes" } },
            "addressType": if address.is_ipv6() { "IPv6" } else { "IPv4" },
            "endpoints": [{ "addresses": [ip], "conditions": { "ready": true } }],
            "ports": ports,
        }),
    ]
}

/// Creates an object, or makes the one that is there say the same.
async fn put(client: &Local, collection: &str, wanted: Value) -> Result<(), ApiError> {
    let path = format!("{collection}/kubernetes");
    let mut current = match client.get(&path).await {
        Ok(current) => current,
        Err(error) if error.reason() == Reason::NotFound => return client.create(collection, &wanted).await.map(drop),
        Err(error) => return Err(error),
    };
    if current.text("addressType") != wanted.text("addressType") {
        client.delete(&path).await?;
        return client.create(collection, &wanted).await.map(drop);
    }
    for (field, value) in wanted.as_object().into_iter().flatten().filter(|(field, _)| *field != "metadata") {
        current.set(field, value.clone());
    }
    client.update(&path, &current).await.map(drop)
}
