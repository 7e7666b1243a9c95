//! An object of every kind: by hand where its rules ask for something, otherwise just a name.

use object::{Value, json};
use testkit::https::Client;

/// Waits for what other objects need: pods run as the account that a loop makes in every namespace.
pub(crate) async fn prepare(client: &Client) {
    let account = "/api/v1/namespaces/default/serviceaccounts?watch=true&fieldSelector=metadata.name=default";
    let mut watch = client.connect().await.unwrap().watch(account).await.unwrap();
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ADDED", "{event}");
}

/// An object of this kind that may be created.
pub(crate) fn example(version: &str, kind: &str) -> Value {
    let mut object = match specific(kind, version) {
        Value::Null => json!({}),
        object => object,
    };
    object["apiVersion"] = json!(version);
    object["kind"] = json!(kind);
    if object["metadata"].is_null() {
        object["metadata"] = json!({});
    }
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = json!(format!("example-{}", kind.to_lowercase()));
    }
    object
}

fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "example" } },
        "spec": { "containers": [{ "name": "main", "image": "example", "resources": { "limits": { "cpu": "0.5" } } }] },
    })
}

fn workload(more: &Value) -> Value {
    let mut spec = json!({ "selector": { "matchLabels": { "app": "example" } }, "template": template() });
    for (field, value) in more.as_object().expect("more fields") {
        spec[field] = value.clone();
    }
    json!({ "spec": spec })
}

fn specific(kind: &str, version: &str) -> Value {
    let access = admission(kind);
    if !access.is_null() {
        return access;
    }
    let storage = storage_and_devices(kind);
    if !storage.is_null() {
        return storage;
    }
    match kind {
        "Pod" => json!({ "spec": template()["spec"] }),
        "PodTemplate" => json!({ "template": template() }),
        "Deployment" | "ReplicaSet" => workload(&json!({ "replicas": 2 })),
        "DaemonSet" => workload(&json!({})),
        "StatefulSet" => workload(&json!({ "serviceName": "example" })),
        "ReplicationController" => json!({ "spec": { "selector": { "app": "example" }, "template": template() } }),
        "Job" => json!({ "spec": { "template": job_template() } }),
        "CronJob" => {
            json!({ "spec": { "schedule": "*/5 * * * *", "jobTemplate": { "spec": { "template": job_template() } } } })
        }
        "ControllerRevision" => json!({ "data": { "a": [1, "b", null] }, "revision": 7 }),
        "ConfigMap" => json!({ "data": { "text": "a\nb" }, "binaryData": { "bytes": "AAEC/w==" } }),
        "Secret" => json!({ "data": { "a": "YQ==" } }),
        "Service" => json!({ "spec": { "ports": [{ "port": 80, "targetPort": "http" }], "selector": { "a": "b" } } }),
        "Endpoints" => json!({ "subsets": [{ "addresses": [{ "ip": "192.0.2.1" }], "ports": [{ "port": 80 }] }] }),
        "EndpointSlice" => json!({ "addressType": "IPv4", "endpoints": [{ "addresses": ["192.0.2.1"] }] }),
        "Event" if version == "v1" => {
            json!({ "involvedObject": { "namespace": "default", "name": "x" }, "firstTimestamp": "2026-01-02T03:04:05Z" })
        }
        "Event" => json!({
            "eventTime": "2026-01-02T03:04:05.000006Z", "regarding": { "namespace": "default" }, "type": "Normal",
            "reportingController": "example.com/c", "reportingInstance": "i", "action": "a", "reason": "r",
        }),
        "LimitRange" => json!({ "spec": { "limits": [{ "type": "Container", "max": { "cpu": "1500m" } }] } }),
        "ResourceQuota" => json!({ "spec": { "hard": { "configmaps": "1k" } } }),
        "Node" => json!({ "spec": { "podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"] } }),
        "Lease" => json!({ "spec": { "holderIdentity": "me", "renewTime": "2026-01-02T03:04:05.000006Z" } }),
        "HorizontalPodAutoscaler" => json!({
            "spec": { "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "a" }, "maxReplicas": 3 },
        }),
        "PodDisruptionBudget" => {
            json!({ "spec": { "minAvailable": "50%", "selector": { "matchLabels": { "a": "b" } } } })
        }
        "PriorityClass" => json!({ "value": 7 }),
        "RuntimeClass" => json!({ "handler": "runc" }),
        "Ingress" => json!({ "spec": { "defaultBackend": { "service": { "name": "a", "port": { "number": 80 } } } } }),
        "IngressClass" => json!({ "spec": { "controller": "example.com/c" } }),
        "NetworkPolicy" => json!({ "spec": { "podSelector": {}, "policyTypes": ["Ingress"] } }),
        "IPAddress" => json!({
            "metadata": { "name": "192.0.2.7" },
            "spec": { "parentRef": { "resource": "services", "namespace": "default", "name": "a" } },
        }),
        "ServiceCIDR" => json!({ "spec": { "cidrs": ["192.0.2.0/24"] } }),
        "CustomResourceDefinition" => custom_resource_definition(),
        "APIService" => json!({
            "metadata": { "name": "v1.example.com" },
            "spec": {
                "group": "example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
                "service": { "namespace": "default", "name": "a" }, "insecureSkipTLSVerify": true,
            },
        }),
        _ => Value::Null,
    }
}

fn job_template() -> Value {
    let mut template = template();
    template["spec"]["restartPolicy"] = json!("Never");
    template
}

