//! LimitRanger: containers get the requests and limits of their namespace, and nothing is smaller or larger than it
//! allows.

use super::{Operation, Review};
use object::{ApiError, Edit, Quantity, Value, View};
use quota::Amounts;
use quota::pod_resources::{self, Side};
use std::collections::BTreeMap;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// The lists of containers that are limited, and what the annotation calls one of them.
const CONTAINERS: [(&str, &str); 2] = [("containers", "container"), ("initContainers", "init container")];
const CLAIMS: &str = "persistentvolumeclaims";

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if review.table() == "pods" && is_limited(review) {
        for range in ranges(review) {
            set_defaults(&range, review.object);
        }
    }
    Ok(())
}

pub(super) fn validate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if !is_limited(review) {
        return Ok(());
    }
    for range in ranges(review) {
        let violations = match review.table() {
            CLAIMS => claim_violations(&range, review.object)?,
            _ => pod_violations(&range, review.object)?,
        };
        match violations.as_slice() {
            [] => {}
            [one] => return Err(review.forbid(one)),
            several => return Err(review.forbid(&format!("[{}]", several.join(", ")))),
        }
    }
    Ok(())
}

fn is_limited(review: &Review<'_>) -> bool {
    let going = review.old.is_some_and(|old| old.at("metadata").has("deletionTimestamp"));
    let concerned = match (review.table(), review.subresource(), review.operation) {
        ("pods", "", Operation::Create) | ("pods", "resize", Operation::Update) => true,
        (CLAIMS, "", operation) => operation != Operation::Delete,
        _ => false,
    };
    concerned && !going
}

fn ranges(review: &Review<'_>) -> Vec<Value> {
    review.beside("limitranges").iter().map(|range| range.decode()).collect()
}

fn limits<'a>(range: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    range.at("spec").items("limits").iter().filter(move |limit| limit.text("type") == kind)
}

/// Gives containers what they do not ask for themselves, and says so in an annotation.
fn set_defaults(range: &Value, pod: &mut Value) {
    let mut notes = Vec::new();
    for (list, kind) in CONTAINERS {
        for container in pod.object_or_new("spec").each(list) {
            let name = container.text("name").to_owned();
            // All that is set is decided on what the container came with; of several defaults the last one counts.
            for (source, field, word) in [("defaultRequest", "requests", "request"), ("default", "limits", "limit")] {
                let given = container.at("resources").at(field).clone();
                let defaults = limits(range, "Container").flat_map(|limit| limit.entries(source));
                let missing: BTreeMap<_, _> = defaults.filter(|(name, _)| !given.has(name)).collect();
                if missing.is_empty() {
                    continue;
                }
                let names: Vec<&str> = missing.keys().copied().collect();
                notes.push(format!("{} {word} for {kind} {name}", names.join(", ")));
                let resources = container.object_or_new("resources").object_or_new(field);
                missing.into_iter().for_each(|(name, value)| resources.set(name, value.clone()));
            }
        }
    }
    if !notes.is_empty() {
        let text = format!("LimitRanger plugin set: {}", notes.join("; "));
        pod.object_or_new("metadata").object_or_new("annotations").set(ANNOTATION, text);
    }
}

fn pod_violations(range: &Value, pod: &Value) -> Result<Vec<String>, ApiError> {
    let mut violations = Vec::new();
    for limit in limits(range, "Container") {
        for container in CONTAINERS.iter().flat_map(|(list, _)| pod.at("spec").items(list)) {
            let requests = pod_resources::of_container(container, Side::Requests)?;
            let limits = pod_resources::of_container(container, Side::Limits)?;
            check(limit, &requests, &limits, &mut violations)?;
        }
    }
    for limit in limits(range, "Pod") {
        let requests = pod_resources::of_spec(pod, Side::Requests)?;
        let limits = pod_resources::of_spec(pod, Side::Limits)?;
        check(limit, &requests, &limits, &mut violations)?;
    }
    Ok(violations)
}

/// Claims have requests only, so both bounds are about those.
fn claim_violations(range: &Value, claim: &Value) -> Result<Vec<String>, ApiError> {
    let requests = Amounts::read(claim.at("spec").at("resources").at("requests"))?;
    let mut violations = Vec::new();
    for limit in limits(range, "PersistentVolumeClaim") {
        for (name, bound) in Amounts::read(limit.at("min"))?.iter() {
            violations.extend(below(limit.text("type"), name, bound, requests.get(name), None));
        }
        for (name, bound) in Amounts::read(limit.at("max"))?.iter() {
            let asked = requests.get(name);
            let prefix = format!("maximum {name} usage per {} is {bound}", limit.text("type"));
            match asked {
                None => violations.push(format!("{prefix}.  No request is specified")),
                Some(asked) if asked > bound => violations.push(format!("{prefix}, but request is {asked}")),
                Some(_) => {}
            }
        }
    }
    Ok(violations)
}

fn check(limit: &Value, requests: &Amounts, limits: &Amounts, violations: &mut Vec<String>) -> Result<(), ApiError> {
    let kind = limit.text("type");
    for (field, rule) in [("min", below as Rule), ("max", above), ("maxLimitRequestRatio", too_far_apart)] {
        for (name, bound) in Amounts::read(limit.at(field))?.iter() {
            violations.extend(rule(kind, name, bound, requests.get(name), limits.get(name)));
        }
    }
    Ok(())
}

/// Kind, resource, bound, request and limit, to a violation.
type Rule = fn(&str, &str, Quantity, Option<Quantity>, Option<Quantity>) -> Option<String>;

