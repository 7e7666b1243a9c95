//! Who has to go, when, and what is said of it.

use super::rules::Reach;
use super::*;
use crate::fixture::NOW;
use object::{Value, json};

fn after(seconds: u64) -> Time {
    NOW + Duration::from_secs(seconds)
}

fn pod() -> Object<Pod> {
    Object::of(&json!({
        "metadata": { "namespace": "a", "name": "p", "uid": "u" },
        "spec": { "nodeName": "n", "resourceClaims": [{ "name": "gpu", "resourceClaimName": "c" }] },
    }))
}

fn claim(reserved_for: &str, tolerations: &Value) -> Value {
    json!({
        "metadata": { "namespace": "a", "name": "c", "uid": "c" },
        "status": {
            "reservedFor": [{ "resource": "pods", "name": "p", "uid": reserved_for }],
            "allocation": { "devices": { "results": [
                { "request": "r", "driver": "d", "pool": "x", "device": "gpu-0", "tolerations": tolerations },
            ] } },
        },
    })
}

fn slice(name: &str, generation: i64, taints: &Value) -> Value {
    json!({
        "metadata": { "name": name, "uid": name },
        "spec": {
            "driver": "d", "nodeName": "n",
            "pool": { "name": "x", "generation": generation, "resourceSliceCount": 1 },
            "devices": [{ "name": "gpu-0", "taints": taints }, { "name": "gpu-1" }],
        },
    })
}

fn taint(effect: &str) -> Value {
    json!({ "key": "broken", "effect": effect, "timeAdded": NOW })
}

fn rule(effect: &str, selector: &Value) -> Object<DeviceTaintRule> {
    Object::of(&json!({
        "metadata": { "name": "rule", "uid": "rule", "generation": 1 },
        "spec": { "deviceSelector": selector, "taint": taint(effect) },
    }))
}

fn world(claims: &[Value], slices: &[Value]) -> Caches {
    let mut caches = Caches::default().with::<Pod>().with::<ResourceClaim>().with::<ResourceSlice>();
    caches.put(pod());
    claims.iter().for_each(|claim| caches.put(Object::<ResourceClaim>::of(claim)));
    slices.iter().for_each(|slice| caches.put(Object::<ResourceSlice>::of(slice)));
    caches
}

