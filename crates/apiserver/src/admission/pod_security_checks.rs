//! The checks of the pod security standards: pure functions over the metadata and the specification of a pod.
//!
//! A pod is judged by the rules as they were in the release that a namespace asks for, so each check knows since when
//! it is there, and what changed since.

use object::{Value, View};
use std::collections::BTreeSet;

/// How much a pod may do; each level allows less than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// A pod, or what a template says of one.
#[derive(Clone, Copy, Debug)]
struct Pod<'a> {
    metadata: &'a Value,
    spec: &'a Value,
    /// The minor version whose rules apply.
    version: u32,
}

struct Check {
    level: Level,
    since: u32,
    /// The check that this one makes superfluous.
    replaces: Option<Find>,
    find: Find,
}

/// What is wrong with a pod: the reason and its details.
type Violation = (&'static str, String);
type Find = fn(&Pod<'_>) -> Option<Violation>;

/// All checks, in the order their findings are told.
const CHECKS: [Check; 19] = [
    baseline(0, app_armor),
    baseline(0, added_capabilities),
    baseline(0, host_namespaces),
    baseline(0, host_path_volumes),
    baseline(0, host_ports),
    baseline(34, probe_hosts),
    baseline(0, privileged),
    baseline(0, proc_mount),
    baseline(0, selinux_options),
    baseline(0, seccomp_profile),
    baseline(0, sysctls),
    baseline(0, host_process),
    restricted(8, privilege_escalation, None),
    restricted(22, kept_capabilities, Some(added_capabilities)),
    restricted(35, proc_mount_anywhere, Some(proc_mount)),
    restricted(0, volume_types, Some(host_path_volumes)),
    restricted(0, run_as_non_root, None),
    restricted(23, run_as_root, None),
    restricted(19, seccomp_profile_set, Some(seccomp_profile)),
];

const fn baseline(since: u32, find: Find) -> Check {
    Check { level: Level::Baseline, since, replaces: None, find }
}

const fn restricted(since: u32, find: Find, replaces: Option<Find>) -> Check {
    Check { level: Level::Restricted, since, replaces, find }
}

/// Everything about a pod that a level does not allow. A level of the latest version has no number.
pub(super) fn violations(metadata: &Value, spec: &Value, level: Level, version: Option<u32>) -> Vec<Violation> {
    let pod = Pod { metadata, spec, version: version.unwrap_or(u32::MAX) };
    let applies = |check: &&Check| check.level <= level && check.since <= pod.version;
    let replaced = |check: &Check| {
        let same = |other: Find| std::ptr::fn_addr_eq(other, check.find);
        CHECKS.iter().filter(applies).any(|other| other.replaces.is_some_and(same))
    };
    CHECKS.iter().filter(applies).filter(|check| !replaced(check)).filter_map(|check| (check.find)(&pod)).collect()
}

impl Pod<'_> {
    fn containers(&self) -> impl Iterator<Item = &Value> {
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|list| self.spec.items(list))
    }

    /// The containers that something holds for: `containers "a", "b"`.
    fn containers_that(&self, hold: impl Fn(&Value) -> bool) -> Option<Named> {
        Named::of("container", self.containers().filter(|one| hold(one)).map(|one| one.text("name")))
    }

    /// Whether something holds for the security context of the pod or of containers: `pod and container "a"`.
    fn setters(&self, hold: impl Fn(&Value) -> bool) -> Option<String> {
        let pod = hold(self.spec.at("securityContext")).then(|| "pod".to_owned());
        let containers = self.containers_that(|container| hold(container.at("securityContext")));
        let setters: Vec<_> = pod.into_iter().chain(containers.map(|named| named.text)).collect();
        (!setters.is_empty()).then(|| setters.join(" and "))
    }

    /// The values of a field in all security contexts, of the pod and of its containers.
    fn contexts(&self) -> impl Iterator<Item = &Value> {
        let containers = self.containers().map(|container| container.at("securityContext"));
        std::iter::once(self.spec.at("securityContext")).chain(containers)
    }

    /// Rules of Linux do not apply to what says it is for Windows.
    fn is_windows(&self) -> bool {
        self.version >= 25 && self.spec.at("os").text("name") == "windows"
    }

    /// In a user namespace, root is nobody.
    fn has_own_users(&self) -> bool {
        self.version >= 35 && self.spec.at("hostUsers") == false
    }
}

