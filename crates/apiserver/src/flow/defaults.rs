//! The priority levels and flow schemas of a new cluster, with the names and figures that Kubernetes gives them. Those in
//! `MANDATORY` are always as they are here; the others are suggestions, which can be changed.

use object::{Edit, Value, json};

/// Says whether the system may bring the specification up to date.
pub(super) const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
pub(super) const EXEMPT: &str = "exempt";
pub(super) const CATCH_ALL: &str = "catch-all";
/// Levels and schemas of these names work even where the objects are not there.
pub(super) const MANDATORY: [&str; 2] = [EXEMPT, CATCH_ALL];
const EVERYBODY: [&str; 2] = ["system:unauthenticated", "system:authenticated"];

/// Name, shares, percentage that may be lent, queues and hand size. Without queues, what is too much is refused.
const LEVELS: [(&str, u32, u32, u32, u32); 7] = [
    (CATCH_ALL, 5, 0, 0, 0),
    ("global-default", 20, 50, 128, 6),
    ("leader-election", 10, 0, 16, 4),
    ("node-high", 40, 25, 64, 6),
    ("system", 30, 33, 64, 6),
    ("workload-high", 40, 50, 128, 6),
    ("workload-low", 100, 90, 128, 6),
];
const QUEUE_LENGTH: u32 = 50;

pub(super) fn levels() -> Vec<Value> {
    LEVELS.map(level).into_iter().chain([exempt_level()]).collect()
}

fn object(name: &str, spec: &Value) -> Value {
    json!({ "metadata": { "name": name, "annotations": { AUTO_UPDATE: "true" } }, "spec": spec })
}

fn level((name, shares, lendable, queues, hand): (&str, u32, u32, u32, u32)) -> Value {
    let response = match queues {
        0 => json!({ "type": "Reject" }),
        queues => json!({
            "type": "Queue", "queuing": { "queues": queues, "handSize": hand, "queueLengthLimit": QUEUE_LENGTH },
        }),
    };
    let limited = json!({ "nominalConcurrencyShares": shares, "lendablePercent": lendable, "limitResponse": response });
    object(name, &json!({ "type": "Limited", "limited": limited }))
}

fn exempt_level() -> Value {
    let exempt = json!({ "nominalConcurrencyShares": 0, "lendablePercent": 0 });
    object(EXEMPT, &json!({ "type": "Exempt", "exempt": exempt }))
}

pub(super) fn schemas() -> Vec<Value> {
    let (by_user, by_namespace) = (Some("ByUser"), Some("ByNamespace"));
    let manager = users(&["system:kube-controller-manager"]);
    let scheduler = users(&["system:kube-scheduler"]);
    let nodes = groups(&["system:nodes"]);
    let leaders = [manager.clone(), scheduler.clone(), system_accounts()].concat();
    let leases = |verbs: &[&str]| resource_rule(verbs, "coordination.k8s.io", &["leases"], false);
    let probes = json!([{ "verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"] }]);
    let heartbeats = vec![resource_rule(&["*"], "", &["nodes", "nodes/status"], true), leases(&["*"])];
    vec![
        schema(EXEMPT, EXEMPT, 1, None, &anything(&groups(&["system:masters"]))),
        schema("probes", EXEMPT, 2, None, &json!({ "subjects": groups(&EVERYBODY), "nonResourceRules": probes })),
        schema(
            "system-leader-election",
            "leader-election",
            100,
            by_user,
            &json!({ "subjects": leaders, "resourceRules": [leases(&["get", "create", "update"])] }),
        ),
        schema(
            "system-node-high",
            "node-high",
            400,
            by_user,
            &json!({ "subjects": nodes, "resourceRules": heartbeats }),
        ),
        schema("system-nodes", "system", 500, by_user, &anything(&nodes)),
        schema("kube-controller-manager", "workload-high", 800, by_namespace, &anything(&manager)),
        schema("kube-scheduler", "workload-high", 800, by_namespace, &anything(&scheduler)),
        schema("kube-system-service-accounts", "workload-high", 900, by_namespace, &anything(&system_accounts())),
        schema("service-accounts", "workload-low", 9000, by_user, &anything(&groups(&["system:serviceaccounts"]))),
        schema("global-default", "global-default", 9900, by_user, &anything(&groups(&EVERYBODY))),
        schema(CATCH_ALL, CATCH_ALL, 10_000, by_user, &anything(&groups(&EVERYBODY))),
    ]
}

fn schema(name: &str, level: &str, precedence: u32, distinguisher: Option<&str>, rule: &Value) -> Value {
    let mut spec = json!({
        "priorityLevelConfiguration": { "name": level }, "matchingPrecedence": precedence, "rules": [rule],
    });
    if let Some(distinguisher) = distinguisher {
        spec.set("distinguisherMethod", json!({ "type": distinguisher }));
    }
    object(name, &spec)
}

fn resource_rule(verbs: &[&str], group: &str, resources: &[&str], cluster: bool) -> Value {
    let mut rule = json!({ "verbs": verbs, "apiGroups": [group], "resources": resources, "namespaces": ["*"] });
    if cluster {
        rule.set("clusterScope", true);
    }
    rule
}

/// Whatever these subjects do.
fn anything(subjects: &[Value]) -> Value {
    json!({
        "subjects": subjects,
        "resourceRules": [resource_rule(&["*"], "*", &["*"], true)],
        "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
    })
}

fn groups(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({ "kind": "Group", "group": { "name": name } })).collect()
}

fn users(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({ "kind": "User", "user": { "name": name } })).collect()
}

fn system_accounts() -> Vec<Value> {
    vec![json!({ "kind": "ServiceAccount", "serviceAccount": { "name": "*", "namespace": "kube-system" } })]
}
