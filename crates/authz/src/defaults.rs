//! The policy a cluster starts with, read from the tables in `facts/`.
//!
//! ```text
//! ClusterRole edit joins admin gathers edit      a role, what it is added to, and what it is made of
//! Role kube-system/token-cleaner                 a role in a namespace
//!   read,delete core      secrets                a rule: verbs, API groups, resources
//!   update      core,apps x,y named a,b            only of these names
//!   get         url       /healthz,/livez          on paths that are no resources
//!   read        x.k8s.io  y with x.k8s.io/v1alpha1 a line that is there only where this version is served
//! ClusterRoleBinding cluster-admin               a binding of the role of the same name
//! RoleBinding kube-system/b of r                 a binding of another role
//!   Group system:masters                         whom it is bound to
//!   ServiceAccount kube-system/x
//! Controller job-controller                      the role system:controller:job-controller, and its binding to the
//!   read core pods                                 service account of that name
//! ```
//!
//! `read` is get, list and watch; `write` is create, delete, deletecollection, patch and update; `core` is the group
//! without a name. The tables are part of the program; a mistake in one is a bug, so reading them panics, and a test
//! reads them all.

use crate::rule::Rule;
use object::{Edit, Value, json};

const TABLES: [&str; 3] = [
    include_str!("../facts/cluster.txt"),
    include_str!("../facts/controllers.txt"),
    include_str!("../facts/namespaces.txt"),
];

const GROUP: &str = "rbac.authorization.k8s.io";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

/// The roles and bindings that have to be there, as objects, given which versions are served that are not everywhere.
pub fn default_objects(is_served: &dyn Fn(&str) -> bool) -> Vec<Value> {
    TABLES.iter().flat_map(|table| read(table, is_served)).collect()
}

fn read(table: &str, is_served: &dyn Fn(&str) -> bool) -> Vec<Value> {
    let mut objects = Vec::new();
    // An object opens with a line at the margin; what follows it is indented.
    let mut block: Vec<&str> = Vec::new();
    let lines = table.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let lines = lines.filter_map(|line| match line.split_once(" with ") {
        None => Some(line),
        Some((line, version)) => is_served(version).then_some(line),
    });
    for line in lines.chain(["end"]) {
        if !line.starts_with(' ') && !block.is_empty() {
            let read = objects_of(&block);
            objects.extend(read.unwrap_or_else(|| panic!("default policy: cannot understand {block:?}")));
            block.clear();
        }
        block.push(line);
    }
    objects
}

/// The objects that a block stands for; none if it cannot be understood.
fn objects_of(block: &[&str]) -> Option<Vec<Value>> {
    let (head, body) = block.split_first()?;
    let words: Vec<&str> = head.split_whitespace().collect();
    let [kind, name, options @ ..] = words.as_slice() else { return None };
    let rules = || body.iter().map(|line| rule(line)).collect::<Option<Vec<_>>>();
    match *kind {
        "Controller" => {
            let role = format!("system:controller:{name}");
            let account = subject("ServiceAccount", &format!("kube-system/{name}"))?;
            Some(vec![
                with_rules("ClusterRole", &role, &rules()?),
                binding("ClusterRoleBinding", &role, &role, vec![account]),
            ])
        }
        "Role" | "ClusterRole" => {
            let mut role = with_rules(kind, name, &rules()?);
            for option in options.chunks(2) {
                let [word, group] = option else { return None };
                let label = format!("{GROUP}/aggregate-to-{group}");
                match *word {
                    "joins" => role["metadata"]["labels"].set(&label, "true"),
                    "gathers" => {
                        role.set(
                            "aggregationRule",
                            json!({ "clusterRoleSelectors": [{ "matchLabels": { label: "true" } }] }),
                        );
                        role.set("rules", Value::Null);
                    }
                    _ => return None,
                }
            }
            Some(vec![role])
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            let role = match options {
                [] => name.rsplit('/').next()?,
                ["of", role] => role,
                _ => return None,
            };
            let subjects = body.iter().map(|line| {
                let (kind, name) = line.trim().split_once(' ')?;
                subject(kind, name)
            });
            Some(vec![binding(kind, name, role, subjects.collect::<Option<_>>()?)])
        }
        _ => None,
    }
}

/// One rule, from a line of a table.
pub(crate) fn rule(line: &str) -> Option<Rule> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [verbs, groups, resources, options @ ..] = words.as_slice() else { return None };
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut verbs: Vec<String> = list(verbs)
        .into_iter()
        .flat_map(|verb| match verb.as_str() {
            "read" => READ.map(str::to_owned).to_vec(),
            "write" => WRITE.map(str::to_owned).to_vec(),
            _ => vec![verb],
        })
        .collect();
    verbs.sort();
    let rule = Rule { verbs, ..Rule::default() };
    let group = |group: String| if group == "core" { String::new() } else { group };
    let resource_names = match options {
        [] => vec![],
        ["named", names] => list(names),
        _ => return None,
    };
    Some(match *groups {
        "url" => Rule { non_resource_urls: list(resources), ..rule },
        groups => Rule {
            api_groups: list(groups).into_iter().map(group).collect(),
            resources: list(resources),
            resource_names,
            ..rule
        },
    })
}