/// Several things by name, as messages list them.
struct Named {
    text: String,
    count: usize,
}

impl Named {
    fn of<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> Option<Self> {
        let names: Vec<_> = names.collect();
        let count = names.len();
        (count > 0).then(|| Named { text: format!("{} {}", plural(kind, count), quoted(names)), count })
    }

    fn uses(&self) -> &'static str {
        if self.count == 1 { "uses" } else { "use" }
    }
}

fn plural(word: &str, count: usize) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// The distinct values, sorted.
fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    values.collect::<BTreeSet<_>>().into_iter().collect()
}

fn texts(list: &[Value]) -> impl Iterator<Item = &str> {
    list.iter().filter_map(Value::as_str)
}

fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
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

fn capabilities<'a>(container: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    texts(container.at("securityContext").at("capabilities").items(field))
}

/// The containers that add capabilities beyond those allowed.
fn adding(pod: &Pod<'_>, allowed: &[&str]) -> Option<String> {
    let foreign = |name: &&str| !allowed.contains(name);
    let bad = pod.containers_that(|container| capabilities(container, "add").any(|name| foreign(&name)))?;
    let added = distinct(pod.containers().flat_map(|container| capabilities(container, "add")).filter(foreign));
    Some(format!("{} must not include {} in securityContext.capabilities.add", bad.text, quoted(added)))
}

fn added_capabilities(pod: &Pod<'_>) -> Option<Violation> {
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

fn kept_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() {
        return None;
    }
    let keeping = pod.containers_that(|container| !capabilities(container, "drop").any(|name| name == "ALL"));
    let keeping = keeping.map(|bad| format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", bad.text));
    let details: Vec<_> = keeping.into_iter().chain(adding(pod, &["NET_BIND_SERVICE"])).collect();
    (!details.is_empty()).then(|| ("unrestricted capabilities", details.join("; ")))
}

fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| pod.spec.flag(field));
    let shared: Vec<_> = shared.map(|field| format!("{field}=true")).collect();
    (!shared.is_empty()).then(|| ("host namespaces", shared.join(", ")))
}

fn host_path_volumes(pod: &Pod<'_>) -> Option<Violation> {
    let volumes = pod.spec.items("volumes").iter().filter(|volume| volume.has("hostPath"));
    Named::of("volume", volumes.map(|volume| volume.text("name"))).map(|bad| ("hostPath volumes", bad.text))
}

fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
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

fn probe_hosts(pod: &Pod<'_>) -> Option<Violation> {
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

fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let bad = pod.containers_that(|container| container.at("securityContext").flag("privileged"))?;
    Some(("privileged", format!("{} must not set securityContext.privileged=true", bad.text)))
}

fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_own_users() { None } else { proc_mount_anywhere(pod) }
}

fn proc_mount_anywhere(pod: &Pod<'_>) -> Option<Violation> {
    fn kind(container: &Value) -> Option<&str> {
        container.at("securityContext").at("procMount").as_str().filter(|kind| *kind != "Default")
    }
    let bad = pod.containers_that(|container| kind(container).is_some())?;
    let kinds = quoted(distinct(pod.containers().filter_map(kind)));
    Some(("procMount", format!("{} must not set securityContext.procMount to {kinds}", bad.text)))
}

