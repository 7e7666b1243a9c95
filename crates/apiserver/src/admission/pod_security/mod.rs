//! PodSecurity: the labels of a namespace say what its pods may do, and what people are warned about.
//!
//! What is only to be audited is not judged here: there is nobody yet to tell it to.

mod baseline;
mod checks;
mod restricted;

use super::{NAMESPACES, Operation, Review};
use checks::{Level, violations};
use object::field::{Error, Errors, Path};
use object::{ApiError, Value, View};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The labels for the level and the version of each mode.
const ENFORCE: [&str; 2] = ["pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/enforce-version"];
const AUDIT: [&str; 2] = ["pod-security.kubernetes.io/audit", "pod-security.kubernetes.io/audit-version"];
const WARN: [&str; 2] = ["pod-security.kubernetes.io/warn", "pod-security.kubernetes.io/warn-version"];
/// So many of the pods that are there already are looked at when a namespace becomes stricter.
const MAX_EXISTING: usize = 3000;
/// Aspects of a pod that change nothing of what it may do.
const HARMLESS: [&str; 8] = ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];
/// Where other kinds keep the pod they make.
const TEMPLATES: [(&str, &[&str]); 8] = [
    ("podtemplates", &["template"]),
    ("replicationcontrollers", &["spec", "template"]),
    ("replicasets.apps", &["spec", "template"]),
    ("deployments.apps", &["spec", "template"]),
    ("daemonsets.apps", &["spec", "template"]),
    ("statefulsets.apps", &["spec", "template"]),
    ("jobs.batch", &["spec", "template"]),
    ("cronjobs.batch", &["spec", "jobTemplate", "spec", "template"]),
];

/// A level as of a release; without a number, as of the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standard {
    level: Level,
    version: Option<u32>,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        })?;
        match self.version {
            Some(minor) => write!(f, ":v1.{minor}"),
            None => f.write_str(":latest"),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Policy {
    enforce: Standard,
    warn: Standard,
    /// What is wrong with the labels.
    errors: Errors,
}

pub(super) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if review.operation == Operation::Delete {
        return Ok(());
    }
    match (review.table(), review.subresource()) {
        ("namespaces", "") => validate_namespace(review),
        ("pods", subresource) if !HARMLESS.contains(&subresource) => validate_pod(review),
        (table, "") => match TEMPLATES.iter().find(|(of, _)| *of == table) {
            Some((_, path)) => warn_of_template(review, path),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Reads the labels. What cannot be understood is enforced as the strictest level, and warned of as the laxest.
fn policy<'a>(label: impl Fn(&str) -> Option<&'a str>) -> Policy {
    let mut errors = Errors::new();
    let mut read = |[level, version]: [&str; 2], failed: Level| {
        let mut refuse = |key: &str, value: &str, why: &str| {
            let path = Path::new("metadata").child("labels").key(key);
            errors.push(Error::invalid(&path, value, why));
        };
        let level_read = label(level).map(|text| {
            let parsed = parse_level(text).map_err(|why| refuse(level, text, why));
            parsed.map_or((failed, false), |level| (level, true))
        });
        let version_read = label(version).map(|text| {
            let parsed = parse_version(text).map_err(|why| refuse(version, text, why));
            // What cannot be read is the latest, and an error besides.
            parsed.ok().flatten()
        });
        (level_read, version_read)
    };
    let (enforce_level, enforce_version) = read(ENFORCE, Level::Restricted);
    // Errors in what is audited are errors too.
    read(AUDIT, Level::Privileged);
    let (warn_level, warn_version) = read(WARN, Level::Privileged);
    let standard = |level: Option<(Level, bool)>, version: Option<Option<u32>>| Standard {
        level: level.map_or(Level::Privileged, |(level, _)| level),
        version: version.flatten(),
    };
    let enforce = standard(enforce_level, enforce_version);
    let mut warn = standard(warn_level, warn_version);
    // Templates are not refused, so whoever enforces wants at least to be warned of them.
    if warn_level.is_none() && enforce_level.is_some_and(|(level, understood)| understood && level > Level::Privileged)
    {
        warn = Standard { level: enforce.level, version: warn_version.unwrap_or(enforce.version) };
    }
    Policy { enforce, warn, errors }
}

fn parse_level(text: &str) -> Result<Level, &'static str> {
    match text {
        "privileged" => Ok(Level::Privileged),
        "baseline" => Ok(Level::Baseline),
        "restricted" => Ok(Level::Restricted),
        _ => Err("must be one of privileged, baseline, restricted"),
    }
}

fn parse_version(text: &str) -> Result<Option<u32>, &'static str> {
    let digits = text.strip_prefix("v1.").unwrap_or_default();
    let canonical =
        digits.bytes().all(|digit| digit.is_ascii_digit()) && (digits.len() == 1 || !digits.starts_with('0'));
    match (text, digits.parse()) {
        ("latest", _) => Ok(None),
        (_, Ok(minor)) if canonical => Ok(Some(minor)),
        _ => Err("must be \"latest\" or \"v1.x\""),
    }
}

