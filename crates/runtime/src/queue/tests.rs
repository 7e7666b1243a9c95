//! The queue on paused time.

use super::*;
use ambient::Tasks;
use futures::FutureExt;
use std::sync::atomic::{AtomicUsize, Ordering};

fn queue(limits: Limits) -> (Queue<u32>, Registry) {
    let registry = Registry::new();
    (Queue::new("test", limits, Clock::system(), &registry), registry)
}

fn unlimited() -> Queue<u32> {
    queue(Limits { bucket: None, ..Limits::default() }).0
}

/// A key that is ready now.
fn ready(queue: &Queue<u32>) -> Option<Claim<u32>> {
    queue.get().now_or_never().flatten()
}

/// The keys that are ready now, each done before the next is taken.
fn drain(queue: &Queue<u32>) -> Vec<u32> {
    std::iter::from_fn(|| ready(queue).map(|claim| *claim)).collect()
}

#[tokio::test(start_paused = true)]
async fn ten_changes_before_processing_make_one_reconcile() {
    let queue = unlimited();
    for _ in 0..10 {
        queue.add(1);
    }
    assert_eq!(queue.len(), 1);
    assert_eq!(drain(&queue), [1]);
}

#[tokio::test(start_paused = true)]
async fn keys_come_in_the_order_in_which_they_were_added() {
    let queue = unlimited();
    for key in [3, 1, 2, 3, 1] {
        queue.add(key);
    }
    assert_eq!(drain(&queue), [3, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_held_by_one_worker_and_comes_again_if_added_meanwhile() {
    let queue = unlimited();
    queue.add(1);
    let held = ready(&queue).unwrap();
    queue.add(1);
    queue.add(1);
    queue.add(2);
    assert_eq!(drain(&queue), [2]);
    drop(held);
    assert_eq!(drain(&queue), [1]);
    assert!(ready(&queue).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_failing_key_waits_5_ms_and_then_twice_as_long_each_time_up_to_1000_s_until_it_succeeds() {
    let queue = unlimited();
    let clock = Clock::system();
    let mut waits = Vec::new();
    queue.add(1);
    drop(queue.get().await);
    for _ in 0..20 {
        let start = clock.monotonic();
        let announced = queue.add_rate_limited(1);
        assert_eq!(*queue.get().await.unwrap(), 1);
        assert_eq!(clock.monotonic() - start, announced);
        waits.push(announced.as_millis());
    }
    assert_eq!(waits[..4], [5, 10, 20, 40]);
    assert_eq!(waits[16..], [327_680, 655_360, 1_000_000, 1_000_000]);
    assert_eq!(queue.retries(&1), 20);
    queue.forget(&1);
    assert_eq!(queue.retries(&1), 0);
    assert_eq!(queue.add_rate_limited(1), Duration::from_millis(5));
}

#[tokio::test(start_paused = true)]
async fn many_failures_at_once_are_spread_over_time() {
    let (queue, _) = queue(Limits::default());
    let waits: Vec<u128> = (0..103).map(|key| queue.add_rate_limited(key).as_millis()).collect();
    assert!(waits[..100].iter().all(|wait| *wait == 5));
    assert_eq!(waits[100..], [100, 200, 300]);
}

#[tokio::test(start_paused = true)]
async fn of_several_delays_the_earliest_counts_and_the_key_comes_once() {
    let queue = unlimited();
    let start = Clock::system().monotonic();
    for seconds in [20, 10, 30] {
        queue.add_after(1, Duration::from_secs(seconds));
    }
    assert_eq!(*queue.get().await.unwrap(), 1);
    assert_eq!(Clock::system().monotonic() - start, Duration::from_secs(10));
    assert!(tokio::time::timeout(Duration::from_secs(3600), queue.get()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_for_a_late_key_is_woken_for_an_earlier_one() {
    let (queue, tasks) = (unlimited(), Tasks::new());
    let started = Clock::system().monotonic();
    let (sender, mut got) = tokio::sync::mpsc::channel(8);
    for _ in 0..2 {
        let (queue, sender) = (queue.clone(), sender.clone());
        tasks.spawn("worker", async move {
            while let Some(claim) = queue.get().await {
                let after = Clock::system().monotonic() - started;
                sender.send((*claim, after.as_secs())).await.unwrap();
                // The worker that was first in line is busy from now on.
                tokio::time::sleep(Duration::from_secs(1000)).await;
            }
        });
    }
    tokio::task::yield_now().await;
    queue.add_after(1, Duration::from_secs(100));
    tokio::task::yield_now().await;
    queue.add_after(2, Duration::from_secs(10));
    queue.add(3);
    assert_eq!(got.recv().await, Some((3, 0)));
    assert_eq!(got.recv().await, Some((2, 10)));
    assert_eq!(got.recv().await, Some((1, 1000)));
    queue.shut_down();
    tasks.stop().await;
}

#[tokio::test(start_paused = true)]
async fn of_a_hundred_workers_that_wait_few_are_woken_and_no_key_is_late() {
    let (queue, tasks, looks) = (unlimited(), Tasks::new(), Arc::new(AtomicUsize::new(0)));
    let (done, mut times) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..100 {
        let (queue, done, looks) = (queue.clone(), done.clone(), looks.clone());
        tasks.spawn_until_stopped("worker", async move {
            loop {
                let mut getting = Box::pin(queue.get());
                let claim = std::future::poll_fn(|context| {
                    looks.fetch_add(1, Ordering::SeqCst);
                    getting.as_mut().poll(context)
                });
                let Some(claim) = claim.await else { return };
                let _ = done.send((*claim, Clock::system().monotonic()));
            }
        });
    }
    let begun = Clock::system().monotonic();
    let second = Duration::from_secs(1);
    // Each is earlier than those before, and two come at once.
    for key in (1..=50).rev() {
        queue.add_after(key, key / 2 * second);
        tokio::task::yield_now().await;
    }
    for key in (1..=50).chain([51]) {
        if key == 51 {
            queue.add(key);
        }
        let (_, at) = times.recv().await.expect("the workers are there");
        assert_eq!(at - begun, key.min(50) / 2 * second);
    }
    let looks = looks.load(Ordering::SeqCst);
    assert!(looks < 100 + 51 * 5, "workers looked {looks} times");
    tasks.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_gives_up_waiting_takes_no_key_with_it() {
    let queue = unlimited();
    let mut impatient = Box::pin(queue.get());
    assert!(impatient.as_mut().now_or_never().is_none());
    let mut patient = Box::pin(queue.get());
    assert!(patient.as_mut().now_or_never().is_none());
    queue.add(1);
    drop(impatient);
    assert_eq!(*patient.await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_shut_down_hands_out_what_it_has_and_then_nothing() {
    let queue = unlimited();
    queue.add(1);
    queue.add_after(2, Duration::from_secs(1));
    queue.add(3);
    let held = queue.get().await.unwrap();
    queue.add(1);
    queue.shut_down();
    queue.add(4);
    queue.add_after(5, Duration::from_secs(1));
    assert_eq!(*queue.get().await.unwrap(), 3);
    drop(held);
    assert_eq!(*queue.get().await.unwrap(), 1, "it was added before");
    assert!(queue.get().await.is_none());
    assert!(queue.is_shut_down() && queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn shutting_down_wakes_every_worker_that_waits() {
    let (queue, tasks, ended) = (unlimited(), Tasks::new(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..5 {
        let (queue, ended) = (queue.clone(), ended.clone());
        tasks.spawn("worker", async move {
            assert!(queue.get().await.is_none());
            ended.fetch_add(1, Ordering::SeqCst);
        });
    }
    tokio::task::yield_now().await;
    queue.shut_down();
    tasks.stop().await;
    assert_eq!(ended.load(Ordering::SeqCst), 5);
}

#[tokio::test(start_paused = true)]
async fn fifty_thousand_keys_are_each_worked_on_once_by_whichever_worker() {
    let (queue, tasks, seen) = (unlimited(), Tasks::new(), Arc::new(Mutex::new(Vec::new())));
    for _ in 0..8 {
        let (queue, seen) = (queue.clone(), seen.clone());
        tasks.spawn("worker", async move {
            while let Some(claim) = queue.get().await {
                seen.lock().push(*claim);
                tokio::task::yield_now().await;
            }
        });
    }
    for key in 0..50_000 {
        match key % 3 {
            0 => queue.add(key),
            1 => queue.add_after(key, Duration::from_millis(u64::from(key % 1000))),
            _ => drop(queue.add_rate_limited(key)),
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    queue.shut_down();
    tasks.stop().await;
    let mut seen = std::mem::take(&mut *seen.lock());
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..50_000));
}

#[tokio::test(start_paused = true)]
async fn the_figures_carry_the_names_that_dashboards_know() {
    let (queue, registry) = queue(Limits::default());
    let text = |registry: &Registry| prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    queue.add(1);
    queue.add(1);
    queue.add(2);
    tokio::time::advance(Duration::from_secs(2)).await;
    let held = queue.get().await.unwrap();
    tokio::time::advance(Duration::from_secs(3)).await;
    queue.add_rate_limited(1);
    let shown = text(&registry);
    for line in [
        "workqueue_adds_total{name=\"test\"} 2",
        "workqueue_depth{name=\"test\"} 1",
        "workqueue_queue_duration_seconds_sum{name=\"test\"} 2",
        "workqueue_unfinished_work_seconds{name=\"test\"} 3",
        "workqueue_longest_running_processor_seconds{name=\"test\"} 3",
        "workqueue_retries_total{name=\"test\"} 1",
    ] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
    drop(held);
    assert!(text(&registry).contains("workqueue_work_duration_seconds_sum{name=\"test\"} 3"));

    let other: Queue<u32> = Queue::new("other", Limits::default(), Clock::system(), &registry);
    let again: Queue<u32> = Queue::new("test", Limits::default(), Clock::system(), &registry);
    other.add(1);
    again.add(1);
    let shown = text(&registry);
    for line in ["workqueue_adds_total{name=\"other\"} 1", "workqueue_adds_total{name=\"test\"} 1"] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
}
