//! What may change of a pod, and what its author is warned of.

use crate::strategy::check::{mistakes, prepared, warnings, with};
use crate::strategy::pod;
use object::field::Errors;
use object::{Edit, Value, json};

fn manifest() -> Value {
    json!({
        "metadata": { "name": "a", "namespace": "n", "uid": "1" },
        "spec": { "containers": [{ "name": "a", "image": "nginx:1", "resources": { "requests": { "cpu": "1" } } }],
            "tolerations": [{ "key": "a", "operator": "Exists" }] },
    })
}

fn texts(errors: &Errors) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn little_of_a_pod_changes() {
    for (path, value, message) in [
        ("spec.containers.0.image", json!("nginx:2"), ""),
        ("spec.activeDeadlineSeconds", json!(5), ""),
        ("spec.tolerations.1", json!({ "key": "b", "operator": "Exists" }), ""),
        ("metadata.labels", json!({ "a": "b" }), ""),
        ("spec.imagePullSecrets", json!([]), ""),
        (
            "spec.tolerations.0",
            json!({ "key": "b", "operator": "Exists" }),
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
        ),
        (
            "spec.containers.1",
            json!({ "name": "b", "image": "c" }),
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        (
            "spec.schedulingGates.0.name",
            json!("g"),
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'",
        ),
        (
            "metadata.annotations",
            json!({ "kubernetes.io/config.mirror": "x" }),
            "metadata.annotations[kubernetes.io/config.mirror]: Invalid value: \"x\": must set spec.nodeName if mirror pod annotation is set\nmetadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation",
        ),
    ] {
        assert_eq!(mistakes("Pod", &with(&manifest(), path, &value), Some(&manifest())), message, "{path}");
    }
}

#[test]
fn a_change_that_is_refused_is_shown() {
    let changed = with(&manifest(), "spec.hostname", &json!("other"));
    assert_eq!(
        mistakes("Pod", &changed, Some(&manifest())),
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n@@ -15,6 +15,7 @@\n  ],\n  \"dnsPolicy\": \"ClusterFirst\",\n  \"enableServiceLinks\": true,\n+ \"hostname\": \"other\",\n  \"restartPolicy\": \"Always\",\n  \"schedulerName\": \"default-scheduler\",\n  \"securityContext\": {},\n"
    );
}

