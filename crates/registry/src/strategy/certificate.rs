//! CertificateSigningRequests. Who asks is for the server to say; whether the request and the certificate are what they
//! claim to be is for the signer.

use crate::strategy::place::Place;
use crate::strategy::value::same;
use crate::strategy::{PLAIN, Strategy};
use object::field::Errors;
use object::{Edit, Value, View, base64, name};

pub const STRATEGY: Strategy = Strategy {
    name: |_| Vec::new(),
    prepare: Some(prepare),
    validate: Some(validate),
    validate_status: Some(|new, old, errors| validate_change(new, old, Part::Status, errors)),
    parts: &[super::Part { name: "approval", prepare: prepare_approval, validate: validate_approval }],
    ..PLAIN
};

const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// What a write may change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Nothing,
    Status,
    Approval,
}

/// A request stays what it was; only its subresources change it. The identity of who asks is the server's to set.
fn prepare(new: &mut Value, old: Option<&Value>) {
    match old {
        None => {
            let spec = new.object_or_new("spec");
            ["username", "uid", "groups", "extra"].iter().for_each(|field| drop(spec.remove(field)));
        }
        Some(old) => new.set("spec", old.at("spec").clone()),
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    match old {
        None => validate_request(new, errors),
        Some(old) => validate_change(new, old, Part::Nothing, errors),
    }
}

/// Of a request to the subresource `approval`, only the conditions count.
fn prepare_approval(new: &mut Value, old: &Value) {
    let conditions = new.at("status").at("conditions").clone();
    ["spec", "status"].into_iter().for_each(|field| new.set(field, old.at(field).clone()));
    if !conditions.is_null() {
        new.object_or_new("status").set("conditions", conditions);
    }
}

fn validate_approval(new: &Value, old: &Value, errors: &mut Errors) {
    validate_change(new, old, Part::Approval, errors);
}

fn validate_request(request: &Value, errors: &mut Errors) {
    let spec = Place::field_of(request, "spec");
    let encoded = spec.field("request");
    let text = base64::decode(encoded.text()).unwrap_or_default();
    if !String::from_utf8_lossy(&text).contains("-----BEGIN CERTIFICATE REQUEST-----") {
        encoded.invalid(errors, "PEM block type must be CERTIFICATE REQUEST");
    }
    spec.field("usages").require(errors);
    spec.field("usages").items().for_each(|usage| usage.one_of(errors, &USAGES));
    spec.field("usages").unique(errors);
    let signer = spec.field("signerName");
    if signer.text() == LEGACY_SIGNER {
        signer.invalid(errors, "the legacy signerName is not allowed via this API version");
    } else {
        validate_signer(&signer, errors);
    }
    let seconds = spec.field("expirationSeconds");
    if seconds.number().is_some_and(|seconds| seconds < 600) {
        seconds.invalid(errors, "may not specify a duration less than 600 seconds (10 minutes)");
    }
}

/// A domain and a name below it.
fn validate_signer(signer: &Place, errors: &mut Errors) {
    if !signer.require(errors) {
        return;
    }
    let Some((domain, path)) = signer.text().split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        signer.invalid(errors, detail);
        return;
    };
    let mut check = |part: &str, rule: fn(&str) -> Vec<String>| {
        let first = part.split('.').map(|label| (label, rule(label))).find(|(_, wrong)| !wrong.is_empty());
        let wrong = first.map_or(Vec::new(), |(label, wrong)| {
            wrong.into_iter().map(|message| format!("validating label {label:?}: {message}")).collect()
        });
        wrong.into_iter().for_each(|message| signer.invalid_value(errors, part, message));
    };
    check(domain, name::dns_label);
    check(path, name::dns_subdomain);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        signer.invalid_value(errors, domain, detail);
    }
}

fn of_type<'a>(request: &'a Value, kind: &str) -> Vec<&'a Value> {
    request.at("status").items("conditions").iter().filter(|condition| condition.text("type") == kind).collect()
}

