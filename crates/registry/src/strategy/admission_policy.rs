//! Admission policies and their bindings. Whether expressions can be compiled is checked where they are compiled.

use crate::strategy::place::Place;
use crate::strategy::webhook::{
    ADMISSION, FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES, default_matching, validate_conditions,
    validate_rule, validate_selectors,
};
use crate::strategy::{Strategy, label_selector};
use object::field::{Error, Errors};
use object::{Edit, Value, View, name};

pub const VALIDATING: Strategy =
    Strategy { default: Some(default_policy), validate: Some(validate_validating), ..ADMISSION };
pub const VALIDATING_BINDING: Strategy =
    Strategy { default: Some(default_binding), validate: Some(validate_validating_binding), ..ADMISSION };
pub const MUTATING: Strategy =
    Strategy { default: Some(default_policy), validate: Some(validate_mutating), ..ADMISSION };
pub const MUTATING_BINDING: Strategy =
    Strategy { default: Some(default_binding), validate: Some(validate_mutating_binding), ..ADMISSION };

const MUTATING_OPERATIONS: [&str; 2] = ["CREATE", "UPDATE"];
const REASONS: [&str; 4] = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];
const MAX_AUDIT_ANNOTATIONS: usize = 20;
const NOTHING_TO_DO: &str = "validations or auditAnnotations must contain at least one item";

fn default_policy(policy: &mut Value) {
    let spec = policy.object_or_new("spec");
    spec.set_default("failurePolicy", "Fail");
    default_resources(spec, "matchConstraints");
}

fn default_binding(binding: &mut Value) {
    default_resources(binding.object_or_new("spec"), "matchResources");
}

fn default_resources(spec: &mut Value, field: &str) {
    if let Some(resources) = spec.object(field) {
        default_matching(resources, "resourceRules");
        resources.each("excludeResourceRules").for_each(|rule| rule.set_default("scope", "*"));
    }
}

/// What both kinds of policies have.
fn validate_policy(spec: &Place, errors: &mut Errors) {
    spec.child("failurePolicy").required_one_of(&FAILURE_POLICIES, errors);
    let kind = spec.child("paramKind");
    if !kind.is_null() {
        validate_param_kind(&kind, errors);
    }
    let constraints = spec.child("matchConstraints");
    if constraints.is_null() {
        errors.push(Error::required(&constraints.path, ""));
    } else {
        validate_resources(&constraints, errors);
        constraints.child("resourceRules").required("", errors);
    }
    validate_conditions(spec, errors);
    for variable in spec.list("variables") {
        let name = variable.child("name");
        if required_text(&name, "name is not specified", errors) && !is_identifier(name.string()) {
            errors.push(name.invalid("must be a valid CEL identifier"));
        }
        required_text(&variable.child("expression"), "expression is not specified", errors);
    }
}

/// Something other than blanks.
fn required_text(place: &Place, detail: &str, errors: &mut Errors) -> bool {
    let given = !place.string().trim().is_empty();
    if !given {
        errors.push(Error::required(&place.path, detail));
    }
    given
}

fn is_identifier(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn validate_param_kind(kind: &Place, errors: &mut Errors) {
    let version = kind.child("apiVersion");
    if version.required("", errors) {
        let (group, number) = version.string().split_once('/').unwrap_or(("", version.string()));
        let mut check = |part: &str, wrong: Vec<String>| {
            if !wrong.is_empty() {
                errors.push(Error::invalid(&version.path, part, wrong.join(",")));
            }
        };
        check(group, if group.is_empty() { Vec::new() } else { name::dns_subdomain(group) });
        check(number, name::dns_1035_label(number));
    }
    let name = kind.child("kind");
    if name.required("", errors) {
        let wrong = name::dns_1035_label(&name.string().to_lowercase());
        if !wrong.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            errors.push(name.invalid(detail));
        }
    }
}

