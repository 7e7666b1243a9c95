//! What plugins are told.

use super::part::Part;
use super::plugins;
use crate::needs::{Spread, preferred};
use crate::profile::{Added, Candidates, Packing, Profile, system_spread};
use crate::resources::Resource;
use crate::verdict::Plugin;
use kinds::{Labels, NodeSelector};
use object::field::Error;
use object::name::qualified_name;
use std::collections::BTreeSet;
use std::time::Duration;

/// Scores in shapes go up to this.
const BEST_OF_SHAPE: i64 = 10;

pub(super) fn read(part: &Part<'_>, profile: &mut Profile) {
    let mut seen = BTreeSet::new();
    for item in part.items() {
        item.only(&["name", "args"]);
        let (name, args) = (item.field("name"), item.field("args"));
        if !seen.insert(name.text()) {
            item.note(Error::duplicate(&item.path, name.value.clone()));
        }
        let kind = args.field("kind");
        if kind.is_set() && kind.text() != format!("{}Args", name.text()) {
            args.wrong("has to match plugin args");
            continue;
        }
        match plugins::named(name.text()) {
            Some(Plugin::NodeResourcesFit) => fit(&args, profile),
            Some(Plugin::NodeResourcesBalancedAllocation) => balance(&args, profile),
            Some(Plugin::PodTopologySpread) => spread(&args, profile),
            Some(Plugin::InterPodAffinity) => neighbours(&args, profile),
            Some(Plugin::NodeAffinity) => added(&args, profile),
            Some(Plugin::DefaultPreemption) => preemption(&args, profile),
            Some(Plugin::VolumeBinding) => binding(&args, profile),
            _ => name.forbid(&format!("not supported: there is no plugin {:?} that takes arguments", name.text())),
        }
    }
}

fn only(args: &Part<'_>, known: &[&str]) {
    args.only(&[&["apiVersion", "kind"], known].concat());
}

fn in_range(part: &Part<'_>, usual: i64, least: i64, most: i64) -> i64 {
    let value = part.int_or(usual);
    if !(least..=most).contains(&value) {
        part.wrong_value(value, &format!("not in valid range [{least}, {most}]"));
    }
    value
}

fn names(part: &Part<'_>, are_groups: bool) -> BTreeSet<String> {
    let items = part.items();
    for item in &items {
        if are_groups && item.text().contains('/') {
            item.wrong("resource group name can't contain '/'");
        }
        qualified_name(item.text()).iter().for_each(|why| item.wrong(why));
    }
    items.iter().map(|item| item.text().to_owned()).collect()
}

fn fit(args: &Part<'_>, profile: &mut Profile) {
    only(args, &["ignoredResources", "ignoredResourceGroups", "scoringStrategy"]);
    profile.fit.ignored = names(&args.field("ignoredResources"), false);
    profile.fit.ignored_groups = names(&args.field("ignoredResourceGroups"), true);
    let strategy = args.field("scoringStrategy");
    if !strategy.is_set() {
        return;
    }
    strategy.only(&["type", "resources", "requestedToCapacityRatio"]);
    let (kind, ratio) = (strategy.field("type"), strategy.field("requestedToCapacityRatio"));
    profile.fit.packing = match kind.text() {
        "LeastAllocated" => Packing::LeastAllocated,
        "MostAllocated" => Packing::MostAllocated,
        "RequestedToCapacityRatio" => Packing::Shape(ratio_shape(&ratio)),
        other => {
            let supported = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
            kind.note(Error::not_supported(&kind.path, other, &supported));
            return;
        }
    };
    if ratio.is_set() && !matches!(profile.fit.packing, Packing::Shape(_)) {
        ratio.forbid("must be nil when type is not RequestedToCapacityRatio");
    }
    let resources = strategy.field("resources").items();
    if !resources.is_empty() {
        profile.fit.resources = resources.iter().map(weighed_resource).collect();
    }
}

