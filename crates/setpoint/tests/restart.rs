//! What was declared is kept true across restarts of everything: the program is killed at the worst moments, and what
//! it finds when it comes back is brought to what is wanted, with nothing lost and nothing twice.

use std::collections::BTreeSet;
use testkit::server::Server;

const REPLICAS: usize = 12;

async fn server() -> Server {
    Server::on_disk_with_nodes(env!("CARGO_BIN_EXE_setpoint"), 3).await
}

/// One line for each object that a query prints.
fn lines(server: &Server, arguments: &[&str]) -> BTreeSet<String> {
    let printed = server.kubectl(arguments);
    let lines: Vec<String> = printed.lines().map(str::to_owned).collect();
    let distinct: BTreeSet<String> = lines.iter().cloned().collect();
    assert_eq!(distinct.len(), lines.len(), "something is there twice:\n{printed}");
    distinct
}

/// The pods that stay, with what must not change as long as they do.
fn pods(server: &Server) -> BTreeSet<String> {
    let each = "{.metadata.name} {.metadata.uid} {.spec.nodeName} {.status.podIP}";
    lines(
        server,
        &["get", "pods", "-l", "app=web", "-o", &format!("jsonpath={{range .items[*]}}{each}{{\"\\n\"}}{{end}}")],
    )
}

fn addresses(pods: &BTreeSet<String>) -> BTreeSet<&str> {
    pods.iter().filter_map(|pod| pod.split(' ').nth(3)).collect()
}

/// Waits until the deployment is as it was declared, and pods that had to go are gone.
fn converged(server: &Server) {
    server.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    server.kubectl(&["wait", "--for=jsonpath={.status.terminatingReplicas}=0", "deployment/web", "--timeout=60s"]);
}

fn declare(server: &Server, image: &str) {
    let replicas = format!("--replicas={REPLICAS}");
    server.kubectl(&["create", "deployment", "web", &format!("--image={image}"), &replicas]);
}

#[tokio::test]
async fn pods_outlive_the_server_and_are_healed_after_it_is_killed() {
    let mut server = server().await;
    declare(&server, "nginx:1.27");
    converged(&server);
    let before = pods(&server);
    assert_eq!((before.len(), addresses(&before).len()), (REPLICAS, REPLICAS));

    server.kill();
    server.restart().await;
    converged(&server);
    assert_eq!(pods(&server), before, "nothing was made again");

    let victim = before.first().and_then(|pod| pod.split(' ').next()).unwrap();
    server.kubectl(&["delete", "pod", victim, "--wait=false"]);
    server.kill();
    server.restart().await;
    server.kubectl(&["wait", "--for=delete", &format!("pod/{victim}"), "--timeout=60s"]);
    server.kubectl(&["scale", "deployment/web", &format!("--replicas={}", REPLICAS + 1)]);
    converged(&server);
    let after = pods(&server);
    assert_eq!((after.len(), addresses(&after).len()), (REPLICAS + 1, REPLICAS + 1));
    assert_eq!(after.intersection(&before).count(), REPLICAS - 1, "only the victim was replaced");
}

#[tokio::test]
async fn a_rollout_that_is_interrupted_again_and_again_ends_as_declared() {
    let mut server = server().await;
    declare(&server, "nginx:1.27");
    for version in 28..32 {
        server.kubectl(&["set", "image", "deployment/web", &format!("nginx=nginx:1.{version}")]);
        server.kill();
        server.restart().await;
    }
    converged(&server);
    let images = "jsonpath={range .items[*]}{.metadata.name} {.spec.containers[0].image}{\"\\n\"}{end}";
    let pods = lines(&server, &["get", "pods", "-l", "app=web", "-o", images]);
    assert_eq!(pods.len(), REPLICAS, "{pods:?}");
    assert!(pods.iter().all(|pod| pod.ends_with(" nginx:1.31")), "{pods:?}");
    let sets = "jsonpath={range .items[?(@.spec.replicas>0)]}{.spec.template.spec.containers[0].image}{\"\\n\"}{end}";
    assert_eq!(server.kubectl(&["get", "replicasets", "-l", "app=web", "-o", sets]).trim(), "nginx:1.31");
}

#[tokio::test]
async fn what_was_being_deleted_when_the_server_was_killed_is_deleted() {
    let mut server = server().await;
    declare(&server, "nginx:1.27");
    converged(&server);
    server.kubectl(&["create", "namespace", "team"]);
    server.kubectl(&["-n", "team", "create", "configmap", "one"]);
    for command in ["delete deployment web --wait=false", "delete namespace team --wait=false"] {
        server.kubectl(&command.split(' ').collect::<Vec<_>>());
        server.kill();
        server.restart().await;
    }
    server.kubectl(&["wait", "--for=delete", "replicaset,pod", "-l", "app=web", "--timeout=60s"]);
    server.kubectl(&["wait", "--for=delete", "namespace/team", "--timeout=60s"]);
    assert_eq!(server.kubectl(&["get", "deployments,replicasets,pods", "-o", "name"]), "");
    assert_eq!(server.kubectl(&["-n", "team", "get", "configmaps", "-o", "name"]), "");
}

#[tokio::test]
async fn the_loops_go_on_at_once_because_the_lease_is_their_own() {
    let mut server = server().await;
    let lease = ["-n", "kube-system", "get", "lease", "kube-controller-manager"];
    let holder = [&lease[..], &["-o", "jsonpath={.spec.holderIdentity} {.spec.leaseTransitions}"]].concat();
    server.kubectl(&["-n", "kube-system", "wait", "--for=create", "lease/kube-controller-manager"]);
    let before = server.kubectl(&holder);
    server.kill();
    server.restart().await;
    declare(&server, "nginx:1.27");
    converged(&server);
    assert_eq!(server.kubectl(&holder), before);
}
