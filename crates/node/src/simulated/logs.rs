//! What containers that run nothing have written: a line when they started and one when they ended, each saying that it
//! is simulated. It follows from the status of the pod, so it is the same whoever asks and whenever.

use super::Fleet;
use super::behavior::Behavior;
use kinds::{ContainerState, ContainerStatus, Key, Object, Pod, Time};
use object::LogExcerpt;
use runtime::Caches;
use std::sync::Arc;

/// Knows the logs of pods on simulated nodes.
#[derive(Clone, Debug)]
pub struct Logs {
    caches: Caches,
    fleet: Fleet,
}

/// A log that is being read.
#[derive(Debug)]
pub struct Reader {
    caches: Caches,
    pod: Arc<Object<Pod>>,
    container: String,
    /// Which run of the container, from 0.
    run: i32,
    excerpt: LogExcerpt,
    /// How many lines have been looked at.
    read: usize,
    is_done: bool,
}

impl Logs {
    /// On the caches of the loops that keep the nodes.
    pub fn new(caches: Caches, fleet: Fleet) -> Self {
        Logs { caches, fleet }
    }

    /// Waits until what was there when the server started is known.
    pub async fn ready(&self) {
        self.caches.synced().await;
    }

    /// The log of a container; none if its node is not one of these, or dead. The error is what a kubelet would say.
    pub fn open(&self, pod: &Key, container: &str, excerpt: LogExcerpt) -> Option<Result<Reader, String>> {
        let pod = self.caches.of::<Pod>().get(pod)?;
        let node = pod.spec.node_name.as_str();
        self.fleet.member(node)?;
        if Behavior::of_node_named(node, &self.caches).is_dead() {
            return None;
        }
        Some(chosen_run(&pod, container, excerpt.previous).map(|run| Reader {
            caches: self.caches.clone(),
            container: container.to_owned(),
            run,
            read: skipped(&lines(&pod, container, run).unwrap_or_default(), excerpt),
            is_done: false,
            excerpt,
            pod,
        }))
    }
}

impl Reader {
    /// The next piece; none at the end.
    pub async fn next(&mut self) -> Option<String> {
        let mut progress = self.caches.of::<Pod>().progress();
        while !self.is_done {
            drop(progress.borrow_and_update());
            let piece = self.piece();
            if !piece.is_empty() {
                return Some(piece);
            }
            if !self.is_done && progress.changed().await.is_err() {
                return None;
            }
        }
        None
    }

    /// What has been written since the last look, as far as it is wanted.
    fn piece(&mut self) -> String {
        let now = self.caches.of::<Pod>().get(&self.pod.key());
        let now = now.filter(|now| now.metadata.uid == self.pod.metadata.uid);
        let lines = now.and_then(|now| lines(&now, &self.container, self.run));
        self.is_done = !self.excerpt.follow || lines.as_ref().is_none_or(|lines| lines.len() > 1);
        let lines = lines.unwrap_or_default();
        let mut text = String::new();
        for (at, line) in lines.iter().skip(self.read).filter(|(at, _)| is_recent(*at, self.excerpt)) {
            if self.excerpt.timestamps {
                text.push_str(&timestamp(*at));
            }
            text.push_str(line);
            text.push('\n');
        }
        self.read = self.read.max(lines.len());
        self.within_limit(text)
    }

    fn within_limit(&mut self, mut text: String) -> String {
        if let Some(left) = &mut self.excerpt.limit_bytes {
            // Lines are plain text: every byte is a place to cut.
            text.truncate(usize::try_from(*left).unwrap_or(usize::MAX).min(text.len()));
            *left -= text.len() as u64;
            self.is_done |= *left == 0;
        }
        text
    }
}

fn is_recent(at: Time, excerpt: LogExcerpt) -> bool {
    excerpt.since.is_none_or(|since| at.seconds() >= since)
}

