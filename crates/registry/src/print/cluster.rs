//! How nodes, namespaces, events and other things of the whole cluster look.

use super::text::{NONE, UNKNOWN, age, condition, count, join, name, or, since};
use super::{AGE, NAME, boolean, integer, printer, string};
use object::{Quantity, Value, View};
use std::collections::BTreeSet;

printer!(NAMESPACE = |object, now| {
    NAME => name(object),
    string("Status", "Whether it is in use or going away") => object.at("status").text("phase"),
    AGE => age(object, now),
});

printer!(NODE = |object, now| {
    NAME => name(object),
    string("Status", "Whether it is ready, and takes new pods") => node_status(object),
    string("Roles", "What it is for") => or(&join(roles(object), ","), NONE),
    AGE => age(object, now),
    string("Version", "Version of its agent") => info(object).text("kubeletVersion"),
    string("Internal-IP", "Address inside the cluster").wide() => address(object, "InternalIP"),
    string("External-IP", "Address outside the cluster").wide() => address(object, "ExternalIP"),
    string("OS-Image", "Operating system").wide() => or(info(object).text("osImage"), UNKNOWN),
    string("Kernel-Version", "Kernel, and the machine it is for").wide() => kernel(info(object)),
    string("Container-Runtime", "What runs its containers").wide()
        => or(info(object).text("containerRuntimeVersion"), UNKNOWN),
});

fn info(node: &Value) -> &Value {
    node.path(&["status", "nodeInfo"])
}

fn node_status(node: &Value) -> String {
    let ready = match condition(node.at("status"), "Ready") {
        Some(condition) if condition.text("status") == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let suffix = if node.at("spec").flag("unschedulable") { ",SchedulingDisabled" } else { "" };
    format!("{ready}{suffix}")
}

fn roles(node: &Value) -> BTreeSet<&str> {
    let labels = node.at("metadata").entries("labels");
    let roles = labels.map(|(key, value)| match key {
        "kubernetes.io/role" => value.as_str().unwrap_or_default(),
        key => key.strip_prefix("node-role.kubernetes.io/").unwrap_or_default(),
    });
    roles.filter(|role| !role.is_empty()).collect()
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let addresses = node.at("status").items("addresses");
    addresses.iter().find(|address| address.text("type") == kind).map_or(NONE, |address| address.text("address"))
}

fn kernel(info: &Value) -> String {
    let kernel = or(info.text("kernelVersion"), UNKNOWN);
    match info.text("architecture") {
        "" => kernel.to_owned(),
        architecture => format!("{kernel} ({architecture})"),
    }
}

printer!(
    /// Events of both groups, which name some fields differently.
    EVENT = |object, now| {
        string("Last Seen", "Time since it happened last") => last_seen(object, now),
        string("Type", "Whether it is normal") => object.text("type"),
        string("Reason", "What happened, in a word") => object.text("reason"),
        string("Object", "What it happened to") => event_target(either(object, "involvedObject", "regarding")),
        string("Subobject", "Which part of it").wide()
            => either(object, "involvedObject", "regarding").text("fieldPath"),
        string("Source", "Who says so").wide() => event_source(object),
        string("Message", "What happened")
            => either(object, "message", "note").as_str().unwrap_or_default().trim(),
        string("First Seen", "Time since it happened first").wide() => first_seen(object, now),
        string("Count", "How often it happened").wide() => event_count(object),
        NAME.wide() => name(object),
    }
);

/// A field by its name in the core group or, failing that, in events.k8s.io.
fn either<'a>(event: &'a Value, core: &str, events: &str) -> &'a Value {
    if event.has(core) { event.at(core) } else { event.at(events) }
}

fn first_seen(event: &Value, now: i64) -> String {
    match either(event, "firstTimestamp", "deprecatedFirstTimestamp") {
        Value::Null => since(event.at("eventTime"), now),
        first => since(first, now),
    }
}

fn last_seen(event: &Value, now: i64) -> String {
    if event.has("series") {
        return since(event.at("series").at("lastObservedTime"), now);
    }
    match either(event, "lastTimestamp", "deprecatedLastTimestamp") {
        Value::Null => first_seen(event, now),
        last => since(last, now),
    }
}

fn event_count(event: &Value) -> i64 {
    if event.has("series") {
        return count(event.at("series"), "count");
    }
    // What happened once need not be counted.
    either(event, "count", "deprecatedCount").as_i64().filter(|count| *count != 0).unwrap_or(1)
}

