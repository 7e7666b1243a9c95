//! The rules of a pod's spec as a whole, and of a template.

use super::container::{self, Pod};
use super::volume::{self, Owner};
use super::{affinity, annotations, network, requirements, security, windows};
use crate::strategy::place::Place;
use object::field::Errors;
use object::{View, name};
use std::collections::BTreeSet;

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const ACTIVE_DEADLINE_MAX: i64 = i32::MAX as i64;

/// Everything that is wrong with a spec; `owner` is the pod it is of, or nobody in a template.
pub(super) fn validate(spec: &Place, owner: Owner, errors: &mut Errors) {
    spec.field("terminationGracePeriodSeconds").require(errors);
    let pod = Pod {
        volumes: volume::validate(&spec.field("volumes"), owner, errors),
        claims: spec.field("resourceClaims").values().iter().map(|claim| claim.text("name")).collect(),
        grace_seconds: spec.value().int("terminationGracePeriodSeconds"),
        restart_policy: spec.field("restartPolicy").text(),
        // A pod shares the users of the host unless it says otherwise.
        host_users: spec.field("hostUsers").value() != false,
        os: spec.value().at("os").text("name"),
        is_pod: owner.is_pod,
    };
    claims(&spec.field("resourceClaims"), errors);
    container::validate_all(spec, &pod, errors);
    requirements::validate_pod_level(spec, &pod, errors);
    container::validate_host_network(spec, &pod, errors);
    spec.field("restartPolicy").require_one_of(errors, &RESTART_POLICIES);
    spec.field("nodeSelector").labels(errors);
    security::validate_pod(spec, errors);
    affinity::validate(&spec.field("affinity"), errors);
    network::validate(spec, errors);
    gates(spec, errors);
    affinity::validate_spread(&spec.field("topologySpreadConstraints"), errors);
    windows::validate_host_processes(spec, &pod, errors);
    security::validate_host_users(spec, &pod, errors);
    for field in ["serviceAccountName", "nodeName", "priorityClassName"] {
        spec.field(field).follows_if_set(errors, name::dns_subdomain);
    }
    let deadline = spec.field("activeDeadlineSeconds");
    if deadline.is_set() {
        deadline.within(errors, 1, ACTIVE_DEADLINE_MAX);
    }
    affinity::validate_tolerations(&spec.field("tolerations"), errors);
    if spec.field("runtimeClassName").is_set() {
        spec.field("runtimeClassName").follows(errors, name::dns_subdomain);
    }
    if spec.field("preemptionPolicy").is_set() {
        spec.field("preemptionPolicy").require_one_of(errors, &["PreemptLowerPriority", "Never"]);
    }
    requirements::validate_overhead(&spec.field("overhead"), errors);
    windows::validate_system(spec, errors);
    file_volumes(spec, errors);
    group(&spec.field("schedulingGroup"), errors);
}

/// A template: its labels, its annotations, its spec. The paths of mistakes in labels and annotations leave out
/// `metadata`.
pub(in crate::strategy) fn validate_template(template: &Place, errors: &mut Errors) {
    let metadata = template.field("metadata").value();
    template.field("labels").with(metadata.at("labels")).labels(errors);
    let notes = template.field("annotations");
    let notes = notes.with(metadata.at("annotations"));
    annotations::validate_keys(&notes, errors);
    let spec = template.field("spec");
    annotations::validate(&notes, spec.value(), errors);
    validate(&spec, Owner { name: "", is_pod: false }, errors);
    annotations::validate_match(metadata.at("annotations"), &spec, errors);
    if !spec.field("ephemeralContainers").is_empty() {
        spec.field("ephemeralContainers").forbidden(errors, "ephemeral containers not allowed in pod template");
    }
}

fn claims(claims: &Place, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for claim in claims.items() {
        let name = claim.field("name");
        if name.require(errors) {
            if seen.insert(name.text()) {
                name.follows(errors, name::dns_label);
            } else {
                name.duplicate(errors, name.text());
            }
        }
        let (named, template) = (claim.field("resourceClaimName"), claim.field("resourceClaimTemplateName"));
        match (named.is_set(), template.is_set()) {
            (true, true) => claim
                .invalid(errors, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
            (false, false) => {
                claim.invalid(errors, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
            }
            _ => {}
        }
        for reference in [named, template].iter().filter(|reference| reference.is_set()) {
            reference.follows(errors, name::dns_subdomain);
        }
    }
}

fn gates(spec: &Place, errors: &mut Errors) {
    for gate in spec.field("readinessGates").items() {
        gate.field("conditionType").follows(errors, name::qualified_name);
    }
    let mut seen = BTreeSet::new();
    for gate in spec.field("schedulingGates").items() {
        let name = gate.field("name").text();
        name::qualified_name(name).into_iter().for_each(|message| gate.invalid_value(errors, name, message));
        if !seen.insert(name) {
            gate.duplicate(errors, name);
        }
    }
}

fn group(group: &Place, errors: &mut Errors) {
    let name = group.field("podGroupName");
    match (group.is_set(), name.is_set()) {
        (false, _) => {}
        (true, true) => name.follows(errors, name::dns_subdomain),
        (true, false) => name.invalid(errors, "must specify one of: `podGroupName`"),
    }
}

/// A variable from a file needs a volume whose files the containers write.
fn file_volumes(spec: &Place, errors: &mut Errors) {
    for list in super::default::CONTAINER_LISTS {
        for container in spec.field(list).items() {
            for variable in container.field("env").items() {
                let from = variable.field("valueFrom");
                let reference = from.field("fileKeyRef");
                if !reference.is_set() {
                    continue;
                }
                let name = reference.field("volumeName");
                let mut volumes = spec.field("volumes").values().iter();
                match volumes.find(|volume| volume.text("name") == name.text()) {
                    None => name.not_found(errors, name.text()),
                    Some(volume) if !volume.has("emptyDir") => {
                        name.invalid(errors, "referenced volume must be of type emptyDir");
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
