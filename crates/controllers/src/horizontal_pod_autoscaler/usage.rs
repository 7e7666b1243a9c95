//! How many replicas what pods use asks for.
//!
//! Pods that are not ready yet, and pods of which nothing is known, must not make the number jump: they are taken to use
//! so much that whatever is done is less than without them, and never the other way round.

use super::behavior::Tolerance;
use kinds::{Object, Pod, Time};
use object::Quantity;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// For so long after its start a pod may need more than it will.
const CPU_INITIALIZATION: Duration = Duration::from_secs(300);
/// For so long after its start a pod that has not been ready is taken to be still starting.
const INITIAL_READINESS_DELAY: Duration = Duration::from_secs(30);

/// What was measured of a pod, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) value: i64,
    pub(super) at: Time,
    /// Over how long it was measured.
    pub(super) window: Duration,
}

pub(super) type Readings = BTreeMap<String, Reading>;

/// What pods use on average, and how that compares with the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Usage {
    pub(super) ratio: f64,
    pub(super) average: i64,
    /// In percent of what is requested, if the target is.
    pub(super) utilization: Option<i32>,
}

/// What usage is compared with.
pub(super) enum Target {
    /// So much on average.
    Average(i64),
    /// So many percent of what each pod requests.
    Utilization { percent: i32, requests: BTreeMap<String, i64> },
}

impl Target {
    fn usage(&self, values: &BTreeMap<&str, i64>) -> Result<Usage, String> {
        let total: i64 = values.values().sum();
        match self {
            Target::Average(target) => {
                let average = total / i64::try_from(values.len().max(1)).unwrap_or(i64::MAX);
                Ok(Usage { ratio: average as f64 / *target as f64, average, utilization: None })
            }
            Target::Utilization { percent, requests } => {
                let known = values.iter().filter_map(|(name, value)| Some((value, requests.get(*name)?)));
                let (mut used, mut requested, mut count) = (0, 0, 0);
                for (value, request) in known {
                    (used, requested, count) = (used + value, requested + request, count + 1);
                }
                if requested == 0 {
                    return Err("no metrics returned matched known pods".to_owned());
                }
                let utilization = i32::try_from(used * 100 / requested).unwrap_or(i32::MAX);
                let ratio = f64::from(utilization) / f64::from(*percent);
                Ok(Usage { ratio, average: used / count, utilization: Some(utilization) })
            }
        }
    }

    /// What a pod is taken to use if nothing is known of it and there may be too many.
    fn cautious(&self, pod: &str) -> i64 {
        match self {
            Target::Average(target) => *target,
            Target::Utilization { percent, requests } => {
                requests.get(pod).copied().unwrap_or(0) * i64::from(*percent).max(100) / 100
            }
        }
    }
}

/// The number of replicas with which usage would be at its target, and the usage now. The target is asked for only when
/// there is something to compare with it.
pub(super) fn replicas(
    readings: &Readings,
    pods: &[Arc<Object<Pod>>],
    is_cpu: bool,
    target: impl FnOnce() -> Result<Target, String>,
    current: i32,
    tolerance: Tolerance,
    now: Time,
) -> Result<(i32, Usage), String> {
    let groups = Groups::of(pods, readings, is_cpu, now);
    let mut values: BTreeMap<&str, i64> = readings
        .iter()
        .filter(|(name, _)| !groups.unready.contains(name.as_str()) && !groups.ignored.contains(name.as_str()))
        .map(|(name, reading)| (name.as_str(), reading.value))
        .collect();
    if values.is_empty() {
        return Err("did not receive metrics for targeted pods (pods might be unready)".to_owned());
    }
    let target = target()?;
    let usage = target.usage(&values)?;
    let starts_more = !groups.unready.is_empty() && usage.ratio > 1.0;
    if !starts_more && groups.missing.is_empty() {
        let wanted = if tolerance.allows(usage.ratio) { current } else { scaled(usage.ratio, groups.ready) };
        return Ok((wanted, usage));
    }
    for name in &groups.missing {
        if usage.ratio != 1.0 {
            values.insert(name, if usage.ratio < 1.0 { target.cautious(name) } else { 0 });
        }
    }
    if starts_more {
        values.extend(groups.unready.iter().map(|name| (*name, 0)));
    }
    let careful = target.usage(&values)?.ratio;
    let turns = (usage.ratio < 1.0 && careful > 1.0) || (usage.ratio > 1.0 && careful < 1.0);
    if tolerance.allows(careful) || turns {
        return Ok((current, usage));
    }
    let wanted = scaled(careful, values.len());
    let goes_astray = (careful < 1.0 && wanted > current) || (careful > 1.0 && wanted < current);
    Ok((if goes_astray { current } else { wanted }, usage))
}

