//! What a loop wants done, as data. A plan is made without a client and carried out by the executor.

use crate::client::{DeleteOptions, Target};
use kinds::{Id, Kind, Object};
use object::{Edit, Value, View, json};
use std::time::Duration;

/// Writes in the order in which they are to happen, what to tell people, and when to look again at the latest.
///
/// Creations that stand next to each other go out in growing batches, deletions all at once, and so do patches that have
/// no owner to ask for: none of them may rely on one beside it. After a failure the rest is left to the next plan, except
/// for reports of status. An empty plan means that everything is as it should be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub writes: Vec<Write>,
    pub events: Vec<Note>,
    /// Look again after this long, even if nothing happens.
    pub requeue_after: Option<Duration>,
    /// Why the plan is not what its owner wants, when only its owner can change that: not to be tried again.
    pub terminal: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    Create {
        id: Id,
        object: Value,
        announce: Option<Announce>,
    },
    /// Replaces an object, or its subresource, on condition that it is still in the version observed.
    Update {
        id: Id,
        subresource: &'static str,
        object: Value,
        announce: Option<Announce>,
    },
    /// A merge patch, on condition that it is still the same object.
    Patch {
        target: Target,
        subresource: &'static str,
        patch: Value,
        /// Only while this object is there and not being deleted, which the API is asked for and no cache: an owner
        /// that is gone must not adopt anything.
        owner: Option<Target>,
        announce: Option<Announce>,
    },
    Delete {
        target: Target,
        options: DeleteOptions,
        announce: Option<Announce>,
    },
    /// Something else that is posted to an object: an eviction, a binding.
    Post {
        target: Target,
        subresource: &'static str,
        object: Value,
        announce: Option<Announce>,
    },
}

impl Write {
    pub(crate) fn announce_mut(&mut self) -> &mut Option<Announce> {
        match self {
            Write::Create { announce, .. }
            | Write::Update { announce, .. }
            | Write::Patch { announce, .. }
            | Write::Delete { announce, .. }
            | Write::Post { announce, .. } => announce,
        }
    }

    pub fn announce(&self) -> Option<&Announce> {
        match self {
            Write::Create { announce, .. }
            | Write::Update { announce, .. }
            | Write::Patch { announce, .. }
            | Write::Delete { announce, .. }
            | Write::Post { announce, .. } => announce.as_ref(),
        }
    }

    /// Whether it only says how things are.
    pub fn is_report(&self) -> bool {
        matches!(self, Write::Update { subresource: "status", .. } | Write::Patch { subresource: "status", .. })
    }
}

/// What is told when a write has succeeded, or failed. `{name}` and `{error}` are filled in then.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Announce {
    pub success: Option<Note>,
    pub failure: Option<Note>,
}

/// An event about an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    pub regarding: Target,
    /// Normal, or a warning.
    pub warning: bool,
    pub reason: String,
    pub message: String,
    /// Who says so; empty: the loop.
    pub component: String,
}

impl Note {
    pub fn normal<K: Kind>(regarding: &Object<K>, reason: &str, message: impl Into<String>) -> Self {
        Note::about(Target::of(regarding), reason, message)
    }

    pub fn about(regarding: Target, reason: &str, message: impl Into<String>) -> Self {
        let (reason, message) = (reason.to_owned(), message.into());
        Note { regarding, warning: false, reason, message, component: String::new() }
    }

    /// The same, said in the name of another component than the loop.
    pub fn by(self, component: &str) -> Self {
        Note { component: component.to_owned(), ..self }
    }

