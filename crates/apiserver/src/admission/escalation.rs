//! Nobody grants what they do not have: the rules of roles and bindings.
//!
//! Whoever writes a role must have all of its rights, or the right to `escalate`; whoever binds one must have all of
//! its rights, or the right to `bind` it.

use super::{NONE, Operation, Plugin, Review};
use authz::{Rule, Rules, covers, escalation_message};
use object::{ApiError, Value, View};

pub(super) const PLUGIN: Plugin = Plugin { name: "RoleEscalation", validate: Some(validate), ..NONE };

const GROUP: &str = "rbac.authorization.k8s.io";

fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    let Some((plural, GROUP)) = review.table().split_once('.') else { return Ok(()) };
    let user = &review.ctx.user;
    if review.operation == Operation::Delete || user.is_in(authz::MASTERS) {
        return Ok(());
    }
    let (object, namespace) = (&*review.object, review.namespace());
    let authorization = &review.ctx.api.authorization;
    let wanted = match plural {
        "roles" | "clusterroles" => {
            let same = |old: &&Value| {
                old.at("rules") == object.at("rules") && old.at("aggregationRule") == object.at("aggregationRule")
            };
            if review.old.as_ref().is_some_and(same)
                || authorization.allows(user, "escalate", GROUP, plural, review.name(), namespace)
            {
                return Ok(());
            }
            if object.has("aggregationRule") && !has_everything(review) {
                let cause = "must have cluster-admin privileges to use an aggregationRule";
                return Err(review.forbid(cause));
            }
            Rule::all(object)
        }
        _ => {
            let role = object.at("roleRef");
            let same = |old: &&Value| old.at("roleRef") == role && old.at("subjects") == object.at("subjects");
            let of_cluster = role.text("kind") == "ClusterRole";
            let kind = if of_cluster { "clusterroles" } else { "roles" };
            if review.old.as_ref().is_some_and(same)
                || authorization.allows(user, "bind", GROUP, kind, role.text("name"), namespace)
            {
                return Ok(());
            }
            let found = authorization
                .with_rules(|rules| rules.role(role.text("kind"), role.text("name"), namespace).map(<[Rule]>::to_vec));
            found.map_err(|_| ApiError::not_found(GROUP, kind, role.text("name")))?
        }
    };
    let held = authorization.with_rules(|rules: &Rules| rules.rules_for(user, namespace));
    let held: Vec<Rule> = held.rules().cloned().collect();
    match covers(&held, &wanted).as_slice() {
        [] => Ok(()),
        uncovered => Err(review.forbid(&escalation_message(user, uncovered))),
    }
}

/// Whether the user may do everything everywhere.
fn has_everything(review: &Review<'_>) -> bool {
    let all = Rule {
        verbs: vec!["*".to_owned()],
        api_groups: vec!["*".to_owned()],
        resources: vec!["*".to_owned()],
        ..Rule::default()
    };
    let held = review.ctx.api.authorization.with_rules(|rules| rules.rules_for(&review.ctx.user, ""));
    let held: Vec<Rule> = held.rules().cloned().collect();
    covers(&held, &[all]).is_empty()
}
