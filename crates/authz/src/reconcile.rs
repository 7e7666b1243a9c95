//! Keeping the default policy up to date without undoing what administrators changed.
//!
//! At every start what is missing is added: objects, rules, subjects, labels, annotations, selectors. What was added by
//! hand stays. An object annotated `rbac.authorization.kubernetes.io/autoupdate: "false"` is left alone.

use crate::escalation::covers;
use crate::rule::Rule;
use object::{Edit, Value, View};

/// What has to be written.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    Create(Value),
    Update(Value),
    /// The role of a binding cannot be changed, so the binding has to be deleted and created again.
    Recreate(Value),
}

/// What to write so that the default is there; none if nothing is missing.
pub fn reconcile(existing: Option<&Value>, default: &Value) -> Option<Write> {
    let Some(existing) = existing else { return Some(Write::Create(default.clone())) };
    let annotations = existing.path(&["metadata", "annotations"]);
    if annotations.text("rbac.authorization.kubernetes.io/autoupdate") == "false" {
        return None;
    }
    if existing.at("roleRef") != default.at("roleRef") {
        return Some(Write::Recreate(default.clone()));
    }
    let mut wanted = existing.clone();
    for field in ["annotations", "labels"] {
        for (key, value) in default.at("metadata").entries(field) {
            wanted.object_or_new("metadata").object_or_new(field).set_default(key, value.clone());
        }
    }
    let missing = covers(&Rule::all(existing), &Rule::all(default));
    append(&mut wanted, "rules", missing.iter().map(Rule::to_value));
    let subjects = default.items("subjects").iter().filter(|subject| !existing.items("subjects").contains(subject));
    append(&mut wanted, "subjects", subjects.cloned());
    if !default.has("aggregationRule") {
        wanted.remove("aggregationRule");
    }
    let present = existing.at("aggregationRule").items("clusterRoleSelectors");
    let selectors = default.at("aggregationRule").items("clusterRoleSelectors").iter();
    let mut selectors = selectors.filter(|selector| !present.contains(selector)).cloned().peekable();
    if selectors.peek().is_some() {
        append(wanted.object_or_new("aggregationRule"), "clusterRoleSelectors", selectors);
    }
    (wanted != *existing).then_some(Write::Update(wanted))
}

/// Adds items to a list that may be absent.
fn append(object: &mut Value, field: &str, items: impl Iterator<Item = Value>) {
    let items: Vec<Value> = items.collect();
    if !items.is_empty() {
        let list: Vec<Value> = object.items(field).iter().cloned().chain(items).collect();
        object.set(field, list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::default_objects;
    use object::json;

    const AUTO: &str = "rbac.authorization.kubernetes.io/autoupdate";

    fn role(rules: &Value) -> Value {
        json!({ "metadata": { "name": "r", "labels": { "a": "1" }, "annotations": { AUTO: "true" } }, "rules": rules })
    }

    fn get(resources: &[&str]) -> Value {
        json!({ "verbs": ["get"], "apiGroups": [""], "resources": resources })
    }

    #[test]
    fn what_is_there_in_full_is_left_alone() {
        for default in default_objects(&|_| true) {
            assert_eq!(reconcile(Some(&default), &default), None, "{default}");
            assert_eq!(reconcile(None, &default), Some(Write::Create(default.clone())));
        }
    }

    #[test]
    fn missing_rules_are_added_and_others_stay() {
        let default = role(&json!([get(&["pods", "secrets"])]));
        let existing = role(&json!([get(&["pods"]), get(&["nodes"])]));
        let wanted = role(&json!([get(&["pods"]), get(&["nodes"]), get(&["secrets"])]));
        assert_eq!(reconcile(Some(&existing), &default), Some(Write::Update(wanted)));
        let more = role(&json!([{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }]));
        assert_eq!(reconcile(Some(&more), &default), None);
    }

    #[test]
    fn an_object_can_be_kept_from_being_updated() {
        let mut existing = role(&json!([]));
        existing["metadata"]["annotations"][AUTO] = json!("false");
        assert_eq!(reconcile(Some(&existing), &role(&json!([get(&["pods"])]))), None);
    }

    #[test]
    fn labels_are_added_but_not_changed() {
        let mut existing = role(&json!([]));
        existing["metadata"]["labels"] = json!({ "a": "changed", "own": "x" });
        existing["metadata"].remove("annotations");
        let Some(Write::Update(wanted)) = reconcile(Some(&existing), &role(&json!([]))) else { panic!() };
        assert_eq!(wanted["metadata"]["labels"], json!({ "a": "changed", "own": "x" }));
        assert_eq!(wanted["metadata"]["annotations"], json!({ AUTO: "true" }));
    }

    #[test]
    fn selectors_are_added_and_where_none_should_be_removed() {
        let with = |values: &[&str]| {
            let mut role = role(&json!(null));
            let selectors = values.iter().map(|value| json!({ "matchLabels": { "a": value } })).collect::<Value>();
            role["aggregationRule"] = json!({ "clusterRoleSelectors": selectors });
            role
        };
        assert_eq!(reconcile(Some(&with(&["x"])), &with(&["y"])), Some(Write::Update(with(&["x", "y"]))));
        assert_eq!(reconcile(Some(&with(&["x", "y"])), &with(&["y"])), None);
        assert_eq!(reconcile(Some(&with(&["x"])), &role(&json!(null))), Some(Write::Update(role(&json!(null)))));
    }

    #[test]
    fn missing_subjects_are_added_and_another_role_means_another_binding() {
        let binding = |role: &str, subjects: &[&str]| {
            let subjects: Value = subjects.iter().map(|name| json!({ "kind": "User", "name": name })).collect();
            json!({ "metadata": { "name": "b" }, "roleRef": { "name": role }, "subjects": subjects })
        };
        let default = binding("r", &["u"]);
        assert_eq!(reconcile(Some(&binding("r", &["v"])), &default), Some(Write::Update(binding("r", &["v", "u"]))));
        assert_eq!(reconcile(Some(&binding("s", &["u"])), &default), Some(Write::Recreate(default.clone())));
        assert_eq!(reconcile(Some(&binding("r", &["u", "v"])), &default), None);
    }
}
