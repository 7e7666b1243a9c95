//! The rules of security contexts, of a pod and of its containers.

use super::container::Pod;
use super::default::CONTAINER_LISTS;
use super::{paths, windows};
use crate::strategy::place::Place;
use object::field::Errors;
use std::collections::BTreeSet;

/// The largest number of a user or group.
const ID_MAX: i64 = i32::MAX as i64;
const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const APP_ARMOR_PROFILE_MAX: usize = 4095;
const SYSCTL_MAX: usize = 253;

pub(super) fn validate_pod(spec: &Place, errors: &mut Errors) {
    let context = spec.field("securityContext");
    if context.is_empty() {
        shared_processes(spec, &context, errors);
        return;
    }
    ids(&context, &["fsGroup", "runAsUser", "runAsGroup"], errors);
    for group in context.field("supplementalGroups").items() {
        group.within(errors, 0, ID_MAX);
    }
    shared_processes(spec, &context, errors);
    sysctls(&context.field("sysctls"), spec, errors);
    context.field("fsGroupChangePolicy").one_of_if_set(errors, &["Always", "OnRootMismatch"]);
    seccomp(&context.field("seccompProfile"), errors);
    windows::validate_options(&context.field("windowsOptions"), errors);
    app_armor(&context.field("appArmorProfile"), errors);
    context.field("supplementalGroupsPolicy").one_of_if_set(errors, &["Merge", "Strict"]);
    context.field("seLinuxChangePolicy").one_of_if_set(errors, &["MountOption", "Recursive"]);
}

pub(super) fn validate_container(context: &Place, host_users: bool, errors: &mut Errors) {
    if context.is_empty() {
        return;
    }
    ids(context, &["runAsUser", "runAsGroup"], errors);
    let proc_mount = context.field("procMount");
    proc_mount.one_of_if_set(errors, &["Default", "Unmasked"]);
    if host_users && proc_mount.text() == "Unmasked" {
        proc_mount.invalid(errors, "`hostUsers` must be false to use `Unmasked`");
    }
    seccomp(&context.field("seccompProfile"), errors);
    if context.field("allowPrivilegeEscalation").value() == false {
        if context.field("privileged").value() == true {
            context.invalid(errors, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
        }
        for capability in context.field("capabilities").field("add").items() {
            if capability.text() == "CAP_SYS_ADMIN" {
                let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
                context.invalid(errors, detail);
            }
        }
    }
    windows::validate_options(&context.field("windowsOptions"), errors);
    app_armor(&context.field("appArmorProfile"), errors);
}

fn ids(context: &Place, fields: &[&'static str], errors: &mut Errors) {
    for field in fields.iter().map(|field| context.field(field)).filter(Place::is_set) {
        field.within(errors, 0, ID_MAX);
    }
}

fn shared_processes(spec: &Place, context: &Place, errors: &mut Errors) {
    let share = spec.field("shareProcessNamespace").value();
    if share == true && spec.field("hostPID").value() == true {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        context.field("shareProcessNamespace").invalid_value(errors, true, detail);
    }
}

fn seccomp(profile: &Place, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (kind, local) = (profile.field("type"), profile.field("localhostProfile"));
    match kind.text() {
        "" => kind.required(errors, "type is required when seccompProfile is set"),
        _ => kind.one_of_if_set(errors, &PROFILE_TYPES),
    }
    match (kind.text() == "Localhost", local.is_set()) {
        (true, true) => paths::descending(&local, errors),
        (true, false) => local.required(errors, "must be set when seccomp type is Localhost"),
        (false, true) => {
            local.invalid_value(errors, profile.value().clone(), "can only be set when seccomp type is Localhost");
        }
        (false, false) => {}
    }
}

fn app_armor(profile: &Place, errors: &mut Errors) {
    const MISSING: &str = "must be set when AppArmor type is Localhost";
    if !profile.is_set() {
        return;
    }
    let (kind, local) = (profile.field("type"), profile.field("localhostProfile"));
    match kind.text() {
        "" => kind.required(errors, "type is required when appArmorProfile is set"),
        "Localhost" if local.text().trim() != local.text() => {
            local.invalid(errors, "must not be padded with whitespace");
        }
        "Localhost" if local.is_empty() => local.required(errors, MISSING),
        "Localhost" if local.text().len() > APP_ARMOR_PROFILE_MAX => local.too_long(errors, APP_ARMOR_PROFILE_MAX),
        "Localhost" => {}
        _ if !PROFILE_TYPES.contains(&kind.text()) => kind.not_supported(errors, &PROFILE_TYPES),
        _ if local.is_set() => local.invalid(errors, "can only be set when AppArmor type is Localhost"),
        _ => {}
    }
}

fn sysctls(sysctls: &Place, spec: &Place, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for sysctl in sysctls.items() {
        let name = sysctl.field("name");
        if name.is_empty() {
            name.required(errors, "");
        } else if name.text().len() > SYSCTL_MAX || !is_sysctl(name.text()) {
            let pattern = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            name.invalid(errors, format!("must have at most {SYSCTL_MAX} characters and match regex {pattern}"));
        } else if !seen.insert(name.text()) {
            name.duplicate(errors, name.text());
        }
        for (namespace, flag) in [(Namespace::Network, "hostNetwork"), (Namespace::Ipc, "hostIPC")] {
            if spec.field(flag).value() == true && sysctl_namespace(name.text()) == Some(namespace) {
                name.invalid(errors, format!("may not be specified when '{flag}' is true"));
            }
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    name.split(['.', '/']).all(|part| {
        let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|byte| alphanumeric(*byte))
            && bytes.last().is_some_and(|byte| alphanumeric(*byte))
            && bytes.iter().all(|byte| alphanumeric(*byte) || b"-_".contains(byte))
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Ipc,
    Network,
}

/// The namespace a kernel setting belongs to; most belong to the host.
fn sysctl_namespace(name: &str) -> Option<Namespace> {
    // A name is written with dots or with slashes, and the first of them says which.
    let first = name.find(['.', '/'])?;
    let name = if name.as_bytes()[first] == b'/' { name.replace('/', ".") } else { name.to_owned() };
    match name.as_str() {
        "kernel.sem" => Some(Namespace::Ipc),
        name if name.starts_with("kernel.shm") || name.starts_with("kernel.msg") => Some(Namespace::Ipc),
        name if name.starts_with("fs.mqueue.") => Some(Namespace::Ipc),
        name if name.starts_with("net.") => Some(Namespace::Network),
        _ => None,
    }
}

/// A pod with users of its own cannot share what belongs to the users of the host.
pub(super) fn validate_host_users(spec: &Place, pod: &Pod, errors: &mut Errors) {
    const REFUSED: &str = "when `hostUsers` is false";
    if pod.host_users {
        return;
    }
    for (field, label) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.field(field).value() == true {
            spec.field(label).forbidden(errors, REFUSED);
        }
    }
    for list in CONTAINER_LISTS {
        for container in spec.field(list).items() {
            if !container.field("volumeDevices").is_empty() {
                container.field("volumeDevices").forbidden(errors, REFUSED);
            }
        }
    }
}
