//! Leader election: of all candidates for a lease, at most one works at a time.
//!
//! A candidate never compares clocks with others. It waits until the record has stayed the same for as long as the
//! record says, by its own monotonic clock, counted from when it saw the record; its own term it counts from before it
//! sent the write that began it. So a term is over for its holder before it is over for anybody else, whether renewals
//! fail, hang or are committed late, and whether the holder was paused meanwhile:
//!
//! ```text
//! write sent     committed    seen by others
//!     |--------------|--------------|---- lease ------------------------------->  others may take it
//!     |-- renew_deadline -->| no more work begins
//!     |------ stopped by ---------->| what still runs is cut off
//! ```
//!
//! A lock is not mutual exclusion all the same: a write that is under way when the process is paused arrives later.
//! Every write therefore carries its precondition.
//!
//! Left out: fencing of what the leader does.

use crate::client::{Client, Target};
use crate::executor::Tell;
use crate::plan::Note;
use ambient::{Clock, Random, Tasks};
use kinds::{Key, Kind, Lease, LeaseSpec, Object, Time};
use object::{ApiError, Edit, Reason, Value, View, json};
use std::fmt;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

/// The defaults are upstream's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// For how long others leave a record alone that does not change. Written in whole seconds.
    pub lease: Duration,
    /// For how long a leader works without having renewed its lease.
    pub renew_deadline: Duration,
    /// Between renewals, and between looks at the lease of another; the latter with jitter.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            lease: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// What is added to `retry` at random is at most 1.2 times as much again, as with client-go, so that candidates do not
/// all come at once.
const JITTER_PERCENT: u64 = 120;

impl Timing {
    /// A request that takes longer has failed: there is time for another before the deadline.
    fn attempt(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// How long work may take to stop after the deadline. It is half of what is left, for clocks run at different
    /// speeds.
    fn grace(&self) -> Duration {
        (self.lease.saturating_sub(self.renew_deadline)) / 2
    }

    fn is_sound(&self) -> bool {
        let longest_retry = self.retry + self.retry * 6 / 5;
        self.lease > self.renew_deadline && self.renew_deadline > longest_retry && !self.retry.is_zero()
    }
}

/// A candidate for a lease.
pub struct Election {
    pub client: Client,
    /// Told, about the lease, who leads and who does no longer.
    pub tell: Tell,
    pub namespace: String,
    pub name: String,
    /// Different from that of every other candidate, also of those on the same machine.
    pub identity: String,
    pub timing: Timing,
    pub clock: Clock,
    pub random: Random,
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Election({}/{}, {})", self.namespace, self.name, self.identity)
    }
}

impl Election {
    /// Campaigns, leads and campaigns again until `tasks` are stopped.
    ///
    /// While it leads, it runs `lead` with a group of its own. At the end of a term the group is asked to stop; the
    /// future is dropped if it has not ended in time, and there is no new term before every task of the group has
    /// ended. A future that ends earlier ends nothing: what it started goes on. When `tasks` are stopped, the lease is
    /// released as soon as the work has ended.
    pub async fn run<F, W>(self, tasks: Tasks, lead: F)
    where
        F: Fn(Tasks) -> W,
        W: Future<Output = ()>,
    {
        assert!(self.timing.is_sound(), "a lease must outlast the renew deadline, and that several tries");
        let mut candidate = Candidate::new(self);
        loop {
            let elected = tokio::select! {
                biased;
                _ = tasks.stopping() => false,
                () = candidate.campaign() => true,
            };
            if !elected {
                return candidate.release().await;
            }
            candidate.tell("became leader");
            let group = tasks.child();
            let ended_in_time = candidate.serve(&tasks, &group, lead(group.clone())).await;
            candidate.tell("stopped leading");
            if !ended_in_time {
                // Others may lead by now. There is nothing to be done about it, but to not make it worse.
                tracing::error!(lease = %candidate.key, "work goes on after the end of its term; waiting for it to end");
                group.stop().await;
            }
        }
    }
}

/// A candidate and what it knows.
struct Candidate {
    election: Election,
    key: Key,
    /// The record as it was last seen, and since when it has been the same.
    observed: Option<(LeaseSpec, Instant)>,
    /// The object that this candidate wrote last: the next renewal is a replacement of it, without a look.
    written: Option<Value>,
    /// That of the lease which was this candidate's last.
    uid: String,
    /// When the term ends unless it is renewed. Meaningful while it leads.
    deadline: Instant,
    /// Whether the lease may be in this candidate's name: a write whose answer never came counts.
    maybe_ours: bool,
}

