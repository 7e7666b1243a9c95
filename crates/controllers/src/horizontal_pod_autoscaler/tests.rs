//! Rounds of an autoscaler in virtual time, on figures that are written down.

use super::usage::Reading;
use super::*;
use crate::fixture::NOW;
use kinds::Id;
use object::{View, json};

const DEPLOYMENTS: Id = Id::new("apps/v1", "Deployment", "deployments", true);

/// An autoscaler, its target, and the memory between rounds. What is planned takes effect at once.
struct Case {
    spec: Value,
    status: Value,
    replicas: i32,
    pods: Vec<Value>,
    figures: Vec<Result<Figures, String>>,
    round: Round,
    now: Time,
    events: Vec<String>,
}

impl Case {
    /// A target of so many pods that are ready for long, each requesting one processor.
    fn new(replicas: i32, metrics: &Value) -> Self {
        let spec = json!({
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "minReplicas": 1, "maxReplicas": 100, "metrics": metrics,
        });
        Case {
            spec,
            status: json!({}),
            replicas,
            pods: (0..replicas).map(|index| pod(&format!("p{index}"))).collect(),
            figures: Vec::new(),
            round: Round::default(),
            now: NOW,
            events: Vec::new(),
        }
    }

    /// Every pod uses so many thousandths.
    fn using(mut self, millis: i64) -> Self {
        self.figures = vec![Ok(self.used(&vec![Some(millis); self.pods.len()]))];
        self
    }

    fn used(&self, millis: &[Option<i64>]) -> Figures {
        let named = self.pods.iter().zip(millis);
        let readings = named.filter_map(|(pod, value)| {
            let reading = Reading { value: (*value)?, at: self.now, window: Duration::from_secs(30) };
            Some((pod.at("metadata").text("name").to_owned(), reading))
        });
        Figures::PerPod(readings.collect())
    }

    /// One round, and the report of it; returns the number there is then.
    fn round(&mut self) -> i32 {
        self.step();
        if self.round.pending.is_some() {
            self.step();
        }
        self.replicas
    }

    fn step(&mut self) -> Plan {
        let autoscaler = Arc::new(Object::of(&json!({
            "metadata": { "name": "web", "namespace": "default", "uid": "u", "generation": 1 },
            "spec": self.spec, "status": self.status,
        })));
        let scale = Scale {
            id: DEPLOYMENTS,
            object: json!({ "metadata": { "name": "web", "resourceVersion": "7" }, "spec": { "replicas": self.replicas } }),
            replicas: self.replicas,
            reported_replicas: self.replicas,
            selector: "app=web".to_owned(),
        };
        let pods = self.pods.iter().map(|pod| Arc::new(Object::of(pod))).collect();
        let observed = Observed { autoscaler, scale: Ok(scale), pods: Ok(pods), figures: self.figures.clone() };
        let request = Request { key: Key::new("default", "web"), now: self.now, failure: None };
        let planned = plan(&observed, &mut self.round, &request);
        for write in &planned.writes {
            let Write::Update { subresource, object, announce, .. } = write else { panic!("{write:?}") };
            match *subresource {
                "scale" if object["metadata"].has("resourceVersion") => {
                    panic!("a change of the target would refuse it")
                }
                "scale" => self.replicas = i32::try_from(object["spec"]["replicas"].as_i64().unwrap()).unwrap(),
                _ => self.status = object["status"].clone(),
            }
            let told = announce.as_ref().and_then(|announce| announce.success.as_ref());
            self.events.extend(told.map(|note| format!("{} {}", note.reason, note.message)));
        }
        self.events.extend(planned.events.iter().map(|note| format!("{} {}", note.reason, note.message)));
        planned
    }

