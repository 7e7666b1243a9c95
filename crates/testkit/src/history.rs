//! A linearizability check for histories of concurrent calls.
//!
//! Deciding linearizability is hard in general and easy here, because answers carry revisions: the store itself says
//! in which order it claims things to have happened. So replay the calls in that order, compare every answer with
//! the replayed state, and check that the claimed order agrees with real time. Only calls without an answer need a
//! search, and since every written value is unique, the store's own log of changes tells whether they happened.

use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use store::{Change, Revision};
use tokio::time::Instant;

/// One call of one client.
#[derive(Clone, Debug)]
pub struct Call {
    pub key: Bytes,
    pub start: Instant,
    pub end: Instant,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// A put of a value that no other call writes.
    Write { value: Bytes, condition: Condition, answer: Answer },
    /// A read and what it returned.
    Read { revision: Revision, found: Option<Found> },
}

/// What a write asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    None,
    ModifiedAt(Option<Revision>),
}

#[derive(Clone, Debug)]
pub enum Answer {
    Committed(Revision),
    Conflict {
        revision: Revision,
        found: Option<Found>,
    },
    /// No answer: it may have happened or not, at any time since.
    Unknown,
}

/// A value and where it was put.
pub type Found = (Revision, Bytes);

/// Checks calls against the log of all changes since `base`, where every key they touch was absent.
///
/// # Panics
/// With what is wrong and the call it is wrong for.
pub fn check(calls: &[Call], log: &[Change], base: Revision) {
    let happened = revisions(calls, log);
    let states = replay(log, base);
    for (call, revision) in calls.iter().zip(&happened) {
        check_answer(call, *revision, &states);
    }
    check_real_time(calls, &happened);
}

/// Where each call took effect: none for an unanswered write that did not.
fn revisions(calls: &[Call], log: &[Change]) -> Vec<Option<Revision>> {
    let mut logged: HashMap<Bytes, Revision> = HashMap::new();
    for change in log {
        let value = change.current.as_ref().expect("the calls delete nothing").value.clone();
        assert!(logged.insert(value, change.revision).is_none(), "a write happened twice: {change:?}");
    }
    let mut claimed = 0;
    let mut happened = Vec::new();
    for call in calls {
        happened.push(match &call.kind {
            Kind::Read { revision, .. } | Kind::Write { answer: Answer::Conflict { revision, .. }, .. } => {
                Some(*revision)
            }
            Kind::Write { value, answer: Answer::Committed(revision), .. } => {
                claimed += 1;
                assert_eq!(logged.get(value), Some(revision), "an acknowledged write is not in the log: {call:?}");
                Some(*revision)
            }
            Kind::Write { value, answer: Answer::Unknown, .. } => {
                claimed += usize::from(logged.contains_key(value));
                logged.get(value).copied()
            }
        });
        if let Kind::Write { value, answer: Answer::Conflict { .. }, .. } = &call.kind {
            assert!(!logged.contains_key(value), "a write that was refused is in the log: {call:?}");
        }
    }
    assert_eq!(claimed, logged.len(), "the log has changes that nobody made");
    happened
}

/// The values of each key, by the revision at which they were put.
fn replay(log: &[Change], base: Revision) -> HashMap<Bytes, BTreeMap<Revision, Bytes>> {
    assert!(log.is_sorted_by(|a, b| a.revision < b.revision), "the log is out of order");
    let mut states: HashMap<Bytes, BTreeMap<Revision, Bytes>> = HashMap::new();
    for change in log {
        assert!(change.revision > base);
        let item = change.current.as_ref().expect("the calls delete nothing");
        states.entry(change.key.clone()).or_default().insert(change.revision, item.value.clone());
    }
    states
}

