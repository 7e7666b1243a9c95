//! Deciding about one pod: where it goes, or what it waits for.

use super::gang::Place;
use super::{Decision, Scheduler, Tries};
use crate::cluster::{Slot, salt};
use crate::needs::Shape;
use crate::preemption::{self, NoRoom};
use crate::profile::Profile;
use crate::queue::Entry;
use crate::ranking::{Claims, Ranking};
use crate::verdict::{Diagnosis, Plugin};
use crate::volumes::Preparation;
use kinds::{Object, Pod};
use std::sync::Arc;
use tokio::time::Instant;

/// Together the rankings that are kept remember so many nodes at most.
const REMEMBERED: usize = 1 << 20;

impl Scheduler {
    /// Decides about one pod; nothing if there is nothing new to be said about it.
    pub(super) fn decide(&mut self, entry: Entry, now: Instant) -> Option<Decision> {
        let nominated = entry.nominated.as_deref().unwrap_or_default();
        self.cluster.withdraw(&entry.pod.key(), nominated);
        let claims = match self.claims(&entry.pod, &entry.shape) {
            Ok(claims) => claims,
            Err((plugin, general)) => return Some(self.wait_for_claims(entry.pod, plugin, general, now)),
        };
        let mut ranking = self.ranking(&entry.shape, claims);
        let decision = match self.choose(&mut ranking, &entry.pod, nominated) {
            Some(slot) => Some(match self.assume(&ranking, &entry.pod, slot) {
                Ok(place) => self.send(entry, place, now),
                Err(diagnosis) => self.try_again(entry.pod, *diagnosis, now),
            }),
            None if self.is_late(&ranking, &entry) => {
                self.queue.put_back(&entry.pod.key());
                None
            }
            None => Some(self.wait(&mut ranking, entry.pod, now)),
        };
        self.keep(ranking);
        decision
    }

    /// Whether others were faster than a pod that came for room on a node: all is as it was when it was tried last.
    fn is_late(&self, ranking: &Ranking, entry: &Entry) -> bool {
        let could_preempt = || ranking.shape.preempts && self.cluster.has_lesser(ranking.shape.priority);
        ranking.is_closed() && self.queue.is_ahead(&entry.pod.key()) && !could_preempt()
    }

    /// Puts a pod in its place, with what it needs there set aside for it. Volumes and classes are looked up where they
    /// are kept, and change while a pod is decided about: an error if what spoke for the node is there no more.
    pub(super) fn assume(
        &mut self,
        ranking: &Ranking,
        pod: &Arc<Object<Pod>>,
        slot: Slot,
    ) -> Result<Place, Box<Diagnosis>> {
        let spot = self.cluster.spot(slot);
        let name = spot.name.clone();
        let Some(node) = spot.node.as_ref() else {
            return Err(Box::new(Diagnosis::failure(format!("node {name:?} not found"))));
        };
        let lost = |plugin: Plugin, why: &str| {
            let error = format!("running Reserve plugin {:?}: on node {name:?}: {why}", plugin.name());
            Box::new(Diagnosis::failure(error))
        };
        let prepared = ranking.volumes.prepare(&self.cluster, node);
        let prepared = prepared.map_err(|why| lost(Plugin::VolumeBinding, why))?;
        let timeout = ranking.profile.binding_timeout;
        let devices = ranking.devices.reserve(&mut self.cluster, slot, timeout);
        let devices = devices.map_err(|refusal| lost(refusal.plugin, &refusal.reasons.join(", ")))?;
        let volumes = Preparation { timeout, ..prepared };
        self.cluster.taken_volumes.extend(volumes.matched.iter().cloned());
        self.assumed.insert(pod.key());
        self.cluster.put_pod(pod.clone(), ranking.shape.clone(), &name);
        Ok(Place { node: name, volumes, devices })
    }

    /// A pod that something went wrong with.
    fn try_again(&mut self, pod: Arc<Object<Pod>>, diagnosis: Diagnosis, now: Instant) -> Decision {
        self.queue.retry(&pod.key(), now);
        Decision::Wait { pod, diagnosis, room: None }
    }

    /// A pod is on its way to its place.
    pub(super) fn send(&mut self, entry: Entry, place: Place, now: Instant) -> Decision {
        let Entry { pod, shape, failures, since, .. } = entry;
        let tries = Tries { count: failures + 1, since: since.unwrap_or(now) };
        self.queue.remove(&pod.key());
        if let Some(group) = self.group_of(&pod) {
            self.joins(&group, |groups| groups.places(&group, pod.key()));
        }
        // Others may have waited for such a pod to be somewhere.
        self.moved.push(shape);
        let Place { node, volumes, devices } = place;
        Decision::Bind { pod, node, volumes, devices, tries }
    }

