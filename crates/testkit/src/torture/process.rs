//! A worker as seen from outside: started, listened to, killed.

use super::protocol::Line;
use super::worker::Options;
use ambient::Tasks;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::sync::mpsc;

/// A worker that says nothing for this long hangs.
const SILENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Process {
    child: Child,
    said: mpsc::UnboundedReceiver<Line>,
    heard: Vec<Line>,
}

/// What a worker said in its life, and how it ended.
#[derive(Debug)]
pub struct Life {
    pub lines: Vec<Line>,
    pub status: ExitStatus,
}

impl Process {
    /// Starts a worker, with more in its environment if need be.
    pub fn start(program: &Path, options: &Options, environment: &[(&str, String)]) -> std::io::Result<Self> {
        let mut child = Command::new(program)
            .args(options.arguments())
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().expect("its output is a pipe");
        let (sender, said) = mpsc::unbounded_channel();
        // The thread ends when the worker does.
        Tasks::new().thread("listener", move || {
            for line in BufReader::new(output).lines() {
                let line = line.expect("a pipe can be read");
                let line = Line::parse(&line).unwrap_or_else(|| panic!("the worker said {line:?}"));
                if sender.send(line).is_err() {
                    return;
                }
            }
        })?;
        Ok(Process { child, said, heard: Vec::new() })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Listens until the worker says what is waited for; false if it ended before.
    pub async fn until(&mut self, mut wanted: impl FnMut(&Line) -> bool) -> bool {
        while let Some(line) = self.next().await {
            let found = wanted(&line);
            self.heard.push(line);
            if found {
                return true;
            }
        }
        false
    }

    async fn next(&mut self) -> Option<Line> {
        let line = tokio::time::timeout(SILENCE, self.said.recv()).await;
        line.unwrap_or_else(|_| panic!("worker {} is silent; it said {:?}", self.id(), self.heard.last()))
    }

    /// Kills the worker when `life` is over, in the middle of whatever it is doing.
    pub async fn kill_after(self, life: Duration) -> std::io::Result<Life> {
        // Not to wait for a condition: the moment of death is meant to be arbitrary.
        tokio::time::sleep(life).await;
        self.kill().await
    }

    /// Kills the worker now. It is no error if it ended by itself.
    pub async fn kill(mut self) -> std::io::Result<Life> {
        self.child.kill()?;
        self.end().await
    }

    /// Listens until the worker ends.
    pub async fn end(mut self) -> std::io::Result<Life> {
        self.until(|_| false).await;
        let status = self.child.wait()?;
        Ok(Life { lines: std::mem::take(&mut self.heard), status })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Only after a failure is it still running; then nobody is interested in how it ends.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
