//! Task groups: every task and thread belongs to one, so that stopping is complete and nothing outlives its owner.
//!
//! A group is a tree: `child` makes a subgroup that stops with its parent or on its own. Tasks are asked to stop by
//! a signal they await; `stop` returns when all of them have ended.

use std::future::Future;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A group of tasks and threads with a common stop signal; clones are handles to the same group.
#[derive(Clone, Debug)]
pub struct Tasks(Arc<Group>);

#[derive(Debug)]
struct Group {
    stop: CancellationToken,
    running: TaskTracker,
    /// The groups above this one wait for its tasks too.
    parent: Option<Tasks>,
    /// Where its tasks run; without, where they are spawned.
    runtime: Option<Handle>,
}

/// Marks that a task ended because its group was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

#[allow(clippy::disallowed_methods, reason = "this module is the one that spawns")]
impl Tasks {
    pub fn new() -> Self {
        let stop = CancellationToken::new();
        Tasks(Arc::new(Group { stop, running: TaskTracker::new(), parent: None, runtime: None }))
    }

    /// A subgroup: stopped with this group, or earlier by itself.
    pub fn child(&self) -> Self {
        self.child_on(self.0.runtime.clone())
    }

    /// A subgroup whose tasks run elsewhere, so that those here need not wait for their turn among them.
    pub fn on(&self, runtime: &Handle) -> Self {
        self.child_on(Some(runtime.clone()))
    }

    fn child_on(&self, runtime: Option<Handle>) -> Self {
        Tasks(Arc::new(Group {
            stop: self.0.stop.child_token(),
            running: TaskTracker::new(),
            parent: Some(self.clone()),
            runtime,
        }))
    }

    /// Runs a task until it ends; it should watch `stopping` and end soon after.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let tokens = self.tokens();
        let task = async move {
            let _tokens = tokens;
            task.await;
            tracing::debug!(task = name, "ended");
        };
        match &self.0.runtime {
            Some(runtime) => runtime.spawn(task),
            None => tokio::spawn(task),
        };
    }

    /// Runs a task until it ends or the group stops, whichever comes first; the task is dropped at its next await.
    pub fn spawn_until_stopped(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.0.stop.clone();
        self.spawn(name, async move {
            stop.run_until_cancelled_owned(task).await;
        });
    }

    /// Runs blocking work on a thread of its own, for as long as it takes; it ends itself, for example when the
    /// channel it reads from closes.
    pub fn thread(&self, name: &'static str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let tokens = self.tokens();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _tokens = tokens;
            work();
        })?;
        Ok(())
    }

    /// Runs a short piece of blocking work, such as a disk read, on tokio's blocking pool.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let tokens = self.tokens();
        let joined = tokio::task::spawn_blocking(move || {
            let _tokens = tokens;
            work()
        });
        match joined.await {
            Ok(value) => value,
            Err(failure) => std::panic::resume_unwind(failure.into_panic()),
        }
    }

    /// Resolves once the group has been asked to stop.
    pub async fn stopping(&self) -> Stopped {
        self.0.stop.cancelled().await;
        Stopped
    }

    pub fn is_stopping(&self) -> bool {
        self.0.stop.is_cancelled()
    }

    /// Asks every task to stop, without waiting.
    pub fn cancel(&self) {
        self.0.stop.cancel();
    }

    /// Asks every task to stop and waits until all have ended, subgroups included.
    pub async fn stop(&self) {
        self.cancel();
        self.0.running.close();
        self.0.running.wait().await;
    }

    /// One tracker token in this group and in each above it, so that whoever waits, waits for this task.
    fn tokens(&self) -> Vec<tokio_util::task::task_tracker::TaskTrackerToken> {
        std::iter::successors(Some(self), |group| group.0.parent.as_ref())
            .map(|group| group.0.running.token())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn stop_waits_for_tasks_of_subgroups() {
        let ended = Arc::new(AtomicUsize::new(0));
        let tasks = Tasks::new();
        let child = tasks.child();
        let (group, count) = (child.clone(), ended.clone());
        child.spawn("waits", async move {
            group.stopping().await;
            tokio::task::yield_now().await;
            count.fetch_add(1, Ordering::SeqCst);
        });
        tasks.stop().await;
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn stopping_a_subgroup_leaves_its_parent_running() {
        let tasks = Tasks::new();
        tasks.child().stop().await;
        assert!(!tasks.is_stopping());
    }

    #[tokio::test]
    async fn a_thread_counts_as_a_task_of_its_group() {
        let tasks = Tasks::new();
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        tasks.thread("reader", move || assert!(receiver.recv().is_err())).expect("the system can start a thread");
        drop(sender);
        tasks.stop().await;
    }
}