    fn wait(&mut self, ranking: &mut Ranking, pod: Arc<Object<Pod>>, now: Instant) -> Decision {
        let mut diagnosis = ranking.diagnose(&self.cluster);
        if diagnosis.error.is_some() {
            return self.try_again(pod, diagnosis, now);
        }
        diagnosis.release = ranking.devices.release(&diagnosis.reasons);
        let room = preemption::make_room(ranking, &self.cluster, &pod);
        if ranking.profile.preemption.is_some() {
            self.figures.preempted(room.as_ref().ok().map(|room| room.victims.len()));
        }
        let room = match room {
            Ok(room) => {
                self.nominate(&pod, &ranking.shape, &room);
                Some(room)
            }
            Err(why) => {
                let claims = ranking.profile.filters_by(Plugin::DynamicResources);
                let claims = claims.then(|| ranking.devices.outlook(diagnosis.release.as_ref()).to_owned());
                // Whoever has been promised a place keeps it while those in the way are leaving.
                diagnosis.is_lost = matches!(why, NoRoom::Nowhere(_));
                match self.queue.nomination(&pod.key()) {
                    Some(node) if diagnosis.is_lost => {
                        self.withdraw(&pod.key(), &node);
                        self.queue.withdraw(&pod.key());
                    }
                    Some(node) => self.cluster.nominate(pod.clone(), ranking.shape.clone(), &node),
                    None => {}
                }
                diagnosis.afterwards = claims.into_iter().chain(why.message()).collect();
                None
            }
        };
        self.queue.park(&pod.key(), &diagnosis.plugins, now);
        Decision::Wait { pod, diagnosis, room }
    }

    pub(super) fn choose(&mut self, ranking: &mut Ranking, pod: &Pod, nominated: &str) -> Option<Slot> {
        ranking.update(&self.cluster);
        let first = self.cluster.slot(nominated).filter(|slot| ranking.does(&self.cluster, *slot, None).is_ok());
        first.or_else(|| ranking.choose(&self.cluster, salt(&pod.metadata.uid)))
    }

    pub(super) fn ranking(&mut self, shape: &Shape, claims: Claims) -> Ranking {
        self.rankings.remove(&shape.number).unwrap_or_else(|| {
            let profile = self.profiles.get(&shape.profile).cloned();
            let profile = profile.unwrap_or_else(|| Arc::new(Profile::new(&shape.profile)));
            Ranking::new(shape.clone(), claims, profile, &mut self.cluster)
        })
    }

    /// Remembers a ranking for the next pod of its shape, in the place of the oldest if there are too many.
    pub(super) fn keep(&mut self, ranking: Ranking) {
        // What is known about claims may be wrong by the time the next pod comes.
        if !ranking.shape.claims.is_empty() || !ranking.devices.is_empty() {
            return;
        }
        let most = (REMEMBERED / self.cluster.slots().max(1) as usize).clamp(4, 1024);
        while self.rankings.len() >= most {
            self.rankings.pop_first();
        }
        self.rankings.insert(ranking.shape.number, ranking);
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Fixture, caches, node, pod};
    use kinds::{Object, PersistentVolume, PersistentVolumeClaim, StorageClass};
    use object::{Value, json};

    fn volume(claimed: &Value) -> Object<PersistentVolume> {
        Object::of(&json!({
            "metadata": { "name": "disk" },
            "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "later",
                "claimRef": claimed,
            },
            "status": { "phase": "Available" },
        }))
    }

    #[test]
    fn a_pod_whose_volume_is_gone_between_choosing_and_taking_a_node_is_tried_again() {
        let mut caches = caches();
        caches.put(volume(&Value::Null));
        caches.put(Object::<StorageClass>::of(&json!({
            "metadata": { "name": "later" }, "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        })));
        caches.put(Object::<PersistentVolumeClaim>::of(&json!({
            "metadata": { "name": "data", "namespace": "default", "uid": "data" },
            "spec": {
                "storageClassName": "later", "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } },
            },
        })));
        let mut others = caches.clone();
        let mut fixture = Fixture::with(caches, &[node("a", &json!({}))]);
        let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
        fixture.pod(&pod("p", &json!({ "spec": { "volumes": volumes } })));
        let now = fixture.now;
        let scheduler = &mut fixture.scheduler;
        let entry = scheduler.queue.pop(now).unwrap();
        let claims = scheduler.claims(&entry.pod, &entry.shape).unwrap();
        let mut ranking = scheduler.ranking(&entry.shape, claims);
        let slot = scheduler.choose(&mut ranking, &entry.pod, "").expect("the volume can be used on the node");
        others.put(volume(&json!({ "namespace": "default", "name": "faster" })));
        let refused = scheduler.assume(&ranking, &entry.pod, slot).map(|place| place.node);
        let message = refused.map_err(|diagnosis| diagnosis.message());
        let expected = "running Reserve plugin \"VolumeBinding\": on node \"a\": \
             node(s) didn't find available persistent volumes to bind";
        assert_eq!(message, Err(expected.to_owned()));
        assert!(scheduler.cluster.taken_volumes.is_empty(), "nothing is set aside");
        others.put(volume(&Value::Null));
        assert!(scheduler.assume(&ranking, &entry.pod, slot).is_ok(), "it is free again");
    }
}
