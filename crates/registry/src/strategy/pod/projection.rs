//! The rules of volumes whose files are put together from secrets, config maps, fields of the pod and tokens.

use super::{env, paths};
use crate::strategy::place::Place;
use object::field::Errors;
use std::collections::BTreeSet;

const MODE_MAX: i64 = 0o777;
const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

pub(super) fn mode(mode: &Place, errors: &mut Errors) {
    if !(0..=MODE_MAX).contains(&mode.int()) {
        mode.invalid(errors, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}

pub(super) fn key_to_path(item: &Place, errors: &mut Errors) {
    item.field("key").require(errors);
    item.field("path").require(errors);
    paths::inside_volume(&item.field("path"), errors);
    mode(&item.field("mode"), errors);
}

pub(super) fn validate_downward(volume: &Place, errors: &mut Errors) {
    mode(&volume.field("defaultMode"), errors);
    downward_files(volume, errors);
}

/// The path of mistakes in a file is that of the volume, and does not name the item.
fn downward_files(volume: &Place, errors: &mut Errors) {
    for item in volume.field("items").items() {
        let file = volume.with(item.value());
        let (field, resource) = (file.field("fieldRef"), file.field("resourceFieldRef"));
        file.field("path").require(errors);
        paths::inside_volume(&file.field("path"), errors);
        if field.is_set() {
            env::field_reference(&field, &env::VOLUME_FIELDS, errors);
            if resource.is_set() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                file.invalid_value(errors, "resource", detail);
            }
        } else if resource.is_set() {
            env::resource_reference(&resource, true, errors);
        } else {
            file.required(errors, "one of fieldRef and resourceFieldRef is required");
        }
        mode(&file.field("mode"), errors);
    }
}

pub(super) fn validate(volume: &Place, errors: &mut Errors) {
    mode(&volume.field("defaultMode"), errors);
    let mut taken = BTreeSet::new();
    for source in volume.field("sources").items() {
        let mut given = 0;
        for field in ["secret", "configMap"] {
            let object = source.field(field);
            if object.is_set() {
                given += 1;
                object.field("name").require(errors);
                object.field("items").items().for_each(|item| key_to_path(&item, errors));
                unique_paths(&object, volume, object.field("name").text(), &mut taken, errors);
            }
        }
        let downward = source.field("downwardAPI");
        if downward.is_set() {
            given += 1;
            downward_files(&downward, errors);
            unique_paths(&downward, volume, "", &mut taken, errors);
        }
        if source.field("serviceAccountToken").is_set() {
            given += 1;
            token(&source.field("serviceAccountToken"), volume, errors);
        }
        if given > 1 {
            source.forbidden(errors, "may not specify more than 1 volume type per source");
        }
    }
}

/// No two files may have the same path. The message names the object they come from, if they come from one.
fn unique_paths<'v>(
    source: &Place<'v, '_>,
    volume: &Place,
    name: &str,
    taken: &mut BTreeSet<&'v str>,
    errors: &mut Errors,
) {
    for item in source.field("items").items() {
        let path = item.field("path").text();
        if !path.is_empty() && !taken.insert(path) {
            let shown = if name.is_empty() { path } else { name };
            volume.invalid_value(errors, shown, "conflicting duplicate paths");
        }
    }
}

fn token<'v>(token: &Place<'v, '_>, volume: &Place<'v, '_>, errors: &mut Errors) {
    let seconds = token.field("expirationSeconds");
    if seconds.int() < TOKEN_SECONDS_MIN {
        seconds.invalid(errors, "may not specify a duration less than 10 minutes");
    }
    if seconds.int() > TOKEN_SECONDS_MAX {
        seconds.invalid(errors, "may not specify a duration larger than 2^32 seconds");
    }
    let (file, place) = (token.field("path"), volume.field("path"));
    let file = place.with(file.value());
    if file.require(errors) {
        paths::inside_volume(&file, errors);
    }
}
