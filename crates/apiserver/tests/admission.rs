//! Admission from end to end: requests to an API on a store in memory, by clients in this process.

use ambient::Ambient;
use apiserver::{Api, Authentication, Authorization, Local, Peer, SigningKey, StaticTokens, bootstrap, user};
use futures::future::join_all;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use object::{ApiError, Reason, Value, View, json};
use registry::Registry;
use std::sync::Arc;

const PODS: &str = "/api/v1/namespaces/default/pods";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

struct Cluster {
    api: Api,
    admin: Local,
}

impl Cluster {
    /// An API with what it starts with, and the account that pods of the default namespace run as.
    async fn start() -> Self {
        let ambient = Ambient::seeded(1);
        let store = Arc::new(store::Memory::new(&ambient, store::Retention::default()));
        let registry = Registry::start(store, Arc::new(registry::Plain), &ambient).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let key = SigningKey::open(&directory.path().join("sa.key")).unwrap();
        let authentication = Authentication::new(key, StaticTokens::default());
        let api = Api::new(registry, ambient, authentication, Authorization::default(), None, "127.0.0.1:0".to_owned());
        bootstrap(&api).await.unwrap();
        let admin = Local::new(api.clone(), user("admin", &["system:masters"]), "test");
        let cluster = Cluster { api, admin };
        cluster.create("/api/v1/namespaces/default/serviceaccounts", "default", json!({})).await.unwrap();
        cluster
    }

    async fn create(&self, path: &str, name: &str, mut object: Value) -> Result<Value, ApiError> {
        object["metadata"]["name"] = json!(name);
        self.admin.create(path, &object).await
    }

    async fn create_pod(&self, name: &str, spec: Value) -> Result<Value, ApiError> {
        self.create(PODS, name, json!({ "spec": spec })).await
    }

    /// Creates something and returns the warnings that come with the answer.
    async fn warnings(&self, method: &str, path: &str, object: &Value) -> Vec<String> {
        let peer = Peer { user: Some(Arc::new(user("admin", &["system:masters"]))), address: None };
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, media);
        let request = request.body(Full::new(bytes::Bytes::from(object.to_string()))).unwrap();
        let response = self.api.handle(&peer, request).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
        let warnings = headers.get_all(header::WARNING).iter().map(|warning| warning.to_str().unwrap().to_owned());
        let text = |warning: String| {
            let quoted = warning.strip_prefix("299 - \"").and_then(|rest| rest.strip_suffix('"')).unwrap();
            quoted.replace("\\\"", "\"")
        };
        warnings.map(text).collect()
    }
}

fn container() -> Value {
    json!({ "containers": [{ "name": "c", "image": "i" }] })
}

fn asking(cpu: &str) -> Value {
    json!({ "containers": [{ "name": "c", "image": "i", "resources": { "requests": { "cpu": cpu }, "limits": { "cpu": cpu } } }] })
}

#[track_caller]
fn refused(result: Result<Value, ApiError>, reason: Reason, message: &str) {
    let error = result.expect_err(message);
    assert_eq!((error.reason(), error.message()), (reason, message));
}

#[tokio::test]
async fn a_pod_is_completed_with_account_token_priority_and_tolerations() {
    let cluster = Cluster::start().await;
    let pod = cluster.create_pod("web", container()).await.unwrap();
    let spec = &pod["spec"];
    assert_eq!((spec.text("serviceAccountName"), spec.text("serviceAccount")), ("default", "default"));
    assert_eq!((spec.int("priority"), spec.text("preemptionPolicy")), (Some(0), "PreemptLowerPriority"));
    assert_eq!(spec.items("tolerations").len(), 2);
    let volume = &spec["volumes"][0];
    assert!(volume.text("name").starts_with("kube-api-access-") && volume.text("name").len() == 21, "{volume}");
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], volume["name"]);
    assert_eq!(volume["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"], 3607);
}

