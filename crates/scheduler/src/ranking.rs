//! Which node is best for pods of one shape.
//!
//! What holds for a node by itself is found out once and again when the node changes; what depends on other nodes is
//! a few sums over domains, kept up to date the same way. Choosing is then a walk over an array, however large the
//! cluster is and whatever the pods ask for. No node is left out: there is no sampling.

mod around;
mod compare;
mod regard;

use crate::cluster::{Cluster, NOWHERE, Resident, Slot, Spot};
use crate::devices::Devices;
use crate::filters::{self, Asked, Verdict};
use crate::needs::{Needs, Shape, Spread};
use crate::profile::Profile;
use crate::relation::{Relation, Shift};
use crate::scores::{Scores, score};
use crate::verdict::{Diagnosis, Plugin, Refusal};
use crate::volumes::Volumes;
use compare::{CLOSED, Scratch};
use kinds::Node;
use regard::{ByShape, Regard};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Ranking {
    pub shape: Shape,
    pub volumes: Volumes,
    pub devices: Devices,
    pub profile: Arc<Profile>,
    /// Up to where the log of the cluster has been followed; none before the first look.
    seen: Option<usize>,
    seats: Vec<Seat>,
    /// What the pod says about others: first spreading, then affinity, anti-affinity, likes.
    relations: Vec<Relation>,
    /// What others say about the pod, by topology: where it must not be, and where they would like it to be.
    repelled: Vec<Relation>,
    invited: Vec<Relation>,
    /// What pods of another shape mean for this one.
    regards: ByShape<Arc<Regard>>,
    /// The emptiest domain of each spread that is hard.
    minima: Vec<i64>,
    /// Whether the pod itself counts in each spread.
    itself: Vec<bool>,
    /// The only nodes that come into question, if the pod names them.
    only: Option<Vec<String>>,
    /// What nodes that are open come to by themselves; [`CLOSED`] for the others.
    totals: Vec<i64>,
    /// How many nodes are open, and how many of them have taints that would rather keep the pod away, something that it
    /// likes, or devices that it prefers to others.
    open: usize,
    /// How often a node was opened or closed.
    openings: u64,
    uneven_taints: usize,
    liked: usize,
    preferred: usize,
    scratch: Scratch,
}

/// What pods of a shape claim, looked up.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    pub volumes: Volumes,
    pub devices: Devices,
}

/// What is known of a node.
#[derive(Clone, Debug, Default)]
enum Seat {
    /// There is no such node.
    #[default]
    None,
    Refused(Box<Refusal>),
    Open(Scores),
}

/// What was found out about a node.
#[derive(Debug)]
pub(crate) struct Facts {
    seat: Seat,
    /// By relation; none if the node does not count.
    amounts: Vec<Option<i64>>,
    repels: Vec<(usize, i64)>,
    invites: Vec<(usize, i64)>,
}