fn validate_resources(resources: &Place, errors: &mut Errors) {
    resources.child("matchPolicy").required_one_of(&MATCH_POLICIES, errors);
    validate_selectors(resources, errors);
    for rule in resources.list("resourceRules").chain(resources.list("excludeResourceRules")) {
        rule.list("resourceNames").for_each(|name| name.follows(name::path_segment, errors));
        rule.unique("resourceNames", errors);
        validate_rule(&rule, errors);
    }
}

fn validate_validating(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    validate_policy(&spec, errors);
    let (validations, annotations) = (spec.child("validations"), spec.child("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        errors.extend([validations, annotations].map(|list| Error::required(&list.path, NOTHING_TO_DO)));
        return;
    }
    for validation in spec.list("validations") {
        required_text(&validation.child("expression"), "expression is not specified", errors);
        for text in ["messageExpression", "message"].map(|field| validation.child(field)) {
            if !text.is_empty() && text.string().trim().is_empty() {
                errors.push(text.invalid("must be non-empty if specified"));
            }
        }
        let message = validation.child("message");
        if message.string().trim().contains(['\n', '\r']) {
            errors.push(message.invalid("must not contain line breaks"));
        }
        validation.child("reason").optional_one_of(&REASONS, errors);
    }
    if spec.items("auditAnnotations").len() > MAX_AUDIT_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        errors.push(annotations.invalid(detail));
    }
    for annotation in spec.list("auditAnnotations") {
        let key = annotation.child("key");
        let full = format!("{}/{}", new.at("metadata").text("name"), key.string());
        let wrong = name::qualified_name(&full).into_iter();
        errors.extend(wrong.map(|message| Error::invalid(&key.path, full.as_str(), message)));
        required_text(&annotation.child("valueExpression"), "valueExpression is not specified", errors);
    }
    spec.unique_by("auditAnnotations", "key", errors);
}

fn validate_mutating(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    validate_policy(&spec, errors);
    validate_mutating_operations(&spec.child("matchConstraints"), errors);
    spec.child("mutations").required("mutations must contain at least one item", errors);
    for mutation in spec.list("mutations") {
        let (patch, apply) = (mutation.child("jsonPatch"), mutation.child("applyConfiguration"));
        let kind = mutation.child("patchType");
        let (wanted, other, other_name) = match kind.string() {
            "JSONPatch" => (patch, apply, "{applyConfiguration}"),
            "ApplyConfiguration" => (apply, patch, "{jsonPatch}"),
            _ => {
                kind.required_one_of(&["ApplyConfiguration", "JSONPatch"], errors);
                continue;
            }
        };
        if wanted.is_null() {
            errors
                .push(Error::required(&wanted.path, format!("must be specified when patchType is {}", kind.string())));
        } else {
            required_text(&wanted.child("expression"), "expression is not specified", errors);
        }
        if !other.is_null() {
            let detail = format!("must not be specified when patchType is {}", kind.string());
            errors.push(Error::invalid(&other.path, other_name, detail));
        }
    }
    spec.child("reinvocationPolicy").required_one_of(&REINVOCATION_POLICIES, errors);
}

fn validate_mutating_operations(resources: &Place, errors: &mut Errors) {
    let path = resources.path.child("resourceRules").child("operations");
    for operation in resources.items("resourceRules").iter().flat_map(|rule| rule.items("operations")) {
        Place::new(operation, &path).one_of(&MUTATING_OPERATIONS, errors);
    }
}

/// What both kinds of bindings have.
fn validate_binding(spec: &Place, errors: &mut Errors) {
    spec.child("policyName").required_follows(name::dns_subdomain, errors);
    let parameters = spec.child("paramRef");
    if !parameters.is_null() {
        let (name, selector) = (parameters.child("name"), parameters.child("selector"));
        name.optional_follows(name::path_segment, errors);
        label_selector::validate(selector.value, &selector.path, errors);
        match (name.is_empty(), selector.is_null()) {
            (true, true) => errors.push(Error::required(&parameters.path, "one of name or selector must be specified")),
            (false, false) => errors.extend(
                [name, selector].map(|place| Error::forbidden(&place.path, "name and selector are mutually exclusive")),
            ),
            _ => {}
        }
        parameters.child("parameterNotFoundAction").required_one_of(&["Deny", "Allow"], errors);
    }
    let resources = spec.child("matchResources");
    if !resources.is_null() {
        validate_resources(&resources, errors);
    }
}

