//! The real program, on loopback, with its data in a temporary directory.
//!
//! It is asked to end when it is dropped, and killed by the kernel when the test process dies in any other way.

use crate::https::Client;
use crate::process::Process;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// What it says on standard output once it serves.
const READY: &str = "ready in ";

/// An error is told in one line; panics keep their traces.
const QUIET: [(&str, &str); 1] = [("RUST_LIB_BACKTRACE", "0")];

const IN_MEMORY: [&str; 2] = ["--store", "memory"];

/// A `setpoint up` that is ready, and its data.
#[derive(Debug)]
pub struct Server {
    program: PathBuf,
    arguments: Vec<String>,
    /// As `--nodes` wants it.
    nodes: String,
    /// None while it is killed.
    process: Option<Process>,
    dir: TempDir,
}

impl Server {
    /// Starts a program that was built with the tests: `Server::start(env!("CARGO_BIN_EXE_setpoint"), &[])`.
    pub async fn start(program: &str, arguments: &[&str]) -> Self {
        Self::start_with(program, arguments, "none".to_owned()).await
    }

    /// With its data in memory, so many nodes that run nothing, and whatever else it is told.
    pub async fn with_nodes(program: &str, count: usize, arguments: &[&str]) -> Self {
        Self::start_with(program, &[&IN_MEMORY, arguments].concat(), nodes(count)).await
    }

    /// With its data on disk, and so many nodes that run nothing.
    pub async fn on_disk_with_nodes(program: &str, count: usize) -> Self {
        Self::start_with(program, &[], nodes(count)).await
    }

    /// With nodes as `--nodes` wants them.
    pub async fn start_with(program: &str, arguments: &[&str], nodes: String) -> Self {
        let dir = tempfile::Builder::new().prefix("setpoint-").tempdir().expect("a temporary directory can be made");
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut server = Server { program: program.into(), arguments, nodes, process: None, dir };
        server.restart().await;
        server
    }

    /// Another over the same store as this one. They have to share their keys.
    pub async fn start_beside(&self, arguments: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("setpoint-").tempdir().expect("a temporary directory can be made");
        let (from, to) = (self.dir.path().join("data/pki"), dir.path().join("data/pki"));
        std::fs::create_dir_all(&to).expect("a directory can be made");
        for file in std::fs::read_dir(from).expect("the other has keys").flatten() {
            std::fs::copy(file.path(), to.join(file.file_name())).expect("a key can be copied");
        }
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let (program, nodes) = (self.program.clone(), self.nodes.clone());
        let mut server = Server { program, arguments, nodes, process: None, dir };
        server.restart().await;
        server
    }

    pub fn id(&self) -> u32 {
        self.process.as_ref().expect("the server runs").id()
    }

    /// For tests that need no disk.
    pub async fn in_memory(program: &str) -> Self {
        Self::start(program, &IN_MEMORY).await
    }

    /// The administrator's credentials.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("kubeconfig")
    }

    /// A directory for whatever a test needs; it goes with the server.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn client(&self) -> Client {
        Client::new(&self.kubeconfig())
    }

    /// Runs the stock kubectl as the administrator, which must succeed, and returns what it prints.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("kubectl");
        command.args(arguments).env("KUBECONFIG", self.kubeconfig()).env("HOME", self.dir());
        let output = command.output().expect("kubectl is installed");
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {arguments:?} failed\n{stdout}\n{stderr}\n{}", self.last_words());
        stdout.into_owned()
    }

    /// Ends it at once, as a power failure would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Asks it to end, which it must do soon and without complaint.
    pub fn stop(&mut self) {
        let mut process = self.process.take().expect("the server runs");
        let status = process.terminate();
        assert!(
            status.is_some_and(|status| status.success()),
            "the server did not stop cleanly ({status:?}); its last words:\n{}",
            process.last_words()
        );
    }

    /// Starts it again on its data, on another port, and waits until it is ready.
    pub async fn restart(&mut self) {
        self.process = None;
        let (data, kubeconfig) = (self.dir.path().join("data"), self.kubeconfig());
        let mut arguments: Vec<String> = ["up", "--listen", "127.0.0.1:0"].map(str::to_owned).into();
        arguments.extend(["--nodes".to_owned(), self.nodes.clone()]);
        arguments.extend(["--data-dir".to_owned(), data.display().to_string()]);
        arguments.extend(["--kubeconfig".to_owned(), kubeconfig.display().to_string()]);
        arguments.extend_from_slice(&self.arguments);
        let mut process = Process::spawn(&self.program, &arguments, &QUIET, READY).expect("the program can be started");
        let said = process.ready().await;
        assert!(said.ends_with(&format!("KUBECONFIG={}", kubeconfig.display())), "it said {said:?}");
        self.process = Some(process);
    }

    pub fn last_words(&self) -> String {
        self.process.as_ref().map(Process::last_words).unwrap_or_default()
    }
}

fn nodes(count: usize) -> String {
    if count == 0 { "none".to_owned() } else { format!("simulated={count}") }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            process.terminate();
        }
    }
}
