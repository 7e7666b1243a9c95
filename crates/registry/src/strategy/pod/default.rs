//! What a pod is when its author did not say: the defaults of a pod's spec, and those only a pod gets.
//!
//! A template gets fewer defaults than a pod, so that a default that is added later does not change the templates that
//! exist and roll out their workloads.

use super::resources;
use object::{Edit, Quantity, Value, View, json};

/// Fields of a spec that are simply something when they are nothing.
const SPEC: [(&str, &str); 3] =
    [("dnsPolicy", "ClusterFirst"), ("restartPolicy", "Always"), ("schedulerName", "default-scheduler")];
const GRACE_PERIOD_SECONDS: i64 = 30;
const CONTAINER: [(&str, &str); 2] =
    [("terminationMessagePath", "/dev/termination-log"), ("terminationMessagePolicy", "File")];
const PROBE: [(&str, i64); 4] =
    [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)];
const HTTP_GET: [(&str, &str); 2] = [("path", "/"), ("scheme", "HTTP")];
/// `rw-r--r--`
const FILE_MODE: i64 = 0o644;
const TOKEN_EXPIRATION_SECONDS: i64 = 3600;
/// Volumes whose files have a mode.
const FILE_VOLUMES: [&str; 4] = ["secret", "configMap", "downwardAPI", "projected"];
pub(super) const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// Annotations that stood for fields once; a node must not take them for those.
const DEAD_ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

/// Sets a field that is absent or has its zero value, which Kubernetes cannot tell apart.
fn set_zero(object: &mut Value, field: &str, value: impl Into<Value>) {
    let zero = match object.at(field) {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        _ => false,
    };
    if zero {
        object.set(field, value);
    }
}

pub(super) fn pod(pod: &mut Value) {
    annotations(pod);
    if let Some(status) = pod.object("status") {
        addresses(status);
    }
    let Some(spec) = pod.object("spec") else { return };
    default_spec(spec);
    let host_network = spec.flag("hostNetwork");
    for list in ["containers", "initContainers"] {
        for container in spec.each(list) {
            if let Some(resources) = container.object("resources") {
                resources::requests_from_limits(resources);
            }
            if host_network {
                container.each("ports").for_each(|port| {
                    let number = port.at("containerPort").clone();
                    set_zero(port, "hostPort", number);
                });
            }
        }
    }
    resources::default_pod_level(spec);
    spec.set_default("enableServiceLinks", true);
}

/// The first address and the list of all of them mean the same; old nodes write only the former, so it wins.
fn addresses(status: &mut Value) {
    let first = status.items("podIPs").first().map_or("", |first| first.text("ip"));
    match status.text("podIP") {
        address if address == first => {}
        "" => {
            let first = first.to_owned();
            status.set("podIP", first);
        }
        address => {
            let list = json!([{ "ip": address }]);
            status.set("podIPs", list);
        }
    }
}

/// The defaults of a pod template: those of its spec.
pub fn default_template(template: &mut Value) {
    annotations(template);
    if let Some(spec) = template.object("spec") {
        default_spec(spec);
    }
}

fn annotations(object: &mut Value) {
    let Some(annotations) = object.object("metadata").and_then(|metadata| metadata.object("annotations")) else {
        return;
    };
    for key in DEAD_ANNOTATIONS {
        annotations.remove(key);
    }
}

/// The defaults of a pod's spec, wherever it stands.
pub fn default_spec(spec: &mut Value) {
    SPEC.iter().for_each(|(field, value)| set_zero(spec, field, *value));
    spec.set_default("terminationGracePeriodSeconds", GRACE_PERIOD_SECONDS);
    spec.object_or_new("securityContext");
    service_account(spec);
    spec.each("volumes").for_each(volume);
    for list in CONTAINER_LISTS {
        spec.each(list).for_each(container);
    }
    if let Some(resources) = spec.object("resources") {
        resource_lists(resources);
    }
    if let Some(overhead) = spec.object("overhead") {
        round_up(overhead);
    }
}

/// The old name of the field and the new one mean the same; the new one wins.
fn service_account(spec: &mut Value) {
    let name = match spec.text("serviceAccountName") {
        "" => spec.text("serviceAccount"),
        name => name,
    };
    if name.is_empty() || (name == spec.text("serviceAccount") && name == spec.text("serviceAccountName")) {
        return;
    }
    let name = name.to_owned();
    spec.set("serviceAccountName", name.as_str());
    spec.set("serviceAccount", name);
}

