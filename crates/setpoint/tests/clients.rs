//! Stock clients other than kubectl: the one for Python, and Helm. `scripts/setup test` installs them.

use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::server::Server;

async fn server() -> Server {
    Server::in_memory(env!("CARGO_BIN_EXE_setpoint")).await
}

fn tool(path: &str) -> PathBuf {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools").join(path);
    assert!(tool.exists(), "there is no {}; run `scripts/setup test`", tool.display());
    tool
}

/// Runs a program against the server and returns what it prints.
fn run(server: &Server, command: &mut Command) -> String {
    let command = command
        .current_dir(server.dir())
        .env("KUBECONFIG", server.kubeconfig())
        .env("HOME", server.dir())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} failed\n{stdout}\n{stderr}");
    stdout.into_owned()
}

#[tokio::test]
async fn the_client_for_python_works_as_it_is() {
    let server = server().await;
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/test_client.py");
    run(&server, Command::new(tool("python/bin/python")).arg(tests).arg("--verbose"));
}

#[tokio::test]
async fn helm_installs_upgrades_rolls_back_and_uninstalls_a_chart() {
    let server = server().await;
    let helm = |arguments: &str| run(&server, Command::new(tool("helm/helm")).args(arguments.split(' ')));
    let kubectl = |arguments: &str| run(&server, Command::new("kubectl").args(arguments.split(' ')));
    let replicas = || kubectl("get deployment demo-shop -o jsonpath={.spec.replicas}");

    helm("create shop");
    assert!(helm("install demo shop").contains("STATUS: deployed"));
    assert_eq!(
        kubectl("get deployment,service,serviceaccount -l app.kubernetes.io/instance=demo -o name"),
        "deployment.apps/demo-shop\nservice/demo-shop\nserviceaccount/demo-shop\n"
    );
    assert_eq!(replicas(), "1");

    assert!(helm("upgrade demo shop --set replicaCount=3 --set ingress.enabled=true").contains("REVISION: 2"));
    assert_eq!(replicas(), "3");
    assert_eq!(kubectl("get ingress -o name"), "ingress.networking.k8s.io/demo-shop\n");

    assert!(helm("rollback demo 1").contains("Rollback was a success"));
    assert_eq!(replicas(), "1");
    assert_eq!(kubectl("get ingress -o name"), "");

    let history = helm("history demo -o json");
    for (revision, status) in [(1, "superseded"), (2, "superseded"), (3, "deployed")] {
        assert!(history.contains(&format!("\"revision\":{revision},")), "{history}");
        assert!(history.contains(&format!("\"status\":\"{status}\"")), "{history}");
    }
    assert!(helm("get manifest demo").contains("kind: Deployment"));
    assert!(helm("list").contains("deployed"));

    assert!(helm("uninstall demo").contains("uninstalled"));
    assert_eq!(kubectl("get deployment,service,serviceaccount,secret -l app.kubernetes.io/instance=demo -o name"), "");
    assert_eq!(kubectl("get secrets -l owner=helm -o name"), "");
}