fn policy_of_namespace(review: &Review<'_>) -> Result<Policy, ApiError> {
    let name = review.namespace();
    let namespace = review.find(&format!("namespaces/{name}"));
    let namespace = namespace.ok_or_else(|| ApiError::internal(format!("failed to lookup namespace {name:?}")))?;
    Ok(policy(|key| namespace.label(&NAMESPACES, key)))
}

/// Everything that a standard does not allow, in one sentence; none if it allows the pod.
fn judge(standard: Standard, metadata: &Value, spec: &Value) -> Option<String> {
    let found = violations(metadata, spec, standard.level, standard.version);
    let texts: Vec<_> = found.iter().map(|(reason, detail)| format!("{reason} ({detail})")).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn validate_pod(review: &Review<'_>) -> Result<(), ApiError> {
    let policy = policy_of_namespace(review)?;
    if policy.enforce.level == Level::Privileged && policy.warn.level == Level::Privileged {
        return Ok(());
    }
    if review.old.is_some_and(|old| !runs_other_images(review.object, old)) {
        return Ok(());
    }
    let (metadata, spec) = (review.object.at("metadata"), review.object.at("spec"));
    if let Some(found) = judge(policy.enforce, metadata, spec) {
        return Err(review.forbid(&format!("violates PodSecurity \"{}\": {found}", policy.enforce)));
    }
    warn(review, policy.warn, metadata, spec);
    Ok(())
}

fn warn(review: &Review<'_>, standard: Standard, metadata: &Value, spec: &Value) {
    if let Some(found) = judge(standard, metadata, spec) {
        review.ctx.warn(format!("would violate PodSecurity \"{standard}\": {found}"));
    }
}

/// Whether an update changes what a pod runs; nothing else that can be changed matters.
fn runs_other_images(new: &Value, old: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<(String, String)> {
        let containers = pod.at("spec").items(list).iter();
        containers.map(|one| (one.text("name").to_owned(), one.text("image").to_owned())).collect()
    };
    let before = images(old, "ephemeralContainers");
    ["containers", "initContainers"].iter().any(|list| images(new, list) != images(old, list))
        || images(new, "ephemeralContainers").iter().any(|one| !before.contains(one))
}

fn warn_of_template(review: &Review<'_>, path: &[&str]) -> Result<(), ApiError> {
    let template = review.object.path(path);
    if !template.is_null() {
        let policy = policy_of_namespace(review)?;
        warn(review, policy.warn, template.at("metadata"), template.at("spec"));
    }
    Ok(())
}

fn validate_namespace(review: &Review<'_>) -> Result<(), ApiError> {
    fn of(namespace: &Value) -> Policy {
        policy(|key| namespace.at("metadata").at("labels").at(key).as_str())
    }
    let (new, old) = (of(review.object), review.old.map(of));
    if !new.errors.is_empty() && old.as_ref().is_none_or(|old| old.errors != new.errors) {
        return Err(ApiError::invalid("", "Namespace", review.name(), &new.errors));
    }
    let Some(old) = old else { return Ok(()) };
    let (new, old) = (new.enforce, old.enforce);
    if new.level > Level::Privileged && (new.version != old.version || new.level > old.level) {
        let pods = review.beside("pods").iter().map(|pod| pod.decode()).collect();
        warnings_of_existing(review.name(), new, pods).into_iter().for_each(|warning| review.ctx.warn(warning));
    }
    Ok(())
}

/// What pods that are there already do beyond what will be allowed. They go on; their successors could not start.
fn warnings_of_existing(namespace: &str, standard: Standard, pods: Vec<Value>) -> Vec<String> {
    let total = pods.len();
    // Pods of one controller are alike, so one of each is looked at before the others.
    let mut controllers = BTreeSet::new();
    let (mut first, others): (Vec<Value>, Vec<Value>) = pods.into_iter().partition(|pod| {
        let mut owners = pod.at("metadata").items("ownerReferences").iter();
        let controller = owners.find(|owner| owner.flag("controller"));
        controller.is_none_or(|owner| controllers.insert(owner.text("uid").to_owned()))
    });
    first.extend(others);
    first.truncate(MAX_EXISTING);
    let mut by_reason: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for pod in &first {
        let metadata = pod.at("metadata");
        let found = violations(metadata, pod.at("spec"), standard.level, standard.version);
        if !found.is_empty() {
            let reasons = found.iter().map(|(reason, _)| *reason).collect::<Vec<_>>().join(", ");
            by_reason.entry(reasons).or_default().insert(metadata.text("name"));
        }
    }
    let mut warnings = Vec::new();
    if first.len() < total {
        let checked = first.len();
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {checked} of {total} existing pods"
        ));
    }
    if !by_reason.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{standard}\""
        ));
    }
    let mut of_pods: Vec<_> = by_reason.iter().map(|(reasons, names)| of_pods(reasons, names)).collect();
    of_pods.sort();
    warnings.extend(of_pods);
    warnings
}

