//! What a pod asks of the node it is placed on. Pods that ask the same share one of these, and so what was found out
//! about the nodes for one of them holds for all.

use crate::profile::Profile;
use crate::resources::estimated;
use crate::verdict::Plugin;
use kinds::{Amounts, Container, Labels, List, NodeSelector, NodeTerm, Pod, RESTART_ALL, Selector, Toleration};
use object::selector::{Requirement, Test};
use object::{Value, View};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Needs {
    /// Which profile of the scheduler it is placed by.
    pub profile: String,
    pub namespace: String,
    /// Those that somebody looks at: [`Shapes`] leaves out the others.
    pub labels: Labels,
    pub priority: i32,
    /// Whether others may have to go for it.
    pub preempts: bool,
    pub requests: Amounts,
    /// For comparing nodes: with what is usual where nothing is asked for.
    pub estimate: Amounts,
    pub selector: Labels,
    pub required: Option<NodeSelector>,
    /// With weights.
    pub preferred: Vec<(i64, NodeTerm)>,
    pub tolerations: List<Toleration>,
    /// Where such pods are it must be, and must not be.
    pub affinity: Vec<Term>,
    pub anti_affinity: Vec<Term>,
    /// Where it would like to be; a negative weight, where it would rather not.
    pub likes: Vec<(i64, Term)>,
    pub spread: Vec<Spread>,
    pub ports: Vec<HostPort>,
    /// What a node has to declare that it can do.
    pub features: Vec<&'static str>,
    pub images: Vec<String>,
    /// The names of its claims of volumes: what these are is looked up when it is placed.
    pub claims: Vec<String>,
    /// The names of its claims of devices, as far as they are there.
    pub device_claims: Vec<String>,
    /// Disks that are named in the pod itself, and whether they are only read: not every two pods can share them.
    pub disks: Vec<(String, bool)>,
}

/// Other pods, and the topology in which they are near.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Term {
    pub namespaces: BTreeSet<String>,
    /// Namespaces by their labels, besides.
    pub namespace_selector: Option<Selector>,
    /// Absent, it selects no pod.
    pub selector: Option<Selector>,
    pub topology: String,
}

/// How unevenly pods may be spread over the domains of a topology.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spread {
    pub topology: String,
    pub max_skew: i64,
    pub min_domains: i64,
    /// Whether a pod rather waits than makes it uneven.
    pub is_hard: bool,
    pub selector: Option<Selector>,
    /// Nodes the pod could not be on count for nothing.
    pub honors_affinity: bool,
    pub honors_taints: bool,
    /// It stands for pods that say nothing: then nodes outside of the topology are as good as others.
    pub is_default: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HostPort {
    pub ip: String,
    pub protocol: String,
    pub port: i32,
}

impl HostPort {
    pub(crate) fn conflicts(&self, other: &HostPort) -> bool {
        let everywhere = |ip: &str| matches!(ip, "" | "0.0.0.0");
        let same_ip = self.ip == other.ip || everywhere(&self.ip) || everywhere(&other.ip);
        same_ip && self.port == other.port && self.protocol == other.protocol
    }
}

impl Needs {
    /// `siblings` selects the pods that belong together with this one, by the service or the set it is part of.
    pub(crate) fn read(pod: &Pod, profile: &Profile, siblings: Option<Selector>) -> Self {
        let (meta, spec) = (&pod.metadata, &pod.spec);
        let affinity = spec.affinity.as_deref().unwrap_or(&Value::Null);
        let namespace = meta.namespace.as_str();
        let near = |kind: &str| terms(affinity.at(kind), namespace);
        let weighed = |kind: &str, sign: i64| weighed_terms(affinity.at(kind), namespace, sign);
        let containers = || spec.init_containers.iter().chain(&spec.containers);
        let ports = containers().flat_map(|container| &container.ports).filter(|port| port.host_port > 0);
        Needs {
            profile: profile.name.clone(),
            namespace: namespace.to_owned(),
            labels: meta.labels.clone(),
            priority: spec.priority.unwrap_or(0),
            preempts: spec.preemption_policy != "Never",
            requests: Amounts::taken_by(pod),
            estimate: estimated(pod),
            selector: spec.node_selector.clone(),
            required: spec.required_nodes(),
            preferred: [preferred(affinity.at("nodeAffinity")), profile.added.preferred.clone()].concat(),
            tolerations: spec.tolerations.clone(),
            affinity: near("podAffinity"),
            anti_affinity: near("podAntiAffinity"),
            likes: [weighed("podAffinity", 1), weighed("podAntiAffinity", -1)].concat(),
            spread: spreads(pod, profile, siblings),
            ports: ports
                .map(|port| HostPort {
                    ip: port.host_ip.clone(),
                    protocol: port.protocol.clone(),
                    port: port.host_port,
                })
                .collect(),
            features: containers().any(Container::restarts_all).then_some(RESTART_ALL).into_iter().collect(),
            images: containers().map(|container| normalized(&container.image)).collect(),
            claims: pod.claims().collect(),
            device_claims: pod.resource_claim_names().map(str::to_owned).collect(),
            disks: disks(pod),
        }
    }

