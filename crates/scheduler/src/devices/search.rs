//! Which devices of a node do for some claims: the first combination that does, in an order that is always the same.
//!
//! Requests are seen to one after the other, and for each every combination of devices is tried until the rest works
//! out too. What a choice rules out, by constraints, counters or capacities, follows from what has been picked so far;
//! so going back is to forget the last pick, and there is nothing to undo.

use super::capacity;
use super::inventory::{Inventory, Offer, Pool, State};
use super::ledger::{Amounts, Ledger, PoolId, Use};
use super::request::{Alternative, Wanted};
use kinds::{Device, DeviceConstraint, Node};
use object::{Quantity, Value, View};
use std::collections::BTreeMap;

/// So many devices a claim can have.
const MAX_RESULTS: usize = 32;
/// After so many devices tried for one node the search is given up: there are claims for which it would never end.
const MAX_STEPS: usize = 100_000;

/// Why there is nothing for the claims on a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    Unavailable,
    /// Nor is it known what some pools have.
    InvalidPools,
    /// There is something wrong with a claim, a class or a slice.
    Error(String),
}

/// A device that a node can have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub pool: &'a Pool,
    pub offer: &'a Offer,
    pub device: &'a Device,
    at: usize,
    used: Option<&'a Use>,
}

/// A device for a claim.
#[derive(Debug)]
pub(super) struct Pick<'a> {
    pub claim: usize,
    pub alternative: &'a Alternative,
    pub candidate: Candidate<'a>,
    /// How much of it, if others can have the rest.
    pub share: Option<Amounts>,
    /// The place of the candidate.
    place: usize,
}

/// How many devices an alternative wants.
enum Count {
    Some(usize),
    /// These.
    All(Vec<usize>),
}

impl Count {
    fn len(&self) -> usize {
        match self {
            Count::Some(count) => *count,
            Count::All(places) => places.len(),
        }
    }
}

struct Search<'a> {
    claims: &'a [&'a Wanted],
    /// Requests of all claims, with the claim each belongs to.
    requests: Vec<(usize, &'a [Alternative])>,
    /// For each request and alternative.
    counts: Vec<Vec<Count>>,
    candidates: Vec<Candidate<'a>>,
    pools: Vec<&'a Pool>,
    inventory: &'a Inventory,
    ledger: &'a Ledger,
    /// What devices that are in use consume of the counters of a pool, once somebody has asked.
    consumed: BTreeMap<&'a PoolId, Counted<'a>>,
    picks: Vec<Pick<'a>>,
    steps: usize,
}

/// Devices for all claims, or none.
pub(super) fn search<'a>(
    inventory: &'a Inventory,
    ledger: &'a Ledger,
    node: &'a Node,
    claims: &'a [&'a Wanted],
) -> Result<Vec<Pick<'a>>, Failure> {
    let pools = inventory.reached_from(node);
    let mut candidates = Vec::new();
    for pool in pools.iter().filter(|pool| pool.state == State::Complete) {
        let uses = ledger.uses(&pool.id);
        for offer in &pool.offers {
            candidates.extend(offer.devices_for(node).map(|(at, device)| {
                let used = uses.and_then(|uses| uses.get(&device.name));
                Candidate { pool, offer, device, at, used }
            }));
        }
    }
    let of_claim = |(claim, wanted): (usize, &&'a Wanted)| wanted.requests.iter().map(move |one| (claim, &one[..]));
    let mut search = Search {
        claims,
        requests: claims.iter().enumerate().flat_map(of_claim).collect(),
        counts: Vec::new(),
        candidates,
        inventory,
        ledger,
        consumed: BTreeMap::new(),
        picks: Vec::new(),
        pools,
        steps: 0,
    };
    search.count().map_err(Failure::Error)?;
    match search.fill(0) {
        Ok(true) => Ok(search.picks),
        Ok(false) if search.pools.iter().any(|pool| pool.state == State::Invalid) => Err(Failure::InvalidPools),
        Ok(false) => Err(Failure::Unavailable),
        Err(Stop::Endless) => {
            let name = &node.metadata.name;
            Err(Failure::Error(format!("node {name}: timed out trying to allocate devices")))
        }
        Err(Stop::Error(message)) => Err(Failure::Error(message)),
    }
}

enum Stop {
    Error(String),
    Endless,
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Stop::Error(message)
    }
}

impl<'a> Search<'a> {
    /// Finds out how many devices are wanted at least, and whether that can be at all.
    fn count(&mut self) -> Result<(), String> {
        for at in 0..self.requests.len() {
            let (claim, alternatives) = self.requests[at];
            let counts = alternatives.iter().map(|alternative| self.count_of(claim, alternative));
            let counts = counts.collect::<Result<Vec<Count>, String>>()?;
            self.counts.push(counts);
        }
        for (claim, wanted) in self.claims.iter().enumerate() {
            let own = self.requests.iter().zip(&self.counts).filter(|((of, _), _)| *of == claim);
            let least: usize = own.map(|(_, counts)| counts.iter().map(Count::len).min().unwrap_or(0)).sum();
            if least > MAX_RESULTS {
                let key = &wanted.key;
                return Err(format!(
                    "claim {key}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
                ));
            }
        }
        Ok(())
    }

