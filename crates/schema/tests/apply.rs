//! Who owns what after a sequence of writes, as tables.

use object::{Value, json};
use schema::apply::{ApplyError, Author, FieldSet, Identity, Kind, Managers, Operation, apply, update};
use schema::builtin;

const VERSION: &str = "v1";

/// An object and its owners, written by several programs one after the other.
struct World {
    kind: &'static str,
    object: Option<Value>,
    managers: Managers,
    /// Every write has a time of its own.
    writes: u32,
}

impl World {
    fn new(kind: &'static str) -> Self {
        World { kind, object: None, managers: Managers::default(), writes: 0 }
    }

    /// One that exists and that nobody owns.
    fn unowned(kind: &'static str, object: Value) -> Self {
        World { object: Some(object), ..World::new(kind) }
    }

    fn write<T>(&mut self, manager: &str, subresource: &str, write: impl FnOnce(&Kind<'_>, &Author<'_>) -> T) -> T {
        self.writes += 1;
        let time = format!("2024-01-01T00:00:{:02}Z", self.writes);
        let reset = match subresource {
            "status" => FieldSet::of_fields(["spec", "metadata.labels"]),
            _ => FieldSet::of_fields(["status"]),
        };
        let node = builtin().named(self.kind).unwrap();
        let kind = Kind { schema: builtin(), node, api_version: VERSION, alike: &[], reset: &reset };
        write(&kind, &Author { manager, subresource, time: &time })
    }

    fn try_apply(&mut self, manager: &str, applied: &Value, force: bool) -> Result<(), ApplyError> {
        let (live, managers) = (self.object.clone(), self.managers.clone());
        let (object, managers) =
            self.write(manager, "", |kind, author| apply(kind, author, live.as_ref(), applied, managers, force))?;
        (self.object, self.managers) = (Some(object), managers);
        Ok(())
    }

    #[track_caller]
    fn apply(&mut self, manager: &str, applied: &Value) -> &mut Self {
        self.try_apply(manager, applied, false).unwrap_or_else(|error| panic!("{error}"));
        self
    }

    #[track_caller]
    fn force(&mut self, manager: &str, applied: &Value) -> &mut Self {
        self.try_apply(manager, applied, true).unwrap_or_else(|error| panic!("{error}"));
        self
    }

