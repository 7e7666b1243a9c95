//! PodDisruptionBudgets.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy, label_selector};
use object::Value;
use object::field::Errors;

pub const STRATEGY: Strategy = Strategy {
    validate: Some(validate),
    validate_status: Some(validate_status),
    generation: true,
    unconditional_update: false,
    ..PLAIN
};

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    if spec.field("minAvailable").is_set() && spec.field("maxUnavailable").is_set() {
        spec.invalid(errors, "minAvailable and maxUnavailable cannot be both set");
    }
    for field in ["minAvailable", "maxUnavailable"] {
        validate_number_or_percent(&spec.field(field), errors);
    }
    label_selector::validate(&spec.field("selector"), errors);
    spec.field("unhealthyPodEvictionPolicy").one_of_if_set(errors, &["AlwaysAllow", "IfHealthyBudget"]);
}

/// A number of pods, or a part of all of them.
fn validate_number_or_percent(place: &Place, errors: &mut Errors) {
    let Some(text) = place.value().as_str() else { return place.not_negative(errors) };
    let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty());
    match digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
        None => place.invalid(errors, "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used \
             for validation is '[0-9]+%')"),
        Some(digits) if digits.parse::<u64>().map_or(true, |percent| percent > 100) => {
            place.invalid(errors, "must not be greater than 100%");
        }
        Some(_) => {}
    }
}

fn validate_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let status = Place::field_of(new, "status");
    for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        status.field(field).not_negative(errors);
    }
}

#[cfg(test)]
mod tests {

    use crate::strategy::check::each_mistake_has_its_message;
    use object::json;

    #[test]
    fn each_mistake_is_reported() {
        let good = json!({ "spec": { "minAvailable": "50%", "selector": { "matchLabels": { "a": "b" } } } });
        each_mistake_has_its_message(
            "policy.v1.PodDisruptionBudget",
            &good,
            &[
                (
                    "spec",
                    json!({ "minAvailable": 1, "maxUnavailable": 1 }),
                    &[
                        "spec: Invalid value: {\"maxUnavailable\":1,\"minAvailable\":1}: minAvailable and maxUnavailable cannot be \
                   both set",
                    ],
                ),
                (
                    "spec.minAvailable",
                    json!("101%"),
                    &["spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"],
                ),
                (
                    "spec.minAvailable",
                    json!(-1),
                    &["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"],
                ),
                (
                    "spec.minAvailable",
                    json!("half"),
                    &[
                        "spec.minAvailable: Invalid value: \"half\": a valid percent string must be a numeric string followed by an \
                   ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
                    ],
                ),
                (
                    "spec.unhealthyPodEvictionPolicy",
                    json!("Never"),
                    &[
                        "spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported values: \"AlwaysAllow\", \
                   \"IfHealthyBudget\"",
                    ],
                ),
            ],
        );
    }
}