#[tokio::test]
async fn a_pod_needs_its_account_and_its_priority_class() {
    let cluster = Cluster::start().await;
    let mut spec = container();
    spec["serviceAccountName"] = json!("robot");
    let message =
        "pods \"a\" is forbidden: error looking up service account default/robot: serviceaccount \"robot\" not found";
    refused(cluster.create_pod("a", spec).await, Reason::Forbidden, message);
    let mut spec = container();
    spec["priorityClassName"] = json!("high");
    let message = "pods \"a\" is forbidden: no PriorityClass with name high was found";
    refused(cluster.create_pod("a", spec.clone()).await, Reason::Forbidden, message);
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    cluster.create(classes, "high", json!({ "value": 7, "globalDefault": true })).await.unwrap();
    let message = "priorityclasses.scheduling.k8s.io \"other\" is forbidden: PriorityClass high is already marked as default. Only one default can exist";
    refused(
        cluster.create(classes, "other", json!({ "value": 8, "globalDefault": true })).await,
        Reason::Forbidden,
        message,
    );
    for (name, spec) in [("named", spec), ("by-default", container())] {
        let pod = cluster.create_pod(name, spec).await.unwrap();
        assert_eq!((pod["spec"].int("priority"), pod["spec"].text("priorityClassName")), (Some(7), "high"));
    }
}

#[tokio::test]
async fn nothing_is_made_in_a_namespace_that_is_not_there_or_is_going() {
    let cluster = Cluster::start().await;
    let maps = "/api/v1/namespaces/team/configmaps";
    refused(cluster.create(maps, "a", json!({})).await, Reason::NotFound, "namespaces \"team\" not found");
    cluster.create("/api/v1/namespaces", "team", json!({})).await.unwrap();
    cluster.create(maps, "a", json!({})).await.unwrap();
    cluster.admin.delete("/api/v1/namespaces/team").await.unwrap();
    let message =
        "configmaps \"b\" is forbidden: unable to create new content in namespace team because it is being terminated";
    refused(cluster.create(maps, "b", json!({})).await, Reason::Forbidden, message);
    let message = "namespaces \"kube-system\" is forbidden: this namespace may not be deleted";
    refused(cluster.admin.delete("/api/v1/namespaces/kube-system").await, Reason::Forbidden, message);
}

#[tokio::test]
async fn twenty_at_once_get_no_more_than_the_quota_of_five() {
    let cluster = Cluster::start().await;
    cluster.create(QUOTAS, "five", json!({ "spec": { "hard": { "pods": "5", "requests.cpu": "50" } } })).await.unwrap();
    let names: Vec<_> = (0..20).map(|number| format!("pod-{number}")).collect();
    let created = join_all(names.iter().map(|name| cluster.create_pod(name, asking("1")))).await;
    let message = "exceeded quota: five, requested: pods=1, used: pods=5, limited: pods=5";
    for error in created.iter().filter_map(|result| result.as_ref().err()) {
        assert!(error.reason() == Reason::Forbidden && error.message().ends_with(message), "{error}");
    }
    assert_eq!(created.iter().filter(|result| result.is_ok()).count(), 5);
    let pods = cluster.admin.get(PODS).await.unwrap();
    assert_eq!(pods.items("items").len(), 5);
    let quota = cluster.admin.get(&format!("{QUOTAS}/five")).await.unwrap();
    assert_eq!(quota["status"]["used"], json!({ "pods": "5", "requests.cpu": "5" }));
}

#[tokio::test]
async fn a_quota_counts_what_was_there_before_it() {
    let cluster = Cluster::start().await;
    for name in ["a", "b"] {
        cluster.create_pod(name, asking("2")).await.unwrap();
    }
    cluster.create(QUOTAS, "q", json!({ "spec": { "hard": { "limits.cpu": "5" } } })).await.unwrap();
    let message = "pods \"c\" is forbidden: exceeded quota: q, requested: limits.cpu=2, used: limits.cpu=4, limited: limits.cpu=5";
    refused(cluster.create_pod("c", asking("2")).await, Reason::Forbidden, message);
    let message = "pods \"c\" is forbidden: failed quota: q: must specify limits.cpu for: c";
    refused(cluster.create_pod("c", container()).await, Reason::Forbidden, message);
    let path = format!("{PODS}?dryRun=All");
    cluster.create(&path, "c", json!({ "spec": asking("1") })).await.unwrap();
    cluster.create_pod("c", asking("1")).await.unwrap();
}