impl Ranking {
    pub(crate) fn new(shape: Shape, claims: Claims, profile: Arc<Profile>, cluster: &mut Cluster) -> Self {
        let spread = shape.spread.iter().map(|spread| spread.topology.as_str());
        let topologies = spread.chain(shape.needs.terms().map(|term| term.topology.as_str()));
        let relations = topologies.map(|key| Relation::new(cluster.topology(key))).collect();
        let required = shape.required.as_ref().filter(|_| profile.filters_by(Plugin::NodeAffinity));
        let names = required.and_then(|required| {
            required.names().map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>())
        });
        Ranking {
            volumes: claims.volumes,
            devices: claims.devices,
            profile,
            seen: None,
            seats: Vec::new(),
            relations,
            repelled: Vec::new(),
            invited: Vec::new(),
            regards: ByShape::default(),
            minima: vec![0; shape.spread.len()],
            itself: shape.spread.iter().map(|spread| selects_itself(spread, &shape)).collect(),
            only: names,
            totals: Vec::new(),
            open: 0,
            openings: 0,
            uneven_taints: 0,
            liked: 0,
            preferred: 0,
            scratch: Scratch::default(),
            shape,
        }
    }

    /// Looks again at whatever has changed.
    pub(crate) fn update(&mut self, cluster: &Cluster) {
        self.seats.resize(cluster.slots() as usize, Seat::None);
        self.totals.resize(cluster.slots() as usize, CLOSED);
        let changed = self.seen.and_then(|seen| cluster.changed_since(seen));
        match changed {
            Some(changed) if changed.len() < self.seats.len() => {
                changed.iter().for_each(|slot| self.look(cluster, *slot));
            }
            _ => {
                self.regards.clear();
                (0..cluster.slots()).for_each(|slot| self.look(cluster, slot));
            }
        }
        self.seen = Some(cluster.now());
        let none = Shift { domain: NOWHERE, by: 0 };
        for (at, spread) in self.shape.spread.iter().enumerate().filter(|(_, spread)| spread.is_hard) {
            self.minima[at] = self.relations[at].minimum(spread.min_domains, none);
        }
    }

    fn look(&mut self, cluster: &Cluster, slot: Slot) {
        let facts = self.facts(cluster, cluster.spot(slot));
        let domain = |topology: usize| cluster.topology_at(topology).domain(slot);
        for (relation, amount) in self.relations.iter_mut().zip(&facts.amounts) {
            let domain = if amount.is_some() { domain(relation.topology) } else { NOWHERE };
            relation.set(slot, domain, amount.unwrap_or(0));
        }
        for (relations, said) in [(&mut self.repelled, &facts.repels), (&mut self.invited, &facts.invites)] {
            for relation in relations {
                let amount =
                    said.iter().filter(|(topology, _)| *topology == relation.topology).map(|(_, amount)| amount);
                relation.set(slot, domain(relation.topology), amount.sum());
            }
        }
        self.sit(slot, facts.seat);
    }

    fn sit(&mut self, slot: Slot, seat: Seat) {
        let at = slot as usize;
        let old = std::mem::replace(&mut self.seats[at], seat);
        self.openings += u64::from(matches!(old, Seat::Open(_)) != matches!(self.seats[at], Seat::Open(_)));
        if let Seat::Open(scores) = old {
            self.open -= 1;
            self.uneven_taints -= usize::from(scores.taints > 0);
            self.liked -= usize::from(scores.liked > 0);
            self.preferred -= usize::from(scores.devices > 0);
        }
        self.totals[at] = CLOSED;
        if let Seat::Open(scores) = &self.seats[at] {
            self.open += 1;
            self.uneven_taints += usize::from(scores.taints > 0);
            self.liked += usize::from(scores.liked > 0);
            self.preferred += usize::from(scores.devices > 0);
            self.totals[at] = scores.total;
        }
    }

    /// What holds for a node, as it is or as it could be.
    pub(crate) fn facts(&mut self, cluster: &Cluster, spot: &Spot) -> Facts {
        let mut facts = Facts {
            seat: Seat::None,
            amounts: vec![None; self.relations.len()],
            repels: Vec::new(),
            invites: Vec::new(),
        };
        let Some(node) = &spot.node else { return facts };
        facts.seat = self.seat(cluster, spot, node);
        self.eligible(node, &mut facts.amounts);
        for resident in &spot.residents {
            let regard = self.regard(cluster, resident);
            let spreads = self.shape.spread.len();
            let counted = facts.amounts.iter_mut().zip(&regard.relations).enumerate();
            for (at, (amount, adds)) in counted.filter(|(_, (_, adds))| **adds != 0) {
                // Whoever is on the way out does not count for how evenly pods are spread.
                let leaving = || at < spreads && resident.pod.metadata.is_being_deleted();
                if let Some(amount) = amount.as_mut().filter(|_| !leaving()) {
                    *amount += adds;
                }
            }
            facts.repels.extend(&regard.repels);
            facts.invites.extend(&regard.invites);
        }
        facts
    }

    fn judge(&self, cluster: &Cluster, spot: &Spot, node: &Node) -> Verdict {
        let (volumes, devices) = (&self.volumes, &self.devices);
        let asked = Asked { needs: &self.shape, volumes, devices, profile: &self.profile, cluster };
        judge_with_nominated(asked, spot, node)
    }

    fn seat(&self, cluster: &Cluster, spot: &Spot, node: &Node) -> Seat {
        if let Err(refusal) = self.judge(cluster, spot, node) {
            return Seat::Refused(Box::new(refusal));
        }
        let devices = self.devices.score(cluster, spot, node);
        Seat::Open(Scores { devices, ..score(&self.shape, &self.profile, cluster, spot, node) })
    }

    /// Which relations a node counts in, with nothing in them yet.
    fn eligible(&self, node: &Node, amounts: &mut [Option<i64>]) {
        let needs: &Needs = &self.shape;
        let has = |key: &String| node.metadata.labels.contains_key(key);
        let with_all = |hard: bool| {
            let mut alike = needs.spread.iter().filter(|spread| spread.is_hard == hard && !spread.is_default);
            alike.all(|spread| has(&spread.topology))
        };
        let (hard, soft) = (with_all(true), with_all(false));
        for (spread, amount) in needs.spread.iter().zip(amounts.iter_mut()) {
            let complete = if spread.is_hard { hard } else { soft };
            let counts = complete
                && (!spread.honors_affinity || filters::is_wanted(needs, node))
                && (!spread.honors_taints || filters::tolerates_all(needs, node));
            *amount = counts.then_some(0);
        }
        amounts[needs.spread.len()..].fill(Some(0));
    }

    fn regard(&mut self, cluster: &Cluster, resident: &Resident) -> Arc<Regard> {
        if let Some(regard) = self.regards.get(&resident.shape.number) {
            return regard.clone();
        }
        let regard = Arc::new(Regard::of(&self.shape, &self.profile, &resident.shape, cluster));
        for (relations, said) in [(&mut self.repelled, &regard.repels), (&mut self.invited, &regard.invites)] {
            for (topology, _) in said {
                if !relations.iter().any(|relation| relation.topology == *topology) {
                    relations.push(Relation::new(*topology));
                }
            }
        }
        self.regards.insert(resident.shape.number, regard.clone());
        regard
    }

    /// Whether a node does, with everything else as it is.
    pub(crate) fn does(&self, cluster: &Cluster, slot: Slot, facts: Option<&Facts>) -> Verdict {
        match facts.map_or_else(|| self.seats.get(slot as usize), |facts| Some(&facts.seat)) {
            Some(Seat::Open(_)) => self.stands(cluster, slot, facts),
            Some(Seat::Refused(refusal)) => Err((**refusal).clone()),
            Some(Seat::None) | None => Err(Refusal::firm(Plugin::NodeAffinity, "there is no such node")),
        }
    }

    fn shift(&self, cluster: &Cluster, slot: Slot, at: usize, facts: Option<&Facts>) -> Shift {
        let nothing = Shift { domain: NOWHERE, by: 0 };
        let relation = &self.relations[at];
        facts.map_or(nothing, |facts| Shift {
            domain: cluster.topology_at(relation.topology).domain(slot),
            by: facts.amounts[at].unwrap_or(0) - relation.share(slot),
        })
    }

    /// Whether no node does by itself, whatever is around.
    pub(crate) fn is_closed(&self) -> bool {
        self.open == 0
    }

    /// Whether a node does by itself, as it is now.
    pub(crate) fn would_open(&self, cluster: &Cluster, slot: Slot) -> bool {
        let spot = cluster.spot(slot);
        let does = |spot: &Spot| spot.node.as_ref().is_some_and(|node| self.judge(cluster, spot, node).is_ok());
        if spot.nominated.is_empty() {
            return does(spot);
        }
        // Room that is kept for pods like these helps them.
        let mut without = spot.clone();
        without.nominated.retain(|other| other.shape.number != self.shape.number);
        does(&without)
    }

    /// Whether it makes a difference where pods of another shape are.
    pub(crate) fn cares_about(&mut self, cluster: &Cluster, other: &Shape) -> bool {
        let regard = Regard::of(&self.shape, &self.profile, other, cluster);
        regard.relations.iter().any(|amount| *amount != 0) || !regard.repels.is_empty()
    }

    /// Why there is none.
    pub(crate) fn diagnose(&self, cluster: &Cluster) -> Diagnosis {
        let mut diagnosis = Diagnosis { nodes: cluster.len(), ..Diagnosis::default() };
        self.verdicts(cluster).filter_map(|(_, verdict)| verdict.err()).for_each(|refusal| diagnosis.count(&refusal));
        diagnosis
    }

    /// What is to be said of each node.
    pub(crate) fn verdicts<'a>(&'a self, cluster: &'a Cluster) -> impl Iterator<Item = (&'a str, Verdict)> {
        let passed_over = move |name: &str| self.only.as_ref().is_some_and(|only| !only.iter().any(|one| one == name));
        let elsewhere = Refusal::firm(Plugin::NodeAffinity, "node(s) didn't satisfy plugin(s) [NodeAffinity]");
        let there = (0..cluster.slots()).filter(|slot| cluster.spot(*slot).node.is_some());
        there.map(move |slot| match cluster.spot(slot).name.as_str() {
            name if passed_over(name) => (name, Err(elsewhere.clone())),
            name => (name, self.does(cluster, slot, None)),
        })
    }

    /// The nodes that could do if pods left them.
    pub(crate) fn resolvable(&self, cluster: &Cluster) -> Vec<Slot> {
        let could = |slot: &Slot| match self.does(cluster, *slot, None) {
            Err(refusal) => refusal.resolvable,
            Ok(()) => false,
        };
        match &self.only {
            Some(names) => names.iter().filter_map(|name| cluster.slot(name)).filter(could).collect(),
            None => (0..cluster.slots()).filter(could).collect(),
        }
    }
}

fn selects_itself(spread: &Spread, needs: &Needs) -> bool {
    crate::needs::selects(spread.selector.as_ref(), &needs.labels)
}

/// Pods that are to come to a node, and matter at least as much, have to fit beside this one; and this one without
/// them, since they may yet go elsewhere.
fn judge_with_nominated(asked: Asked<'_>, spot: &Spot, node: &Node) -> Verdict {
    let before = |resident: &&Resident| resident.shape.priority >= asked.needs.priority;
    if spot.nominated.iter().any(|resident| before(&resident)) {
        let mut with = spot.clone();
        spot.nominated.iter().filter(before).for_each(|resident| with.take(resident.clone()));
        filters::judge(asked, &with, node)?;
    }
    filters::judge(asked, spot, node)
}