fn weighed_resource(item: &Part<'_>) -> (Resource, i64) {
    item.only(&["name", "weight"]);
    let name = item.field("name").text();
    let weight = item.field("weight");
    // None is taken for nothing said.
    let value = match weight.int_or(1) {
        0 => 1,
        value => value,
    };
    if !(1..=100).contains(&value) {
        weight.wrong(&format!("resource weight of {name} not in valid range (0, 100]"));
    }
    (Resource::named(name), value)
}

fn ratio_shape(ratio: &Part<'_>) -> Vec<(i64, i64)> {
    if !ratio.is_set() {
        ratio.note(Error::required(&ratio.path, "must be specified when type is RequestedToCapacityRatio"));
        return Vec::new();
    }
    ratio.only(&["shape"]);
    let shape = ratio.field("shape");
    let items = shape.items();
    if items.is_empty() {
        shape.note(Error::required(&shape.path, "at least one point must be specified"));
    }
    let mut points: Vec<(i64, i64)> = Vec::new();
    for item in &items {
        item.only(&["utilization", "score"]);
        let utilization = in_range(&item.field("utilization"), 0, 0, 100);
        if points.last().is_some_and(|(last, _)| *last >= utilization) {
            item.field("utilization").wrong_value(utilization, "values must be sorted in increasing order");
        }
        let score = in_range(&item.field("score"), 0, 0, BEST_OF_SHAPE);
        points.push((utilization, score * crate::scores::BEST / BEST_OF_SHAPE));
    }
    points
}

fn balance(args: &Part<'_>, profile: &mut Profile) {
    only(args, &["resources"]);
    let mut seen = BTreeSet::new();
    let items = args.field("resources").items();
    for item in &items {
        item.only(&["name", "weight"]);
        let (name, weight) = (item.field("name"), item.field("weight"));
        if !seen.insert(name.text()) {
            name.note(Error::duplicate(&name.path, name.text()));
        }
        if !matches!(weight.int_or(1), 0 | 1) {
            weight.wrong("must be 1");
        }
    }
    if !items.is_empty() {
        profile.balance = items.iter().map(|item| Resource::named(item.field("name").text())).collect();
    }
}

fn spread(args: &Part<'_>, profile: &mut Profile) {
    only(args, &["defaultConstraints", "defaultingType"]);
    let (kind, constraints) = (args.field("defaultingType"), args.field("defaultConstraints"));
    let items = constraints.items();
    let mut seen = BTreeSet::new();
    for item in &items {
        let (topology, otherwise) = constraint(item);
        if !seen.insert((topology, otherwise)) {
            item.note(Error::duplicate(&item.path, format!("{{{topology}, {otherwise}}}")));
        }
    }
    let none = Labels::new();
    profile.spread = match kind.text() {
        "" | "System" if items.is_empty() => system_spread(),
        "" | "System" => {
            kind.wrong_value("System", "when .defaultConstraints are not empty");
            Vec::new()
        }
        "List" => items.iter().map(|item| Spread::read(item.value, &none)).collect(),
        other => {
            kind.note(Error::not_supported(&kind.path, other, &["System", "List"]));
            Vec::new()
        }
    };
}

fn constraint<'a>(part: &Part<'a>) -> (&'a str, &'a str) {
    let policies = ["nodeAffinityPolicy", "nodeTaintsPolicy"];
    part.only(&[
        "maxSkew",
        "topologyKey",
        "whenUnsatisfiable",
        "labelSelector",
        "minDomains",
        policies[0],
        policies[1],
    ]);
    let (skew, domains) = (part.field("maxSkew"), part.field("minDomains"));
    if skew.int_or(0) <= 0 {
        skew.wrong_value(skew.int_or(0), "not in valid range (0, inf)");
    }
    if domains.int_or(1) <= 0 {
        domains.wrong("must be greater than 0");
    }
    let (topology, otherwise) = (part.field("topologyKey"), part.field("whenUnsatisfiable"));
    match topology.text() {
        "" => topology.note(Error::required(&topology.path, "can not be empty")),
        key => qualified_name(key).iter().for_each(|why| topology.wrong(why)),
    }
    match otherwise.text() {
        "DoNotSchedule" | "ScheduleAnyway" => {}
        "" => otherwise.note(Error::required(&otherwise.path, "can not be empty")),
        other => {
            otherwise.note(Error::not_supported(&otherwise.path, other, &["DoNotSchedule", "ScheduleAnyway"]));
        }
    }
    for policy in policies.map(|policy| part.field(policy)) {
        if policy.is_set() && !["Honor", "Ignore"].contains(&policy.text()) {
            policy.note(Error::not_supported(&policy.path, policy.text(), &["Honor", "Ignore"]));
        }
    }
    let selector = part.field("labelSelector");
    if selector.is_set() {
        selector.forbid("constraint must not define a selector, as they deduced for each pod");
    }
    (topology.text(), otherwise.text())
}