/// What came of a try to get or to keep the lease.
enum Outcome {
    /// It is this candidate's, for a time that began at this instant.
    Ours(Instant),
    /// It is somebody else's, at least until this instant unless it is released.
    Theirs { holder: String, until: Instant },
}

impl Candidate {
    fn new(election: Election) -> Self {
        let key = Key::new(election.namespace.as_str(), election.name.as_str());
        let deadline = election.clock.monotonic();
        Candidate { election, key, observed: None, written: None, uid: String::new(), deadline, maybe_ours: false }
    }

    fn now(&self) -> Instant {
        self.election.clock.monotonic()
    }

    fn tell(&self, what: &str) {
        let identity = &self.election.identity;
        tracing::info!(lease = %self.key, identity, "{what}");
        let regarding = Target { id: Lease::ID, key: self.key.clone(), uid: self.uid.clone(), version: String::new() };
        (self.election.tell)(Note::about(regarding, "LeaderElection", format!("{identity} {what}")));
    }

    /// For people to read; nothing is computed from it.
    fn wall(&self) -> String {
        Time::from_millis(self.election.clock.wall().0).to_micro_text()
    }

    /// Returns when the lease is this candidate's.
    async fn campaign(&mut self) {
        let timing = self.election.timing.clone();
        loop {
            let mut next = self.now() + self.jittered_retry();
            match self.attempt_until(self.now() + timing.attempt(), false).await {
                Some(Outcome::Ours(since)) => {
                    self.deadline = since + timing.renew_deadline;
                    if self.now() < self.deadline {
                        return;
                    }
                }
                // Its end is worth waking for: nobody has to be without a leader for longer.
                Some(Outcome::Theirs { until, .. }) => next = next.min(until),
                None => {}
            }
            sleep_until(next).await;
        }
    }

    fn jittered_retry(&self) -> Duration {
        let retry = self.election.timing.retry;
        let nanos = u64::try_from(retry.as_nanos()).unwrap_or(u64::MAX / JITTER_PERCENT);
        retry + Duration::from_nanos(self.election.random.below(nanos * JITTER_PERCENT / 100 + 1))
    }

    /// Leads until the term ends or `tasks` are stopped; whether the work has ended in time.
    async fn serve(&mut self, tasks: &Tasks, group: &Tasks, work: impl Future<Output = ()>) -> bool {
        tokio::pin!(work);
        let mut at_work = true;
        {
            let term = self.keep();
            tokio::pin!(term);
            // The term is looked at before the work is: one that has ended in a pause does not go on for a moment.
            loop {
                tokio::select! {
                    biased;
                    _ = tasks.stopping() => break,
                    () = &mut term => break,
                    () = &mut work, if at_work => at_work = false,
                }
            }
        }
        group.cancel();
        let last = self.deadline + self.election.timing.grace();
        if self.now() >= last {
            return false;
        }
        let ending = async {
            if at_work {
                work.await;
            }
            group.stop().await;
        };
        timeout_at(last, ending).await.is_ok()
    }

    /// Renews the lease; returns when it is lost or the deadline has passed.
    async fn keep(&mut self) {
        let timing = self.election.timing.clone();
        loop {
            sleep_until(self.deadline.min(self.now() + timing.retry)).await;
            let now = self.now();
            if now >= self.deadline {
                tracing::warn!(lease = %self.key, "the lease could not be renewed in time");
                return;
            }
            match self.attempt_until(self.deadline.min(now + timing.attempt()), true).await {
                Some(Outcome::Ours(since)) => self.deadline = since + timing.renew_deadline,
                Some(Outcome::Theirs { holder, .. }) => {
                    tracing::warn!(lease = %self.key, holder, "the lease has been taken");
                    self.maybe_ours = false;
                    return;
                }
                None => {}
            }
        }
    }

    /// Tries once; none if that failed or took too long, in which case nobody knows what came of it.
    async fn attempt_until(&mut self, last: Instant, leading: bool) -> Option<Outcome> {
        let outcome = timeout_at(last, self.attempt(leading)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(ApiError::new(Reason::Timeout, "no answer")));
        outcome.inspect_err(|error| tracing::info!(lease = %self.key, leading, %error, "trying to get the lease")).ok()
    }

