//! A volume on its way to a node and from it.

use super::*;
use crate::fixture::World;
use object::View;

const DEVICE: &str = "kubernetes.io/csi/csi.example.com^handle";
const OTHER_DEVICE: &str = "kubernetes.io/csi/csi.example.com^other";

fn world(modes: &[&str]) -> World {
    let mut world = World::new();
    for node in ["n1", "n2"] {
        world.create::<Node>(json!({
            "metadata": { "name": node, "annotations": { MANAGED: "true" } },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }));
    }
    world.create::<PersistentVolume>(json!({
        "metadata": { "name": "v" },
        "spec": {
            "accessModes": modes, "claimRef": { "namespace": "default", "name": "c" },
            "csi": { "driver": "csi.example.com", "volumeHandle": "handle" },
        },
    }));
    world.create::<PersistentVolumeClaim>(json!({
        "metadata": { "name": "c" }, "spec": { "volumeName": "v" }, "status": { "phase": "Bound" },
    }));
    world
}

fn pod(world: &mut World, name: &str, node: &str) {
    world.create::<Pod>(json!({
        "metadata": { "name": name },
        "spec": {
            "nodeName": node, "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "c" } }],
        },
    }));
}

fn settle(world: &mut World, unwanted: &Mutex<Unwanted>) {
    let nodes = [Key::cluster("n1"), Key::cluster("n2")];
    world.settle_all(&nodes, &|caches, request| plan(&observe(caches, request), &mut unwanted.lock(), request));
}

/// The driver does what it is asked for.
fn attach_all(world: &mut World) {
    let names: Vec<String> = world.names::<VolumeAttachment>().into_iter().map(str::to_owned).collect();
    for name in names {
        world.edit::<VolumeAttachment>(&name, |attachment| attachment["status"]["attached"] = json!(true));
    }
}

#[test]
fn a_volume_is_attached_while_a_pod_of_the_node_needs_it() {
    let (mut world, unwanted) = (world(&["ReadWriteOnce"]), Mutex::default());
    pod(&mut world, "p", "n1");
    settle(&mut world, &unwanted);
    let attachments = world.all::<VolumeAttachment>();
    assert_eq!(attachments.len(), 1);
    let spec = json!({ "attacher": "csi.example.com", "nodeName": "n1", "source": { "persistentVolumeName": "v" } });
    assert_eq!(attachments[0]["spec"], spec);
    assert!(attachments[0]["metadata"]["name"].as_str().unwrap().starts_with("csi-"));
    assert!(!world.get::<Node>("n1")["status"].has("volumesAttached"), "not before the driver says so");
    attach_all(&mut world);
    settle(&mut world, &unwanted);
    let attached = json!([{ "name": DEVICE, "devicePath": "" }]);
    assert_eq!(world.get::<Node>("n1")["status"]["volumesAttached"], attached);
    world.remove::<Pod>("p");
    world.writes.clear();
    settle(&mut world, &unwanted);
    assert_eq!(world.writes[0], "update nodes/status n1");
    assert!(world.writes[1].starts_with("delete volumeattachments csi-"));
    assert!(!world.get::<Node>("n1")["status"].has("volumesAttached"));
}

#[test]
fn what_a_node_has_mounted_stays_unless_the_node_is_off_or_not_well_for_long() {
    let (mut world, unwanted) = (world(&["ReadWriteOnce"]), Mutex::default());
    pod(&mut world, "p", "n1");
    settle(&mut world, &unwanted);
    attach_all(&mut world);
    world.edit::<Node>("n1", |node| node["status"]["volumesInUse"] = json!([DEVICE]));
    world.remove::<Pod>("p");
    settle(&mut world, &unwanted);
    world.now = world.now + MAX_UNMOUNT_WAIT;
    settle(&mut world, &unwanted);
    assert_eq!(world.names::<VolumeAttachment>().len(), 1, "the node is well, and lets go when it can");
    world.edit::<Node>("n1", |node| node["status"]["conditions"][0]["status"] = json!("Unknown"));
    settle(&mut world, &unwanted);
    assert!(world.names::<VolumeAttachment>().is_empty());
}

