//! Leases.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy};
use object::field::Errors;
use object::{Value, name};

pub const STRATEGY: Strategy =
    Strategy { validate: Some(validate), unconditional_update: false, create_on_update: true, ..PLAIN };

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    spec.field("leaseDurationSeconds").positive_if_set(errors);
    spec.field("leaseTransitions").not_negative(errors);
    let strategy = spec.field("strategy");
    // A strategy that somebody else defines has a domain; Kubernetes names the place twice.
    let named = strategy.field("strategy").with(strategy.value());
    match strategy.text() {
        _ if !strategy.is_set() => {}
        text if text.contains('/') => named.follows(errors, name::qualified_name),
        _ => named.one_of(errors, &["OldestEmulationVersion"]),
    }
    if strategy.is_empty() {
        spec.field("preferredHolder").forbid(errors, "may only be specified if `strategy` is defined");
    }
}

#[cfg(test)]
mod tests {

    use crate::strategy::check::each_mistake_has_its_message;
    use object::json;

    #[test]
    fn each_mistake_is_reported() {
        let good = json!({ "spec": { "holderIdentity": "a", "leaseDurationSeconds": 40, "leaseTransitions": 0 } });
        each_mistake_has_its_message(
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
