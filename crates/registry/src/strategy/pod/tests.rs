//! Mistakes in manifests of pods, and the words for them.

use crate::strategy::check::{each_change_makes_its_mistakes, mistakes, prepared, with};
use object::{Value, json};

fn pod() -> Value {
    json!({
        "metadata": { "name": "a", "namespace": "n", "uid": "1" },
        "spec": { "containers": [{ "name": "a", "image": "nginx" }] },
    })
}

/// Each change of a good pod and the mistakes it makes.
fn check(cases: &[(&str, Value, &str)]) {
    each_change_makes_its_mistakes("Pod", &pod(), cases);
}

#[test]
fn a_good_pod_has_no_mistakes() {
    check(&[("metadata.labels", json!({ "a": "b" }), "")]);
}

#[test]
fn containers_need_a_name_and_an_image() {
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    check(&[
        ("spec.containers", json!([]), "spec.containers: Required value"),
        ("spec.containers.0.name", json!(""), "spec.containers[0].name: Required value"),
        ("spec.containers.0.name", json!("A_b"), &format!("spec.containers[0].name: Invalid value: \"A_b\": {label}")),
        ("spec.containers.0.image", json!(""), "spec.containers[0].image: Required value"),
        (
            "spec.containers.0.image",
            json!(" nginx"),
            "spec.containers[0].image: Invalid value: \" nginx\": must not have leading or trailing whitespace",
        ),
        ("spec.containers.1", json!({ "name": "a", "image": "b" }), "spec.containers[1].name: Duplicate value: \"a\""),
        (
            "spec.initContainers.0",
            json!({ "name": "a", "image": "b" }),
            "spec.initContainers[0].name: Duplicate value: \"a\"",
        ),
        (
            "spec.containers.0.imagePullPolicy",
            json!("Sometimes"),
            "spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
        ),
        (
            "spec.containers.0.terminationMessagePolicy",
            json!("Log"),
            "spec.containers[0].terminationMessagePolicy: Unsupported value: \"Log\": supported values: \"File\", \"FallbackToLogsOnError\"",
        ),
        (
            "spec.ephemeralContainers.0",
            json!({ "name": "e", "image": "b" }),
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ),
    ]);
}

#[test]
fn init_containers_run_to_their_end_unless_they_are_sidecars() {
    let probe = json!({ "tcpSocket": { "port": 80 } });
    let init = |more: &str, value: &Value| with(&json!({ "name": "i", "image": "b" }), more, value);
    check(&[
        (
            "spec.initContainers.0",
            init("readinessProbe", &probe),
            "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
        ),
        ("spec.initContainers.0", with(&init("readinessProbe", &probe), "restartPolicy", &json!("Always")), ""),
        (
            "spec.initContainers.0",
            init("restartPolicy", &json!("Often")),
            "spec.initContainers[0].restartPolicy: Unsupported value: \"Often\": supported values: \"Always\", \"Never\", \"OnFailure\"",
        ),
    ]);
}

