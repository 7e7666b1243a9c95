//! Stateful sets.

use crate::strategy::place::Place;
use crate::strategy::value::same;
use crate::strategy::workload::{self, Words};
use crate::strategy::{PLAIN, Strategy, pod, volume_claim};
use object::field::Errors;
use object::{Edit, Value, View, json, name};

pub const STRATEGY: Strategy = Strategy {
    // The name becomes part of the host names of its pods.
    name: name::dns_label,
    default: Some(default),
    prepare: Some(prepare),
    validate: Some(validate),
    validate_status: Some(validate_status),
    warn: Some(warn),
    generation: true,
    ..PLAIN
};

const WORDS: Words = Words {
    empty_selector: "empty selector is invalid for statefulset",
    deadline: "activeDeadlineSeconds in StatefulSet is not Supported",
};
/// What may change once it is there.
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

fn default(object: &mut Value) {
    let Some(spec) = object.object("spec") else { return };
    spec.set_default("replicas", 1);
    spec.set_default("revisionHistoryLimit", 10);
    if spec.text("podManagementPolicy").is_empty() {
        spec.set("podManagementPolicy", "OrderedReady");
    }
    let strategy = spec.object_or_new("updateStrategy");
    if strategy.text("type").is_empty() {
        strategy.set("type", "RollingUpdate");
        strategy.object_or_new("rollingUpdate");
    }
    if strategy.text("type") == "RollingUpdate"
        && let Some(update) = strategy.object("rollingUpdate")
    {
        update.set_default("partition", 0);
    }
    let policy = spec.object_or_new("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        if policy.text(field).is_empty() {
            policy.set(field, "Retain");
        }
    }
    if let Some(template) = spec.object("template") {
        pod::default_template(template);
    }
    for claim in spec.each("volumeClaimTemplates") {
        claim.set_default("apiVersion", "v1");
        claim.set_default("kind", "PersistentVolumeClaim");
        if let Some(spec) = claim.object("spec") {
            pod::claim_spec(spec);
        }
        let status = claim.object_or_new("status");
        if status.text("phase").is_empty() {
            status.set("phase", "Pending");
        }
    }
}

fn prepare(new: &mut Value, old: Option<&Value>) {
    workload::prepare_template(new, old);
    let update = ["spec", "updateStrategy", "rollingUpdate"];
    // How many pods may be replaced at once is decided by a feature that is off.
    if old.is_some_and(|old| old.path(&update).has("maxUnavailable")) {
        return;
    }
    let strategy = new.object("spec").and_then(|spec| spec.object("updateStrategy"));
    if let Some(update) = strategy.and_then(|strategy| strategy.object("rollingUpdate")) {
        update.remove("maxUnavailable");
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let object = Place::object(new);
    let spec = object.field("spec");
    validate_policies(&spec, errors);
    if old.is_none() {
        for claim in spec.field("volumeClaimTemplates").items() {
            volume_claim::validate_spec(&claim.field("spec"), errors);
        }
        spec.field("serviceName").follows_if_set(errors, name::dns_label);
    }
    spec.field("replicas").not_negative(errors);
    spec.field("minReadySeconds").not_negative(errors);
    spec.field("ordinals").field("start").not_negative(errors);
    workload::validate_selector(&spec, &WORDS, errors);
    validate_template(&spec, errors);
    if let Some(old) = old {
        validate_change(&spec, old.at("spec"), errors);
    }
}

fn validate_policies(spec: &Place, errors: &mut Errors) {
    let management = spec.field("podManagementPolicy");
    match management.text() {
        "" => management.required(errors, ""),
        "OrderedReady" | "Parallel" => {}
        _ => management.invalid(errors, "must be 'OrderedReady' or 'Parallel'"),
    }
    let strategy = spec.field("updateStrategy");
    let update = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "" => strategy.required(errors, ""),
        "OnDelete" if update.is_set() => update.invalid(errors, "only allowed for updateStrategy 'RollingUpdate'"),
        "OnDelete" => {}
        "RollingUpdate" => {
            update.field("partition").not_negative(errors);
            let unavailable = update.field("maxUnavailable");
            if unavailable.is_set() {
                workload::number_or_percent(&unavailable, errors);
                if workload::number(&unavailable) == 0 {
                    unavailable.invalid(errors, "cannot be 0");
                }
                workload::at_most_all(&unavailable, errors);
            }
        }
        _ => strategy.invalid(errors, "must be 'RollingUpdate' or 'OnDelete'"),
    }
    let retention = spec.field("persistentVolumeClaimRetentionPolicy");
    if retention.is_set() {
        for field in ["whenDeleted", "whenScaled"] {
            retention.field(field).one_of(errors, &["Retain", "Delete"]);
        }
    }
}

/// The pods get volumes for the claims, and names of their own; so the template is looked at with the former and
/// without the latter.
fn validate_template(spec: &Place, errors: &mut Errors) {
    let template = spec.field("template");
    workload::validate_endless(&template, &WORDS, errors);
    let claims = spec.field("volumeClaimTemplates").values();
    let pod_spec = template.field("spec").value();
    let as_is = claims.is_empty() && !pod_spec.has("subdomain") && !pod_spec.has("hostname");
    if as_is {
        return pod::validate_template(&template, errors);
    }
    let names: Vec<_> = claims.iter().map(|claim| claim.path(&["metadata", "name"])).collect();
    let mut volumes: Vec<_> =
        names.iter().map(|name| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } })).collect();
    let own = pod_spec.items("volumes").iter().filter(|volume| !names.contains(&volume.at("name")));
    volumes.extend(own.cloned());
    let mut effective = template.value().clone();
    if let Some(spec) = effective.object("spec") {
        spec.remove("subdomain");
        spec.remove("hostname");
        spec.set("volumes", volumes);
    }
    pod::validate_template(&template.with(&effective), errors);
}

fn validate_change(spec: &Place, old: &Value, errors: &mut Errors) {
    let fixed = |spec: &Value| {
        let mut fixed = spec.clone();
        MUTABLE.iter().for_each(|field| drop(fixed.remove(field)));
        fixed
    };
    if !same(&fixed(spec.value()), &fixed(old)) {
        spec.forbidden(
            errors,
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
             'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        );
    }
}

fn warn(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = workload::warn_template(new, old);
    if new.at("spec").int("revisionHistoryLimit").is_some_and(|limit| limit < 0) {
        let detail = "a negative value retains all historical revisions; a value >= 0 is recommended";
        warnings.push(format!("spec.revisionHistoryLimit: {detail}"));
    }
    warnings
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    const COUNTERS: [&str; 7] = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    const TOO_MANY: &str = "cannot be greater than status.replicas";
    const PARTS: [(&str, &str, &str); 5] = [
        ("readyReplicas", "replicas", TOO_MANY),
        ("currentReplicas", "replicas", TOO_MANY),
        ("updatedReplicas", "replicas", TOO_MANY),
        ("availableReplicas", "replicas", TOO_MANY),
        ("availableReplicas", "readyReplicas", "cannot be greater than status.readyReplicas"),
    ];
    workload::validate_counters(&Place::object(new).field("status"), &COUNTERS, &PARTS, errors);
    workload::validate_collisions(new, old, errors);
}
