//! Tables of requests and the schemas they fall under.

use super::*;
use crate::flow::defaults;
use crate::identity::user;
use crate::request::Query;
use object::json;

fn info(request: &str) -> Info {
    let (method, uri) = request.split_once(' ').unwrap();
    let (path, query) = uri.split_once('?').map_or((uri, None), |(path, query)| (path, Some(query)));
    Info::new(&method.parse().unwrap(), path, &Query::parse(query))
}

fn ordered(objects: &[Value]) -> Vec<Arc<Schema>> {
    let mut schemas: Vec<_> = objects.iter().map(|object| Arc::new(Schema::read(object))).collect();
    order(&mut schemas);
    schemas
}

fn found<'a>(schemas: &'a [Arc<Schema>], user: &User, request: &str) -> &'a str {
    Index::new(schemas).classify(user, &info(request)).map_or("", |place| &schemas[place].name)
}

#[test]
fn requests_in_a_new_cluster_fall_under_the_schemas_that_kubernetes_has_for_them() {
    let schemas = ordered(&defaults::schemas());
    let authenticated = "system:authenticated";
    let accounts = ["system:serviceaccounts", authenticated];
    let admin = user("admin", &["system:masters", authenticated]);
    let node = user("system:node:n", &["system:nodes", authenticated]);
    let manager = user("system:kube-controller-manager", &[authenticated]);
    let scheduler = user("system:kube-scheduler", &[authenticated]);
    let system = user("system:serviceaccount:kube-system:job-controller", &accounts);
    let lookalike = user("system:serviceaccount:kube-system-2:x", &accounts);
    let (ann, nobody) = (user("ann", &[authenticated]), user("system:anonymous", &["system:unauthenticated"]));
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n";
    for (user, request, schema) in [
        (&admin, "GET /api/v1/pods".to_owned(), "exempt"),
        (&admin, "GET /healthz".to_owned(), "exempt"),
        (&nobody, "GET /livez/ping".to_owned(), "probes"),
        (&ann, "GET /readyz".to_owned(), "probes"),
        (&ann, "POST /readyz".to_owned(), "global-default"),
        (&ann, "GET /readyzz".to_owned(), "global-default"),
        (&node, format!("PUT {lease}"), "system-node-high"),
        (&node, "PATCH /api/v1/nodes/n/status".to_owned(), "system-node-high"),
        (&node, "GET /api/v1/nodes/n/proxy".to_owned(), "system-nodes"),
        (&node, "GET /api/v1/pods".to_owned(), "system-nodes"),
        (&manager, format!("PUT {lease}"), "system-leader-election"),
        (&manager, format!("DELETE {lease}"), "kube-controller-manager"),
        (&scheduler, "POST /api/v1/namespaces/a/pods/b/binding".to_owned(), "kube-scheduler"),
        (&scheduler, "GET /version".to_owned(), "kube-scheduler"),
        (&system, format!("GET {lease}"), "system-leader-election"),
        (&system, "GET /api/v1/pods".to_owned(), "kube-system-service-accounts"),
        (&lookalike, "GET /api/v1/pods".to_owned(), "service-accounts"),
        (&ann, "GET /api/v1/pods".to_owned(), "global-default"),
        (&nobody, "GET /api/v1/pods".to_owned(), "global-default"),
        (&user("x", &[]), "GET /api/v1/pods".to_owned(), ""),
    ] {
        assert_eq!(found(&schemas, user, &request), schema, "{} {request}", user.name);
    }
}

fn schema(name: &str, precedence: u32, subject: &Value, rule: &Value) -> Value {
    let field = if rule.has("nonResourceURLs") { "nonResourceRules" } else { "resourceRules" };
    let mut rules = json!({ "subjects": [subject] });
    object::Edit::set(&mut rules, field, json!([rule]));
    json!({ "metadata": { "name": name }, "spec": { "matchingPrecedence": precedence, "rules": [rules] } })
}

