//! Flow control in a server on a store in memory, under virtual time.

use super::*;
use crate::authn::{Authentication, SigningKey, StaticTokens};
use crate::authorization::Authorization;
use crate::identity::user;
use crate::local::Local;
use crate::pipeline::Peer;
use ambient::Ambient;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::Method;
use http_body_util::{BodyExt, Full};
use object::{Edit, Value, View, json};

const PATH: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const PODS: &str = "/api/v1/namespaces/default/pods";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n";

struct Cluster {
    api: Api,
    admin: Local,
}

type Admission = BoxFuture<'static, Result<Admitted, ApiError>>;

impl Cluster {
    async fn start() -> Self {
        let ambient = Ambient::seeded(1);
        let store = Arc::new(store::Memory::new(&ambient, store::Retention::default()));
        let registry = registry::Registry::start(store, Arc::new(registry::Plain), &ambient).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let key = SigningKey::open(&directory.path().join("sa.key")).unwrap();
        let authentication = Authentication::new(key, StaticTokens::default());
        let address = "192.0.2.1:6443".to_owned();
        let api = Api::new(registry, ambient, authentication, Authorization::default(), None, address);
        crate::bootstrap(&api).await.unwrap();
        let admin = Local::new(api.clone(), user("admin", &["system:masters"]), "test");
        Cluster { api, admin }
    }

    /// A level with the settings, and a schema by which everything that ann and bob ask for is served there.
    async fn with_level(limited: Value) -> Self {
        let cluster = Cluster::start().await;
        let level = json!({ "metadata": { "name": "small" }, "spec": { "type": "Limited", "limited": limited } });
        cluster.admin.create(&format!("{PATH}/prioritylevelconfigurations"), &level).await.unwrap();
        let everything = json!({
            "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true,
        });
        let subjects = ["ann", "bob"].map(|name| json!({ "kind": "User", "user": { "name": name } }));
        let schema = json!({ "metadata": { "name": "small" }, "spec": {
            "priorityLevelConfiguration": { "name": "small" },
            "matchingPrecedence": 50,
            "distinguisherMethod": { "type": "ByUser" },
            "rules": [{ "subjects": subjects.to_vec(), "resourceRules": [everything] }],
        } });
        cluster.admin.create(&format!("{PATH}/flowschemas"), &schema).await.unwrap();
        cluster.until(|objects| objects.schemas.get("small").is_some_and(|schema| dangling(schema) == "False")).await;
        cluster
    }

    async fn until(&self, holds: impl Fn(&Objects) -> bool) {
        let mut changed = self.api.flow.shared.changed.subscribe();
        while !holds(&self.api.flow.objects()) {
            changed.changed().await.unwrap();
        }
    }

    fn ask(&self, name: &str, groups: &[&str], method: &Method, uri: &str) -> Admission {
        let (path, query) = uri.split_once('?').map_or((uri, None), |(path, query)| (path, Some(query)));
        let (api, user, query) = (self.api.clone(), user(name, groups), Query::parse(query));
        let info = Info::new(method, path, &query);
        async move {
            let lane = api.flow.lane(&user, &info).unwrap();
            api.flow.admit(&api, &lane, &user, &info, &query).await
        }
        .boxed()
    }

    fn get(&self, name: &str) -> Admission {
        self.ask(name, &[], &Method::GET, &format!("{PODS}/p"))
    }

    /// Those who have a seat at once.
    fn seat(&self, name: &str, count: usize) -> Vec<Admitted> {
        (0..count).map(|_| self.get(name).now_or_never().unwrap().unwrap()).collect()
    }

    fn lane(&self, name: &str, groups: &[&str]) -> Arc<Lane> {
        let info = Info::new(&Method::GET, PODS, &Query::default());
        self.api.flow.lane(&user(name, groups), &info).unwrap()
    }
}

fn dangling(schema: &Value) -> String {
    let conditions = schema.at("status").items("conditions").iter();
    conditions.filter(|one| one.text("type") == "Dangling").map(|one| one.text("status")).collect()
}