    /// Whether other pods decide where it goes, beyond those on the node in question.
    pub(crate) fn looks_around(&self) -> bool {
        let spread = self.spread.iter().any(|spread| spread.is_hard);
        spread || !self.affinity.is_empty() || !self.anti_affinity.is_empty()
    }

    /// The labels of pods that it looks at.
    fn looks_at(&self) -> impl Iterator<Item = &str> {
        let selectors =
            self.terms().map(|term| &term.selector).chain(self.spread.iter().map(|spread| &spread.selector));
        selectors.flatten().flat_map(Selector::requirements).map(|requirement| requirement.key.as_str())
    }

    /// Everything it says about other pods.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &Term> {
        let likes = self.likes.iter().map(|(_, term)| term);
        self.affinity.iter().chain(&self.anti_affinity).chain(likes)
    }
}

impl Term {
    pub(crate) fn matches(&self, needs: &Needs, namespaces: &BTreeMap<String, Labels>) -> bool {
        let by_labels = |selector: &Selector| {
            let none = Labels::new();
            let labels = namespaces.get(&needs.namespace).unwrap_or(&none);
            selector.matches(|key| labels.get(key).map(String::as_str))
        };
        let here =
            self.namespaces.contains(&needs.namespace) || self.namespace_selector.as_ref().is_some_and(by_labels);
        here && selects(self.selector.as_ref(), &needs.labels)
    }
}

impl Spread {
    pub(crate) fn counts(&self, namespace: &str, other: &Needs) -> bool {
        let is_everything = self.selector.as_ref().is_some_and(Selector::is_everything);
        other.namespace == namespace && !is_everything && selects(self.selector.as_ref(), &other.labels)
    }
}

