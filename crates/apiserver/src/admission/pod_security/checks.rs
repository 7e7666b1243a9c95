//! The checks of the pod security standards: pure functions over the metadata and the specification of a pod.
//!
//! A pod is judged by the rules as they were in the release that a namespace asks for, so each check knows since when
//! it is there, and what changed since.

use super::{baseline, restricted};
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
pub(super) struct Pod<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: &'a Value,
    /// The minor version whose rules apply.
    pub(super) version: u32,
}

struct Check {
    level: Level,
    since: u32,
    /// The check that this one makes superfluous.
    replaces: Option<Find>,
    find: Find,
}

/// What is wrong with a pod: the reason and its details.
pub(super) type Violation = (&'static str, String);
type Find = fn(&Pod<'_>) -> Option<Violation>;

/// All checks, in the order their findings are told.
const CHECKS: [Check; 19] = [
    at_baseline(0, baseline::app_armor),
    at_baseline(0, baseline::added_capabilities),
    at_baseline(0, baseline::host_namespaces),
    at_baseline(0, baseline::host_path_volumes),
    at_baseline(0, baseline::host_ports),
    at_baseline(34, baseline::probe_hosts),
    at_baseline(0, baseline::privileged),
    at_baseline(0, baseline::proc_mount),
    at_baseline(0, baseline::selinux_options),
    at_baseline(0, baseline::seccomp_profile),
    at_baseline(0, baseline::sysctls),
    at_baseline(0, baseline::host_process),
    at_restricted(8, restricted::privilege_escalation, None),
    at_restricted(22, restricted::kept_capabilities, Some(baseline::added_capabilities)),
    at_restricted(35, baseline::proc_mount_anywhere, Some(baseline::proc_mount)),
    at_restricted(0, restricted::volume_types, Some(baseline::host_path_volumes)),
    at_restricted(0, restricted::run_as_non_root, None),
    at_restricted(23, restricted::run_as_root, None),
    at_restricted(19, restricted::seccomp_profile_set, Some(baseline::seccomp_profile)),
];

const fn at_baseline(since: u32, find: Find) -> Check {
    Check { level: Level::Baseline, since, replaces: None, find }
}

const fn at_restricted(since: u32, find: Find, replaces: Option<Find>) -> Check {
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
    pub(super) fn containers(&self) -> impl Iterator<Item = &Value> {
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|list| self.spec.items(list))
    }

    /// The containers that something holds for: `containers "a", "b"`.
    pub(super) fn containers_that(&self, hold: impl Fn(&Value) -> bool) -> Option<Named> {
        Named::of("container", self.containers().filter(|one| hold(one)).map(|one| one.text("name")))
    }

    /// Whether something holds for the security context of the pod or of containers: `pod and container "a"`.
    pub(super) fn setters(&self, hold: impl Fn(&Value) -> bool) -> Option<String> {
        let pod = hold(self.spec.at("securityContext")).then(|| "pod".to_owned());
        let containers = self.containers_that(|container| hold(container.at("securityContext")));
        let setters: Vec<_> = pod.into_iter().chain(containers.map(|named| named.text)).collect();
        (!setters.is_empty()).then(|| setters.join(" and "))
    }

    /// The values of a field in all security contexts, of the pod and of its containers.
    pub(super) fn contexts(&self) -> impl Iterator<Item = &Value> {
        let containers = self.containers().map(|container| container.at("securityContext"));
        std::iter::once(self.spec.at("securityContext")).chain(containers)
    }

    /// Rules of Linux do not apply to what says it is for Windows.
    pub(super) fn is_windows(&self) -> bool {
        self.version >= 25 && self.spec.at("os").text("name") == "windows"
    }

    /// In a user namespace, root is nobody.
    pub(super) fn has_own_users(&self) -> bool {
        self.version >= 35 && self.spec.at("hostUsers") == false
    }
}

/// Several things by name, as messages list them.
pub(super) struct Named {
    pub(super) text: String,
    count: usize,
}

impl Named {
    pub(super) fn of<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> Option<Self> {
        let names: Vec<_> = names.collect();
        let count = names.len();
        (count > 0).then(|| Named { text: format!("{} {}", plural(kind, count), quoted(names)), count })
    }

    pub(super) fn uses(&self) -> &'static str {
        if self.count == 1 { "uses" } else { "use" }
    }
}

pub(super) fn plural(word: &str, count: usize) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

pub(super) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// The distinct values, sorted.
pub(super) fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    values.collect::<BTreeSet<_>>().into_iter().collect()
}

pub(super) fn texts(list: &[Value]) -> impl Iterator<Item = &str> {
    list.iter().filter_map(Value::as_str)
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
