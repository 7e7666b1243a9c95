//! How devices and claims to them look.

use super::text::{age, is_being_deleted, name, since, size};
use super::{AGE, NAME, printer, string};
use object::{Value, View};

printer!(DEVICE_CLASS = |object, now| {
    NAME => name(object),
    AGE => age(object, now),
});

printer!(RESOURCE_CLAIM_TEMPLATE = |object, now| {
    NAME => name(object),
    AGE => age(object, now),
});

printer!(RESOURCE_CLAIM = |object, now| {
    NAME => name(object),
    string("State", "Whether devices are set aside for it, and in use") => claim_state(object),
    AGE => age(object, now),
});

fn claim_state(claim: &Value) -> &'static str {
    let reserved = size(claim.at("status"), "reservedFor") > 0;
    match (is_being_deleted(claim), claim.at("status").has("allocation")) {
        (false, false) => "pending",
        (false, true) if reserved => "allocated,reserved",
        (false, true) => "allocated",
        (true, false) => "deleted",
        (true, true) if reserved => "deleted,allocated,reserved",
        (true, true) => "deleted,allocated",
    }
}

printer!(RESOURCE_SLICE = |object, now| {
    NAME => name(object),
    string("Node", "Node the devices are on") => object.at("spec").text("nodeName"),
    string("Driver", "Who manages the devices") => object.at("spec").text("driver"),
    string("Pool", "Pool the devices belong to") => object.path(&["spec", "pool"]).text("name"),
    AGE => age(object, now),
});

printer!(DEVICE_TAINT_RULE = |object, now| {
    NAME => name(object),
    string("Key", "What the taint is known by") => taint(object).text("key"),
    string("Value", "More about it") => taint(object).text("value"),
    string("Effect", "What it does to claims and pods that do not tolerate it") => taint(object).text("effect"),
    string("TimeAdded", "Since when it has had this effect") => match taint(object).at("timeAdded") {
        Value::Null => String::new(),
        added => since(added, now),
    },
    AGE => age(object, now),
});

fn taint(rule: &Value) -> &Value {
    rule.path(&["spec", "taint"])
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;
    use object::json;

    #[test]
    fn claims_say_what_they_hold() {
        let deleted = json!({ "deletionTimestamp": "2026-02-28T00:00:00Z" });
        check(
            &RESOURCE_CLAIM,
            &[
                (json!({}), json!(["pending"])),
                (json!({ "status": { "allocation": {} } }), json!(["allocated"])),
                (json!({ "status": { "allocation": {}, "reservedFor": [{}] } }), json!(["allocated,reserved"])),
                (json!({ "metadata": deleted }), json!(["deleted"])),
                (json!({ "metadata": deleted, "status": { "allocation": {} } }), json!(["deleted,allocated"])),
            ],
        );
    }

    #[test]
    fn slices_say_whose_devices_they_list() {
        let spec = json!({ "nodeName": "n", "driver": "d", "pool": { "name": "p" } });
        check(
            &RESOURCE_SLICE,
            &[
                (json!({ "spec": spec }), json!(["n", "d", "p"])),
                (json!({ "spec": { "driver": "d" } }), json!(["", "d", ""])),
            ],
        );
        let taint = json!({ "key": "k", "value": "v", "effect": "None" });
        check(&DEVICE_TAINT_RULE, &[(json!({ "spec": { "taint": taint } }), json!(["k", "v", "None", ""]))]);
        check(&DEVICE_CLASS, &[(json!({}), json!([]))]);
        check(&RESOURCE_CLAIM_TEMPLATE, &[(json!({}), json!([]))]);
    }
}