fn validate_change(new: &Value, old: &Value, part: Part, errors: &mut Errors) {
    validate_conditions(new, errors);
    let status = Place::field_of(new, "status");
    let conditions = status.field("conditions");
    for kind in ["Approved", "Denied", "Failed"] {
        let (now, was) = (of_type(new, kind), of_type(old, kind));
        let decides = kind != "Failed" && part != Part::Approval;
        let what = if now.len() < was.len() {
            "remove"
        } else if decides && now.len() > was.len() {
            "add"
        } else if decides && now != was {
            "modify"
        } else {
            continue;
        };
        conditions.forbidden(errors, format!("updates may not {what} a condition of type {kind:?}"));
    }
    let certificate = status.field("certificate");
    let was = old.path(&["status", "certificate"]);
    if !same(certificate.value(), was) {
        if part != Part::Status {
            certificate.forbidden(errors, "updates may not set certificate content");
        } else if !was.is_null() {
            certificate.forbidden(errors, "updates may not modify existing certificate content");
        }
    }
}

fn validate_conditions(request: &Value, errors: &mut Errors) {
    let status = Place::field_of(request, "status");
    for condition in status.field("conditions").items() {
        condition.field("type").require(errors);
        let decided = matches!(condition.field("type").text(), "Approved" | "Denied" | "Failed");
        let statuses: &[&str] = if decided { &["True"] } else { &["False", "True", "Unknown"] };
        condition.field("status").require_one_of(errors, statuses);
    }
    status.field("conditions").unique_by(errors, "type");
    if !of_type(request, "Approved").is_empty() && !of_type(request, "Denied").is_empty() {
        let decisions = status.field("conditions").values().iter().map(|condition| condition.text("type"));
        let second = decisions.filter(|kind| matches!(*kind, "Approved" | "Denied")).nth(1).unwrap_or_default();
        let detail = "Approved and Denied conditions are mutually exclusive";
        status.field("conditions").invalid_value(errors, second, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_mistake_has_its_message, messages};
    use object::json;

    fn request() -> Value {
        let pem = "-----BEGIN CERTIFICATE REQUEST-----\nMA==\n-----END CERTIFICATE REQUEST-----\n";
        json!({ "spec": { "request": base64::encode(pem.as_bytes()), "signerName": "example.com/a", "usages": ["client auth"] } })
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
            "certificates.v1.CertificateSigningRequest",
            &request(),
            &[
                (
                    "spec.request",
                    json!(""),
                    &["spec.request: Invalid value: \"\": PEM block type must be CERTIFICATE REQUEST"],
                ),
                ("spec.usages", json!([]), &["spec.usages: Required value"]),
                ("spec.usages.1", json!("client auth"), &["spec.usages[1]: Duplicate value: \"client auth\""]),
                (
                    "spec.signerName",
                    json!("kubernetes.io/legacy-unknown"),
                    &[
                        "spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName is not allowed via \
                   this API version",
                    ],
                ),
                (
                    "spec.signerName",
                    json!("a"),
                    &["spec.signerName: Invalid value: \"a\": must be a fully qualified domain and path of the form \
                   'example.com/signer-name'"],
                ),
                (
                    "spec.expirationSeconds",
                    json!(599),
                    &[
                        "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)",
                    ],
                ),
            ],
        );
    }

    #[test]
    fn only_an_approval_decides() {
        let mut approved = request();
        approved["status"] = json!({ "conditions": [{ "type": "Approved", "status": "True" }] });
        let denied = "status.conditions: Forbidden: updates may not add a condition of type \"Approved\"";
        let kind = "certificates.v1.CertificateSigningRequest";
        assert_eq!(messages(kind, &approved, Some(&request())), [denied]);
        let mut errors = Errors::new();
        validate_approval(&approved, &request(), &mut errors);
        assert_eq!(errors, []);
        validate_approval(&request(), &approved, &mut errors);
        assert_eq!(
            errors[0].to_string(),
            "status.conditions: Forbidden: updates may not remove a condition of type \"Approved\""
        );
    }
}