#[tokio::test]
async fn quotas_count_services_claims_and_any_other_object() {
    let cluster = Cluster::start().await;
    let hard = json!({ "services.nodeports": "1", "requests.storage": "3Gi", "count/configmaps": "1", "secrets": "0" });
    cluster.create(QUOTAS, "q", json!({ "spec": { "hard": hard } })).await.unwrap();
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim =
        json!({ "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "2Gi" } } } });
    let created = cluster.create(claims, "a", claim.clone()).await.unwrap();
    assert_eq!(created["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    let message = "persistentvolumeclaims \"b\" is forbidden: exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=2Gi, limited: requests.storage=3Gi";
    refused(cluster.create(claims, "b", claim).await, Reason::Forbidden, message);
    let maps = "/api/v1/namespaces/default/configmaps";
    cluster.create(maps, "a", json!({})).await.unwrap();
    let message = "configmaps \"b\" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1";
    refused(cluster.create(maps, "b", json!({})).await, Reason::Forbidden, message);
    let message =
        "secrets \"a\" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=0, limited: secrets=0";
    refused(cluster.create("/api/v1/namespaces/default/secrets", "a", json!({})).await, Reason::Forbidden, message);
}

#[tokio::test]
async fn limit_ranges_complete_and_bound_pods() {
    let cluster = Cluster::start().await;
    let limit = json!({ "type": "Container", "default": { "cpu": "1" }, "defaultRequest": { "cpu": "500m" }, "max": { "cpu": "2" } });
    let ranges = "/api/v1/namespaces/default/limitranges";
    cluster.create(ranges, "r", json!({ "spec": { "limits": [limit] } })).await.unwrap();
    let pod = cluster.create_pod("a", container()).await.unwrap();
    let resources = json!({ "limits": { "cpu": "1" }, "requests": { "cpu": "500m" } });
    assert_eq!(pod["spec"]["containers"][0]["resources"], resources);
    let note = "LimitRanger plugin set: cpu request for container c; cpu limit for container c";
    assert_eq!(pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"], note);
    let message = "pods \"b\" is forbidden: maximum cpu usage per Container is 2, but limit is 3";
    refused(cluster.create_pod("b", asking("3")).await, Reason::Forbidden, message);
}

#[tokio::test]
async fn pods_do_no_more_than_the_labels_of_their_namespace_allow() {
    let cluster = Cluster::start().await;
    cluster.create_pod("old", json!({ "hostPID": true, "containers": container()["containers"] })).await.unwrap();
    let label = |mode: &str, level: &str| json!({ "metadata": { "labels": { (format!("pod-security.kubernetes.io/{mode}")): level } } });
    let namespace = "/api/v1/namespaces/default";
    let warnings = cluster.warnings("PATCH", namespace, &label("enforce", "baseline")).await;
    let expected = [
        "existing pods in namespace \"default\" violate the new PodSecurity enforce level \"baseline:latest\"",
        "old: host namespaces",
    ];
    assert_eq!(warnings, expected);
    let message = "pods \"new\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true)";
    let spec = json!({ "hostPID": true, "containers": container()["containers"] });
    refused(cluster.create_pod("new", spec.clone()).await, Reason::Forbidden, message);
    cluster.create_pod("new", container()).await.unwrap();
    let template = json!({ "metadata": { "labels": { "app": "web" } }, "spec": spec });
    let selector = json!({ "matchLabels": { "app": "web" } });
    let deployment = json!({ "metadata": { "name": "web" }, "spec": { "selector": selector, "template": template } });
    let warnings = cluster.warnings("POST", "/apis/apps/v1/namespaces/default/deployments", &deployment).await;
    assert_eq!(warnings, ["would violate PodSecurity \"baseline:latest\": host namespaces (hostPID=true)"]);
    let error = cluster.admin.patch(namespace, &label("warn", "all")).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Invalid);
}

#[tokio::test]
async fn a_node_changes_only_itself() {
    let cluster = Cluster::start().await;
    let node = Local::new(cluster.api.clone(), user("system:node:n", &["system:nodes", "system:masters"]), "kubelet");
    let nodes = "/api/v1/nodes";
    let created = node.create(nodes, &json!({ "metadata": { "name": "n" } })).await.unwrap();
    assert_eq!(created["spec"]["taints"][0]["key"], "node.kubernetes.io/not-ready");
    let message = "nodes \"m\" is forbidden: node \"n\" is not allowed to modify node \"m\"";
    refused(node.create(nodes, &json!({ "metadata": { "name": "m" } })).await, Reason::Forbidden, message);
    let label = json!({ "metadata": { "labels": { "node-restriction.kubernetes.io/a": "b" } } });
    let message = "nodes \"n\" is forbidden: is not allowed to modify labels: node-restriction.kubernetes.io/a";
    refused(node.patch(&format!("{nodes}/n"), &label).await, Reason::Forbidden, message);
    node.patch(&format!("{nodes}/n"), &json!({ "metadata": { "labels": { "own": "b" } } })).await.unwrap();
    let lease = json!({ "metadata": { "name": "m" } });
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let message = "leases.coordination.k8s.io \"m\" is forbidden: can only access node lease with the same name as the requesting node";
    refused(node.create(leases, &lease).await, Reason::Forbidden, message);
    cluster.create_pod("elsewhere", container()).await.unwrap();
    let message = "pods \"elsewhere\" is forbidden: node \"n\" can only delete pods with spec.nodeName set to itself";
    refused(node.delete(&format!("{PODS}/elsewhere")).await, Reason::Forbidden, message);
    let tokens = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let message = "serviceaccounts \"default\" is forbidden: node requested token not bound to a pod";
    refused(node.create(tokens, &json!({ "spec": {} })).await, Reason::Forbidden, message);
}

#[tokio::test]
async fn a_pod_gets_the_overhead_of_its_runtime_and_the_labels_of_its_node() {
    let cluster = Cluster::start().await;
    let labels = json!({ "topology.kubernetes.io/zone": "a", "other": "b" });
    cluster.create("/api/v1/nodes", "n", json!({ "metadata": { "labels": labels } })).await.unwrap();
    let mut spec = container();
    spec["runtimeClassName"] = json!("vm");
    let message = "pods \"a\" is forbidden: pod rejected: RuntimeClass \"vm\" not found";
    refused(cluster.create_pod("a", spec.clone()).await, Reason::Forbidden, message);
    let class = json!({ "handler": "vm", "overhead": { "podFixed": { "memory": "64Mi" } } });
    cluster.create("/apis/node.k8s.io/v1/runtimeclasses", "vm", class).await.unwrap();
    spec["nodeName"] = json!("n");
    let pod = cluster.create_pod("a", spec).await.unwrap();
    assert_eq!(pod["spec"]["overhead"], json!({ "memory": "64Mi" }));
    assert_eq!(pod["metadata"]["labels"], json!({ "topology.kubernetes.io/zone": "a" }));
}

#[tokio::test]
async fn claims_and_ingresses_get_the_class_that_is_the_default() {
    let cluster = Cluster::start().await;
    let marked = |mark: &str| json!({ "metadata": { "annotations": { mark: "true" } } });
    let mut class = marked("storageclass.kubernetes.io/is-default-class");
    class["provisioner"] = json!("example.com/disks");
    cluster.create("/apis/storage.k8s.io/v1/storageclasses", "gold", class).await.unwrap();
    let claim =
        json!({ "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } });
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = cluster.create(claims, "a", claim).await.unwrap();
    assert_eq!(claim["spec"]["storageClassName"], "gold");
    let larger = json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } });
    let error = cluster.admin.patch(&format!("{claims}/a"), &larger).await.unwrap_err();
    assert!(matches!(error.reason(), Reason::Forbidden | Reason::Invalid), "{error}");
    let mut class = marked("ingressclass.kubernetes.io/is-default-class");
    class["spec"] = json!({ "controller": "example.com/proxy" });
    cluster.create("/apis/networking.k8s.io/v1/ingressclasses", "proxy", class).await.unwrap();
    let backend = json!({ "service": { "name": "web", "port": { "number": 80 } } });
    let ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let ingress = cluster.create(ingresses, "a", json!({ "spec": { "defaultBackend": backend } })).await.unwrap();
    assert_eq!(ingress["spec"]["ingressClassName"], "proxy");
}

const RESOURCE: &str = "/apis/resource.k8s.io/v1";

#[tokio::test]
async fn only_namespaces_that_say_so_look_at_the_devices_of_others() {
    let cluster = Cluster::start().await;
    let claim = |admin: bool| {
        let exactly = json!({ "deviceClassName": "gpu", "adminAccess": admin });
        json!({ "spec": { "devices": { "requests": [{ "name": "a", "exactly": exactly }] } } })
    };
    let claims = format!("{RESOURCE}/namespaces/default/resourceclaims");
    let templates = format!("{RESOURCE}/namespaces/default/resourceclaimtemplates");
    cluster.create(&claims, "plain", claim(false)).await.unwrap();
    let why = "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the \
               `resource.kubernetes.io/admin-access: true` label on the containing namespace";
    let refused = cluster.create(&claims, "monitor", claim(true)).await.unwrap_err();
    assert_eq!(refused.to_string(), format!("ResourceClaim.resource.k8s.io \"monitor\" is invalid: {why}"));
    let refused = cluster.create(&templates, "monitor", json!({ "spec": claim(true) })).await.unwrap_err();
    assert_eq!(refused.to_string(), format!("ResourceClaimTemplate.resource.k8s.io \"monitor\" is invalid: {why}"));
    // Nor can it be granted what it did not ask for.
    let mut granted = cluster.admin.get(&format!("{claims}/plain")).await.unwrap();
    let result = json!({ "request": "a", "driver": "d", "pool": "p", "device": "x", "adminAccess": true });
    granted["status"] = json!({ "allocation": { "devices": { "results": [result] } } });
    let refused = cluster.admin.update(&format!("{claims}/plain/status"), &granted).await.unwrap_err();
    assert!(refused.to_string().contains("status.allocation.devices.results[0].adminAccess: Forbidden"), "{refused}");
    let label = json!({ "metadata": { "labels": { "resource.kubernetes.io/admin-access": "true" } } });
    cluster.admin.patch("/api/v1/namespaces/default", &label).await.unwrap();
    cluster.create(&claims, "monitor", claim(true)).await.unwrap();
    cluster.create(&templates, "monitor", json!({ "spec": claim(true) })).await.unwrap();
}

#[tokio::test]
async fn a_taint_of_a_device_says_since_when_it_is_there() {
    let cluster = Cluster::start().await;
    let slice = json!({ "spec": {
        "driver": "gpu.example.com", "pool": { "name": "p", "resourceSliceCount": 1 }, "nodeName": "n",
        "devices": [{ "name": "a", "taints": [
            { "key": "x", "effect": "NoExecute" },
            { "key": "y", "effect": "NoSchedule", "timeAdded": "2020-01-01T00:00:00Z" },
        ] }],
    } });
    let made = cluster.create(&format!("{RESOURCE}/resourceslices"), "s", slice).await.unwrap();
    let taints = &made["spec"]["devices"][0]["taints"];
    assert_eq!(taints[0]["timeAdded"], made["metadata"]["creationTimestamp"]);
    assert_eq!(taints[1]["timeAdded"], "2020-01-01T00:00:00Z");
}

#[tokio::test]
async fn whoever_writes_the_status_of_a_claim_needs_a_right_to_what_it_says() {
    let cluster = Cluster::start().await;
    let claims = format!("{RESOURCE}/namespaces/default/resourceclaims");
    let request = json!({ "name": "a", "exactly": { "deviceClassName": "gpu" } });
    let made = cluster.create(&claims, "c", json!({ "spec": { "devices": { "requests": [request] } } })).await.unwrap();
    let rule = |verbs: &[&str], resource: &str| json!({ "apiGroups": ["resource.k8s.io"], "resources": [resource], "verbs": verbs });
    let grant = async |name: &str, rules: Value| {
        let path = "/apis/rbac.authorization.k8s.io/v1";
        cluster.create(&format!("{path}/clusterroles"), name, json!({ "rules": rules })).await.unwrap();
        let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name });
        let subject = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "driver" });
        let binding = json!({ "roleRef": role, "subjects": [subject] });
        cluster.create(&format!("{path}/clusterrolebindings"), name, binding).await.unwrap();
    };
    let driver = Local::new(cluster.api.clone(), user("driver", &["system:authenticated"]), "test");
    let path = format!("{claims}/c/status");
    let device = json!({ "driver": "d.example.com", "pool": "p", "device": "x" });
    let mut allocated = made.clone();
    let mut result = device.clone();
    result["request"] = json!("a");
    allocated["status"] = json!({ "allocation": { "devices": { "results": [result] } } });
    grant("status", json!([rule(&["update"], "resourceclaims/status")])).await;
    let refused = driver.update(&path, &allocated).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "ResourceClaim.resource.k8s.io \"c\" is invalid: status.allocation: Forbidden: changing status.allocation or \
         status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"update\" permission: \
         resourceclaims.resource.k8s.io is forbidden: User \"driver\" cannot update resource \"resourceclaims/binding\" \
         in API group \"resource.k8s.io\" at the cluster scope"
    );
    grant("binding", json!([rule(&["update"], "resourceclaims/binding")])).await;
    let mut reported = driver.update(&path, &allocated).await.unwrap();
    reported["status"]["devices"] = json!([device]);
    let refused = driver.update(&path, &reported).await.unwrap_err();
    assert!(
        refused.to_string().contains("changing status.devices requires resource=\"resourceclaims/driver\""),
        "{refused}"
    );
    let mut of_driver = rule(&["arbitrary-node:update"], "resourceclaims/driver");
    of_driver["resourceNames"] = json!(["d.example.com"]);
    grant("reporting", json!([of_driver])).await;
    driver.update(&path, &reported).await.unwrap();
}
