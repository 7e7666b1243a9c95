//! How much of a device's capacity one request may take, where many can share the device.

use crate::strategy::place::Place;
use object::Quantity;
use object::field::Errors;

const MAX_VALUES: usize = 10;

/// A capacity of a device. Only of one that is given to many can there be a policy.
pub fn validate(capacity: &Place, is_shared: bool, errors: &mut Errors) {
    let policy = capacity.field("requestPolicy");
    if !policy.is_set() {
        return;
    }
    if !is_shared {
        policy.forbidden(errors, "allowMultipleAllocations must be true");
        return;
    }
    let (values, range) = (policy.field("validValues"), policy.field("validRange"));
    let default = quantity(&policy.field("default"));
    let by = match (values.values().is_empty(), range.is_set()) {
        (true, false) => return,
        (false, true) => {
            let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
            policy.forbidden(errors, detail);
            return;
        }
        (false, false) => "validValues",
        (true, true) => "validRange",
    };
    let Some(default) = default else {
        policy.field("default").required(errors, format!("required when {by} is defined"));
        return;
    };
    let Some(most) = quantity(&capacity.field("value")) else { return };
    match by {
        "validValues" => validate_values(&values, default, most, errors),
        _ => validate_range(&range, default, most, errors),
    }
}

fn quantity(place: &Place) -> Option<Quantity> {
    place.text().parse().ok()
}

/// All of them in order, none too large, and the default among them.
fn validate_values(values: &Place, default: Quantity, most: Quantity, errors: &mut Errors) {
    let amounts: Vec<Quantity> = values.items().map(|value| quantity(&value).unwrap_or_default()).collect();
    for (at, value) in values.items().enumerate().skip(1) {
        if amounts[at - 1] > amounts[at] {
            value.invalid(errors, "values must be sorted in ascending order");
        }
    }
    values.at_most(errors, MAX_VALUES);
    for (at, value) in values.items().enumerate() {
        if amounts[at] > most {
            value.invalid(errors, format!("option is larger than capacity value: {most}"));
        }
        // Compared in whole units.
        if amounts[..at].iter().any(|other| other.units() == amounts[at].units()) {
            value.duplicate(errors, value.value().clone());
        }
    }
    if !amounts.contains(&default) {
        values.invalid_value(errors, default.to_string(), "default value is not valid according to the requestPolicy");
    }
}

/// From a least amount, in steps, to the most.
fn validate_range(range: &Place, default: Quantity, capacity: Quantity, errors: &mut Errors) {
    let at = |field: &str| quantity(&range.field(field));
    let report = |errors: &mut Errors, field: &str, amount: Quantity, detail: String| {
        range.field(field).invalid_value(errors, amount.to_string(), detail);
    };
    let Some(min) = at("min") else {
        range.field("min").required(errors, "required when validRange is defined");
        return;
    };
    if min > capacity {
        report(errors, "min", min, format!("min is larger than capacity value: {capacity}"));
    }
    if default < min {
        report(errors, "default", default, format!("default is less than min: {min}"));
    }
    if let Some(max) = at("max") {
        if min > max {
            report(errors, "max", min, format!("min is larger than max: {max}"));
        }
        if max > capacity {
            report(errors, "max", max, format!("max is larger than capacity value: {capacity}"));
        }
        if default > max {
            report(errors, "default", default, format!("default is more than max: {max}"));
        }
    }
    let Some(step) = at("step") else { return };
    if step.is_zero() || step.is_negative() {
        report(errors, "step", step, "must be greater than zero".to_owned());
        return;
    }
    let one = min + step;
    if one > capacity {
        report(errors, "step", step, format!("one step {one} is larger than capacity value: {capacity}"));
    }
    for amount in [Some(default), at("max")].into_iter().flatten() {
        let above = i128::from(amount.units()) - i128::from(min.units());
        if above % i128::from(step.units()) != 0 {
            report(errors, "step", amount, format!("value is not a multiple of a given step ({step}) from ({min})"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::strategy::check::each_mistake_has_its_message;
    use object::json;

    #[test]
    fn a_policy_allows_values_or_a_range_and_its_default_among_them() {
        let range = json!({ "default": "2Gi", "validRange": { "min": "1Gi", "max": "8Gi", "step": "1Gi" } });
        let capacity = json!({ "memory": { "value": "16Gi", "requestPolicy": range } });
        let slice = json!({ "spec": {
            "driver": "gpu.example.com", "pool": { "name": "n1", "resourceSliceCount": 1 }, "nodeName": "n1",
            "devices": [{ "name": "a", "allowMultipleAllocations": true, "capacity": capacity }],
        } });
        const POLICY: &str = "spec.devices[0].capacity[memory].requestPolicy";
        let at = |path: &str| format!("spec.devices.0.capacity.memory.requestPolicy{path}");
        let values = |default: &str, values: &[&str]| json!({ "default": default, "validValues": values });
        for (path, value, expected) in [
            (
                "spec.devices.0.allowMultipleAllocations".to_owned(),
                json!(null),
                vec![format!("{POLICY}: Forbidden: allowMultipleAllocations must be true")],
            ),
            (
                at(".default"),
                json!(null),
                vec![format!("{POLICY}.default: Required value: required when validRange is defined")],
            ),
            (
                at(".validValues"),
                json!(["2Gi"]),
                vec![format!(
                    "{POLICY}: Forbidden: exactly one policy can be specified, cannot specify \"validValues\" and \
                     \"validRange\" at the same time"
                )],
            ),
            (
                at(".default"),
                json!("512Mi"),
                vec![
                    format!("{POLICY}.validRange.default: Invalid value: \"512Mi\": default is less than min: 1Gi"),
                    format!(
                        "{POLICY}.validRange.step: Invalid value: \"512Mi\": value is not a multiple of a given step (1Gi) from (1Gi)"
                    ),
                ],
            ),
            (
                at(".validRange.max"),
                json!("32Gi"),
                vec![format!(
                    "{POLICY}.validRange.max: Invalid value: \"32Gi\": max is larger than capacity value: 16Gi"
                )],
            ),
            (
                at(".validRange.step"),
                json!("0"),
                vec![format!("{POLICY}.validRange.step: Invalid value: \"0\": must be greater than zero")],
            ),
            (
                at(".validRange.step"),
                json!("3Gi"),
                vec![
                    format!(
                        "{POLICY}.validRange.step: Invalid value: \"2Gi\": value is not a multiple of a given step (3Gi) from (1Gi)"
                    ),
                    format!(
                        "{POLICY}.validRange.step: Invalid value: \"8Gi\": value is not a multiple of a given step (3Gi) from (1Gi)"
                    ),
                ],
            ),
            (at(""), values("2Gi", &["1Gi", "2Gi"]), vec![]),
            (
                at(""),
                values("3Gi", &["2Gi", "1Gi", "17Gi"]),
                vec![
                    format!(
                        "{POLICY}.validValues[1]: Invalid value: \"1Gi\": values must be sorted in ascending order"
                    ),
                    format!(
                        "{POLICY}.validValues[2]: Invalid value: \"17Gi\": option is larger than capacity value: 16Gi"
                    ),
                    format!(
                        "{POLICY}.validValues: Invalid value: \"3Gi\": default value is not valid according to the requestPolicy"
                    ),
                ],
            ),
            (
                at(""),
                values("1Gi", &["1Gi", "1024Mi"]),
                vec![format!("{POLICY}.validValues[1]: Duplicate value: \"1Gi\"")],
            ),
        ] {
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            each_mistake_has_its_message("resource.v1.ResourceSlice", &slice, &[(&path, value, &expected)]);
        }
    }
}
