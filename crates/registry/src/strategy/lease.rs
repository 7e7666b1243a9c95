//! Leases.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy};
use object::field::Errors;
use object::{Value, name};

pub const STRATEGY: Strategy =
    Strategy { validate: Some(validate), unconditional_update: false, create_on_update: true, ..PLAIN };

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    spec.child("leaseDurationSeconds").positive(errors);
    spec.child("leaseTransitions").non_negative(errors);
    let strategy = spec.child("strategy");
    // A strategy that somebody else defines has a domain; Kubernetes names the place twice.
    let named = Place { path: strategy.path.child("strategy"), ..strategy.clone() };
    match strategy.string() {
        _ if strategy.is_null() => {}
        text if text.contains('/') => named.follows(name::qualified_name, errors),
        _ => named.one_of(&["OldestEmulationVersion"], errors),
    }
    if strategy.is_empty() {
        spec.child("preferredHolder").forbidden("may only be specified if `strategy` is defined", errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::each_mistake_has_its_message;
    use object::json;

    #[test]
    fn each_mistake_is_reported() {
        let good = json!({ "spec": { "holderIdentity": "a", "leaseDurationSeconds": 40, "leaseTransitions": 0 } });
        each_mistake_has_its_message(
            &STRATEGY,
            "coordination.v1.Lease",
            &good,
            &[
                (
                    "spec.leaseDurationSeconds",
                    json!(0),
                    &["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
                ),
                (
                    "spec.leaseTransitions",
                    json!(-1),
                    &["spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"],
                ),
                (
                    "spec.preferredHolder",
                    json!("b"),
                    &["spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"],
                ),
            ],
        );
    }
}
