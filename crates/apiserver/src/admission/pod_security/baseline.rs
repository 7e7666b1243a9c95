//! The checks of the baseline: no known way for a pod to gain more than its node means to give.

use super::checks::{Named, Pod, Violation, distinct, plural, quoted, texts};
use object::{Value, View};
use std::collections::BTreeSet;

pub(super) fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    fn kind(context: &Value) -> Option<&str> {
        let profile = context.at("appArmorProfile");
        let kind = profile.text("type");
        (!profile.is_null() && !matches!(kind, "RuntimeDefault" | "Localhost")).then_some(kind)
    }
    let allowed = |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotations = pod.metadata.entries("annotations").filter_map(|(key, value)| {
        let value = value.as_str().filter(|value| key.starts_with(PREFIX) && !allowed(value))?;
        Some(format!("{key}={value:?}"))
    });
    let annotations: Vec<String> = annotations.collect();
    let setters = pod.setters(|context| kind(context).is_some());
    let annotated = (!annotations.is_empty()).then(|| plural("annotation", annotations.len()));
    let who: Vec<String> = setters.into_iter().chain(annotated).collect();
    if who.is_empty() {
        return None;
    }
    let values = distinct(pod.contexts().filter_map(kind));
    let values: Vec<&str> = values.into_iter().chain(annotations.iter().map(String::as_str)).collect();
    let reason = if values.len() == 1 { "forbidden AppArmor profile" } else { "forbidden AppArmor profiles" };
    Some((reason, format!("{} must not set AppArmor profile type to {}", who.join(" and "), quoted(values))))
}

pub(super) fn capabilities<'a>(container: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    texts(container.at("securityContext").at("capabilities").items(field))
}

/// The containers that add capabilities beyond those allowed.
pub(super) fn adding(pod: &Pod<'_>, allowed: &[&str]) -> Option<String> {
    let foreign = |name: &&str| !allowed.contains(name);
    let bad = pod.containers_that(|container| capabilities(container, "add").any(|name| foreign(&name)))?;
    let added = distinct(pod.containers().flat_map(|container| capabilities(container, "add")).filter(foreign));
    Some(format!("{} must not include {} in securityContext.capabilities.add", bad.text, quoted(added)))
}

pub(super) fn added_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    const DEFAULT: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    adding(pod, &DEFAULT).map(|detail| ("non-default capabilities", detail))
}

pub(super) fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| pod.spec.flag(field));
    let shared: Vec<_> = shared.map(|field| format!("{field}=true")).collect();
    (!shared.is_empty()).then(|| ("host namespaces", shared.join(", ")))
}

pub(super) fn host_path_volumes(pod: &Pod<'_>) -> Option<Violation> {
    let volumes = pod.spec.items("volumes").iter().filter(|volume| volume.has("hostPath"));
    Named::of("volume", volumes.map(|volume| volume.text("name"))).map(|bad| ("hostPath volumes", bad.text))
}

pub(super) fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    let ports = |container: &Value| -> Vec<i64> {
        let ports = container.items("ports").iter().filter_map(|port| port.int("hostPort"));
        ports.filter(|port| *port != 0).collect()
    };
    let bad = pod.containers_that(|container| !ports(container).is_empty())?;
    // Sorted as texts, which is how they are told.
    let ports: BTreeSet<_> = pod.containers().flat_map(ports).map(|port| port.to_string()).collect();
    let list = ports.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    Some(("hostPort", format!("{} {} {} {list}", bad.text, bad.uses(), plural("hostPort", ports.len()))))
}

pub(super) fn probe_hosts(pod: &Pod<'_>) -> Option<Violation> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    fn hosts(container: &Value) -> impl Iterator<Item = &str> {
        let handlers = HANDLERS.into_iter().map(|path| container.path(path));
        let hosts = handlers.flat_map(|handler| ["httpGet", "tcpSocket"].map(|kind| handler.at(kind).text("host")));
        hosts.filter(|host| !host.is_empty())
    }
    let bad = pod.containers().filter(|container| hosts(container).next().is_some());
    let bad = Named::of("container", distinct(bad.map(|container| container.text("name"))).into_iter())?;
    let hosts = distinct(pod.containers().flat_map(hosts));
    let what = plural("probe or lifecycle host", hosts.len());
    Some(("probe or lifecycle host", format!("{} {} {what} {}", bad.text, bad.uses(), quoted(hosts))))
}

pub(super) fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let bad = pod.containers_that(|container| container.at("securityContext").flag("privileged"))?;
    Some(("privileged", format!("{} must not set securityContext.privileged=true", bad.text)))
}

pub(super) fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_own_users() { None } else { proc_mount_anywhere(pod) }
}

