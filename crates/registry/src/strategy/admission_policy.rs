//! Admission policies and their bindings. Whether expressions can be compiled is checked where they are compiled.

use crate::strategy::place::Place;
use crate::strategy::webhook::{
    ADMISSION, FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES, default_matching, validate_conditions,
    validate_rule, validate_selectors,
};
use crate::strategy::{Strategy, label_selector};
use object::field::Errors;
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
    spec.field("failurePolicy").require_one_of(errors, &FAILURE_POLICIES);
    let kind = spec.field("paramKind");
    if kind.is_set() {
        validate_param_kind(&kind, errors);
    }
    let constraints = spec.field("matchConstraints");
    if !constraints.is_set() {
        constraints.required(errors, "");
    } else {
        validate_resources(&constraints, errors);
        constraints.field("resourceRules").require(errors);
    }
    validate_conditions(spec, errors);
    for variable in spec.field("variables").items() {
        let name = variable.field("name");
        if required_text(&name, "name is not specified", errors) && !is_identifier(name.text()) {
            name.invalid(errors, "must be a valid CEL identifier");
        }
        required_text(&variable.field("expression"), "expression is not specified", errors);
    }
}

/// Something other than blanks.
fn required_text(place: &Place, detail: &str, errors: &mut Errors) -> bool {
    let given = !place.text().trim().is_empty();
    if !given {
        place.required(errors, detail);
    }
    given
}

fn is_identifier(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn validate_param_kind(kind: &Place, errors: &mut Errors) {
    let version = kind.field("apiVersion");
    if version.require(errors) {
        let (group, number) = version.text().split_once('/').unwrap_or(("", version.text()));
        let mut check = |part: &str, wrong: Vec<String>| {
            if !wrong.is_empty() {
                version.invalid_value(errors, part, wrong.join(","));
            }
        };
        check(group, if group.is_empty() { Vec::new() } else { name::dns_subdomain(group) });
        check(number, name::dns_1035_label(number));
    }
    let name = kind.field("kind");
    if name.require(errors) {
        let wrong = name::dns_1035_label(&name.text().to_lowercase());
        if !wrong.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            name.invalid(errors, detail);
        }
    }
}

fn validate_resources(resources: &Place, errors: &mut Errors) {
    resources.field("matchPolicy").require_one_of(errors, &MATCH_POLICIES);
    validate_selectors(resources, errors);
    for rule in resources.field("resourceRules").items().chain(resources.field("excludeResourceRules").items()) {
        rule.field("resourceNames").items().for_each(|name| name.follows(errors, name::path_segment));
        rule.field("resourceNames").unique(errors);
        validate_rule(&rule, errors);
    }
}

fn validate_validating(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    validate_policy(&spec, errors);
    let (validations, annotations) = (spec.field("validations"), spec.field("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        [validations, annotations].iter().for_each(|list| list.required(errors, NOTHING_TO_DO));
        return;
    }
    for validation in spec.field("validations").items() {
        required_text(&validation.field("expression"), "expression is not specified", errors);
        for text in ["messageExpression", "message"].map(|field| validation.field(field)) {
            if !text.is_empty() && text.text().trim().is_empty() {
                text.invalid(errors, "must be non-empty if specified");
            }
        }
        let message = validation.field("message");
        if message.text().trim().contains(['\n', '\r']) {
            message.invalid(errors, "must not contain line breaks");
        }
        validation.field("reason").one_of_if_set(errors, &REASONS);
    }
    if spec.field("auditAnnotations").values().len() > MAX_AUDIT_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        annotations.invalid(errors, detail);
    }
    for annotation in spec.field("auditAnnotations").items() {
        let key = annotation.field("key");
        let full = format!("{}/{}", new.at("metadata").text("name"), key.text());
        key.text_follows(errors, &full, name::qualified_name);
        required_text(&annotation.field("valueExpression"), "valueExpression is not specified", errors);
    }
    spec.field("auditAnnotations").unique_by(errors, "key");
}

fn validate_mutating(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    validate_policy(&spec, errors);
    validate_mutating_operations(&spec.field("matchConstraints"), errors);
    spec.field("mutations").require_because(errors, "mutations must contain at least one item");
    for mutation in spec.field("mutations").items() {
        let (patch, apply) = (mutation.field("jsonPatch"), mutation.field("applyConfiguration"));
        let kind = mutation.field("patchType");
        let (wanted, other, other_name) = match kind.text() {
            "JSONPatch" => (patch, apply, "{applyConfiguration}"),
            "ApplyConfiguration" => (apply, patch, "{jsonPatch}"),
            _ => {
                kind.require_one_of(errors, &["ApplyConfiguration", "JSONPatch"]);
                continue;
            }
        };
        if !wanted.is_set() {
            wanted.required(errors, format!("must be specified when patchType is {}", kind.text()));
        } else {
            required_text(&wanted.field("expression"), "expression is not specified", errors);
        }
        if other.is_set() {
            let detail = format!("must not be specified when patchType is {}", kind.text());
            other.invalid_value(errors, other_name, detail);
        }
    }
    spec.field("reinvocationPolicy").require_one_of(errors, &REINVOCATION_POLICIES);
}

fn validate_mutating_operations(resources: &Place, errors: &mut Errors) {
    let operations = resources.descend(&["resourceRules", "operations"]);
    for operation in resources.field("resourceRules").values().iter().flat_map(|rule| rule.items("operations")) {
        operations.with(operation).one_of(errors, &MUTATING_OPERATIONS);
    }
}

/// What both kinds of bindings have.
fn validate_binding(spec: &Place, errors: &mut Errors) {
    spec.field("policyName").require_follows(errors, name::dns_subdomain);
    let parameters = spec.field("paramRef");
    if parameters.is_set() {
        let (name, selector) = (parameters.field("name"), parameters.field("selector"));
        name.follows_if_set(errors, name::path_segment);
        label_selector::validate(&selector, errors);
        match (name.is_empty(), !selector.is_set()) {
            (true, true) => parameters.required(errors, "one of name or selector must be specified"),
            (false, false) => {
                let detail = "name and selector are mutually exclusive";
                [name, selector].iter().for_each(|place| place.forbidden(errors, detail));
            }
            _ => {}
        }
        parameters.field("parameterNotFoundAction").require_one_of(errors, &["Deny", "Allow"]);
    }
    let resources = spec.field("matchResources");
    if resources.is_set() {
        validate_resources(&resources, errors);
    }
}

fn validate_validating_binding(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    validate_binding(&spec, errors);
    let actions = spec.field("validationActions");
    spec.field("validationActions").items().for_each(|action| action.one_of(errors, &["Audit", "Deny", "Warn"]));
    spec.field("validationActions").unique(errors);
    let has = |name: &str| spec.field("validationActions").values().iter().any(|action| action == name);
    if has("Deny") && has("Warn") {
        actions.invalid(errors, "must not contain both Deny and Warn (repeating the same validation failure information in the API response \
             and headers serves no purpose)");
    }
    actions.require_because(errors, "at least one validation action is required");
}

fn validate_mutating_binding(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    validate_binding(&spec, errors);
    validate_mutating_operations(&spec.field("matchResources"), errors);
}

#[cfg(test)]
mod tests {

    use crate::strategy::check::each_mistake_has_its_message;
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
