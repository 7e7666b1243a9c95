//! The checks of the restricted level: a pod gives up all that it can do without.

use super::baseline::{adding, capabilities, seccomp_profile};
use super::checks::{Named, Pod, Violation, distinct, plural, quoted};
use object::{Value, View};

pub(super) fn kept_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() {
        return None;
    }
    let keeping = pod.containers_that(|container| !capabilities(container, "drop").any(|name| name == "ALL"));
    let keeping = keeping.map(|bad| format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", bad.text));
    let details: Vec<_> = keeping.into_iter().chain(adding(pod, &["NET_BIND_SERVICE"])).collect();
    (!details.is_empty()).then(|| ("unrestricted capabilities", details.join("; ")))
}

pub(super) fn seccomp_profile_set(pod: &Pod<'_>) -> Option<Violation> {
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

pub(super) fn privilege_escalation(pod: &Pod<'_>) -> Option<Violation> {
    if pod.is_windows() {
        return None;
    }
    let bad =
        pod.containers_that(|container| container.at("securityContext").at("allowPrivilegeEscalation") != false)?;
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", bad.text);
    Some(("allowPrivilegeEscalation != false", detail))
}

pub(super) fn volume_types(pod: &Pod<'_>) -> Option<Violation> {
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

pub(super) fn run_as_non_root(pod: &Pod<'_>) -> Option<Violation> {
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

pub(super) fn run_as_root(pod: &Pod<'_>) -> Option<Violation> {
    if pod.has_own_users() {
        return None;
    }
    let setters = pod.setters(|context| context.int("runAsUser") == Some(0))?;
    Some(("runAsUser=0", format!("{setters} must not set runAsUser=0")))
}
