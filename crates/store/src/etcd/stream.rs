//! Complete revisions in order, as one etcd watch over its whole key space tells them.
//!
//! Every revision of etcd changes at least one key, so a watch of all keys hears of every revision. That makes it
//! certain how far a watch has come, and what is missing shows as a gap. Two things need care:
//! - etcd may split a large answer, even within a revision: such a revision is held back until it is complete.
//! - A watch that catches up reads what compaction has left. etcd ends it if it needs an older revision than the
//!   compacted one, but at that very revision it tells what little remains of it: no deletes, no values before. So
//!   what is caught up counts only once a read shows that the revision before it is still kept.

use super::connect::{Member, REQUEST_TIMEOUT};
use super::failure::Failure;
use super::keys::{NUL, from_wire, lacks_previous, to_wire};
use super::reads::{FIRST, Reads};
use crate::Revision;
use crate::data::Commit;
use etcd_client::proto::{PbEvent, PbWatchResponse};
use etcd_client::{WatchOptions, WatchStream};

/// Why a stream is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Interrupted {
    /// Some of what comes next is gone.
    Compacted,
    /// The member failed; another one may go on from here.
    Lost(String),
}

/// Which deliveries are held against a read before they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prove {
    Each,
    /// Only those that may have been caught up. etcd makes the others while it commits, from memory.
    CaughtUp,
}

pub(super) struct Stream {
    reads: Reads,
    member: Member,
    watch: WatchStream,
    prove: Prove,
    /// Nothing has been delivered yet, so whatever comes first may have been caught up.
    fresh: bool,
    assembly: Assembly,
}

impl Stream {
    /// A stream of everything after a revision.
    pub(super) async fn open(reads: &Reads, after: Revision, prove: Prove) -> Result<Stream, Interrupted> {
        let member = reads.members.current();
        let opened = tokio::time::timeout(REQUEST_TIMEOUT, open(&member, after.max(FIRST).next())).await;
        match opened.unwrap_or_else(|_| Err(Failure::Lost("no answer in time".to_owned()))) {
            Ok(watch) => {
                let assembly = Assembly { last: after.max(FIRST), partial: Vec::new() };
                Ok(Stream { reads: reads.clone(), member, watch, prove, fresh: true, assembly })
            }
            Err(failure) => {
                reads.members.turn_from(&member);
                Err(lost(failure, reads))
            }
        }
    }

    /// The next complete revisions, at least one. A revision that changed none of our keys has no changes.
    pub(super) async fn next(&mut self) -> Result<Vec<Commit>, Interrupted> {
        loop {
            let response = self.receive().await?;
            if response.compact_revision != 0 {
                return Err(Interrupted::Compacted);
            }
            if response.canceled {
                return Err(self.turn_away(format!("the watch was canceled: {}", response.cancel_reason)));
            }
            let store_revision = from_wire(response.header.map_or(0, |header| header.revision));
            let before = self.assembly.last;
            let revisions = self.assembly.add(response.events, response.fragment)?;
            if revisions.is_empty() {
                continue;
            }
            let live = !self.fresh && revisions.len() == 1 && store_revision == self.assembly.last;
            if self.prove == Prove::Each || !live {
                self.prove_kept(before).await?;
            }
            self.fresh = false;
            return Ok(self.commits(revisions));
        }
    }

    async fn receive(&mut self) -> Result<PbWatchResponse, Interrupted> {
        let cause = match self.watch.message().await {
            Ok(Some(response)) => return Ok(response.0),
            Ok(None) => "the member ended the watch".to_owned(),
            Err(error) => match lost(Failure::new(error), &self.reads) {
                Interrupted::Lost(cause) => cause,
                Interrupted::Compacted => return Err(Interrupted::Compacted),
            },
        };
        Err(self.turn_away(cause))
    }

    fn turn_away(&self, cause: String) -> Interrupted {
        self.reads.members.turn_from(&self.member);
        Interrupted::Lost(cause)
    }

    /// Compaction only moves forward, so what is kept now was kept when etcd told us what came after it.
    async fn prove_kept(&self, revision: Revision) -> Result<(), Interrupted> {
        match self.reads.is_kept(revision).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Interrupted::Compacted),
            Err(failure) => Err(lost(failure, &self.reads)),
        }
    }

    fn commits(&self, revisions: Vec<(Revision, Vec<PbEvent>)>) -> Vec<Commit> {
        let (root, at) = (&self.reads.root, self.reads.members.clock().wall());
        let commit = |(revision, events): (Revision, Vec<PbEvent>)| Commit {
            revision,
            at,
            changes: events.into_iter().filter_map(|event| root.change(event)).collect(),
        };
        revisions.into_iter().map(commit).collect()
    }
}

