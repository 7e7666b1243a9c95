//! What depends on the operating system of a pod's node.

use super::container::Pod;
use super::default::CONTAINER_LISTS;
use crate::strategy::place::Place;
use object::field::Errors;
use object::name;

const CREDENTIAL_SPEC_MAX_KIB: usize = 64;
const DOMAIN_MAX: usize = 256;
const USER_MAX: usize = 104;
/// What means nothing on Windows, of a pod's security context, of its spec, and of a container's security context.
const NOT_IN_POD_CONTEXT: [&str; 11] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];
const NOT_IN_SPEC: [&str; 4] = ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"];
const NOT_IN_CONTAINER: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

pub(super) fn validate_system(spec: &Place, errors: &mut Errors) {
    let system = spec.field("os");
    if !system.is_set() || !system.field("name").require(errors) {
        return;
    }
    match system.field("name").text() {
        "linux" => linux(spec, errors),
        "windows" => windows(spec, errors),
        other => system.not_supported_value(errors, other, &["linux", "windows"]),
    }
}

fn linux(spec: &Place, errors: &mut Errors) {
    let refuse = |context: &Place, errors: &mut Errors| {
        if context.field("windowsOptions").is_set() {
            context.field("windowsOptions").forbidden(errors, "windows options cannot be set for a linux pod");
        }
    };
    refuse(&spec.field("securityContext"), errors);
    for list in CONTAINER_LISTS {
        spec.field(list).items().for_each(|container| refuse(&container.field("securityContext"), errors));
    }
}

fn windows(spec: &Place, errors: &mut Errors) {
    let refuse = |at: &Place, fields: &[&'static str], errors: &mut Errors| {
        for field in fields.iter().map(|field| at.field(field)) {
            if field.is_set() && field.value() != false {
                field.forbidden(errors, "cannot be set for a windows pod");
            }
        }
    };
    refuse(&spec.field("securityContext"), &NOT_IN_POD_CONTEXT, errors);
    refuse(spec, &NOT_IN_SPEC, errors);
    for list in CONTAINER_LISTS {
        for container in spec.field(list).items() {
            refuse(&container.field("securityContext"), &NOT_IN_CONTAINER, errors);
        }
    }
}

pub(super) fn validate_options(options: &Place, errors: &mut Errors) {
    if !options.is_set() {
        return;
    }
    let (spec_name, spec) = (options.field("gmsaCredentialSpecName"), options.field("gmsaCredentialSpec"));
    if spec_name.is_set() {
        spec_name.follows(errors, name::dns_subdomain);
    }
    match spec.text().len() {
        0 if spec.is_set() => spec.invalid(errors, "gmsaCredentialSpec cannot be an empty string"),
        length if length > CREDENTIAL_SPEC_MAX_KIB * 1024 => {
            spec.invalid(errors, format!("gmsaCredentialSpec size must be under {CREDENTIAL_SPEC_MAX_KIB} KiB"));
        }
        _ => {}
    }
    if options.field("runAsUserName").is_set() {
        user_name(&options.field("runAsUserName"), errors);
    }
}

fn user_name(name: &Place, errors: &mut Errors) {
    let text = name.text();
    let parts: Vec<_> = text.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        _ if text.is_empty() => return name.invalid(errors, "runAsUserName cannot be an empty string"),
        _ if text.chars().any(|c| c.is_ascii_control()) => {
            return name.invalid(errors, "runAsUserName cannot contain control characters");
        }
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return name.invalid(errors, "runAsUserName cannot contain more than one backslash"),
    };
    if let Some(domain) = domain {
        if domain.len() >= DOMAIN_MAX {
            name.invalid(errors, format!("runAsUserName's Domain length must be under {DOMAIN_MAX} characters"));
        }
        if !is_net_bios(domain) && !is_domain(domain) {
            name.invalid(errors, "runAsUserName's Domain doesn't match the NetBios nor the DNS format");
        }
    }
    if user.is_empty() {
        name.invalid(errors, "runAsUserName's User cannot be empty");
    } else if user.len() > USER_MAX {
        name.invalid(errors, format!("runAsUserName's User length must not be longer than {USER_MAX} characters"));
    }
    if !user.is_empty() && user.chars().all(|c| ". ".contains(c)) {
        name.invalid(errors, "runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(|c| r#""/\:;|=,+*?<>@[]"#.contains(c)) {
        name.invalid(errors, r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#);
    }
}

fn is_net_bios(domain: &str) -> bool {
    let length = domain.chars().count();
    (1..=15).contains(&length) && !domain.starts_with('.') && !domain.contains(|c| r#"\/:*?"<>|"#.contains(c))
}

fn is_domain(domain: &str) -> bool {
    domain.split('.').all(|label| name::dns_label(&label.to_lowercase()).is_empty())
}

/// Containers that are processes of the host: all of a pod's or none.
pub(super) fn validate_host_processes(spec: &Place, _pod: &Pod, errors: &mut Errors) {
    let of = |at: &Place| at.field("securityContext").field("windowsOptions").field("hostProcess").value().as_bool();
    let whole = of(spec);
    let (mut containers, mut host_processes) = (0, 0);
    for list in CONTAINER_LISTS {
        for container in spec.field(list).items() {
            let own = of(&container);
            containers += 1;
            host_processes += usize::from(own.or(whole) == Some(true));
            if let (Some(whole), Some(own)) = (whole, own)
                && whole != own
            {
                let context = container.field("securityContext");
                let detail = format!("pod hostProcess value must be identical if both are specified, was {whole}");
                context.field("windowsOptions").field("hostProcess").invalid_value(errors, own, detail);
            }
        }
    }
    if host_processes == 0 {
        return;
    }
    if host_processes != containers {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        spec.invalid_value(errors, "", detail);
    }
    if !spec.field("hostNetwork").flag() {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        spec.field("hostNetwork").invalid_value(errors, false, detail);
    }
}
