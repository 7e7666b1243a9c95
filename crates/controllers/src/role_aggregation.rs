//! Cluster roles that are made of others have the rules of those that they select. How rules are put together is
//! `authz`'s business, which does the same when a cluster is made.

use kinds::{ClusterRole, Key, Object};
use object::{Value, json};
use runtime::{Caches, Controller, Plan, Request};
use std::sync::Arc;

pub(crate) fn controller() -> Controller {
    Controller::new("clusterrole-aggregation-controller")
        .watches::<ClusterRole>(aggregating)
        .plans(|caches, request| observe(caches, request).map(|observed| plan(&observed)).unwrap_or_default())
}

fn selects(role: &ClusterRole, other: &ClusterRole) -> bool {
    let selectors = role.aggregation_rule.iter().flat_map(|rule| &rule.cluster_role_selectors);
    selectors.into_iter().any(|selector| selector.matches(&other.metadata.labels))
}

/// The roles that are made of this one, and this one if it is made of others.
fn aggregating(role: &Object<ClusterRole>, caches: &Caches) -> Vec<Key> {
    let all = caches.of::<ClusterRole>().all();
    let concerned = all.iter().filter(|other| {
        other.aggregation_rule.is_some() && (other.metadata.name == role.metadata.name || selects(other, role))
    });
    concerned.map(|other| other.key()).collect()
}

struct Observed {
    role: Arc<Object<ClusterRole>>,
    selected: Vec<Arc<Object<ClusterRole>>>,
}

fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let roles = caches.of::<ClusterRole>();
    let role = roles.get(&request.key).filter(|role| role.aggregation_rule.is_some())?;
    let selected = roles.all().into_iter().filter(|other| selects(&role, other)).collect();
    Some(Observed { role, selected })
}

fn plan(observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    let selected: Vec<Value> = observed.selected.iter().map(|role| role.json()).collect();
    let selected: Vec<&Value> = selected.iter().collect();
    match authz::aggregate(&observed.role.json(), &selected) {
        Ok(Some(rules)) if rules != observed.role.rules => {
            plan.patch(&observed.role, json!({ "rules": rules }));
        }
        Ok(_) => {}
        Err(error) => plan.terminal = Some(error.to_string()),
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_follows_those_it_is_made_of() {
        let mut caches = Caches::default().with::<ClusterRole>();
        let role = |name: &str, verb: &str, selects: Value| {
            Object::<ClusterRole>::of(&json!({
                "metadata": { "name": name, "labels": { "to": name } },
                "rules": [{ "verbs": [verb] }],
                "aggregationRule": selects,
            }))
        };
        let selector = json!({ "clusterRoleSelectors": [{ "matchLabels": { "to": "part" } }] });
        caches.put(role("whole", "get", selector));
        caches.put(role("part", "list", Value::Null));
        caches.put(role("other", "watch", Value::Null));
        let planned = |caches: &Caches, name: &str| {
            let request = Request { key: Key::cluster(name), now: kinds::Time(0), failure: None };
            observe(caches, &request).map(|observed| plan(&observed).summary()).unwrap_or_default()
        };
        assert_eq!(planned(&caches, "whole"), ["patch clusterroles whole"]);
        assert!(planned(&caches, "part").is_empty());
        let part = role("part", "get", Value::Null);
        assert_eq!(aggregating(&part, &caches), [Key::cluster("whole")]);
        assert!(aggregating(&role("other", "watch", Value::Null), &caches).is_empty());
        caches.put(part);
        assert!(planned(&caches, "whole").is_empty());
    }
}