pub(super) fn proc_mount_anywhere(pod: &Pod<'_>) -> Option<Violation> {
    fn kind(container: &Value) -> Option<&str> {
        container.at("securityContext").at("procMount").as_str().filter(|kind| *kind != "Default")
    }
    let bad = pod.containers_that(|container| kind(container).is_some())?;
    let kinds = quoted(distinct(pod.containers().filter_map(kind)));
    Some(("procMount", format!("{} must not set securityContext.procMount to {kinds}", bad.text)))
}

pub(super) fn selinux_options(pod: &Pod<'_>) -> Option<Violation> {
    let allowed = |kind: &str| match kind {
        "" | "container_t" | "container_init_t" | "container_kvm_t" => true,
        "container_engine_t" => pod.version >= 31,
        _ => false,
    };
    let sets = |context: &Value, field: &str| !context.at("seLinuxOptions").text(field).is_empty();
    let bad_type = |context: &Value| !allowed(context.at("seLinuxOptions").text("type"));
    let setters = pod.setters(|context| bad_type(context) || sets(context, "user") || sets(context, "role"))?;
    let types = pod.contexts().filter(|context| bad_type(context));
    let types = distinct(types.map(|context| context.at("seLinuxOptions").text("type")));
    let mut details = Vec::new();
    if !types.is_empty() {
        details.push(format!("{} {}", plural("type", types.len()), quoted(types)));
    }
    let set = ["user", "role"].into_iter().filter(|field| pod.contexts().any(|context| sets(context, field)));
    details.extend(set.map(|field| format!("{field} may not be set")));
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {}", details.join("; "));
    Some(("seLinuxOptions", detail))
}

/// The type of a seccomp profile that is set and not allowed.
fn bad_seccomp(context: &Value) -> Option<&str> {
    let profile = context.at("seccompProfile");
    let kind = profile.text("type");
    (!profile.is_null() && !matches!(kind, "RuntimeDefault" | "Localhost")).then_some(kind)
}

pub(super) fn seccomp_profile(pod: &Pod<'_>) -> Option<Violation> {
    if pod.version < 19 {
        return seccomp_annotations(pod);
    }
    let setters = pod.setters(|context| bad_seccomp(context).is_some())?;
    let kinds = quoted(distinct(pod.contexts().filter_map(bad_seccomp)));
    Some(("seccompProfile", format!("{setters} must not set securityContext.seccompProfile.type to {kinds}")))
}

/// How profiles were set before there was a field.
fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let allowed =
        |value: &str| matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
    let containers =
        pod.containers().map(|one| format!("container.seccomp.security.alpha.kubernetes.io/{}", one.text("name")));
    let keys = std::iter::once("seccomp.security.alpha.kubernetes.io/pod".to_owned()).chain(containers);
    let bad = keys.filter_map(|key| {
        let value = pod.metadata.at("annotations").at(&key).as_str().filter(|value| !allowed(value))?;
        Some(format!("{key}={value:?}"))
    });
    let bad: BTreeSet<String> = bad.collect();
    let list = bad.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    (!bad.is_empty()).then(|| ("seccompProfile", format!("forbidden {} {list}", plural("annotation", bad.len()))))
}

pub(super) fn sysctls(pod: &Pod<'_>) -> Option<Violation> {
    const ALLOWED: [(u32, &[&str]); 4] = [
        (
            0,
            &[
                "kernel.shm_rmid_forced",
                "net.ipv4.ip_local_port_range",
                "net.ipv4.tcp_syncookies",
                "net.ipv4.ping_group_range",
                "net.ipv4.ip_unprivileged_port_start",
            ],
        ),
        (27, &["net.ipv4.ip_local_reserved_ports"]),
        (
            29,
            &[
                "net.ipv4.tcp_keepalive_time",
                "net.ipv4.tcp_fin_timeout",
                "net.ipv4.tcp_keepalive_intvl",
                "net.ipv4.tcp_keepalive_probes",
            ],
        ),
        (32, &["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]),
    ];
    let allowed = |name: &str| ALLOWED.iter().any(|(since, names)| *since <= pod.version && names.contains(&name));
    let names = pod.spec.at("securityContext").items("sysctls").iter().map(|sysctl| sysctl.text("name"));
    let bad: Vec<_> = names.filter(|name| !allowed(name)).collect();
    (!bad.is_empty()).then(|| ("forbidden sysctls", bad.join(", ")))
}

pub(super) fn host_process(pod: &Pod<'_>) -> Option<Violation> {
    let setters = pod.setters(|context| context.at("windowsOptions").flag("hostProcess"))?;
    Some(("hostProcess", format!("{setters} must not set securityContext.windowsOptions.hostProcess=true")))
}