#[test]
fn a_rule_is_for_verbs_groups_resources_and_namespaces() {
    let rule = |verbs: &[&str], groups: &[&str], resources: &[&str], namespaces: &[&str], cluster: bool| {
        json!({
            "verbs": verbs, "apiGroups": groups, "resources": resources, "namespaces": namespaces,
            "clusterScope": cluster,
        })
    };
    let all: &[&str] = &["*"];
    for (rule, request, matches) in [
        (rule(&["list"], all, all, all, true), "GET /api/v1/pods", true),
        (rule(&["list"], all, all, all, true), "GET /api/v1/pods?watch=true", false),
        (rule(&["list"], all, all, all, false), "GET /api/v1/pods", false),
        (rule(all, all, all, all, false), "GET /api/v1/namespaces/a/pods", true),
        (rule(all, all, all, &["a"], true), "GET /api/v1/namespaces/a/pods", true),
        (rule(all, all, all, &["a"], true), "GET /api/v1/namespaces/b/pods", false),
        (rule(all, all, all, &[], true), "GET /api/v1/namespaces/a/pods", false),
        (rule(all, &["apps"], all, all, true), "GET /apis/apps/v1/deployments", true),
        (rule(all, &["apps"], all, all, true), "GET /api/v1/pods", false),
        (rule(all, &[""], all, all, true), "GET /api/v1/pods", true),
        (rule(all, all, &["pods"], all, true), "GET /api/v1/namespaces/a/pods/b", true),
        (rule(all, all, &["pods"], all, true), "GET /api/v1/namespaces/a/pods/b/status", false),
        (rule(all, all, &["x", "pods/status"], all, true), "GET /api/v1/namespaces/a/pods/b/status", true),
        (rule(all, all, all, all, true), "GET /api/v1/namespaces/a/pods/b/status", true),
        (rule(all, all, all, all, true), "GET /version", false),
        (json!({ "verbs": ["get"], "nonResourceURLs": ["/a/*"] }), "GET /a/b/c", true),
        (json!({ "verbs": ["get"], "nonResourceURLs": ["/a/*"] }), "GET /a", false),
        (json!({ "verbs": ["get"], "nonResourceURLs": ["/a"] }), "GET /a/b", true),
        (json!({ "verbs": ["post"], "nonResourceURLs": ["*"] }), "GET /a", false),
        (json!({ "verbs": ["*"], "nonResourceURLs": ["*"] }), "GET /api/v1/pods", false),
    ] {
        let of_ann = json!({ "kind": "User", "user": { "name": "ann" } });
        let schemas = ordered(&[schema("s", 5, &of_ann, &rule)]);
        let found = found(&schemas, &user("ann", &[]), request);
        assert_eq!(found, if matches { "s" } else { "" }, "{rule} {request}");
    }
}

#[test]
fn a_subject_is_a_user_a_group_a_service_account_or_all_of_them() {
    let account = |namespace: &str, name: &str| json!({ "kind": "ServiceAccount", "serviceAccount": { "namespace": namespace, "name": name } });
    let ann = user("ann", &["g"]);
    let robot = user("system:serviceaccount:n:robot", &[]);
    for (subject, ann_is, robot_is) in [
        (json!({ "kind": "User", "user": { "name": "ann" } }), true, false),
        (json!({ "kind": "User", "user": { "name": "*" } }), true, true),
        (json!({ "kind": "Group", "group": { "name": "g" } }), true, false),
        (json!({ "kind": "Group", "group": { "name": "*" } }), true, true),
        (json!({ "kind": "Group", "group": { "name": "ann" } }), false, false),
        (account("n", "robot"), false, true),
        (account("n", "*"), false, true),
        (account("n", "other"), false, false),
        (account("m", "*"), false, false),
    ] {
        let anything = json!({ "verbs": ["*"], "nonResourceURLs": ["*"] });
        let schemas = ordered(&[schema("s", 5, &subject, &anything)]);
        let is = |user: &User| found(&schemas, user, "GET /x") == "s";
        assert_eq!((is(&ann), is(&robot)), (ann_is, robot_is), "{subject}");
    }
}

#[test]
fn the_lowest_precedence_decides_and_then_the_name_whoever_the_subject_is() {
    let anything = json!({ "verbs": ["*"], "nonResourceURLs": ["*"] });
    let of_group = |name: &str| json!({ "kind": "Group", "group": { "name": name } });
    let of_ann = json!({ "kind": "User", "user": { "name": "ann" } });
    let schemas = ordered(&[
        schema("late", 9, &of_ann, &anything),
        schema("b", 5, &of_ann, &anything),
        schema("a", 5, &of_group("g"), &anything),
        schema("first", 2, &of_group("h"), &anything),
    ]);
    assert_eq!(found(&schemas, &user("ann", &["g"]), "GET /x"), "a");
    assert_eq!(found(&schemas, &user("ann", &["g", "h"]), "GET /x"), "first");
    assert_eq!(found(&schemas, &user("ann", &[]), "GET /x"), "b");
}