    pub fn warning<K: Kind>(regarding: &Object<K>, reason: &str, message: impl Into<String>) -> Self {
        Note { warning: true, ..Note::normal(regarding, reason, message) }
    }
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        *self == Plan::default()
    }

    /// Creates an object of a kind; its metadata say where. Kind and version are filled in.
    pub fn create<K: Kind>(&mut self, mut object: Value) -> &mut Self {
        object.set("kind", K::ID.kind.as_ref());
        object.set("apiVersion", K::ID.api_version.as_ref());
        self.writes.push(Write::Create { id: K::ID, object, announce: None });
        self
    }

    /// Replaces an object by an edited copy of it, unless nothing is different.
    pub fn update<K: Kind>(&mut self, observed: &Object<K>, object: Value) -> &mut Self {
        if object != observed.json() {
            self.writes.push(Write::Update { id: K::ID, subresource: "", object, announce: None });
        }
        self
    }

    /// Reports a status, unless that is what is reported already. Fields of the status that are null are left out, as
    /// the server would.
    pub fn status<K: Kind>(&mut self, observed: &Object<K>, status: Value) -> &mut Self {
        self.status_with(observed, observed.json(), status)
    }

    /// The same in a copy of the object whose metadata are edited: some kinds report a part of their state there.
    pub fn status_with<K: Kind>(&mut self, observed: &Object<K>, mut object: Value, mut status: Value) -> &mut Self {
        drop_nulls(&mut status);
        if object.has("status") || status != json!({}) {
            object.set("status", status);
        }
        if object != observed.json() {
            self.writes.push(Write::Update { id: K::ID, subresource: "status", object, announce: None });
        }
        self
    }

    /// Merges a patch into an object, on condition that it is still the same one.
    pub fn patch<K: Kind>(&mut self, observed: &Object<K>, patch: Value) -> &mut Self {
        self.patch_in(observed, "", patch)
    }

    pub fn patch_in<K: Kind>(
        &mut self,
        observed: &Object<K>,
        subresource: &'static str,
        mut patch: Value,
    ) -> &mut Self {
        patch.object_or_new("metadata").set("uid", observed.meta().uid.as_str());
        self.writes.push(Write::Patch {
            target: Target::of(observed),
            subresource,
            patch,
            owner: None,
            announce: None,
        });
        self
    }

    /// Makes `owner` the controller of an object that has none.
    pub fn adopt<K: Kind, Owner: Kind>(&mut self, observed: &Object<K>, owner: &Object<Owner>) -> &mut Self {
        let mut owners: Vec<Value> = observed.json().at("metadata").items("ownerReferences").to_vec();
        owners.push(owner.meta().controller_reference(&Owner::ID));
        // The version makes sure that nobody else has adopted it meanwhile.
        let version = &observed.meta().resource_version;
        let metadata = json!({ "uid": observed.meta().uid, "resourceVersion": version, "ownerReferences": owners });
        self.writes.push(Write::Patch {
            target: Target::of(observed),
            subresource: "",
            patch: json!({ "metadata": metadata }),
            owner: Some(Target::of(owner)),
            announce: None,
        });
        self
    }

    /// Lets go of an object that `owner` controls.
    pub fn release<K: Kind, Owner: Kind>(&mut self, observed: &Object<K>, owner: &Object<Owner>) -> &mut Self {
        let mut owners: Vec<Value> = observed.json().at("metadata").items("ownerReferences").to_vec();
        owners.retain(|reference| reference.text("uid") != owner.meta().uid);
        let version = &observed.meta().resource_version;
        self.patch(observed, json!({ "metadata": { "resourceVersion": version, "ownerReferences": owners } }))
    }

    /// Deletes that very object, as users do by default.
    pub fn delete<K: Kind>(&mut self, observed: &Object<K>) -> &mut Self {
        self.delete_with(observed, DeleteOptions::default())
    }

    pub fn delete_with<K: Kind>(&mut self, observed: &Object<K>, options: DeleteOptions) -> &mut Self {
        self.writes.push(Write::Delete { target: Target::of(observed), options, announce: None });
        self
    }

    pub fn post<K: Kind>(&mut self, observed: &Object<K>, subresource: &'static str, object: Value) -> &mut Self {
        self.writes.push(Write::Post { target: Target::of(observed), subresource, object, announce: None });
        self
    }

    /// What to tell when the last write has succeeded.
    pub fn on_success(&mut self, note: Note) -> &mut Self {
        self.announce().success = Some(note);
        self
    }

    /// What to tell if the last write fails.
    pub fn on_failure(&mut self, note: Note) -> &mut Self {
        self.announce().failure = Some(note);
        self
    }

    fn announce(&mut self) -> &mut Announce {
        let last = self.writes.last_mut().expect("a write is planned before it is announced");
        last.announce_mut().get_or_insert_default()
    }

    pub fn event(&mut self, note: Note) -> &mut Self {
        self.events.push(note);
        self
    }

    /// Looks again after `delay`, or earlier if something else wants that.
    pub fn requeue_after(&mut self, delay: Duration) -> &mut Self {
        self.requeue_after = Some(self.requeue_after.map_or(delay, |earlier| earlier.min(delay)));
        self
    }

    /// For tests: what is planned, a line for each write, in the words of `kubectl`.
    pub fn summary(&self) -> Vec<String> {
        self.writes.iter().map(Write::summary).collect()
    }
}

impl Write {
    fn summary(&self) -> String {
        let named = |object: &Value| {
            let metadata = object.at("metadata");
            let name = if metadata.has("name") { metadata.text("name") } else { metadata.text("generateName") };
            name.to_owned()
        };
        let slash = |subresource: &str| if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
        match self {
            Write::Create { id, object, .. } => format!("create {} {}", id.plural, named(object)),
            Write::Update { id, subresource, object, .. } => {
                format!("update {}{} {}", id.plural, slash(subresource), named(object))
            }
            Write::Patch { target, subresource, .. } => {
                format!("patch {}{} {}", target.id.plural, slash(subresource), target.key.name)
            }
            Write::Delete { target, .. } => format!("delete {} {}", target.id.plural, target.key.name),
            Write::Post { target, subresource, .. } => {
                format!("post {}{} {}", target.id.plural, slash(subresource), target.key.name)
            }
        }
    }
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
    }
}
