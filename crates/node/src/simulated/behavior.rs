//! How simulated pods and nodes behave, as somebody says: on the object itself by annotations, or for many at once by
//! ConfigMaps, so that an outage can be rehearsed without touching what is to suffer it.
//!
//! Of a pod, it says itself; then ConfigMaps of its namespace that select it, by name; then its node, and ConfigMaps of
//! `kube-system` that select the node. The first that makes sense counts.

use kinds::{ConfigMap, Dict, Labels, Node, Object, Pod, SIMULATED_BEHAVIOR, Selector};
use object::Quantity;
use runtime::{Caches, Change, Note, Plan};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What all annotations begin with.
const PREFIX: &str = "simulated.setpoint.dev/";
/// Where ConfigMaps select nodes.
pub(super) const OF_NODES: &str = "kube-system";
const SELECTOR: &str = "selector";

/// What is wrong with a value, if anything.
type Check = fn(&str) -> Option<&'static str>;

/// What can be said.
const KEYS: &[(&str, Check)] = &[
    ("pull", |text| is_one_of(text, &["fail", "ok"], "expected fail or ok")),
    ("pull-seconds", seconds),
    ("start-seconds", seconds),
    ("ready", |text| is_one_of(text, &["false", "true"], "expected true or false")),
    ("ready-seconds", seconds),
    ("run-seconds", seconds),
    ("stop-seconds", seconds),
    ("exit-code", |text| text.parse::<i32>().is_err().then_some("expected a whole number")),
    ("failure-rate", |text| {
        let rate = text.parse::<f64>().ok().filter(|rate| (0.0..=1.0).contains(rate));
        rate.is_none().then_some("expected a number from 0 to 1")
    }),
    ("cpu", amount),
    ("memory", amount),
    ("state", |text| is_one_of(text, &["dead", "alive"], "expected dead or alive")),
];

fn is_one_of(text: &str, known: &[&str], why: &'static str) -> Option<&'static str> {
    (!known.contains(&text)).then_some(why)
}

fn seconds(text: &str) -> Option<&'static str> {
    let number = text.parse::<f64>().ok().and_then(|number| std::time::Duration::try_from_secs_f64(number).ok());
    number.is_none().then_some("expected a number of seconds")
}

fn amount(text: &str) -> Option<&'static str> {
    let parts = text.split("..").flat_map(|part| part.split('/'));
    let makes_sense = parts.into_iter().all(|part| part.trim().parse::<Quantity>().is_ok());
    (!makes_sense).then_some("expected an amount, or LOW..HIGH/SECONDS")
}

/// What is said, by short names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Behavior(BTreeMap<&'static str, String>);

impl Behavior {
    /// `of_node` is how its node behaves.
    pub(super) fn of_pod(pod: &Pod, of_node: &Behavior, caches: &Caches) -> Self {
        let mut said = Behavior::default();
        said.take_annotations(&pod.metadata.annotations);
        // Those of kube-system are for nodes, so pods there have none of their own.
        if pod.metadata.namespace != OF_NODES {
            said.take_maps(&pod.metadata.namespace, &pod.metadata.labels, caches);
        }
        for (name, value) in &of_node.0 {
            said.0.entry(name).or_insert_with(|| value.clone());
        }
        said
    }

    pub(super) fn of_node(node: &Node, caches: &Caches) -> Self {
        let mut said = Behavior::default();
        said.take_annotations(&node.metadata.annotations);
        said.take_maps(OF_NODES, &node.metadata.labels, caches);
        said
    }

    /// How a node of that name behaves; if there is none, as usual.
    pub(super) fn of_node_named(name: &str, caches: &Caches) -> Self {
        caches.of::<Node>().named("", name).map(|node| Behavior::of_node(&node, caches)).unwrap_or_default()
    }

    fn take_annotations(&mut self, annotations: &Labels) {
        let ours = annotations.iter().filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value)));
        self.take(ours);
    }

    fn take_maps(&mut self, namespace: &str, labels: &Labels, caches: &Caches) {
        let mut maps = caches.of::<ConfigMap>().by("behavior", namespace);
        maps.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        for data in maps.iter().map(|map| map.data()).filter(|data| selects(data, labels)) {
            self.take(data.iter().map(|(key, value)| (key.as_str(), value)));
        }
    }

    /// What has not been said before, as far as it makes sense.
    fn take<'a>(&mut self, said: impl Iterator<Item = (&'a str, &'a String)>) {
        for (key, value) in said {
            let known = KEYS.iter().find(|(name, check)| *name == key && check(value).is_none());
            if let Some((name, _)) = known {
                self.0.entry(name).or_insert_with(|| value.clone());
            }
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether a node does nothing and says nothing.
    pub(super) fn is_dead(&self) -> bool {
        self.get("state") == Some("dead")
    }
}

/// Whether the data of a ConfigMap is about something with these labels.
fn selects(data: &Dict<String>, labels: &Labels) -> bool {
    let selector = data.get(SELECTOR).and_then(|text| Selector::parse(text).ok());
    selector.is_some_and(|selector| selector.matches(|key| labels.get(key).map(String::as_str)))
}

/// Whether a change of a ConfigMap is one of what is said; and where.
pub(super) fn concerned(change: &Change<ConfigMap>) -> Option<&str> {
    fn says(map: Option<&Arc<Object<ConfigMap>>>) -> Option<Dict<String>> {
        map.filter(|map| map.metadata.labels.contains_key(SIMULATED_BEHAVIOR)).map(|map| map.data())
    }
    let differs = says(change.old.as_ref()) != says(change.new.as_ref());
    change.sides().next().filter(|_| differs).map(|map| map.metadata.namespace.as_str())
}

