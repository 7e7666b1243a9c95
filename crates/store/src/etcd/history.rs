//! Changes older than the feed's ring, from a watch that lasts for one batch.

use super::connect::LIST_TIMEOUT;
use super::reads::{FIRST, Reads};
use super::stream::{Interrupted, Prove, Stream};
use crate::data::Commit;
use crate::feed::{History, matching};
use crate::{Batch, Error, Result, Revision, WatchRequest};

/// A batch ends with the delivery that reaches either limit. etcd starts a watch in about 100 ms and reads up to
/// 1000 revisions at once, so smaller batches would mostly wait.
const MAX_REVISIONS_READ: u64 = 1000;
const MAX_BYTES_READ: u64 = 4 << 20;
/// How many members may fail before a watcher hears of it.
const MAX_ATTEMPTS: usize = 3;

#[async_trait::async_trait]
impl History for Reads {
    async fn changes(&self, request: &WatchRequest, until: Revision) -> Result<Batch> {
        let mut attempt = 1;
        loop {
            match read(self, request, until).await {
                Ok(batch) => return Ok(batch),
                Err(Interrupted::Compacted) => return Err(self.compacted_error(request.after).await),
                Err(Interrupted::Lost(_)) if self.members.is_closed() => return Err(Error::Closed),
                Err(Interrupted::Lost(cause)) if attempt == MAX_ATTEMPTS => return Err(Error::Unavailable(cause)),
                Err(Interrupted::Lost(cause)) => tracing::debug!(%cause, attempt, "reading older changes again"),
            }
            attempt += 1;
        }
    }
}

async fn read(reads: &Reads, request: &WatchRequest, until: Revision) -> Result<Batch, Interrupted> {
    let mut batch = Batch { revision: request.after.max(FIRST), changes: Vec::new() };
    // etcd has no event for its first revision, so there would be nothing to wait for.
    if until <= batch.revision {
        return Ok(Batch { revision: until, ..batch });
    }
    let mut stream = Stream::open(reads, request.after, Prove::Each).await?;
    let mut bytes_read = 0;
    loop {
        let delivery = tokio::time::timeout(LIST_TIMEOUT, stream.next()).await;
        let commits = delivery.unwrap_or_else(|_| Err(Interrupted::Lost("etcd tells no older changes".to_owned())))?;
        for commit in commits.iter().take_while(|commit| commit.revision <= until) {
            batch.revision = commit.revision;
            batch.changes.extend(matching(commit, request));
        }
        bytes_read += commits.iter().map(Commit::bytes).sum::<u64>();
        let revisions_read = batch.revision.0.saturating_sub(request.after.0);
        if batch.revision >= until || revisions_read >= MAX_REVISIONS_READ || bytes_read >= MAX_BYTES_READ {
            return Ok(batch);
        }
    }
}