fn check_answer(call: &Call, revision: Option<Revision>, states: &HashMap<Bytes, BTreeMap<Revision, Bytes>>) {
    let Some(revision) = revision else { return };
    let at = |revision: Revision| {
        let newest = states.get(&call.key)?.range(..=revision).next_back()?;
        Some((*newest.0, newest.1.clone()))
    };
    match &call.kind {
        Kind::Read { found, .. } => assert_eq!(found, &at(revision), "a wrong read: {call:?}"),
        Kind::Write { condition, answer: Answer::Conflict { found, .. }, .. } => {
            assert_eq!(found, &at(revision), "a conflict shows the wrong value: {call:?}");
            let modified = found.as_ref().map(|(revision, _)| *revision);
            assert_ne!(condition, &Condition::ModifiedAt(modified), "refused though its condition held: {call:?}");
        }
        Kind::Write { condition: Condition::ModifiedAt(expected), .. } => {
            let before = at(revision.before()).map(|(revision, _)| revision);
            assert_eq!(expected, &before, "committed though its condition did not hold: {call:?}");
        }
        Kind::Write { condition: Condition::None, .. } => {}
    }
}

/// A call that ended before another began comes before it in the claimed order too.
fn check_real_time(calls: &[Call], happened: &[Option<Revision>]) {
    // A write stands at its revision, whatever was read at that revision comes right behind it.
    let place = |call: &Call, revision: Revision| match &call.kind {
        Kind::Write { answer: Answer::Committed(_) | Answer::Unknown, .. } => 2 * revision.0,
        Kind::Read { .. } | Kind::Write { .. } => 2 * revision.0 + 1,
    };
    let answered = |call: &Call| !matches!(call.kind, Kind::Write { answer: Answer::Unknown, .. });
    let placed: Vec<_> =
        calls.iter().zip(happened).filter_map(|(call, at)| Some((call, place(call, (*at)?)))).collect();
    let mut by_start: Vec<_> = placed.iter().collect();
    by_start.sort_by_key(|(call, _)| call.start);
    let mut by_end: Vec<_> = placed.iter().filter(|(call, _)| answered(call)).collect();
    by_end.sort_by_key(|(call, _)| call.end);
    let (mut ended, mut latest) = (by_end.into_iter().peekable(), None::<&(&Call, u64)>);
    for begun in by_start {
        while let Some(over) = ended.next_if(|(call, _)| call.end < begun.0.start) {
            latest = latest.filter(|latest| latest.1 >= over.1).or(Some(over));
        }
        if let Some(latest) = latest {
            assert!(
                latest.1 <= begun.1,
                "{:?} was over before {:?} began, but claims to come later",
                latest.0,
                begun.0
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ambient::Clock;
    use std::time::Duration;

    fn call(start: u64, end: u64, kind: Kind) -> Call {
        let zero = Clock::system().monotonic();
        Call { key: "k".into(), start: zero + Duration::from_secs(start), end: zero + Duration::from_secs(end), kind }
    }

    fn read(start: u64, end: u64, revision: u64, found: Option<Found>) -> Call {
        call(start, end, Kind::Read { revision: Revision(revision), found })
    }

    #[test]
    #[should_panic(expected = "claims to come later")]
    fn a_read_of_the_past_is_caught() {
        check(&[read(0, 1, 7, None), read(10, 11, 6, None)], &[], Revision(0));
    }

    #[test]
    fn overlapping_reads_may_be_answered_in_any_order() {
        check(&[read(0, 10, 7, None), read(5, 11, 6, None)], &[], Revision(0));
    }

    #[test]
    #[should_panic(expected = "an acknowledged write is not in the log")]
    fn a_lost_write_is_caught() {
        let answer = Answer::Committed(Revision(1));
        check(&[call(0, 1, Kind::Write { value: "v".into(), condition: Condition::None, answer })], &[], Revision(0));
    }

    #[test]
    #[should_panic(expected = "a wrong read")]
    fn a_value_from_nowhere_is_caught() {
        check(&[read(0, 1, 7, Some((Revision(7), "v".into())))], &[], Revision(0));
    }
}