    fn condition(&self, kind: &str) -> String {
        let found = self.status.items("conditions").iter().find(|condition| condition.text("type") == kind);
        found.map_or(String::new(), |it| format!("{} {}", it.text("status"), it.text("reason")))
    }
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "default", "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1", "memory": "1Gi" } } }] },
        "status": {
            "phase": "Running", "startTime": "2025-12-31T00:00:00Z",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2025-12-31T00:00:10Z" }],
        },
    })
}

fn cpu(percent: i32) -> Value {
    let target = json!({ "type": "Utilization", "averageUtilization": percent });
    json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } })
}

#[test]
fn usage_comes_to_its_target() {
    for (replicas, used, expected) in [
        (4, 500, 4), // exactly
        (4, 559, 4), // within the tolerance
        (4, 560, 5), // and beyond it
        (4, 450, 4),
        (10, 250, 10), // the number it began with counts for five minutes
        (3, 2000, 6),  // no more than twice as many at once
        (1, 5000, 4),  // but four are always allowed
    ] {
        let mut case = Case::new(replicas, &json!([cpu(50)])).using(used);
        assert_eq!(case.round(), expected, "{replicas} pods that use {used}m");
    }
}

#[test]
fn a_lower_number_waits_for_five_minutes() {
    let mut case = Case::new(10, &json!([cpu(50)])).using(250);
    let mut seconds = 0;
    while case.round() == 10 {
        assert_eq!(case.condition("AbleToScale"), "True ScaleDownStabilized");
        case.now = case.now + PERIOD;
        seconds += 15;
    }
    assert_eq!((seconds, case.replicas), (300, 5));
    assert_eq!(case.events, ["SuccessfulRescale New size: 5; reason: All metrics below target"]);
    assert_eq!(case.condition("AbleToScale"), "True SucceededRescale");
    assert_eq!(case.status["lastScaleTime"], Value::from(NOW + Duration::from_secs(300)));
    assert_eq!((&case.status["currentReplicas"], &case.status["desiredReplicas"]), (&json!(10), &json!(5)));
}

#[test]
fn the_highest_of_late_counts_on_the_way_down() {
    let mut case = Case::new(10, &json!([cpu(50)])).using(250);
    case.round();
    case.now = case.now + Duration::from_secs(200);
    case.figures = case.using_now(400);
    case.round();
    case.now = case.now + Duration::from_secs(101);
    case.figures = case.using_now(100);
    assert_eq!(case.round(), 8, "eight were recommended a hundred seconds ago");
}

impl Case {
    fn using_now(&self, millis: i64) -> Vec<Result<Figures, String>> {
        vec![Ok(self.used(&vec![Some(millis); self.pods.len()]))]
    }
}

#[test]
fn what_is_reported_stays_the_same_while_nothing_changes() {
    let mut case = Case::new(4, &json!([cpu(50)])).using(500);
    case.round();
    let current = json!({ "averageUtilization": 50, "averageValue": "500m" });
    assert_eq!(case.status["currentMetrics"][0]["resource"]["current"], current);
    assert_eq!(case.condition("ScalingActive"), "True ValidMetricFound");
    assert_eq!(case.condition("ScalingLimited"), "False DesiredWithinRange");
    case.now = case.now + PERIOD;
    let plan = case.step();
    assert!(plan.writes.is_empty() && plan.events.is_empty(), "{plan:?}");
    assert_eq!(plan.requeue_after, Some(PERIOD));
}

#[test]
fn bounds_come_before_figures() {
    for (replicas, min, max, expected, reason) in [
        (10, 1, 5, 5, "SuccessfulRescale New size: 5; reason: Current number of replicas above Spec.MaxReplicas"),
        (2, 3, 5, 3, "SuccessfulRescale New size: 3; reason: Current number of replicas below Spec.MinReplicas"),
    ] {
        let mut case = Case::new(replicas, &json!([cpu(50)])).using(500);
        case.spec["minReplicas"] = json!(min);
        case.spec["maxReplicas"] = json!(max);
        assert_eq!(case.round(), expected);
        assert_eq!(case.events, [reason]);
    }
    let mut case = Case::new(0, &json!([cpu(50)]));
    assert_eq!(case.round(), 0);
    assert_eq!(case.condition("ScalingActive"), "False ScalingDisabled");
    let mut case = Case::new(4, &json!([cpu(50)])).using(5000);
    case.spec["maxReplicas"] = json!(6);
    assert_eq!(case.round(), 6);
    assert_eq!(case.condition("ScalingLimited"), "True TooManyReplicas");
}

