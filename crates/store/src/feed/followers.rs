//! Followers: handed every commit in order and each once, as soon as it is published.

use super::Feed;
use crate::data::Commit;
use crate::{Error, Revision};
use std::fmt;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Whoever is handed every commit as it is published.
pub trait Follower: fmt::Debug + Send + Sync + 'static {
    /// These commits are all that happened up to `revision` since the last call. Must not wait for anything.
    fn take(&self, revision: Revision, commits: &[Arc<Commit>]);
}

/// Those who follow.
#[derive(Debug, Default)]
pub(super) struct Followers {
    all: Vec<Followed>,
    next: u64,
}

/// One who follows.
#[derive(Debug)]
struct Followed {
    id: u64,
    follower: Arc<dyn Follower>,
    /// It has been handed, or has from elsewhere, everything up to here.
    after: Revision,
    /// Told why it gets no more.
    ended: oneshot::Sender<Error>,
}

impl Followed {
    fn take(&mut self, revision: Revision, commits: &[Arc<Commit>]) {
        if revision > self.after {
            let new = commits.partition_point(|commit| commit.revision <= self.after);
            self.follower.take(revision, &commits[new..]);
            self.after = revision;
        }
    }
}

impl Followers {
    /// One more, who has everything up to `after`.
    pub(super) fn add(&mut self, follower: Arc<dyn Follower>, after: Revision) -> (u64, oneshot::Receiver<Error>) {
        let (ended, end) = oneshot::channel();
        let id = self.next;
        self.next += 1;
        self.all.push(Followed { id, follower, after, ended });
        (id, end)
    }

    /// Everybody has been handed everything up to here; none if there is nobody.
    pub(super) fn reached(&self) -> Option<Revision> {
        self.all.iter().map(|followed| followed.after).min()
    }

    /// Hands over what is new to each of these commits, with which everything up to `head` has been.
    pub(super) fn take(&mut self, head: Revision, commits: &[Arc<Commit>]) {
        self.all.iter_mut().for_each(|followed| followed.take(head, commits));
    }

    pub(super) fn remove(&mut self, id: u64) {
        self.all.retain(|followed| followed.id != id);
    }

    /// Lets those go who lack something before `head` that cannot be had any more.
    pub(super) fn leave_behind(&mut self, head: Revision) {
        for followed in self.all.extract_if(.., |followed| followed.after < head) {
            let lost = Error::Compacted { requested: followed.after, compacted: head };
            // Whoever has stopped listening need not be told.
            drop(followed.ended.send(lost));
        }
    }

    pub(super) fn end(&mut self, error: &Error) {
        self.all.drain(..).for_each(|followed| drop(followed.ended.send(error.clone())));
    }
}

/// That a follower follows. Dropping it ends that.
#[derive(Debug)]
pub struct Following {
    pub(super) feed: Arc<Feed>,
    pub(super) id: u64,
    pub(super) end: oneshot::Receiver<Error>,
}

impl Following {
    /// Waits until the follower is handed nothing more, and says why.
    pub async fn ended(mut self) -> Error {
        (&mut self.end).await.unwrap_or(Error::Closed)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut followers = self.feed.followers.lock();
        followers.remove(self.id);
        self.feed.note(&followers);
    }
}
