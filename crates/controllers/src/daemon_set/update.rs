//! Replacing pods by those of a new template, a few nodes at a time: by deleting the old pod first, or, if the set may
//! surge, by starting the new one beside it.

use super::nodes::Fit;
use super::{Place, Steps, View};
use crate::workload::scaled;
use kinds::{Object, Pod};
use std::sync::Arc;

/// The pods of a node that are not on their way out.
struct Pair<'a> {
    name: &'a str,
    runs: bool,
    new: Option<&'a Arc<Object<Pod>>>,
    old: Option<&'a Arc<Object<Pod>>>,
}

pub(super) fn steps<'a>(view: &View<'a>) -> Steps<'a> {
    let wanted = view.places.iter().filter(|place| place.fit == Fit::Runs).count();
    let wanted = i32::try_from(wanted).unwrap_or(i32::MAX);
    let surge = view.surge(wanted);
    let considered = view.places.iter().filter(|place| place.fit == Fit::Runs || !place.pods.is_empty());
    let pairs: Vec<_> = considered.map(|place| pair(view, place)).collect();
    if surge > 0 {
        return beside(view, &pairs, surge, wanted);
    }
    let unavailable = scaled(&view.set.spec.update_strategy.rolling_update.max_unavailable, wanted, true);
    // If neither is allowed, there is one less for a while.
    in_place(view, &pairs, unavailable.max(1))
}

/// Several of either kind are pruned before anything is replaced.
fn pair<'a>(view: &View<'a>, place: &Place<'a>) -> Pair<'a> {
    let pods = || place.pods.iter().filter(|pod| !pod.metadata.is_being_deleted());
    Pair {
        name: place.name,
        runs: place.fit == Fit::Runs,
        new: pods().find(|pod| view.is_new(pod)).copied(),
        old: pods().find(|pod| !view.is_new(pod)).copied(),
    }
}

fn in_place<'a>(view: &View, pairs: &[Pair<'a>], allowed: i32) -> Steps<'a> {
    let mut steps = Steps::default();
    let mut candidates = Vec::new();
    let mut missing = 0_usize;
    for pair in pairs {
        match (pair.new, pair.old) {
            (None, Some(old)) if view.is_available(old) => candidates.push(old),
            (None, Some(old)) => {
                // It is not available anyway.
                missing += 1;
                steps.delete.push(old);
            }
            (Some(new), None) if view.is_available(new) => {}
            _ => missing += 1,
        }
    }
    let budget = usize::try_from(allowed).unwrap_or(0).saturating_sub(missing);
    steps.delete.extend(candidates.into_iter().take(budget));
    steps
}

fn beside<'a>(view: &View, pairs: &[Pair<'a>], surge: i32, wanted: i32) -> Steps<'a> {
    let mut steps = Steps::default();
    let (mut candidates, mut sunset) = (Vec::new(), Vec::new());
    let (mut surging, mut available) = (0_usize, 0_i32);
    for pair in pairs {
        let oldest = pair.old.or(pair.new);
        available += i32::from(oldest.is_some_and(|pod| view.is_available(pod)));
        let Some(old) = pair.old else { continue };
        match pair.new {
            Some(new) if view.is_available(new) => steps.delete.push(old),
            Some(_) => surging += 1,
            None => match (view.is_available(old), pair.runs) {
                (true, true) => candidates.push(pair.name),
                (true, false) => sunset.push(old),
                (false, true) => steps.create.push(pair.name),
                (false, false) => steps.delete.push(old),
            },
        }
    }
    let budget = usize::try_from(surge).unwrap_or(0).saturating_sub(surging);
    steps.create.extend(candidates.into_iter().take(budget));
    // A pod on a node that is to have none goes when there are enough without it.
    let spare = usize::try_from(available - wanted).unwrap_or(0);
    steps.delete.extend(sunset.into_iter().take(spare));
    steps
}
