//! What a pod's author is told although it is allowed: what is deprecated, does nothing, or hides something.

use super::annotations::{APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD};
use super::default::CONTAINER_LISTS;
use super::prepare::app_armor_profile;
use super::warn_volumes;
use crate::strategy::place::Place;
use object::{Value, View, name};
use std::collections::{BTreeMap, BTreeSet};

const NODE_LABELS: [(&str, &str); 8] = [
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
];
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];
const SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// On create only: pods are updated often, and by programs.
pub(super) fn pod(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_some() {
        return warnings;
    }
    let messages = name::dns_label(new.at("metadata").text("name"));
    if !messages.is_empty() {
        let messages = messages.join(" ");
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is \
             recommended: [{messages}]"
        ));
    }
    template(&Place::object(new), &mut warnings);
    warnings
}

/// The warnings of a pod or of a template of one.
pub(in crate::strategy) fn template(object: &Place, warnings: &mut Vec<String>) {
    let (metadata, spec) = (object.field("metadata"), object.field("spec"));
    let annotations = metadata.field("annotations");
    node_labels(&spec, warnings);
    for (key, message) in ANNOTATIONS {
        if annotations.key(key).is_set() {
            warnings.push(format!("{annotations}[{key}]: {message}"));
        }
    }
    warn_volumes::validate(&spec.field("volumes"), warnings);
    duplicates(&spec.field("hostAliases"), "ip", warnings);
    duplicates(&spec.field("imagePullSecrets"), "name", warnings);
    for secret in spec.field("imagePullSecrets").items().filter(|secret| secret.field("name").is_empty()) {
        warnings.push(format!("{}: invalid empty name \"\"", secret.field("name")));
    }
    fractions(&spec.field("overhead"), warnings);
    let profile = spec.field("securityContext");
    if !profile.field("seccompProfile").is_set() && annotations.key(SECCOMP_POD).is_set() {
        warnings.push(format!("{annotations}[{SECCOMP_POD}]: {SECCOMP}"));
    }
    for list in CONTAINER_LISTS {
        for container in spec.field(list).items() {
            profiles(&container, &annotations, profile.field("appArmorProfile").value(), warnings);
            let resources = container.field("resources");
            fractions(&resources.field("limits"), warnings);
            fractions(&resources.field("requests"), warnings);
            variables(&container.field("env"), warnings);
        }
    }
    ports(&spec, warnings);
    let grace = spec.field("terminationGracePeriodSeconds");
    if grace.int() < 0 {
        warnings.push(format!("{grace}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    selectors(&spec, warnings);
}

fn deprecated(label: &str) -> Option<&'static str> {
    NODE_LABELS.iter().find(|(known, _)| *known == label).map(|(_, message)| *message)
}

/// Labels of nodes that have other names today.
fn node_labels(spec: &Place, warnings: &mut Vec<String>) {
    for (key, at) in spec.field("nodeSelector").entries() {
        warnings.extend(deprecated(key).map(|message| format!("{at}: {message}")));
    }
    let affinity = spec.field("affinity");
    let nodes = affinity.field("nodeAffinity");
    let mut expressions = |term: &Place| {
        for expression in term.field("matchExpressions").items() {
            let key = expression.field("key");
            warnings.extend(deprecated(key.text()).map(|message| format!("{key}: {} is {message}", key.text())));
        }
    };
    nodes.field(REQUIRED).field("nodeSelectorTerms").items().for_each(|term| expressions(&term));
    nodes.field(PREFERRED).items().for_each(|term| expressions(&term.field("preference")));
    for constraint in spec.field("topologySpreadConstraints").items() {
        let key = constraint.field("topologyKey");
        warnings.extend(deprecated(key.text()).map(|message| format!("{key}: {} is {message}", key.text())));
        no_selector(&constraint, warnings);
    }
}

fn no_selector(term: &Place, warnings: &mut Vec<String>) {
    let selector = term.field("labelSelector");
    if !selector.is_set() {
        warnings.push(format!("{selector}: a null labelSelector results in matching no pod"));
    }
}

fn selectors(spec: &Place, warnings: &mut Vec<String>) {
    let affinity = spec.field("affinity");
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.field(kind);
        pods.field(REQUIRED).items().for_each(|term| no_selector(&term, warnings));
        pods.field(PREFERRED).items().for_each(|term| no_selector(&term.field("podAffinityTerm"), warnings));
    }
}

fn duplicates(list: &Place, field: &'static str, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for item in list.items() {
        let at = item.field(field);
        if !seen.insert(at.text()) {
            warnings.push(format!("{at}: duplicate {field} {:?}", at.text()));
        }
    }
}

