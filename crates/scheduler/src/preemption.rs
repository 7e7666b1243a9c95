//! Which pods would have to go for one that matters more, and where that does least harm.

use crate::cluster::{Cluster, Resident, Slot, Spot};
use crate::profile::Candidates;
use crate::ranking::Ranking;
use crate::verdict::{Refusal, summary};
use kinds::{Object, Pod, PodDisruptionBudget, Time};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node, and the pods that have to leave it.
#[derive(Clone, Debug)]
pub struct Room {
    pub node: String,
    /// The most important one first.
    pub victims: Vec<Arc<Object<Pod>>>,
    /// How many of them a budget protects.
    violations: usize,
    /// Pods that were to come here and matter less: they have to look again.
    pub unseated: Vec<Arc<Object<Pod>>>,
}

/// Why no room is made.
#[derive(Debug)]
pub(crate) enum NoRoom {
    /// The profile has none made.
    Off,
    /// Nobody has to go for this pod, or not yet.
    NotEligible(&'static str),
    Nowhere(String),
}

impl NoRoom {
    pub(crate) fn message(self) -> Option<String> {
        match self {
            NoRoom::Off => None,
            NoRoom::NotEligible(why) => Some(format!("preemption: not eligible due to {why}.")),
            NoRoom::Nowhere(why) => Some(format!("preemption: {why}")),
        }
    }
}

/// Finds room for the pod of a ranking that says that no node does.
pub(crate) fn make_room(ranking: &mut Ranking, cluster: &Cluster, pod: &Pod) -> Result<Room, NoRoom> {
    let candidates = ranking.profile.preemption.ok_or(NoRoom::Off)?;
    if !ranking.shape.preempts {
        return Err(NoRoom::NotEligible("preemptionPolicy=Never"));
    }
    if waits_for_victims(ranking, cluster, pod) {
        return Err(NoRoom::NotEligible("a terminating pod on the nominated node"));
    }
    search(ranking, cluster, candidates).map_err(NoRoom::Nowhere)
}

const NO_VICTIMS: &str = "No preemption victims found for incoming pod";

fn search(ranking: &mut Ranking, cluster: &Cluster, candidates: Candidates) -> Result<Room, String> {
    let nodes = ranking.resolvable(cluster);
    let (rooms, mut reasons) = match cluster.has_lesser(ranking.shape.priority) {
        true => clear_some(ranking, cluster, &nodes, candidates),
        // Where everybody matters as much there is nobody to look for.
        false => (Vec::new(), BTreeMap::from([(NO_VICTIMS.to_owned(), nodes.len())])),
    };
    reasons.insert("Preemption is not helpful for scheduling".to_owned(), cluster.len() - nodes.len());
    reasons.retain(|_, nodes| *nodes > 0);
    let cheapest = rooms.into_iter().min_by_key(Room::cost);
    cheapest.ok_or_else(|| summary(cluster.len(), None, &reasons))
}

/// Finds room on as many nodes as are enough; and says why there is none on others.
fn clear_some(
    ranking: &mut Ranking,
    cluster: &Cluster,
    nodes: &[Slot],
    candidates: Candidates,
) -> (Vec<Room>, BTreeMap<String, usize>) {
    let budgets = Budgets::of(cluster);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut rooms: Vec<Room> = Vec::new();
    let enough = candidates.least.max(cluster.len() * candidates.percent / 100);
    for slot in nodes {
        match clear(ranking, cluster, *slot, &budgets) {
            Ok(room) => rooms.push(room),
            Err(refusal) => {
                for reason in refusal.reasons {
                    *reasons.entry(reason.into_owned()).or_default() += 1;
                }
            }
        }
        // Enough, unless each would break a budget.
        if rooms.len() >= enough && rooms.iter().any(|room| room.violations == 0) {
            break;
        }
    }
    (rooms, reasons)
}

impl Room {
    /// First budgets, then how important the most important victim is, all of them, how many, and how long they have
    /// been running.
    fn cost(&self) -> (usize, i32, i64, usize, Reverse<Option<Time>>, String) {
        let priority = |pod: &Arc<Object<Pod>>| pod.spec.priority.unwrap_or(0);
        let highest = self.victims.iter().map(priority).max().unwrap_or(i32::MIN);
        // Every victim adds to the sum, even those of negative priority.
        let sum = self.victims.iter().map(|pod| i64::from(priority(pod)) + i64::from(i32::MAX) + 1).sum();
        let longest =
            self.victims.iter().filter(|pod| priority(pod) == highest).filter_map(|pod| pod.status.start_time);
        (self.violations, highest, sum, self.victims.len(), Reverse(longest.min()), self.node.clone())
    }
}

/// Whether pods have been asked to leave for this one, and are about to.
pub(crate) fn waits_for_victims(ranking: &Ranking, cluster: &Cluster, pod: &Pod) -> bool {
    let Some(slot) = cluster.slot(&pod.status.nominated_node_name) else { return false };
    let could = |refusal: Refusal| refusal.resolvable;
    let leaving = |resident: &Resident| {
        let target = resident.pod.condition("DisruptionTarget");
        let preempted = target.is_some_and(|is| is.status == "True" && is.reason == "PreemptionByScheduler");
        resident.shape.priority < ranking.shape.priority && resident.pod.metadata.is_being_deleted() && preempted
    };
    ranking.does(cluster, slot, None).err().is_none_or(could) && cluster.spot(slot).residents.iter().any(leaving)
}

/// The fewest and least important pods that have to leave a node.
fn clear(ranking: &mut Ranking, cluster: &Cluster, slot: Slot, budgets: &Budgets) -> Result<Room, Refusal> {
    let spot = cluster.spot(slot);
    let priority = ranking.shape.priority;
    let mut lesser: Vec<Resident> =
        spot.residents.iter().filter(|one| one.shape.priority < priority).cloned().collect();
    if lesser.is_empty() {
        return Err(Refusal::firm(crate::verdict::Plugin::NodeResourcesFit, NO_VICTIMS));
    }
    let mut without: Spot = spot.clone();
    drop(without.release(|resident| resident.shape.priority < priority));
    let does = |ranking: &mut Ranking, spot: &Spot| {
        let facts = ranking.facts(cluster, spot);
        ranking.does(cluster, slot, Some(&facts))
    };
    does(ranking, &without)?;
    lesser.sort_by_key(|resident| importance(&resident.pod));
    let (violating, harmless) = budgets.split(lesser);
    let protected = violating.len();
    let mut victims = Vec::new();
    let mut violations = 0;
    for (at, resident) in violating.into_iter().chain(harmless).enumerate() {
        let mut with = without.clone();
        with.take(resident.clone());
        if does(ranking, &with).is_ok() {
            without = with;
        } else {
            violations += usize::from(at < protected);
            victims.push(resident.pod);
        }
    }
    victims.sort_by_key(importance);
    let unseated = spot.nominated.iter().filter(|one| one.shape.priority < priority).map(|one| one.pod.clone());
    Ok(Room { node: spot.name.clone(), victims, violations, unseated: unseated.collect() })
}

/// Sorts the most important first: by priority, then by how long it has been running.
fn importance(pod: &Arc<Object<Pod>>) -> (Reverse<i32>, bool, Option<Time>, String) {
    let start = pod.status.start_time;
    (Reverse(pod.spec.priority.unwrap_or(0)), start.is_none(), start, pod.metadata.uid.clone())
}

/// Budgets that protect pods.
#[derive(Debug)]
struct Budgets(Vec<Arc<Object<PodDisruptionBudget>>>);

impl Budgets {
    fn of(cluster: &Cluster) -> Self {
        Budgets(cluster.caches.of::<PodDisruptionBudget>().all())
    }

    /// Those whose loss would break a budget, if the ones before them were lost too; and the others.
    fn split(&self, residents: Vec<Resident>) -> (Vec<Resident>, Vec<Resident>) {
        let mut left: Vec<i32> = self.0.iter().map(|budget| budget.status.disruptions_allowed).collect();
        residents.into_iter().partition(|resident| {
            let mut violates = false;
            for (budget, left) in self.0.iter().zip(&mut left) {
                let pod = &resident.pod.metadata;
                let protects = budget.metadata.namespace == pod.namespace
                    && !pod.labels.is_empty()
                    && budget.spec.selector.matches(&pod.labels)
                    && !budget.status.disrupted_pods.contains_key(&pod.name);
                if protects {
                    *left -= 1;
                    violates |= *left < 0;
                }
            }
            violates
        })
    }
}