#[test]
fn pods_that_are_unknown_or_not_ready_only_dampen() {
    let unready = |pod: &mut Value| {
        pod["status"]["startTime"] = json!("2025-12-31T23:59:50Z");
        pod["status"]["conditions"][0] =
            json!({ "type": "Ready", "status": "False", "lastTransitionTime": "2025-12-31T23:59:55Z" });
    };
    // Of four pods: what each uses, whether the last is still starting, and how many there should be.
    for (what, used, starting, expected) in [
        ("all are known", [Some(1000); 4], false, 8),
        ("one that is starting uses nothing", [Some(1000), Some(1000), Some(1000), Some(9000)], true, 6),
        ("one that is unknown uses nothing on the way up", [Some(1000), Some(1000), Some(1000), None], false, 6),
        ("and its whole request on the way down", [Some(100), Some(100), Some(100), None], false, 3),
        ("unless that would turn the direction", [Some(300), Some(300), Some(300), None], false, 4),
    ] {
        let mut case = Case::new(4, &json!([cpu(50)]));
        if starting {
            unready(&mut case.pods[3]);
        }
        case.figures = vec![Ok(case.used(&used))];
        case.spec["behavior"] = json!({
            "scaleUp": { "policies": [{ "type": "Pods", "value": 100, "periodSeconds": 15 }] },
            "scaleDown": {
                "stabilizationWindowSeconds": 0, "policies": [{ "type": "Percent", "value": 100, "periodSeconds": 15 }],
            },
        });
        assert_eq!(case.round(), expected, "{what}");
    }
}

#[test]
fn why_nothing_can_be_said_of_usage_is_told() {
    let bare = json!([{ "name": "c" }]);
    let ready = pod("p")["status"].clone();
    for (spec, status, why) in [
        (json!({ "containers": bare }), ready.clone(), "missing request for cpu in container c of Pod p0"),
        (
            json!({ "containers": bare, "resources": { "requests": { "memory": "1Gi" } } }),
            ready,
            "missing pod-level request for cpu in Pod p0",
        ),
        // That they are not ready matters more than what they do not say.
        (
            json!({ "containers": bare }),
            json!({ "phase": "Pending" }),
            "did not receive metrics for targeted pods (pods might be unready)",
        ),
    ] {
        let mut case = Case::new(2, &json!([cpu(50)])).using(500);
        for pod in &mut case.pods {
            (pod["spec"], pod["status"]) = (spec.clone(), status.clone());
        }
        assert_eq!(case.round(), 2);
        assert_eq!(case.events[0], format!("FailedGetResourceMetric failed to get cpu utilization: {why}"));
        assert_eq!(case.condition("ScalingActive"), "False FailedGetResourceMetric");
    }
}

#[test]
fn what_pods_request_as_a_whole_counts_before_what_containers_do() {
    let container = |cpu: &str| json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } });
    for (what, spec, expected) in [
        ("its own word", json!({ "resources": { "requests": { "cpu": "500m" } }, "containers": [container("4")] }), 4),
        (
            "its word is of something else",
            json!({ "resources": { "requests": { "memory": "1Gi" } }, "containers": [container("250m"), {}] }),
            8,
        ),
        (
            "and running it costs",
            json!({
                "resources": { "requests": { "cpu": "250m" } }, "overhead": { "cpu": "250m" },
                "containers": [container("4")],
            }),
            4,
        ),
    ] {
        let mut case = Case::new(2, &json!([cpu(50)])).using(500);
        case.pods.iter_mut().for_each(|pod| pod["spec"] = spec.clone());
        case.spec["behavior"] = json!({ "scaleUp": { "policies": [{ "type": "Pods", "value": 100, "periodSeconds": 15 }] }, "scaleDown": {} });
        assert_eq!(case.round(), expected, "{what}");
    }
}

