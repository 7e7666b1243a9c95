//! The rules of file paths inside objects.

use crate::strategy::place::Place;
use object::field::Errors;

/// A path must not lead up.
pub(super) fn no_backsteps(path: &Place, errors: &mut Errors) {
    if leads_up(path.text()) {
        path.invalid(errors, "must not contain '..'");
    }
}

pub(super) fn leads_up(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// A path must stay below where it starts.
pub(super) fn descending(path: &Place, errors: &mut Errors) {
    if path.text().starts_with('/') {
        path.invalid(errors, "must be a relative path");
    }
    no_backsteps(path, errors);
}

/// A path inside a volume whose names that begin with two dots are the node's own.
pub(super) fn inside_volume(path: &Place, errors: &mut Errors) {
    descending(path, errors);
    if path.text().starts_with("..") && !path.text().starts_with("../") {
        path.invalid(errors, "must not start with '..'");
    }
}
