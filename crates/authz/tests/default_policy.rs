//! The default roles, evaluated twice: by the index, and by comparing every word of every rule.

use authz::{Attributes, Rules, User, default_objects};
use object::{Value, View, json};

/// Some of each group: resources with and without subresources, known to the policy and not.
const RESOURCES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "bindings",
            "configmaps",
            "endpoints",
            "events",
            "limitranges",
            "namespaces",
            "namespaces/finalize",
            "namespaces/status",
            "nodes",
            "nodes/metrics",
            "nodes/proxy",
            "nodes/status",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "persistentvolumes",
            "pods",
            "pods/attach",
            "pods/binding",
            "pods/ephemeralcontainers",
            "pods/eviction",
            "pods/exec",
            "pods/finalizers",
            "pods/log",
            "pods/portforward",
            "pods/proxy",
            "pods/resize",
            "pods/status",
            "podtemplates",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "replicationcontrollers/status",
            "resourcequotas",
            "resourcequotas/status",
            "secrets",
            "serviceaccounts",
            "serviceaccounts/token",
            "services",
            "services/proxy",
            "services/status",
        ],
    ),
    (
        "apps",
        &[
            "controllerrevisions",
            "daemonsets",
            "daemonsets/finalizers",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ],
    ),
    ("authentication.k8s.io", &["selfsubjectreviews", "tokenreviews"]),
    ("authorization.k8s.io", &["localsubjectaccessreviews", "selfsubjectaccessreviews", "subjectaccessreviews"]),
    ("autoscaling", &["horizontalpodautoscalers", "horizontalpodautoscalers/status"]),
    ("batch", &["cronjobs", "cronjobs/finalizers", "jobs", "jobs/finalizers", "jobs/status"]),
    (
        "certificates.k8s.io",
        &["certificatesigningrequests", "certificatesigningrequests/approval", "clustertrustbundles", "signers"],
    ),
    ("coordination.k8s.io", &["leasecandidates", "leases"]),
    ("discovery.k8s.io", &["endpointslices", "endpointslices/restricted"]),
    ("events.k8s.io", &["events"]),
    ("example.com", &["things", "things/scale", "things/status"]),
    ("networking.k8s.io", &["ingresses", "ingresses/status", "networkpolicies", "servicecidrs"]),
    ("node.k8s.io", &["runtimeclasses"]),
    ("policy", &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
    ("rbac.authorization.k8s.io", &["clusterroles", "rolebindings", "roles"]),
    ("resource.k8s.io", &["devicetaintrules", "resourceclaims", "resourceclaims/status", "resourceslices"]),
    ("scheduling.k8s.io", &["podgroups", "podgroups/status", "priorityclasses", "workloads"]),
    ("storage.k8s.io", &["csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattachments/status"]),
];
const VERBS: &[&str] = &[
    "approve",
    "bind",
    "create",
    "delete",
    "deletecollection",
    "escalate",
    "get",
    "impersonate",
    "list",
    "patch",
    "sign",
    "update",
    "watch",
];
const NAMES: &[&str] = &["", "kube-scheduler", "kubernetes.io/kubelet-serving", "cluster-info"];
const PATHS: &[&str] =
    &["/", "/api", "/api/v1", "/apis/apps", "/healthz", "/healthz/etcd", "/livez", "/metrics", "/version", "/version/"];

fn words<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    rule.items(field).iter().filter_map(Value::as_str).collect()
}

/// Without any thought of speed: the question is put together in all the ways a rule may say it.
fn naive(role: &Value, verb: &str, group: &str, resource: &str, name: &str) -> bool {
    let mut said = vec!["*".to_owned(), resource.to_owned()];
    said.extend(resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}")));
    role.items("rules").iter().any(|rule| {
        let names = words(rule, "resourceNames");
        words(rule, "verbs").iter().any(|word| ["*", verb].contains(word))
            && words(rule, "apiGroups").iter().any(|word| ["*", group].contains(word))
            && words(rule, "resources").iter().any(|word| said.iter().any(|said| said == word))
            && (names.is_empty() || names.contains(&name))
    })
}

fn naive_path(role: &Value, verb: &str, path: &str) -> bool {
    role.items("rules").iter().any(|rule| {
        words(rule, "verbs").iter().any(|word| ["*", verb].contains(word))
            && words(rule, "nonResourceURLs").iter().any(|url| match url.split_once('*') {
                Some((prefix, _)) => path.starts_with(prefix),
                None => *url == path,
            })
    })
}

