//! What the recorder sends, to a server that keeps events and fails when told to, on paused time.

use super::*;
use crate::transport::{Events, Transport};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response};
use kinds::{Object, Pod};
use object::View;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[derive(Debug, Default)]
struct Server {
    /// By path.
    events: Mutex<BTreeMap<String, Value>>,
    /// What the next requests are answered with.
    failures: Mutex<VecDeque<ApiError>>,
    requests: Mutex<usize>,
    /// Requests are not answered.
    hangs: Mutex<bool>,
}

#[async_trait]
impl Transport for Server {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiError> {
        *self.requests.lock() += 1;
        let hangs = *self.hangs.lock();
        if hangs {
            return std::future::pending().await;
        }
        if let Some(error) = self.failures.lock().pop_front() {
            return Err(error);
        }
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        let mut events = self.events.lock();
        let path = request.uri().path();
        if *request.method() == Method::POST {
            events.insert(format!("{path}/{}", body["metadata"]["name"].as_str().unwrap()), body.clone());
            return Ok(Response::new(Bytes::from(body.to_string())));
        }
        let Some(event) = events.get_mut(path) else {
            let body = ApiError::not_found("", "events", "").to_status().to_string();
            return Ok(Response::builder().status(404).body(Bytes::from(body)).unwrap());
        };
        body.as_object().unwrap().iter().for_each(|(field, value)| event[field] = value.clone());
        Ok(Response::new(Bytes::from(event.to_string())))
    }

    async fn watch(&self, _: Request<Bytes>) -> Result<Box<dyn Events>, ApiError> {
        Err(ApiError::internal("nobody watches"))
    }
}

impl Server {
    fn only(&self) -> (String, Value) {
        let events = self.events.lock();
        assert_eq!(events.len(), 1, "{events:#?}");
        events.first_key_value().map(|(path, event)| (path.clone(), event.clone())).unwrap()
    }
}

fn start() -> (Arc<Server>, Recorder, Ambient) {
    let (server, ambient) = (Arc::new(Server::default()), Ambient::seeded(1));
    let client = Client::new(server.clone(), "test");
    let recorder = Recorder::new(client, "replicaset-controller", "", &ambient, &Registry::new());
    (server, recorder, ambient)
}

fn pod() -> Object<Pod> {
    Object::of(&json!({ "metadata": { "namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "7" } }))
}

/// Lets everything happen that is due within a second.
async fn soon() {
    tokio::time::advance(Duration::from_millis(500)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_can_speak_for_another_component() {
    let (server, recorder, _ambient) = start();
    recorder.record(Note::normal(&pod(), "Scheduled", "done").by("my-scheduler"));
    soon().await;
    let (_, event) = server.only();
    assert_eq!(
        (&event["reportingComponent"], &event["source"]["component"]),
        (&json!("my-scheduler"), &json!("my-scheduler"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_says_who_saw_what_about_which_object_and_how_often() {
    let (server, recorder, ambient) = start();
    recorder.record(Note::warning(&pod(), "Failed", "no"));
    soon().await;
    let (path, event) = server.only();
    let name = event["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!(path, format!("/api/v1/namespaces/shop/events/{name}"));
    assert!(name.starts_with("web.") && name.len() == "web.".len() + 16, "{name}");
    let expected = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "namespace": "shop", "name": name },
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "7",
        },
        "type": "Warning", "reason": "Failed", "message": "no", "source": { "component": "replicaset-controller" },
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1,
        "reportingComponent": "replicaset-controller", "reportingInstance": "",
    });
    assert_eq!(event, expected);
    tokio::time::advance(Duration::from_secs(60)).await;
    recorder.record(Note::warning(&pod(), "Failed", "no"));
    soon().await;
    let (_, event) = server.only();
    assert_eq!((&event["count"], event.text("lastTimestamp")), (&json!(2), "2026-01-01T00:01:00Z"));
    assert_eq!(event.text("firstTimestamp"), "2026-01-01T00:00:00Z");
    server.events.lock().clear();
    recorder.record(Note::warning(&pod(), "Failed", "no"));
    soon().await;
    assert_eq!(server.only().1["count"], 3, "one that has expired is created anew");
    ambient.tasks.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_about_an_object_in_no_namespace_is_in_the_default_one() {
    let (server, recorder, _) = start();
    let node: Object<kinds::Node> = Object::of(&json!({ "metadata": { "name": "Not:a.Name" } }));
    recorder.record(Note::normal(&node, "Ready", "yes"));
    soon().await;
    let (path, event) = server.only();
    assert!(path.starts_with("/api/v1/namespaces/default/events/1"), "{path}");
    assert_eq!(event["involvedObject"], json!({ "apiVersion": "v1", "kind": "Node", "name": "Not:a.Name" }));
}

#[tokio::test(start_paused = true)]
async fn an_event_is_tried_again_while_the_server_cannot_be_reached_and_not_when_it_is_refused() {
    let (server, recorder, _) = start();
    let unreachable = || ApiError::new(Reason::ServiceUnavailable, "connection refused");
    server.failures.lock().extend((0..11).map(|_| unreachable()));
    recorder.record(Note::normal(&pod(), "Created", "yes"));
    sleep(RETRY * TRIES).await;
    assert_eq!((server.only().1.text("reason"), *server.requests.lock()), ("Created", 12));

    server.failures.lock().extend((0..12).map(|_| unreachable()));
    recorder.record(Note::normal(&pod(), "Lost", "yes"));
    sleep(RETRY * TRIES).await;
    server.failures.lock().push_back(ApiError::forbidden("", "events", "", "the namespace is being terminated"));
    recorder.record(Note::normal(&pod(), "Refused", "yes"));
    soon().await;
    assert_eq!((server.only().1.text("reason"), *server.requests.lock()), ("Created", 25));
}

#[tokio::test(start_paused = true)]
async fn recording_never_waits_and_what_is_dropped_is_counted() {
    let (server, recorder, ambient) = start();
    *server.hangs.lock() = true;
    for _ in 0..QUEUED + 7 {
        recorder.record(Note::normal(&pod(), "Created", "yes"));
    }
    assert_eq!(recorder.dropped.get(), 7);
    soon().await;
    let start = ambient.clock.monotonic();
    ambient.tasks.stop().await;
    assert!(ambient.clock.monotonic() - start <= FLUSH, "a server that hangs does not hold up a stop");
}

#[tokio::test(start_paused = true)]
async fn what_was_recorded_before_a_stop_is_written() {
    let (server, recorder, ambient) = start();
    recorder.record(Note::normal(&pod(), "Stopped", "leading"));
    ambient.tasks.stop().await;
    assert_eq!(server.only().1.text("reason"), "Stopped");
}

#[test]
fn names_of_events_never_repeat_within_a_recorder() {
    let (random, mut last) = (Random::seeded(1), 0);
    let names: Vec<String> = (0..1000).map(|_| event_name("web", Timestamp::EPOCH_2026, &random, &mut last)).collect();
    assert!(names.is_sorted_by(|a, b| a < b));
}
