//! What a worker said, and whether a store that was opened after its death agrees.
//!
//! For each key the store must hold what was acknowledged last, or something newer that was sent and never answered.
//! Every change in its history must be somebody's, whole and at the revision that was acknowledged.

use super::contents::{Contents, State};
use super::process::Life;
use super::protocol::{Action, FLEETING, Line};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, HashSet};
use store::{Change, Revision};

type Effects = Vec<(Bytes, Option<Bytes>)>;

#[derive(Debug, Default)]
pub struct Ledger {
    /// What was in the store before, and at which revision.
    before: State,
    start: Revision,
    sent: HashMap<u64, Action>,
    acknowledged: BTreeMap<u64, Revision>,
    /// Known to have changed nothing.
    conflicts: HashSet<u64>,
    /// The greatest revision whose compaction was acknowledged.
    compacted: Revision,
    /// Why the store failed, and what was sent after it had said so.
    pub failure: Option<String>,
    sent_after_failure: HashSet<u64>,
    pub unopened: Option<String>,
    refusals: Vec<String>,
}

impl Ledger {
    /// The book of a worker that began with these contents.
    pub fn new(before: &Contents, life: &Life) -> Ledger {
        let mut ledger = Ledger {
            before: before.state.clone(),
            start: before.revision,
            compacted: before.compacted,
            ..Ledger::default()
        };
        life.lines.iter().for_each(|line| ledger.enter(line));
        ledger
    }

    fn enter(&mut self, line: &Line) {
        match line.clone() {
            Line::Sent { operation, action } => {
                self.sent.insert(operation, action);
                if self.failure.is_some() {
                    self.sent_after_failure.insert(operation);
                }
            }
            Line::Acknowledged { operation, revision } => drop(self.acknowledged.insert(operation, revision)),
            Line::Conflict { operation } => drop(self.conflicts.insert(operation)),
            Line::Refused { error, .. } => self.refusals.push(error),
            Line::Compacted(revision) => self.compacted = self.compacted.max(revision),
            Line::Failed(error) => self.failure = Some(error),
            Line::Unopened(error) => self.unopened = Some(error),
            Line::Ready(_) | Line::Done => {}
        }
    }

    pub fn acknowledgements(&self) -> usize {
        self.acknowledged.len()
    }

    /// The greatest revision that was acknowledged, or the one from the beginning.
    pub fn acknowledged(&self) -> Revision {
        self.acknowledged.values().copied().max().unwrap_or(self.start).max(self.start)
    }

    /// What the worker was told instead of an acknowledgement.
    pub fn refusals(&self) -> &[String] {
        &self.refusals
    }

    /// Whether the store holds what was acknowledged, and nothing that was not at least sent.
    pub fn check(&self, contents: &Contents) -> Result<(), String> {
        contents.check()?;
        self.check_revisions(contents)?;
        self.check_state(contents)?;
        self.check_history(contents)
    }

    /// Whether nothing was acknowledged that was sent after the store had failed.
    pub fn check_silence(&self) -> Result<(), String> {
        match self.sent_after_failure.iter().find(|operation| self.acknowledged.contains_key(operation)) {
            Some(operation) => Err(format!("{operation} was acknowledged after {:?}", self.failure)),
            None => Ok(()),
        }
    }

    fn check_revisions(&self, contents: &Contents) -> Result<(), String> {
        if contents.revision < self.acknowledged() {
            return Err(format!("the store is at {}, but {} was acknowledged", contents.revision, self.acknowledged()));
        }
        if contents.compacted < self.compacted {
            return Err(format!("compacted at {}, but {} was acknowledged", contents.compacted, self.compacted));
        }
        let mut used = HashMap::new();
        for (operation, revision) in &self.acknowledged {
            let puts = !matches!(self.sent[operation], Action::Delete { .. } | Action::DeleteGroup { .. });
            if puts && *revision <= self.start {
                return Err(format!("{operation} got revision {revision}, which was used before {}", self.start));
            }
            if puts && let Some(other) = used.insert(revision, operation) {
                return Err(format!("{operation} and {other} both got revision {revision}"));
            }
        }
        Ok(())
    }