/// How many lines at the beginning are not among the last that are wanted.
fn skipped(lines: &[(Time, String)], excerpt: LogExcerpt) -> usize {
    let tail = excerpt.tail_lines.and_then(|tail| usize::try_from(tail).ok()).unwrap_or(usize::MAX);
    lines.len().saturating_sub(tail)
}

/// To the nanosecond, as kubelets write it.
fn timestamp(at: Time) -> String {
    format!("{}.000000000Z ", at.to_string().trim_end_matches('Z'))
}

fn status_of<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let mut statuses = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
    statuses.find(|status| status.name == container)
}

/// Which run of a container is meant; or why there is none to show.
fn chosen_run(pod: &Pod, container: &str, previous: bool) -> Result<i32, String> {
    let name = &pod.metadata.name;
    let status = status_of(pod, container);
    let status = status.ok_or_else(|| format!("container {container:?} in pod {name:?} is not available"))?;
    let before = status.last_state.terminated.is_some().then_some(status.restart_count - 1);
    if previous {
        return before.ok_or_else(|| format!("previous terminated container {container:?} in pod {name:?} not found"));
    }
    if status.state.running.is_some() || status.state.terminated.is_some() {
        return Ok(status.restart_count);
    }
    before.ok_or_else(|| {
        let why = match status.state.waiting.as_ref().map(|waiting| waiting.reason.as_str()) {
            Some("ErrImagePull") => ": image can't be pulled".to_owned(),
            Some("ImagePullBackOff") => ": trying and failing to pull image".to_owned(),
            Some(reason) => format!(": {reason}"),
            None => " - no logs yet".to_owned(),
        };
        format!("container {container:?} in pod {name:?} is waiting to start{why}")
    })
}