/// Whether something was said differently on a node.
pub(super) fn differs(old: &Node, new: &Node) -> bool {
    let said = |node: &Node| -> Labels {
        let ours = node.metadata.annotations.iter().filter(|(key, _)| key.starts_with(PREFIX));
        ours.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    said(old) != said(new) || old.metadata.labels != new.metadata.labels
}

/// Tells what makes no sense in a ConfigMap.
pub(super) fn review(map: &Object<ConfigMap>) -> Plan {
    let mut plan = Plan::default();
    for mistake in mistakes(map) {
        plan.event(Note::warning(map, "InvalidBehavior", format!("{mistake}; it is ignored")));
    }
    plan
}

fn mistakes(map: &Object<ConfigMap>) -> Vec<String> {
    let (mut mistakes, data) = (Vec::new(), map.data());
    match data.get(SELECTOR).map(|text| Selector::parse(text)) {
        None => mistakes.push("data.selector: required; an empty one selects everything".to_owned()),
        Some(Err(error)) => mistakes.push(format!("data.selector: {error}")),
        Some(Ok(_)) => {}
    }
    for (key, value) in data.iter().filter(|(key, _)| *key != SELECTOR) {
        let why = match KEYS.iter().find(|(name, _)| name == key) {
            None => Some("nothing of that name can be said"),
            Some(("state", _)) if map.metadata.namespace != OF_NODES => Some("only nodes have one, in kube-system"),
            Some((_, check)) => check(value),
        };
        mistakes.extend(why.map(|why| format!("data.{key}: {value:?}: {why}")));
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Value, json};

    fn map(namespace: &str, name: &str, data: &Value) -> Object<ConfigMap> {
        let labels = json!({ SIMULATED_BEHAVIOR: "" });
        Object::of(&json!({ "metadata": { "name": name, "namespace": namespace, "labels": labels }, "data": data }))
    }

    fn annotated(name: &str, said: &[(&str, &str)]) -> Value {
        let mut annotations = json!({});
        for (key, value) in said {
            annotations[format!("{PREFIX}{key}")] = json!(value);
        }
        json!({ "metadata": { "name": name, "namespace": "n", "labels": { "app": "web" }, "annotations": annotations } })
    }

    fn caches(maps: Vec<Object<ConfigMap>>) -> Caches {
        let mut caches = Caches::default().with::<ConfigMap>();
        maps.into_iter().for_each(|map| caches.put(map));
        caches
    }

    #[test]
    fn whoever_is_nearer_to_the_pod_goes_before() {
        let caches = caches(vec![
            map("n", "b", &json!({ "selector": "app=web", "run-seconds": "2", "exit-code": "2", "stop-seconds": "2" })),
            map("n", "a", &json!({ "selector": "app in (web)", "run-seconds": "bad", "exit-code": "3" })),
            map("n", "other", &json!({ "selector": "app=other", "ready": "false" })),
            map("elsewhere", "a", &json!({ "selector": "", "ready": "false" })),
            map(
                OF_NODES,
                "nodes",
                &json!({ "selector": "app=web", "stop-seconds": "5", "ready-seconds": "5", "cpu": "5" }),
            ),
        ]);
        let pod: Object<Pod> = Object::of(&annotated("p", &[("failure-rate", "0.1")]));
        let node: Object<Node> = Object::of(&annotated("node-0", &[("failure-rate", "1"), ("ready-seconds", "4")]));
        let said = Behavior::of_pod(&pod, &Behavior::of_node(&node, &caches), &caches);
        let expected = [
            ("cpu", "5"),
            ("exit-code", "3"),
            ("failure-rate", "0.1"),
            ("ready-seconds", "4"),
            ("run-seconds", "2"),
            ("stop-seconds", "2"),
        ];
        assert_eq!(said.0, expected.map(|(key, value)| (key, value.to_owned())).into());
    }

    #[test]
    fn nodes_die_by_selector_unless_they_say_otherwise() {
        let caches = caches(vec![
            map(OF_NODES, "outage", &json!({ "selector": "app=web", "state": "dead" })),
            map("n", "outage", &json!({ "selector": "", "state": "dead" })),
        ]);
        let node = |said: &[(&str, &str)]| -> Object<Node> { Object::of(&annotated("node-0", said)) };
        assert!(Behavior::of_node(&node(&[]), &caches).is_dead());
        assert!(!Behavior::of_node(&node(&[("state", "alive")]), &caches).is_dead());
        let other: Object<Node> = Object::of(&json!({ "metadata": { "name": "node-1" } }));
        assert!(!Behavior::of_node(&other, &caches).is_dead());
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for (namespace, data, expected) in [
            ("n", json!({ "selector": "", "cpu": "100m..900m/600", "ready": "false" }), vec![]),
            ("n", json!({}), vec!["data.selector: required; an empty one selects everything"]),
            (
                "n",
                json!({ "selector": "", "run-seconds": "-1" }),
                vec!["data.run-seconds: \"-1\": expected a number of seconds"],
            ),
            ("n", json!({ "selector": "", "speed": "1" }), vec!["data.speed: \"1\": nothing of that name can be said"]),
            (
                "n",
                json!({ "selector": "", "state": "dead" }),
                vec!["data.state: \"dead\": only nodes have one, in kube-system"],
            ),
            (OF_NODES, json!({ "selector": "", "state": "dead" }), vec![]),
        ] {
            assert_eq!(mistakes(&map(namespace, "m", &data)), expected, "{data}");
        }
        let broken = mistakes(&map("n", "m", &json!({ "selector": "a in" })));
        assert!(broken.len() == 1 && broken[0].starts_with("data.selector: "), "{broken:?}");
        assert_eq!(review(&map("n", "m", &json!({ "selector": "" }))), Plan::default());
    }
}
