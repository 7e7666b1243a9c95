//! Questions to etcd that change nothing, with what a revision means in their answers.

use super::connect::{LIST_TIMEOUT, Member, Members, REQUEST_TIMEOUT, Repeat};
use super::failure::Failure;
use super::keys::{NUL, Root, count, from_wire, to_wire};
use super::stream;
use crate::{Error, Get, Range, RangeResult, Result, Revision};
use etcd_client::{GetOptions, GetResponse};
use std::sync::Arc;
use tokio::time::Instant;

/// etcd's revision before the first change; ours is zero. Both are the empty store.
pub(super) const FIRST: Revision = Revision(1);

#[derive(Clone, Debug)]
pub(super) struct Reads {
    pub(super) members: Arc<Members>,
    pub(super) root: Root,
}

impl Reads {
    pub(super) async fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Get> {
        let found = self.read(self.root.add(key), GetOptions::new(), at, REQUEST_TIMEOUT).await?;
        let item = found.response.0.kvs.into_iter().next().and_then(|kv| self.root.item(kv));
        Ok(Get { revision: found.revision, item })
    }

    pub(super) async fn range(&self, request: &Range) -> Result<RangeResult> {
        let Some((first, end)) = self.root.bounds(request) else {
            // There is nothing to read, but the revision still has to be a kept one.
            let key = self.root.add(b"");
            let found = self.read(key, GetOptions::new().with_count_only(), request.at, REQUEST_TIMEOUT).await?;
            return Ok(RangeResult { revision: found.revision, items: Vec::new(), remaining: 0 });
        };
        let limit = i64::try_from(request.limit).unwrap_or(i64::MAX);
        let timeout = if limit == 0 { LIST_TIMEOUT } else { REQUEST_TIMEOUT };
        let options = GetOptions::new().with_range(end).with_limit(limit);
        let found = self.read(first, options, request.at, timeout).await?;
        let items: Vec<_> = found.response.0.kvs.into_iter().filter_map(|kv| self.root.item(kv)).collect();
        let total = count(found.response.0.count);
        Ok(RangeResult { revision: found.revision, remaining: total.saturating_sub(items.len() as u64), items })
    }

    /// The current revision: that of a linearizable read.
    pub(super) async fn revision(&self) -> Result<Revision> {
        let key = self.root.add(b"");
        Ok(self.read(key, GetOptions::new().with_count_only(), None, REQUEST_TIMEOUT).await?.revision)
    }

    /// How many keys we have, with the revision.
    pub(super) async fn count(&self) -> Result<(Revision, u64)> {
        let options = GetOptions::new().with_prefix().with_count_only();
        let found = self.read(self.root.add(b""), options, None, REQUEST_TIMEOUT).await?;
        Ok((found.revision, count(found.response.0.count)))
    }

    /// Whether a revision is still kept, at a moment after the call.
    pub(super) async fn is_kept(&self, revision: Revision) -> Result<bool, Failure> {
        let options = GetOptions::new().with_count_only().with_revision(to_wire(revision.max(FIRST)));
        match self.ask(NUL.to_vec(), options, self.members.deadline(REQUEST_TIMEOUT)).await {
            Ok(_) => Ok(true),
            Err(Failure::Compacted) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// The oldest kept revision. etcd tells it only to watchers that ask for an older one.
    pub(super) async fn compacted(&self) -> Result<Revision> {
        let failed = |failure: Failure| failure.of_read(self.members.endpoints());
        if self.is_kept(FIRST).await.map_err(failed)? {
            return Ok(Revision::ZERO);
        }
        let deadline = self.members.deadline(REQUEST_TIMEOUT);
        let ask = |member: Member| async move { stream::compacted(&member).await };
        let found = self.members.call(Repeat::Harmless, deadline, ask).await;
        found.map_err(failed)
    }

    /// The error for a revision that has been compacted.
    pub(super) async fn compacted_error(&self, requested: Revision) -> Error {
        match self.compacted().await {
            Ok(compacted) => Error::Compacted { requested, compacted },
            Err(error) => error,
        }
    }

    /// The error for a revision that was still to come when etcd was asked.
    pub(super) async fn future_error(&self, requested: Revision) -> Error {
        match self.revision().await {
            Ok(current) => Error::FutureRevision { requested, current: current.min(requested.before()) },
            Err(error) => error,
        }
    }

    /// A linearizable read, now or at a kept revision.
    async fn read(
        &self,
        key: Vec<u8>,
        options: GetOptions,
        at: Option<Revision>,
        timeout: std::time::Duration,
    ) -> Result<Found> {
        let options = options.with_revision(at.map_or(0, |at| to_wire(at.max(FIRST))));
        match (self.ask(key, options, self.members.deadline(timeout)).await, at) {
            (Ok(response), at) => Ok(Found { revision: at.unwrap_or_else(|| revision_of(&response)), response }),
            (Err(Failure::Compacted), Some(at)) => Err(self.compacted_error(at).await),
            (Err(Failure::Future), Some(at)) => Err(Box::pin(self.future_error(at)).await),
            (Err(failure), _) => Err(failure.of_read(self.members.endpoints())),
        }
    }

    async fn ask(&self, key: Vec<u8>, options: GetOptions, deadline: Instant) -> Result<GetResponse, Failure> {
        let ask = |member: Member| {
            let (key, options) = (key.clone(), options.clone());
            async move { member.kv().get(key, Some(options)).await }
        };
        self.members.call(Repeat::Harmless, deadline, ask).await
    }
}

struct Found {
    revision: Revision,
    response: GetResponse,
}

fn revision_of(response: &GetResponse) -> Revision {
    from_wire(response.0.header.as_ref().map_or(0, |header| header.revision))
}
