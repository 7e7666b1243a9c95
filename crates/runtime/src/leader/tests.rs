//! Candidates for one lease on paused time, over links that lose, delay and hang, on machines that are paused.

use super::*;
use crate::transport::{Events, Transport};
use ambient::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::Sleep;

/// Lets paused time pass.
async fn pass(duration: Duration) {
    sleep_until(Clock::system().monotonic() + duration).await;
}

/// The server: one lease, replaced only by who has seen it.
#[derive(Debug, Default)]
struct Server {
    lease: Mutex<Option<Value>>,
    version: Mutex<u64>,
    /// Requests go on when whoever sent them has given up.
    requests: Tasks,
}

impl Server {
    fn handle(&self, method: &Method, body: &[u8]) -> Result<Value, ApiError> {
        let mut lease = self.lease.lock();
        let missing = || ApiError::not_found("coordination.k8s.io", "leases", "loops");
        let conflict = |cause| ApiError::conflict("coordination.k8s.io", "leases", "loops", cause);
        if *method == Method::GET {
            return lease.clone().ok_or_else(missing);
        }
        let mut object: Value = serde_json::from_slice(body).unwrap();
        match lease.as_ref() {
            None if *method == Method::PUT => return Err(missing()),
            Some(_) if *method == Method::POST => return Err(conflict("it exists")),
            Some(current) if current["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] => {
                return Err(conflict("it has been modified"));
            }
            _ => {}
        }
        let mut version = self.version.lock();
        *version += 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        *lease = Some(object.clone());
        Ok(object)
    }

    fn spec(&self) -> LeaseSpec {
        Object::<Lease>::of(self.lease.lock().as_ref().unwrap()).spec.clone()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Nothing arrives, and nobody says so.
    Cut,
    /// Everything is carried out, and nobody hears of it.
    Deaf,
    /// Every write is carried out and answered by an error.
    FailsAfterCommit,
    /// Everything is carried out at once and answered late.
    Late,
    /// Each request meets any of these, or a long delay on its way there or back.
    Flaky,
}

#[derive(Debug)]
struct Link {
    server: Arc<Server>,
    fault: Mutex<Fault>,
    random: Random,
}

impl Link {
    fn delay(&self, flaky: bool) -> Duration {
        let slow = flaky && self.random.chance(0.1);
        Duration::from_millis(self.random.below(if slow { 20_000 } else { 50 }))
    }
}

#[async_trait]
impl Transport for Link {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ApiError> {
        let mut fault = *self.fault.lock();
        let (there, mut back) = (self.delay(fault == Fault::Flaky), self.delay(fault == Fault::Flaky));
        if fault == Fault::Late {
            back = Duration::from_millis(4_000);
        }
        if fault == Fault::Flaky {
            let faults = [Fault::Cut, Fault::Deaf, Fault::FailsAfterCommit];
            let index = usize::try_from(self.random.below(12)).unwrap();
            fault = faults.get(index).copied().unwrap_or(Fault::None);
        }
        if fault == Fault::Cut {
            return std::future::pending().await;
        }
        let is_read = *request.method() == Method::GET;
        let (sender, answer) = tokio::sync::oneshot::channel();
        let server = self.server.clone();
        self.server.requests.spawn("request", async move {
            pass(there).await;
            let answer = server.handle(request.method(), request.body());
            pass(back).await;
            drop(sender.send(answer));
        });
        let answer = answer.await.unwrap();
        match (fault, answer) {
            (Fault::Deaf, _) => std::future::pending().await,
            (Fault::FailsAfterCommit, _) if !is_read => Err(ApiError::internal("connection reset")),
            (_, Ok(value)) => Ok(Response::new(Bytes::from(value.to_string()))),
            (_, Err(error)) => {
                let response = Response::builder().status(error.code());
                Ok(response.body(Bytes::from(error.to_status().to_string())).unwrap())
            }
        }
    }