    /// Sent, and neither acknowledged nor known to have changed nothing.
    fn undecided(&self) -> impl Iterator<Item = (u64, &Action)> {
        let open = |operation: &u64| !self.acknowledged.contains_key(operation) && !self.conflicts.contains(operation);
        self.sent.iter().map(|(operation, action)| (*operation, action)).filter(move |(operation, _)| open(operation))
    }

    fn check_state(&self, contents: &Contents) -> Result<(), String> {
        let mut last: BTreeMap<Bytes, (Revision, Option<Bytes>)> = self
            .before
            .values()
            .map(|item| (item.key.clone(), (item.mod_revision, Some(item.value.clone()))))
            .collect();
        for (operation, revision) in &self.acknowledged {
            for (key, value) in self.sent[operation].effects(*operation) {
                match last.get(&key) {
                    Some((newest, _)) if newest > revision => {}
                    _ => drop(last.insert(key, (*revision, value))),
                }
            }
        }
        let mut possible: BTreeMap<Bytes, Vec<Option<Bytes>>> = BTreeMap::new();
        for (key, value) in self.undecided().flat_map(|(operation, action)| action.effects(operation)) {
            possible.entry(key).or_default().push(value);
        }
        let keys: HashSet<&Bytes> = last.keys().chain(possible.keys()).chain(contents.state.keys()).collect();
        for key in keys {
            let (revision, value) = last.get(key).cloned().unwrap_or_default();
            let possible = possible.get(key).map_or(&[][..], Vec::as_slice);
            let (found, holds) = match contents.state.get(key) {
                Some(item) => {
                    let found = Some(item.value.clone());
                    let known = item.mod_revision == revision && found == value;
                    let newer = item.mod_revision > revision && item.mod_revision > self.start;
                    let holds = known || newer && possible.contains(&found);
                    (Some(item), holds)
                }
                None => (None, value.is_none() || possible.contains(&None) || key.starts_with(FLEETING.as_bytes())),
            };
            if !holds {
                return Err(format!(
                    "{key:?} is {found:?}; acknowledged at {revision} was {value:?}, possible is {possible:?}"
                ));
            }
        }
        Ok(())
    }

    fn check_history(&self, contents: &Contents) -> Result<(), String> {
        let by_revision: HashMap<Revision, Vec<u64>> =
            self.acknowledged.iter().fold(HashMap::new(), |mut by_revision, (operation, revision)| {
                by_revision.entry(*revision).or_insert_with(Vec::new).push(*operation);
                by_revision
            });
        let undecided: HashSet<Effects> =
            self.undecided().map(|(operation, action)| sorted(action.effects(operation))).collect();
        for changes in contents.revisions().filter(|changes| changes[0].revision > self.start) {
            let revision = changes[0].revision;
            let made: Effects = sorted(changes.iter().map(effect).collect());
            let acknowledged = by_revision.get(&revision).map_or(&[][..], Vec::as_slice);
            let effects = |operation: &u64| sorted(self.sent[operation].effects(*operation));
            // A deletion of what is not there is acknowledged at the revision it finds.
            let puts = |operation: &&u64| effects(operation).iter().any(|(_, value)| value.is_some());
            if let Some(put) = acknowledged.iter().find(puts) {
                if effects(put) != made {
                    return Err(format!("{put} was acknowledged at {revision}, where {changes:?} happened"));
                }
                continue;
            }
            let expired = made.iter().all(|(key, value)| value.is_none() && key.starts_with(FLEETING.as_bytes()));
            let known = acknowledged.iter().any(|operation| effects(operation) == made);
            if !known && !expired && !undecided.contains(&made) {
                return Err(format!("nobody made {changes:?}"));
            }
        }
        Ok(())
    }
}

fn effect(change: &Change) -> (Bytes, Option<Bytes>) {
    (change.key.clone(), change.current.as_ref().map(|item| item.value.clone()))
}

fn sorted(mut effects: Effects) -> Effects {
    effects.sort();
    effects
}