#[test]
fn a_gated_pod_may_be_told_more_of_where_to_run() {
    let gated = with(&manifest(), "spec.schedulingGates.0.name", &json!("g"));
    let gated = with(&gated, "spec.nodeSelector", &json!({ "zone": "a" }));
    for (path, value, message) in [
        ("spec.nodeSelector.disk", json!("fast"), ""),
        ("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", json!([]), ""),
        (
            "spec.nodeSelector.zone",
            json!("b"),
            "spec.nodeSelector: Invalid value: {\"zone\":\"b\"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        ),
    ] {
        assert_eq!(mistakes("Pod", &with(&gated, path, &value), Some(&gated)), message, "{path}");
    }
}

#[test]
fn ephemeral_containers_come_and_stay() {
    let old = prepared("Pod", &manifest(), None);
    let ephemeral = json!({ "name": "e", "image": "busybox", "targetContainerName": "a" });
    let change = |pod: &Value, path: &str, value: &Value| prepared("Pod", &with(pod, path, value), Some(pod));
    let mut with_one = change(&old, "spec.ephemeralContainers.0", &ephemeral);
    with_one.object_or_new("spec").set("hostname", "ignored");
    pod::prepare_ephemeral_containers(&mut with_one, &old);
    assert_eq!(with_one["spec"].get("hostname"), None);
    let check = |new: &Value, old: &Value| {
        let mut errors = Errors::new();
        pod::validate_ephemeral_containers(new, old, &mut errors);
        texts(&errors)
    };
    assert_eq!(check(&with_one, &old), "");
    assert_eq!(
        check(&old, &with_one),
        "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be removed\n"
    );
    let probed = with(&with_one, "spec.ephemeralContainers.0.livenessProbe", &json!({ "exec": { "command": ["a"] } }));
    assert_eq!(
        check(&probed, &old),
        "spec.ephemeralContainers[0].livenessProbe: Forbidden: cannot be set for an Ephemeral Container"
    );
    let lost = with(&with_one, "spec.ephemeralContainers.0.targetContainerName", &json!("z"));
    assert_eq!(check(&lost, &old), "spec.ephemeralContainers[0].targetContainerName: Not found: \"z\"");
}

#[test]
fn a_resize_changes_processors_and_memory_and_not_the_class() {
    let old = prepared("Pod", &manifest(), None);
    for (path, value, message) in [
        ("spec.containers.0.resources.requests.cpu", json!("2"), ""),
        ("spec.containers.0.image", json!("ignored"), ""),
        (
            "spec.containers.0.resources.requests",
            json!({}),
            "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing\nspec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
        ),
        (
            "spec.containers.0.resources.requests.ephemeral-storage",
            json!("1Gi"),
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
        (
            "spec.containers.0.name",
            json!("b"),
            "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
        ),
    ] {
        let mut new = with(&old, path, &value);
        pod::prepare_resize(&mut new, &old);
        let mut errors = Errors::new();
        pod::validate_resize(&new, &old, &mut errors);
        assert_eq!(texts(&errors), message, "{path}");
    }
}

#[test]
fn a_container_that_has_ended_does_not_run_again() {
    let never = with(&manifest(), "spec.restartPolicy", &json!("Never"));
    let old = prepared("Pod", &never, None);
    let ended = json!([{ "name": "a", "state": { "terminated": { "exitCode": 1 } } }]);
    let running = json!([{ "name": "a", "state": { "running": {} } }]);
    let old = with(&old, "status.containerStatuses", &ended);
    let mut errors = Errors::new();
    pod::STRATEGY.validate_status.unwrap()(&with(&old, "status.containerStatuses", &running), &old, &mut errors);
    assert_eq!(
        texts(&errors),
        "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
    );
}

#[test]
fn what_is_allowed_and_unwise_is_said() {
    let env = json!([{ "name": "A", "value": "1" }, { "name": "A", "value": "2" }, { "name": "A", "value": "$(A)3" }]);
    let port = json!({ "containerPort": 80, "name": "web" });
    for (path, value, expected) in [
        ("metadata.labels", json!({ "a": "b" }), ""),
        (
            "spec.containers.0.env",
            env,
            "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
        ),
        (
            "spec.containers.0.ports",
            json!([port, { "containerPort": 80 }]),
            "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
        ),
        (
            "spec.containers.0.resources.limits",
            json!({ "memory": "1500m" }),
            "spec.containers[0].resources.limits[memory]: fractional byte value \"1500m\" is invalid, must be an integer\nspec.containers[0].resources.requests[memory]: fractional byte value \"1500m\" is invalid, must be an integer",
        ),
        (
            "spec.volumes.0",
            json!({ "name": "v", "gitRepo": { "repository": "r" } }),
            "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
        ),
        (
            "spec.volumes.0",
            json!({ "name": "v", "configMap": { "name": "c", "items": [{ "key": "a", "path": "x" }, { "key": "b", "path": "x/y" }] } }),
            "volume \"v\" (ConfigMap \"c\"): overlapping paths: \"x/y\" with \"x\"",
        ),
        (
            "spec.topologySpreadConstraints.0",
            json!({ "maxSkew": 1, "topologyKey": "failure-domain.beta.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway" }),
            "spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead\nspec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
        ),
        (
            "spec.terminationGracePeriodSeconds",
            json!(-1),
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        ),
        (
            "metadata.annotations",
            json!({ "container.apparmor.security.beta.kubernetes.io/a": "runtime/default" }),
            "metadata.annotations[container.apparmor.security.beta.kubernetes.io/a]: deprecated since v1.30; use the \"appArmorProfile\" field instead",
        ),
    ] {
        assert_eq!(warnings("Pod", &with(&manifest(), path, &value)), expected, "{path}");
    }
}
