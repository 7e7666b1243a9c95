//! Files that are read, and files that are refused.

use super::*;
use crate::profile::{Candidates, Packing, Weights};
use crate::resources::Resource;
use crate::verdict::Plugin;
use object::json;

fn file(more: &Value) -> Value {
    let mut file = json!({ "apiVersion": VERSION, "kind": KIND });
    crate::tests::merge(&mut file, more);
    file
}

fn profile(profile: &Value) -> Profile {
    let read = Configuration::read(&file(&json!({ "profiles": [profile] }))).expect("a file without mistakes");
    read.profiles.into_iter().next().expect("a profile")
}

fn args(name: &str, args: &Value) -> Value {
    json!({ "pluginConfig": [{ "name": name, "args": args }] })
}

fn complaints(file: &Value) -> Vec<String> {
    Configuration::read(file).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_that_says_nothing_changes_nothing() {
    assert_eq!(Configuration::read(&file(&json!({}))), Ok(Configuration::default()));
    assert_eq!(profile(&json!({})), Profile::new(DEFAULT));
}

#[test]
fn plugins_are_enabled_and_disabled_at_a_point_or_at_all_of_them() {
    let enable = |name: &str, weight: i64| json!({ "name": name, "weight": weight });
    let none =
        Weights { taints: 0, node_affinity: 0, spread: 0, pod_affinity: 0, fit: 0, balance: 0, images: 0, devices: 0 };
    for (plugins, weights, filters_by_taints) in [
        (
            json!({ "score": { "disabled": [{ "name": "ImageLocality" }] } }),
            Weights { images: 0, ..Weights::default() },
            true,
        ),
        (
            json!({ "multiPoint": { "disabled": [{ "name": "TaintToleration" }] } }),
            Weights { taints: 0, ..Weights::default() },
            false,
        ),
        (
            json!({ "multiPoint": { "enabled": [enable("NodeResourcesFit", 7)] } }),
            Weights { fit: 7, ..Weights::default() },
            true,
        ),
        (
            json!({
                "multiPoint": { "disabled": [{ "name": "*" }], "enabled": [
                    enable("PrioritySort", 0), enable("DefaultBinder", 0), enable("SchedulingGates", 0), enable("ImageLocality", 0),
                ] },
                "score": { "enabled": [enable("NodeResourcesFit", 5)] },
                "preScore": { "enabled": [enable("NodeResourcesFit", 0)] },
            }),
            Weights { fit: 5, images: 1, ..none.clone() },
            false,
        ),
        (
            json!({
                "score": { "disabled": [{ "name": "*" }], "enabled": [enable("NodeAffinity", 9)] },
                "preScore": { "disabled": [{ "name": "*" }], "enabled": [enable("NodeAffinity", 0)] },
            }),
            Weights { node_affinity: 9, ..none },
            true,
        ),
    ] {
        let profile = profile(&json!({ "plugins": plugins }));
        assert_eq!(profile.weights, weights, "{plugins}");
        assert_eq!(profile.filters_by(Plugin::TaintToleration), filters_by_taints, "{plugins}");
    }
}

#[test]
fn arguments_arrive() {
    let shape = json!([{ "utilization": 0, "score": 0 }, { "utilization": 100, "score": 10 }]);
    let strategy = json!({
        "type": "RequestedToCapacityRatio", "requestedToCapacityRatio": { "shape": shape },
        "resources": [{ "name": "cpu" }, { "name": "example.com/gpu", "weight": 5 }],
    });
    let fit = profile(&args(
        "NodeResourcesFit",
        &json!({ "kind": "NodeResourcesFitArgs", "scoringStrategy": strategy, "ignoredResourceGroups": ["example.com"] }),
    ))
    .fit;
    assert_eq!(fit.packing, Packing::Shape(vec![(0, 0), (100, 100)]));
    assert_eq!(fit.resources, [(Resource::Cpu, 1), (Resource::Other("example.com/gpu".into()), 5)]);
    assert_eq!(
        (fit.ignores("example.com/gpu"), fit.ignores("example.org/gpu"), fit.ignores("cpu")),
        (true, false, false)
    );
    let candidates = profile(&args("DefaultPreemption", &json!({ "minCandidateNodesPercentage": 50 }))).preemption;
    assert_eq!(candidates, Some(Candidates { percent: 50, least: 100 }));
    let constraint = json!({ "maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule" });
    let spread = json!({ "defaultingType": "List", "defaultConstraints": [constraint] });
    let spread = profile(&args("PodTopologySpread", &spread)).spread;
    assert_eq!(spread.len(), 1);
    assert!(spread[0].is_hard && spread[0].topology == "rack" && !spread[0].is_default);
    let backoff = Configuration::read(&file(&json!({ "podInitialBackoffSeconds": 3, "podMaxBackoffSeconds": 7 })));
    let backoff = backoff.expect("a file without mistakes").backoff;
    assert_eq!((backoff.first.as_secs(), backoff.most.as_secs()), (3, 7));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let in_profile = |profile: &Value| file(&json!({ "profiles": [profile] }));
    for (file, complaint) in [
        (
            json!({ "kind": KIND, "apiVersion": "v1" }),
            "apiVersion: Unsupported value: \"v1\": supported values: \"kubescheduler.config.k8s.io/v1\"",
        ),
        (file(&json!({ "profils": [] })), "profils: Forbidden: unknown field"),
        (
            file(&json!({ "extenders": [{}] })),
            "extenders: Forbidden: extenders are not supported: another program would be asked over HTTP about every pod",
        ),
        (
            file(&json!({ "percentageOfNodesToScore": 50 })),
            "percentageOfNodesToScore: Forbidden: not supported: every node is looked at",
        ),
        (
            file(&json!({ "percentageOfNodesToScore": 101 })),
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ),
        (
            file(&json!({ "podInitialBackoffSeconds": 0 })),
            "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            file(&json!({ "podInitialBackoffSeconds": 20 })),
            "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
        ),
        (
            file(&json!({ "profiles": [{ "schedulerName": "a" }, { "schedulerName": "a" }] })),
            "profiles[1].schedulerName: Duplicate value: \"profiles[0].schedulerName\"",
        ),
        (file(&json!({ "profiles": [{ "schedulerName": "a" }, {}] })), "profiles[1].schedulerName: Required value"),
        (
            in_profile(&json!({ "plugins": { "filter": { "enabled": [{ "name": "Coscheduling" }] } } })),
            "profiles[0].plugins.filter.enabled[0].name: Unsupported value: \"Coscheduling\": supported values: ",
        ),
        (
            in_profile(&json!({ "plugins": { "filter": { "enabled": [{ "name": "ImageLocality" }] } } })),
            "profiles[0].plugins.filter.enabled[0].name: Invalid value: \"ImageLocality\": does not extend filter",
        ),
        (
            in_profile(&json!({ "plugins": { "queueSort": { "disabled": [{ "name": "*" }] } } })),
            "profiles[0].plugins.queueSort: Forbidden: not supported: there is no queueSort but PrioritySort",
        ),
        (
            in_profile(&json!({ "plugins": { "preFilter": { "disabled": [{ "name": "NodePorts" }] } } })),
            "profiles[0].plugins.preFilter: Forbidden: not supported: NodePorts is disabled here and not at filter",
        ),
        (
            in_profile(&args("InterPodAffinity", &json!({ "hardPodAffinityWeight": 101 }))),
            "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
        ),
        (
            in_profile(&args("InterPodAffinity", &json!({ "kind": "NodeAffinityArgs" }))),
            "profiles[0].pluginConfig[0].args: Invalid value: {\"kind\":\"NodeAffinityArgs\"}: has to match plugin args",
        ),
        (
            in_profile(&args("NodeResourcesFit", &json!({ "scoringStrategy": { "type": "Best" } }))),
            "profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: \"Best\": supported values: \"LeastAllocated\", \"MostAllocated\", \"RequestedToCapacityRatio\"",
        ),
        (
            in_profile(&args(
                "NodeResourcesFit",
                &json!({ "scoringStrategy": { "type": "LeastAllocated", "resources": [{ "name": "cpu", "weight": 101 }] } }),
            )),
            "profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
        ),
        (
            in_profile(&args(
                "NodeResourcesFit",
                &json!({ "scoringStrategy": { "type": "RequestedToCapacityRatio" } }),
            )),
            "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio",
        ),
        (
            in_profile(&args(
                "PodTopologySpread",
                &json!({ "defaultConstraints": [{ "maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway" }] }),
            )),
            "profiles[0].pluginConfig[0].args.defaultingType: Invalid value: \"System\": when .defaultConstraints are not empty",
        ),
        (
            in_profile(&args(
                "PodTopologySpread",
                &json!({ "defaultingType": "List", "defaultConstraints": [{ "maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway" }] }),
            )),
            "profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
        ),
        (
            in_profile(&args("DefaultPreemption", &json!({ "minCandidateNodesAbsolute": -1 }))),
            "profiles[0].pluginConfig[0].args.minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
        ),
        (
            in_profile(&args(
                "NodeAffinity",
                &json!({ "addedAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "a", "operator": "Is" }] }] } } }),
            )),
            "profiles[0].pluginConfig[0].args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: \"Is\"",
        ),
        (
            in_profile(&args("DynamicResources", &json!({}))),
            "profiles[0].pluginConfig[0].name: Forbidden: not supported: there is no plugin \"DynamicResources\" that takes arguments",
        ),
    ] {
        let complaints = complaints(&file);
        assert!(complaints.len() == 1 && complaints[0].starts_with(complaint), "{file}\n{complaints:#?}\n{complaint}");
    }
}