    #[track_caller]
    fn conflicts(&mut self, manager: &str, applied: &Value) -> Vec<String> {
        let before = self.object.clone();
        match self.try_apply(manager, applied, false) {
            Err(ApplyError::Conflicts(conflicts)) => {
                assert_eq!(self.object, before);
                conflicts.iter().map(|conflict| format!("{} {}", conflict.owner.manager, conflict.path)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn update_at(&mut self, manager: &str, subresource: &str, new: Value) -> &mut Self {
        let (old, mut managers) = (self.object.take(), std::mem::take(&mut self.managers));
        self.write(manager, subresource, |kind, author| update(kind, author, old.as_ref(), &new, &mut managers))
            .unwrap();
        self.managers = managers;
        self.object = Some(new);
        self
    }

    fn update(&mut self, manager: &str, new: Value) -> &mut Self {
        self.update_at(manager, "", new)
    }

    fn entry(&self, manager: &str, operation: Operation, subresource: &str) -> Option<(Value, String)> {
        let (manager, subresource) = (manager.to_owned(), subresource.to_owned());
        let owner = Identity { manager, operation, api_version: VERSION.to_owned(), subresource };
        self.managers.get(&owner).map(|entry| (entry.fields.to_value(), entry.time.clone().unwrap()))
    }

    /// What a manager owns by applying.
    fn applied(&self, manager: &str) -> Value {
        self.entry(manager, Operation::Apply, "").map_or(Value::Null, |entry| entry.0)
    }

    fn updated(&self, manager: &str) -> Value {
        self.entry(manager, Operation::Update, "").map_or(Value::Null, |entry| entry.0)
    }

    fn object(&self) -> &Value {
        self.object.as_ref().unwrap()
    }
}

fn pod(spec: Value) -> Value {
    let mut pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" } });
    pod["spec"] = spec;
    pod
}

#[test]
fn an_applier_owns_what_it_applies_and_gives_up_what_it_leaves_out() {
    for (why, first, second, object, owned) in [
        (
            "a field",
            json!({ "hostname": "a", "nodeName": "n" }),
            json!({ "nodeName": "n" }),
            json!({ "nodeName": "n" }),
            json!({ "f:nodeName": {} }),
        ),
        (
            "an atomic list",
            json!({ "hostname": "a", "tolerations": [{ "key": "a" }] }),
            json!({ "hostname": "a" }),
            json!({ "hostname": "a" }),
            json!({ "f:hostname": {} }),
        ),
        (
            "an atomic map is replaced",
            json!({ "nodeSelector": { "a": "1" } }),
            json!({ "nodeSelector": { "b": "1" } }),
            json!({ "nodeSelector": { "b": "1" } }),
            json!({ "f:nodeSelector": {} }),
        ),
        (
            "an item with a key",
            json!({ "containers": [{ "name": "a" }, { "name": "b" }] }),
            json!({ "containers": [{ "name": "b" }] }),
            json!({ "containers": [{ "name": "b" }] }),
            json!({ "f:containers": { "k:{\"name\":\"b\"}": { ".": {}, "f:name": {} } } }),
        ),
        (
            "a field in an item",
            json!({ "containers": [{ "name": "a", "image": "i", "env": [{ "name": "E", "value": "1" }] }] }),
            json!({ "containers": [{ "name": "a", "image": "j" }] }),
            json!({ "containers": [{ "name": "a", "image": "j" }] }),
            json!({ "f:containers": { "k:{\"name\":\"a\"}": { ".": {}, "f:image": {}, "f:name": {} } } }),
        ),
        (
            "an item whose key has a default",
            json!({ "containers": [{ "name": "a", "ports": [{ "containerPort": 80 }, { "containerPort": 81 }] }] }),
            json!({ "containers": [{ "name": "a", "ports": [{ "containerPort": 80, "protocol": "TCP" }] }] }),
            json!({ "containers": [{ "name": "a", "ports": [{ "containerPort": 80, "protocol": "TCP" }] }] }),
            json!({ "f:containers": { "k:{\"name\":\"a\"}": { ".": {}, "f:name": {}, "f:ports": {
                "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {}, "f:protocol": {} },
            } } } }),
        ),
    ] {
        let mut world = World::new("core.v1.Pod");
        world.apply("a", &pod(first)).apply("a", &pod(second));
        assert_eq!(world.object(), &pod(object), "{why}");
        assert_eq!(world.applied("a"), json!({ "f:spec": owned }), "{why}");
    }
}

#[test]
fn giving_up_everything_leaves_what_others_own() {
    let mut world = World::new("core.v1.Pod");
    world.apply("a", &pod(json!({ "hostname": "h", "containers": [{ "name": "c", "image": "i" }] })));
    world.apply("b", &pod(json!({ "containers": [{ "name": "c", "workingDir": "/" }, { "name": "d" }] })));
    world.apply("a", &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" } }));
    assert_eq!(world.object(), &pod(json!({ "containers": [{ "name": "c", "workingDir": "/" }, { "name": "d" }] })));
    assert_eq!(world.applied("a"), Value::Null, "who owns nothing has no entry");
    world.apply("b", &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" } }));
    assert_eq!(world.object(), &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" } }));
    assert!(world.managers.is_empty());
}

#[test]
fn items_of_sets_and_keys_of_maps_have_owners_of_their_own() {
    let meta =
        |finalizers: &[&str], labels: Value| json!({ "metadata": { "finalizers": finalizers, "labels": labels } });
    let mut world = World::new("core.v1.Pod");
    world.apply("a", &meta(&["x", "y"], json!({ "k": "1", "l": "1" })));
    world.apply("b", &meta(&["z", "y"], json!({ "l": "1", "m": "1" })));
    assert_eq!(world.object(), &meta(&["x", "z", "y"], json!({ "k": "1", "l": "1", "m": "1" })));
    assert_eq!(
        world.applied("b"),
        json!({ "f:metadata": { "f:finalizers": { "v:\"y\"": {}, "v:\"z\"": {} }, "f:labels": { "f:l": {}, "f:m": {} } } })
    );
    world.apply("a", &json!({ "metadata": { "name": "p" } }));
    assert_eq!(world.object()["metadata"]["finalizers"], json!(["z", "y"]));
    assert_eq!(world.object()["metadata"]["labels"], json!({ "l": "1", "m": "1" }));
}

#[test]
fn the_same_value_has_several_owners_and_another_one_is_a_conflict() {
    let mut world = World::new("core.v1.Pod");
    world.apply("a", &pod(json!({ "hostname": "h", "containers": [{ "name": "c", "image": "1" }] })));
    world.apply("b", &pod(json!({ "hostname": "h" })));
    assert_eq!(
        world.conflicts("c", &pod(json!({ "hostname": "i", "containers": [{ "name": "c", "image": "2" }] }))),
        ["a .spec.containers[name=\"c\"].image", "a .spec.hostname", "b .spec.hostname"]
    );
    assert_eq!(world.conflicts("a", &pod(json!({ "hostname": "i" }))), ["b .spec.hostname"]);
    world.force("c", &pod(json!({ "hostname": "i" })));
    assert_eq!(world.object()["spec"]["hostname"], "i");
    assert_eq!((world.applied("b"), world.applied("c")), (Value::Null, json!({ "f:spec": { "f:hostname": {} } })));
    assert_eq!(
        world.applied("a"),
        json!({ "f:spec": { "f:containers": { "k:{\"name\":\"c\"}": { ".": {}, "f:image": {}, "f:name": {} } } } })
    );
    // The loser may leave the field alone now, and it stays.
    world.apply("a", &pod(json!({ "containers": [{ "name": "c", "image": "1" }] })));
    assert_eq!(world.object()["spec"]["hostname"], "i");
}

#[test]
fn atomic_values_have_one_value_and_so_conflict_as_a_whole() {
    let mut world = World::new("core.v1.Service");
    world.apply("a", &json!({ "spec": { "selector": { "app": "x" }, "externalIPs": ["1.1.1.1"] } }));
    assert_eq!(world.conflicts("b", &json!({ "spec": { "selector": { "tier": "y" } } })), ["a .spec.selector"]);
    assert_eq!(world.conflicts("b", &json!({ "spec": { "externalIPs": [] } })), ["a .spec.externalIPs"]);
    world.apply("b", &json!({ "spec": { "selector": { "app": "x" } } }));
    world.apply("a", &json!({ "spec": { "externalIPs": ["1.1.1.1"] } }));
    assert_eq!(world.object()["spec"]["selector"], json!({ "app": "x" }));
}

#[test]
fn who_creates_an_object_owns_its_fields_as_clients_expect_to_see_them() {
    let mut world = World::new("apps.v1.Deployment");
    world.update(
        "kubectl-create",
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "namespace": "default", "labels": { "app": "web" } },
            "spec": {
                "replicas": 1,
                "selector": { "matchLabels": { "app": "web" } },
                "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": {
                        "containers": [{ "name": "c", "image": "i", "resources": {}, "ports": [{ "containerPort": 80, "protocol": "TCP" }] }],
                        "securityContext": {},
                    },
                },
            },
            "status": { "replicas": 3 },
        }),
    );
    let rolling = json!({ ".": {}, "f:maxSurge": {}, "f:maxUnavailable": {} });
    let port = json!({ ".": {}, "f:containerPort": {}, "f:protocol": {} });
    let ports = json!({ ".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": port });
    let container = json!({ ".": {}, "f:name": {}, "f:image": {}, "f:resources": {}, "f:ports": ports });
    assert_eq!(
        world.updated("kubectl-create"),
        json!({
            "f:metadata": { "f:labels": { ".": {}, "f:app": {} } },
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:strategy": { "f:type": {}, "f:rollingUpdate": rolling },
                "f:template": {
                    "f:metadata": { "f:labels": { ".": {}, "f:app": {} } },
                    "f:spec": { "f:containers": { "k:{\"name\":\"c\"}": container }, "f:securityContext": {} },
                },
            },
        })
    );
}

#[test]
fn an_update_takes_what_it_changes_and_nothing_else() {
    let mut world = World::new("core.v1.Pod");
    world.apply("a", &pod(json!({ "hostname": "h", "subdomain": "s", "nodeName": "n" })));
    world.update("u", pod(json!({ "hostname": "i", "subdomain": "s", "priority": 1 })));
    assert_eq!(world.applied("a"), json!({ "f:spec": { "f:subdomain": {} } }));
    assert_eq!(world.updated("u"), json!({ "f:spec": { "f:hostname": {}, "f:priority": {} } }));
    let before = world.managers.clone();
    let unchanged = world.object().clone();
    world.update("u", unchanged.clone()).update("v", unchanged);
    assert_eq!(world.managers, before, "an update that changes nothing changes no entry, nor its time");
    world.update("v", pod(json!({ "hostname": "i", "subdomain": "s" })));
    assert_eq!(world.updated("u"), json!({ "f:spec": { "f:hostname": {} } }));
    assert_eq!(world.updated("v"), Value::Null, "who only removes owns nothing");
    assert_eq!(world.conflicts("a", &pod(json!({ "hostname": "h" }))), ["u .spec.hostname"]);
    world.update("v", pod(json!({})));
    assert!(world.managers.is_empty());
}

#[test]
fn times_tell_when_an_owner_last_changed_something() {
    let time = |world: &World| world.entry("a", Operation::Apply, "").unwrap().1;
    let mut world = World::new("core.v1.Pod");
    world.apply("a", &pod(json!({ "hostname": "h" })));
    let first = time(&world);
    world.apply("a", &pod(json!({ "hostname": "h" }))).apply("b", &pod(json!({ "subdomain": "s" })));
    assert_eq!(time(&world), first);
    world.apply("a", &pod(json!({ "hostname": "i" })));
    assert!(time(&world) > first);
}

#[test]
fn the_status_has_owners_of_its_own() {
    let object = |replicas: u32, phase: &str, label: &str| json!({ "metadata": { "labels": { "l": label } }, "spec": { "priority": replicas }, "status": { "phase": phase } });
    let mut world = World::new("core.v1.Pod");
    world.update("user", object(1, "Pending", "a"));
    assert_eq!(
        world.updated("user"),
        json!({ "f:metadata": { "f:labels": { ".": {}, "f:l": {} } }, "f:spec": { "f:priority": {} } })
    );
    world.update_at("kubelet", "status", object(2, "Running", "b"));
    assert_eq!(world.updated("kubelet"), Value::Null);
    let (fields, _) = world.entry("kubelet", Operation::Update, "status").unwrap();
    assert_eq!(fields, json!({ "f:status": { "f:phase": {} } }));
    assert_eq!(world.updated("user")["f:spec"], json!({ "f:priority": {} }));
    world.apply("user", &json!({ "spec": { "hostname": "h" }, "status": { "phase": "Failed" } }));
    assert_eq!(world.applied("user"), json!({ "f:spec": { "f:hostname": {} } }));
    assert!(world.entry("kubelet", Operation::Update, "status").is_some());
}

#[test]
fn an_object_without_owners_gets_them_with_the_first_apply() {
    let mut world = World::unowned("core.v1.Pod", pod(json!({ "hostname": "h", "subdomain": "s" })));
    world.update("u", pod(json!({ "hostname": "i", "subdomain": "s" })));
    assert!(world.managers.is_empty());
    assert_eq!(world.conflicts("a", &pod(json!({ "hostname": "h" }))), ["before-first-apply .spec.hostname"]);
    world.apply("a", &pod(json!({ "hostname": "i" })));
    assert_eq!(world.updated("before-first-apply"), json!({ "f:spec": { "f:hostname": {}, "f:subdomain": {} } }));
}

#[test]
fn the_oldest_updaters_are_merged_into_one() {
    let mut world = World::new("core.v1.ConfigMap");
    let mut data = object::Map::new();
    for n in 0..13 {
        data.insert(format!("k{n:02}"), "v".into());
        world.update(&format!("m{n:02}"), json!({ "data": data }));
    }
    let names: Vec<&str> = world.managers.iter().map(|entry| entry.owner.manager.as_str()).collect();
    assert_eq!(names.len(), 10);
    assert!(names.contains(&"ancient-changes") && names.contains(&"m12") && !names.contains(&"m03"), "{names:?}");
    assert_eq!(
        world.updated("ancient-changes"),
        json!({ "f:data": { ".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}, "f:k03": {} } })
    );
}

#[test]
fn kubectl_has_no_conflict_with_what_it_applied_on_the_client_side() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let manifest = |image: &str| json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" }, "spec": { "hostname": image } });
    let mut live = manifest("1");
    live["metadata"]["annotations"] = json!({ annotation: manifest("1").to_string() });
    let mut world = World::new("core.v1.Pod");
    world.update("kubectl-client-side-apply", live.clone());
    assert_eq!(world.conflicts("helm", &manifest("2")), ["kubectl-client-side-apply .spec.hostname"]);
    world.apply("kubectl", &manifest("2"));
    assert_eq!(world.applied("kubectl"), json!({ "f:spec": { "f:hostname": {} } }));
    let refreshed = world.object()["metadata"]["annotations"][annotation].as_str().unwrap().to_owned();
    assert_eq!(refreshed, format!("{}\n", manifest("2")));
    // What somebody else has changed since is in the way.
    let mut world = World::new("core.v1.Pod");
    world.update("kubectl-client-side-apply", live.clone());
    live["spec"]["hostname"] = "other".into();
    world.update("editor", live);
    assert_eq!(world.conflicts("kubectl", &manifest("2")), ["editor .spec.hostname"]);
}

#[test]
fn what_cannot_be_applied_says_why() {
    let mut world = World::new("core.v1.Pod");
    let error = world.try_apply("a", &pod(json!({ "containers": [{ "name": "c" }, { "name": "c" }] })), false);
    assert_eq!(
        error.unwrap_err().to_string(),
        "failed to create typed patch object (/p; /v1, Kind=Pod): .spec.containers: duplicate entries for key [name=\"c\"]"
    );
    let error = world.try_apply("a", &json!({ "metadata": { "managedFields": [] } }), false).unwrap_err();
    assert_eq!(error, ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
}

#[test]
fn a_live_list_with_duplicates_can_still_be_applied_to() {
    let env = |items: Value| pod(json!({ "containers": [{ "name": "c", "env": items }] }));
    let duplicates = json!([{ "name": "a", "value": "1" }, { "name": "a", "value": "2" }, { "name": "b" }]);
    let mut world = World::new("core.v1.Pod");
    world.update("u", env(duplicates));
    world.apply("x", &env(json!([{ "name": "b" }])));
    assert_eq!(world.object()["spec"]["containers"][0]["env"].as_array().unwrap().len(), 3);
    world.force("x", &env(json!([{ "name": "a", "value": "3" }, { "name": "b" }])));
    assert_eq!(world.object()["spec"]["containers"][0]["env"], json!([{ "name": "a", "value": "3" }, { "name": "b" }]));
}

#[test]
fn entries_of_other_versions_are_kept_unless_they_are_alike() {
    let old = json!([{
        "manager": "a", "operation": "Update", "apiVersion": "v1beta1", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:spec": { "f:hostname": {} } },
    }]);
    let (node, reset) = (builtin().named("core.v1.Pod").unwrap(), FieldSet::default());
    let (live, applied) = (pod(json!({ "hostname": "h" })), pod(json!({ "hostname": "i" })));
    for (alike, conflicts) in [(&[][..], false), (&["v1beta1"][..], true)] {
        let kind = Kind { schema: builtin(), node, api_version: "v1", alike, reset: &reset };
        let author = Author { manager: "b", subresource: "", time: "2024-01-01T00:00:00Z" };
        let managers = Managers::decode(Some(&old)).unwrap();
        let result = apply(&kind, &author, Some(&live), &applied, managers, false);
        assert_eq!(matches!(result, Err(ApplyError::Conflicts(_))), conflicts);
        if let Ok((_, managers)) = result {
            assert_eq!(managers.iter().count(), 2);
        }
    }
}

#[test]
fn without_a_schema_maps_are_shared_and_lists_are_not() {
    let mut world = World::new("Raw");
    world.apply("a", &json!({ "spec": { "x": { "mine": 1 }, "list": [1] } }));
    world.apply("b", &json!({ "spec": { "x": { "theirs": 1 } } }));
    assert_eq!(world.applied("b"), json!({ "f:spec": { ".": {}, "f:x": { ".": {}, "f:theirs": {} } } }));
    assert_eq!(world.conflicts("b", &json!({ "spec": { "list": [1, 2] } })), ["a .spec.list"]);
    assert_eq!(world.conflicts("b", &json!({ "spec": { "x": 1 } })), ["a .spec.x"]);
    world.apply("a", &json!({ "spec": { "list": [1] } }));
    assert_eq!(world.object(), &json!({ "spec": { "x": { "theirs": 1 }, "list": [1] } }));
    // Without a schema, who only updates a key in a map does not own the map, and the key goes with it.
    world.update("c", json!({ "spec": { "x": { "theirs": 1, "more": 1 }, "list": [1] } }));
    world.apply("b", &json!({ "spec": {} }));
    assert_eq!(world.object(), &json!({ "spec": { "list": [1] } }));
    assert_eq!(world.updated("c"), Value::Null);
}
