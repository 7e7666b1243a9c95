//! Which objects have to do with which nodes.
//!
//! Pods are on nodes and refer to objects of their namespace; volumes are bound to claims and refer to secrets. For
//! each object that is referred to, the nodes it has to do with are counted, so a question is a few lookups however
//! many pods refer to one object, and forgetting a pod undoes exactly what it added.

use super::references::{self, Reference};
use object::{Value, View};
use std::collections::{BTreeSet, HashMap};

/// The kinds that a node may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    ConfigMap,
    Secret,
    Claim,
    Volume,
    ResourceClaim,
    ServiceAccount,
    Pod,
    VolumeAttachment,
    ResourceSlice,
}

const KINDS: usize = Kind::ResourceSlice as usize + 1;

#[derive(Debug, Default)]
pub struct Graph {
    /// For each kind, namespace and name, how often each node is referred to from there. Volumes are not in it: they
    /// have to do with the nodes of their claim.
    nodes: [ByName<HashMap<String, u32>>; KINDS],
    /// What was counted for an object, by kind: pods, attachments, slices.
    counted: [ByName<Counted>; KINDS],
    volumes: HashMap<String, Volume>,
    /// The volumes that refer to a secret.
    volumes_of_secrets: ByName<BTreeSet<String>>,
}

/// By namespace, which is empty for objects without one, and name.
type ByName<T> = HashMap<String, HashMap<String, T>>;

#[derive(Debug)]
struct Counted {
    node: String,
    references: Vec<Reference>,
}

#[derive(Debug)]
struct Volume {
    claim_namespace: String,
    claim_name: String,
    /// Namespaces and names.
    secrets: BTreeSet<(String, String)>,
}

fn find<'a, T>(map: &'a ByName<T>, namespace: &str, name: &str) -> Option<&'a T> {
    map.get(namespace)?.get(name)
}

fn entry<'a, T: Default>(map: &'a mut ByName<T>, namespace: &str, name: &str) -> &'a mut T {
    map.entry(namespace.to_owned()).or_default().entry(name.to_owned()).or_default()
}

fn remove<T>(map: &mut ByName<T>, namespace: &str, name: &str) -> Option<T> {
    let names = map.get_mut(namespace)?;
    let removed = names.remove(name);
    if names.is_empty() {
        map.remove(namespace);
    }
    removed
}

impl Graph {
    /// Takes note of an object, or with none, of its deletion. Other kinds do not matter here.
    pub fn apply(&mut self, kind: &str, namespace: &str, name: &str, object: Option<&Value>) {
        let on_node = |object: &Value| (object.at("spec").text("nodeName").to_owned(), vec![]);
        match kind {
            "Pod" => self.count(Kind::Pod, namespace, name, object.map(references::of_pod)),
            "VolumeAttachment" => self.count(Kind::VolumeAttachment, "", name, object.map(on_node)),
            "ResourceSlice" => self.count(Kind::ResourceSlice, "", name, object.map(on_node)),
            "PersistentVolume" => self.set_volume(name, object),
            _ => {}
        }
    }

    /// Whether a pod, as it is written, says nothing that is not known: it is on no node, or on the one it was counted
    /// for, and has not come to refer to more since. That is so for nearly every change of a pod.
    pub fn knows_all_of_pod(&self, namespace: &str, name: &str, json: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(json) else { return false };
        let says = |field: &str| text.contains(field);
        match find(&self.counted[Kind::Pod as usize], namespace, name) {
            Some(_) => !says("\"resourceClaimStatuses\":") && !says("\"ephemeralContainers\":"),
            None => !says("\"nodeName\":\""),
        }
    }

    /// Counts what an object refers to, and the object itself, for its node, instead of what was counted for it before.
    fn count(&mut self, kind: Kind, namespace: &str, name: &str, new: Option<(String, Vec<Reference>)>) {
        if let Some(old) = remove(&mut self.counted[kind as usize], namespace, name) {
            for (kind, name) in &old.references {
                self.uncount(*kind, namespace, name, &old.node);
            }
        }
        let Some((node, mut references)) = new.filter(|(node, _)| !node.is_empty()) else { return };
        references.push((kind, name.to_owned()));
        for (kind, name) in &references {
            *entry(&mut self.nodes[*kind as usize], namespace, name).entry(node.clone()).or_insert(0) += 1;
        }
        let names = self.counted[kind as usize].entry(namespace.to_owned()).or_default();
        names.insert(name.to_owned(), Counted { node, references });
    }

