//! The task that keeps the feed up with etcd, through lost connections and compaction.

use super::reads::Reads;
use super::stream::{Interrupted, Prove, Stream};
use crate::Result;
use crate::data::Commit;
use crate::feed::Feed;
use ambient::Random;
use std::sync::Arc;
use std::time::Duration;

/// Recent commits kept in memory for watchers. The values before are kept too and not counted.
const RING_BYTES: u64 = 32 << 20;
/// Between two attempts to connect, at first and at most.
const SHORTEST_BACKOFF: Duration = Duration::from_millis(50);
const LONGEST_BACKOFF: Duration = Duration::from_secs(2);

/// Follows etcd for ever.
pub(super) async fn follow(reads: Reads, feed: Arc<Feed>, random: Random) {
    let mut backoff = Backoff { longest: SHORTEST_BACKOFF, random };
    loop {
        let interrupted = match Stream::open(&reads, feed.head(), Prove::CaughtUp).await {
            Ok(stream) => {
                backoff.longest = SHORTEST_BACKOFF;
                relay(stream, &feed).await
            }
            Err(interrupted) => interrupted,
        };
        match interrupted {
            Interrupted::Lost(cause) => {
                tracing::info!(%cause, after = %feed.head(), "the watch of etcd was lost; going on elsewhere");
            }
            Interrupted::Compacted => match start_anew(&reads, &feed).await {
                Ok(()) => tracing::warn!(after = %feed.head(), "etcd was compacted ahead of us; watches start over"),
                Err(error) => tracing::info!(%error, "etcd was compacted ahead of us and does not say how far"),
            },
        }
        backoff.wait().await;
    }
}

async fn relay(mut stream: Stream, feed: &Feed) -> Interrupted {
    loop {
        match stream.next().await {
            Ok(commits) => {
                let commits: Vec<Arc<Commit>> = commits.into_iter().map(Arc::new).collect();
                feed.publish(&commits, || ());
                feed.trim(|bytes, _| bytes > RING_BYTES);
            }
            Err(interrupted) => return interrupted,
        }
    }
}

/// Some changes after the feed's head can no longer be had: watches end, and new ones begin at what is kept.
async fn start_anew(reads: &Reads, feed: &Feed) -> Result<()> {
    let compacted = reads.compacted().await?;
    // If etcd left out changes for another reason than compaction, only the present can be trusted.
    let head = if compacted > feed.head() { compacted } else { reads.revision().await? };
    feed.reset(head);
    Ok(())
}

/// Waits between attempts: twice as long each time, of which a random part.
struct Backoff {
    longest: Duration,
    random: Random,
}

impl Backoff {
    async fn wait(&mut self) {
        let longest = u64::try_from(self.longest.as_millis()).expect("a few seconds fit in 64 bits");
        tokio::time::sleep(Duration::from_millis(1 + self.random.below(longest))).await;
        self.longest = (self.longest * 2).min(LONGEST_BACKOFF);
    }
}
