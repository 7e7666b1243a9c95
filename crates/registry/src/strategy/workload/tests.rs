//! Mistakes in manifests of workloads, and the words for them.

use crate::strategy::check::{each_change_makes_its_mistakes, mistakes, prepared, warnings, with};
use object::{Value, json};

fn workload() -> Value {
    json!({
        "metadata": { "name": "a", "namespace": "n" },
        "spec": {
            "selector": { "matchLabels": { "app": "a" } },
            "template": {
                "metadata": { "labels": { "app": "a" } },
                "spec": { "containers": [{ "name": "a", "image": "nginx" }] },
            },
        },
    })
}

fn controller() -> Value {
    with(&workload(), "spec.selector", &json!({ "app": "a" }))
}

/// Each change that is refused once the workload is there.
fn check_update(kind: &str, cases: &[(&str, Value, &str)]) {
    for (path, value, message) in cases {
        let changed = with(&workload(), path, value);
        assert_eq!(mistakes(kind, &changed, Some(&workload())), *message, "{kind}: {path} = {value}");
    }
}

#[test]
fn every_workload_restarts_its_pods_and_selects_them() {
    let mismatch =
        "spec.template.metadata.labels: Invalid value: {\"app\":\"a\"}: `selector` does not match template `labels`";
    for (kind, words) in [
        ("Deployment", "ReplicaSet"),
        ("ReplicaSet", "ReplicaSet"),
        ("DaemonSet", "DaemonSet"),
        ("StatefulSet", "StatefulSet"),
    ] {
        each_change_makes_its_mistakes(
            kind,
            &workload(),
            &[
                ("spec.selector.matchLabels.app", json!("b"), mismatch),
                (
                    "spec.template.spec.restartPolicy",
                    json!("Never"),
                    "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
                ),
                (
                    "spec.template.spec.activeDeadlineSeconds",
                    json!(5),
                    &format!(
                        "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in {words} is not Supported"
                    ),
                ),
                ("spec.template.spec.containers", json!([]), "spec.template.spec.containers: Required value"),
            ],
        );
    }
    for kind in ["Deployment", "ReplicaSet", "StatefulSet"] {
        let both = format!("spec.selector: Required value\n{mismatch}");
        each_change_makes_its_mistakes(
            kind,
            &workload(),
            &[
                ("spec.selector", Value::Null, &both),
                ("spec.replicas", json!(-1), "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
            ],
        );
    }
}

#[test]
fn a_selector_does_not_change() {
    for kind in ["Deployment", "ReplicaSet", "DaemonSet"] {
        let mut changed = with(&workload(), "spec.selector.matchLabels", &json!({ "app": "a", "more": "b" }));
        changed["spec"]["template"]["metadata"]["labels"]["more"] = json!("b");
        assert_eq!(
            mistakes(kind, &changed, Some(&workload())),
            "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"a\",\"more\":\"b\"}}: field is immutable",
            "{kind}"
        );
    }
}

#[test]
fn deployments_replace_pods_in_a_way_that_ends() {
    each_change_makes_its_mistakes(
        "Deployment",
        &workload(),
        &[
            (
                "spec.strategy.rollingUpdate",
                json!({ "maxSurge": 0, "maxUnavailable": "0%" }),
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when `maxSurge` is 0",
            ),
            (
                "spec.strategy.rollingUpdate",
                json!({ "maxUnavailable": "101%" }),
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%",
            ),
            (
                "spec.strategy.rollingUpdate",
                json!({ "maxSurge": "many" }),
                "spec.strategy.rollingUpdate.maxSurge: Invalid value: \"many\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
            ),
            (
                "spec.strategy",
                json!({ "type": "Recreate", "rollingUpdate": {} }),
                "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
            ),
            (
                "spec.strategy",
                json!({ "type": "Sudden" }),
                "spec.strategy: Unsupported value: {\"type\":\"Sudden\"}: supported values: \"Recreate\", \"RollingUpdate\"",
            ),
            (
                "spec.progressDeadlineSeconds",
                json!(0),
                "spec.progressDeadlineSeconds: Invalid value: 0: must be greater than minReadySeconds",
            ),
        ],
    );
}

#[test]
fn daemon_sets_count_their_templates_for_old_clients() {
    each_change_makes_its_mistakes(
        "DaemonSet",
        &workload(),
        &[
            (
                "spec.updateStrategy.rollingUpdate",
                json!({ "maxSurge": 1, "maxUnavailable": 1 }),
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
            ),
            (
                "spec.updateStrategy.rollingUpdate",
                json!({ "maxSurge": 0, "maxUnavailable": 0 }),
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
            ),
        ],
    );
    let first = prepared("DaemonSet", &workload(), None);
    let key = "deprecated.daemonset.template.generation";
    assert_eq!(first["metadata"]["annotations"][key], "1");
    let changed = with(&workload(), "spec.template.spec.containers.0.image", &json!("other"));
    assert_eq!(prepared("DaemonSet", &changed, Some(&first))["metadata"]["annotations"][key], "2");
    assert_eq!(prepared("DaemonSet", &workload(), Some(&first))["metadata"]["annotations"][key], "1");
}

#[test]
fn stateful_sets_keep_what_their_pods_rely_on() {
    let claim = json!({ "metadata": { "name": "data" }, "spec": { "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } } });
    let with_claim = with(&workload(), "spec.volumeClaimTemplates.0", &claim);
    let mount = json!({ "name": "data", "mountPath": "/data" });
    let mounted = with(&with_claim, "spec.template.spec.containers.0.volumeMounts.0", &mount);
    assert_eq!(mistakes("StatefulSet", &mounted, None), "");
    each_change_makes_its_mistakes(
        "StatefulSet",
        &with_claim,
        &[
            (
                "spec.volumeClaimTemplates.0.spec.resources",
                json!({}),
                "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
            ),
            (
                "spec.podManagementPolicy",
                json!("Random"),
                "spec.podManagementPolicy: Invalid value: \"Random\": must be 'OrderedReady' or 'Parallel'",
            ),
            (
                "spec.updateStrategy",
                json!({ "type": "OnDelete", "rollingUpdate": { "partition": 1 } }),
                "spec.updateStrategy.rollingUpdate: Invalid value: {\"partition\":1}: only allowed for updateStrategy 'RollingUpdate'",
            ),
            (
                "spec.persistentVolumeClaimRetentionPolicy.whenScaled",
                json!("Keep"),
                "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: \"Keep\": supported values: \"Retain\", \"Delete\"",
            ),
        ],
    );
    let refused = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    check_update(
        "StatefulSet",
        &[
            ("spec.serviceName", json!("other"), refused),
            ("spec.podManagementPolicy", json!("Parallel"), refused),
            ("spec.replicas", json!(3), ""),
            ("spec.template.spec.containers.0.image", json!("other"), ""),
        ],
    );
}

#[test]
fn replication_controllers_take_labels_from_their_pods() {
    let bare = with(&controller(), "spec.selector", &Value::Null);
    let object = prepared("ReplicationController", &bare, None);
    assert_eq!(object["spec"]["selector"], json!({ "app": "a" }));
    assert_eq!(object["metadata"]["labels"], json!({ "app": "a" }));
    each_change_makes_its_mistakes(
        "ReplicationController",
        &controller(),
        &[
            (
                "spec.selector.app",
                json!("b"),
                "spec.template.metadata.labels: Invalid value: {\"app\":\"a\"}: `selector` does not match template `labels`",
            ),
            ("spec.template", Value::Null, "spec.template: Required value"),
        ],
    );
}

#[test]
fn defaults_are_those_of_the_kinds() {
    for (kind, path, expected) in [
        (
            "Deployment",
            "/spec/strategy",
            json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" } }),
        ),
        ("Deployment", "/spec/progressDeadlineSeconds", json!(600)),
        ("ReplicaSet", "/spec/replicas", json!(1)),
        (
            "DaemonSet",
            "/spec/updateStrategy",
            json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 1 } }),
        ),
        (
            "StatefulSet",
            "/spec/updateStrategy",
            json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } }),
        ),
        (
            "StatefulSet",
            "/spec/persistentVolumeClaimRetentionPolicy",
            json!({ "whenDeleted": "Retain", "whenScaled": "Retain" }),
        ),
        ("StatefulSet", "/spec/podManagementPolicy", json!("OrderedReady")),
    ] {
        assert_eq!(prepared(kind, &workload(), None).pointer(path), Some(&expected), "{kind} {path}");
    }
}

#[test]
fn revisions_do_not_change() {
    let revision = json!({ "metadata": { "name": "a" }, "data": { "x": 1 }, "revision": 1 });
    each_change_makes_its_mistakes(
        "ControllerRevision",
        &revision,
        &[("data", Value::Null, "data: Required value: data is mandatory")],
    );
    let changed = with(&revision, "data.x", &json!(2));
    assert_eq!(
        mistakes("ControllerRevision", &changed, Some(&revision)),
        "data: Invalid value: {\"x\":2}: field is immutable"
    );
}

#[test]
fn warnings_name_the_template() {
    let manifest = with(&workload(), "spec.template.spec.nodeSelector", &json!({ "beta.kubernetes.io/os": "linux" }));
    let manifest = with(&manifest, "metadata.name", &json!("a.b"));
    assert_eq!(
        warnings("Deployment", &manifest),
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]\nspec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead"
    );
}
