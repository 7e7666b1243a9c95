//! Namespace: when one is deleted, so is everything in it; then it may go.
//!
//! Pods go first, since what they use must not vanish under them. What is left, and whose finalizers hold it, stands in
//! the conditions. It deletes whatever kinds there are, custom ones included.

use crate::workload::condition;
use kinds::{Id, Namespace, Object, Partial, Time};
use object::{ApiError, Edit, Reason, Value, View, json};
use runtime::{Client, Context, Controller, DeleteOptions, Discovered, ListOptions, Plan, Request, Target, Write};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const FINALIZER: &str = "kubernetes";
/// How soon to look again at what is left.
const RETRY: Duration = Duration::from_millis(500);
/// So many objects without a way to delete them together are deleted at once.
const AT_ONCE: usize = 50;

pub(crate) fn controller() -> Controller {
    Controller::new("namespace-controller").primary::<Namespace>().workers(10).plans_with(reconcile)
}

async fn reconcile(context: Context, request: Request) -> Result<Plan, ApiError> {
    let namespace = context.caches.of::<Namespace>().get(&request.key);
    let Some(namespace) = namespace.filter(is_to_be_emptied) else { return Ok(Plan::default()) };
    let remains = empty(&context.client, &request.key.name).await;
    Ok(plan(&namespace, &remains, request.now))
}

fn is_to_be_emptied(namespace: &Arc<Object<Namespace>>) -> bool {
    namespace.metadata.is_being_deleted() && namespace.spec.finalizers.iter().any(|name| name == FINALIZER)
}

/// What could not be deleted yet.
#[derive(Debug, Default)]
struct Remains {
    /// Of each kind, how many objects: `pods.`, `deployments.apps`.
    objects: BTreeMap<String, usize>,
    /// By each finalizer, how many objects are held.
    finalizers: BTreeMap<String, usize>,
    failures: Vec<String>,
    undiscovered: Option<String>,
}

impl Remains {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.failures.is_empty() && self.undiscovered.is_none()
    }
}

/// Deletes everything in a namespace; tells what is left.
async fn empty(client: &Client, namespace: &str) -> Remains {
    let mut remains = Remains::default();
    let resources = match client.discover().await {
        Ok(resources) => resources,
        Err(error) => {
            remains.undiscovered = Some(error.to_string());
            return remains;
        }
    };
    let deletable = |resource: &&Discovered| resource.id.namespaced && resource.can("list") && resource.can("delete");
    let (pods, others): (Vec<&Discovered>, Vec<&Discovered>) =
        resources.iter().filter(deletable).partition(|resource| is_pods(&resource.id));
    for group in [pods, others] {
        for resource in group {
            if let Err(error) = empty_of(client, namespace, resource, &mut remains).await {
                remains.failures.push(format!("{}: {error}", resource.id.plural));
            }
        }
        if !remains.is_empty() {
            break;
        }
    }
    remains
}

fn is_pods(id: &Id) -> bool {
    id.group().is_empty() && id.plural == "pods"
}

