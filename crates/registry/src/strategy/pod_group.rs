//! PodGroups and Workloads: pods that are placed as one, and what such groups are like.
//!
//! What a group is does not change. Fields of features that are not there yet (placing within a topology, claims of a
//! whole group, disrupting a group as one, its priority) stay out.

use crate::strategy::place::Place;
use crate::strategy::{PLAIN, Strategy, condition};
use object::field::Errors;
use object::{Edit, Value, View, name};

pub const POD_GROUP: Strategy = Strategy {
    prepare: Some(prepare_group),
    validate: Some(validate_group),
    prepare_status: Some(|new, _| drop(new.object_or_new("status").remove("resourceClaimStatuses"))),
    validate_status: Some(validate_status),
    ..PLAIN
};

pub const WORKLOAD: Strategy = Strategy { prepare: Some(prepare_workload), validate: Some(validate_workload), ..PLAIN };

/// Of groups, and of the templates they are made from.
const NOT_YET: [&str; 5] =
    ["schedulingConstraints", "resourceClaims", "disruptionMode", "priorityClassName", "priority"];
const MAX_TEMPLATES: usize = 8;

fn prepare_group(group: &mut Value, _old: Option<&Value>) {
    if let Some(spec) = group.object("spec") {
        NOT_YET.iter().for_each(|field| drop(spec.remove(field)));
    }
}

fn prepare_workload(workload: &mut Value, _old: Option<&Value>) {
    let Some(spec) = workload.object("spec") else { return };
    for template in spec.each("podGroupTemplates") {
        NOT_YET.iter().for_each(|field| drop(template.remove(field)));
    }
}

fn validate_group(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    if let Some(old) = old {
        return stays(&spec, old.at("spec"), &["podGroupTemplateRef", "schedulingPolicy"], errors);
    }
    let reference = spec.field("podGroupTemplateRef");
    if reference.is_set() {
        one_of(&reference, &["workload"], errors);
        let workload = reference.field("workload");
        if workload.is_set() {
            workload.field("workloadName").require_follows(errors, name::dns_subdomain);
            workload.field("podGroupTemplateName").require_follows(errors, name::dns_label);
        }
    }
    validate_policy(&spec.field("schedulingPolicy"), errors);
}

fn validate_policy(policy: &Place, errors: &mut Errors) {
    one_of(policy, &["basic", "gang"], errors);
    let gang = policy.field("gang");
    let count = gang.field("minCount");
    match count.int() {
        _ if !gang.is_set() => {}
        0 => count.required(errors, ""),
        ..0 => count.invalid(errors, "must be greater than or equal to 1"),
        _ => {}
    }
}

fn validate_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let status = Place::field_of(new, "status");
    condition::validate_all(&status.field("conditions"), errors);
}

fn validate_workload(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    if let Some(old) = old {
        return stays(&spec, old.at("spec"), &["controllerRef", "podGroupTemplates"], errors);
    }
    let controller = spec.field("controllerRef");
    if controller.is_set() {
        controller.field("apiGroup").follows_if_set(errors, name::dns_subdomain);
        controller.field("kind").require_follows(errors, name::path_segment);
        controller.field("name").require_follows(errors, name::path_segment);
    }
    let templates = spec.field("podGroupTemplates");
    templates.at_most(errors, MAX_TEMPLATES);
    if !templates.require(errors) || templates.values().len() > MAX_TEMPLATES {
        return;
    }
    for (at, template) in templates.items().enumerate() {
        let name = template.field("name");
        if templates.values()[..at].iter().any(|other| other.text("name") == name.text()) {
            template.duplicate(errors, template.value().clone());
        }
    }
    for template in templates.items() {
        template.field("name").require_follows(errors, name::dns_label);
        validate_policy(&template.field("schedulingPolicy"), errors);
    }
}

