//! How fast pods may be driven off nodes: less fast where many nodes are silent at once, since then it is rather the
//! network between them and us that has failed.

use super::health::Verdict;
use kinds::{Node, Object, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Nodes a second in a zone that is not well.
const SECONDARY_RATE: f64 = 0.01;
/// In a zone that is not well and as small as this, nobody is driven off.
const SMALL: usize = 50;
/// So large a part of a zone must be unwell for the zone to count as that, and so many nodes.
const UNHEALTHY: f64 = 0.55;
const MIN_UNHEALTHY: usize = 3;

/// A node, and what is to be thought of it.
pub(super) type Judged = (Arc<Object<Node>>, Verdict);

#[derive(Debug)]
pub(super) struct Zones {
    /// Nodes a second in a zone that is well.
    rate: f64,
    /// When the next node of each zone may be tainted.
    turns: BTreeMap<String, Time>,
    /// Zones with nodes whose turn has not come.
    waiting: BTreeSet<String>,
    /// Nodes whose turn has come, until they are well again.
    tainted: BTreeSet<String>,
    /// Every zone is dark: it is we who are cut off, and nothing is done to anybody.
    all_dark: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Well,
    Partial,
    Dark,
}

impl Zones {
    pub(super) fn new(rate: f64) -> Self {
        Zones { rate, turns: BTreeMap::new(), waiting: BTreeSet::new(), tainted: BTreeSet::new(), all_dark: false }
    }

    /// The nodes that may be tainted so that pods leave.
    pub(super) fn allow(&mut self, verdicts: &[Judged], now: Time) -> BTreeSet<String> {
        let mut zones: BTreeMap<String, Vec<&Judged>> = BTreeMap::new();
        for entry in verdicts {
            zones.entry(zone(&entry.0)).or_default().push(entry);
        }
        let states: BTreeMap<&String, State> = zones.iter().map(|(name, nodes)| (name, state(nodes))).collect();
        self.all_dark = !states.is_empty() && states.values().all(|state| *state == State::Dark);
        let unwell = |verdict: &Verdict| verdict.ready != "True";
        let names: BTreeSet<&str> = verdicts
            .iter()
            .filter(|(_, verdict)| unwell(verdict))
            .map(|(node, _)| node.metadata.name.as_str())
            .collect();
        self.tainted.retain(|name| names.contains(name.as_str()));
        self.waiting.clear();
        if self.all_dark {
            self.tainted.clear();
            return BTreeSet::new();
        }
        for (name, nodes) in &zones {
            let rate = match states[name] {
                // A zone that is all dark while others are not has failed as a whole: its pods are needed elsewhere.
                State::Well | State::Dark => self.rate,
                State::Partial if nodes.len() > SMALL => SECONDARY_RATE.min(self.rate),
                State::Partial => continue,
            };
            let pause = Duration::from_secs_f64(1.0 / rate);
            let turn = self.turns.entry(name.clone()).or_default();
            // Turns that came since the last look are caught up with; those that nobody needed before are lost.
            if now.since(*turn) > super::PERIOD {
                *turn = now;
            }
            for (node, _) in nodes.iter().filter(|(_, verdict)| unwell(verdict)) {
                if self.tainted.contains(&node.metadata.name) {
                    continue;
                }
                if *turn > now {
                    self.waiting.insert(name.clone());
                    break;
                }
                *turn = *turn + pause;
                self.tainted.insert(node.metadata.name.clone());
            }
        }
        self.tainted.clone()
    }

    /// How long until the next node may be tainted that waits for it.
    pub(super) fn next_turn(&self, now: Time) -> Option<Duration> {
        self.waiting.iter().filter_map(|zone| self.turns.get(zone)).map(|turn| turn.since(now)).min()
    }

    /// Whether it is rather we who are cut off.
    pub(super) fn are_all_dark(&self) -> bool {
        self.all_dark
    }
}

fn zone(node: &Node) -> String {
    let label = |name: &str| node.metadata.label(name);
    format!("{}:\u{0}:{}", label("topology.kubernetes.io/region"), label("topology.kubernetes.io/zone"))
}

fn state(nodes: &[&Judged]) -> State {
    let unwell = nodes.iter().filter(|(_, verdict)| verdict.ready != "True").count();
    match (nodes.len() - unwell, unwell) {
        (0, 1..) => State::Dark,
        (_, unwell) if unwell >= MIN_UNHEALTHY && unwell as f64 / nodes.len() as f64 >= UNHEALTHY => State::Partial,
        _ => State::Well,
    }
}