fn validate_validating_binding(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    validate_binding(&spec, errors);
    let actions = spec.child("validationActions");
    spec.list("validationActions").for_each(|action| action.one_of(&["Audit", "Deny", "Warn"], errors));
    spec.unique("validationActions", errors);
    let has = |name: &str| spec.items("validationActions").iter().any(|action| action == name);
    if has("Deny") && has("Warn") {
        errors.push(actions.invalid(
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response \
             and headers serves no purpose)",
        ));
    }
    actions.required("at least one validation action is required", errors);
}

fn validate_mutating_binding(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    validate_binding(&spec, errors);
    validate_mutating_operations(&spec.child("matchResources"), errors);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::each_mistake_has_its_message;
    use object::json;

    #[test]
    fn a_policy_says_what_it_looks_at_and_what_it_demands() {
        let rules =
            json!([{ "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"] }]);
        let good = json!({ "metadata": { "name": "a" }, "spec": {
            "matchConstraints": { "resourceRules": rules }, "validations": [{ "expression": "true" }],
        } });
        let kind = "admissionregistration.v1.ValidatingAdmissionPolicy";
        each_mistake_has_its_message(
            &VALIDATING,
            kind,
            &good,
            &[
                ("spec.matchConstraints", json!(null), &["spec.matchConstraints: Required value"]),
                (
                    "spec.validations",
                    json!([]),
                    &[
                        "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
                        "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item",
                    ],
                ),
                (
                    "spec.validations.0.expression",
                    json!(" "),
                    &["spec.validations[0].expression: Required value: expression is not specified"],
                ),
                (
                    "spec.variables",
                    json!([{ "name": "1a", "expression": "1" }]),
                    &["spec.variables[0].name: Invalid value: \"1a\": must be a valid CEL identifier"],
                ),
            ],
        );
        let mutating = json!({ "spec": {
            "matchConstraints": { "resourceRules": rules }, "reinvocationPolicy": "Never",
            "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": "[]" } }],
        } });
        each_mistake_has_its_message(
            &MUTATING,
            "admissionregistration.v1.MutatingAdmissionPolicy",
            &mutating,
            &[
                (
                    "spec.mutations.0.patchType",
                    json!("ApplyConfiguration"),
                    &[
                        "spec.mutations[0].applyConfiguration: Required value: must be specified when patchType is ApplyConfiguration",
                        "spec.mutations[0].jsonPatch: Invalid value: \"{jsonPatch}\": must not be specified when patchType is \
                     ApplyConfiguration",
                    ],
                ),
                ("spec.reinvocationPolicy", json!(""), &["spec.reinvocationPolicy: Required value"]),
            ],
        );
    }

    #[test]
    fn a_binding_says_what_happens() {
        let good = json!({ "spec": { "policyName": "a", "validationActions": ["Deny"] } });
        let kind = "admissionregistration.v1.ValidatingAdmissionPolicyBinding";
        each_mistake_has_its_message(
            &VALIDATING_BINDING,
            kind,
            &good,
            &[
                ("spec.policyName", json!(""), &["spec.policyName: Required value"]),
                (
                    "spec.validationActions",
                    json!([]),
                    &["spec.validationActions: Required value: at least one validation action is required"],
                ),
                (
                    "spec.paramRef",
                    json!({ "parameterNotFoundAction": "Deny" }),
                    &["spec.paramRef: Required value: one of name or selector must be specified"],
                ),
            ],
        );
    }
}