    async fn watch(&self, _: Request<Bytes>) -> Result<Box<dyn Events>, ApiError> {
        Err(ApiError::internal("nobody watches"))
    }
}

/// Until when a machine is paused; none when it has run since.
type Pause = Arc<Mutex<Option<Instant>>>;

/// Runs a future on a machine that can be paused: until then it is not polled.
struct Paused {
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    pause: Pause,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Future for Paused {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let until = *self.pause.lock();
        if let Some(until) = until.filter(|until| Clock::system().monotonic() < *until) {
            let timer = self.timer.insert(Box::pin(sleep_until(until)));
            assert!(timer.as_mut().poll(context).is_pending());
            return Poll::Pending;
        }
        *self.pause.lock() = None;
        self.future.as_mut().poll(context)
    }
}

/// What can be seen of all candidates.
#[derive(Default, Debug)]
struct Seen {
    /// How often somebody became leader.
    terms: u64,
    /// Who leads, and in which term.
    leading: BTreeMap<String, u64>,
    pauses: BTreeMap<String, Pause>,
    /// What people were told.
    told: Vec<String>,
}

struct Machine {
    name: String,
    link: Arc<Link>,
    tasks: Tasks,
    pause: Pause,
}

struct World {
    server: Arc<Server>,
    seen: Arc<Mutex<Seen>>,
    random: Random,
    clock: Clock,
}

/// Removes a leader when its work is dropped.
struct Leading(Arc<Mutex<Seen>>, String);

impl Drop for Leading {
    fn drop(&mut self) {
        self.0.lock().leading.remove(&self.1);
    }
}

/// Works, and checks with each step that nobody else has begun to. In every other term it does not stop when asked.
async fn work(seen: Arc<Mutex<Seen>>, name: String, tasks: Tasks) {
    let term = {
        let mut seen = seen.lock();
        seen.terms += 1;
        for other in seen.leading.keys() {
            assert!(seen.pauses[other].lock().is_some(), "{name} leads while {other} does");
        }
        let term = seen.terms;
        seen.leading.insert(name.clone(), term);
        term
    };
    let _leading = Leading(seen.clone(), name.clone());
    while term % 2 == 1 || !tasks.is_stopping() {
        assert_eq!(seen.lock().terms, term, "{name} works in term {term}");
        pass(Duration::from_millis(100)).await;
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let clock = Clock::simulated(Timestamp::EPOCH_2026);
        World { server: Arc::default(), seen: Arc::default(), random: Random::seeded(seed), clock }
    }

    fn start(&self, name: &str) -> Machine {
        let random = self.random.fork();
        let link =
            Arc::new(Link { server: self.server.clone(), fault: Mutex::new(Fault::None), random: random.fork() });
        let (tasks, told) = (Tasks::new(), self.seen.clone());
        let election = Election {
            client: Client::new(link.clone(), "test"),
            tell: Arc::new(move |note| told.lock().told.push(note.message)),
            namespace: "kube-system".into(),
            name: "loops".into(),
            identity: name.into(),
            timing: Timing::default(),
            clock: self.clock.clone(),
            random,
        };
        let pause = Pause::default();
        self.seen.lock().pauses.insert(name.into(), pause.clone());
        let (seen, owned) = (self.seen.clone(), name.to_owned());
        let lead = move |group: Tasks| work(seen.clone(), owned.clone(), group);
        let future = Box::pin(election.run(tasks.clone(), lead));
        tasks.spawn("candidate", Paused { future, pause: pause.clone(), timer: None });
        Machine { name: name.into(), link, tasks, pause }
    }

    fn leader(&self) -> Option<String> {
        self.seen.lock().leading.keys().next().cloned()
    }

    /// How long it takes until `name` leads.
    async fn until_led_by(&self, name: &str) -> Duration {
        let start = self.clock.monotonic();
        while !self.seen.lock().leading.contains_key(name) {
            pass(Duration::from_millis(10)).await;
            assert!(self.clock.monotonic() - start < Duration::from_secs(3600), "{name} never leads");
        }
        self.clock.monotonic() - start
    }
}

impl Machine {
    fn set(&self, fault: Fault) {
        *self.link.fault.lock() = fault;
    }

