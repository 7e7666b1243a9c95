//! What becomes of an object, by what is known of its owners and dependents.

use super::*;

const ID: Id = Id::new("v1", "ConfigMap", "configmaps", true);

fn node(name: &str, owners: &[&str]) -> Node {
    let reference =
        |uid: &&str| OwnerReference { uid: (*uid).to_owned(), block_owner_deletion: true, ..OwnerReference::default() };
    Node {
        id: Arc::new(ID),
        key: Arc::new(Key::new("a", name)),
        uid: name.into(),
        version: "7".into(),
        owners: owners.iter().map(reference).collect(),
        is_being_deleted: false,
        foreground: false,
        orphan: false,
    }
}

fn raw(uid: &str, metadata: &Value) -> Raw {
    let mut metadata = metadata.clone();
    metadata["uid"] = json!(uid);
    metadata["resourceVersion"] = json!("8");
    Raw::from(bytes::Bytes::from(json!({ "metadata": metadata }).to_string()))
}

fn owned(node: &Node, standings: &[Standing], dependents: Vec<Arc<Node>>, own: Option<Raw>) -> Plan {
    let owners = node.owners.iter().cloned().zip(standings.iter().copied()).collect();
    plan(node, &Observed::Owned { owners: Owners(owners), dependents, own })
}

fn propagation(plan: &Plan) -> Option<Propagation> {
    match plan.writes.as_slice() {
        [Write::Delete { options, .. }] => Some(options.propagation),
        _ => None,
    }
}

#[test]
fn what_has_lost_its_last_owner_goes_in_its_own_way() {
    let orphan = Node { orphan: true, ..node("x", &["o"]) };
    let foreground = Node { foreground: true, ..node("x", &["o"]) };
    let child = || vec![Arc::new(node("child", &["x"]))];
    for (what, node, standing, dependents, expected) in [
        ("gone", node("x", &["o"]), Standing::Gone, vec![], Some(Propagation::Background)),
        ("gone, as orphan", orphan, Standing::Gone, vec![], Some(Propagation::Orphan)),
        ("gone, in the foreground", foreground, Standing::Gone, vec![], Some(Propagation::Foreground)),
        ("there", node("x", &["o"]), Standing::Solid, vec![], None),
        ("waiting, without dependents", node("x", &["o"]), Standing::Waiting, vec![], Some(Propagation::Background)),
        ("waiting, with dependents", node("x", &["o"]), Standing::Waiting, child(), Some(Propagation::Foreground)),
        ("in another namespace", node("x", &["o"]), Standing::Elsewhere, vec![], Some(Propagation::Background)),
    ] {
        assert_eq!(propagation(&owned(&node, &[standing], dependents, None)), expected, "{what}");
    }
}

#[test]
fn an_owner_in_another_namespace_is_reported() {
    let plan = owned(&node("x", &["o"]), &[Standing::Elsewhere], vec![], None);
    assert_eq!(plan.events[0].reason, "OwnerRefInvalidNamespace");
}

#[test]
fn with_an_owner_left_only_the_others_are_dropped() {
    let own = raw("x", &json!({ "ownerReferences": [{ "uid": "o", "kind": "A" }, { "uid": "p", "kind": "B" }] }));
    let plan = owned(&node("x", &["o", "p"]), &[Standing::Gone, Standing::Solid], vec![], Some(own));
    let [Write::Patch { patch, .. }] = plan.writes.as_slice() else { panic!("{plan:?}") };
    assert_eq!(patch["metadata"]["ownerReferences"], json!([{ "uid": "p", "kind": "B" }]));
    assert_eq!(patch["metadata"]["resourceVersion"], "8");
}

#[test]
fn an_orphanage_goes_only_once_nothing_names_it_any_more() {
    let owner = Node { is_being_deleted: true, orphan: true, ..node("o", &[]) };
    let dependent =
        |name: &str, owners: Value| (Arc::new(node(name, &["o"])), raw(name, &json!({ "ownerReferences": owners })));
    let orphaning = |dependents| {
        let own = Some(raw("o", &json!({ "finalizers": ["orphan", "keep"] })));
        plan(&owner, &Observed::Orphaning { dependents, own })
    };
    let owned = json!([{ "uid": "o" }]);
    let first = orphaning(vec![dependent("x", owned.clone()), dependent("y", owned.clone())]);
    assert_eq!(first.summary(), ["patch configmaps x", "patch configmaps y"]);
    assert_eq!(first.requeue_after, Some(Duration::ZERO));
    let one_failed = orphaning(vec![dependent("x", json!([])), dependent("y", owned)]);
    assert_eq!(one_failed.summary(), ["patch configmaps y"]);
    let last = orphaning(vec![dependent("x", json!([])), dependent("y", json!([{ "uid": "p" }]))]);
    assert_eq!((last.summary(), last.requeue_after), (vec!["patch configmaps o".to_owned()], None));
    let Some(Write::Patch { patch, .. }) = last.writes.last() else { panic!() };
    assert_eq!(patch["metadata"]["finalizers"], json!(["keep"]));
}

#[test]
fn what_waits_goes_when_the_last_blocking_dependent_has_gone() {
    let owner = Node { is_being_deleted: true, foreground: true, ..node("o", &[]) };
    let waiting = |own| plan(&owner, &Observed::Waiting { own }).summary();
    assert_eq!(waiting(None), [""; 0]);
    let own = Some(raw("o", &json!({ "finalizers": ["foregroundDeletion"] })));
    assert_eq!(waiting(own), ["patch configmaps o"]);
}