fn event_target(target: &Value) -> String {
    let kind = target.text("kind").to_lowercase();
    if target.text("name").is_empty() { kind } else { format!("{kind}/{}", target.text("name")) }
}

fn event_source(event: &Value) -> String {
    let source = either(event, "source", "deprecatedSource");
    let controller = either(event, "reportingComponent", "reportingController").as_str().unwrap_or_default();
    let component = or(source.text("component"), controller);
    match or(source.text("host"), event.text("reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

printer!(LEASE = |object, now| {
    NAME => name(object),
    string("Holder", "Who holds the lease") => object.at("spec").text("holderIdentity"),
    AGE => age(object, now),
});

printer!(PRIORITY_CLASS = |object, now| {
    NAME => name(object),
    integer("Value", "The higher, the more important") => count(object, "value"),
    boolean("Global-Default", "Whether pods without a class get this one") => object.flag("globalDefault"),
    AGE => age(object, now),
    string("PreemptionPolicy", "Whether its pods drive others away") => object.text("preemptionPolicy"),
});

printer!(RUNTIME_CLASS = |object, now| {
    NAME => name(object),
    string("Handler", "What the container runtime calls it") => object.text("handler"),
    AGE => age(object, now),
});

printer!(NODE_METRICS = |object, _now| {
    NAME => name(object),
    string("CPU", "Processors in use") => object.at("usage").text("cpu"),
    string("Memory", "Memory in use") => object.at("usage").text("memory"),
    string("Window", "Over how long that was measured") => object.text("window"),
});

printer!(POD_METRICS = |object, _now| {
    NAME => name(object),
    string("CPU", "Processors in use") => used(object, "cpu"),
    string("Memory", "Memory in use") => used(object, "memory"),
    string("Window", "Over how long that was measured") => object.text("window"),
});

/// What all containers together use.
fn used(pod: &Value, resource: &str) -> String {
    let containers = pod.items("containers").iter();
    let amounts = containers.filter_map(|container| container.at("usage").text(resource).parse::<Quantity>().ok());
    amounts.sum::<Quantity>().to_string()
}

printer!(COMPONENT_STATUS = |object, _now| {
    NAME => name(object),
    string("Status", "Whether the component is healthy") => match condition(object, "Healthy") {
        Some(condition) if condition.text("status") == "True" => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    },
    string("Message", "What it says of itself") => condition(object, "Healthy").map_or("", |c| c.text("message")),
    string("Error", "What went wrong") => condition(object, "Healthy").map_or("", |c| c.text("error")),
});

printer!(API_SERVICE = |object, now| {
    NAME => name(object),
    string("Service", "Who serves this part of the API") => api_service(object.at("spec").at("service")),
    string("Available", "Whether it answers") => available(object.at("status")),
    AGE => age(object, now),
});

fn api_service(service: &Value) -> String {
    if service.is_null() {
        return "Local".to_owned();
    }
    format!("{}/{}", service.text("namespace"), service.text("name"))
}

fn available(status: &Value) -> String {
    let Some(condition) = condition(status, "Available") else { return "Unknown".to_owned() };
    match (condition.text("status"), condition.text("reason")) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

printer!(
    /// The answer to a request that is no object.
    STATUS = |object, _now| {
        string("Status", "Whether the request succeeded") => object.text("status"),
        string("Reason", "Why it failed, in a word") => object.text("reason"),
        string("Message", "Why it failed") => object.text("message"),
    }
);

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;
    use object::json;

    #[test]
    fn nodes_say_whether_they_can_be_used() {
        let ready = |status: &str| json!({ "conditions": [{ "type": "Ready", "status": status }] });
        for (node, text) in [
            (json!({ "status": ready("True") }), "Ready"),
            (json!({ "status": ready("Unknown") }), "NotReady"),
            (json!({}), "Unknown"),
            (json!({ "spec": { "unschedulable": true }, "status": ready("True") }), "Ready,SchedulingDisabled"),
        ] {
            assert_eq!(node_status(&node), text);
        }
        let labels = json!({
            "node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/": "", "kubernetes.io/role": "edge",
            "node-role.kubernetes.io/control-plane": "",
        });
        let addresses = json!([
            { "type": "Hostname", "address": "h" }, { "type": "InternalIP", "address": "10.0.0.1" },
            { "type": "InternalIP", "address": "fd00::1" },
        ]);
        let info = json!({
            "kubeletVersion": "v1.36.0", "osImage": "Debian", "kernelVersion": "6.1", "architecture": "amd64",
            "containerRuntimeVersion": "containerd://2.0",
        });
        check(
            &NODE,
            &[
                (
                    json!({ "metadata": { "labels": labels }, "status": { "addresses": addresses, "nodeInfo": info } }),
                    json!([
                        "Unknown",
                        "control-plane,edge,worker",
                        "v1.36.0",
                        "10.0.0.1",
                        NONE,
                        "Debian",
                        "6.1 (amd64)",
                        "containerd://2.0",
                    ]),
                ),
                (json!({}), json!(["Unknown", NONE, "", NONE, NONE, UNKNOWN, UNKNOWN, UNKNOWN])),
            ],
        );
    }

    #[test]
    fn events_of_both_groups_look_alike() {
        check(
            &EVENT,
            &[
                (
                    json!({
                        "type": "Warning", "reason": "BackOff", "message": " again \n", "count": 4,
                        "involvedObject": { "kind": "Pod", "name": "p", "fieldPath": "spec.containers{a}" },
                        "source": { "component": "kubelet", "host": "n" },
                        "firstTimestamp": "2026-02-28T00:00:00Z", "lastTimestamp": "2026-02-28T23:59:00Z",
                    }),
                    json!([
                        "60s",
                        "Warning",
                        "BackOff",
                        "pod/p",
                        "spec.containers{a}",
                        "kubelet, n",
                        "again",
                        "24h",
                        4,
                        "x"
                    ]),
                ),
                (
                    json!({
                        "type": "Normal", "reason": "Scheduled", "note": "there", "regarding": { "kind": "Node" },
                        "reportingController": "scheduler", "eventTime": "2026-02-28T23:00:00.000000Z",
                        "series": { "count": 3, "lastObservedTime": "2026-02-28T23:59:30.000000Z" },
                    }),
                    json!(["30s", "Normal", "Scheduled", "node", "", "scheduler", "there", "60m", 3, "x"]),
                ),
                (
                    json!({ "eventTime": "2026-02-28T23:59:00.000000Z", "reportingComponent": "c", "reportingInstance": "i" }),
                    json!(["60s", "", "", "", "", "c, i", "", "60s", 1, "x"]),
                ),
                (json!({}), json!([UNKNOWN, "", "", "", "", "", "", UNKNOWN, 1, "x"])),
            ],
        );
    }

    #[test]
    fn apis_say_who_serves_them_and_whether_they_answer() {
        let available = |status: &str, reason: &str| json!({ "conditions": [{ "type": "Available", "status": status, "reason": reason }] });
        check(
            &API_SERVICE,
            &[
                (json!({}), json!(["Local", "Unknown"])),
                (json!({ "status": available("True", "Local") }), json!(["Local", "True"])),
                (
                    json!({
                        "spec": { "service": { "namespace": "n", "name": "s" } },
                        "status": available("False", "MissingEndpoints"),
                    }),
                    json!(["n/s", "False (MissingEndpoints)"]),
                ),
                (json!({ "status": available("False", "") }), json!(["Local", "False"])),
            ],
        );
    }

    #[test]
    fn small_kinds_show_their_fields() {
        check(&NAMESPACE, &[(json!({ "status": { "phase": "Active" } }), json!(["Active"]))]);
        check(&LEASE, &[(json!({ "spec": { "holderIdentity": "h" } }), json!(["h"]))]);
        check(&RUNTIME_CLASS, &[(json!({ "handler": "runc" }), json!(["runc"]))]);
        check(
            &PRIORITY_CLASS,
            &[
                (json!({ "value": 7, "preemptionPolicy": "Never" }), json!([7, false, "Never"])),
                (json!({ "value": 7, "globalDefault": true }), json!([7, true, ""])),
            ],
        );
        let healthy = |status: &str| json!([{ "type": "Healthy", "status": status, "message": "m", "error": "e" }]);
        check(
            &COMPONENT_STATUS,
            &[
                (json!({ "conditions": healthy("True") }), json!(["Healthy", "m", "e"])),
                (json!({ "conditions": healthy("False") }), json!(["Unhealthy", "m", "e"])),
                (json!({}), json!(["Unknown", "", ""])),
            ],
        );
        let status = json!({ "status": "Failure", "reason": "NotFound", "message": "no" });
        check(&STATUS, &[(status, json!(["Failure", "NotFound", "no"]))]);
    }
}