fn below(
    kind: &str,
    name: &str,
    bound: Quantity,
    request: Option<Quantity>,
    limit: Option<Quantity>,
) -> Option<String> {
    let prefix = format!("minimum {name} usage per {kind} is {bound}");
    match (request, limit) {
        (None, _) => Some(format!("{prefix}.  No request is specified")),
        (Some(request), _) if request < bound => Some(format!("{prefix}, but request is {request}")),
        (_, Some(limit)) if limit < bound => Some(format!("{prefix}, but limit is {limit}")),
        _ => None,
    }
}

fn above(
    kind: &str,
    name: &str,
    bound: Quantity,
    request: Option<Quantity>,
    limit: Option<Quantity>,
) -> Option<String> {
    let prefix = format!("maximum {name} usage per {kind} is {bound}");
    match (request, limit) {
        (_, None) => Some(format!("{prefix}.  No limit is specified")),
        (_, Some(limit)) if limit > bound => Some(format!("{prefix}, but limit is {limit}")),
        (Some(request), _) if request > bound => Some(format!("{prefix}, but request is {request}")),
        _ => None,
    }
}

fn too_far_apart(
    kind: &str,
    name: &str,
    bound: Quantity,
    request: Option<Quantity>,
    limit: Option<Quantity>,
) -> Option<String> {
    let prefix = format!("{name} max limit to request ratio per {kind} is {bound}");
    let some = |quantity: Option<Quantity>| quantity.filter(|quantity| !quantity.is_zero());
    let Some(request) = some(request) else {
        return Some(format!("{prefix}, but no request is specified or request is 0"));
    };
    let Some(limit) = some(limit) else {
        return Some(format!("{prefix}, but no limit is specified or limit is 0"));
    };
    let ratio = limit.millis() as f64 / request.millis() as f64;
    (ratio * 1000.0 > bound.millis() as f64).then(|| format!("{prefix}, but provided ratio is {ratio:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn range(limit: &Value) -> Value {
        json!({ "spec": { "limits": [limit] } })
    }

    fn pod(resources: &Value) -> Value {
        json!({ "spec": { "containers": [{ "name": "c", "resources": resources }], "initContainers": [] } })
    }

    #[test]
    fn containers_get_what_they_do_not_say_and_the_annotation_tells() {
        let range = range(&json!({
            "type": "Container", "default": { "cpu": "2", "memory": "2Gi" }, "defaultRequest": { "cpu": "1" },
        }));
        let mut pod = pod(&json!({ "limits": { "cpu": "5" } }));
        pod["spec"]["initContainers"] = json!([{ "name": "i", "resources": { "requests": { "cpu": "3" } } }]);
        set_defaults(&range, &mut pod);
        let expected = json!({ "limits": { "cpu": "5", "memory": "2Gi" }, "requests": { "cpu": "1" } });
        assert_eq!(pod["spec"]["containers"][0]["resources"], expected);
        assert_eq!(
            pod["metadata"]["annotations"][ANNOTATION],
            "LimitRanger plugin set: cpu request for container c; memory limit for container c; cpu, memory limit for init container i"
        );
        let before = pod.clone();
        set_defaults(&range, &mut pod);
        assert_eq!(pod, before);
    }

    #[test]
    fn each_bound_has_its_message() {
        let resources = json!({ "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "cpu": "3" } });
        for (limit, violations) in [
            (json!({ "type": "Container", "min": { "cpu": "1" }, "max": { "cpu": "3" } }), &[][..]),
            (
                json!({ "type": "Container", "min": { "cpu": "2" } }),
                &["minimum cpu usage per Container is 2, but request is 1"],
            ),
            (
                json!({ "type": "Container", "min": { "x": "2" } }),
                &["minimum x usage per Container is 2.  No request is specified"],
            ),
            (
                json!({ "type": "Container", "max": { "cpu": "2" } }),
                &["maximum cpu usage per Container is 2, but limit is 3"],
            ),
            (json!({ "type": "Pod", "max": { "cpu": "2" } }), &["maximum cpu usage per Pod is 2, but limit is 3"]),
            (
                json!({ "type": "Pod", "max": { "memory": "2Gi" } }),
                &["maximum memory usage per Pod is 2Gi.  No limit is specified"],
            ),
            (
                json!({ "type": "Container", "maxLimitRequestRatio": { "cpu": "2" } }),
                &["cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"],
            ),
            (
                json!({ "type": "Container", "maxLimitRequestRatio": { "memory": "2" } }),
                &["memory max limit to request ratio per Container is 2, but no limit is specified or limit is 0"],
            ),
            (
                json!({ "type": "Container", "min": { "cpu": "2" }, "max": { "cpu": "2" } }),
                &[
                    "minimum cpu usage per Container is 2, but request is 1",
                    "maximum cpu usage per Container is 2, but limit is 3",
                ],
            ),
        ] {
            assert_eq!(pod_violations(&range(&limit), &pod(&resources)).unwrap(), violations, "{limit}");
        }
    }

    #[test]
    fn claims_are_bounded_by_what_they_request() {
        let limit =
            json!({ "type": "PersistentVolumeClaim", "min": { "storage": "2Gi" }, "max": { "storage": "4Gi" } });
        for (size, violations) in [
            ("3Gi", vec![]),
            ("1Gi", vec!["minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"]),
            ("5Gi", vec!["maximum storage usage per PersistentVolumeClaim is 4Gi, but request is 5Gi"]),
        ] {
            let claim = json!({ "spec": { "resources": { "requests": { "storage": size } } } });
            assert_eq!(claim_violations(&range(&limit), &claim).unwrap(), violations);
        }
    }
}
