//! Roles and their bindings.

use crate::strategy::place::Place;
use crate::strategy::value::{same, set_if_empty};
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
    Place::field_of(role, "rules").items().for_each(|rule| validate_rule(&rule, namespaced, errors));
}

fn validate_rule(rule: &Place, namespaced: bool, errors: &mut Errors) {
    rule.field("verbs").require_because(errors, "verbs must contain at least one value");
    let urls = rule.field("nonResourceURLs");
    if urls.is_empty() {
        rule.field("apiGroups").require_because(errors, "resource rules must supply at least one api group");
        rule.field("resources").require_because(errors, "resource rules must supply at least one resource");
        return;
    }
    if namespaced {
        urls.invalid(errors, "namespaced rules cannot apply to non-resource URLs");
    }
    if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !rule.field(field).is_empty()) {
        urls.invalid(errors, "rules cannot apply to both regular resources and non-resource URLs");
    }
}

fn validate_cluster_role(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    validate_rules(new, false, errors);
    let aggregation = Place::field_of(new, "aggregationRule");
    if aggregation.is_set() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        aggregation.field("clusterRoleSelectors").require_because(errors, detail);
        for selector in aggregation.field("clusterRoleSelectors").items() {
            label_selector::validate(&selector, errors);
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
    let binding = Place::object(new);
    let role = binding.field("roleRef");
    role.field("apiGroup").one_of(errors, &[GROUP]);
    role.field("kind").one_of(errors, if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] });
    role.field("name").require_follows(errors, name::path_segment);
    binding.field("subjects").items().for_each(|subject| validate_subject(&subject, namespaced, errors));
    if old.is_some_and(|old| !same(role.value(), old.at("roleRef"))) {
        role.invalid(errors, "cannot change roleRef");
    }
}

fn validate_subject(subject: &Place, namespaced: bool, errors: &mut Errors) {
    let name = subject.field("name");
    name.require(errors);
    match subject.field("kind").text() {
        "ServiceAccount" => {
            name.follows_if_set(errors, name::dns_subdomain);
            subject.field("apiGroup").one_of(errors, &[""]);
            if !namespaced {
                subject.field("namespace").require(errors);
            }
        }
        "User" | "Group" => subject.field("apiGroup").one_of(errors, &[GROUP]),
        _ => subject.field("kind").one_of(errors, &["ServiceAccount", "User", "Group"]),
    }
}

#[cfg(test)]
mod tests {

    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn rules_name_verbs_and_either_resources_or_urls() {
        let good = json!({ "rules": [{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }] });
        each_mistake_has_its_message(
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