/// So many times as many, rounded up.
pub(super) fn scaled(ratio: f64, count: usize) -> i32 {
    // Larger ones are cut to the largest there is, and there are no negative ones.
    (ratio * count as f64).ceil() as i32
}

#[derive(Debug, Default)]
struct Groups<'a> {
    ready: usize,
    unready: BTreeSet<&'a str>,
    /// Of these nothing is known.
    missing: BTreeSet<&'a str>,
    /// These are as good as gone.
    ignored: BTreeSet<&'a str>,
}

impl<'a> Groups<'a> {
    fn of(pods: &'a [Arc<Object<Pod>>], readings: &Readings, is_cpu: bool, now: Time) -> Self {
        let mut groups = Groups::default();
        for pod in pods {
            let name = pod.metadata.name.as_str();
            if pod.metadata.is_being_deleted() || pod.status.phase == "Failed" {
                groups.ignored.insert(name);
            } else if pod.status.phase == "Pending" {
                groups.unready.insert(name);
            } else if let Some(reading) = readings.get(name) {
                match is_cpu && is_starting(pod, reading, now) {
                    true => drop(groups.unready.insert(name)),
                    false => groups.ready += 1,
                }
            } else {
                groups.missing.insert(name);
            }
        }
        groups
    }
}

/// Whether what a pod uses says nothing yet of what it will use.
fn is_starting(pod: &Pod, reading: &Reading, now: Time) -> bool {
    let (Some(ready), Some(started)) = (pod.condition("Ready"), pod.status.start_time) else { return true };
    let since = ready.last_transition_time.unwrap_or_default();
    let is_unready = ready.status == "False";
    if started + CPU_INITIALIZATION > now {
        is_unready || reading.at < since + reading.window
    } else {
        is_unready && started + INITIAL_READINESS_DELAY > since
    }
}

/// What each pod requests of a resource, in thousandths; of one container if that is named.
pub(super) fn requests(
    pods: &[Arc<Object<Pod>>],
    resource: &str,
    container: &str,
) -> Result<BTreeMap<String, i64>, String> {
    pods.iter().map(|pod| Ok((pod.metadata.name.clone(), request(pod, resource, container)?))).collect()
}

fn request(pod: &Pod, resource: &str, container: &str) -> Result<i64, String> {
    let name = &pod.metadata.name;
    let of_pod = pod.spec.resources.as_ref().map(|resources| &resources.requests);
    if let Some(requests) = of_pod.filter(|requests| container.is_empty() && !requests.is_empty()) {
        return whole(pod, requests.get(resource).copied(), resource);
    }
    let sidecars = pod.spec.init_containers.iter().filter(|container| container.is_sidecar());
    let mut counted =
        pod.spec.containers.iter().chain(sidecars).filter(|it| container.is_empty() || it.name == container);
    let total = counted.try_fold(None, |total: Option<i64>, it| match it.resources.requests.get(resource) {
        Some(quantity) => Ok(Some(total.unwrap_or(0) + quantity.millis())),
        None => Err(format!("missing request for {resource} in container {} of Pod {name}", it.name)),
    })?;
    match total {
        None if !container.is_empty() => Err(format!("container {container} not found in Pod {name}")),
        total => Ok(total.unwrap_or(0)),
    }
}

/// What a pod requests as a whole: what it says itself, else what its containers come to, and what running it costs.
fn whole(pod: &Pod, own: Option<Quantity>, resource: &str) -> Result<i64, String> {
    let spec = &pod.spec;
    let (late, early): (Vec<_>, Vec<_>) = spec.init_containers.iter().partition(|container| container.is_sidecar());
    let running = spec.containers.iter().chain(late).filter_map(|it| it.resources.requests.get(resource).copied());
    let starting = early.into_iter().filter_map(|it| it.resources.requests.get(resource).copied());
    let of_containers = || running.reduce(|sum, one| sum + one).max(starting.max());
    let parts = [own.or_else(of_containers), spec.overhead.get(resource).copied()];
    let total = parts.into_iter().flatten().reduce(|sum, one| sum + one);
    let missing = || format!("missing pod-level request for {resource} in Pod {}", pod.metadata.name);
    total.map(|total| total.millis()).ok_or_else(missing)
}