/// Watches everything from a revision on, and waits until etcd has said that it does.
async fn open(member: &Member, from: Revision) -> Result<WatchStream, Failure> {
    let options =
        WatchOptions::new().with_all_keys().with_prev_key().with_fragment().with_start_revision(to_wire(from));
    let mut watch = member.watch().watch(NUL, Some(options)).await.map_err(Failure::new)?;
    match watch.message().await.map_err(Failure::new)? {
        Some(response) if response.created() && !response.canceled() => Ok(watch),
        Some(response) => Err(Failure::Lost(format!("no watch was created: {}", response.cancel_reason()))),
        None => Err(Failure::Lost("no watch was created".to_owned())),
    }
}

/// Asks one member for the oldest revision it keeps, which must be greater than one.
pub(super) async fn compacted(member: &Member) -> Result<Revision, etcd_client::Error> {
    let odd = |what: &str| etcd_client::Error::WatchError(format!("a watch of a compacted revision {what}"));
    let options = WatchOptions::new().with_all_keys().with_fragment().with_start_revision(to_wire(FIRST));
    let mut watch = member.watch().watch(NUL, Some(options)).await?;
    while let Some(response) = watch.message().await? {
        if response.compact_revision() != 0 {
            return Ok(from_wire(response.compact_revision()));
        }
        if response.canceled() || !response.events().is_empty() {
            return Err(odd("was not refused as such"));
        }
    }
    Err(odd("ended without a word"))
}

fn lost(failure: Failure, reads: &Reads) -> Interrupted {
    match failure {
        Failure::Compacted => Interrupted::Compacted,
        other => Interrupted::Lost(other.of_read(reads.members.endpoints()).to_string()),
    }
}

/// Puts revisions together from what etcd sends.
#[derive(Debug)]
struct Assembly {
    /// The last revision that was complete.
    last: Revision,
    /// Events of the revision after it, of which more may come.
    partial: Vec<PbEvent>,
}

impl Assembly {
    /// The revisions that are complete with these events; `more` says that a piece of the same answer follows.
    fn add(&mut self, events: Vec<PbEvent>, more: bool) -> Result<Vec<(Revision, Vec<PbEvent>)>, Interrupted> {
        let mut revisions: Vec<(Revision, Vec<PbEvent>)> = Vec::new();
        for event in std::mem::take(&mut self.partial).into_iter().chain(events) {
            if lacks_previous(&event) {
                return Err(Interrupted::Compacted);
            }
            let revision = from_wire(event.kv.as_ref().map_or(0, |kv| kv.mod_revision));
            match revisions.last_mut() {
                Some((last, events)) if *last == revision => events.push(event),
                _ => revisions.push((revision, vec![event])),
            }
        }
        if more {
            self.partial = revisions.pop().map(|(_, events)| events).unwrap_or_default();
        }
        for (revision, _) in &revisions {
            if *revision != self.last.next() {
                return Err(Interrupted::Compacted);
            }
            self.last = *revision;
        }
        Ok(revisions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etcd_client::proto::PbKeyValue;

    fn created(revision: i64) -> PbEvent {
        let kv = PbKeyValue { mod_revision: revision, version: 1, ..PbKeyValue::default() };
        PbEvent { r#type: 0, kv: Some(kv), prev_kv: None }
    }

    fn assembly() -> Assembly {
        Assembly { last: Revision(4), partial: Vec::new() }
    }

    fn sizes(revisions: &[(Revision, Vec<PbEvent>)]) -> Vec<(u64, usize)> {
        revisions.iter().map(|(revision, events)| (revision.0, events.len())).collect()
    }

    #[test]
    fn a_revision_is_never_split_however_etcd_splits_its_answer() {
        let mut assembly = assembly();
        let first = assembly.add(vec![created(5), created(6)], true).unwrap();
        assert_eq!(sizes(&first), [(5, 1)]);
        assert_eq!(sizes(&assembly.add(vec![created(6)], true).unwrap()), []);
        assert_eq!(sizes(&assembly.add(vec![created(6), created(7)], false).unwrap()), [(6, 3), (7, 1)]);
        assert_eq!(assembly.last, Revision(7));
    }

    #[test]
    fn a_missing_revision_means_that_it_was_compacted() {
        assert_eq!(assembly().add(vec![created(6)], false), Err(Interrupted::Compacted));
    }

    #[test]
    fn a_missing_value_before_means_that_it_was_compacted() {
        let mut deleted = created(5);
        deleted.r#type = 1;
        assert_eq!(assembly().add(vec![deleted], false), Err(Interrupted::Compacted));
    }
}