/// 3 of the 600 seats, none of them lent or borrowed.
fn three_seats(queues: u32, length: u32) -> Value {
    let queuing = json!({ "queues": queues, "handSize": 1, "queueLengthLimit": length });
    json!({
        "nominalConcurrencyShares": 1, "borrowingLimitPercent": 0,
        "limitResponse": { "type": "Queue", "queuing": queuing },
    })
}

fn is_refused(answer: Result<Admitted, ApiError>) -> bool {
    let refused = answer.unwrap_err();
    refused.message() == "too many requests, please try again later"
        && (refused.code(), refused.retry_after_seconds()) == (429, Some(1))
}

#[tokio::test(start_paused = true)]
async fn beyond_what_may_wait_requests_are_refused_and_heartbeats_are_not() {
    let cluster = Cluster::with_level(three_seats(1, 1)).await;
    let mut held = cluster.seat("ann", 3);
    let mut waits = cluster.get("ann");
    assert!((&mut waits).now_or_never().is_none());
    assert!(is_refused(cluster.get("ann").await));
    let nodes = &["system:nodes", "system:authenticated"];
    for (method, path) in [(Method::PUT, LEASE), (Method::PATCH, "/api/v1/nodes/n/status")] {
        assert!(cluster.ask("system:node:n", nodes, &method, path).now_or_never().unwrap().is_ok());
    }
    held.pop();
    waits.now_or_never().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_one_user_does_not_keep_another_waiting() {
    let cluster = Cluster::with_level(three_seats(64, 50)).await;
    let mut held = cluster.seat("ann", 3);
    let mut flood: Vec<Admission> = (0..50).map(|_| cluster.get("ann")).collect();
    assert!(flood.iter_mut().all(|waits| waits.now_or_never().is_none()));
    assert!(is_refused(cluster.get("ann").await), "the only queue of the flow is full");
    let mut bob = cluster.get("bob");
    assert!((&mut bob).now_or_never().is_none());
    // One of ann's has come before; the next is bob's.
    held.truncate(1);
    bob.now_or_never().expect("bob is served before those who came earlier").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_gives_up_its_place_and_even_the_seat_it_was_just_given() {
    let cluster = Cluster::with_level(three_seats(1, 1)).await;
    let held = cluster.seat("ann", 3);
    let (mut first, mut second) = (cluster.get("ann"), cluster.get("bob"));
    assert!((&mut first).now_or_never().is_none());
    drop(first);
    assert!((&mut second).now_or_never().is_none(), "there is a place again");
    drop(held);
    drop(second);
    cluster.seat("ann", 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_quarter_of_its_time_and_is_then_refused() {
    let cluster = Cluster::with_level(three_seats(1, 9)).await;
    let _held = cluster.seat("ann", 3);
    for (uri, millis) in [(format!("{PODS}/p"), 15_000), (format!("{PODS}/p?timeout=2s"), 500)] {
        let since = cluster.api.ambient.clock.monotonic();
        assert!(is_refused(cluster.ask("ann", &[], &Method::GET, &uri).await));
        let waited = cluster.api.ambient.clock.monotonic().duration_since(since);
        assert_eq!(waited.as_millis(), millis, "{uri}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_level_that_is_short_borrows_what_others_do_not_need_and_gives_it_back() {
    let queuing = json!({ "queues": 1, "handSize": 1, "queueLengthLimit": 50 });
    let limited = json!({
        "nominalConcurrencyShares": 1, "limitResponse": { "type": "Queue", "queuing": queuing },
    });
    let cluster = Cluster::with_level(limited).await;
    let mut held = cluster.seat("ann", 3);
    let more: Vec<_> = (0..20).map(|_| cluster.get("ann")).collect();
    held.extend(futures::future::join_all(more).await.into_iter().map(Result::unwrap));
    let level = cluster.lane("ann", &[]).level.clone();
    assert!(level.digest().limit >= 23, "{:?}", level.digest());
    drop(held);
    // Time passes while nothing happens.
    tokio::time::timeout(5 * BALANCE_PERIOD, std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(level.digest().limit, 3);
}

#[tokio::test(start_paused = true)]
async fn an_answer_says_which_schema_and_level_it_is_of_and_a_level_without_seats_answers_429() {
    let none = json!({
        "nominalConcurrencyShares": 0, "borrowingLimitPercent": 0, "limitResponse": { "type": "Reject" },
    });
    let cluster = Cluster::with_level(none).await;
    for (name, groups, object, code) in [("ann", vec![], "small", 429), ("root", vec!["system:masters"], "exempt", 200)]
    {
        let peer = Peer { user: Some(Arc::new(user(name, &groups))), address: None };
        let request = http::Request::builder().uri(PODS).body(Full::new(Bytes::new())).unwrap();
        let response = cluster.api.handle(&peer, request).await;
        assert_eq!(response.status(), code, "{name}");
        assert_eq!(response.headers().get("retry-after").is_some_and(|after| after == "1"), code == 429);
        for (header, plural) in [(SCHEMA_UID, "flowschemas"), (LEVEL_UID, "prioritylevelconfigurations")] {
            let object = cluster.admin.get(&format!("{PATH}/{plural}/{object}")).await.unwrap();
            assert_eq!(response.headers()[header], object.at("metadata").text("uid"));
        }
    }
    let text = String::from_utf8(cluster.api.metrics.text(&[], 0)).unwrap();
    for line in [
        "apiserver_flowcontrol_rejected_requests_total{flow_schema=\"small\",priority_level=\"small\",reason=\"concurrency-limit\"} 1",
        "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"small\"} 0",
        "apiserver_flowcontrol_current_executing_requests{flow_schema=\"exempt\",priority_level=\"exempt\"} 0",
        "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_sent_bit_by_bit_keeps_its_seats_until_it_is_sent() {
    let cluster = Cluster::start().await;
    let large = json!({ "metadata": { "name": "large" }, "data": { "a": "x".repeat(200_000) } });
    cluster.admin.create("/api/v1/namespaces/default/configmaps", &large).await.unwrap();
    let root = Peer { user: Some(Arc::new(user("root", &["system:masters"]))), address: None };
    let request = http::Request::builder().uri("/api/v1/configmaps").body(Full::new(Bytes::new())).unwrap();
    let response = cluster.api.handle(&root, request).await;
    let level = cluster.lane("root", &["system:masters"]).level.clone();
    assert_eq!(level.digest().taken, 1);
    assert!(response.into_body().collect().await.unwrap().to_bytes().len() > 200_000);
    while level.digest().taken > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_mandatory_comes_back_and_a_schema_says_whether_its_level_is_there() {
    let cluster = Cluster::with_level(three_seats(1, 1)).await;
    for path in ["prioritylevelconfigurations/catch-all", "flowschemas/catch-all", "prioritylevelconfigurations/small"]
    {
        cluster.admin.delete(&format!("{PATH}/{path}")).await.unwrap();
    }
    cluster
        .until(|objects| {
            let caught = |schemas: &Objects| schemas.schemas.get("catch-all").map(dangling);
            objects.levels.contains_key("catch-all")
                && caught(objects).as_deref() == Some("False")
                && objects.schemas.get("small").map(dangling).as_deref() == Some("True")
        })
        .await;
    let schema = cluster.admin.get(&format!("{PATH}/flowschemas/small")).await.unwrap();
    let condition = &schema.at("status").items("conditions")[0];
    let message =
        "This FlowSchema references the PriorityLevelConfiguration object named \"small\" but there is no such object";
    assert_eq!((condition.text("reason"), condition.text("message")), ("NotFound", message));
    assert_eq!(cluster.lane("ann", &[]).schema, "catch-all");
    // A suggestion that somebody has changed for good stays as it is.
    let path = format!("{PATH}/prioritylevelconfigurations/system");
    let mut level = cluster.admin.get(&path).await.unwrap();
    level.object_or_new("metadata").object_or_new("annotations").set("apf.kubernetes.io/autoupdate-spec", "false");
    level.object_or_new("spec").object_or_new("limited").set("nominalConcurrencyShares", 7);
    cluster.admin.update(&path, &level).await.unwrap();
    cluster.api.registry.cache.current().await.unwrap();
    assert_eq!(upkeep::plan(&cluster.api.flow.objects(), ""), []);
}