fn of_pods(reasons: &str, names: &BTreeSet<&str>) -> String {
    let first = names.first().copied().unwrap_or_default();
    match names.len() {
        0 | 1 => format!("{first}: {reasons}"),
        2 => format!("{first} (and 1 other pod): {reasons}"),
        count => format!("{first} (and {} other pods): {reasons}", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn of(labels: &[(&str, &str)]) -> Policy {
        let find = |key: &str| {
            labels
                .iter()
                .find(|(label, _)| format!("pod-security.kubernetes.io/{label}") == key)
                .map(|(_, value)| *value)
        };
        policy(find)
    }

    #[test]
    fn labels_say_what_is_enforced_and_what_is_warned_of() {
        for (labels, enforce, warn, errors) in [
            (&[][..], "privileged:latest", "privileged:latest", 0),
            (&[("enforce", "baseline")], "baseline:latest", "baseline:latest", 0),
            (&[("enforce", "baseline"), ("enforce-version", "v1.30")], "baseline:v1.30", "baseline:v1.30", 0),
            (&[("enforce", "baseline"), ("warn-version", "v1.31")], "baseline:latest", "baseline:v1.31", 0),
            (&[("enforce", "baseline"), ("warn", "restricted")], "baseline:latest", "restricted:latest", 0),
            (&[("enforce", "restricted"), ("warn", "privileged")], "restricted:latest", "privileged:latest", 0),
            (&[("enforce", "strict")], "restricted:latest", "privileged:latest", 1),
            (&[("warn", "strict"), ("audit-version", "v2")], "privileged:latest", "privileged:latest", 2),
            (&[("enforce-version", "v1.030")], "privileged:latest", "privileged:latest", 1),
        ] {
            let policy = of(labels);
            let found = (policy.enforce.to_string(), policy.warn.to_string(), policy.errors.len());
            assert_eq!(found, (enforce.to_owned(), warn.to_owned(), errors), "{labels:?}");
        }
        let message = "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be one of privileged, baseline, restricted";
        assert_eq!(of(&[("enforce", "strict")]).errors[0].to_string(), message);
    }

    #[test]
    fn existing_pods_are_told_by_reason() {
        let pod = |name: &str, spec: Value| json!({ "metadata": { "name": name }, "spec": spec });
        let pods = vec![
            pod("c", json!({ "hostPID": true })),
            pod("b", json!({ "hostPID": true })),
            pod("good", json!({})),
            pod("a", json!({ "hostPID": true, "volumes": [{ "name": "v", "hostPath": {} }] })),
        ];
        let standard = Standard { level: Level::Baseline, version: None };
        assert_eq!(
            warnings_of_existing("team", standard, pods),
            [
                "existing pods in namespace \"team\" violate the new PodSecurity enforce level \"baseline:latest\"",
                "a: host namespaces, hostPath volumes",
                "b (and 1 other pod): host namespaces",
            ]
        );
    }

    #[test]
    fn only_other_images_matter_in_an_update() {
        let pod = |image: &str, debug: Value| json!({ "spec": { "containers": [{ "name": "c", "image": image }], "ephemeralContainers": debug } });
        let debug = json!([{ "name": "d", "image": "i" }]);
        for (new, old, matters) in [
            (pod("a", json!([])), pod("a", json!([])), false),
            (pod("b", json!([])), pod("a", json!([])), true),
            (pod("a", debug.clone()), pod("a", json!([])), true),
            (pod("a", debug.clone()), pod("a", debug), false),
        ] {
            assert_eq!(runs_other_images(&new, &old), matters);
        }
    }
}