#[test]
fn ports_are_checked_and_host_ports_are_unique() {
    let port = |more: Value| {
        let mut port = json!({ "containerPort": 80 });
        port.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        port
    };
    check(&[
        (
            "spec.containers.0.ports.0",
            json!({ "containerPort": 0 }),
            "spec.containers[0].ports[0].containerPort: Required value",
        ),
        (
            "spec.containers.0.ports.0",
            json!({ "containerPort": 65536 }),
            "spec.containers[0].ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
        ),
        (
            "spec.containers.0.ports.0",
            port(json!({ "protocol": "ICMP" })),
            "spec.containers[0].ports[0].protocol: Unsupported value: \"ICMP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        ),
        (
            "spec.containers.0.ports",
            json!([port(json!({ "name": "web" })), port(json!({ "name": "web", "containerPort": 81 }))]),
            "spec.containers[0].ports[1].name: Duplicate value: \"web\"",
        ),
        (
            "spec.containers.0.ports",
            json!([port(json!({ "hostPort": 8080 })), port(json!({ "hostPort": 8080, "containerPort": 81 }))]),
            "spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//8080\"",
        ),
    ]);
    let host = with(&pod(), "spec.hostNetwork", &json!(true));
    let host = with(&host, "spec.containers.0.ports.0", &port(json!({ "hostPort": 8080 })));
    assert_eq!(
        mistakes("Pod", &host, None),
        "spec.containers[0].ports[0].hostPort: Invalid value: 8080: must match `containerPort` when `hostNetwork` is true"
    );
}

#[test]
fn the_environment_says_where_values_come_from() {
    let from = |source: Value| json!({ "name": "A", "valueFrom": source });
    check(&[
        ("spec.containers.0.env.0", json!({ "value": "x" }), "spec.containers[0].env[0].name: Required value"),
        (
            "spec.containers.0.env.0",
            json!({ "name": "a=b" }),
            "spec.containers[0].env[0].name: Invalid value: \"a=b\": a valid environment variable name must consist only of printable ASCII characters other than '='",
        ),
        (
            "spec.containers.0.env.0",
            from(json!({})),
            "spec.containers[0].env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        (
            "spec.containers.0.env.0",
            json!({ "name": "A", "value": "x", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }),
            "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
        ),
        (
            "spec.containers.0.env.0",
            from(json!({ "fieldRef": { "fieldPath": "status.phase" } })),
            "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: \"status.phase\": supported values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"",
        ),
        (
            "spec.containers.0.env.0",
            from(json!({ "fieldRef": { "fieldPath": "metadata.size" } })),
            "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.size\": error converting fieldPath: field label not supported: metadata.size",
        ),
        ("spec.containers.0.env.0", from(json!({ "fieldRef": { "fieldPath": "metadata.labels['app']" } })), ""),
        (
            "spec.containers.0.env.0",
            from(json!({ "secretKeyRef": { "name": "s" } })),
            "spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value",
        ),
        (
            "spec.containers.0.env.0",
            from(json!({ "resourceFieldRef": { "resource": "limits.cpu", "divisor": "3" } })),
            "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource",
        ),
        (
            "spec.containers.0.envFrom.0",
            json!({}),
            "spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
        ),
        (
            "spec.containers.0.envFrom.0",
            json!({ "secretRef": {} }),
            "spec.containers[0].envFrom[0].secretRef.name: Required value",
        ),
    ]);
}

#[test]
fn volumes_have_one_source_and_mounts_have_volumes() {
    let volume = |source: Value| {
        let mut volume = json!({ "name": "v" });
        volume.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        volume
    };
    check(&[
        ("spec.volumes.0", json!({}), "spec.volumes[0].name: Required value"),
        ("spec.volumes", json!([{ "name": "v" }, { "name": "v" }]), "spec.volumes[1].name: Duplicate value: \"v\""),
        (
            "spec.volumes.0",
            volume(json!({ "emptyDir": {}, "configMap": { "name": "c" } })),
            "spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type",
        ),
        ("spec.volumes.0", volume(json!({ "configMap": {} })), "spec.volumes[0].configMap.name: Required value"),
        (
            "spec.volumes.0",
            volume(json!({ "secret": { "secretName": "s", "items": [{ "key": "k", "path": "../x" }] } })),
            "spec.volumes[0].secret.items[0].path: Invalid value: \"../x\": must not contain '..'",
        ),
        (
            "spec.volumes.0",
            volume(json!({ "secret": { "secretName": "s", "defaultMode": 512 } })),
            "spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
        ),
        (
            "spec.volumes.0",
            volume(json!({ "hostPath": { "path": "/a/../b" } })),
            "spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        ),
        (
            "spec.volumes.0",
            volume(json!({ "hostPath": { "path": "/a", "type": "Link" } })),
            "spec.volumes[0].hostPath.type: Unsupported value: \"Link\": supported values: \"\", \"BlockDevice\", \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\"",
        ),
        (
            "spec.volumes.0",
            volume(json!({ "nfs": { "server": "s", "path": "a" } })),
            "spec.volumes[0].nfs.path: Invalid value: \"a\": must be an absolute path",
        ),
        (
            "spec.volumes.0",
            volume(json!({ "persistentVolumeClaim": {} })),
            "spec.volumes[0].persistentVolumeClaim.claimName: Required value",
        ),
        (
            "spec.volumes.0",
            volume(json!({ "downwardAPI": { "items": [{ "path": "x" }] } })),
            "spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
        ),
        (
            "spec.volumes.0",
            volume(
                json!({ "projected": { "sources": [{ "serviceAccountToken": { "path": "t", "expirationSeconds": 60 } }] } }),
            ),
            "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes\nspec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
        ),
        (
            "spec.volumes.0",
            volume(json!({ "ephemeral": { "volumeClaimTemplate": { "spec": { "accessModes": ["ReadWriteOnce"] } } } })),
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
        ),
        (
            "spec.containers.0.volumeMounts.0",
            json!({ "name": "v", "mountPath": "/x" }),
            "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
        ),
    ]);
    let mounted = with(&pod(), "spec.volumes.0", &json!({ "name": "v" }));
    let mount = |more: &str, value: Value| with(&json!({ "name": "v", "mountPath": "/x" }), more, &value);
    for (mounts, message) in [
        (json!([mount("readOnly", json!(true))]), ""),
        (
            json!([mount("readOnly", json!(true)), mount("readOnly", json!(false))]),
            "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/x\": must be unique",
        ),
        (json!([mount("mountPath", json!(""))]), "spec.containers[0].volumeMounts[0].mountPath: Required value"),
        (
            json!([mount("subPath", json!("/abs"))]),
            "spec.containers[0].volumeMounts.subPath: Invalid value: \"/abs\": must be a relative path",
        ),
        (
            json!([mount("mountPropagation", json!("Bidirectional"))]),
            "spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers",
        ),
    ] {
        let manifest = with(&mounted, "spec.containers.0.volumeMounts", &mounts);
        assert_eq!(mistakes("Pod", &manifest, None), message);
    }
}

#[test]
fn resources_are_amounts_of_things_there_are() {
    let resources = |requests: Value, limits: Value| json!({ "requests": requests, "limits": limits });
    check(&[
        (
            "spec.containers.0.resources",
            resources(json!({ "memory": "2Gi" }), json!({ "memory": "1Gi" })),
            "spec.containers[0].resources.requests: Invalid value: \"2Gi\": must be less than or equal to memory limit of 1Gi",
        ),
        (
            "spec.containers.0.resources",
            resources(json!({ "cpu": "-1" }), json!({})),
            "spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
        ),
        (
            "spec.containers.0.resources",
            resources(json!({ "colour": "1" }), json!({})),
            "spec.containers[0].resources.requests[colour]: Invalid value: \"colour\": must be a standard resource type or fully qualified\nspec.containers[0].resources.requests[colour]: Invalid value: \"colour\": must be a standard resource for containers",
        ),
        (
            "spec.containers.0.resources",
            resources(json!({ "example.com/gpu": "1" }), json!({})),
            "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            "spec.containers.0.resources",
            json!({ "limits": { "example.com/gpu": "500m" } }),
            "spec.containers[0].resources.limits[example.com/gpu]: Invalid value: \"500m\": must be an integer\nspec.containers[0].resources.requests[example.com/gpu]: Invalid value: \"500m\": must be an integer",
        ),
        (
            "spec.containers.0.resources",
            json!({ "limits": { "hugepages-2Mi": "4Mi" } }),
            "spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
        ),
        (
            "spec.containers.0.resources",
            json!({ "limits": { "hugepages-2Mi": "3Mi", "cpu": "1" } }),
            "spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi\nspec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
        ),
        (
            "spec.containers.0.resources",
            json!({ "claims": [{ "name": "gpu" }] }),
            "spec.containers[0].resources.claims[0]: Not found: \"gpu\": must be one of the names in pod.spec.resourceClaims which is empty",
        ),
        (
            "spec.resources",
            json!({ "requests": { "ephemeral-storage": "1Gi" } }),
            "spec.resources.requests[ephemeral-storage]: Unsupported value: \"ephemeral-storage\": supported values: \"cpu\", \"hugepages-\", \"memory\"",
        ),
    ]);
}

#[test]
fn probes_and_hooks_have_one_handler() {
    check(&[
        (
            "spec.containers.0.livenessProbe",
            json!({}),
            "spec.containers[0].livenessProbe: Required value: must specify a handler type",
        ),
        (
            "spec.containers.0.livenessProbe",
            json!({ "exec": { "command": ["x"] }, "tcpSocket": { "port": 1 } }),
            "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        (
            "spec.containers.0.livenessProbe",
            json!({ "httpGet": { "port": 0 } }),
            "spec.containers[0].livenessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            "spec.containers.0.livenessProbe",
            json!({ "httpGet": { "port": 80 }, "successThreshold": 2 }),
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            "spec.containers.0.readinessProbe",
            json!({ "grpc": { "port": 80 }, "periodSeconds": -1 }),
            "spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "spec.containers.0.lifecycle",
            json!({ "preStop": { "sleep": { "seconds": 31 } } }),
            "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)",
        ),
    ]);
}

#[test]
fn security_contexts_do_not_contradict_themselves() {
    check(&[
        (
            "spec.securityContext",
            json!({ "runAsUser": -1 }),
            "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        ),
        (
            "spec.containers.0.securityContext",
            json!({ "privileged": true, "allowPrivilegeEscalation": false }),
            "spec.containers[0].securityContext: Invalid value: {\"allowPrivilegeEscalation\":false,\"privileged\":true}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
        ),
        (
            "spec.securityContext",
            json!({ "seccompProfile": { "type": "Localhost" } }),
            "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
        ),
        (
            "spec.securityContext",
            json!({ "appArmorProfile": { "type": "Strict" } }),
            "spec.securityContext.appArmorProfile.type: Unsupported value: \"Strict\": supported values: \"Localhost\", \"RuntimeDefault\", \"Unconfined\"",
        ),
        (
            "spec.securityContext",
            json!({ "sysctls": [{ "name": "a.b", "value": "1" }, { "name": "a.b", "value": "2" }] }),
            "spec.securityContext.sysctls[1].name: Duplicate value: \"a.b\"",
        ),
        (
            "spec.os",
            json!({ "name": "plan9" }),
            "spec.os: Unsupported value: \"plan9\": supported values: \"linux\", \"windows\"",
        ),
    ]);
    let windows = with(&pod(), "spec.os.name", &json!("windows"));
    let windows = with(&windows, "spec.securityContext", &json!({ "runAsUser": 1 }));
    assert_eq!(
        mistakes("Pod", &windows, None),
        "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod"
    );
}

#[test]
fn scheduling_rules_are_well_formed() {
    let node = |expression: Value| {
        json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{ "matchExpressions": [expression] }] } } })
    };
    let spread = |more: &str, value: Value| {
        let good = json!({ "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule" });
        with(&good, more, &value)
    };
    check(&[
        (
            "spec.affinity",
            node(json!({ "key": "a", "operator": "In" })),
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            "spec.affinity",
            json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{ "topologyKey": "zone",
                "namespaces": ["ok"], "matchLabelKeys": ["a"] }] } }),
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
        ),
        (
            "spec.affinity",
            json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 101, "preference": {} }] } }),
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100",
        ),
        (
            "spec.tolerations.0",
            json!({ "operator": "Equal", "value": "x" }),
            "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
        ),
        (
            "spec.tolerations.0",
            json!({ "key": "a", "effect": "Never" }),
            "spec.tolerations[0].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
        ),
        (
            "spec.tolerations.0",
            json!({ "key": "a", "operator": "Exists", "tolerationSeconds": 1 }),
            "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (
            "spec.topologySpreadConstraints.0",
            spread("maxSkew", json!(0)),
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (
            "spec.topologySpreadConstraints",
            json!([spread("maxSkew", json!(1)), spread("maxSkew", json!(2))]),
            "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: \"{zone, DoNotSchedule}\"",
        ),
        (
            "spec.topologySpreadConstraints.0",
            spread("whenUnsatisfiable", json!("")),
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"",
        ),
        (
            "spec.schedulingGates",
            json!([{ "name": "g" }, { "name": "g" }]),
            "spec.schedulingGates[1]: Duplicate value: \"g\"",
        ),
    ]);
}

