//! LimitRanges: smallest, largest and usual amounts, which must agree with each other.

use crate::strategy::place::Place;
use crate::strategy::value::quantity;
use crate::strategy::{PLAIN, Strategy, resource_name};
use object::field::Errors;
use object::{Edit, Quantity, Value, View, name};
use std::collections::BTreeSet;

pub const STRATEGY: Strategy =
    Strategy { default: Some(default), validate: Some(validate), create_on_update: true, ..PLAIN };

const TYPES: [&str; 3] = ["Pod", "Container", "PersistentVolumeClaim"];

/// The usual limit is the largest one, the usual request is the usual limit or else the smallest request.
fn default(range: &mut Value) {
    let Some(spec) = range.object("spec") else { return };
    for limit in spec.each("limits").filter(|limit| limit.text("type") == "Container") {
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            if let Value::Object(amounts) = limit.at(from).clone() {
                let known = limit.object_or_new(to);
                amounts.into_iter().for_each(|(name, amount)| known.set_default(&name, amount));
            }
        }
    }
}

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    for limit in spec.field("limits").items() {
        validate_type(&limit.field("type"), errors);
        validate_limit(&limit, errors);
    }
    spec.field("limits").unique_by(errors, "type");
}

fn validate_type(kind: &Place, errors: &mut Errors) {
    let before = errors.len();
    kind.follows(errors, name::qualified_name);
    if errors.len() == before && !kind.text().contains('/') && !TYPES.contains(&kind.text()) {
        kind.invalid(errors, "must be a standard limit type or fully qualified");
    }
}

fn validate_limit(limit: &Place, errors: &mut Errors) {
    let is_pod = limit.field("type").text() == "Pod";
    let mut names = BTreeSet::new();
    for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        if is_pod && field.starts_with("default") {
            limit.field(field).forbid(errors, "may not be specified when `type` is 'Pod'");
            continue;
        }
        for (name, amount) in limit.field(field).entries() {
            match limit.field("type").text() {
                "Pod" | "Container" => resource_name::validate_container(name, &amount, errors),
                _ => drop(resource_name::validate(name, &amount, errors)),
            }
            names.insert(name);
        }
    }
    if limit.field("type").text() == "PersistentVolumeClaim"
        && !limit.value().at("min").has("storage")
        && !limit.value().at("max").has("storage")
    {
        limit
            .field("limits")
            .required(errors, "either minimum or maximum storage value is required, but neither was provided");
    }
    names.into_iter().for_each(|name| validate_amounts(limit, name, is_pod, errors));
}

/// What must not be greater than what: the two amounts, the one that is shown and where, and how they are called.
const ORDER: [(&str, &str, &str, &str, [&str; 2]); 6] = [
    ("min", "max", "min", "min", ["min value", "max value"]),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest", ["min value", "default request value"]),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest", ["default request value", "max value"]),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest", ["default request value", "default limit value"]),
    ("min", "default", "min", "default", ["min value", "default value"]),
    ("default", "max", "max", "default", ["default value", "max value"]),
];

fn validate_amounts(limit: &Place, name: &str, is_pod: bool, errors: &mut Errors) {
    let amount = |field: &str| -> Option<Quantity> {
        let set = limit.value().at(field).has(name) && !(is_pod && field.starts_with("default"));
        set.then(|| quantity(limit.value().at(field).at(name)))
    };
    for (low, high, shown, place, words) in ORDER {
        if let (Some(low), Some(high), Some(shown)) = (amount(low), amount(high), amount(shown))
            && low > high
        {
            let detail = format!("{} {low} is greater than {} {high}", words[0], words[1]);
            limit.field(place).key(name).invalid_value(errors, shown.to_string(), detail);
        }
    }
    if let Some(ratio) = amount("maxLimitRequestRatio") {
        let ratios = limit.field("maxLimitRequestRatio");
        let place = ratios.key(name);
        if ratio < Quantity::from_units(1) {
            place.invalid_value(errors, ratio.to_string(), format!("ratio {ratio} is less than 1"));
        }
        if let (Some(min), Some(max)) = (amount("min"), amount("max")) {
            let largest = max.millis() as f64 / min.millis() as f64;
            if ratio.millis() as f64 / 1000.0 > largest {
                let detail = format!("ratio {ratio} is greater than max/min = {largest:.6}");
                place.invalid_value(errors, ratio.to_string(), detail);
            }
        }
    }
    if let (Some(default), Some(request)) = (amount("default"), amount("defaultRequest"))
        && !resource_name::can_overcommit(name)
        && default != request
    {
        let detail = format!("default value {default} must equal to defaultRequest value {request} in {name}");
        limit.field("defaultRequest").key(name).invalid_value(errors, request.to_string(), detail);
    }
}

#[cfg(test)]
mod tests {

    use crate::strategy::check::{each_mistake_has_its_message, filled};
    use object::json;

    #[test]
    fn usual_amounts_follow_from_the_others() {
        let range = json!({ "spec": { "limits": [
            { "type": "Container", "max": { "cpu": "2" }, "min": { "cpu": "1", "memory": "1Mi" } },
            { "type": "Pod", "max": { "cpu": "2" } },
        ] } });
        let range = filled("core.v1.LimitRange", &range);
        assert_eq!(range["spec"]["limits"][0]["default"], json!({ "cpu": "2" }));
        assert_eq!(range["spec"]["limits"][0]["defaultRequest"], json!({ "cpu": "2", "memory": "1Mi" }));
        assert_eq!(range["spec"]["limits"][1], json!({ "type": "Pod", "max": { "cpu": "2" } }));
    }

    #[test]
    fn amounts_agree_with_each_other() {
        let good =
            json!({ "spec": { "limits": [{ "type": "Container", "min": { "cpu": "1" }, "max": { "cpu": "2" } }] } });
        each_mistake_has_its_message(
            "core.v1.LimitRange",
            &good,
            &[
                (
                    "spec.limits.0.default",
                    json!({ "cpu": "3" }),
                    &[
                        "spec.limits[0].defaultRequest[cpu]: Invalid value: \"3\": default request value 3 is greater than max value 2",
                        "spec.limits[0].default[cpu]: Invalid value: \"2\": default value 3 is greater than max value 2",
                    ],
                ),
                (
                    "spec.limits.0.maxLimitRequestRatio",
                    json!({ "cpu": "3" }),
                    &[
                        "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"3\": ratio 3 is greater than max/min = 2.000000",
                    ],
                ),
                (
                    "spec.limits",
                    json!([{ "type": "Pod", "default": { "cpu": "1" } }, { "type": "Pod" }]),
                    &[
                        "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
                        "spec.limits[1].type: Duplicate value: \"Pod\"",
                    ],
                ),
                (
                    "spec.limits.0.type",
                    json!("Box"),
                    &["spec.limits[0].type: Invalid value: \"Box\": must be a standard limit type or fully qualified"],
                ),
                (
                    "spec.limits.1",
                    json!({ "type": "PersistentVolumeClaim" }),
                    &[
                        "spec.limits[1].limits: Required value: either minimum or maximum storage value is required, but neither \
                   was provided",
                    ],
                ),
            ],
        );
    }
}
