//! What users ask for: for each kind a spec of a new object, and an edit of one that is there.

use super::super::driver::CLASS;
use super::{Subject, World, pick};
use kinds::{
    CronJob, DaemonSet, Deployment, Endpoints, HorizontalPodAutoscaler, Job, Kind, Namespace, PersistentVolume,
    PersistentVolumeClaim, PodDisruptionBudget, ReplicaSet, ReplicationController, ResourceQuota, Service, StatefulSet,
};
use object::{Value, json};

/// Every kind that users edit, with what is edited together.
pub(super) const INTERESTS: &[&[Subject]] = &[
    &[Subject { id: ReplicaSet::ID, name: "replicaset", make: replica_set, change: scale }],
    &[Subject {
        id: ReplicationController::ID,
        name: "replicationcontroller",
        make: replication_controller,
        change: scale,
    }],
    &[Subject { id: Service::ID, name: "service", make: service, change: reselect }],
    &[Subject { id: PodDisruptionBudget::ID, name: "budget", make: budget, change: rebudget }],
    &[Subject { id: Deployment::ID, name: "deployment", make: deployment, change: scale_or_roll }],
    &[Subject { id: HorizontalPodAutoscaler::ID, name: "autoscaler", make: autoscaler, change: rebound }],
    &[Subject { id: DaemonSet::ID, name: "daemonset", make: daemon_set, change: roll }],
    &[Subject { id: ResourceQuota::ID, name: "quota", make: quota, change: requota }],
    &[Subject { id: StatefulSet::ID, name: "statefulset", make: stateful_set, change: scale_or_roll }],
    &[
        Subject { id: PersistentVolume::ID, name: "volume", make: volume, change: label },
        Subject { id: PersistentVolumeClaim::ID, name: "claim", make: claim, change: label },
    ],
    &[Subject { id: Namespace::ID, name: "team", make: |_, _| json!({}), change: label }],
    &[Subject { id: Job::ID, name: "job", make: job, change: widen }],
    &[Subject { id: CronJob::ID, name: "cronjob", make: cron_job, change: suspend }],
    &[
        Subject { id: Service::ID, name: "outside", make: outside, change: label },
        Subject { id: Endpoints::ID, name: "outside", make: subsets, change: resubset },
    ],
];

fn one_of<T: Copy>(world: &World, choices: &[T]) -> T {
    choices[pick(world, choices.len())]
}

fn replicas(world: &World) -> u64 {
    world.random.below(6)
}

/// How much processor time pods use, of the tenth of a processor that they ask for.
fn usage(world: &World) -> &'static str {
    one_of(world, &["20m", "70m", "100m", "180m"])
}

fn container() -> Value {
    json!({
        "name": "c", "image": "image:1", "ports": [{ "name": "http", "containerPort": 8080 }],
        "resources": { "requests": { "cpu": "100m" } },
    })
}

fn template(app: &str, world: &World) -> Value {
    json!({
        "metadata": { "labels": { "app": app }, "annotations": { "simulated.setpoint.dev/cpu": usage(world) } },
        "spec": { "containers": [container()] },
    })
}

/// A template of pods that end, some of them badly.
fn ending(world: &World) -> Value {
    let exit_code = if world.random.chance(0.3) { "1" } else { "0" };
    json!({
        "metadata": { "annotations": {
            "simulated.setpoint.dev/run-seconds": world.random.below(20).to_string(),
            "simulated.setpoint.dev/exit-code": exit_code,
        } },
        "spec": { "restartPolicy": "Never", "containers": [container()] },
    })
}

fn storage(class: Option<&str>) -> Value {
    let mut spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    if let Some(class) = class {
        spec["storageClassName"] = json!(class);
    }
    spec
}

fn replicated(name: &str, world: &World) -> Value {
    let template = template(name, world);
    json!({ "replicas": replicas(world), "selector": { "matchLabels": { "app": name } }, "template": template })
}

/// Every other one gives each of its pods a volume, which comes and goes with the pod.
fn replica_set(name: &str, world: &World) -> Value {
    let mut spec = replicated(name, world);
    if world.random.chance(0.5) {
        spec["template"]["spec"]["volumes"] =
            json!([{ "name": "scratch", "ephemeral": { "volumeClaimTemplate": { "spec": storage(None) } } }]);
    }
    spec
}

fn replication_controller(name: &str, world: &World) -> Value {
    json!({ "replicas": replicas(world), "selector": { "app": name }, "template": template(name, world) })
}

