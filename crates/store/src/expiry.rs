//! The task that wakes a local backend when its next key is due to expire.
//!
//! It only says "now": which keys are due is decided by the writer, against the state at that moment.

use ambient::watch;
use ambient::{Clock, Tasks, Timestamp};
use std::future::Future;
use std::time::Duration;

/// Wall time may jump, so a deadline far away is looked at again at least this often.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// Tells the task which deadline comes next, if that is another one than before.
pub(crate) fn announce(next: &watch::Sender<Option<Timestamp>>, deadline: Option<Timestamp>) {
    next.send_if_modified(|next| std::mem::replace(next, deadline) != deadline);
}

/// Calls `expire` whenever the deadline last sent has passed, until it says that there is nobody to expire anything any
/// more, the sender is gone or the group stops.
pub(crate) fn start<F>(
    tasks: &Tasks,
    clock: Clock,
    mut next: watch::Receiver<Option<Timestamp>>,
    mut expire: impl FnMut() -> F + Send + 'static,
) where
    F: Future<Output = bool> + Send,
{
    tasks.spawn_until_stopped("expiry", async move {
        loop {
            let wait = next.borrow_and_update().map(|deadline| deadline.since(clock.wall()));
            match wait {
                Some(Duration::ZERO) => {
                    if !expire().await {
                        return;
                    }
                }
                wait => {
                    let changed =
                        tokio::time::timeout(wait.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP), next.changed());
                    if let Ok(Err(_)) = changed.await {
                        return;
                    }
                }
            }
        }
    });
}
