//! Two servers over one real etcd: one of them works at a time, and when it dies the other goes on where it was.

use ambient::Ambient;
use kinds::{Key, Kind, Lease, Pod, ReplicaSet, Time};
use object::json;
use runtime::{Client, Https, ListOptions};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::etcd::{self, Etcd};
use testkit::server::Server;

const SETS: usize = 12;
const REPLICAS: usize = 3;
/// The lease, and what two candidates may take to notice that it has run out.
const TAKEOVER: Duration = Duration::from_secs(15 + 8);

fn client(server: &Server, ambient: &Ambient) -> Client {
    let transport = Https::from_kubeconfig(&server.kubeconfig(), ambient).expect("the kubeconfig can be read");
    Client::new(std::sync::Arc::new(transport), "test")
}

async fn holder(client: &Client) -> String {
    let key = Key::new("kube-system", "kube-controller-manager");
    let lease = client.get::<Lease>(&key).await.expect("the server answers");
    lease.map(|lease| lease.spec.holder_identity.clone()).unwrap_or_default()
}

/// Waits until a look at the cluster gives something; the watch tells when to look.
async fn until<T>(client: &Client, limit: Duration, look: impl AsyncFn() -> Option<T>) -> T {
    let waiting = async {
        loop {
            let mut events = client.watch(&Lease::ID, "kube-system", &ListOptions::default(), None).await.unwrap();
            while let Some(Ok(_)) = events.next().await {
                if let Some(found) = look().await {
                    return found;
                }
            }
        }
    };
    tokio::time::timeout(limit, waiting).await.expect("it happens in time")
}

async fn make_sets(client: &Client, from: usize, to: usize) {
    for number in from..to {
        let name = format!("set-{number}");
        let object = json!({
            "kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "replicas": REPLICAS, "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "c", "image": "image" }] },
                },
            },
        });
        client.create(&ReplicaSet::ID, &object).await.expect("a set can be created");
    }
}

/// How many pods each set has; none before all have enough.
async fn complete(client: &Client) -> Option<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for pod in client.list::<Pod>("default", &ListOptions::default()).await.ok()?.items {
        *counts.entry(pod.metadata.label("app").to_owned()).or_insert(0) += 1;
    }
    (counts.len() == SETS && counts.values().all(|count| *count >= REPLICAS)).then_some(counts)
}

#[tokio::test]
async fn when_the_leader_is_killed_the_other_takes_over_and_nothing_is_lost_or_doubled() {
    let etcd = Etcd::start(etcd::available_versions()[0]).await;
    let store = format!("etcd={}", etcd.endpoint());
    let ambient = Ambient::real();
    let mut first = Server::start(env!("CARGO_BIN_EXE_setpoint"), &["--store", &store]).await;
    let mut second = first.start_beside(&["--store", &store]).await;
    let (to_first, to_second) = (client(&first, &ambient), client(&second, &ambient));
    let leader =
        until(&to_second, TAKEOVER, async || Some(holder(&to_first).await).filter(|name| !name.is_empty())).await;

    make_sets(&to_first, 0, SETS / 2).await;
    first.kill();
    let died = Time::from_millis(ambient.clock.wall().0);
    make_sets(&to_second, SETS / 2, SETS).await;
    let successor = until(&to_second, TAKEOVER, async || {
        Some(holder(&to_second).await).filter(|name| !name.is_empty() && *name != leader)
    });
    assert_ne!(successor.await, leader);
    let took = Time::from_millis(ambient.clock.wall().0).since(died);
    assert!(took < TAKEOVER, "{took:?}");

    let counts = until(&to_second, TAKEOVER, async || complete(&to_second).await).await;
    assert!(counts.values().all(|count| *count == REPLICAS), "{counts:?}");

    // One that ends in good order lets go at once: whoever is there need not wait.
    first.restart().await;
    let to_first = client(&first, &ambient);

    // Why a pod waits is asked of whoever leads; the other says who that is.
    let pod =
        to_second.list::<Pod>("default", &ListOptions::default()).await.expect("the server answers").items.remove(0);
    let path = format!("/debug/scheduling/default/{}", pod.metadata.name);
    let (here, there) = (first.client().get(&path).await, second.client().get(&path).await);
    let (said, leads) = (String::from_utf8_lossy(&here.body).into_owned(), holder(&to_second).await);
    assert_eq!((here.status.as_u16(), there.status.as_u16()), (503, 200), "{said}");
    assert!(said.contains(&format!("ask the server {leads}")), "{said}");

    second.stop();
    let limit = Duration::from_secs(6);
    until(&to_first, limit, async || Some(holder(&to_first).await).filter(|name| *name == leader)).await;
    let counts = complete(&to_first).await;
    assert_eq!(counts.map(|counts| counts.values().sum()), Some(SETS * REPLICAS));
    ambient.tasks.stop().await;
}