    fn uncount(&mut self, kind: Kind, namespace: &str, name: &str, node: &str) {
        let nodes = entry(&mut self.nodes[kind as usize], namespace, name);
        if let Some(count) = nodes.get_mut(node) {
            *count -= 1;
            if *count == 0 {
                nodes.remove(node);
            }
        }
        if nodes.is_empty() {
            remove(&mut self.nodes[kind as usize], namespace, name);
        }
    }

    fn set_volume(&mut self, name: &str, object: Option<&Value>) {
        for (namespace, secret) in self.volumes.remove(name).into_iter().flat_map(|old| old.secrets) {
            let volumes = entry(&mut self.volumes_of_secrets, &namespace, &secret);
            volumes.remove(name);
            if volumes.is_empty() {
                remove(&mut self.volumes_of_secrets, &namespace, &secret);
            }
        }
        let Some(object) = object else { return };
        let claim = object.path(&["spec", "claimRef"]);
        // A volume that belongs to nobody gives nobody access to anything.
        if claim.is_null() {
            return;
        }
        let secrets = references::of_volume(object);
        for (namespace, secret) in &secrets {
            entry(&mut self.volumes_of_secrets, namespace, secret).insert(name.to_owned());
        }
        let (claim_namespace, claim_name) = (claim.text("namespace").to_owned(), claim.text("name").to_owned());
        self.volumes.insert(name.to_owned(), Volume { claim_namespace, claim_name, secrets });
    }

    /// Whether an object has to do with a node.
    pub(super) fn connects(&self, kind: Kind, namespace: &str, name: &str, node: &str) -> bool {
        match kind {
            Kind::Volume => self.volume_connects(name, node),
            Kind::Secret => {
                let mut volumes = find(&self.volumes_of_secrets, namespace, name).into_iter().flatten();
                self.counts(kind, namespace, name, node) || volumes.any(|volume| self.volume_connects(volume, node))
            }
            kind => self.counts(kind, namespace, name, node),
        }
    }

    fn counts(&self, kind: Kind, namespace: &str, name: &str, node: &str) -> bool {
        find(&self.nodes[kind as usize], namespace, name).is_some_and(|nodes| nodes.contains_key(node))
    }

    fn volume_connects(&self, name: &str, node: &str) -> bool {
        let claimed = |volume: &Volume| self.counts(Kind::Claim, &volume.claim_namespace, &volume.claim_name, node);
        self.volumes.get(name).is_some_and(claimed)
    }

    /// Whether nothing is remembered at all.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.iter().all(HashMap::is_empty)
            && self.counted.iter().all(HashMap::is_empty)
            && self.volumes.is_empty()
            && self.volumes_of_secrets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    /// A pod on a node that refers to everything a pod can refer to.
    fn pod(node: &str) -> Value {
        json!({
            "metadata": { "name": "p" },
            "spec": {
                "nodeName": node,
                "serviceAccountName": "account",
                "imagePullSecrets": [{ "name": "pull" }],
                "initContainers": [{ "envFrom": [{ "secretRef": { "name": "from" } }] }],
                "containers": [{ "env": [{ "valueFrom": { "secretKeyRef": { "name": "key" } } }] }],
                "ephemeralContainers": [{ "env": [{ "valueFrom": { "configMapKeyRef": { "name": "debug" } } }] }],
                "volumes": [
                    { "name": "a", "secret": { "secretName": "volume" } },
                    { "name": "b", "configMap": { "name": "volume" } },
                    { "name": "c", "projected": { "sources": [
                        { "secret": { "name": "projected" } }, { "configMap": { "name": "projected" } },
                    ] } },
                    { "name": "d", "csi": { "nodePublishSecretRef": { "name": "csi" } } },
                    { "name": "e", "iscsi": { "secretRef": { "name": "iscsi" } } },
                    { "name": "f", "persistentVolumeClaim": { "claimName": "claim" } },
                    { "name": "g", "ephemeral": {} },
                    { "name": "h", "emptyDir": {} },
                ],
                "resourceClaims": [
                    { "name": "x", "resourceClaimName": "direct" },
                    { "name": "y", "resourceClaimTemplateName": "t" },
                    { "name": "z", "resourceClaimTemplateName": "t" },
                ],
            },
            "status": {
                "resourceClaimStatuses": [{ "name": "y", "resourceClaimName": "made" }],
                "extendedResourceClaimStatus": { "resourceClaimName": "extended" },
            },
        })
    }

    const REFERENCES: [(Kind, &[&str]); 6] = [
        (Kind::Pod, &["p"]),
        (Kind::ServiceAccount, &["account"]),
        (Kind::Secret, &["pull", "from", "key", "volume", "projected", "csi", "iscsi"]),
        (Kind::ConfigMap, &["debug", "volume", "projected"]),
        (Kind::Claim, &["claim", "p-g"]),
        (Kind::ResourceClaim, &["direct", "made", "extended"]),
    ];

