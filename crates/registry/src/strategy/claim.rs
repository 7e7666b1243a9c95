//! The rules of what a claim for a volume asks for, in a template: of an ephemeral volume or of a stateful set.

use crate::strategy::at::At;
use crate::strategy::label_selector;
use object::field::Errors;
use object::{Quantity, View, name};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const ALONE: &str = "ReadWriteOncePod";

/// A template has labels and annotations and no other metadata.
pub(crate) fn validate_template(template: &At, errors: &mut Errors) {
    let metadata = template.field("metadata");
    label_selector::labels(&metadata.field("labels"), errors);
    for (field, value) in metadata.entries() {
        let refused = !matches!(field, "labels" | "annotations") && !value.is_empty();
        if refused {
            let path = metadata.path().child(field);
            errors.push(object::field::Error::forbidden(&path, "cannot be set"));
        }
    }
    validate_spec(&template.field("spec"), errors);
}

pub(crate) fn validate_spec(spec: &At, errors: &mut Errors) {
    let modes = spec.field("accessModes");
    if modes.is_empty() {
        modes.required(errors, "at least 1 access mode is required");
    }
    label_selector::validate_at(&spec.field("selector"), errors);
    for mode in modes.items().filter(|mode| !ACCESS_MODES.contains(&mode.text())) {
        errors.push(object::field::Error::not_supported(&modes.path(), mode.text(), &ACCESS_MODES));
    }
    let is_other = |mode: &At| mode.text() != ALONE && ACCESS_MODES.contains(&mode.text());
    if modes.items().any(|mode| mode.text() == ALONE) && modes.items().any(|mode| is_other(&mode)) {
        modes.forbidden(errors, "may not use ReadWriteOncePod with other access modes");
    }
    let resources = spec.field("resources");
    let storage = resources.value().at("requests").at("storage");
    let at = resources.key("storage");
    match storage.as_str().and_then(|text| text.parse::<Quantity>().ok()) {
        None => at.required(errors, ""),
        Some(amount) if amount.is_zero() || amount.is_negative() => {
            at.invalid_value(errors, storage.clone(), "must be greater than zero");
        }
        Some(_) => {}
    }
    spec.field("storageClassName").named_if_set(errors, name::dns_subdomain);
    spec.field("volumeMode").one_of(errors, &["Block", "Filesystem"]);
    spec.field("volumeAttributesClassName").named_if_set(errors, name::dns_subdomain);
    for field in ["dataSource", "dataSourceRef"] {
        data_source(&spec.field(field), errors);
    }
}

fn data_source(source: &At, errors: &mut Errors) {
    if !source.is_set() {
        return;
    }
    source.field("name").require(errors);
    let kind = source.field("kind");
    kind.require(errors);
    if source.field("apiGroup").is_empty() && kind.text() != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        source.invalid_value(errors, kind.text(), detail);
    }
    source.field("apiGroup").named_if_set(errors, name::dns_subdomain);
}
