//! What every cluster has from its first moment on: made at start where it is missing, through the API.

mod endpoints;

use crate::api::Api;
use crate::flow;
use crate::identity::{AUTHENTICATED, user};
use crate::local::Local;
use authz::MASTERS;
use object::{ApiError, Edit, Reason, Value, View, json};

/// Namespaces that the system needs.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// The system's own priorities; no other class may have such a value.
const PRIORITIES: [(&str, i64, &str); 2] = [
    ("system-cluster-critical", 2_000_000_000, "For pods that the cluster cannot do without."),
    ("system-node-critical", 2_000_001_000, "For pods that a node cannot do without."),
];
/// Where services get their addresses from; the first of them is that of the API itself.
const SERVICE_RANGE: &str = "10.96.0.0/16";
const API_SERVICE_ADDRESS: &str = "10.96.0.1";

/// Says since when the use of tokens that last for ever is noted.
const TOKEN_TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

/// Makes what is missing. What is there stays as it is, but for the default roles, which get what is new in them, and the
/// objects of flow control, which are looked after from here on.
pub async fn bootstrap(api: &Api) -> Result<(), ApiError> {
    let client = Local::new(api.clone(), user("system:apiserver", &[MASTERS, AUTHENTICATED]), "kube-apiserver");
    let namespaces = NAMESPACES.map(|name| ("/api/v1/namespaces".to_owned(), json!({ "metadata": { "name": name } })));
    ensure(&client, namespaces.into()).await?;
    let mut objects = vec![
        (
            "/apis/networking.k8s.io/v1/servicecidrs".to_owned(),
            json!({ "metadata": { "name": "kubernetes" }, "spec": { "cidrs": [SERVICE_RANGE] } }),
        ),
        (
            "/api/v1/namespaces/kube-system/configmaps".to_owned(),
            json!({ "metadata": { "name": "extension-apiserver-authentication" } }),
        ),
        (
            "/api/v1/namespaces/kube-system/configmaps".to_owned(),
            json!({ "metadata": { "name": TOKEN_TRACKING }, "data": { "since": api.today() } }),
        ),
    ];
    objects.extend(PRIORITIES.map(|(name, value, description)| {
        let class = json!({ "metadata": { "name": name }, "value": value, "description": description });
        ("/apis/scheduling.k8s.io/v1/priorityclasses".to_owned(), class)
    }));
    ensure(&client, objects).await?;
    flow::upkeep::start(api).await?;
    ensure_storage_class(&client).await?;
    // The service gets its address from the range, which is looked up in the cache.
    api.registry.cache.current().await.map_err(ApiError::internal)?;
    ensure_api_service(api, &client).await?;
    let now = i64::try_from(api.ambient.clock.wall().0 / 1000).unwrap_or(i64::MAX);
    mark_range_ready(&client, &object::time::format(now).unwrap_or_default()).await?;
    endpoints::publish(&client, &api.address).await?;
    ensure_policy(api, &client).await
}

/// A class for claims that name none, in a cluster that has no classes at all: directories of the node that a pod runs
/// on. Who makes a class of their own decides what is the default from then on.
async fn ensure_storage_class(client: &Local) -> Result<(), ApiError> {
    let collection = "/apis/storage.k8s.io/v1/storageclasses";
    if !client.get(collection).await?.items("items").is_empty() {
        return Ok(());
    }
    let class = json!({
        "metadata": {
            "name": "local-path",
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
        },
        "provisioner": "setpoint.dev/local-path",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    });
    ensure_one(client, collection, &class).await
}

/// The range that this server hands addresses out from is ready by that alone.
async fn mark_range_ready(client: &Local, now: &str) -> Result<(), ApiError> {
    let path = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";
    let range = client.get(path).await?;
    if !range.at("status").items("conditions").is_empty() {
        return Ok(());
    }
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "", "lastTransitionTime": now,
        "message": "Kubernetes default Service CIDR is ready",
    });
    client.patch(&format!("{path}/status"), &json!({ "status": { "conditions": [ready] } })).await.map(drop)
}

/// The service that pods reach the API by.
fn api_service(api: &Api) -> Value {
    let port: u16 = api.address.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(6443);
    json!({
        "metadata": { "name": "kubernetes", "labels": { "component": "apiserver", "provider": "kubernetes" } },
        "spec": {
            "clusterIP": API_SERVICE_ADDRESS,
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": port }],
        },
    })
}

