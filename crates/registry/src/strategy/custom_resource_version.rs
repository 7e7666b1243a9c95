//! A version of a custom resource: its schema, subresources, columns and selectable fields.

use crate::strategy::custom_resource_schema;
use crate::strategy::place::{Place, same};
use object::View;
use object::field::{Error, Errors};

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
    let warning = version.child("deprecationWarning");
    if warning.is_null() {
        return;
    }
    let text = warning.string();
    let unprintable = text.char_indices().find(|(_, character)| character.is_control());
    let unprintable = unprintable.map(|(index, _)| {
        format!("must only contain printable UTF-8 characters; non-printable character found at index {index}")
    });
    let problems = match version.flag("deprecated") {
        false => vec!["can only be set for deprecated versions".to_owned()],
        true => {
            let too_long = (text.len() > DEPRECATION_MAX_BYTES).then(|| "must be <= 256 characters long".to_owned());
            let empty = text.is_empty().then(|| "must not be an empty string".to_owned());
            too_long.into_iter().chain(empty).chain(unprintable).collect()
        }
    };
    errors.extend(problems.into_iter().map(|problem| warning.invalid(problem)));
}

/// The schema, subresources, columns and selectable fields of a version.
fn validate_parts(spec: &Place, version: &Place, errors: &mut Errors) {
    let [schema, subresources, columns, selectable] = PER_VERSION.map(|(field, shared)| {
        let own = version.child(field);
        let all_agree = spec.items("versions").iter().all(|other| same(other.at(field), own.value));
        if all_agree { Place { path: spec.path.child(shared), ..own } } else { own }
    });
    let before = errors.len();
    custom_resource_schema::validate(&schema.child("openAPIV3Schema"), errors);
    let schema_is_good = errors.len() == before;
    validate_scale(&subresources, errors);
    let items = |place: &Place| place.as_array().map_or(0, Vec::len);
    for index in 0..items(&columns) {
        validate_column(&Place::new(&columns.value[index], &columns.path.index(index)), errors);
    }
    let mut seen = Vec::new();
    for index in 0..items(&selectable) {
        let path = Place::new(&selectable.value[index], &selectable.path.index(index)).child("jsonPath");
        if path.required("", errors) && schema_is_good {
            custom_resource_schema::validate_selectable(&path, schema.at("openAPIV3Schema"), errors);
        }
        if seen.contains(&path.string()) {
            errors.push(Error::duplicate(&path.path, path.string()));
        }
        seen.push(path.string());
    }
    selectable.at_most(MAX_SELECTABLE_FIELDS, errors);
}

/// Where a scale finds its numbers, and what to say if that is somewhere else.
const SCALE_PATHS: [(&str, &[&str], &str); 3] = [
    ("specReplicasPath", &[".spec."], "should be a json path under .spec"),
    ("statusReplicasPath", &[".status."], "should be a json path under .status"),
    ("labelSelectorPath", &[".spec.", ".status."], "should be a json path under either .spec or .status"),
];

fn validate_scale(subresources: &Place, errors: &mut Errors) {
    let scale = subresources.child("scale");
    if scale.is_null() {
        return;
    }
    for (field, roots, detail) in SCALE_PATHS {
        let path = scale.child(field);
        if path.is_empty() {
            if field != "labelSelectorPath" {
                errors.push(Error::required(&path.path, ""));
            }
        } else if !path.string().starts_with('.') {
            errors.push(path.invalid("must be a simple json path starting with ."));
        } else if !roots.iter().any(|root| path.string().starts_with(root)) {
            errors.push(path.invalid(detail));
        }
    }
}

fn validate_column(column: &Place, errors: &mut Errors) {
    column.child("name").required("", errors);
    let (kind, format) = (column.child("type"), column.child("format"));
    let one_of = |words: &[&str]| format!("must be one of {}", words.join(","));
    if kind.required(&one_of(&COLUMN_TYPES), errors) && !COLUMN_TYPES.contains(&kind.string()) {
        errors.push(kind.invalid(one_of(&COLUMN_TYPES)));
    }
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format.string()) {
        errors.push(format.invalid(one_of(&COLUMN_FORMATS)));
    }
    let path = Place { value: column.value.at("jsonPath"), path: column.path.child("JSONPath") };
    if path.required("", errors) && !path.string().starts_with('.') {
        errors.push(path.invalid("must be a simple json path starting with ."));
    }
}
