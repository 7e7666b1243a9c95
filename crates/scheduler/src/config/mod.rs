//! What a `KubeSchedulerConfiguration` says, as profiles.
//!
//! Nothing is passed over: what is unknown, or known to Kubernetes and not to this scheduler, is an error that says
//! where it stands.

mod args;
mod part;
mod plugins;
#[cfg(test)]
mod tests;

use crate::profile::{DEFAULT, Profile};
use crate::queue::Backoff;
use object::Value;
use object::field::{Error, Errors, Path};
use part::Part;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

const VERSION: &str = "kubescheduler.config.k8s.io/v1";
const KIND: &str = "KubeSchedulerConfiguration";

/// How a scheduler is set up.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    pub profiles: Vec<Profile>,
    pub(crate) backoff: Backoff,
    /// Whether pods are placed in groups; that is up to what is served, and not to a file.
    pub pod_groups: bool,
    /// Whether rules taint devices; so is that.
    pub device_taint_rules: bool,
}

impl Default for Configuration {
    fn default() -> Self {
        Configuration {
            profiles: vec![Profile::new(DEFAULT)],
            backoff: Backoff::default(),
            pod_groups: false,
            device_taint_rules: false,
        }
    }
}

/// What Kubernetes can be told and this scheduler cannot, and why.
const ELSEWHERE: &[(&str, &str)] = &[
    ("clientConnection", IN_SERVER),
    ("delayCacheUntilActive", IN_SERVER),
    ("enableContentionProfiling", IN_SERVER),
    ("enableProfiling", IN_SERVER),
    ("extenders", "extenders are not supported: another program would be asked over HTTP about every pod"),
    ("leaderElection", IN_SERVER),
    ("parallelism", "not supported: what is known of nodes is kept, and looked at by one thread"),
];
const IN_SERVER: &str = "not supported: the scheduler is part of the server, and set up with it";

impl Configuration {
    /// Reads a file that has been parsed.
    pub fn read(file: &Value) -> Result<Self, Errors> {
        let errors = RefCell::new(Errors::new());
        let root = Part::new(file, &errors);
        let configuration = read(&root);
        let errors = errors.take();
        if errors.is_empty() { Ok(configuration) } else { Err(errors) }
    }
}

fn read(root: &Part<'_>) -> Configuration {
    let own = [
        "apiVersion",
        "kind",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "profiles",
    ];
    let mut known = own.to_vec();
    known.extend(ELSEWHERE.iter().map(|(field, _)| *field));
    root.only(&known);
    for (field, is) in [("apiVersion", VERSION), ("kind", KIND)] {
        let part = root.field(field);
        if part.text() != is {
            part.note(Error::not_supported(&part.path, part.value.clone(), &[is]));
        }
    }
    for (field, why) in ELSEWHERE {
        let part = root.field(field);
        if part.is_set() && !part.value.as_array().is_some_and(Vec::is_empty) {
            part.note(Error::forbidden(&part.path, *why));
        }
    }
    looks_at_all(root);
    let (profiles, backoff) = (profiles(&root.field("profiles")), backoff(root));
    Configuration { profiles, backoff, ..Configuration::default() }
}

/// Every node is looked at: nothing else can be asked for.
fn looks_at_all(part: &Part<'_>) {
    let percentage = part.field("percentageOfNodesToScore");
    match percentage.int_or(0) {
        0 | 100 => {}
        1..=99 => percentage.forbid("not supported: every node is looked at"),
        _ => percentage.wrong("not in valid range [0-100]"),
    }
}

fn backoff(root: &Part<'_>) -> Backoff {
    let (initial, most) = (root.field("podInitialBackoffSeconds"), root.field("podMaxBackoffSeconds"));
    let (first_seconds, most_seconds) = (initial.int_or(1), most.int_or(10));
    if first_seconds <= 0 {
        initial.wrong("must be greater than 0");
    }
    if most_seconds < first_seconds {
        most.wrong_value(most_seconds, "must be greater than or equal to PodInitialBackoffSeconds");
    }
    let seconds = |seconds: i64| Duration::from_secs(seconds.clamp(0, i64::from(i32::MAX)).unsigned_abs());
    Backoff { first: seconds(first_seconds), most: seconds(most_seconds) }
}

fn profiles(part: &Part<'_>) -> Vec<Profile> {
    let items = part.items();
    if items.is_empty() {
        return Configuration::default().profiles;
    }
    let mut names: BTreeMap<String, Path> = BTreeMap::new();
    let is_alone = items.len() == 1;
    let mut profiles = Vec::new();
    for item in &items {
        let profile = profile(item, is_alone);
        let name = item.field("schedulerName");
        if profile.name.is_empty() {
            name.note(Error::required(&name.path, ""));
        } else if let Some(first) = names.insert(profile.name.clone(), name.path.clone()) {
            name.note(Error::duplicate(&name.path, first.to_string()));
        }
        profiles.push(profile);
    }
    profiles
}

fn profile(part: &Part<'_>, is_alone: bool) -> Profile {
    part.only(&["schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"]);
    looks_at_all(part);
    let name = part.field("schedulerName");
    let mut profile = Profile::new(if is_alone && !name.is_set() { DEFAULT } else { name.text() });
    args::read(&part.field("pluginConfig"), &mut profile);
    plugins::read(&part.field("plugins"), &mut profile);
    profile
}
