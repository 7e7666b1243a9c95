//! One running program, and what it says: ready when it says so, and gone when its owner is.

use ambient::Tasks;
use ambient::watch;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

/// A program that takes longer has a problem, which its last words should show.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a program may take to end when it is asked to.
const END_TIMEOUT: Duration = Duration::from_secs(15);
const LAST_WORDS: usize = 50;

/// A process that ends when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    state: watch::Receiver<State>,
    words: Arc<Mutex<VecDeque<String>>>,
    /// Closed when both of its outputs are.
    ended: Mutex<Receiver<()>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Starting,
    /// The line that it said so with.
    Ready(String),
    Ended,
}

impl Process {
    /// Starts a program such that the kernel kills it with the thread that called this. It is ready once it says a
    /// line that contains `ready`, on either of its outputs.
    pub fn spawn(
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        environment: &[(&str, &str)],
        ready: &'static str,
    ) -> io::Result<Self> {
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (sender, state) = watch::channel(State::Starting);
        let log = Arc::new(Log { state: sender, words: Arc::default(), ready });
        let words = log.words.clone();
        let (open, ended) = std::sync::mpsc::channel();
        let stdout = child.stdout.take().expect("standard output is piped");
        let stderr = child.stderr.take().expect("standard error is piped");
        log.clone().listen(stdout, open.clone())?;
        log.listen(stderr, open)?;
        Ok(Process { child, state, words, ended: Mutex::new(ended) })
    }

    /// Waits until it is ready, and returns the line that it said so with.
    pub async fn ready(&mut self) -> String {
        let changed = self.state.wait_for(|state| *state != State::Starting);
        let in_time = tokio::time::timeout(READY_TIMEOUT, changed).await;
        match (in_time, self.state.borrow().clone()) {
            (Ok(Ok(())), State::Ready(line)) => line,
            _ => panic!("the program did not get ready; its last words:\n{}", self.last_words()),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn last_words(&self) -> String {
        Vec::from(self.words.lock().clone()).join("\n")
    }

    fn signal(&self, signal: Signal) {
        let process = Pid::from_child(&self.child);
        rustix::process::kill_process(process, signal).expect("a child that was not waited for can be signaled");
    }

    /// Halts it without ending it. The signal alone is only asked for: on another core a thread may still answer.
    pub fn halt(&self) {
        self.signal(Signal::STOP);
        let changed = waitpid(Some(Pid::from_child(&self.child)), WaitOptions::UNTRACED);
        let (_, status) = changed.expect("a child can be waited for").expect("it was waited for until it changed");
        assert!(status.stopped(), "it ended before it was halted; its last words:\n{}", self.last_words());
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks the program to end and waits until it has; one that does not is killed, and that is none.
    pub fn terminate(&mut self) -> Option<ExitStatus> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(status);
        }
        self.signal(Signal::TERM);
        // Nothing is ever sent: the channel is closed when the outputs are.
        let in_time =
            self.ended.lock().recv_timeout(END_TIMEOUT) == Err(std::sync::mpsc::RecvTimeoutError::Disconnected);
        if !in_time {
            self.kill();
        }
        self.child.wait().ok().filter(|_| in_time)
    }

    /// Ends it at once, as a power failure would.
    pub fn kill(&mut self) {
        // Either fails only if it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What both outputs are read for.
#[derive(Debug)]
struct Log {
    state: watch::Sender<State>,
    words: Arc<Mutex<VecDeque<String>>>,
    ready: &'static str,
}

impl Log {
    /// Reads on until the process has ended, or it would halt on a full pipe.
    fn listen(self: Arc<Self>, output: impl Read + Send + 'static, open: Sender<()>) -> io::Result<()> {
        Tasks::new().thread("output", move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let mut words = self.words.lock();
                words.push_back(line.clone());
                if words.len() > LAST_WORDS {
                    words.pop_front();
                }
                drop(words);
                if line.contains(self.ready) {
                    self.state.send_replace(State::Ready(line));
                }
            }
            self.state.send_if_modified(|state| match state {
                State::Starting => {
                    *state = State::Ended;
                    true
                }
                _ => false,
            });
            drop(open);
        })
    }
}