#[test]
fn of_several_metrics_the_one_that_asks_for_most_counts() {
    let memory = json!({ "type": "Resource", "resource": {
        "name": "memory", "target": { "type": "AverageValue", "averageValue": "100Mi" },
    } });
    let mut case = Case::new(4, &json!([cpu(50), memory]));
    let mebibytes = 1024 * 1024 * 1000;
    case.figures = vec![Ok(case.used(&[Some(500); 4])), Ok(case.used(&[Some(150 * mebibytes); 4]))];
    assert_eq!(case.round(), 6);
    assert_eq!(case.events, ["SuccessfulRescale New size: 6; reason: memory resource above target"]);
    assert_eq!(case.status["currentMetrics"][1]["resource"]["current"], json!({ "averageValue": "150Mi" }));
}

#[test]
fn a_metric_that_fails_stops_the_way_down_but_not_up() {
    let specs = json!([cpu(50), { "type": "External", "external": {
        "metric": { "name": "queue" }, "target": { "type": "AverageValue", "averageValue": "10" },
    } }]);
    for (used, expected) in [(1000, 8), (100, 4)] {
        let mut case = Case::new(4, &specs);
        case.figures = vec![Ok(case.used(&[Some(used); 4])), Err("no metrics returned".to_owned())];
        case.now = case.now + Duration::from_secs(400);
        assert_eq!(case.round(), expected);
        let told = "FailedGetExternalMetric unable to get external metric default/queue/nil: no metrics returned";
        assert!(case.events.contains(&told.to_owned()), "{:?}", case.events);
        if expected == 4 {
            assert_eq!(case.condition("ScalingActive"), "False FailedGetExternalMetric");
            let all = "FailedComputeMetricsReplicas invalid metrics (1 invalid out of 2), first error is: failed to get \
                       queue external metric value: failed to get queue external metric: unable to get external metric \
                       default/queue/nil: no metrics returned";
            assert_eq!(case.events.last().unwrap(), all);
        }
    }
}

#[test]
fn figures_of_objects_and_of_the_outside_count_as_a_whole_or_per_pod() {
    let object = |target: Value| {
        json!([{ "type": "Object", "object": {
            "metric": { "name": "rate" }, "target": target,
            "describedObject": { "apiVersion": "v1", "kind": "Service", "name": "web" },
        } }])
    };
    let whole = json!({ "type": "Value", "value": "100" });
    let share = json!({ "type": "AverageValue", "averageValue": "10" });
    for (target, total, expected, current) in [
        (whole.clone(), 200, 8, json!({ "value": "200" })),
        (whole, 105, 4, json!({ "value": "105" })),
        (share.clone(), 60, 6, json!({ "averageValue": "15" })),
        (share, 42, 4, json!({ "averageValue": "10500m" })),
    ] {
        let mut case = Case::new(4, &object(target));
        case.figures = vec![Ok(Figures::Total(total * 1000))];
        assert_eq!(case.round(), expected, "{total}");
        assert_eq!(case.status["currentMetrics"][0]["object"]["current"], current);
    }
}