pub(crate) fn selects(selector: Option<&Selector>, labels: &Labels) -> bool {
    selector.is_some_and(|selector| selector.matches(|key| labels.get(key).map(String::as_str)))
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn terms(affinity: &Value, namespace: &str) -> Vec<Term> {
    affinity.items(REQUIRED).iter().map(|term| Term::read(term, namespace)).collect()
}

fn weighed_terms(affinity: &Value, namespace: &str, sign: i64) -> Vec<(i64, Term)> {
    let weighed = affinity.items(PREFERRED).iter();
    weighed
        .map(|one| (sign * one.int("weight").unwrap_or(0), Term::read(one.at("podAffinityTerm"), namespace)))
        .collect()
}

pub(crate) fn preferred(affinity: &Value) -> Vec<(i64, NodeTerm)> {
    let weighed = affinity.items(PREFERRED).iter();
    weighed.map(|one| (one.int("weight").unwrap_or(0), NodeTerm::read(one.at("preference")))).collect()
}

impl Term {
    fn read(term: &Value, namespace: &str) -> Self {
        let selector = |field: &str| term.has(field).then(|| Selector::from_object(term.at(field)).ok()).flatten();
        let mut namespaces: BTreeSet<String> =
            term.items("namespaces").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        if namespaces.is_empty() && !term.has("namespaceSelector") {
            namespaces.insert(namespace.to_owned());
        }
        Term {
            namespaces,
            namespace_selector: selector("namespaceSelector"),
            selector: selector("labelSelector"),
            topology: term.text("topologyKey").to_owned(),
        }
    }
}

fn spreads(pod: &Pod, profile: &Profile, siblings: Option<Selector>) -> Vec<Spread> {
    let own = &pod.spec.topology_spread_constraints;
    let mut spreads: Vec<Spread> =
        own.iter().map(|constraint| Spread::read(constraint, &pod.metadata.labels)).collect();
    if let Some(selector) = siblings.filter(|selector| own.is_empty() && !selector.is_everything()) {
        let with_selector = |spread: &Spread| Spread { selector: Some(selector.clone()), ..spread.clone() };
        spreads.extend(profile.spread.iter().map(with_selector));
    }
    // What nobody looks at need not be counted.
    let (filters, scores) = (profile.filters_by(Plugin::PodTopologySpread), profile.weights.spread != 0);
    spreads.retain(|spread| if spread.is_hard { filters } else { scores });
    spreads
}

impl Spread {
    pub(crate) fn read(constraint: &Value, labels: &Labels) -> Self {
        let mut selector = match constraint.has("labelSelector") {
            true => Selector::from_object(constraint.at("labelSelector")).ok(),
            false => None,
        };
        for key in constraint.items("matchLabelKeys").iter().filter_map(Value::as_str) {
            let Some(value) = labels.get(key) else { continue };
            let same = Requirement { key: key.to_owned(), test: Test::In([value.clone()].into()) };
            // The server may have merged it into the selector already; twice is no different.
            selector = selector.map(|selector| selector.and(same));
        }
        Spread {
            topology: constraint.text("topologyKey").to_owned(),
            max_skew: constraint.int("maxSkew").unwrap_or(1),
            min_domains: constraint.int("minDomains").unwrap_or(1),
            is_hard: constraint.text("whenUnsatisfiable") != "ScheduleAnyway",
            selector,
            honors_affinity: constraint.text("nodeAffinityPolicy") != "Ignore",
            honors_taints: constraint.text("nodeTaintsPolicy") == "Honor",
            is_default: false,
        }
    }
}

/// Names of images as nodes report them: with a tag.
fn normalized(image: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    if name.contains(':') || name.contains('@') { image.to_owned() } else { format!("{image}:latest") }
}

fn disks(pod: &Pod) -> Vec<(String, bool)> {
    let mut disks = Vec::new();
    for volume in &pod.spec.volumes {
        let sources = [
            ("gce", &volume.gce_persistent_disk, "pdName"),
            ("aws", &volume.aws_elastic_block_store, "volumeID"),
            ("iscsi", &volume.iscsi, "iqn"),
            ("rbd", &volume.rbd, "image"),
        ];
        for (kind, source, field) in sources {
            let Some(source) = source else { continue };
            let (pool, name) = (source.text("pool"), source.text(field));
            // Amazon's disks are never shared, not even by readers.
            let reads = source.flag("readOnly") && kind != "aws";
            // Those of Ceph are the same if they have a monitor in common.
            match source.items("monitors") {
                [] => disks.push((format!("{kind}/{name}"), reads)),
                monitors => disks.extend(
                    monitors
                        .iter()
                        .filter_map(Value::as_str)
                        .map(|monitor| (format!("{kind}/{monitor}/{pool}/{name}"), reads)),
                ),
            }
        }
    }
    disks
}

/// Needs that are known, each with a number.
///
/// Labels that nobody looks at make no difference, and are left out: pods that are only numbered by them are alike. When
/// somebody begins to look at a label, the pods that have it get other shapes.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    /// Labels that somebody looks at, or has looked at.
    looked_at: BTreeSet<String>,
    known: std::collections::HashMap<Arc<Needs>, Shape>,
    next: u32,
    /// How many there may be before those that nobody has any more are looked for.
    limit: usize,
}

/// Needs and their number: comparing numbers is enough.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub number: u32,
    pub needs: Arc<Needs>,
}

impl std::ops::Deref for Shape {
    type Target = Needs;
    fn deref(&self) -> &Needs {
        &self.needs
    }
}

impl Shapes {
    /// Labels that the needs look at and nobody has before: from now on they count.
    pub(crate) fn begin_to_look_at(&mut self, needs: &Needs) -> BTreeSet<String> {
        let fresh = needs.looks_at().filter(|key| !self.looked_at.contains(*key));
        let fresh: BTreeSet<String> = fresh.map(str::to_owned).collect();
        self.looked_at.extend(fresh.iter().cloned());
        fresh
    }

    /// Whether labels are the same to whoever looks at labels.
    pub(crate) fn are_alike(&self, one: &Labels, other: &Labels) -> bool {
        let differs = |key: &String| one.get(key) != other.get(key) && self.looked_at.contains(key);
        one == other || !one.keys().chain(other.keys()).any(differs)
    }

    /// The shape of a pod that had another one before some of its labels were looked at.
    pub(crate) fn again(&mut self, pod: &Pod, before: &Needs) -> Shape {
        self.of(Needs { labels: pod.metadata.labels.clone(), ..before.clone() })
    }

    pub(crate) fn of(&mut self, mut needs: Needs) -> Shape {
        needs.labels.retain(|key, _| self.looked_at.contains(key));
        if let Some(shape) = self.known.get(&needs) {
            return shape.clone();
        }
        if self.known.len() >= self.limit {
            // Two references are those of the table itself.
            self.known.retain(|_, shape| Arc::strong_count(&shape.needs) > 2);
            self.limit = (self.known.len() * 2).max(1024);
        }
        let shape = Shape { number: self.next, needs: Arc::new(needs) };
        self.next += 1;
        self.known.insert(shape.needs.clone(), shape.clone());
        shape
    }
}
