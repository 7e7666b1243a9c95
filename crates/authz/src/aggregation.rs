//! Cluster roles that gather their rules from others by label.

use object::selector::{InvalidSelector, LabelSelector};
use object::{Value, View};

/// The rules a role should have, given all cluster roles; none if it gathers nothing.
///
/// For each of its selectors the roles that match are taken by name, and of equal rules the first.
pub fn aggregate(role: &Value, cluster_roles: &[&Value]) -> Result<Option<Vec<Value>>, InvalidSelector> {
    if !role.has("aggregationRule") {
        return Ok(None);
    }
    let name = |role: &Value| role.at("metadata").text("name").to_owned();
    let mut others: Vec<&Value> = cluster_roles.iter().copied().filter(|other| name(other) != name(role)).collect();
    others.sort_by_key(|other| name(other));
    let mut rules: Vec<Value> = Vec::new();
    for selector in role.at("aggregationRule").items("clusterRoleSelectors") {
        let selector = LabelSelector::from_object(selector)?;
        let selected = others.iter().filter(|other| {
            let labels = other.path(&["metadata", "labels"]);
            selector.matches(|key| labels.at(key).as_str())
        });
        for rule in selected.flat_map(|other| other.items("rules")) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    Ok(Some(rules))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::default_objects;
    use object::json;

    #[test]
    fn a_role_gathers_the_rules_of_others_once_and_by_name() {
        let role = |name: &str, label: &str, verbs: &[&str]| {
            let rules: Value = verbs.iter().map(|verb| json!({ "verbs": [verb] })).collect();
            json!({ "metadata": { "name": name, "labels": { "to": label } }, "rules": rules })
        };
        let mut gathering = role("a", "x", &["own"]);
        let selector = |value: &str| json!({ "matchLabels": { "to": value } });
        gathering["aggregationRule"] = json!({ "clusterRoleSelectors": [selector("x"), selector("y")] });
        let others =
            [role("d", "x", &["1", "2"]), role("b", "x", &["2"]), role("c", "y", &["3"]), role("e", "z", &["4"])];
        let all: Vec<&Value> = others.iter().chain([&gathering]).collect();
        let gathered = aggregate(&gathering, &all).unwrap().unwrap();
        let verbs: Vec<_> = gathered.iter().map(|rule| rule.items("verbs")[0].as_str().unwrap()).collect();
        assert_eq!(verbs, ["2", "1", "3"]);
        assert_eq!(aggregate(&others[0], &all).unwrap(), None);
        let unclear = json!({ "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "-": "" } }] } });
        assert!(aggregate(&unclear, &all).is_err());
    }

    #[test]
    fn the_default_roles_build_on_each_other() {
        let objects = default_objects(&|_| true);
        let mut roles: Vec<Value> = objects.into_iter().filter(|object| object.text("kind") == "ClusterRole").collect();
        // Like the controller, again and again until nothing changes.
        for _ in 0..3 {
            let all: Vec<&Value> = roles.iter().collect();
            let gathered: Vec<_> = roles.iter().map(|role| aggregate(role, &all).unwrap()).collect();
            for (role, rules) in roles.iter_mut().zip(gathered) {
                if let Some(rules) = rules {
                    role["rules"] = Value::Array(rules);
                }
            }
        }
        let size = |name: &str| {
            let role = roles.iter().find(|role| role.at("metadata").text("name") == name).unwrap();
            role.items("rules").len()
        };
        assert_eq!(size("view"), size("system:aggregate-to-view") + size("system:aggregated-metrics-reader"));
        assert_eq!(size("edit"), size("view") + size("system:aggregate-to-edit"));
        assert_eq!(size("admin"), size("edit") + size("system:aggregate-to-admin"));
    }
}