#[test]
fn policies_say_how_fast() {
    let policy = |kind: &str, value: i32, period: i32| json!({ "type": kind, "value": value, "periodSeconds": period });
    let four = policy("Pods", 4, 60);
    let half = policy("Percent", 50, 60);
    // From ten pods that want thirty; and what there is after each of three rounds of fifteen seconds, and after sixty.
    for (up, expected) in [
        (json!({ "selectPolicy": "Max", "policies": [four, half] }), [15, 15, 15, 23]),
        (json!({ "selectPolicy": "Min", "policies": [four, half] }), [14, 14, 14, 18]),
        (json!({ "selectPolicy": "Disabled", "policies": [four, half] }), [10, 10, 10, 10]),
    ] {
        let mut case = Case::new(10, &json!([cpu(50)]));
        case.spec["behavior"] = json!({ "scaleUp": up, "scaleDown": {} });
        let mut seen = Vec::new();
        for seconds in [0, 15, 30, 60] {
            case.now = NOW + Duration::from_secs(seconds);
            case.pods = (0..case.replicas).map(|index| pod(&format!("p{index}"))).collect();
            // The load is that of thirty pods, shared among those there are.
            case.figures = case.using_now(15_000 / i64::from(case.replicas));
            seen.push(case.round());
        }
        assert_eq!(seen, expected, "{up}");
        let limited = if expected[0] == 10 { "True ScaleUpLimit" } else { "False DesiredWithinRange" };
        assert!(case.condition("ScalingLimited") == limited || case.condition("ScalingLimited") == "True ScaleUpLimit");
    }
}

#[test]
fn tolerances_can_be_given_for_each_way() {
    for (tolerance, used, expected) in [("0", 510, 5), ("0.5", 740, 4), ("0.5", 760, 7)] {
        let mut case = Case::new(4, &json!([cpu(50)])).using(used);
        let policies = json!([{ "type": "Pods", "value": 100, "periodSeconds": 15 }]);
        case.spec["behavior"] = json!({ "scaleUp": { "tolerance": tolerance, "policies": policies }, "scaleDown": {} });
        assert_eq!(case.round(), expected, "{tolerance} {used}");
    }
    // However small.
    let spec = json!({ "behavior": { "scaleUp": { "tolerance": "0.0005" }, "scaleDown": { "tolerance": "0.0005" } } });
    let tolerance = Behavior::of(&object::from_value(&spec).unwrap()).tolerance();
    for (ratio, expected) in [(0.9994, false), (0.9996, true), (1.0004, true), (1.0006, false)] {
        assert_eq!(tolerance.allows(ratio), expected, "{ratio}");
    }
}

#[test]
fn a_number_that_the_api_refused_is_reported_as_such() {
    let mut case = Case::new(4, &json!([cpu(50)])).using(1000);
    case.step();
    case.replicas = 4;
    case.step();
    assert_eq!(case.condition("AbleToScale"), "False FailedUpdateScale");
    assert!(!case.status.has("lastScaleTime"));
}

#[test]
fn rounds_are_a_quarter_of_a_minute_apart_unless_something_is_new() {
    let autoscaler = |generation: i64| -> HorizontalPodAutoscaler {
        object::from_value(&json!({ "metadata": { "generation": generation } })).unwrap()
    };
    let round = Round { at: NOW, generation: 1, ..Round::default() };
    assert_eq!(round.rest(&autoscaler(1), NOW + Duration::from_secs(5)), Some(Duration::from_secs(10)));
    assert_eq!(round.rest(&autoscaler(1), NOW + PERIOD), None);
    assert_eq!(round.rest(&autoscaler(2), NOW), None);
}

#[test]
fn two_autoscalers_of_the_same_pods_stand_still() {
    let memory = Memory::default();
    let pods = [Arc::new(Object::of(&pod("p0")))];
    assert_eq!(memory.selected(&Key::new("default", "a"), "app=web", &pods).unwrap().len(), 1);
    let (reason, why) = memory.selected(&Key::new("default", "b"), "app in (web)", &pods).unwrap_err();
    assert_eq!(reason, "AmbiguousSelector");
    assert_eq!(why, "pods by selector app in (web) are controlled by multiple HPAs: [{a default} {b default}]");
    assert_eq!(memory.selected(&Key::new("default", "b"), "", &pods).unwrap_err().0, "SelectorRequired");
    assert!(memory.selected(&Key::new("other", "b"), "app=web", &pods).is_ok());
}