fn neighbours(args: &Part<'_>, profile: &mut Profile) {
    only(args, &["hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"]);
    profile.neighbours.hard_weight = in_range(&args.field("hardPodAffinityWeight"), 1, 0, 100);
    profile.neighbours.obliging = !args.field("ignorePreferredTermsOfExistingPods").flag();
}

fn added(args: &Part<'_>, profile: &mut Profile) {
    only(args, &["addedAffinity"]);
    let affinity = args.field("addedAffinity");
    let (required, wished) =
        ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution");
    affinity.only(&[required, wished]);
    let must = affinity.field(required);
    must.only(&["nodeSelectorTerms"]);
    must.field("nodeSelectorTerms").items().iter().for_each(term);
    for item in affinity.field(wished).items() {
        item.only(&["weight", "preference"]);
        in_range(&item.field("weight"), 0, 1, 100);
        term(&item.field("preference"));
    }
    let required = must.is_set().then(|| NodeSelector::read(must.value));
    profile.added = Added { required, preferred: preferred(affinity.value) };
}

/// What a node has to be like.
fn term(part: &Part<'_>) {
    part.only(&["matchExpressions", "matchFields"]);
    for expression in part.field("matchExpressions").items().iter().chain(&part.field("matchFields").items()) {
        expression.only(&["key", "operator", "values"]);
        let (key, operator) = (expression.field("key"), expression.field("operator"));
        qualified_name(key.text()).iter().for_each(|why| key.wrong(why));
        let (values, count) = (expression.field("values"), expression.field("values").items().len());
        match operator.text() {
            "In" | "NotIn" if count == 0 => {
                values.note(Error::required(&values.path, "must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if count > 0 => {
                values.forbid("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "Gt" | "Lt" if count != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                values.note(Error::required(&values.path, detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => {
                let supported = ["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"];
                operator.note(Error::not_supported(&operator.path, other, &supported));
            }
        }
    }
}

fn preemption(args: &Part<'_>, profile: &mut Profile) {
    only(args, &["minCandidateNodesPercentage", "minCandidateNodesAbsolute"]);
    let (percentage, absolute) = (args.field("minCandidateNodesPercentage"), args.field("minCandidateNodesAbsolute"));
    let percent = in_range(&percentage, 10, 0, 100);
    let least = absolute.int_or(100);
    if least < 0 {
        absolute.wrong("not in valid range [0, inf)");
    }
    if percent == 0 && least == 0 {
        percentage.wrong("cannot be zero at the same time as minCandidateNodesAbsolute");
        absolute.wrong("cannot be zero at the same time as minCandidateNodesPercentage");
    }
    let size = |number: i64| usize::try_from(number).unwrap_or(0);
    profile.preemption = Some(Candidates { percent: size(percent), least: size(least) });
}

fn binding(args: &Part<'_>, profile: &mut Profile) {
    only(args, &["bindTimeoutSeconds", "shape"]);
    let (timeout, shape) = (args.field("bindTimeoutSeconds"), args.field("shape"));
    let seconds = timeout.int_or(600);
    if seconds < 0 {
        timeout.wrong("invalid BindTimeoutSeconds, should not be a negative value");
    }
    if shape.is_set() {
        shape.forbid("not supported: nodes are not compared by how much of their storage is used");
    }
    profile.binding_timeout = Duration::from_secs(seconds.max(0).unsigned_abs());
}