#[test]
fn an_attachment_goes_like_others_when_its_volume_has_gone_before_it() {
    for (what, is_used, in_use, is_kept) in [
        ("no pod needs it", false, vec![], false),
        ("the node has it mounted", false, vec![DEVICE], true),
        ("the node has something else mounted", false, vec![OTHER_DEVICE, "other"], false),
        ("a pod still claims it", true, vec![], true),
    ] {
        let (mut world, unwanted) = (world(&["ReadWriteOnce"]), Mutex::default());
        pod(&mut world, "p", "n1");
        settle(&mut world, &unwanted);
        attach_all(&mut world);
        settle(&mut world, &unwanted);
        world.remove::<PersistentVolume>("v");
        if !is_used {
            world.remove::<Pod>("p");
            world.remove::<PersistentVolumeClaim>("c");
        }
        world.edit::<Node>("n1", |node| node["status"]["volumesInUse"] = json!(in_use));
        settle(&mut world, &unwanted);
        assert_eq!(!world.names::<VolumeAttachment>().is_empty(), is_kept, "{what}");
        assert_eq!(world.get::<Node>("n1")["status"].has("volumesAttached"), is_kept, "{what}");
    }
}

#[test]
fn of_attachments_without_a_volume_those_that_others_made_stay() {
    let (mut world, unwanted) = (world(&["ReadWriteOnce"]), Mutex::default());
    let hash = "0123456789abcdef".repeat(4);
    let names = [format!("csi-{hash}"), format!("csi-{hash}0"), "csi-by-hand".to_owned(), hash];
    for name in &names {
        world.create::<VolumeAttachment>(json!({
            "metadata": { "name": name },
            "spec": {
                "attacher": "csi.example.com", "nodeName": "n1", "source": { "persistentVolumeName": "gone" },
            },
        }));
    }
    settle(&mut world, &unwanted);
    let mut others = names[1..].to_vec();
    others.sort_unstable();
    assert_eq!(world.names::<VolumeAttachment>(), others);
}

#[test]
fn a_volume_for_one_node_waits_until_the_other_has_let_go() {
    let (mut world, unwanted) = (world(&["ReadWriteOnce"]), Mutex::default());
    pod(&mut world, "p", "n1");
    settle(&mut world, &unwanted);
    pod(&mut world, "q", "n2");
    settle(&mut world, &unwanted);
    assert_eq!(world.names::<VolumeAttachment>().len(), 1);
    assert!(world.events[0].starts_with("Warning FailedAttachVolume Multi-Attach error for volume \"v\""));
    world.remove::<Pod>("p");
    settle(&mut world, &unwanted);
    assert_eq!(world.all::<VolumeAttachment>()[0]["spec"]["nodeName"], "n2");
}

#[test]
fn a_volume_for_many_nodes_is_attached_to_all_of_them() {
    let (mut world, unwanted) = (world(&["ReadWriteMany"]), Mutex::default());
    pod(&mut world, "p", "n1");
    pod(&mut world, "q", "n2");
    settle(&mut world, &unwanted);
    assert_eq!(world.names::<VolumeAttachment>().len(), 2);
}

#[test]
fn drivers_that_attach_nothing_and_nodes_that_do_it_themselves_are_left_alone() {
    let (mut drivers, unwanted) = (world(&["ReadWriteOnce"]), Mutex::default());
    drivers
        .create::<CSIDriver>(json!({ "metadata": { "name": "csi.example.com" }, "spec": { "attachRequired": false } }));
    pod(&mut drivers, "p", "n1");
    settle(&mut drivers, &unwanted);
    let mut nodes = world(&["ReadWriteOnce"]);
    nodes.edit::<Node>("n1", |node| node["metadata"]["annotations"] = json!({}));
    pod(&mut nodes, "p", "n1");
    settle(&mut nodes, &unwanted);
    assert!(drivers.writes.is_empty() && nodes.writes.is_empty());
}
