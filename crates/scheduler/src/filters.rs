//! Whether a node does for a pod, judged by that node alone. Each filter is a function; the first that refuses is told.

use crate::cluster::{Cluster, Spot};
use crate::devices::{self, Devices};
use crate::needs::Needs;
use crate::profile::Profile;
use crate::verdict::{Plugin, Refusal};
use crate::volumes::{self, Volumes};
use kinds::{Node, Taint};
use std::borrow::Cow;

/// What is asked for, with what is known about it beyond the pod itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub needs: &'a Needs,
    pub volumes: &'a Volumes,
    pub devices: &'a Devices,
    pub profile: &'a Profile,
    pub cluster: &'a Cluster,
}

pub(crate) type Verdict = Result<(), Refusal>;
type Filter = fn(Asked<'_>, &Spot, &Node) -> Verdict;

/// In the order in which they are tried.
const FILTERS: &[(Plugin, Filter)] = &[
    (Plugin::NodeUnschedulable, unschedulable),
    (Plugin::TaintToleration, taints),
    (Plugin::NodeAffinity, node_affinity),
    (Plugin::NodePorts, ports),
    (Plugin::NodeResourcesFit, resources),
    (Plugin::VolumeRestrictions, volumes::restrictions),
    (Plugin::NodeVolumeLimits, volumes::limits),
    (Plugin::VolumeBinding, volumes::binding),
    (Plugin::VolumeZone, volumes::zone),
    (Plugin::NodeDeclaredFeatures, features),
    (Plugin::DynamicResources, devices::filter),
];

/// Whether the node does, as far as it alone is concerned.
pub(crate) fn judge(asked: Asked<'_>, spot: &Spot, node: &Node) -> Verdict {
    let asks = |(plugin, _): &&(Plugin, Filter)| asked.profile.filters_by(*plugin);
    FILTERS.iter().filter(asks).try_for_each(|(_, filter)| filter(asked, spot, node))
}

fn tolerates(needs: &Needs, taint: &Taint) -> bool {
    needs.tolerations.iter().any(|toleration| toleration.tolerates(taint))
}

fn unschedulable(asked: Asked<'_>, spot: &Spot, _: &Node) -> Verdict {
    match &spot.cordon {
        Some(cordon) if !tolerates(asked.needs, cordon) => {
            Err(Refusal::firm(Plugin::NodeUnschedulable, "node(s) were unschedulable"))
        }
        _ => Ok(()),
    }
}

/// Whether every taint that keeps pods away is tolerated.
pub(crate) fn tolerates_all(needs: &Needs, node: &Node) -> bool {
    let keeps_away = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    node.spec.taints.iter().filter(keeps_away).all(|taint| tolerates(needs, taint))
}

fn taints(asked: Asked<'_>, _: &Spot, node: &Node) -> Verdict {
    if tolerates_all(asked.needs, node) {
        return Ok(());
    }
    Err(Refusal::firm(Plugin::TaintToleration, "node(s) had untolerated taint(s)"))
}

/// Whether the node is one of those that the pod wants to be on.
pub(crate) fn is_wanted(needs: &Needs, node: &Node) -> bool {
    let labels = &node.metadata.labels;
    needs.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
        && needs.required.as_ref().is_none_or(|required| required.matches(node))
}

fn node_affinity(asked: Asked<'_>, _: &Spot, node: &Node) -> Verdict {
    if asked.profile.added.required.as_ref().is_some_and(|required| !required.matches(node)) {
        let reason = "node(s) didn't match scheduler-enforced node affinity";
        return Err(Refusal::firm(Plugin::NodeAffinity, reason));
    }
    if is_wanted(asked.needs, node) {
        return Ok(());
    }
    Err(Refusal::firm(Plugin::NodeAffinity, "node(s) didn't match Pod's node affinity/selector"))
}

fn ports(asked: Asked<'_>, spot: &Spot, _: &Node) -> Verdict {
    let is_taken = |port| spot.ports.iter().any(|taken| taken.conflicts(port));
    if asked.needs.ports.iter().any(is_taken) {
        let reason = "node(s) didn't have free ports for the requested pod ports";
        return Err(Refusal::for_now(Plugin::NodePorts, reason));
    }
    Ok(())
}

/// Whether the node says that it can do what not every node can.
fn features(asked: Asked<'_>, _: &Spot, node: &Node) -> Verdict {
    let declares = |feature: &&str| node.status.declared_features.iter().any(|declared| declared == feature);
    if asked.needs.features.iter().all(declares) {
        return Ok(());
    }
    let reason = "node(s) didn't match Pod's required features";
    Err(Refusal::firm(Plugin::NodeDeclaredFeatures, reason))
}

fn resources(asked: Asked<'_>, spot: &Spot, _: &Node) -> Verdict {
    let (wanted, used, capacity) = (&asked.needs.requests, &spot.used, &spot.capacity);
    let mut reasons: Vec<Cow<'static, str>> = Vec::new();
    // What is more than the whole node has, nobody can make room for.
    let mut resolvable = true;
    let mut check = |wanted: i64, used: i64, capacity: i64, reason: &dyn Fn() -> Cow<'static, str>| {
        if wanted > 0 && wanted > capacity - used {
            reasons.push(reason());
            resolvable &= wanted <= capacity;
        }
    };
    check(1, spot.residents.len() as i64, spot.max_pods, &|| "Too many pods".into());
    check(wanted.cpu, used.cpu, capacity.cpu, &|| "Insufficient cpu".into());
    check(wanted.memory, used.memory, capacity.memory, &|| "Insufficient memory".into());
    check(wanted.disk, used.disk, capacity.disk, &|| "Insufficient ephemeral-storage".into());
    // What the node itself has none of, it may have as devices.
    let is_device = |name: &str| capacity.other(name) == 0 && asked.devices.answer_to(name);
    let counts = |name: &str| !asked.profile.fit.ignores(name) && !is_device(name);
    for (name, amount) in wanted.others.iter().filter(|(name, _)| counts(name)) {
        check(*amount, used.other(name), capacity.other(name), &|| format!("Insufficient {name}").into());
    }
    if reasons.is_empty() {
        return Ok(());
    }
    Err(Refusal { plugin: Plugin::NodeResourcesFit, reasons, resolvable, is_error: false })
}