#[test]
fn a_pod_goes_when_a_taint_of_its_device_is_tolerated_no_longer() {
    let exists = |seconds: Value| json!({ "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds });
    let own = |tolerations: Value| claim("u", &tolerations);
    let (none, bad) = (json!([]), json!([taint("NoExecute")]));
    for (what, claim, slices, expected) in [
        ("no taint", own(json!([])), vec![slice("s", 1, &none)], None),
        ("not tolerated", own(json!([])), vec![slice("s", 1, &bad)], Some(0)),
        ("of another effect", own(json!([])), vec![slice("s", 1, &json!([taint("NoSchedule")]))], None),
        ("without effect", own(json!([])), vec![slice("s", 1, &json!([taint("None")]))], None),
        ("tolerated forever", own(json!([exists(json!(null))])), vec![slice("s", 1, &bad)], None),
        ("tolerated for a time", own(json!([exists(json!(300))])), vec![slice("s", 1, &bad)], Some(240)),
        ("tolerated until now", own(json!([exists(json!(60))])), vec![slice("s", 1, &bad)], Some(0)),
        ("tolerated not at all", own(json!([exists(json!(-1))])), vec![slice("s", 1, &bad)], Some(0)),
        (
            "the shortest counts",
            own(json!([exists(json!(300)), exists(json!(90))])),
            vec![slice("s", 1, &bad)],
            Some(30),
        ),
        ("forever counts more", own(json!([exists(json!(90)), exists(json!(null))])), vec![slice("s", 1, &bad)], None),
        (
            "another taint is tolerated",
            own(json!([{ "key": "slow", "operator": "Exists", "effect": "NoExecute" }])),
            vec![slice("s", 1, &bad)],
            Some(0),
        ),
        ("the device of another pod", claim("other", &json!([])), vec![slice("s", 1, &bad)], None),
        ("an old generation", own(json!([])), vec![slice("s", 1, &bad), slice("t", 2, &none)], None),
    ] {
        let caches = world(&[claim], &slices);
        let pushes = pushes(&pod(), &caches, &Rules::new());
        let (plan, pending) = plan(&pod(), &pushes, None, after(60));
        let remaining = match pending {
            None => None,
            Some(_) => Some(plan.requeue_after.map_or(0, |delay| delay.as_secs())),
        };
        assert_eq!(remaining, expected, "{what}");
        assert_eq!(!plan.writes.is_empty(), expected == Some(0), "{what}");
    }
}

#[test]
fn a_pod_is_told_why_and_that_it_may_stay_after_all() {
    let bad = world(&[claim("u", &json!([]))], &[slice("s", 1, &json!([taint("NoExecute")]))]);
    let (evicting, pending) = plan(&pod(), &pushes(&pod(), &bad, &Rules::new()), None, NOW);
    assert_eq!(evicting.summary(), ["patch pods/status p", "delete pods p"]);
    let note = &evicting.events[0];
    assert_eq!((note.reason.as_str(), note.message.as_str()), ("DeviceTaintManagerEviction", "Marking for deletion"));
    let (staying, pending) = plan(&pod(), &[], pending.map(|(pending, _)| pending), NOW);
    assert_eq!(staying.events[0].message, "Cancelling deletion");
    assert_eq!((staying.writes, pending), (Vec::new(), None));
}

#[test]
fn rules_taint_the_devices_they_select() {
    let caches = world(&[claim("u", &json!([]))], &[slice("s", 1, &json!([]))]);
    for (selector, is_meant) in [
        (json!(null), false),
        (json!({}), true),
        (json!({ "driver": "d" }), true),
        (json!({ "driver": "e" }), false),
        (json!({ "driver": "d", "pool": "x", "device": "gpu-0" }), true),
        (json!({ "driver": "d", "pool": "x", "device": "gpu-1" }), false),
        (json!({ "pool": "y" }), false),
    ] {
        let rules = vec![Arc::new(rule("NoExecute", &selector))];
        let found = pushes(&pod(), &caches, &rules);
        assert_eq!(found.iter().any(|push| push.rule.as_deref() == Some("rule")), is_meant, "{selector}");
    }
    assert!(pushes(&pod(), &caches, &vec![Arc::new(rule("NoSchedule", &json!({})))]).is_empty());
}

/// The condition of a rule as it is reported, and after how long it is looked at again.
fn reported(plan: &Plan) -> (Option<String>, Option<u64>) {
    let said = plan.writes.iter().find_map(|write| match write {
        runtime::Write::Update { object, subresource: "status", .. } => {
            let condition = &object["status"]["conditions"][0];
            let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
            Some(format!("{} {} {}", text("status"), text("reason"), text("message")))
        }
        _ => None,
    });
    (said, plan.requeue_after.map(|delay| delay.as_secs()))
}

#[test]
fn a_rule_says_what_it_does_or_would_do() {
    let reach = Reach { published: 1, allocated: 2, pods: 1, namespaces: 1, evicted: 0 };
    let many = Reach { pods: 5, namespaces: 2, evicted: 3, ..reach };
    let none = Reach::default();
    for (effect, reach, expected) in [
        ("NoExecute", reach.clone(), "True PodsPendingEviction 1 pod needs to be evicted in 1 namespace."),
        (
            "NoExecute",
            many,
            "True PodsPendingEviction 5 pods need to be evicted in 2 different namespaces. 3 pods evicted since starting \
             the controller.",
        ),
        ("NoExecute", none.clone(), "False NotStarted "),
        (
            "NoExecute",
            Reach { evicted: 1, ..none.clone() },
            "False Completed 1 pod evicted since starting the controller.",
        ),
        ("NoSchedule", none, "False OtherEffect Eviction only happens for the NoExecute effect."),
        (
            "None",
            reach,
            "False NoEffect 1 published device selected. 2 allocated devices selected. 1 pod would be evicted in 1 \
             namespace if the effect was NoExecute. This information will not be updated again. Recreate the \
             DeviceTaintRule to trigger an update.",
        ),
    ] {
        let plan = rules::plan(&rule(effect, &json!({})), NOW, || reach);
        assert_eq!(reported(&plan), (Some(expected.to_owned()), None), "{effect}");
    }
}

#[test]
fn progress_is_reported_every_ten_seconds_and_what_has_no_effect_once() {
    let with = |effect: &str, observed: i64| -> Object<DeviceTaintRule> {
        let condition = json!({
            "type": "EvictionInProgress", "status": "False", "reason": "NotStarted", "message": "",
            "observedGeneration": observed, "lastTransitionTime": NOW,
        });
        let mut rule = rule(effect, &json!({})).json();
        rule["status"] = json!({ "conditions": [condition] });
        Object::of(&rule)
    };
    let pending = || Reach { pods: 1, namespaces: 1, ..Reach::default() };
    assert_eq!(reported(&rules::plan(&with("NoExecute", 1), after(4), pending)), (None, Some(6)));
    assert!(reported(&rules::plan(&with("NoExecute", 1), after(10), pending)).0.is_some());
    assert!(reported(&rules::plan(&with("NoExecute", 0), after(4), pending)).0.is_some(), "the rule is another");
    assert_eq!(reported(&rules::plan(&with("NoExecute", 1), after(10), Reach::default)), (None, None));
    assert_eq!(reported(&rules::plan(&with("None", 1), after(99), pending)), (None, None));
}

#[test]
fn what_a_rule_has_driven_off_is_counted_once_it_has_gone() {
    let rules = vec![Arc::new(rule("NoExecute", &json!({})))];
    let mut memory = Memory::default();
    let request = |now| Request { key: Key::new("a", "p"), now, failure: None };
    let caches = world(&[claim("u", &json!([]))], &[]);
    reconcile(&caches, &request(NOW), &rules, &mut memory);
    reconcile(&caches, &request(NOW), &rules, &mut memory);
    assert!(memory.evicted.is_empty(), "it is still there");
    let gone = Caches::default().with::<Pod>().with::<ResourceClaim>().with::<ResourceSlice>();
    reconcile(&gone, &request(NOW), &rules, &mut memory);
    reconcile(&gone, &request(NOW), &rules, &mut memory);
    assert_eq!(memory.evicted["rule"], 1);
    let of_rule = Request { key: Key::cluster("rule"), now: NOW, failure: None };
    let plan = rules::reconcile(&caches, &of_rule, &rules, &mut memory);
    assert!(reported(&plan).0.unwrap().ends_with("1 pod evicted since starting the controller."));
    rules::reconcile(&caches, &of_rule, &Rules::new(), &mut memory);
    assert!(memory.evicted.is_empty());
}