fn container(container: &mut Value) {
    let policy = pull_policy(container.text("image"));
    set_zero(container, "imagePullPolicy", policy);
    CONTAINER.iter().for_each(|(field, value)| set_zero(container, field, *value));
    container.each("ports").for_each(|port| set_zero(port, "protocol", "TCP"));
    for variable in container.each("env") {
        if let Some(source) = variable.object("valueFrom") {
            field_references(source);
        }
    }
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.object(field) else { continue };
        PROBE.iter().for_each(|(field, value)| set_zero(probe, field, *value));
        handler(probe);
    }
    if let Some(lifecycle) = container.object("lifecycle") {
        for field in ["postStart", "preStop"] {
            lifecycle.object(field).into_iter().for_each(handler);
        }
    }
    if let Some(resources) = container.object("resources") {
        resource_lists(resources);
    }
}

fn handler(handler: &mut Value) {
    if let Some(get) = handler.object("httpGet") {
        HTTP_GET.iter().for_each(|(field, value)| set_zero(get, field, *value));
    }
    if let Some(grpc) = handler.object("grpc") {
        grpc.set_default("service", "");
    }
}

fn field_references(source: &mut Value) {
    if let Some(reference) = source.object("fieldRef") {
        set_zero(reference, "apiVersion", "v1");
    }
    if let Some(reference) = source.object("resourceFieldRef") {
        reference.set_default("divisor", "0");
    }
}

fn resource_lists(resources: &mut Value) {
    ["limits", "requests"].iter().for_each(|list| {
        if let Some(list) = resources.object(list) {
            round_up(list);
        }
    });
}

/// Nothing finer than a thousandth is kept of a resource.
fn round_up(list: &mut Value) {
    let Value::Object(list) = list else { return };
    for quantity in list.values_mut() {
        let Some(text) = quantity.as_str().filter(|text| text.ends_with(['n', 'u'])) else { continue };
        if let Ok(parsed) = text.parse::<Quantity>() {
            *quantity = Value::from(Quantity::from_millis(parsed.millis()).to_string());
        }
    }
}

fn volume(volume: &mut Value) {
    let Value::Object(fields) = &*volume else { return };
    if fields.keys().all(|field| field == "name") {
        volume.object_or_new("emptyDir");
        return;
    }
    for source in FILE_VOLUMES {
        if let Some(source) = volume.object(source) {
            source.set_default("defaultMode", FILE_MODE);
        }
    }
    if let Some(path) = volume.object("hostPath") {
        path.set_default("type", "");
    }
    if let Some(image) = volume.object("image") {
        let policy = pull_policy(image.text("reference"));
        set_zero(image, "pullPolicy", policy);
    }
    if let Some(downward) = volume.object("downwardAPI") {
        downward.each("items").for_each(field_references);
    }
    if let Some(claim) = volume
        .object("ephemeral")
        .and_then(|ephemeral| ephemeral.object("volumeClaimTemplate"))
        .and_then(|template| template.object("spec"))
    {
        claim_spec(claim);
    }
    if let Some(projected) = volume.object("projected") {
        projected.each("sources").for_each(projection);
    }
}

/// The defaults of what a claim asks for, in a volume or in a stateful set.
pub(in crate::strategy) fn claim_spec(spec: &mut Value) {
    spec.set_default("volumeMode", "Filesystem");
    if let Some(resources) = spec.object("resources") {
        resource_lists(resources);
    }
}

fn projection(source: &mut Value) {
    if let Some(token) = source.object("serviceAccountToken") {
        token.set_default("expirationSeconds", TOKEN_EXPIRATION_SECONDS);
    }
    if let Some(downward) = source.object("downwardAPI") {
        downward.each("items").for_each(field_references);
    }
}

/// What is called `latest`, or nothing, may be another image tomorrow.
fn pull_policy(image: &str) -> &'static str {
    if image_tag(image) == Some("latest") { "Always" } else { "IfNotPresent" }
}

