//! Keeps the objects of flow control as they should be: the mandatory ones as they are, the suggested ones up to date
//! unless somebody wants them otherwise, and in the status of each schema whether there is the level that it names.
//!
//! It works in every server, like the decisions that it is about, and not in the one that leads: what a server needs to
//! tell requests apart must not wait for an election. Everything is written through the API, as the identity that
//! start-up has. An update is of the version that it was decided on, so of several servers one writes.

use super::defaults::{self, AUTO_UPDATE, EXEMPT, MANDATORY};
use super::directory::Objects;
use crate::api::Api;
use crate::identity::{AUTHENTICATED, user};
use crate::local::Local;
use authz::MASTERS;
use object::{ApiError, Edit, Reason, Value, View, json};
use std::time::Duration;

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
/// After a round that wrote something, or could not. So whoever fights for an object does not keep the server busy.
const PAUSE: Duration = Duration::from_secs(1);
/// Objects are created in the first round, and get their status in the second.
const ROUNDS_AT_START: usize = 2;

/// What has to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    Create(&'static str, Value),
    /// The specification or the annotations.
    Update(&'static str, Value),
    Status(Value),
    Delete(&'static str, String),
}

/// Everything that has to be done, given what there is.
pub(super) fn plan(observed: &Objects, now: &str) -> Vec<Write> {
    let mut writes = Vec::new();
    for (collection, wanted, there) in
        [(LEVELS, defaults::levels(), &observed.levels), (SCHEMAS, defaults::schemas(), &observed.schemas)]
    {
        for object in &wanted {
            match there.get(object.at("metadata").text("name")) {
                None => writes.push(Write::Create(collection, object.clone())),
                Some(current) => writes.extend(revise(current, object).map(|new| Write::Update(collection, new))),
            }
        }
        // What an earlier version of the system suggested, and this one does not.
        let is_wanted = |name: &str| wanted.iter().any(|object| object.at("metadata").text("name") == name);
        let dropped = there.iter().filter(|(name, object)| !is_wanted(name) && auto_update(object) == Some(true));
        writes.extend(dropped.map(|(name, _)| Write::Delete(collection, name.clone())));
    }
    let statuses = observed.schemas.values().filter_map(|schema| judge(schema, &observed.levels, now));
    writes.extend(statuses.map(Write::Status));
    writes
}

/// What the annotation says, if it says anything that can be understood.
fn auto_update(object: &Value) -> Option<bool> {
    match object.at("metadata").at("annotations").text(AUTO_UPDATE) {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// An object brought up to date; none if it is.
fn revise(current: &Value, wanted: &Value) -> Option<Value> {
    let name = wanted.at("metadata").text("name");
    // Without a word about it, one that nobody has changed yet is brought up to date.
    let untouched = current.at("metadata").int("generation") == Some(1);
    let updates = MANDATORY.contains(&name) || auto_update(current).unwrap_or(untouched);
    let mut spec = wanted.at("spec").clone();
    if name == EXEMPT && current.at("spec").has("exempt") {
        // What this level may lend is the administrator's to say.
        spec.set("exempt", current.at("spec").at("exempt").clone());
    }
    let outdated = updates && spec != *current.at("spec");
    if !outdated && auto_update(current) == Some(updates) {
        return None;
    }
    let mut new = current.clone();
    if outdated {
        new.set("spec", spec);
    }
    new.object_or_new("metadata").object_or_new("annotations").set(AUTO_UPDATE, updates.to_string());
    Some(new)
}

/// A schema with the right status; none if it has it.
fn judge(schema: &Value, levels: &std::collections::BTreeMap<String, Value>, now: &str) -> Option<Value> {
    let level = schema.at("spec").at("priorityLevelConfiguration").text("name");
    let about = format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?}");
    let (status, reason, message) = match levels.contains_key(level) {
        true => ("False", "Found", format!("{about} and it exists")),
        false => ("True", "NotFound", format!("{about} but there is no such object")),
    };
    let mut condition = json!({ "type": "Dangling", "status": status, "reason": reason, "message": message });
    let is_dangling = |condition: &&Value| condition.text("type") == "Dangling";
    let old = schema.at("status").items("conditions").iter().find(is_dangling);
    let says = |field: &str| old.is_some_and(|old| old.text(field) == condition.text(field));
    if says("status") && says("reason") && says("message") {
        return None;
    }
    condition.set("lastTransitionTime", now);
    let others = schema.at("status").items("conditions").iter().filter(|condition| !is_dangling(condition));
    let conditions: Vec<Value> = others.cloned().chain([condition]).collect();
    let mut new = schema.clone();
    new.object_or_new("status").set("conditions", conditions);
    Some(new)
}

/// As whom objects are written, under the names that upstream gives the two sides.
struct Writers {
    producer: Local,
    consumer: Local,
}

impl Writers {
    fn new(api: &Api) -> Self {
        let writer = |agent| Local::new(api.clone(), user("system:apiserver", &[MASTERS, AUTHENTICATED]), agent);
        Writers {
            producer: writer("api-priority-and-fairness-config-producer-v1"),
            consumer: writer("api-priority-and-fairness-config-consumer-v1"),
        }
    }

    async fn send(&self, write: &Write) -> Result<(), ApiError> {
        let path = |collection: &str, object: &Value| format!("{collection}/{}", object.at("metadata").text("name"));
        let sent = match write {
            Write::Create(collection, object) => self.producer.create(collection, object).await,
            Write::Update(collection, object) => self.producer.update(&path(collection, object), object).await,
            Write::Status(object) => self.consumer.update(&format!("{}/status", path(SCHEMAS, object)), object).await,
            Write::Delete(collection, name) => self.producer.delete(&format!("{collection}/{name}")).await,
        };
        match sent {
            // Somebody was faster, and what they have done is looked at in the next round.
            Err(error) if matches!(error.reason(), Reason::AlreadyExists | Reason::Conflict | Reason::NotFound) => {
                Ok(())
            }
            sent => sent.map(drop),
        }
    }
}

/// Does what has to be done now; whether that was anything. What was written is known afterwards.
async fn round(api: &Api) -> Result<bool, ApiError> {
    let now = i64::try_from(api.ambient.clock.wall().0 / 1000).unwrap_or(i64::MAX);
    let writes = plan(&api.flow.objects(), &object::time::format(now).unwrap_or_default());
    let writers = Writers::new(api);
    let sent = futures::future::join_all(writes.iter().map(|write| writers.send(write))).await;
    if !writes.is_empty() {
        api.registry.cache.current().await.map_err(ApiError::internal)?;
    }
    sent.into_iter().collect::<Result<(), _>>().map(|()| !writes.is_empty())
}

/// Brings everything in order, and keeps it so until the server stops.
pub(crate) async fn start(api: &Api) -> Result<(), ApiError> {
    for _ in 0..ROUNDS_AT_START {
        round(api).await?;
    }
    let Some(mut changed) = api.flow.first_to_follow() else { return Ok(()) };
    let kept = api.clone();
    api.ambient.tasks.spawn_until_stopped("flow control", async move {
        loop {
            match round(&kept).await {
                Ok(false) if changed.changed().await.is_err() => return,
                Ok(false) => continue,
                Ok(true) => {}
                Err(error) => tracing::warn!(%error, "objects of flow control cannot be kept up to date"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn name(object: &Value) -> String {
        object.at("metadata").text("name").to_owned()
    }

    /// A cluster in which there is nothing to do.
    fn settled() -> Objects {
        let named = |objects: Vec<Value>| objects.into_iter().map(|object| (name(&object), object)).collect();
        let mut objects = Objects { schemas: named(defaults::schemas()), levels: named(defaults::levels()) };
        for write in plan(&objects, NOW) {
            let Write::Status(schema) = write else { panic!("{write:?}") };
            objects.schemas.insert(name(&schema), schema);
        }
        assert_eq!(plan(&objects, NOW), []);
        objects
    }

    /// What is done after a change, in short.
    fn after(change: impl FnOnce(&mut Objects)) -> Vec<String> {
        let mut objects = settled();
        change(&mut objects);
        let short = |write: Write| match write {
            Write::Create(_, object) => format!("create {}", name(&object)),
            Write::Update(_, object) => {
                let annotation = object.at("metadata").at("annotations").text(AUTO_UPDATE).to_owned();
                format!("update {} {annotation}", name(&object))
            }
            Write::Status(object) => {
                let condition = &object.at("status").items("conditions")[0];
                format!("status {} {} {}", name(&object), condition.text("status"), condition.text("reason"))
            }
            Write::Delete(_, name) => format!("delete {name}"),
        };
        plan(&objects, NOW).into_iter().map(short).collect()
    }

    fn set(object: Option<&mut Value>, path: &[&str], value: impl Into<Value>) {
        let (last, path) = path.split_last().unwrap();
        path.iter().fold(object.unwrap(), |object, field| object.object_or_new(field)).set(last, value);
    }

    #[test]
    fn an_empty_cluster_gets_everything() {
        let created = plan(&Objects::default(), NOW);
        assert_eq!(created.len(), 8 + 11);
        assert!(created.iter().all(|write| matches!(write, Write::Create(..))));
    }

    #[test]
    fn what_is_deleted_comes_back_and_schemas_say_that_their_level_is_gone() {
        let deleted = after(|objects| {
            objects.levels.remove("system");
            objects.schemas.remove("catch-all");
        });
        assert_eq!(deleted, ["create system", "create catch-all", "status system-nodes True NotFound"]);
    }

    #[test]
    fn a_suggestion_is_left_alone_if_somebody_wants_it_otherwise_and_what_is_mandatory_is_not() {
        let shares = ["spec", "limited", "nominalConcurrencyShares"];
        let annotation = ["metadata", "annotations", AUTO_UPDATE];
        for (name, value, generation, done) in [
            ("system", "true", 2, Some("update system true")),
            ("system", "t", 2, Some("update system true")),
            ("system", "false", 2, None),
            ("system", "", 2, Some("update system false")),
            ("system", "", 1, Some("update system true")),
            ("catch-all", "false", 2, Some("update catch-all true")),
        ] {
            let writes = after(|objects| {
                let mut level = objects.levels.get_mut(name);
                set(level.as_deref_mut(), &shares, 77);
                set(level.as_deref_mut(), &annotation, value);
                set(level, &["metadata", "generation"], generation);
            });
            assert_eq!(writes, Vec::from_iter(done), "{name} {value} {generation}");
        }
        let updated = plan(
            &{
                let mut objects = settled();
                set(objects.levels.get_mut("system"), &shares, 77);
                objects
            },
            NOW,
        );
        let [Write::Update(_, level)] = updated.as_slice() else { panic!("{updated:?}") };
        assert_eq!(level.path(&shares), 30);
    }

    #[test]
    fn what_the_exempt_level_may_lend_is_for_the_administrator_to_say() {
        let lends = |objects: &mut Objects| {
            set(objects.levels.get_mut("exempt"), &["spec", "exempt", "nominalConcurrencyShares"], 10);
        };
        assert!(after(lends).is_empty());
    }

    #[test]
    fn what_an_earlier_version_suggested_goes_and_what_users_made_stays() {
        let made = after(|objects| {
            for (name, annotation) in [("old", "true"), ("theirs", "false"), ("mine", "")] {
                let mut level = objects.levels.get("system").cloned().unwrap();
                set(Some(&mut level), &["metadata", "annotations", AUTO_UPDATE], annotation);
                objects.levels.insert(name.to_owned(), level);
            }
        });
        assert_eq!(made, ["delete old"]);
    }

    #[test]
    fn other_conditions_of_a_schema_are_kept() {
        let mut objects = settled();
        let conditions = json!([{ "type": "Other", "status": "True" }]);
        set(objects.schemas.get_mut("probes"), &["status", "conditions"], conditions);
        let writes = plan(&objects, NOW);
        let [Write::Status(schema)] = writes.as_slice() else { panic!("{writes:?}") };
        let types: Vec<&str> = schema.at("status").items("conditions").iter().map(|one| one.text("type")).collect();
        assert_eq!(types, ["Other", "Dangling"]);
    }
}
