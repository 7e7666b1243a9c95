//! Which plugins a profile has, and how much those that compare nodes count.
//!
//! Upstream calls a plugin at many points on the way of a pod. Here a plugin filters, compares or makes room, and what
//! it has to prepare belongs to that; so at the other points it can be disabled only if it is disabled there.

use super::part::Part;
use crate::profile::{Profile, Weights};
use crate::verdict::Plugin;
use object::field::Error;
use std::collections::BTreeMap;

/// Plugins, the weights they have unless somebody says otherwise, and the points they extend.
const KNOWN: &[(Plugin, i64, &[&str])] = &[
    (Plugin::SchedulingGates, 0, &[PRE_ENQUEUE]),
    (Plugin::PrioritySort, 0, &[QUEUE_SORT]),
    (Plugin::NodeUnschedulable, 0, &[FILTER]),
    (Plugin::NodeName, 0, &[FILTER]),
    (Plugin::TaintToleration, 3, &[FILTER, PRE_SCORE, SCORE]),
    (Plugin::NodeAffinity, 2, &[PRE_FILTER, FILTER, PRE_SCORE, SCORE]),
    (Plugin::NodePorts, 0, &[PRE_FILTER, FILTER]),
    (Plugin::NodeResourcesFit, 1, &[PRE_FILTER, FILTER, PRE_SCORE, SCORE]),
    (Plugin::VolumeRestrictions, 0, &[PRE_FILTER, FILTER]),
    (Plugin::NodeVolumeLimits, 0, &[PRE_FILTER, FILTER]),
    (Plugin::VolumeBinding, 0, &[PRE_FILTER, FILTER, RESERVE, PRE_BIND]),
    (Plugin::VolumeZone, 0, &[PRE_FILTER, FILTER]),
    (Plugin::PodTopologySpread, 2, &[PRE_FILTER, FILTER, PRE_SCORE, SCORE]),
    (Plugin::InterPodAffinity, 2, &[PRE_FILTER, FILTER, PRE_SCORE, SCORE]),
    (Plugin::NodeDeclaredFeatures, 0, &[PRE_FILTER, FILTER]),
    (Plugin::DynamicResources, 2, &[PRE_ENQUEUE, PRE_FILTER, FILTER, POST_FILTER, SCORE, RESERVE, PRE_BIND]),
    (Plugin::DefaultPreemption, 0, &[PRE_ENQUEUE, POST_FILTER]),
    (Plugin::NodeResourcesBalancedAllocation, 1, &[PRE_SCORE, SCORE]),
    (Plugin::ImageLocality, 1, &[SCORE]),
    (Plugin::DefaultBinder, 0, &[BIND]),
];

const MULTI_POINT: &str = "multiPoint";
const PRE_ENQUEUE: &str = "preEnqueue";
const QUEUE_SORT: &str = "queueSort";
const PRE_FILTER: &str = "preFilter";
const FILTER: &str = "filter";
const POST_FILTER: &str = "postFilter";
const PRE_SCORE: &str = "preScore";
const SCORE: &str = "score";
const RESERVE: &str = "reserve";
const PRE_BIND: &str = "preBind";
const BIND: &str = "bind";
const POINTS: &[&str] = &[
    MULTI_POINT,
    PRE_ENQUEUE,
    QUEUE_SORT,
    PRE_FILTER,
    FILTER,
    POST_FILTER,
    PRE_SCORE,
    SCORE,
    RESERVE,
    "permit",
    PRE_BIND,
    BIND,
    "postBind",
];

/// The plugin of a name.
pub(super) fn named(name: &str) -> Option<Plugin> {
    KNOWN.iter().map(|(plugin, ..)| *plugin).find(|plugin| plugin.name() == name)
}

/// What is said of one point.
#[derive(Default)]
struct Said {
    enabled: BTreeMap<Plugin, i64>,
    disabled: Vec<String>,
}

impl Said {
    fn disables(&self, plugin: Plugin) -> bool {
        self.disabled.iter().any(|name| name == "*" || *name == plugin.name())
    }
}