/// The tag of an image; none if the name names a digest instead, or makes no sense.
fn image_tag(image: &str) -> Option<&str> {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let (path, tag) = match name[last..].split_once(':') {
        Some((_, tag)) => (&name[..name.len() - tag.len() - 1], Some(tag)),
        None => (name, None),
    };
    let repository = match path.split_once('/') {
        // A registry may be written with capitals and a port, what is in it may not.
        Some((registry, rest)) if registry.contains(['.', ':']) || registry == "localhost" => rest,
        _ => path,
    };
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-/".contains(&byte);
    if repository.is_empty() || !repository.bytes().all(good) {
        return None;
    }
    match (tag, digest) {
        (None, None) => Some("latest"),
        (tag, _) => tag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pull_policy_follows_the_tag() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.27", "IfNotPresent"),
            ("registry.example:5000/team/app", "Always"),
            ("registry.example:5000/team/app:v1", "IfNotPresent"),
            ("nginx@sha256:0000", "IfNotPresent"),
            ("nginx:latest@sha256:0000", "Always"),
            ("", "IfNotPresent"),
            ("Not An Image", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }

    #[test]
    fn a_pod_of_two_lines_becomes_a_whole_one() {
        let mut object = json!({ "spec": { "containers": [{ "name": "a", "image": "nginx", "resources": {} }] } });
        pod(&mut object);
        let expected = json!({ "spec": {
            "containers": [{
                "name": "a", "image": "nginx", "imagePullPolicy": "Always", "resources": {},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "restartPolicy": "Always",
            "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30,
        } });
        assert_eq!(object, expected);
        pod(&mut object);
        assert_eq!(object, expected);
    }

    #[test]
    fn parts_of_a_pod_have_defaults_too() {
        for (part, before, after) in [
            ("volumes", json!([{ "name": "v" }]), json!([{ "name": "v", "emptyDir": {} }])),
            (
                "volumes",
                json!([{ "name": "v", "configMap": {} }, { "name": "w", "hostPath": { "path": "/" } }]),
                json!([{ "name": "v", "configMap": { "defaultMode": 420 } },
                    { "name": "w", "hostPath": { "path": "/", "type": "" } }]),
            ),
            (
                "volumes",
                json!([{ "name": "v", "projected": { "sources": [{ "serviceAccountToken": { "path": "t" } },
                    { "downwardAPI": { "items": [{ "fieldRef": { "fieldPath": "metadata.name" } }] } }] } }]),
                json!([{ "name": "v", "projected": { "defaultMode": 420, "sources": [
                    { "serviceAccountToken": { "path": "t", "expirationSeconds": 3600 } },
                    { "downwardAPI": { "items": [{ "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.name" } }] } },
                ] } }]),
            ),
            (
                "volumes",
                json!([{ "name": "v", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } }]),
                json!([{ "name": "v", "ephemeral": { "volumeClaimTemplate": { "spec": { "volumeMode": "Filesystem" } } } }]),
            ),
            ("serviceAccount", json!("robot"), json!("robot")),
        ] {
            let mut spec = json!({});
            spec.set(part, before);
            default_spec(&mut spec);
            assert_eq!(spec.at(part), &after);
            if part == "serviceAccount" {
                assert_eq!(spec.text("serviceAccountName"), "robot");
            }
        }
    }

    #[test]
    fn the_first_address_is_the_first_of_all() {
        for (before, after) in [
            (json!({ "podIP": "1.2.3.4" }), json!({ "podIP": "1.2.3.4", "podIPs": [{ "ip": "1.2.3.4" }] })),
            (
                json!({ "podIPs": [{ "ip": "1.2.3.4" }] }),
                json!({ "podIP": "1.2.3.4", "podIPs": [{ "ip": "1.2.3.4" }] }),
            ),
            (json!({ "phase": "Pending" }), json!({ "phase": "Pending" })),
        ] {
            let mut object = json!({ "status": before });
            pod(&mut object);
            assert_eq!(object["status"], after);
        }
    }

    #[test]
    fn parts_of_a_container_have_defaults_too() {
        let mut object = json!({ "spec": { "hostNetwork": true, "containers": [{
            "image": "nginx:1",
            "ports": [{ "containerPort": 80 }],
            "livenessProbe": { "httpGet": { "port": 80 }, "periodSeconds": 0 },
            "lifecycle": { "preStop": { "httpGet": { "port": 80 } } },
            "env": [{ "name": "A", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                { "name": "B", "valueFrom": { "resourceFieldRef": { "resource": "limits.cpu" } } }],
            "resources": { "limits": { "cpu": "1", "memory": "1500u" }, "requests": { "cpu": "500m" } },
        }] } });
        pod(&mut object);
        let container = &object["spec"]["containers"][0];
        assert_eq!(container["ports"][0], json!({ "containerPort": 80, "hostPort": 80, "protocol": "TCP" }));
        assert_eq!(
            container["livenessProbe"],
            json!({ "httpGet": { "port": 80, "path": "/", "scheme": "HTTP" }, "periodSeconds": 10, "timeoutSeconds": 1,
                "successThreshold": 1, "failureThreshold": 3 })
        );
        assert_eq!(container["lifecycle"]["preStop"]["httpGet"]["scheme"], "HTTP");
        assert_eq!(container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
        assert_eq!(container["env"][1]["valueFrom"]["resourceFieldRef"]["divisor"], "0");
        assert_eq!(container["resources"]["requests"], json!({ "cpu": "500m", "memory": "2m" }));
    }
}