    #[test]
    fn a_pod_connects_its_node_with_what_it_refers_to() {
        let mut graph = Graph::default();
        graph.apply("Pod", "n", "p", Some(&pod("node")));
        for (kind, names) in REFERENCES {
            for name in names {
                assert!(graph.connects(kind, "n", name, "node"), "{kind:?} {name}");
                assert!(!graph.connects(kind, "m", name, "node"), "{kind:?} {name} elsewhere");
                assert!(!graph.connects(kind, "n", name, "other"), "{kind:?} {name} for another node");
            }
        }
        assert_eq!(graph.nodes[Kind::Secret as usize]["n"].len(), 7);
        graph.apply("Pod", "n", "p", Some(&pod("other")));
        assert!(
            graph.connects(Kind::Secret, "n", "pull", "other") && !graph.connects(Kind::Secret, "n", "pull", "node")
        );
        graph.apply("Pod", "n", "p", Some(&pod("")));
        assert!(graph.is_empty(), "{graph:?}");
    }

    #[test]
    fn what_two_pods_share_stays_until_the_last_is_gone() {
        let mut graph = Graph::default();
        graph.apply("Pod", "n", "p", Some(&pod("node")));
        graph.apply("Pod", "n", "q", Some(&pod("node")));
        graph.apply("Pod", "n", "p", None);
        assert!(graph.connects(Kind::Secret, "n", "pull", "node"));
        assert!(!graph.connects(Kind::Pod, "n", "p", "node"));
        graph.apply("Pod", "n", "q", None);
        assert!(graph.is_empty(), "{graph:?}");
    }

    #[test]
    fn a_mirror_pod_gives_access_to_itself_only() {
        let mut graph = Graph::default();
        let mut mirror = pod("node");
        mirror["metadata"]["annotations"] = json!({ "kubernetes.io/config.mirror": "x" });
        graph.apply("Pod", "n", "p", Some(&mirror));
        assert!(graph.connects(Kind::Pod, "n", "p", "node"));
        assert!(!graph.connects(Kind::Secret, "n", "pull", "node"));
        assert!(!graph.connects(Kind::ServiceAccount, "n", "account", "node"));
    }

    #[test]
    fn a_volume_is_for_the_nodes_of_its_claim_and_so_are_its_secrets() {
        let mut graph = Graph::default();
        let secret = |name: &str| json!({ "namespace": "drivers", "name": name });
        let volume = |claim: Value| {
            let csi = json!({
                "nodePublishSecretRef": secret("publish"), "nodeStageSecretRef": secret("stage"),
                "nodeExpandSecretRef": secret("expand"), "controllerPublishSecretRef": secret("controller"),
            });
            let iscsi = json!({ "secretRef": { "name": "iscsi" } });
            json!({ "spec": { "claimRef": claim, "csi": csi, "iscsi": iscsi } })
        };
        let claim = json!({ "namespace": "n", "name": "claim" });
        graph.apply("PersistentVolume", "", "v", Some(&volume(claim.clone())));
        assert!(!graph.connects(Kind::Volume, "", "v", "node"));
        graph.apply("Pod", "n", "p", Some(&pod("node")));
        assert!(graph.connects(Kind::Volume, "", "v", "node") && !graph.connects(Kind::Volume, "", "v", "other"));
        for (namespace, name, connected) in [
            ("drivers", "publish", true),
            ("drivers", "stage", true),
            ("drivers", "expand", true),
            ("drivers", "controller", false),
            ("n", "iscsi", true),
        ] {
            assert_eq!(graph.connects(Kind::Secret, namespace, name, "node"), connected, "{name}");
        }
        graph.apply("PersistentVolume", "", "v", Some(&volume(json!(null))));
        assert!(!graph.connects(Kind::Secret, "drivers", "stage", "node"));
        graph.apply("PersistentVolume", "", "v", Some(&volume(claim)));
        graph.apply("PersistentVolume", "", "v", None);
        graph.apply("Pod", "n", "p", None);
        assert!(graph.is_empty(), "{graph:?}");
    }

    #[test]
    fn attachments_and_slices_are_for_their_node() {
        let mut graph = Graph::default();
        let object = json!({ "spec": { "nodeName": "node" } });
        for (kind, name) in [("VolumeAttachment", Kind::VolumeAttachment), ("ResourceSlice", Kind::ResourceSlice)] {
            graph.apply(kind, "", "x", Some(&object));
            assert!(graph.connects(name, "", "x", "node") && !graph.connects(name, "", "x", "other"));
            graph.apply(kind, "", "x", None);
        }
        assert!(graph.is_empty());
    }
}