fn selinux_options(pod: &Pod<'_>) -> Option<Violation> {
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

fn seccomp_profile(pod: &Pod<'_>) -> Option<Violation> {
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

fn seccomp_profile_set(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() {
        return None;
    }
    let whole = pod.spec.at("securityContext").has("seccompProfile");
    seccomp_profile(pod).or_else(|| {
        let unset = |container: &Value| !whole && !container.at("securityContext").has("seccompProfile");
        let bad = pod.containers_that(unset)?;
        let detail = format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
            bad.text
        );
        Some(("seccompProfile", detail))
    })
}

fn sysctls(pod: &Pod<'_>) -> Option<Violation> {
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

fn host_process(pod: &Pod<'_>) -> Option<Violation> {
    let setters = pod.setters(|context| context.at("windowsOptions").flag("hostProcess"))?;
    Some(("hostProcess", format!("{setters} must not set securityContext.windowsOptions.hostProcess=true")))
}

fn privilege_escalation(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() {
        return None;
    }
    let bad =
        pod.containers_that(|container| container.at("securityContext").at("allowPrivilegeEscalation") != false)?;
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", bad.text);
    Some(("allowPrivilegeEscalation != false", detail))
}

fn volume_types(pod: &Pod<'_>) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    fn kind(volume: &Value) -> &str {
        let fields = volume.as_object().into_iter().flatten();
        let mut sources = fields.filter(|(name, value)| *name != "name" && !value.is_null());
        sources.next().map_or("unknown", |(name, _)| name)
    }
    let bad = || pod.spec.items("volumes").iter().filter(|volume| !ALLOWED.contains(&kind(volume)));
    let named = Named::of("volume", bad().map(|volume| volume.text("name")))?;
    let kinds = distinct(bad().map(kind));
    let what = plural("restricted volume type", kinds.len());
    Some(("restricted volume types", format!("{} {} {what} {}", named.text, named.uses(), quoted(kinds))))
}

fn run_as_non_root(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_own_users() {
        return None;
    }
    const REASON: &str = "runAsNonRoot != true";
    if let Some(setters) = pod.setters(|context| context.at("runAsNonRoot") == false) {
        return Some((REASON, format!("{setters} must not set securityContext.runAsNonRoot=false")));
    }
    let whole = pod.spec.at("securityContext").flag("runAsNonRoot");
    let bad = pod.containers_that(|container| !whole && !container.at("securityContext").flag("runAsNonRoot"))?;
    Some((REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", bad.text)))
}

fn run_as_root(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_own_users() {
        return None;
    }
    let setters = pod.setters(|context| context.int("runAsUser") == Some(0))?;
    Some(("runAsUser=0", format!("{setters} must not set runAsUser=0")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Edit, json};

    /// A pod that the restricted level allows.
    fn good() -> Value {
        let context = json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } });
        json!({
            "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [{ "name": "c", "securityContext": context }],
        })
    }

    fn found(metadata: &Value, spec: &Value, level: Level, version: Option<u32>) -> Vec<String> {
        let violations = violations(metadata, spec, level, version);
        violations.into_iter().map(|(reason, detail)| format!("{reason} ({detail})")).collect()
    }

    #[test]
    fn each_violation_of_the_baseline_has_its_message() {
        let none = json!({});
        let context = |context: Value| json!({ "containers": [{ "name": "c", "securityContext": context }] });
        for (spec, message) in [
            (
                context(json!({ "privileged": true })),
                "privileged (container \"c\" must not set securityContext.privileged=true)",
            ),
            (json!({ "hostPID": true, "hostNetwork": true }), "host namespaces (hostNetwork=true, hostPID=true)"),
            (json!({ "volumes": [{ "name": "v", "hostPath": {} }] }), "hostPath volumes (volume \"v\")"),
            (
                json!({ "containers": [{ "name": "a", "ports": [{ "hostPort": 80 }, { "hostPort": 8 }] }, { "name": "b", "ports": [{ "hostPort": 80 }] }] }),
                "hostPort (containers \"a\", \"b\" use hostPorts 8, 80)",
            ),
            (
                json!({ "containers": [{ "name": "a", "livenessProbe": { "httpGet": { "host": "h" } } }] }),
                "probe or lifecycle host (container \"a\" uses probe or lifecycle host \"h\")",
            ),
            (
                context(json!({ "capabilities": { "add": ["SYS_ADMIN", "CHOWN", "NET_ADMIN"] } })),
                "non-default capabilities (container \"c\" must not include \"NET_ADMIN\", \"SYS_ADMIN\" in securityContext.capabilities.add)",
            ),
            (
                context(json!({ "procMount": "Unmasked" })),
                "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")",
            ),
            (
                json!({ "securityContext": { "seLinuxOptions": { "type": "x", "role": "r" } } }),
                "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"x\"; role may not be set)",
            ),
            (
                json!({ "securityContext": { "seccompProfile": { "type": "Unconfined" } } }),
                "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
            ),
            (
                context(json!({ "appArmorProfile": { "type": "Unconfined" } })),
                "forbidden AppArmor profile (container \"c\" must not set AppArmor profile type to \"Unconfined\")",
            ),
            (
                json!({ "securityContext": { "sysctls": [{ "name": "a" }, { "name": "net.ipv4.tcp_rmem" }] } }),
                "forbidden sysctls (a)",
            ),
            (
                json!({ "securityContext": { "windowsOptions": { "hostProcess": true } } }),
                "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
            ),
        ] {
            assert_eq!(found(&none, &spec, Level::Baseline, None), [message], "{spec}");
            assert_eq!(found(&none, &spec, Level::Privileged, None), [""; 0]);
        }
        let annotations =
            json!({ "annotations": { "container.apparmor.security.beta.kubernetes.io/c": "unconfined" } });
        let expected = "forbidden AppArmor profile (annotation must not set AppArmor profile type to \"container.apparmor.security.beta.kubernetes.io/c=\"unconfined\"\")";
        assert_eq!(found(&annotations, &json!({}), Level::Baseline, None), [expected]);
    }

    #[test]
    fn each_violation_of_the_restricted_level_has_its_message() {
        assert_eq!(found(&json!({}), &good(), Level::Restricted, None), [""; 0]);
        for (path, value, message) in [
            (
                vec!["containers", "0", "securityContext", "allowPrivilegeEscalation"],
                json!(true),
                "allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false)",
            ),
            (
                vec!["containers", "0", "securityContext", "capabilities"],
                json!({ "add": ["X"] }),
                "unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]; container \"c\" must not include \"X\" in securityContext.capabilities.add)",
            ),
            (
                vec!["securityContext", "runAsNonRoot"],
                json!(null),
                "runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true)",
            ),
            (
                vec!["containers", "0", "securityContext", "runAsNonRoot"],
                json!(false),
                "runAsNonRoot != true (container \"c\" must not set securityContext.runAsNonRoot=false)",
            ),
            (vec!["securityContext", "runAsUser"], json!(0), "runAsUser=0 (pod must not set runAsUser=0)"),
            (
                vec!["securityContext", "seccompProfile"],
                json!(null),
                "seccompProfile (pod or container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
            ),
            (
                vec!["volumes"],
                json!([{ "name": "n", "nfs": {} }, { "name": "e", "emptyDir": {} }]),
                "restricted volume types (volume \"n\" uses restricted volume type \"nfs\")",
            ),
            (
                vec!["volumes"],
                json!([{ "name": "h", "hostPath": {} }]),
                "restricted volume types (volume \"h\" uses restricted volume type \"hostPath\")",
            ),
        ] {
            let mut spec = good();
            let (last, parents) = path.split_last().unwrap();
            let parent = parents.iter().fold(&mut spec, |value, step| match step.parse::<usize>() {
                Ok(index) => &mut value[index],
                Err(_) => &mut value[*step],
            });
            parent.set(last, value);
            assert_eq!(found(&json!({}), &spec, Level::Restricted, None), [message], "{spec}");
        }
    }

    #[test]
    fn older_versions_have_older_rules() {
        let privileged_users = {
            let mut spec = good();
            spec["hostUsers"] = json!(false);
            spec["securityContext"]["runAsUser"] = json!(0);
            spec
        };
        assert_eq!(found(&json!({}), &privileged_users, Level::Restricted, None), [""; 0]);
        assert_eq!(found(&json!({}), &privileged_users, Level::Restricted, Some(34)).len(), 1);
        assert_eq!(found(&json!({}), &privileged_users, Level::Restricted, Some(22)), [""; 0]);
        let sysctl = json!({ "securityContext": { "sysctls": [{ "name": "net.ipv4.tcp_rmem" }] } });
        assert_eq!(found(&json!({}), &sysctl, Level::Baseline, Some(31)), ["forbidden sysctls (net.ipv4.tcp_rmem)"]);
        let annotated = json!({ "annotations": { "seccomp.security.alpha.kubernetes.io/pod": "unconfined" } });
        let expected = "seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")";
        assert_eq!(found(&annotated, &json!({}), Level::Baseline, Some(18)), [expected]);
    }
}