#[test]
fn the_rest_of_a_spec_is_checked_too() {
    check(&[
        (
            "spec.restartPolicy",
            json!("Sometimes"),
            "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
        ),
        (
            "spec.dnsPolicy",
            json!("Mine"),
            "spec.dnsPolicy: Unsupported value: \"Mine\": supported values: \"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\"",
        ),
        (
            "spec.dnsPolicy",
            json!("None"),
            "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
        ),
        (
            "spec.dnsConfig",
            json!({ "nameservers": ["1.2.3"] }),
            "spec.dnsConfig.nameservers[0]: Invalid value: \"1.2.3\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        ("spec.dnsConfig", json!({ "searches": ["_srv.example.com", "."] }), ""),
        (
            "spec.hostAliases.0",
            json!({ "ip": "010.0.0.1" }),
            "spec.hostAliases[0].ip: Invalid value: \"010.0.0.1\": must not have leading 0s",
        ),
        (
            "spec.activeDeadlineSeconds",
            json!(0),
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
        (
            "metadata.annotations",
            json!({ "controller.kubernetes.io/pod-deletion-cost": "+1" }),
            "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: \"+1\": must be a 32bit integer",
        ),
        (
            "spec.resourceClaims.0",
            json!({ "name": "g" }),
            "spec.resourceClaims[0]: Invalid value: {\"name\":\"g\"}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        ),
        ("spec.readinessGates.0", json!({ "conditionType": "example.com/ok" }), ""),
    ]);
}

#[test]
fn the_server_decides_the_first_status() {
    let pod = with(&pod(), "status.phase", &json!("Running"));
    let gated = with(&pod, "spec.schedulingGates.0.name", &json!("g"));
    assert_eq!(prepared("Pod", &pod, None)["status"], json!({ "phase": "Pending", "qosClass": "BestEffort" }));
    assert_eq!(prepared("Pod", &gated, None)["status"]["conditions"][0]["reason"], "SchedulingGated");
}

#[test]
fn selectors_take_values_from_the_labels_of_the_pod() {
    let term = json!({ "topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["app", "absent"] });
    let pod = with(&pod(), "metadata.labels.app", &json!("web"));
    let pod = with(&pod, "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.0", &term);
    assert_eq!(
        prepared("Pod", &pod, None)["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            [0]["labelSelector"],
        json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["web"] }] })
    );
}
