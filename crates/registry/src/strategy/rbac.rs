//! Roles and their bindings.

use crate::strategy::place::{Place, same, set_if_empty};
use crate::strategy::{PLAIN, Strategy, label_selector};
use object::field::Errors;
use object::{Edit, Value, View, name};

/// What all four have in common.
const RBAC: Strategy = Strategy { name: name::path_segment, create_on_update: true, ..PLAIN };

pub const ROLE: Strategy = Strategy { validate: Some(|new, _, errors| validate_rules(new, true, errors)), ..RBAC };
pub const CLUSTER_ROLE: Strategy = Strategy { validate: Some(validate_cluster_role), ..RBAC };
pub const ROLE_BINDING: Strategy = Strategy {
    default: Some(default_binding),
    validate: Some(|new, old, errors| validate_binding(new, old, true, errors)),
    ..RBAC
};
pub const CLUSTER_ROLE_BINDING: Strategy = Strategy {
    default: Some(default_binding),
    validate: Some(|new, old, errors| validate_binding(new, old, false, errors)),
    ..RBAC
};

const GROUP: &str = "rbac.authorization.k8s.io";

fn validate_rules(role: &Value, namespaced: bool, errors: &mut Errors) {
    Place::root(role).list("rules").for_each(|rule| validate_rule(&rule, namespaced, errors));
}

fn validate_rule(rule: &Place, namespaced: bool, errors: &mut Errors) {
    rule.child("verbs").required("verbs must contain at least one value", errors);
    let urls = rule.child("nonResourceURLs");
    if urls.is_empty() {
        rule.child("apiGroups").required("resource rules must supply at least one api group", errors);
        rule.child("resources").required("resource rules must supply at least one resource", errors);
        return;
    }
    if namespaced {
        errors.push(urls.invalid("namespaced rules cannot apply to non-resource URLs"));
    }
    if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !rule.items(field).is_empty()) {
        errors.push(urls.invalid("rules cannot apply to both regular resources and non-resource URLs"));
    }
}

fn validate_cluster_role(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    validate_rules(new, false, errors);
    let aggregation = Place::root(new).child("aggregationRule");
    if !aggregation.is_null() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        aggregation.child("clusterRoleSelectors").required(detail, errors);
        for selector in aggregation.list("clusterRoleSelectors") {
            label_selector::validate(selector.value, &selector.path, errors);
        }
    }
}

fn default_binding(binding: &mut Value) {
    if let Some(role) = binding.object("roleRef") {
        set_if_empty(role, "apiGroup", GROUP);
    }
    for subject in binding.each("subjects").filter(|subject| matches!(subject.text("kind"), "User" | "Group")) {
        set_if_empty(subject, "apiGroup", GROUP);
    }
}

fn validate_binding(new: &Value, old: Option<&Value>, namespaced: bool, errors: &mut Errors) {
    let binding = Place::root(new);
    let role = binding.child("roleRef");
    role.child("apiGroup").one_of(&[GROUP], errors);
    role.child("kind").one_of(if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] }, errors);
    role.child("name").required_follows(name::path_segment, errors);
    binding.list("subjects").for_each(|subject| validate_subject(&subject, namespaced, errors));
    if old.is_some_and(|old| !same(role.value, old.at("roleRef"))) {
        errors.push(role.invalid("cannot change roleRef"));
    }
}

fn validate_subject(subject: &Place, namespaced: bool, errors: &mut Errors) {
    let name = subject.child("name");
    name.required("", errors);
    match subject.text("kind") {
        "ServiceAccount" => {
            name.optional_follows(name::dns_subdomain, errors);
            subject.child("apiGroup").one_of(&[""], errors);
            if !namespaced {
                subject.child("namespace").required("", errors);
            }
        }
        "User" | "Group" => subject.child("apiGroup").one_of(&[GROUP], errors),
        _ => subject.child("kind").one_of(&["ServiceAccount", "User", "Group"], errors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn rules_name_verbs_and_either_resources_or_urls() {
        let good = json!({ "rules": [{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }] });
        each_mistake_has_its_message(
            &ROLE,
            "rbac.v1.Role",
            &good,
            &[
                (
                    "rules.0",
                    json!({ "verbs": [] }),
                    &[
                        "rules[0].verbs: Required value: verbs must contain at least one value",
                        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                        "rules[0].resources: Required value: resource rules must supply at least one resource",
                    ],
                ),
                (
                    "rules.0",
                    json!({ "verbs": ["get"], "nonResourceURLs": ["/x"] }),
                    &[
                        "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
                    ],
                ),
            ],
        );
        each_mistake_has_its_message(
            &CLUSTER_ROLE,
            "rbac.v1.ClusterRole",
            &good,
            &[
                ("rules.0", json!({ "verbs": ["get"], "nonResourceURLs": ["/x"] }), &[]),
                (
                    "aggregationRule",
                    json!({}),
                    &[
                        "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if \
                   aggregationRule is non-nil",
                    ],
                ),
            ],
        );
    }

    #[test]
    fn bindings_name_one_role_for_good() {
        let good = json!({
            "roleRef": { "kind": "Role", "name": "a" },
            "subjects": [{ "kind": "User", "name": "jane" }, { "kind": "ServiceAccount", "name": "b" }],
        });
        each_mistake_has_its_message(
            &ROLE_BINDING,
            "rbac.v1.RoleBinding",
            &good,
            &[
                (
                    "roleRef.kind",
                    json!("Pod"),
                    &["roleRef.kind: Unsupported value: \"Pod\": supported values: \"Role\", \"ClusterRole\""],
                ),
                ("roleRef.name", json!(""), &["roleRef.name: Required value"]),
                (
                    "subjects.0",
                    json!({ "kind": "Robot", "name": "x" }),
                    &[
                        "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
                    ],
                ),
                (
                    "subjects.1.apiGroup",
                    json!("x"),
                    &["subjects[1].apiGroup: Unsupported value: \"x\": supported values: \"\""],
                ),
            ],
        );
        each_change_has_its_message(
            &ROLE_BINDING,
            "rbac.v1.RoleBinding",
            &good,
            &[(
                "roleRef.name",
                json!("c"),
                &[
                    "roleRef: Invalid value: {\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"Role\",\"name\":\"c\"}: cannot \
               change roleRef",
                ],
            )],
        );
        let everywhere = json!({
            "roleRef": { "kind": "ClusterRole", "name": "a" },
            "subjects": [{ "kind": "ServiceAccount", "name": "b", "namespace": "c" }],
        });
        each_mistake_has_its_message(
            &CLUSTER_ROLE_BINDING,
            "rbac.v1.ClusterRoleBinding",
            &everywhere,
            &[
                (
                    "roleRef.kind",
                    json!("Role"),
                    &["roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""],
                ),
                ("subjects.0.namespace", json!(""), &["subjects[0].namespace: Required value"]),
            ],
        );
    }
}
