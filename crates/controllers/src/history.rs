//! Histories: what the template of a workload was, kept in ControllerRevisions.
//!
//! The data of a revision is a patch that would bring its template back, which is how `kubectl rollout undo` uses it.
//! A template that was there before gets the old revision with a new number, so the newest is always the current one.

use crate::workload::{claim, fnv32, safe_encode};
use kinds::{ControllerRevision, Kind, LabelSelector, Object, PodTemplate};
use object::{Edit, Value, View, json};
use runtime::Plan;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The label of pods by which a revision knows them.
pub(crate) const POD_LABEL: &str = "controller-revision-hash";
/// Names are cut so that they and a hash stay within what a name may have.
const MAX_PREFIX: usize = 223;

pub(crate) type Revision = Arc<Object<ControllerRevision>>;

/// What has become of the revision of the current template.
pub(crate) enum Current {
    Known(Revision),
    /// It is to be written first.
    Pending,
    /// Its name is taken: it needs another one.
    Collides,
}

/// What is to be the current revision.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) template: &'a PodTemplate,
    pub(crate) collisions: Option<i32>,
    /// Whatever has the name that the revision would get.
    pub(crate) namesake: Option<&'a Revision>,
    /// The label of the revision with its hash.
    pub(crate) hash_label: &'a str,
}

/// The name of a revision, and the hash in it.
pub(crate) fn name(owner: &str, template: &PodTemplate, collisions: Option<i32>) -> (String, String) {
    let text = format!("{}{}", data(template), collisions.map(|count| count.to_string()).unwrap_or_default());
    let hash = safe_encode(fnv32(text.as_bytes()));
    let prefix = owner.get(..MAX_PREFIX).unwrap_or(owner);
    (format!("{prefix}-{hash}"), hash)
}

fn data(template: &PodTemplate) -> Value {
    let mut template = template.json.clone();
    template.set("$patch", "replace");
    json!({ "spec": { "template": template } })
}

/// The template that a revision keeps.
pub(crate) fn template(revision: &ControllerRevision) -> PodTemplate {
    let mut template = revision.data.path(&["spec", "template"]).clone();
    template.remove("$patch");
    PodTemplate::from(template)
}

/// The revisions of an owner, the oldest first. If some have to be adopted or released, that is planned.
pub(crate) fn revisions<Owner: Kind>(
    plan: &mut Plan,
    owner: &Object<Owner>,
    candidates: &[Revision],
    selector: &LabelSelector,
) -> Vec<Revision> {
    let mut revisions = claim(plan, owner, candidates, |revision| selector.matches(&revision.metadata.labels));
    let order = |revision: &Revision| {
        let meta = &revision.metadata;
        (revision.revision, meta.creation_timestamp, meta.name.clone())
    };
    revisions.sort_by_key(order);
    revisions
}

/// The revision of the current template. If it is not there, or not the newest, it is planned to be.
pub(crate) fn current<Owner: Kind>(
    plan: &mut Plan,
    owner: &Object<Owner>,
    revisions: &[Revision],
    wanted: &Wanted,
) -> Current {
    let Wanted { template, collisions, namesake, hash_label } = *wanted;
    let data = data(template);
    let newest = revisions.last();
    let next = newest.map_or(1, |newest| newest.revision + 1);
    match revisions.iter().rev().find(|revision| revision.data == data) {
        Some(equal) if newest.is_some_and(|newest| newest.data == equal.data) => Current::Known(equal.clone()),
        Some(equal) => {
            let mut object = equal.json();
            object.set("revision", next);
            plan.update(equal, object);
            Current::Pending
        }
        None if namesake.is_some() => Current::Collides,
        None => {
            let (name, hash) = name(&owner.meta().name, template, collisions);
            let mut labels = json!(template.labels);
            labels.set(hash_label, hash);
            plan.create::<ControllerRevision>(json!({
                "metadata": {
                    "name": name,
                    "namespace": owner.meta().namespace,
                    "labels": labels,
                    "annotations": owner.meta().annotations,
                    "ownerReferences": [owner.meta().controller_reference(&Owner::ID)],
                },
                "data": data,
                "revision": next,
            }));
            Current::Pending
        }
    }
}

/// Reports that the name of a revision was taken; the number makes the next one different.
pub(crate) fn report_collision<Owner: Kind>(plan: &mut Plan, owner: &Object<Owner>, collisions: Option<i32>) {
    let mut status = owner.json().remove("status");
    if !status.is_object() {
        status = json!({});
    }
    status.set("collisionCount", collisions.unwrap_or(0) + 1);
    plan.status(owner, status);
}

/// Deletes the oldest of the revisions that nobody uses, so that `limit` of them stay.
pub(crate) fn truncate(plan: &mut Plan, revisions: &[Revision], live: &BTreeSet<&str>, limit: Option<i32>) {
    let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { return };
    let unused: Vec<_> = revisions.iter().filter(|revision| !live.contains(revision.metadata.name.as_str())).collect();
    for revision in unused.iter().take(unused.len().saturating_sub(limit)) {
        if !revision.metadata.is_being_deleted() {
            plan.delete(revision);
        }
    }
}
