//! Taints of devices and their tolerations; DeviceTaintRules, which taint devices whatever their slices say.

use crate::strategy::device::validate_pool_name;
use crate::strategy::place::Place;
use crate::strategy::volume::validate_driver_name;
use crate::strategy::{PLAIN, Strategy, condition};
use object::field::Errors;
use object::{Value, name};

pub const RULE: Strategy =
    Strategy { validate: Some(validate_rule), validate_status: Some(validate_status), generation: true, ..PLAIN };

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];
const MAX_CONDITIONS: usize = 8;

fn validate_rule(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    let selector = spec.field("deviceSelector");
    for (field, validate) in [
        ("driver", validate_driver_name as fn(&Place, &mut Errors)),
        ("pool", validate_pool_name),
        ("device", |device, errors| device.follows(errors, name::dns_label)),
    ] {
        if selector.field(field).is_set() {
            validate(&selector.field(field), errors);
        }
    }
    validate_taint(&spec.field("taint"), errors);
}

fn validate_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let conditions = Place::field_of(new, "status");
    let conditions = conditions.field("conditions");
    condition::validate_all(&conditions, errors);
    conditions.at_most(errors, MAX_CONDITIONS);
}

pub fn validate_taint(taint: &Place, errors: &mut Errors) {
    taint.field("key").follows(errors, name::qualified_name);
    taint.field("value").follows_if_set(errors, name::label_value);
    taint.field("effect").require_one_of(errors, &EFFECTS);
}

pub fn validate_toleration(toleration: &Place, errors: &mut Errors) {
    toleration.field("key").follows_if_set(errors, name::qualified_name);
    let value = toleration.field("value");
    match toleration.field("operator").text() {
        "Exists" if value.is_empty() => {}
        "Exists" => value.invalid(errors, "must be empty for operator `Exists`"),
        "Equal" => value.follows(errors, name::label_value),
        _ => toleration.field("operator").require_one_of(errors, &["Equal", "Exists"]),
    }
    let effect = toleration.field("effect");
    if !effect.is_empty() {
        effect.one_of(errors, &EFFECTS);
    }
}

#[cfg(test)]
mod tests {
    use crate::strategy::check::each_mistake_has_its_message;
    use object::json;

    #[test]
    fn a_rule_selects_devices_by_name_and_taints_them() {
        let rule = json!({ "spec": {
            "deviceSelector": { "driver": "gpu.example.com", "pool": "n1/a", "device": "gpu-0" },
            "taint": { "key": "example.com/broken", "effect": "NoExecute" },
        } });
        for kind in ["resource.v1beta2.DeviceTaintRule", "resource.v1alpha3.DeviceTaintRule"] {
            each_mistake_has_its_message(
                kind,
                &rule,
                &[
                    ("spec.deviceSelector", json!(null), &[]),
                    ("spec.deviceSelector.pool", json!(""), &["spec.deviceSelector.pool: Required value"]),
                    ("spec.taint.effect", json!(""), &["spec.taint.effect: Required value"]),
                    (
                        "spec.taint.effect",
                        json!("PreferNoSchedule"),
                        &[
                            "spec.taint.effect: Unsupported value: \"PreferNoSchedule\": supported values: \"NoExecute\", \
                           \"NoSchedule\", \"None\"",
                        ],
                    ),
                ],
            );
        }
    }
}