async fn empty_of(
    client: &Client,
    namespace: &str,
    resource: &Discovered,
    remains: &mut Remains,
) -> Result<(), ApiError> {
    let everything = ListOptions::default();
    let list = client.list_raw(&resource.id, namespace, &everything).await?;
    if list.items.is_empty() {
        return Ok(());
    }
    if resource.can("deletecollection") {
        client.delete_collection(&resource.id, namespace, &everything).await?;
    } else {
        let objects: Vec<Partial> = list.items.iter().filter_map(|raw| Partial::read(raw).ok()).collect();
        for chunk in objects.chunks(AT_ONCE) {
            let targets: Vec<_> =
                chunk.iter().map(|object| Target::new(resource.id.clone(), &object.metadata)).collect();
            let options = DeleteOptions::default();
            let deletions = targets.iter().map(|target| client.delete(target, &options));
            for result in futures::future::join_all(deletions).await {
                match result {
                    Err(error) if error.reason() != Reason::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
    }
    let left = client.list_raw(&resource.id, namespace, &everything).await?;
    if !left.items.is_empty() {
        remains.objects.insert(format!("{}.{}", resource.id.plural, resource.id.group()), left.items.len());
    }
    for object in left.items.iter().filter_map(|raw| Partial::read(raw).ok()) {
        for finalizer in &object.metadata.finalizers {
            *remains.finalizers.entry(finalizer.clone()).or_insert(0) += 1;
        }
    }
    Ok(())
}

fn plan(namespace: &Object<Namespace>, remains: &Remains, now: Time) -> Plan {
    let mut plan = Plan::default();
    if remains.is_empty() {
        let mut object = namespace.json();
        let left: Vec<&String> = namespace.spec.finalizers.iter().filter(|name| *name != FINALIZER).collect();
        object.object_or_new("spec").set("finalizers", json!(left));
        plan.writes.push(Write::Update {
            id: <Namespace as kinds::Kind>::ID,
            subresource: "finalize",
            object,
            announce: None,
        });
        return plan;
    }
    let mut status = namespace.json().at("status").clone();
    status.set("phase", "Terminating");
    status.set("conditions", conditions(namespace, remains, now));
    plan.status(namespace, status);
    plan.requeue_after(RETRY);
    plan
}

fn conditions(namespace: &Namespace, remains: &Remains, now: Time) -> Vec<Value> {
    let counted = |counts: &BTreeMap<String, usize>, between: &str| {
        let texts: Vec<_> =
            counts.iter().map(|(name, count)| format!("{name} {between} {count} resource instances")).collect();
        texts.join(", ")
    };
    let undiscovered = remains.undiscovered.as_deref();
    let failures = &remains.failures;
    let rows = [
        (
            "NamespaceDeletionDiscoveryFailure",
            undiscovered
                .map(|error| ("DiscoveryFailed", format!("Discovery failed for some groups, 1 failing: {error}"))),
            ("ResourcesDiscovered", "All resources successfully discovered"),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            None,
            ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
        ),
        (
            "NamespaceDeletionContentFailure",
            (!failures.is_empty()).then(|| {
                let text = format!(
                    "Failed to delete all resource types, {} remaining: {}",
                    failures.len(),
                    failures.join(", ")
                );
                ("ContentDeletionFailed", text)
            }),
            ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
        ),
        (
            "NamespaceContentRemaining",
            (!remains.objects.is_empty()).then(|| {
                ("SomeResourcesRemain", format!("Some resources are remaining: {}", counted(&remains.objects, "has")))
            }),
            ("ContentRemoved", "All content successfully removed"),
        ),
        (
            "NamespaceFinalizersRemaining",
            (!remains.finalizers.is_empty()).then(|| {
                let held = counted(&remains.finalizers, "in");
                ("SomeFinalizersRemain", format!("Some content in the namespace has finalizers remaining: {held}"))
            }),
            ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
        ),
    ];
    let old = &namespace.status.conditions;
    let write = |(kind, problem, fine): (&str, Option<(&str, String)>, (&str, &str))| match problem {
        Some((reason, message)) => condition(old, kind, "True", reason, &message, now),
        None => condition(old, kind, "False", fine.0, fine.1, now),
    };
    rows.into_iter().map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_seconds(1_767_225_600);

    fn namespace() -> Object<Namespace> {
        Object::of(&json!({
            "metadata": { "name": "a", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "finalizers": ["kubernetes", "other"] },
            "status": { "phase": "Terminating" },
        }))
    }

    #[test]
    fn an_empty_namespace_may_go_as_far_as_this_loop_is_concerned() {
        let plan = plan(&namespace(), &Remains::default(), NOW);
        let [Write::Update { subresource: "finalize", object, .. }] = plan.writes.as_slice() else {
            panic!("{plan:?}")
        };
        assert_eq!(object["spec"]["finalizers"], json!(["other"]));
    }

    #[test]
    fn what_is_left_and_what_holds_it_is_said() {
        let remains = Remains {
            objects: [("deployments.apps".to_owned(), 2), ("pods.".to_owned(), 3)].into(),
            finalizers: [("example.com/hold".to_owned(), 1)].into(),
            ..Remains::default()
        };
        let plan = plan(&namespace(), &remains, NOW);
        assert_eq!(plan.requeue_after, Some(RETRY));
        let [Write::Update { subresource: "status", object, .. }] = plan.writes.as_slice() else { panic!("{plan:?}") };
        let message = |kind: &str| {
            let conditions = object["status"]["conditions"].as_array().unwrap();
            conditions.iter().find(|condition| condition["type"] == kind).unwrap()["message"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            message("NamespaceContentRemaining"),
            "Some resources are remaining: deployments.apps has 2 resource instances, pods. has 3 resource instances"
        );
        assert_eq!(
            message("NamespaceFinalizersRemaining"),
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
        );
        assert_eq!(message("NamespaceDeletionDiscoveryFailure"), "All resources successfully discovered");
    }
}
