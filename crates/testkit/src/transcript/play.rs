//! Running the commands of a transcript.

use super::parse::trimmed;
use crate::server::Server;
use ambient::Tasks;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// A command that takes longer hangs, in the words of `timeout`.
const COMMAND_TIMEOUT: &str = "60";
/// How long a line of a command in the background is waited for.
const LINE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Player {
    kubeconfig: PathBuf,
    /// Where commands run; also their home, so that nothing of the user's is read or written.
    dir: PathBuf,
    background: Option<Background>,
}

struct Background {
    child: Child,
    lines: Receiver<String>,
}

impl Player {
    pub(super) fn new(server: &Server) -> Self {
        let dir = server.dir().join("home");
        std::fs::create_dir_all(&dir).expect("a temporary directory can be written to");
        Player { kubeconfig: server.kubeconfig(), dir, background: None }
    }

    /// Runs a command and returns what it prints. `lines` is how many lines of a command in the background to wait
    /// for.
    pub(super) fn run(&mut self, command: &str, lines: usize) -> Vec<String> {
        if command == "fg" {
            let mut background = self.background.take().expect("a command runs in the background");
            return background.take(lines);
        }
        if let Some(command) = command.strip_suffix(" &") {
            let mut background = Background::start(self.shell(command));
            let printed = background.take(lines);
            self.background = Some(background);
            return printed;
        }
        let output = self.shell(command).output().expect("there is a shell");
        let printed = String::from_utf8_lossy(&output.stdout);
        // Tables end their lines with spaces in some columns, which nobody sees.
        let mut printed = trimmed(printed.lines().map(|line| line.trim_end().to_owned()).collect());
        match output.status.code() {
            Some(0) => {}
            Some(code) => printed.push(format!("[exit {code}]")),
            None => printed.push("[killed]".to_owned()),
        }
        printed
    }

    /// A shell whose two outputs are one.
    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("timeout");
        shell
            .args([COMMAND_TIMEOUT, "bash", "-c", &format!("exec 2>&1\n{command}")])
            .current_dir(&self.dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.dir)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        shell
    }
}

impl Background {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("there is a shell");
        let output = child.stdout.take().expect("its output is a pipe");
        let (sender, lines) = std::sync::mpsc::channel();
        let reading = Tasks::new().thread("background", move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line.trim_end().to_owned()).is_err() {
                    return;
                }
            }
        });
        reading.expect("a thread can be started");
        Background { child, lines }
    }

    /// The next so many lines, or as many as come in time.
    fn take(&mut self, lines: usize) -> Vec<String> {
        (0..lines).map_while(|_| self.lines.recv_timeout(LINE_TIMEOUT).ok()).collect()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // `timeout` passes the signal on to its command and ends with it. It fails only if that has ended by itself.
        let _ =
            rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}