/// All default cluster roles, and rules in which each is bound to the user of its name.
fn roles_and_rules() -> (Vec<Value>, Rules) {
    let objects = default_objects(&|_| true).into_iter();
    let roles: Vec<Value> = objects.filter(|object| object.text("kind") == "ClusterRole").collect();
    let mut rules = Rules::default();
    for role in &roles {
        let name = role.at("metadata").text("name");
        rules.apply("ClusterRole", "", name, Some(role));
        let binding = json!({
            "roleRef": { "kind": "ClusterRole", "name": name }, "subjects": [{ "kind": "User", "name": name }],
        });
        rules.apply("ClusterRoleBinding", "", name, Some(&binding));
    }
    (roles, rules)
}

#[test]
fn the_index_decides_as_the_rules_say_for_every_role_resource_verb_and_name() {
    let (roles, rules) = roles_and_rules();
    let mut allowed = 0;
    for role in &roles {
        let user = User { name: role.at("metadata").text("name").to_owned(), ..User::default() };
        for (group, resource) in RESOURCES.iter().flat_map(|(group, list)| list.iter().map(move |one| (*group, *one))) {
            for (verb, name) in VERBS.iter().flat_map(|verb| NAMES.iter().map(move |name| (*verb, *name))) {
                let (parent, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                let request = Attributes { subresource, name, ..Attributes::resource(&user, verb, group, parent) };
                let decision = rules.authorize(&request).is_allowed();
                assert_eq!(decision, naive(role, verb, group, resource, name), "{request:?}");
                allowed += usize::from(decision);
            }
        }
    }
    assert!(allowed > 10_000, "only {allowed} were allowed, so the test says little");
}

#[test]
fn the_index_decides_as_the_rules_say_for_every_path() {
    let (roles, rules) = roles_and_rules();
    for role in &roles {
        let user = User { name: role.at("metadata").text("name").to_owned(), ..User::default() };
        for (path, verb) in PATHS.iter().flat_map(|path| ["get", "post"].map(|verb| (*path, verb))) {
            let request = Attributes { verb, path, ..Attributes::of(&user) };
            assert_eq!(rules.authorize(&request).is_allowed(), naive_path(role, verb, path), "{request:?}");
        }
    }
}

#[test]
fn the_default_bindings_let_everyone_do_their_work() {
    let mut rules = Rules::default();
    for object in default_objects(&|_| false) {
        let metadata = object.at("metadata");
        rules.apply(object.text("kind"), metadata.text("namespace"), metadata.text("name"), Some(&object));
    }
    let user = |name: &str, groups: &[&str]| User {
        name: name.to_owned(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
        ..User::default()
    };
    let all = user("root", &["system:masters", "system:authenticated"]);
    let scheduler = user("system:kube-scheduler", &["system:authenticated"]);
    let jobs =
        user("system:serviceaccount:kube-system:job-controller", &["system:serviceaccounts", "system:authenticated"]);
    let nobody = user("system:anonymous", &["system:unauthenticated"]);
    for (user, verb, group, resource, namespace, allowed) in [
        (&all, "delete", "example.com", "things", "n", true),
        (&scheduler, "list", "", "pods", "", true),
        (&scheduler, "create", "coordination.k8s.io", "leases", "kube-system", true),
        (&scheduler, "create", "apps", "deployments", "n", false),
        (&jobs, "create", "", "pods", "n", true),
        (&jobs, "create", "", "secrets", "n", false),
        (&jobs, "create", "authorization.k8s.io", "selfsubjectaccessreviews", "", true),
        (&nobody, "create", "authorization.k8s.io", "selfsubjectaccessreviews", "", false),
        (&nobody, "get", "", "pods", "n", false),
    ] {
        let request = Attributes { namespace, ..Attributes::resource(user, verb, group, resource) };
        assert_eq!(rules.authorize(&request).is_allowed(), allowed, "{request:?}");
    }
    for (user, path, allowed) in [
        (&nobody, "/version", true),
        (&nobody, "/apis", false),
        (&jobs, "/apis/apps/v1", true),
        (&jobs, "/metrics", false),
    ] {
        let request = Attributes { verb: "get", path, ..Attributes::of(user) };
        assert_eq!(rules.authorize(&request).is_allowed(), allowed, "{request:?}");
    }
}