    fn pause(&self, duration: Duration) {
        *self.pause.lock() = Some(Clock::system().monotonic() + duration);
    }
}

/// The longest between two looks, and all that requests take.
const LOOK: Duration = Duration::from_millis(4400 + 500);
const LEASE: Duration = Duration::from_secs(15);
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
const SEEDS: u64 = 60;

#[tokio::test(start_paused = true)]
async fn never_do_two_work_at_once_whatever_happens_to_links_and_machines() {
    let mut terms = 0;
    for seed in 0..SEEDS {
        let world = World::new(seed);
        let machines: Vec<Machine> = ["a", "b", "c", "d"].iter().map(|name| world.start(name)).collect();
        for _ in 0..60 {
            let machine = &machines[usize::try_from(world.random.below(4)).unwrap()];
            match world.random.below(9) {
                0 => machine.set(Fault::Cut),
                1 => machine.set(Fault::Deaf),
                2 => machine.set(Fault::FailsAfterCommit),
                3 => machine.set(Fault::Flaky),
                4 => machine.set(Fault::Late),
                5 => machine.pause(Duration::from_millis(world.random.below(40_000))),
                _ => machine.set(Fault::None),
            }
            pass(Duration::from_millis(world.random.below(12_000))).await;
        }
        machines.iter().for_each(|machine| machine.set(Fault::None));
        pass(Duration::from_secs(120)).await;
        let seen = world.seen.lock().leading.len();
        assert_eq!(seen, 1, "seed {seed}: somebody leads once everything works");
        terms += world.seen.lock().terms;
        for machine in &machines {
            machine.tasks.stop().await;
        }
        assert_eq!(world.server.spec().holder_identity, "", "seed {seed}");
    }
    assert!(terms > 3 * SEEDS, "leadership changes hands often enough to mean anything: {terms}");
}

#[tokio::test(start_paused = true)]
async fn another_takes_over_once_the_lease_of_a_leader_that_is_gone_has_ended() {
    for seed in 0..SEEDS {
        let world = World::new(seed);
        let first = world.start("a");
        world.until_led_by("a").await;
        let second = world.start("b");
        pass(Duration::from_millis(world.random.below(30_000))).await;
        first.pause(CENTURY);
        let took = world.until_led_by("b").await;
        let earliest = LEASE - Duration::from_secs(3);
        assert!(took > earliest && took < LEASE + LOOK, "seed {seed}: {took:?}");
        second.tasks.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_released_is_taken_at_the_next_look() {
    for seed in 0..SEEDS {
        let world = World::new(seed);
        let first = world.start("a");
        world.until_led_by("a").await;
        let second = world.start("b");
        pass(Duration::from_millis(world.random.below(30_000))).await;
        first.tasks.stop().await;
        let spec = world.server.spec();
        assert_eq!((spec.holder_identity.as_str(), spec.lease_duration_seconds), ("", 1));
        let took = world.until_led_by("b").await;
        assert!(took < LOOK, "seed {seed}: {took:?}");
        let spec = world.server.spec();
        assert_eq!((spec.holder_identity.as_str(), spec.lease_transitions), ("b", 1));
        second.tasks.stop().await;
        let told = &world.seen.lock().told;
        assert_eq!(*told, ["a became leader", "a stopped leading", "b became leader", "b stopped leading"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_hang_stops_before_its_lease_can_be_taken() {
    for fault in [Fault::Cut, Fault::Deaf, Fault::FailsAfterCommit] {
        let world = World::new(1);
        let machine = world.start("a");
        world.until_led_by("a").await;
        pass(Duration::from_secs(60)).await;
        machine.set(fault);
        // Errors are no reason to stop as long as there is time for another try.
        pass(Duration::from_secs(7)).await;
        assert_eq!(world.leader(), Some("a".into()), "{fault:?}");
        pass(Duration::from_secs(6)).await;
        assert_eq!(world.leader(), None, "{fault:?}");
        machine.set(Fault::None);
        world.until_led_by("a").await;
        machine.tasks.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_term_counts_from_when_its_write_was_sent_however_late_the_answer_comes() {
    for seed in 0..SEEDS {
        let world = World::new(seed);
        let first = world.start("a");
        world.until_led_by("a").await;
        let second = world.start("b");
        first.set(Fault::Late);
        pass(Duration::from_millis(world.random.below(30_000))).await;
        first.set(Fault::Cut);
        // Whoever leads looks whether anybody else does.
        world.until_led_by("b").await;
        first.tasks.cancel();
        second.tasks.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_leader_that_resumes_does_not_go_on_leading() {
    let world = World::new(1);
    let (first, second) = (world.start("a"), world.start("b"));
    let seen = world.seen.clone();
    pass(Duration::from_secs(10)).await;
    let leader = world.leader().unwrap();
    let (leader, other) = if leader == first.name { (&first, "b") } else { (&second, "a") };
    leader.pause(Duration::from_secs(60));
    world.until_led_by(other).await;
    // Its work would notice a later term at its first step.
    pass(Duration::from_secs(60)).await;
    assert_eq!(seen.lock().leading.keys().collect::<Vec<_>>(), [other]);
    assert_eq!(seen.lock().terms, 2);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_taken_unknowingly_is_led_by_who_holds_it_and_released_by_who_stops() {
    let world = World::new(1);
    let machine = world.start("a");
    machine.set(Fault::FailsAfterCommit);
    pass(Duration::from_secs(30)).await;
    assert_eq!((world.leader(), world.server.spec().holder_identity), (None, "a".into()));
    machine.set(Fault::None);
    assert!(world.until_led_by("a").await < LOOK);
    assert_eq!(world.server.spec().lease_transitions, 0);

    machine.tasks.stop().await;

    let world = World::new(2);
    let machine = world.start("a");
    machine.set(Fault::FailsAfterCommit);
    pass(Duration::from_secs(30)).await;
    machine.tasks.stop().await;
    assert_eq!((world.seen.lock().terms, world.server.spec().holder_identity), (0, String::new()));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_deletes_is_made_again_by_its_holder() {
    let world = World::new(1);
    let machines = [world.start("a"), world.start("b")];
    for _ in 0..10 {
        pass(Duration::from_secs(30)).await;
        *world.server.lease.lock() = None;
    }
    pass(Duration::from_secs(30)).await;
    assert_eq!(world.seen.lock().terms, 1);
    assert_eq!(world.server.spec().holder_identity, world.leader().unwrap());
    for machine in machines {
        machine.tasks.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_no_new_term_before_everything_of_the_last_has_ended() {
    let world = World::new(1);
    let link = Link { server: world.server.clone(), fault: Mutex::new(Fault::None), random: world.random.fork() };
    let link = Arc::new(link);
    let election = Election {
        client: Client::new(link.clone(), "test"),
        tell: Arc::new(|_| ()),
        namespace: "kube-system".into(),
        name: "loops".into(),
        identity: "a".into(),
        timing: Timing::default(),
        clock: world.clock.clone(),
        random: world.random.clone(),
    };
    let (tasks, running) = (Tasks::new(), Arc::new(Mutex::new((0, 0))));
    let count = running.clone();
    let lead = move |group: Tasks| {
        let count = count.clone();
        async move {
            let slow = group.clone();
            group.spawn("slow", async move {
                let before = count.lock().0;
                assert_eq!(before, 0);
                let terms = count.lock().1 + 1;
                *count.lock() = (1, terms);
                slow.stopping().await;
                pass(Duration::from_secs(100)).await;
                count.lock().0 = 0;
            });
        }
    };
    tasks.spawn("candidate", election.run(tasks.clone(), lead));
    for _ in 0..3 {
        pass(Duration::from_secs(20)).await;
        *link.fault.lock() = Fault::Cut;
        pass(Duration::from_secs(20)).await;
        *link.fault.lock() = Fault::None;
        pass(Duration::from_secs(100)).await;
    }
    assert_eq!(*running.lock(), (1, 4));
    tasks.stop().await;
    assert_eq!(running.lock().0, 0);
}
