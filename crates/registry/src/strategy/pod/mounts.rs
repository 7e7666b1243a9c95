//! The rules of what a container mounts: volumes as directories, and volumes as devices.

use super::container::Pod;
use super::paths;
use crate::strategy::place::Place;
use object::field::Errors;
use object::{Value, View};
use std::collections::BTreeSet;

pub(super) fn validate(container: &Place, pod: &Pod, errors: &mut Errors) {
    let (mounts, devices) = (container.field("volumeMounts"), container.field("volumeDevices"));
    let mut taken = BTreeSet::new();
    for mount in mounts.items() {
        one_mount(&mount, &mounts, devices.value(), pod, &mut taken, errors);
        let privileged = container.field("securityContext").field("privileged").value() == true;
        propagation(&mount, &mounts, privileged, errors);
        recursive_read_only(&mount, &mounts, errors);
    }
    validate_devices(&devices, mounts.value(), pod, errors);
}

/// Whether a list has an item whose field has this text.
fn has(list: &Value, field: &str, text: &str) -> bool {
    list.as_array().is_some_and(|items| items.iter().any(|item| item.text(field) == text))
}

fn one_mount<'v>(
    mount: &Place<'v, '_>,
    mounts: &Place<'v, '_>,
    devices: &Value,
    pod: &Pod,
    taken: &mut BTreeSet<&'v str>,
    errors: &mut Errors,
) {
    let (name, path) = (mount.field("name"), mount.field("mountPath"));
    name.require(errors);
    if !pod.volumes.contains_key(name.text()) {
        name.not_found(errors, name.text());
    }
    path.require(errors);
    if !taken.insert(path.text()) {
        path.invalid(errors, "must be unique");
    }
    if has(devices, "name", name.text()) {
        name.invalid(errors, "must not already exist in volumeDevices");
    }
    if has(devices, "devicePath", path.text()) {
        path.invalid(errors, "must not already exist as a path in volumeDevices");
    }
    // The path of these mistakes names the list and not the item.
    let (sub_path, expression) = (mount.field("subPath"), mount.field("subPathExpr"));
    if !expression.is_empty() && !sub_path.is_empty() {
        expression.invalid(errors, "subPathExpr and subPath are mutually exclusive");
    }
    for (field, path) in [("subPath", sub_path), ("subPathExpr", expression)] {
        paths::descending(&mounts.field(field).with(path.value()), errors);
    }
}

fn propagation<'v>(mount: &Place<'v, '_>, mounts: &Place<'v, '_>, privileged: bool, errors: &mut Errors) {
    let mode = mount.field("mountPropagation");
    if !mode.is_set() {
        return;
    }
    let place = mounts.field("mountPropagation");
    let mode = place.with(mode.value());
    mode.one_of_if_set(errors, &["Bidirectional", "HostToContainer", "None"]);
    if mode.text() == "Bidirectional" && !privileged {
        mode.forbidden(errors, "Bidirectional mount propagation is available only to privileged containers");
    }
}

fn recursive_read_only<'v>(mount: &Place<'v, '_>, mounts: &Place<'v, '_>, errors: &mut Errors) {
    let mode = mount.field("recursiveReadOnly");
    if !mode.is_set() || mode.text() == "Disabled" {
        return;
    }
    let place = mounts.field("recursiveReadOnly");
    let mode = place.with(mode.value());
    if !matches!(mode.text(), "Enabled" | "IfPossible") {
        return mode.not_supported(errors, &["Disabled", "Enabled", "IfPossible"]);
    }
    if mount.field("readOnly").value() != true {
        mode.forbidden(errors, "may only be specified when readOnly is true");
    }
    if !matches!(mount.field("mountPropagation").text(), "" | "None") {
        mode.forbidden(errors, "may only be specified when mountPropagation is None or not specified");
    }
}

fn validate_devices(devices: &Place, mounts: &Value, pod: &Pod, errors: &mut Errors) {
    let (mut names, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for device in devices.items() {
        let (name, path) = (device.field("name"), device.field("devicePath"));
        name.require(errors);
        if !name.is_empty() && !names.insert(name.text()) {
            name.invalid(errors, "must be unique");
        }
        match pod.volumes.get(name.text()) {
            Some(volume) if !volume.has("persistentVolumeClaim") && !volume.has("ephemeral") => name.invalid(
                errors,
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            ),
            Some(_) => {}
            None => name.not_found(errors, name.text()),
        }
        path.require(errors);
        if taken.contains(path.text()) {
            path.invalid(errors, "must be unique");
        }
        if paths::leads_up(path.text()) {
            path.invalid(errors, "can not contain backsteps ('..')");
        } else {
            taken.insert(path.text());
        }
        if has(mounts, "name", name.text()) {
            name.invalid(errors, "must not already exist in volumeMounts");
        }
        if has(mounts, "mountPath", path.text()) {
            path.invalid(errors, "must not already exist as a path in volumeMounts");
        }
    }
}