/// An object with the metadata all of them have; the name of one in a namespace is `namespace/name`.
fn object(kind: &str, name: &str) -> Value {
    let mut metadata = json!({
        "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
        "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
    });
    match name.split_once('/') {
        Some((namespace, name)) => {
            metadata.set("namespace", namespace);
            metadata.set("name", name);
        }
        None => metadata.set("name", name),
    }
    json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata })
}

fn with_rules(kind: &str, name: &str, rules: &[Rule]) -> Value {
    let mut role = object(kind, name);
    role.set("rules", rules.iter().map(Rule::to_value).collect::<Value>());
    role
}

fn binding(kind: &str, name: &str, role: &str, subjects: Vec<Value>) -> Value {
    let mut binding = object(kind, name);
    let role_kind = if kind == "RoleBinding" { "Role" } else { "ClusterRole" };
    binding.set("roleRef", json!({ "apiGroup": GROUP, "kind": role_kind, "name": role }));
    if !subjects.is_empty() {
        binding.set("subjects", subjects);
    }
    binding
}

fn subject(kind: &str, name: &str) -> Option<Value> {
    match kind {
        "User" | "Group" => Some(json!({ "apiGroup": GROUP, "kind": kind, "name": name })),
        "ServiceAccount" => {
            let (namespace, name) = name.split_once('/')?;
            Some(json!({ "kind": kind, "namespace": namespace, "name": name }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::View;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn the_policy_has_all_its_parts() {
        let mut counts = BTreeMap::new();
        let mut names = BTreeSet::new();
        for object in default_objects(&|_| false) {
            let kind = object.text("kind").to_owned();
            *counts.entry(kind.clone()).or_insert(0) += 1;
            let metadata = object.at("metadata");
            let name = (kind, metadata.text("namespace").to_owned(), metadata.text("name").to_owned());
            assert!(names.insert(name.clone()), "{name:?} is there twice");
        }
        let expected = [("ClusterRole", 70), ("ClusterRoleBinding", 50), ("Role", 7), ("RoleBinding", 7)];
        assert_eq!(counts, expected.map(|(kind, count)| (kind.to_owned(), count)).into());
    }

    #[test]
    fn what_is_only_tried_out_has_its_rules_where_it_is_served() {
        let groups = "scheduling.k8s.io/v1alpha2";
        let mentions =
            |objects: &[Value]| objects.iter().filter(|object| object.to_string().contains("podgroups")).count();
        assert_eq!(mentions(&default_objects(&|_| false)), 0);
        let more = default_objects(&|version| version == groups);
        assert_eq!(mentions(&more), 4, "the scheduler, edit, view and a controller");
        assert_eq!(more.len(), default_objects(&|_| false).len() + 2, "the controller's role and its binding");
    }

    #[test]
    fn every_binding_binds_a_role_that_is_there() {
        let objects = default_objects(&|_| false);
        for binding in objects.iter().filter(|object| object.has("roleRef")) {
            let reference = binding.at("roleRef");
            let namespace = binding.at("metadata").text("namespace");
            let role = objects.iter().find(|object| {
                object.text("kind") == reference.text("kind")
                    && object.at("metadata").text("name") == reference.text("name")
                    && object.at("metadata").text("namespace") == namespace
            });
            assert!(role.is_some(), "{binding}");
        }
    }

    #[test]
    fn a_line_is_a_rule() {
        for (line, rule) in [
            (
                "read,delete core pods",
                json!({ "verbs": ["delete", "get", "list", "watch"], "apiGroups": [""], "resources": ["pods"] }),
            ),
            (
                "  update core,apps a,b named c",
                json!({ "verbs": ["update"], "apiGroups": ["", "apps"], "resources": ["a", "b"], "resourceNames": ["c"] }),
            ),
            ("get url /a,/b/*", json!({ "verbs": ["get"], "nonResourceURLs": ["/a", "/b/*"] })),
        ] {
            assert_eq!(super::rule(line).unwrap().to_value(), rule, "{line}");
        }
        for line in ["", "get core", "get core pods called x"] {
            assert_eq!(super::rule(line), None, "{line}");
        }
    }

    #[test]
    fn objects_look_as_clients_know_them() {
        let objects = default_objects(&|_| false);
        let find = |kind: &str, name: &str| {
            let named = |object: &&Value| object.text("kind") == kind && object.at("metadata").text("name") == name;
            objects.iter().find(named).unwrap().clone()
        };
        assert_eq!(
            find("ClusterRole", "edit"),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {
                    "name": "edit",
                    "labels": {
                        "kubernetes.io/bootstrapping": "rbac-defaults",
                        "rbac.authorization.k8s.io/aggregate-to-admin": "true",
                    },
                    "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
                },
                "aggregationRule": {
                    "clusterRoleSelectors": [{ "matchLabels": { "rbac.authorization.k8s.io/aggregate-to-edit": "true" } }],
                },
                "rules": null,
            })
        );
        let signer = find("RoleBinding", "system::leader-locking-kube-scheduler");
        assert_eq!(signer["metadata"]["namespace"], "kube-system");
        assert_eq!(
            signer["subjects"],
            json!([
                { "apiGroup": GROUP, "kind": "User", "name": "system:kube-scheduler" },
                { "kind": "ServiceAccount", "namespace": "kube-system", "name": "kube-scheduler" },
            ])
        );
        assert_eq!(find("ClusterRoleBinding", "system:node").get("subjects"), None);
        assert_eq!(
            find("ClusterRoleBinding", "system:controller:job-controller")["subjects"][0]["name"],
            "job-controller"
        );
    }
}