/// What a run of a container has written: its start and, once that has come, its end. None if nothing is known of it.
fn lines(pod: &Pod, container: &str, run: i32) -> Option<Vec<(Time, String)>> {
    let status = status_of(pod, container)?;
    let state: &ContainerState = match status.restart_count - run {
        0 => &status.state,
        1 => &status.last_state,
        _ => return None,
    };
    let who = format!("simulated: container {container} of pod {}/{}", pod.metadata.namespace, pod.metadata.name);
    let start = |at: Option<Time>| (at.unwrap_or_default(), format!("{who} started (run {})", run + 1));
    match (&state.running, &state.terminated) {
        (Some(running), _) => Some(vec![start(running.started_at)]),
        (None, Some(ended)) => {
            let end = format!("{who} ended with exit code {} ({})", ended.exit_code, ended.reason);
            Some(vec![start(ended.started_at), (ended.finished_at.unwrap_or_default(), end)])
        }
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::{ConfigMap, Node};
    use object::{Value, json};

    const START: &str = "2026-01-01T00:00:00Z";
    const END: &str = "2026-01-01T00:00:05Z";

    fn pod(restarts: i32, state: &Value, last: &Value) -> Object<Pod> {
        let status = json!({ "name": "c", "restartCount": restarts, "state": state, "lastState": last });
        Object::of(&json!({
            "metadata": { "name": "p", "namespace": "n", "uid": "u" },
            "spec": { "nodeName": "node-0", "containers": [{ "name": "c" }] },
            "status": { "containerStatuses": [status] },
        }))
    }

    fn running() -> Value {
        json!({ "running": { "startedAt": START } })
    }

    fn ended(code: i32) -> Value {
        let reason = if code == 0 { "Completed" } else { "Error" };
        json!({ "terminated": { "exitCode": code, "reason": reason, "startedAt": START, "finishedAt": END } })
    }

    fn waiting(reason: &str) -> Value {
        json!({ "waiting": { "reason": reason } })
    }

    fn logs(pod: Object<Pod>) -> Logs {
        let mut caches = Caches::default().with::<ConfigMap>().with::<Node>().with::<Pod>();
        caches.put(pod);
        Logs::new(caches, Fleet::of(1))
    }

    async fn all(logs: &Logs, excerpt: LogExcerpt) -> String {
        let reader = logs.open(&Key::new("n", "p"), "c", excerpt).expect("the node is simulated");
        let mut reader = match reader {
            Ok(reader) => reader,
            Err(why) => return why,
        };
        let mut text = String::new();
        while let Some(piece) = reader.next().await {
            text.push_str(&piece);
        }
        text
    }

    const STARTED: &str = "simulated: container c of pod n/p started (run 2)\n";
    const ENDED: &str = "simulated: container c of pod n/p ended with exit code 1 (Error)\n";

    #[tokio::test]
    async fn a_container_says_when_it_started_and_how_it_ended() {
        let first = STARTED.replace("run 2", "run 1");
        let crashed = format!("{first}{ENDED}");
        let previous = LogExcerpt { previous: true, ..LogExcerpt::default() };
        for (pod, excerpt, expected) in [
            (pod(1, &running(), &ended(1)), LogExcerpt::default(), STARTED),
            (pod(1, &ended(1), &json!({})), LogExcerpt::default(), &format!("{STARTED}{ENDED}")),
            (pod(1, &running(), &ended(1)), previous, &crashed),
            (pod(1, &waiting("CrashLoopBackOff"), &ended(1)), LogExcerpt::default(), &crashed),
            (
                pod(0, &waiting("ContainerCreating"), &json!({})),
                LogExcerpt::default(),
                "container \"c\" in pod \"p\" is waiting to start: ContainerCreating",
            ),
            (
                pod(0, &waiting("ImagePullBackOff"), &json!({})),
                LogExcerpt::default(),
                "container \"c\" in pod \"p\" is waiting to start: trying and failing to pull image",
            ),
            (pod(0, &running(), &json!({})), previous, "previous terminated container \"c\" in pod \"p\" not found"),
        ] {
            assert_eq!(all(&logs(pod), excerpt).await, expected);
        }
    }

    #[tokio::test]
    async fn only_what_is_wanted_is_shown() {
        let logs = logs(pod(1, &ended(1), &json!({})));
        let end = Time::parse(END).map(Time::seconds);
        for (excerpt, expected) in [
            (LogExcerpt { tail_lines: Some(1), ..LogExcerpt::default() }, ENDED.to_owned()),
            (LogExcerpt { tail_lines: Some(0), ..LogExcerpt::default() }, String::new()),
            (LogExcerpt { since: end, ..LogExcerpt::default() }, ENDED.to_owned()),
            (LogExcerpt { limit_bytes: Some(9), ..LogExcerpt::default() }, "simulated".to_owned()),
            (
                LogExcerpt { tail_lines: Some(1), timestamps: true, ..LogExcerpt::default() },
                format!("2026-01-01T00:00:05.000000000Z {ENDED}"),
            ),
        ] {
            assert_eq!(all(&logs, excerpt).await, expected, "{excerpt:?}");
        }
    }

    #[tokio::test]
    async fn a_log_is_followed_until_the_container_ends() {
        let mut logs = logs(pod(1, &running(), &json!({})));
        let follow = LogExcerpt { follow: true, ..LogExcerpt::default() };
        let mut reader = logs.open(&Key::new("n", "p"), "c", follow).unwrap().unwrap();
        assert_eq!(reader.next().await.as_deref(), Some(STARTED));
        // It has been started again meanwhile.
        logs.caches.put(pod(2, &running(), &ended(1)));
        assert_eq!(reader.next().await.as_deref(), Some(ENDED));
        assert_eq!(reader.next().await, None);
    }

    #[test]
    fn other_nodes_and_dead_ones_are_not_spoken_for() {
        let mut logs = logs(pod(0, &running(), &json!({})));
        let open = |logs: &Logs, pod: &str| logs.open(&Key::new("n", pod), "c", LogExcerpt::default()).is_some();
        assert!(open(&logs, "p") && !open(&logs, "other"));
        logs.caches.put(Object::<Node>::of(&json!({
            "metadata": { "name": "node-0", "annotations": { "simulated.setpoint.dev/state": "dead" } },
        })));
        assert!(!open(&logs, "p"));
    }
}