    fn count_of(&self, claim: usize, alternative: &Alternative) -> Result<Count, String> {
        if !alternative.takes_all() {
            return Ok(Count::Some(usize::try_from(alternative.asked.count).unwrap_or(usize::MAX)));
        }
        let wants =
            || format!("claim {}, request {}: asks for all devices", self.claims[claim].key, alternative.own_name());
        for pool in &self.pools {
            let state = match pool.state {
                State::Complete => continue,
                State::Incomplete => "being updated",
                State::Invalid => "invalid",
            };
            return Err(format!("{}, but resource pool {} is currently {state}", wants(), pool.id));
        }
        let mut places = Vec::new();
        for place in 0..self.candidates.len() {
            if selects(alternative, &self.candidates[place])? && self.share(alternative, place).is_some() {
                places.push(place);
            }
        }
        Ok(Count::All(places))
    }

    /// Sees to all requests from the one at `at`.
    fn fill(&mut self, at: usize) -> Result<bool, Stop> {
        let Some((claim, alternatives)) = self.requests.get(at).copied() else { return Ok(true) };
        for (nth, alternative) in alternatives.iter().enumerate() {
            let has = self.picks.iter().filter(|pick| pick.claim == claim).count();
            let wanted = self.counts[at][nth].len();
            // Whoever asks for all wants one at least.
            if wanted == 0 || has.saturating_add(wanted) > MAX_RESULTS {
                continue;
            }
            let before = self.picks.len();
            let is_filled = match &self.counts[at][nth] {
                Count::Some(_) => self.some(at, alternative, wanted, 0)?,
                Count::All(places) => {
                    let places = places.clone();
                    self.all(at, alternative, &places)?
                }
            };
            if is_filled {
                return Ok(true);
            }
            self.picks.truncate(before);
        }
        Ok(false)
    }

    /// So many more devices from a place on: their order makes no difference, so only one is tried.
    fn some(&mut self, at: usize, alternative: &'a Alternative, more: usize, from: usize) -> Result<bool, Stop> {
        if more == 0 {
            return self.fill(at + 1);
        }
        for place in from..self.candidates.len() {
            if self.take(at, alternative, place)? {
                if self.some(at, alternative, more - 1, place + 1)? {
                    return Ok(true);
                }
                self.picks.pop();
            }
        }
        Ok(false)
    }

    fn all(&mut self, at: usize, alternative: &'a Alternative, places: &[usize]) -> Result<bool, Stop> {
        for place in places {
            if !self.take(at, alternative, *place)? {
                return Ok(false);
            }
        }
        self.fill(at + 1)
    }