    /// Tries once to take the lease if it is free or this candidate's. One that is `leading` takes it only if nobody
    /// else has had it since.
    async fn attempt(&mut self, leading: bool) -> Result<Outcome, ApiError> {
        if leading && let Some(written) = self.written.clone() {
            match self.write(written).await {
                Err(error) if matches!(error.reason(), Reason::Conflict | Reason::NotFound) => {}
                outcome => return outcome,
            }
        }
        let lease = self.look().await?;
        let Some((spec, since)) = self.observed.clone() else {
            return self.create().await;
        };
        let ours = spec.holder_identity == self.election.identity;
        let until = since + Duration::from_secs(u64::try_from(spec.lease_duration_seconds).unwrap_or(0));
        let held = !spec.holder_identity.is_empty() && self.now() < until;
        if !ours && (held || leading) {
            return Ok(Outcome::Theirs { holder: spec.holder_identity, until });
        }
        let Some(lease) = lease else {
            return self.create().await;
        };
        let mut object = lease.json();
        let now = self.wall();
        let record = object.object_or_new("spec");
        if !ours {
            record.set("acquireTime", now);
            record.set("leaseTransitions", spec.lease_transitions.saturating_add(1));
        }
        self.write(object).await
    }

    /// The lease as it is now, and notes since when it has been so.
    async fn look(&mut self) -> Result<Option<Object<Lease>>, ApiError> {
        let lease = self.election.client.get::<Lease>(&self.key).await?;
        let now = self.now();
        match (&lease, &self.observed) {
            (Some(lease), Some((known, _))) if lease.spec == *known => {}
            (Some(lease), _) => self.observed = Some((lease.spec.clone(), now)),
            // Somebody has deleted it, which its holder does not know yet: what was seen holds until it ends.
            (None, _) => {}
        }
        Ok(lease)
    }

    async fn create(&mut self) -> Result<Outcome, ApiError> {
        let object = json!({
            "apiVersion": Lease::ID.api_version, "kind": Lease::ID.kind,
            "metadata": { "namespace": self.key.namespace, "name": self.key.name },
            "spec": { "acquireTime": self.wall(), "leaseTransitions": 0 },
        });
        self.write(object).await
    }

    /// Writes the record in this candidate's name: creates it if it has no version yet, and else replaces that one.
    async fn write(&mut self, mut object: Value) -> Result<Outcome, ApiError> {
        let now = self.wall();
        let seconds = self.election.timing.lease.as_millis().div_ceil(1000);
        let record = object.object_or_new("spec");
        record.set("holderIdentity", self.election.identity.as_str());
        record.set("leaseDurationSeconds", i64::try_from(seconds).unwrap_or(i64::MAX));
        record.set("renewTime", now);
        // The term counts from here: the server cannot have committed it earlier, so nobody sees it earlier.
        let since = self.now();
        self.maybe_ours = true;
        self.written = None;
        let client = &self.election.client;
        let raw = if object.at("metadata").has("resourceVersion") {
            client.update(&Lease::ID, "", &object).await?
        } else {
            client.create(&Lease::ID, &object).await?
        };
        let lease = Object::<Lease>::read(raw).map_err(ApiError::internal)?;
        self.observed = Some((lease.spec.clone(), self.now()));
        self.written = Some(lease.json());
        self.uid.clone_from(&lease.metadata.uid);
        Ok(Outcome::Ours(since))
    }

    /// Gives the lease back if it is held, so that others need not wait for its end.
    async fn release(mut self) {
        if !self.maybe_ours {
            return;
        }
        let bound = self.election.timing.attempt();
        match timeout(bound, self.give_back()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::info!(%error, "the lease is not released; it ends by itself"),
            Err(_) => tracing::info!("the lease is not released; it ends by itself"),
        }
    }

    async fn give_back(&mut self) -> Result<(), ApiError> {
        while let Some(lease) = self.look().await?.filter(|lease| lease.spec.holder_identity == self.election.identity)
        {
            let now = self.wall();
            let mut object = lease.json();
            let record = json!({
                "holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now,
                "leaseTransitions": lease.spec.lease_transitions,
            });
            object.set("spec", record);
            match self.election.client.update(&Lease::ID, "", &object).await {
                // A renewal that was under way came in between.
                Err(error) if error.reason() == Reason::Conflict => {}
                outcome => return outcome.map(drop),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
