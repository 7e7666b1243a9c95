//! The server as a process of its own, in a directory of its own.

use ambient::Ambient;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) struct Server {
    child: Child,
    pub kubeconfig: PathBuf,
    pub started: Duration,
    _dir: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let kubeconfig = dir.path().join("kubeconfig");
        let clock = Ambient::real().clock;
        let started = clock.monotonic();
        let mut child = Command::new(env!("CARGO_BIN_EXE_setpoint"))
            .args(["up", "--nodes", "none", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(dir.path().join("data"))
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("standard output is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the program says something");
        assert!(line.starts_with("ready in"), "{line}");
        Server { child, kubeconfig, started: clock.monotonic() - started, _dir: dir }
    }

    pub(crate) fn resident_mib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
        let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kib / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