    /// Picks a device if that can be.
    fn take(&mut self, at: usize, alternative: &'a Alternative, place: usize) -> Result<bool, Stop> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(Stop::Endless);
        }
        let (claim, candidate) = (self.requests[at].0, self.candidates[place]);
        if !self.is_free(claim, alternative, place) || !selects(alternative, &candidate)? {
            return Ok(false);
        }
        let Some(share) = self.share(alternative, place) else { return Ok(false) };
        if !self.is_tolerated(alternative, &candidate) || !self.has_counters(alternative, place) {
            return Ok(false);
        }
        let constraints = &self.claims[claim].spec.constraints;
        if !constraints.iter().all(|constraint| self.allows(constraint, claim, alternative, &candidate)) {
            if !alternative.takes_all() {
                return Ok(false);
            }
            let (key, request, id) = (&self.claims[claim].key, alternative.own_name(), &candidate.pool.id);
            return Err(Stop::Error(format!(
                "claim {key}, request {request}: cannot add device {id}/{} because a claim constraint would not be \
                 satisfied",
                candidate.device.name
            )));
        }
        let share = Some(share).filter(|_| candidate.device.allow_multiple_allocations);
        self.picks.push(Pick { claim, alternative, candidate, share, place });
        Ok(true)
    }

    /// Whether a request tolerates all taints of a device.
    fn is_tolerated(&self, alternative: &Alternative, candidate: &Candidate<'_>) -> bool {
        let taints = self.inventory.taints(&candidate.pool.id, candidate.device);
        let mut taints = taints.filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"));
        taints.all(|taint| alternative.asked.tolerations.iter().any(|toleration| toleration.tolerates(taint)))
    }

    /// Whether nobody has it all. Administrators may look at what others have.
    fn is_free(&self, claim: usize, alternative: &Alternative, place: usize) -> bool {
        let candidate = &self.candidates[place];
        let mut picked = self.picks.iter().filter(|pick| pick.place == place);
        match alternative.asked.admin_access {
            true => !picked.any(|pick| pick.claim == claim),
            false => candidate.used.is_none_or(|used| used.whole == 0) && !picked.any(|pick| pick.share.is_none()),
        }
    }

    /// What it would take of a device; none if there is not as much.
    fn share(&self, alternative: &Alternative, place: usize) -> Option<Amounts> {
        let candidate = &self.candidates[place];
        let taken = capacity::taken(&alternative.asked.capacity.requests, candidate.device)?;
        let picked = self.picks.iter().filter(|pick| pick.place == place).filter_map(|pick| pick.share.as_ref());
        let others: Vec<&Amounts> = candidate.used.map(|used| &used.consumed).into_iter().chain(picked).collect();
        capacity::has_left(candidate.device, &taken, &others).then_some(taken)
    }

    /// Whether the counters of the pool allow one more device.
    fn has_counters(&mut self, alternative: &Alternative, place: usize) -> bool {
        let Candidate { pool, device, used, .. } = self.candidates[place];
        // A device consumes them once, however many share it; who only looks on, not at all.
        let is_in_use = used.is_some() || self.picks.iter().any(|pick| pick.place == place);
        if device.consumes_counters.is_empty() || is_in_use || alternative.asked.admin_access {
            return true;
        }
        let picked = self.picks.iter().filter(|pick| pick.candidate.pool.id == pool.id);
        let picked = picked.filter(|pick| pick.candidate.used.is_none() && !pick.alternative.asked.admin_access);
        let picked: BTreeMap<usize, &Device> = picked.map(|pick| (pick.place, pick.candidate.device)).collect();
        let mut wanted = count(picked.into_values().chain([device]));
        let ledger = self.ledger;
        let consumed = self.consumed.entry(&pool.id).or_insert_with(|| {
            let devices = pool.offers.iter().flat_map(|offer| &offer.slice.spec.devices);
            let uses = ledger.uses(&pool.id);
            count(devices.filter(|device| uses.is_some_and(|uses| uses.contains_key(&device.name))))
        });
        wanted.retain(|(set, _), _| device.consumes_counters.iter().any(|own| own.name == **set));
        wanted.into_iter().all(|((set, counter), amount)| {
            let there = pool.counters.get(set).and_then(|counters| counters.get(counter)).copied().unwrap_or_default();
            amount + consumed.get(&(set, counter)).copied().unwrap_or_default() <= there
        })
    }

    /// Whether a constraint allows a device beside those that the claim has got already.
    fn allows(
        &self,
        constraint: &DeviceConstraint,
        claim: usize,
        alternative: &Alternative,
        candidate: &Candidate<'_>,
    ) -> bool {
        let is_meant =
            |alternative: &Alternative| constraint.requests.is_empty() || alternative.is_meant_by(&constraint.requests);
        if !is_meant(alternative) {
            return true;
        }
        let (name, is_same) = match (&constraint.match_attribute, &constraint.distinct_attribute) {
            (Some(name), _) => (name, true),
            (None, Some(name)) => (name, false),
            (None, None) => return false,
        };
        let Some(value) = attribute(candidate, name) else { return false };
        let mut others = self.picks.iter().filter(|pick| pick.claim == claim && is_meant(pick.alternative));
        others.all(|pick| (attribute(&pick.candidate, name) == Some(value)) == is_same)
    }
}

/// Whether all selectors select a device.
fn selects(alternative: &Alternative, candidate: &Candidate<'_>) -> Result<bool, String> {
    for (whose, selection) in &alternative.selections {
        match selection.selects(candidate.offer, candidate.at) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => return Err(format!("{whose}: {error}")),
        }
    }
    Ok(true)
}

/// An attribute by its full name. Those of the driver itself need not say whose they are.
fn attribute<'a>(candidate: &Candidate<'a>, name: &str) -> Option<&'a Value> {
    let attributes = &candidate.device.attributes;
    let own = || name.strip_prefix(candidate.pool.id.driver.as_str())?.strip_prefix('/');
    let found = [Some(name), own()].into_iter().flatten().map(|name| attributes.at(name));
    found.into_iter().find(|value| !value.is_null())
}

/// Amounts by set and counter.
type Counted<'a> = BTreeMap<(&'a str, &'a str), Quantity>;

/// What devices consume together.
fn count<'a>(devices: impl Iterator<Item = &'a Device>) -> Counted<'a> {
    let mut counted = Counted::new();
    for set in devices.flat_map(|device| &device.consumes_counters) {
        for (name, counter) in &set.counters {
            let sum = counted.entry((set.name.as_str(), name.as_str())).or_default();
            *sum = *sum + counter.value;
        }
    }
    counted
}