/// Exactly one of these fields must be set.
fn one_of(place: &Place, fields: &[&'static str], errors: &mut Errors) {
    let quoted: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
    let quoted = quoted.join(", ");
    let set: Vec<&str> = fields.iter().copied().filter(|field| place.value().has(field)).collect();
    match set.as_slice() {
        [_] => {}
        [] => place.invalid_value(errors, "", format!("must specify one of: {quoted}")),
        several => {
            let several = format!("{{{}}}", several.join(", "));
            place.invalid_value(errors, several, format!("must specify exactly one of: {quoted}"));
        }
    }
}

/// None of these fields may change.
fn stays(spec: &Place, old: &Value, fields: &[&'static str], errors: &mut Errors) {
    for field in fields.iter().filter(|field| spec.value().at(field) != old.at(field)) {
        spec.descend(std::slice::from_ref(field)).invalid_value(errors, Value::Null, "field is immutable");
    }
}

#[cfg(test)]
mod tests {
    use crate::strategy::check::{each_change_has_its_message, each_change_makes_its_mistakes, prepared};
    use object::{Value, json};

    fn group() -> Value {
        json!({
            "metadata": { "name": "g", "namespace": "default" },
            "spec": {
                "schedulingPolicy": { "gang": { "minCount": 4 } },
                "podGroupTemplateRef": { "workload": { "workloadName": "w", "podGroupTemplateName": "t" } },
            },
        })
    }

    fn workload() -> Value {
        let template = json!({ "name": "t", "schedulingPolicy": { "basic": {} } });
        json!({
            "metadata": { "name": "w", "namespace": "default" },
            "spec": {
                "controllerRef": { "apiGroup": "batch", "kind": "Job", "name": "j" },
                "podGroupTemplates": [template],
            },
        })
    }

    #[test]
    fn each_mistake_in_a_group_is_reported() {
        each_change_makes_its_mistakes(
            "PodGroup",
            &group(),
            &[
                (
                    "spec.schedulingPolicy",
                    json!({}),
                    "spec.schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`",
                ),
                (
                    "spec.schedulingPolicy.basic",
                    json!({}),
                    "spec.schedulingPolicy: Invalid value: \"{basic, gang}\": must specify exactly one of: `basic`, `gang`",
                ),
                (
                    "spec.schedulingPolicy.gang.minCount",
                    json!(0),
                    "spec.schedulingPolicy.gang.minCount: Required value",
                ),
                (
                    "spec.schedulingPolicy.gang.minCount",
                    json!(-1),
                    "spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1",
                ),
                (
                    "spec.podGroupTemplateRef",
                    json!({}),
                    "spec.podGroupTemplateRef: Invalid value: \"\": must specify one of: `workload`",
                ),
                (
                    "spec.podGroupTemplateRef.workload.workloadName",
                    json!(""),
                    "spec.podGroupTemplateRef.workload.workloadName: Required value",
                ),
            ],
        );
    }

    #[test]
    fn a_group_stays_as_it_is() {
        each_change_has_its_message(
            "PodGroup",
            &group(),
            &[
                (
                    "spec.schedulingPolicy.gang.minCount",
                    json!(5),
                    &["spec.schedulingPolicy: Invalid value: null: field is immutable"],
                ),
                (
                    "spec.podGroupTemplateRef",
                    json!(null),
                    &["spec.podGroupTemplateRef: Invalid value: null: field is immutable"],
                ),
            ],
        );
    }

    #[test]
    fn what_is_not_there_yet_is_left_out() {
        let mut wished = group();
        wished["spec"]["disruptionMode"] = json!("PodGroup");
        wished["spec"]["schedulingConstraints"] = json!({ "topology": [{ "key": "rack" }] });
        wished["spec"]["priority"] = json!(7);
        assert_eq!(prepared("PodGroup", &wished, None)["spec"], group()["spec"]);
    }

    #[test]
    fn each_mistake_in_a_workload_is_reported() {
        each_change_makes_its_mistakes(
            "Workload",
            &workload(),
            &[
                ("spec.podGroupTemplates", json!([]), "spec.podGroupTemplates: Required value"),
                (
                    "spec.podGroupTemplates.0.name",
                    json!("A"),
                    "spec.podGroupTemplates[0].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist of \
                     lower case alphanumeric characters or '-', and must start and end with an alphanumeric character \
                     (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                ),
                ("spec.controllerRef.kind", json!(""), "spec.controllerRef.kind: Required value"),
                (
                    "spec.controllerRef.name",
                    json!("a/b"),
                    "spec.controllerRef.name: Invalid value: \"a/b\": may not contain '/'",
                ),
                (
                    "spec.podGroupTemplates.1",
                    json!({ "name": "t", "schedulingPolicy": { "basic": {} } }),
                    "spec.podGroupTemplates[1]: Duplicate value: {\"name\":\"t\",\"schedulingPolicy\":{\"basic\":{}}}",
                ),
            ],
        );
        each_change_has_its_message(
            "Workload",
            &workload(),
            &[(
                "spec.podGroupTemplates.0.name",
                json!("other"),
                &["spec.podGroupTemplates: Invalid value: null: field is immutable"],
            )],
        );
    }
}