/// Creates what is not there. It is looked for first: a creation may be refused for other reasons than that the object
/// exists, such as the address that the service has already.
async fn ensure(client: &Local, objects: Vec<(String, Value)>) -> Result<(), ApiError> {
    let ensured = objects.iter().map(|(collection, object)| ensure_one(client, collection, object));
    futures::future::join_all(ensured).await.into_iter().collect()
}

async fn ensure_one(client: &Local, collection: &str, object: &Value) -> Result<(), ApiError> {
    match client.get(&format!("{collection}/{}", object.at("metadata").text("name"))).await {
        Err(error) if error.reason() == Reason::NotFound => {}
        found => return found.map(drop),
    }
    match client.create(collection, object).await {
        Err(error) if error.reason() != Reason::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The service of the API. A server may come back on another port.
async fn ensure_api_service(api: &Api, client: &Local) -> Result<(), ApiError> {
    let (collection, wanted) = ("/api/v1/namespaces/default/services", api_service(api));
    ensure_one(client, collection, &wanted).await?;
    let path = format!("{collection}/kubernetes");
    let mut existing = client.get(&path).await?;
    let ports = wanted.at("spec").at("ports");
    if existing.at("spec").at("ports") != ports {
        existing.object_or_new("spec").set("ports", ports.clone());
        client.update(&path, &existing).await?;
    }
    Ok(())
}

/// The default roles and bindings.
async fn ensure_policy(api: &Api, client: &Local) -> Result<(), ApiError> {
    let served = api.registry.resources();
    let is_served =
        |version: &str| version.split_once('/').is_some_and(|(group, name)| served.has_version(group, name));
    let mut defaults = authz::default_objects(&is_served);
    aggregate(&mut defaults)?;
    let reconciled = defaults.iter().map(|default| reconcile(client, default));
    futures::future::join_all(reconciled).await.into_iter().collect()
}

/// Roles that are made of others are complete from the start.
fn aggregate(defaults: &mut [Value]) -> Result<(), ApiError> {
    let roles: Vec<Value> = defaults.iter().filter(|object| object.text("kind") == "ClusterRole").cloned().collect();
    let mut by_name: Vec<(String, Vec<Value>)> = Vec::new();
    // `admin` is made of `edit`, which is made of `view`: each round makes one more level complete.
    for _ in 0..3 {
        let known: Vec<Value> = roles
            .iter()
            .map(|role| {
                let mut role = role.clone();
                if let Some((_, rules)) = by_name.iter().find(|(name, _)| name == role.at("metadata").text("name")) {
                    role.set("rules", rules.clone());
                }
                role
            })
            .collect();
        let known: Vec<&Value> = known.iter().collect();
        by_name.clear();
        for role in &known {
            let rules = authz::aggregate(role, &known).map_err(ApiError::internal)?;
            by_name.extend(rules.map(|rules| (role.at("metadata").text("name").to_owned(), rules)));
        }
    }
    for (name, rules) in by_name {
        let role =
            defaults.iter_mut().find(|o| o.text("kind") == "ClusterRole" && o.at("metadata").text("name") == name);
        if let Some(role) = role {
            role.set("rules", rules);
        }
    }
    Ok(())
}

async fn reconcile(client: &Local, default: &Value) -> Result<(), ApiError> {
    let plural = match default.text("kind") {
        "ClusterRole" => "clusterroles",
        "ClusterRoleBinding" => "clusterrolebindings",
        "Role" => "roles",
        _ => "rolebindings",
    };
    let collection = match default.at("metadata").text("namespace") {
        "" => format!("/apis/rbac.authorization.k8s.io/v1/{plural}"),
        namespace => format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{plural}"),
    };
    let path = format!("{collection}/{}", default.at("metadata").text("name"));
    let existing = match client.get(&path).await {
        Ok(existing) => Some(existing),
        Err(error) if error.reason() == Reason::NotFound => None,
        Err(error) => return Err(error),
    };
    let written = match authz::reconcile(existing.as_ref(), default) {
        None => return Ok(()),
        Some(authz::Write::Create(object)) => client.create(&collection, &object).await,
        Some(authz::Write::Update(object)) => client.update(&path, &object).await,
        Some(authz::Write::Recreate(object)) => {
            client.delete(&path).await?;
            client.create(&collection, &object).await
        }
    };
    match written {
        Err(error) if error.reason() != Reason::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
