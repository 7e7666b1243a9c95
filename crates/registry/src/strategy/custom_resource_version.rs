//! A version of a custom resource: its schema, subresources, columns and selectable fields.

use crate::strategy::custom_resource_schema;
use crate::strategy::place::Place;
use crate::strategy::value::same;
use object::View;
use object::field::Errors;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 9] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password", "quantity"];
const MAX_SELECTABLE_FIELDS: usize = 8;
const DEPRECATION_MAX_BYTES: usize = 256;

/// What versions may have in common, in each version and for all of them. Kubernetes reports what all versions agree on
/// at the place for all.
const PER_VERSION: [(&str, &str); 4] = [
    ("schema", "validation"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

pub fn validate(spec: &Place, version: &Place, errors: &mut Errors) {
    validate_deprecation(version, errors);
    validate_parts(spec, version, errors);
}

fn validate_deprecation(version: &Place, errors: &mut Errors) {
    let warning = version.field("deprecationWarning");
    if !warning.is_set() {
        return;
    }
    let text = warning.text();
    let unprintable = text.char_indices().find(|(_, character)| character.is_control());
    let unprintable = unprintable.map(|(index, _)| {
        format!("must only contain printable UTF-8 characters; non-printable character found at index {index}")
    });
    let problems = match version.field("deprecated").flag() {
        false => vec!["can only be set for deprecated versions".to_owned()],
        true => {
            let too_long = (text.len() > DEPRECATION_MAX_BYTES).then(|| "must be <= 256 characters long".to_owned());
            let empty = text.is_empty().then(|| "must not be an empty string".to_owned());
            too_long.into_iter().chain(empty).chain(unprintable).collect()
        }
    };
    problems.into_iter().for_each(|problem| warning.invalid(errors, problem));
}

/// The schema, subresources, columns and selectable fields of a version.
fn validate_parts(spec: &Place, version: &Place, errors: &mut Errors) {
    let [schema, subresources, columns, selectable] = PER_VERSION.map(|(field, shared)| {
        let own = version.field(field);
        let all_agree = spec.field("versions").values().iter().all(|other| same(other.at(field), own.value()));
        if all_agree { spec.field(shared).with(own.value()) } else { own }
    });
    let before = errors.len();
    custom_resource_schema::validate(&schema.field("openAPIV3Schema"), errors);
    let schema_is_good = errors.len() == before;
    validate_scale(&subresources, errors);
    columns.items().for_each(|column| validate_column(&column, errors));
    let mut seen = Vec::new();
    for field in selectable.items() {
        let path = field.field("jsonPath");
        if path.require(errors) && schema_is_good {
            custom_resource_schema::validate_selectable(&path, schema.field("openAPIV3Schema").value(), errors);
        }
        if seen.contains(&path.text()) {
            path.duplicate(errors, path.text());
        }
        seen.push(path.text());
    }
    selectable.at_most(errors, MAX_SELECTABLE_FIELDS);
}

/// Where a scale finds its numbers, and what to say if that is somewhere else.
const SCALE_PATHS: [(&str, &[&str], &str); 3] = [
    ("specReplicasPath", &[".spec."], "should be a json path under .spec"),
    ("statusReplicasPath", &[".status."], "should be a json path under .status"),
    ("labelSelectorPath", &[".spec.", ".status."], "should be a json path under either .spec or .status"),
];

fn validate_scale(subresources: &Place, errors: &mut Errors) {
    let scale = subresources.field("scale");
    if !scale.is_set() {
        return;
    }
    for (field, roots, detail) in SCALE_PATHS {
        let path = scale.field(field);
        if path.is_empty() {
            if field != "labelSelectorPath" {
                path.required(errors, "");
            }
        } else if !path.text().starts_with('.') {
            path.invalid(errors, "must be a simple json path starting with .");
        } else if !roots.iter().any(|root| path.text().starts_with(root)) {
            path.invalid(errors, detail);
        }
    }
}

fn validate_column(column: &Place, errors: &mut Errors) {
    column.field("name").require(errors);
    let (kind, format) = (column.field("type"), column.field("format"));
    let one_of = |words: &[&str]| format!("must be one of {}", words.join(","));
    if kind.require_because(errors, &one_of(&COLUMN_TYPES)) && !COLUMN_TYPES.contains(&kind.text()) {
        kind.invalid(errors, one_of(&COLUMN_TYPES));
    }
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format.text()) {
        format.invalid(errors, one_of(&COLUMN_FORMATS));
    }
    let path = column.field("JSONPath").with(column.field("jsonPath").value());
    if path.require(errors) && !path.text().starts_with('.') {
        path.invalid(errors, "must be a simple json path starting with .");
    }
}
