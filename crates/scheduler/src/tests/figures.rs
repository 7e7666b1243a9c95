//! What is counted.

use super::{Fixture, asking, caches, node, pod};
use crate::Configuration;
use crate::figures::{Ending, Figures};
use crate::scheduler::Scheduler;
use object::json;
use prometheus::{Encoder, Registry, TextEncoder};
use std::time::Duration;

/// The lines of figures that are not zero, without those of buckets and times.
fn lines(registry: &Registry) -> Vec<String> {
    let mut text = Vec::new();
    TextEncoder::new().encode(&registry.gather(), &mut text).expect("figures can be written");
    let text = String::from_utf8(text).expect("they are text");
    let uninteresting = |line: &&str| {
        line.starts_with('#') || line.contains("_bucket") || line.contains("_seconds_sum") || line.ends_with(" 0")
    };
    text.lines().filter(|line| !uninteresting(line)).map(str::to_owned).collect()
}

#[test]
fn pods_are_counted_where_they_wait_and_by_what_stands_in_their_way() {
    let registry = Registry::new();
    let mut fixture = Fixture::new(&[]);
    fixture.scheduler = Scheduler::counted(caches(), &Configuration::default(), Figures::new(&registry));
    fixture.node(&node("n", &json!({})));
    fixture.pod(&asking("huge", "100"));
    fixture.pod(&pod("gated", &json!({ "spec": { "schedulingGates": [{ "name": "g" }] } })));
    assert!(fixture.place(&asking("small", "1")).starts_with("0/1"), "the first comes first");
    assert_eq!(fixture.decisions(), ["small on n"]);
    fixture.node(&node("large", &json!({ "status": { "allocatable": { "cpu": "200" } } })));
    fixture.pod(&asking("next", "1"));
    let counted = fixture.scheduler.pending();
    assert_eq!((counted.active, counted.backoff, counted.unschedulable, counted.gated), (1, 0, 1, 1));
    let expected = [
        "scheduler_preemption_attempts_total 1",
        "scheduler_queue_incoming_pods_total{event=\"ScheduleAttemptFailure\",queue=\"unschedulable\"} 1",
        "scheduler_queue_incoming_pods_total{event=\"UnscheduledPodAdd\",queue=\"active\"} 3",
        "scheduler_queue_incoming_pods_total{event=\"UnscheduledPodAdd\",queue=\"gated\"} 1",
        "scheduler_unschedulable_pods{plugin=\"NodeResourcesFit\",profile=\"default-scheduler\"} 1",
    ];
    assert_eq!(lines(&registry), expected);
    fixture.pass(10);
    fixture.decisions();
    let woken = "scheduler_queue_incoming_pods_total{event=\"NodeAdd\",queue=\"active\"} 1";
    let lines = lines(&registry);
    assert!(lines.iter().any(|line| line == woken), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("unschedulable_pods")), "it is placed now");
}

#[test]
fn attempts_are_counted_by_their_end() {
    let registry = Registry::new();
    let figures = Figures::new(&registry);
    figures.ended(Ending::Scheduled, "a", Duration::from_millis(3));
    figures.ended(Ending::Error, "a", Duration::from_millis(3));
    figures.placed(2, Duration::from_secs(1));
    figures.placed(20, Duration::from_secs(1));
    figures.preempted(Some(3));
    let expected = [
        "scheduler_pod_scheduling_attempts_sum 22",
        "scheduler_pod_scheduling_attempts_count 2",
        "scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"15+\"} 1",
        "scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"2\"} 1",
        "scheduler_preemption_attempts_total 1",
        "scheduler_preemption_victims_sum 3",
        "scheduler_preemption_victims_count 1",
        "scheduler_schedule_attempts_total{profile=\"a\",result=\"error\"} 1",
        "scheduler_schedule_attempts_total{profile=\"a\",result=\"scheduled\"} 1",
        "scheduler_scheduling_attempt_duration_seconds_count{profile=\"a\",result=\"error\"} 1",
        "scheduler_scheduling_attempt_duration_seconds_count{profile=\"a\",result=\"scheduled\"} 1",
    ];
    assert_eq!(lines(&registry), expected);
}