/// There is no part of a byte.
fn fractions(amounts: &Place, warnings: &mut Vec<String>) {
    for (name, amount) in amounts.entries() {
        let counts_bytes = matches!(name, "memory" | "ephemeral-storage");
        // In its canonical form, a quantity that is no whole number is one of thousandths.
        if counts_bytes && amount.text().ends_with('m') {
            let text = amount.text();
            warnings.push(format!("{amount}: fractional byte value {text:?} is invalid, must be an integer"));
        }
    }
}

/// Profiles that are given as annotations.
fn profiles(container: &Place, annotations: &Place, pod_profile: &Value, warnings: &mut Vec<String>) {
    let name = container.field("name").text();
    let context = container.field("securityContext");
    let given = |key: &str| key.starts_with(SECCOMP_CONTAINER) || key.starts_with(APP_ARMOR);
    if !annotations.entries().any(|(key, _)| given(key)) {
        return;
    }
    let seccomp = format!("{SECCOMP_CONTAINER}{name}");
    if !context.field("seccompProfile").is_set() && annotations.key(&seccomp).is_set() {
        warnings.push(format!("{annotations}[{seccomp}]: {SECCOMP}"));
    }
    let key = format!("{APP_ARMOR}{name}");
    let annotation = annotations.key(&key).value();
    let profile = annotation.as_str().and_then(app_armor_profile);
    // In a pod the annotation has become the field by now; in a template a field of its own makes the annotation moot.
    let field = context.field("appArmorProfile");
    let is_moot = field.is_set() && profile.as_ref() != Some(field.value());
    if !annotation.is_null() && !is_moot && profile.as_ref() != Some(pod_profile) {
        warnings
            .push(format!("{annotations}[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"));
    }
}

/// A variable that is defined twice, unless the second definition builds on the first.
fn variables(variables: &Place, warnings: &mut Vec<String>) {
    if variables.items().nth(1).is_none() {
        return;
    }
    let mut seen = BTreeSet::new();
    for variable in variables.items() {
        let (name, value) = (variable.field("name").text(), variable.field("value").text());
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        let builds_on = value.contains(&reference) && value != reference && !variable.field("valueFrom").is_set();
        if !builds_on {
            let what = "hides previous definition of";
            warnings.push(format!("{variable}: {what} {name:?}, which may be dropped when using apply"));
        }
    }
}

fn ports(spec: &Place, warnings: &mut Vec<String>) {
    let all = CONTAINER_LISTS.iter().flat_map(|list| spec.field(list).values());
    if all.flat_map(|container| container.items("ports")).nth(1).is_none() {
        return;
    }
    let mut by_number: BTreeMap<(i64, &str), Vec<(&Value, String)>> = BTreeMap::new();
    let mut by_name: BTreeMap<&str, String> = BTreeMap::new();
    let mut names = Vec::new();
    for list in CONTAINER_LISTS {
        for container in spec.field(list).items() {
            for port in container.field("ports").items() {
                let (number, protocol) = (port.field("containerPort").int(), port.field("protocol").text());
                let others = by_number.entry((number, protocol)).or_default();
                for (other, place) in others.iter() {
                    let relation = relation(port.value(), other);
                    warnings.extend(relation.map(|how| format!("{port}: {how} port definition with {place}")));
                }
                others.push((port.value(), port.to_string()));
                let name = port.field("name").text();
                match by_name.get(name) {
                    _ if name.is_empty() => {}
                    Some(other) => names.push(format!(
                        "{port}: duplicate port name {name:?} with {other}, services and probes that select ports by name will use {other}"
                    )),
                    None => drop(by_name.insert(name, port.to_string())),
                }
            }
        }
    }
    warnings.extend(names);
}

/// How two definitions of the same port of a pod get in each other's way.
fn relation(port: &Value, other: &Value) -> Option<&'static str> {
    let host_port = |port: &Value| port.int("hostPort").unwrap_or_default();
    let (one, two) = (host_port(port), host_port(other));
    let (address, other_address) = (port.text("hostIP"), other.text("hostIP"));
    if address == other_address && one == two {
        Some("duplicate")
    } else if one == 0 || two == 0 {
        Some("overlapping")
    } else if one == two && address.is_empty() != other_address.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}
