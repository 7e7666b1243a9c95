//! One running etcd process, and what it says.

use ambient::Tasks;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What every version writes to its log once clients are served.
const READY: &str = "serving client traffic";
/// An etcd that takes longer has a problem, which its last words should show.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
const LAST_WORDS: usize = 30;

/// A process that ends when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    state: watch::Receiver<State>,
    /// The end of its log.
    words: Arc<Mutex<VecDeque<String>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Starting,
    Ready,
    Ended,
}

impl Process {
    /// Starts etcd such that the kernel kills it with the thread that called this.
    pub(super) fn spawn(binary: &Path, arguments: &[String]) -> io::Result<Self> {
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(binary)
            .args(arguments)
            // Some versions want to be told that they may run on what they were not tested on.
            .env("ETCD_UNSUPPORTED_ARCH", go_architecture())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().expect("standard error is piped");
        let (sender, state) = watch::channel(State::Starting);
        let words = Arc::new(Mutex::new(VecDeque::new()));
        let kept = words.clone();
        Tasks::new().thread("etcd-log", move || read_log(stderr, &sender, &kept))?;
        Ok(Process { child, state, words })
    }

    /// Waits until it serves clients.
    pub(super) async fn ready(&mut self) {
        let changed = self.state.wait_for(|state| *state != State::Starting);
        let state = tokio::time::timeout(READY_TIMEOUT, changed).await.map(|state| state.map(|state| *state));
        assert!(
            matches!(state, Ok(Ok(State::Ready))),
            "etcd does not serve clients; its last words:\n{}",
            Vec::from(self.words.lock().clone()).join("\n")
        );
    }

    pub(super) fn signal(&self, signal: Signal) {
        let process = Pid::from_child(&self.child);
        rustix::process::kill_process(process, signal).expect("a child that was not waited for can be signaled");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Either fails only if it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads on until the process has ended, or it would halt on a full pipe.
fn read_log(stderr: ChildStderr, state: &watch::Sender<State>, words: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if line.contains(READY) {
            state.send_replace(State::Ready);
        }
        let mut words = words.lock();
        words.push_back(line);
        if words.len() > LAST_WORDS {
            words.pop_front();
        }
    }
    state.send_replace(State::Ended);
}

fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