fn deployment(name: &str, world: &World) -> Value {
    let mut spec = replicated(name, world);
    spec["revisionHistoryLimit"] = json!(2);
    spec["strategy"] = match world.random.below(3) {
        0 => json!({ "type": "Recreate" }),
        _ => json!({
            "type": "RollingUpdate",
            "rollingUpdate": { "maxSurge": world.random.below(3), "maxUnavailable": 1 + world.random.below(2) },
        }),
    };
    spec
}

fn stateful_set(name: &str, world: &World) -> Value {
    let mut spec = replicated(name, world);
    spec["serviceName"] = json!(name);
    spec["podManagementPolicy"] = json!(one_of(world, &["Parallel", "OrderedReady"]));
    if world.random.chance(0.7) {
        let class = one_of(world, &[None, Some(CLASS)]);
        spec["volumeClaimTemplates"] = json!([{ "metadata": { "name": "data" }, "spec": storage(class) }]);
        spec["persistentVolumeClaimRetentionPolicy"] = json!({
            "whenDeleted": one_of(world, &["Retain", "Delete"]), "whenScaled": one_of(world, &["Retain", "Delete"]),
        });
    }
    spec
}

fn daemon_set(name: &str, world: &World) -> Value {
    let update = match world.random.below(2) {
        0 => json!({ "maxSurge": 1, "maxUnavailable": 0 }),
        _ => json!({ "maxUnavailable": 1 + world.random.below(2) }),
    };
    json!({
        "selector": { "matchLabels": { "app": name } }, "template": template(name, world),
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": update },
    })
}

fn job(_name: &str, world: &World) -> Value {
    let mut spec = json!({
        "parallelism": 1 + world.random.below(3), "completions": 1 + world.random.below(4),
        "backoffLimit": world.random.below(3), "template": ending(world),
    });
    match world.random.below(3) {
        0 => spec["completionMode"] = json!("Indexed"),
        1 => spec["ttlSecondsAfterFinished"] = json!(world.random.below(60)),
        _ => {}
    }
    spec
}

/// When jobs are made: while faults happen, and not again within the time that is watched.
const SCHEDULE: &str = "0-2 0 1 1 *";
/// The last of these times.
pub(in crate::simulation) const LAST_DUE: &str = "2026-01-01T00:02:00Z";

fn cron_job(_name: &str, world: &World) -> Value {
    json!({
        "schedule": SCHEDULE, "concurrencyPolicy": one_of(world, &["Allow", "Forbid", "Replace"]),
        "successfulJobsHistoryLimit": world.random.below(3), "failedJobsHistoryLimit": world.random.below(2),
        "jobTemplate": { "spec": { "backoffLimit": 0, "template": ending(world) } },
    })
}

/// The pods of some workload, by the label that they have.
fn some_app(world: &World) -> String {
    let kind = one_of(world, &["deployment", "statefulset", "replicaset", "daemonset", "replicationcontroller"]);
    format!("{kind}-{}", pick(world, 2))
}

fn service(_name: &str, world: &World) -> Value {
    let target = if world.random.chance(0.5) { json!("http") } else { json!(9000 + world.random.below(3)) };
    let kind = one_of(world, &["ClusterIP", "NodePort", "LoadBalancer"]);
    json!({ "type": kind, "selector": { "app": some_app(world) }, "ports": [{ "port": 80, "targetPort": target }] })
}

fn reselect(name: &str, world: &World) -> Value {
    json!({ "spec": service(name, world) })
}

/// A service whose addresses somebody writes down.
fn outside(_name: &str, _world: &World) -> Value {
    json!({ "ports": [{ "port": 80, "targetPort": 9000 }] })
}

/// Some addresses, in one or two subsets.
fn subsets(_name: &str, world: &World) -> Value {
    let addresses = |subset: u64| -> Vec<Value> {
        (0..world.random.below(4))
            .map(|number| json!({ "ip": format!("198.51.100.{}", 1 + subset * 10 + number) }))
            .collect()
    };
    let subset = |number: u64| {
        let field = one_of(world, &["addresses", "addresses", "notReadyAddresses"]);
        json!({ (field): addresses(number), "ports": [{ "port": 9000 + number }] })
    };
    let subsets: Vec<Value> = (0..1 + world.random.below(2)).map(subset).collect();
    json!(subsets)
}

