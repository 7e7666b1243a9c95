//! Which nodes a set's pods fit, and how a pod is meant for one.

use crate::history::POD_LABEL;
use crate::workload::pod_from_template;
use kinds::{DaemonSet, Node, Object, Pod, PodSpec, Toleration};
use object::{Edit, Value, View, json};

/// Whether a node should have a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Runs,
    /// Not anew, but one that is there stays.
    Stays,
    No,
}

/// What daemons put up with, so that they stay where others go: key and effect.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// What only those without a network of their own put up with.
const TOLERATED_ON_HOST: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The pods of a set, as far as it matters for their places.
pub(super) struct Daemon {
    spec: PodSpec,
    tolerations: Vec<Toleration>,
}

impl Daemon {
    pub(super) fn of(set: &DaemonSet) -> Self {
        let spec = set.spec.template.spec();
        let mut tolerations = spec.tolerations.to_vec();
        tolerations.extend(tolerated(spec.host_network).map(|(key, effect)| Toleration {
            key: key.to_owned(),
            operator: "Exists".to_owned(),
            effect: effect.to_owned(),
            ..Toleration::default()
        }));
        Daemon { spec, tolerations }
    }

    pub(super) fn fit(&self, node: &Node) -> Fit {
        let here = self.spec.node_name.is_empty() || self.spec.node_name == node.metadata.name;
        if !here || !self.is_selected(node) {
            return Fit::No;
        }
        let repels = |effect: &str| {
            let mut taints = node.spec.taints.iter().filter(|taint| taint.effect == effect);
            taints.any(|taint| !self.tolerations.iter().any(|toleration| toleration.tolerates(taint)))
        };
        match (repels("NoExecute"), repels("NoSchedule")) {
            (true, _) => Fit::No,
            (false, true) => Fit::Stays,
            (false, false) => Fit::Runs,
        }
    }

    fn is_selected(&self, node: &Node) -> bool {
        let labels = &node.metadata.labels;
        let selected = self.spec.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value));
        selected && self.spec.required_nodes().is_none_or(|required| required.matches(node))
    }

    /// A pod for a node.
    pub(super) fn pod(&self, set: &Object<DaemonSet>, node: &str, hash: &str) -> Value {
        let mut pod = pod_from_template(set, &set.spec.template);
        let labels = pod.object_or_new("metadata").object_or_new("labels");
        labels.set(POD_LABEL, hash);
        if let Some(generation) = set.metadata.annotations.get(TEMPLATE_GENERATION) {
            labels.set("pod-template-generation", generation.as_str());
        }
        let spec = pod.object_or_new("spec");
        let requirement = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
        spec.object_or_new("affinity").object_or_new("nodeAffinity").set(
            "requiredDuringSchedulingIgnoredDuringExecution",
            json!({ "nodeSelectorTerms": [{ "matchFields": [requirement] }] }),
        );
        let added = tolerated(self.spec.host_network)
            .map(|(key, effect)| json!({ "key": key, "operator": "Exists", "effect": effect }));
        let is_same =
            |a: &Value, b: &Value| ["key", "operator", "effect", "value"].iter().all(|f| a.text(f) == b.text(f));
        let mut tolerations = spec.items("tolerations").to_vec();
        for toleration in added {
            tolerations.retain(|other| !is_same(other, &toleration));
            tolerations.push(toleration);
        }
        spec.set("tolerations", tolerations);
        pod
    }
}

fn tolerated(on_host: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    TOLERATED.into_iter().chain(on_host.then_some(TOLERATED_ON_HOST))
}

/// The node that a pod is on or meant for; empty if neither.
pub(super) fn target(pod: &Pod) -> String {
    if !pod.spec.node_name.is_empty() {
        return pod.spec.node_name.clone();
    }
    let required = pod.spec.required_nodes().unwrap_or_default();
    let names = required.names().unwrap_or_default();
    if names.len() == 1 { names.first().map(|name| (*name).to_owned()).unwrap_or_default() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(spec: &Value, taints: &Value) -> Fit {
        let set = Object::<DaemonSet>::of(&json!({ "spec": { "template": { "spec": spec } } }));
        let metadata = json!({ "name": "n1", "labels": { "disk": "ssd", "cores": "8" } });
        let node = Object::<Node>::of(&json!({ "metadata": metadata, "spec": { "taints": taints } }));
        Daemon::of(&set).fit(&node)
    }

    #[test]
    fn a_node_fits_if_it_is_selected() {
        let required = |term: Value| {
            json!({ "affinity": { "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{}, term] },
            } } })
        };
        let label = |operator: &str, key: &str, value: &str| {
            required(json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": [value] }] }))
        };
        for (spec, fits) in [
            (json!({}), true),
            (json!({ "nodeName": "n1" }), true),
            (json!({ "nodeName": "n2" }), false),
            (json!({ "nodeSelector": { "disk": "ssd" } }), true),
            (json!({ "nodeSelector": { "disk": "hdd" } }), false),
            (label("In", "disk", "ssd"), true),
            (label("NotIn", "disk", "ssd"), false),
            (label("Exists", "gpu", ""), false),
            (label("DoesNotExist", "gpu", ""), true),
            (label("Gt", "cores", "4"), true),
            (label("Lt", "cores", "4"), false),
            (required(json!({})), false),
            (
                required(json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n1"] }] })),
                true,
            ),
        ] {
            assert_eq!(fit(&spec, &json!([])), if fits { Fit::Runs } else { Fit::No }, "{spec}");
        }
    }

    #[test]
    fn daemons_put_up_with_nodes_in_trouble() {
        for (key, effect, on_host, expected) in [
            ("node.kubernetes.io/not-ready", "NoExecute", false, Fit::Runs),
            ("node.kubernetes.io/not-ready", "NoSchedule", false, Fit::Stays),
            ("node.kubernetes.io/unschedulable", "NoSchedule", false, Fit::Runs),
            ("node.kubernetes.io/network-unavailable", "NoSchedule", false, Fit::Stays),
            ("node.kubernetes.io/network-unavailable", "NoSchedule", true, Fit::Runs),
            ("mine", "NoExecute", false, Fit::No),
            ("mine", "PreferNoSchedule", false, Fit::Runs),
        ] {
            let taints = json!([{ "key": key, "effect": effect }]);
            assert_eq!(fit(&json!({ "hostNetwork": on_host }), &taints), expected, "{key} {effect}");
        }
    }
}