/// What is said of all points.
struct Points(BTreeMap<&'static str, Said>);

impl Points {
    fn at(&self, point: &str) -> &Said {
        const NOTHING: &Said = &Said { enabled: BTreeMap::new(), disabled: Vec::new() };
        self.0.get(point).unwrap_or(NOTHING)
    }

    /// The weight that a plugin has at one of its points; none if it is not there.
    fn weight(&self, point: &str, plugin: Plugin) -> Option<i64> {
        let (here, everywhere) = (self.at(point), self.at(MULTI_POINT));
        let usual = KNOWN.iter().find(|(known, ..)| *known == plugin).map(|(_, weight, _)| *weight);
        let usual = usual.filter(|_| !everywhere.disables(plugin));
        let inherited = everywhere.enabled.get(&plugin).copied().or(usual).filter(|_| !here.disables(plugin));
        here.enabled.get(&plugin).copied().or(inherited)
    }
}

pub(super) fn read(part: &Part<'_>, profile: &mut Profile) {
    part.only(POINTS);
    let points = Points(POINTS.iter().map(|point| (*point, said(&part.field(point), point))).collect());
    for (plugin, _, extended) in KNOWN {
        extended.iter().for_each(|point| check(&part.field(point), point, &points, *plugin));
    }
    for (plugin, _, extended) in KNOWN {
        if extended.contains(&FILTER) && points.weight(FILTER, *plugin).is_none() {
            profile.filters = profile.filters.without(*plugin);
        }
    }
    if points.weight(POST_FILTER, Plugin::DefaultPreemption).is_none() {
        profile.preemption = None;
    }
    let weight = |plugin| points.weight(SCORE, plugin).unwrap_or(0);
    profile.weights = Weights {
        taints: weight(Plugin::TaintToleration),
        node_affinity: weight(Plugin::NodeAffinity),
        spread: weight(Plugin::PodTopologySpread),
        pod_affinity: weight(Plugin::InterPodAffinity),
        fit: weight(Plugin::NodeResourcesFit),
        balance: weight(Plugin::NodeResourcesBalancedAllocation),
        images: weight(Plugin::ImageLocality),
        devices: weight(Plugin::DynamicResources),
    };
}

fn said(part: &Part<'_>, point: &str) -> Said {
    part.only(&["enabled", "disabled"]);
    let mut said = Said::default();
    for item in part.field("disabled").items() {
        item.only(&["name", "weight"]);
        said.disabled.push(item.field("name").text().to_owned());
    }
    for item in part.field("enabled").items() {
        item.only(&["name", "weight"]);
        let name = item.field("name");
        let Some(plugin) = named(name.text()) else {
            let names: Vec<String> = KNOWN.iter().map(|(plugin, ..)| plugin.name()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            name.note(Error::not_supported(&name.path, name.value.clone(), &names));
            continue;
        };
        let extends = |(known, _, points): &(Plugin, i64, &[&str])| *known == plugin && points.contains(&point);
        if point != MULTI_POINT && !KNOWN.iter().any(extends) {
            name.wrong(&format!("does not extend {point}"));
        }
        let weight = item.field("weight");
        if weight.int_or(0) < 0 {
            weight.wrong("must not be negative");
        }
        // Nobody is there for nothing: that is what disabling is for.
        if said.enabled.insert(plugin, weight.int_or(0).max(1)).is_some() {
            name.note(Error::duplicate(&name.path, name.value.clone()));
        }
    }
    said
}

/// What cannot be set apart has to be there if what it is a part of is.
fn check(part: &Part<'_>, point: &str, points: &Points, plugin: Plugin) {
    let is_there = points.weight(point, plugin).is_some();
    let belongs_to = match point {
        PRE_FILTER | RESERVE | PRE_BIND => FILTER,
        PRE_SCORE => SCORE,
        PRE_ENQUEUE | POST_FILTER if plugin == Plugin::DynamicResources => FILTER,
        PRE_ENQUEUE if plugin == Plugin::DefaultPreemption => POST_FILTER,
        PRE_ENQUEUE | QUEUE_SORT | BIND => {
            if !is_there {
                part.forbid(&format!("not supported: there is no {point} but {}", plugin.name()));
            }
            return;
        }
        _ => return,
    };
    if !is_there && points.weight(belongs_to, plugin).is_some() {
        part.forbid(&format!("not supported: {} is disabled here and not at {belongs_to}", plugin.name()));
    }
}
