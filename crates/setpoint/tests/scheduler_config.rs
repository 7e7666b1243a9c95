//! Profiles of the scheduler from a file, as the program reads it.

use std::process::Command;
use testkit::server::Server;

const PROGRAM: &str = env!("CARGO_BIN_EXE_setpoint");

fn written(text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("scheduler.yaml");
    std::fs::write(&path, text).unwrap();
    (dir, path.display().to_string())
}

#[tokio::test]
async fn pods_are_placed_by_the_profile_that_they_name() {
    let (_dir, path) = written(
        r#"
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: anywhere
  plugins:
    multiPoint:
      disabled:
      - name: NodeAffinity
"#,
    );
    let arguments = ["--store", "memory", "--nodes", "simulated=1", "--scheduler-config", &path];
    let server = Server::start(PROGRAM, &arguments).await;
    let run = |name: &str, scheduler: &str| {
        let selector = r#""nodeSelector":{"disk":"ssd"}"#;
        let overrides = format!(r#"--overrides={{"spec":{{"schedulerName":"{scheduler}",{selector}}}}}"#);
        server.kubectl(&["run", name, "--image=image", &overrides]);
    };
    run("picky", "default-scheduler");
    run("easy", "anywhere");
    server.kubectl(&["wait", "--for=jsonpath={.spec.nodeName}=node-0", "pod/easy", "--timeout=30s"]);
    let unschedulable = r#"--for=jsonpath={.status.conditions[?(@.type=="PodScheduled")].reason}=Unschedulable"#;
    server.kubectl(&["wait", unschedulable, "pod/picky", "--timeout=30s"]);
}

#[test]
fn a_file_with_mistakes_is_refused_with_their_places() {
    let (dir, path) = written(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 4\n\
         profiles: [{ schedulerName: a, percentageOfNodesToScore: 101 }]\n",
    );
    let data = dir.path().join("data").display().to_string();
    let arguments = ["up", "--listen", "127.0.0.1:0", "--data-dir", &data, "--scheduler-config", &path];
    let output = Command::new(PROGRAM).args(arguments).env("RUST_LIB_BACKTRACE", "0").output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for part in [
        path.as_str(),
        "parallelism: Forbidden: not supported",
        "profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
    ] {
        assert!(said.contains(part), "{said}");
    }
}
