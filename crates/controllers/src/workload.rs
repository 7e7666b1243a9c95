//! What loops that keep pods have in common: whose a pod is, how one is made, how conditions and numbers are written.

use kinds::{Condition, Key, Kind, Labels, Object, Pod, PodTemplate, Time};
use object::{Edit, Value, View, json};
use runtime::{Cache, Note, Plan};
use std::sync::Arc;

/// The objects of an owner, after those that should be its own have been adopted and those that no longer match
/// released. `selects` says which match the owner.
pub(crate) fn claim<K: Kind, Owner: Kind>(
    plan: &mut Plan,
    owner: &Object<Owner>,
    objects: &[Arc<Object<K>>],
    selects: impl Fn(&K) -> bool,
) -> Vec<Arc<Object<K>>> {
    let owner_meta = owner.meta();
    let mut claimed = Vec::new();
    for object in objects {
        let meta = object.meta();
        let matches = selects(object);
        match meta.controller() {
            Some(reference) if reference.uid != owner_meta.uid => {}
            Some(_) if matches => claimed.push(object.clone()),
            Some(_) if owner_meta.is_being_deleted() => {}
            Some(_) => {
                plan.release(object, owner);
            }
            None if matches && !owner_meta.is_being_deleted() && !meta.is_being_deleted() => {
                plan.adopt(object, owner);
                claimed.push(object.clone());
            }
            None => {}
        }
    }
    claimed
}

/// The objects that an owner has or could adopt.
pub(crate) fn candidates<K: Kind>(cache: &Cache<K>, namespace: &str, uid: &str) -> Vec<Arc<Object<K>>> {
    let mut candidates = cache.owned_by(uid);
    candidates.extend(cache.by("orphan", namespace));
    candidates
}

/// Whom an object concerns: its controller, or, if it has none, everyone who might adopt it.
pub(crate) fn owners_of<K: Kind, Owner: Kind>(
    object: &Object<K>,
    owners: &Cache<Owner>,
    selects: impl Fn(&Owner, &Labels) -> bool,
) -> Vec<Key> {
    let meta = object.meta();
    if meta.controller().is_some() {
        return runtime::controller_key::<Owner>(meta).into_iter().collect();
    }
    let namespace = owners.in_namespace(&meta.namespace);
    namespace.iter().filter(|owner| selects(owner, &meta.labels)).map(|owner| owner.key()).collect()
}

/// Whether a pod is not, or no longer, of use: not ready for long enough, or on its way out.
pub(crate) fn is_unavailable(pod: &Pod, min_ready_seconds: i64, now: Time) -> bool {
    pod.metadata.is_being_deleted() || !pod.is_available(min_ready_seconds, now)
}

/// A pod from a template, controlled by its owner. The caller names it.
pub(crate) fn pod_from_template<Owner: Kind>(owner: &Object<Owner>, template: &PodTemplate) -> Value {
    let mut metadata = json!({
        "namespace": owner.meta().namespace,
        "ownerReferences": [owner.meta().controller_reference(&Owner::ID)],
    });
    for field in ["labels", "annotations", "finalizers"] {
        let value = template.json.at("metadata").at(field);
        if !value.is_null() {
            metadata.set(field, value.clone());
        }
    }
    // Copies share what they do not change, so this costs nothing however large the template is.
    Value::from_iter([("metadata", metadata), ("spec", template.json.at("spec").clone())])
}

/// Creates a pod whose name the server completes, and says so.
pub(crate) fn create_pod<Owner: Kind>(plan: &mut Plan, owner: &Object<Owner>, mut pod: Value) {
    pod.object_or_new("metadata").set("generateName", generate_name(&owner.meta().name));
    announce_creation(plan.create::<Pod>(pod), owner);
}

/// What is told of a pod that was created, or could not be.
pub(crate) fn announce_creation<Owner: Kind>(plan: &mut Plan, owner: &Object<Owner>) {
    plan.on_success(Note::normal(owner, "SuccessfulCreate", "Created pod: {name}")).on_failure(Note::warning(
        owner,
        "FailedCreate",
        "Error creating: {error}",
    ));
}

/// Deletes a pod, and says so.
pub(crate) fn delete_pod<Owner: Kind>(plan: &mut Plan, owner: &Object<Owner>, pod: &Object<Pod>) {
    plan.delete(pod)
        .on_success(Note::normal(owner, "SuccessfulDelete", "Deleted pod: {name}"))
        .on_failure(Note::warning(owner, "FailedDelete", "Error deleting: {error}"));
}

/// The longest prefix that leaves room for what the server adds.
const MAX_GENERATE_NAME: usize = 253 - 5;

pub(crate) fn generate_name(owner: &str) -> String {
    // A dash at the end of a name that is too long already would not be cut off, but make it invalid.
    if owner.len() < MAX_GENERATE_NAME { format!("{owner}-") } else { owner.to_owned() }
}

/// A condition as JSON, with the time of its last transition: kept if the status is the same as before.
pub(crate) fn condition(old: &[Condition], kind: &str, status: &str, reason: &str, message: &str, now: Time) -> Value {
    let before = kinds::condition(old, kind).filter(|before| before.status == status);
    let since = before.and_then(|before| before.last_transition_time).unwrap_or(now);
    json!({ "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since })
}

/// A number, or a percentage of `total`; rounded up or down. Anything else counts as nothing.
pub(crate) fn scaled(value: &Value, total: i32, round_up: bool) -> i32 {
    if let Some(number) = value.as_i64() {
        return i32::try_from(number).unwrap_or(i32::MAX);
    }
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok()).unwrap_or(0);
    let scaled = percent * i64::from(total);
    let scaled = if round_up { (scaled + 99).div_euclid(100) } else { scaled.div_euclid(100) };
    i32::try_from(scaled).unwrap_or(i32::MAX)
}

/// A number as labels and names carry it: without vowels and digits that could be mistaken or spell something.
pub(crate) fn safe_encode(number: u32) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    number.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

/// FNV-1a, 32 bits: for hashes that stand in names.
pub(crate) fn fnv32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_as_asked() {
        for (value, total, up, expected) in [
            (json!(3), 10, true, 3),
            (json!("25%"), 10, true, 3),
            (json!("25%"), 10, false, 2),
            (json!("0%"), 10, true, 0),
            (json!("100%"), 7, false, 7),
            (Value::Null, 10, true, 0),
        ] {
            assert_eq!(scaled(&value, total, up), expected, "{value} of {total}");
        }
    }

    #[test]
    fn names_leave_room_for_what_the_server_adds() {
        assert_eq!(generate_name("web"), "web-");
        assert_eq!(generate_name(&"x".repeat(250)), "x".repeat(250));
    }
}