fn custom_resource_definition() -> Value {
    json!({
        "metadata": { "name": "examples.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "examples", "singular": "example", "kind": "Example", "listKind": "ExampleList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": { "size": { "type": "integer", "default": 3 } } },
                } } },
            }],
        },
    })
}

/// Who may do what, and what is looked at before it is stored.
fn admission(kind: &str) -> Value {
    let rule = json!({ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"] });
    let webhook = json!([{
        "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": { "url": "https://192.0.2.1/" },
        // Of a namespace that is not there, so that it looks at nothing of these tests.
        "rules": [rule], "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "nowhere" } },
    }]);
    let constraints = json!({
        "resourceRules": [rule], "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "nowhere" } },
    });
    match kind {
        "Role" | "ClusterRole" => json!({ "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }] }),
        "RoleBinding" | "ClusterRoleBinding" => json!({
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
            "subjects": [{ "kind": "ServiceAccount", "namespace": "default", "name": "default" }],
        }),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => json!({ "webhooks": webhook }),
        "ValidatingAdmissionPolicy" => json!({
            "spec": { "matchConstraints": constraints, "validations": [{ "expression": "true" }] },
        }),
        "ValidatingAdmissionPolicyBinding" => json!({ "spec": { "policyName": "a", "validationActions": ["Deny"] } }),
        "MutatingAdmissionPolicy" => json!({
            "spec": {
                "matchConstraints": constraints, "reinvocationPolicy": "Never",
                "mutations": [{ "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": "Object{}" } }],
            },
        }),
        "MutatingAdmissionPolicyBinding" => json!({ "spec": { "policyName": "a" } }),
        "CertificateSigningRequest" => json!({
            "spec": { "request": CERTIFICATE_REQUEST, "signerName": "example.com/signer", "usages": ["client auth"] },
        }),
        "FlowSchema" => {
            json!({ "spec": { "priorityLevelConfiguration": { "name": "exempt" }, "matchingPrecedence": 9000 } })
        }
        "PriorityLevelConfiguration" => json!({
            "spec": { "type": "Limited", "limited": { "limitResponse": { "type": "Reject" } } },
        }),
        _ => Value::Null,
    }
}

fn storage_and_devices(kind: &str) -> Value {
    match kind {
        "PersistentVolume" => json!({
            "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "hostPath": { "path": "/tmp" },
            },
        }),
        "PersistentVolumeClaim" => json!({
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
        }),
        "StorageClass" => json!({ "provisioner": "example.com/p" }),
        "CSINode" => json!({ "spec": { "drivers": [{ "name": "example.com", "nodeID": "a" }] } }),
        "CSIDriver" => json!({ "spec": { "attachRequired": false } }),
        "CSIStorageCapacity" => json!({ "storageClassName": "a", "capacity": "1Ti" }),
        "VolumeAttachment" => json!({
            "spec": { "attacher": "example.com", "nodeName": "a", "source": { "persistentVolumeName": "a" } },
        }),
        "VolumeAttributesClass" => json!({ "driverName": "example.com", "parameters": { "a": "b" } }),
        "ResourceClaim" => json!({ "spec": claim() }),
        "ResourceClaimTemplate" => json!({ "spec": { "spec": claim() } }),
        "PodGroup" => json!({ "spec": { "schedulingPolicy": { "gang": { "minCount": 2 } } } }),
        "Workload" => {
            let templates = json!([{ "name": "workers", "schedulingPolicy": { "gang": { "minCount": 2 } } }]);
            let controller = json!({ "apiGroup": "batch", "kind": "Job", "name": "training" });
            json!({ "spec": { "controllerRef": controller, "podGroupTemplates": templates } })
        }
        "DeviceClass" => json!({ "spec": { "selectors": [{ "cel": { "expression": "true" } }] } }),
        "DeviceTaintRule" => json!({
            "spec": { "deviceSelector": { "pool": "a" }, "taint": { "key": "k", "effect": "NoSchedule" } },
        }),
        "ResourceSlice" => json!({
            "spec": {
                "driver": "example.com", "nodeName": "a", "devices": [{ "name": "d" }],
                "pool": { "name": "a", "generation": 1, "resourceSliceCount": 1 },
            },
        }),
        _ => Value::Null,
    }
}

fn claim() -> Value {
    json!({ "devices": { "requests": [{ "name": "a", "exactly": { "deviceClassName": "example.com" } }] } })
}

/// A request for a certificate of nobody, in PEM, in base64.
const CERTIFICATE_REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlITE1IUUNBUUF3RWpFUU1BNEdBMVVFQXd3SFpYaGhiWEJzWlRCWk1CTUdCeXFHU000OUFnRUdDQ3FHU000OQpBd0VIQTBJQUJLUjcyd2xiaHVJd1R4TW5CYjN1a0h6a1M0VnRDZXpTQ1NkWVNRNkh1QnY2UWxlbW9ZT3ZiWmowCmFCL1MvZ1NHbFZOSDRaRWlubFNMVXJvdTJaUHBlcG1nQURBS0JnZ3Foa2pPUFFRREFnTkhBREJFQWlBZjQyTEkKbERVQ2ZhUjVsVGsvUnVZWVlBR0d4aGVjMkFLWTczYmVuMS8xbUFJZ1JaYkJQYXVFWEVaWXN1ZU92ZUZqOW9JNQpQTmgwVzJIbmVYcW52bmt6eGxNPQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
