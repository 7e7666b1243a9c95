//! The rules of environment variables, and of references to fields of the pod, which volumes make too.

use crate::strategy::place::Place;
use object::field::Errors;
use object::{Quantity, name};

const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
pub(super) const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// Fields that can be named at all; which of them can be used depends on where.
const FIELDS: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.host",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.phase",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const CPU_DIVISORS: [&str; 2] = ["1m", "1"];
const BYTE_DIVISORS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

pub(super) fn validate(container: &Place, errors: &mut Errors) {
    for variable in container.field("env").items() {
        variable.field("name").require_follows(errors, name::environment_variable);
        value_from(&variable, errors);
    }
    let sources = container.field("envFrom");
    for source in sources.items() {
        source.field("prefix").follows_if_set(errors, name::environment_variable);
        let references = [source.field("configMapRef"), source.field("secretRef")];
        let given = references.iter().filter(|reference| reference.is_set()).count();
        for reference in references.iter().filter(|reference| reference.is_set()) {
            reference.field("name").require_follows(errors, name::dns_subdomain);
        }
        match given {
            0 => sources.invalid_value(errors, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => sources.invalid_value(errors, "", "may not have more than one field specified at a time"),
        }
    }
}

type Check = fn(&Place, &mut Errors);

/// Where the value of a variable can come from.
const SOURCES: [(&str, Check); 5] = [
    ("fieldRef", |at, errors| field_reference(at, &ENV_FIELDS, errors)),
    ("resourceFieldRef", |at, errors| resource_reference(at, false, errors)),
    ("configMapKeyRef", key_reference),
    ("secretKeyRef", key_reference),
    ("fileKeyRef", file_reference),
];

fn value_from(variable: &Place, errors: &mut Errors) {
    let from = variable.field("valueFrom");
    if !from.is_set() {
        return;
    }
    let mut given = 0;
    for (field, check) in SOURCES {
        let source = from.field(field);
        if source.is_set() {
            given += 1;
            check(&source, errors);
        }
    }
    let detail = match given {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        _ if !variable.field("value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    from.invalid_value(errors, "", detail);
}

fn key_reference(reference: &Place, errors: &mut Errors) {
    reference.field("name").follows(errors, name::dns_subdomain);
    reference.field("key").require_follows(errors, name::config_map_key);
}

fn file_reference(reference: &Place, errors: &mut Errors) {
    reference.field("key").require_follows(errors, name::environment_variable);
    reference.field("volumeName").require_follows(errors, name::dns_label);
    if reference.field("path").require(errors) {
        super::paths::no_backsteps(&reference.field("path"), errors);
    }
}

/// A field of the pod; `allowed` are those that can be used here.
pub(super) fn field_reference(reference: &Place, allowed: &[&str], errors: &mut Errors) {
    let (version, field) = (reference.field("apiVersion"), reference.field("fieldPath"));
    if !version.require(errors) || !field.require(errors) {
        return;
    }
    let subscript = field.text().strip_suffix("']").and_then(|text| text.split_once("['"));
    let failure = match subscript.filter(|(path, _)| !path.is_empty()) {
        _ if version.text() != "v1" => format!("unsupported pod version: {}", version.text()),
        Some(("metadata.annotations", key)) => return qualified(reference, &key.to_lowercase(), errors),
        Some(("metadata.labels", key)) => return qualified(reference, key, errors),
        Some(_) => format!("field label does not support subscript: {}", field.text()),
        None if !FIELDS.contains(&field.text()) => format!("field label not supported: {}", field.text()),
        None if allowed.contains(&field.text()) => return,
        None => return field.not_supported(errors, allowed),
    };
    field.invalid(errors, format!("error converting fieldPath: {failure}"));
}

fn qualified(at: &Place, key: &str, errors: &mut Errors) {
    name::qualified_name(key).into_iter().for_each(|message| at.invalid_value(errors, key, message));
}

/// A request or limit of a container; a volume has to say of which.
pub(super) fn resource_reference(reference: &Place, in_volume: bool, errors: &mut Errors) {
    let resource = reference.field("resource");
    let huge_pages = ["requests.hugepages-", "limits.hugepages-"].iter().any(|part| resource.text().starts_with(part));
    if in_volume && reference.field("containerName").is_empty() {
        reference.field("containerName").required(errors, "");
    } else if resource.require(errors) && !RESOURCES.contains(&resource.text()) && !huge_pages {
        resource.not_supported(errors, &RESOURCES);
    }
    let divisor = reference.field("divisor");
    if divisor.text().parse::<Quantity>().is_ok_and(Quantity::is_zero) || divisor.is_empty() {
        return;
    }
    let (divisors, what): (&[&str], _) = match resource.text() {
        "limits.cpu" | "requests.cpu" => (&CPU_DIVISORS, "cpu"),
        "limits.memory" | "requests.memory" => (&BYTE_DIVISORS, "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (&BYTE_DIVISORS, "local ephemeral storage"),
        _ if huge_pages => (&BYTE_DIVISORS, "hugepages"),
        _ => return,
    };
    if !divisors.contains(&divisor.text()) {
        let listed = if what == "cpu" { "1m and 1".to_owned() } else { divisors.join(", ") };
        let detail = format!("only divisor's values {listed} are supported with the {what} resource");
        divisor.invalid_value(errors, resource.text(), detail);
    }
}