fn resubset(name: &str, world: &World) -> Value {
    json!({ "subsets": subsets(name, world) })
}

/// Budgets that are a part of something need to know the whole, which only some workloads tell.
fn budget(name: &str, world: &World) -> Value {
    let number = || json!(world.random.below(4));
    let mut spec = match world.random.below(3) {
        0 => json!({ "minAvailable": number(), "maxUnavailable": null }),
        1 => json!({ "minAvailable": null, "maxUnavailable": number() }),
        _ => json!({ "minAvailable": "50%", "maxUnavailable": null }),
    };
    let workload = one_of(world, &["deployment", "statefulset", "replicationcontroller", "replicaset"]);
    let app = name.replace("budget", workload);
    spec["selector"] = json!({ "matchLabels": { "app": app } });
    spec
}

fn rebudget(name: &str, world: &World) -> Value {
    json!({ "spec": budget(name, world) })
}

fn rebound(_name: &str, world: &World) -> Value {
    json!({ "spec": bounds(world) })
}

/// How fast an autoscaler may go: with none of these does it get anywhere else in the end.
fn behavior(world: &World) -> Value {
    let policy = || {
        let kind = one_of(world, &["Pods", "Percent"]);
        let value = if kind == "Pods" { 1 + world.random.below(3) } else { 50 + world.random.below(100) };
        json!({ "type": kind, "value": value, "periodSeconds": one_of(world, &[15, 30, 60]) })
    };
    let rules = |window: u64| {
        let policies: Vec<Value> = (0..1 + world.random.below(2)).map(|_| policy()).collect();
        json!({
            "stabilizationWindowSeconds": world.random.below(window), "policies": policies,
            "selectPolicy": one_of(world, &["Max", "Min"]),
        })
    };
    json!({ "scaleUp": rules(60), "scaleDown": rules(200) })
}

fn bounds(world: &World) -> Value {
    json!({ "minReplicas": 1 + world.random.below(3), "maxReplicas": 3 + world.random.below(5) })
}

fn autoscaler(name: &str, world: &World) -> Value {
    let kind = one_of(world, &["Deployment", "StatefulSet"]);
    let target = name.replace("autoscaler", &kind.to_lowercase());
    let mut spec = bounds(world);
    if world.random.chance(0.5) {
        spec["behavior"] = behavior(world);
    }
    spec["scaleTargetRef"] = json!({ "apiVersion": "apps/v1", "kind": kind, "name": target });
    let utilization = one_of(world, &[50, 80, 100]);
    spec["metrics"] = json!([{
        "type": "Resource",
        "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": utilization } },
    }]);
    spec
}

fn quota(_name: &str, world: &World) -> Value {
    let some = |bound: u64| json!(world.random.below(bound).to_string());
    json!({ "hard": {
        "pods": some(12), "requests.cpu": some(2), "services": some(3), "persistentvolumeclaims": some(6),
        "count/deployments.apps": some(3), "count/jobs.batch": some(3),
    } })
}

fn requota(name: &str, world: &World) -> Value {
    json!({ "spec": quota(name, world) })
}

fn widen(_name: &str, world: &World) -> Value {
    json!({ "spec": { "parallelism": world.random.below(4) } })
}

fn suspend(_name: &str, world: &World) -> Value {
    json!({ "spec": { "suspend": world.random.chance(0.5) } })
}

/// The class of volumes that somebody makes by hand.
const STATIC: &str = "static";

fn volume(name: &str, world: &World) -> Value {
    json!({
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": STATIC,
        "persistentVolumeReclaimPolicy": one_of(world, &["Retain", "Delete"]),
        "hostPath": { "path": format!("/tmp/{name}") },
    })
}

fn claim(_name: &str, world: &World) -> Value {
    storage(one_of(world, &[Some(STATIC), Some(STATIC), None]))
}

fn label(_name: &str, world: &World) -> Value {
    json!({ "metadata": { "labels": { "number": world.random.below(9).to_string() } } })
}

fn scale(_name: &str, world: &World) -> Value {
    json!({ "spec": { "replicas": replicas(world) } })
}

fn roll(_name: &str, world: &World) -> Value {
    let image = format!("image:{}", world.random.below(4));
    let annotations = json!({ "image": image, "simulated.setpoint.dev/cpu": usage(world) });
    json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } })
}

fn scale_or_roll(name: &str, world: &World) -> Value {
    if world.random.chance(0.5) { scale(name, world) } else { roll(name, world) }
}
