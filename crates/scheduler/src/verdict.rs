//! Why a node does not do for a pod, and how that is told.

use crate::devices::Release;
use kinds::PodGroup;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A point of view on nodes, or another part of scheduling that a profile can be without; the names are those that
/// users of Kubernetes know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Plugin {
    NodeUnschedulable,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    NodeDeclaredFeatures,
    DynamicResources,
    PodTopologySpread,
    InterPodAffinity,
    NodeName,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultPreemption,
    DefaultBinder,
    PrioritySort,
    SchedulingGates,
    GangScheduling,
}

impl Plugin {
    /// As it stands in files and figures.
    pub fn name(self) -> String {
        format!("{self:?}")
    }
}

/// Some points of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PluginSet(u32);

impl PluginSet {
    pub(crate) fn all() -> Self {
        PluginSet(u32::MAX)
    }

    pub(crate) fn has(self, plugin: Plugin) -> bool {
        self.0 & (1 << plugin as u32) != 0
    }

    pub(crate) fn without(self, plugin: Plugin) -> Self {
        PluginSet(self.0 & !(1 << plugin as u32))
    }
}

/// A node that does not do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub plugin: Plugin,
    pub reasons: Vec<Cow<'static, str>>,
    /// Whether it could do if other pods made room.
    pub resolvable: bool,
    /// Whether it is not known if it does, because something is wrong.
    pub is_error: bool,
}

impl Refusal {
    /// Whatever becomes of the pods there.
    pub(crate) fn firm(plugin: Plugin, reason: impl Into<Cow<'static, str>>) -> Self {
        Refusal { plugin, reasons: vec![reason.into()], resolvable: false, is_error: false }
    }

    /// As long as the pods there stay.
    pub(crate) fn for_now(plugin: Plugin, reason: impl Into<Cow<'static, str>>) -> Self {
        Refusal { resolvable: true, ..Refusal::firm(plugin, reason) }
    }

    /// Until something is put right.
    pub(crate) fn error(plugin: Plugin, message: String) -> Self {
        Refusal { is_error: true, ..Refusal::firm(plugin, message) }
    }
}

/// Why a pod was not placed.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    pub(crate) nodes: usize,
    /// How many nodes for each reason.
    pub(crate) reasons: BTreeMap<String, usize>,
    /// What stands in the way on whatever node.
    pub(crate) general: Option<String>,
    /// What is wrong, if it cannot be told whether some node does.
    pub(crate) error: Option<String>,
    /// A claim that can give something back.
    pub(crate) release: Option<Release>,
    /// Whether no room can be made for it anywhere: a promise that was made is not kept.
    pub(crate) is_lost: bool,
    /// What came of the attempts to do something about it.
    pub(crate) afterwards: Vec<String>,
    /// What is said instead of all this, where it is not the pod itself that could not be placed.
    pub(crate) instead: Option<String>,
    /// From which points of view nodes were refused.
    pub(crate) plugins: Vec<Plugin>,
}

impl Diagnosis {
    pub(crate) fn count(&mut self, refusal: &Refusal) {
        if refusal.is_error && self.error.is_none() {
            let messages = refusal.reasons.join(", ");
            self.error = Some(format!("running {:?} filter plugin: {messages}", refusal.plugin.name()));
        }
        for reason in &refusal.reasons {
            // Reasons are few and nodes many: a copy only for the first.
            match self.reasons.get_mut(reason.as_ref()) {
                Some(count) => *count += 1,
                None => {
                    self.reasons.insert(reason.to_string(), 1);
                }
            }
        }
        if !self.plugins.contains(&refusal.plugin) {
            self.plugins.push(refusal.plugin);
        }
    }

    /// Of a pod that something went wrong with; that there are nodes is not in doubt.
    pub(crate) fn failure(error: String) -> Self {
        Diagnosis { error: Some(error), nodes: 1, ..Diagnosis::default() }
    }

    /// Of a pod that could be placed, if it were not for others of its group.
    pub(crate) fn of_group(verdict: &GroupVerdict) -> Self {
        Diagnosis { instead: Some(verdict.message()), plugins: vec![Plugin::GangScheduling], ..Diagnosis::default() }
    }

    /// One line, as `kubectl describe pod` shows it.
    pub fn message(&self) -> String {
        if let Some(instead) = &self.instead {
            return instead.clone();
        }
        if self.nodes == 0 {
            return "no nodes available to schedule pods".to_owned();
        }
        if let Some(error) = &self.error {
            return error.clone();
        }
        let mut message = summary(self.nodes, self.general.as_deref(), &self.reasons);
        if !self.afterwards.is_empty() {
            message = format!("{message} {}", self.afterwards.join(", "));
        }
        message
    }
}

/// What became of a group of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupVerdict {
    Scheduled,
    /// With what it waits for, if that is known.
    Unschedulable(&'static str),
    Error(String),
}

impl GroupVerdict {
    /// The condition of a group that tells it.
    pub(crate) const CONDITION: &str = "PodGroupScheduled";

    pub(crate) fn status(&self) -> &'static str {
        if *self == GroupVerdict::Scheduled { "True" } else { "False" }
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self {
            GroupVerdict::Scheduled => "Scheduled",
            GroupVerdict::Unschedulable(_) => "Unschedulable",
            GroupVerdict::Error(_) => "SchedulerError",
        }
    }

    pub(crate) fn message(&self) -> String {
        match self {
            GroupVerdict::Scheduled => String::new(),
            GroupVerdict::Unschedulable("") => "pod group is unschedulable".to_owned(),
            GroupVerdict::Unschedulable(why) => format!("pod group is unschedulable, {why}"),
            GroupVerdict::Error(error) => error.clone(),
        }
    }

    /// Whether a group does not say so yet. One that was placed once stays so, whatever becomes of pods that come later.
    pub(crate) fn is_news(&self, group: &PodGroup) -> bool {
        group.condition(GroupVerdict::CONDITION).is_none_or(|known| {
            let is_same =
                known.status == self.status() && known.reason == self.reason() && known.message == self.message();
            let is_settled = known.status == "True" && self.status() != "True";
            !is_same && !is_settled
        })
    }
}

/// How many of the nodes were refused for which reasons.
pub(crate) fn summary(nodes: usize, general: Option<&str>, reasons: &BTreeMap<String, usize>) -> String {
    let mut counted: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    counted.sort();
    let why = general.map_or_else(|| counted.join(", "), str::to_owned);
    if why.is_empty() {
        format!("0/{nodes} nodes are available:")
    } else {
        format!("0/{nodes} nodes are available: {why}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_told_in_order() {
        let mut diagnosis = Diagnosis { nodes: 5, ..Diagnosis::default() };
        for _ in 0..3 {
            diagnosis.count(&Refusal::for_now(Plugin::NodeResourcesFit, "Insufficient cpu"));
        }
        for _ in 0..2 {
            diagnosis.count(&Refusal::firm(Plugin::TaintToleration, "node(s) had untolerated taint(s)"));
        }
        let expected = "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu.";
        assert_eq!(diagnosis.message(), expected);
        diagnosis.afterwards = vec!["no claims".to_owned(), "preemption: none".to_owned()];
        assert_eq!(diagnosis.message(), format!("{expected} no claims, preemption: none"));
        assert_eq!(Diagnosis::default().message(), "no nodes available to schedule pods");
    }
}
