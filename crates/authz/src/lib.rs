//! Who may do what. Pure: objects go in as they change, and decisions come out.
//!
//! Three parties are asked in turn, and the first that allows a request decides: members of `system:masters` may do
//! everything, nodes may do what their pods need ([`node`]), and everyone may do what roles say that are bound to them
//! ([`Rules`]). Nobody can forbid what another allows, so what nobody allows is forbidden.
//!
//! A decision allocates nothing; why it was made is put into words only for those who ask.

mod aggregation;
mod defaults;
mod escalation;
pub mod node;
mod rbac;
mod reconcile;
mod request;
mod rule;

pub use aggregation::aggregate;
pub use defaults::default_objects;
pub use escalation::{covers, escalation_message};
pub use rbac::{Granted, RoleNotFound, Rules};
pub use reconcile::{Write, reconcile};
pub use request::{Attributes, Decision, Reason, User};
pub use rule::Rule;

use node::Graph;

/// The group whose members may do everything, whatever the roles say.
pub const MASTERS: &str = "system:masters";

/// Whether a request is allowed, by anyone.
pub fn authorize<'a>(request: &Attributes<'a>, graph: &Graph, rules: &'a Rules) -> Decision<'a> {
    if request.user.is_in(MASTERS) {
        return Decision::Allow(Reason::None);
    }
    match node::authorize(request, graph) {
        Decision::Allow(reason) => Decision::Allow(reason),
        Decision::NoOpinion(of_node) => match rules.authorize(request) {
            Decision::Allow(reason) => Decision::Allow(reason),
            Decision::NoOpinion(of_rules) => Decision::NoOpinion(of_node.and(of_rules)),
        },
    }
}

/// What a user may do in a namespace, as far as it can be listed.
pub fn rules_for(user: &User, namespace: &str, rules: &Rules) -> Granted {
    let mut granted = rules.rules_for(user, namespace);
    if node::name(user).is_some() {
        granted.incomplete = true;
        granted.errors.insert(0, "node authorizer does not support user rule resolution".to_owned());
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn user(name: &str, groups: &[&str]) -> User {
        User {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..User::default()
        }
    }

    #[test]
    fn masters_need_no_rules() {
        let masters = user("root", &["other", MASTERS]);
        let request = Attributes { verb: "get", path: "/metrics", ..Attributes::of(&masters) };
        let (graph, rules) = (Graph::default(), Rules::default());
        assert!(authorize(&request, &graph, &rules).is_allowed());
        let nobody = user("nobody", &[]);
        assert!(!authorize(&Attributes { user: &nobody, ..request }, &graph, &rules).is_allowed());
    }

    #[test]
    fn what_all_say_against_a_request_is_told() {
        let node = user("system:node:n", &["system:nodes"]);
        let mut rules = Rules::default();
        let binding = json!({
            "roleRef": { "kind": "ClusterRole", "name": "r" }, "subjects": [{ "kind": "Group", "name": "system:nodes" }],
        });
        rules.apply("ClusterRoleBinding", "", "b", Some(&binding));
        let request = Attributes { name: "s", namespace: "x", ..Attributes::resource(&node, "get", "", "secrets") };
        let decision = authorize(&request, &Graph::default(), &rules);
        assert!(!decision.is_allowed());
        assert_eq!(
            decision.reason().to_string(),
            "no relationship found between node 'n' and this object\n\
             RBAC: clusterrole.rbac.authorization.k8s.io \"r\" not found"
        );
    }

    #[test]
    fn the_rules_of_a_node_cannot_be_listed_in_full() {
        let rules = Rules::default();
        assert!(rules_for(&user("system:node:n", &["system:nodes"]), "x", &rules).incomplete);
        assert!(!rules_for(&user("u", &[]), "x", &rules).incomplete);
    }
}
