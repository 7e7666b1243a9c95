//! What pods claim, volumes and devices, looked up before a node is chosen.

use super::{Decision, Scheduler};
use crate::needs::Shape;
use crate::ranking::Claims;
use crate::verdict::{Diagnosis, Plugin, summary};
use crate::volumes::Volumes;
use kinds::{Object, Pod};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;

impl Scheduler {
    /// What is known of what a pod claims; or why it can be nowhere, and who says so.
    pub(super) fn claims(&self, pod: &Pod, shape: &Shape) -> Result<Claims, (Plugin, String)> {
        let volumes = self.volumes(pod, shape).map_err(|general| (Plugin::VolumeBinding, general))?;
        let devices = self.devices(pod, shape).map_err(|general| (Plugin::DynamicResources, general))?;
        Ok(Claims { volumes, devices })
    }

    /// What is known of the volumes that a pod wants; or why it can be nowhere.
    fn volumes(&self, pod: &Pod, shape: &Shape) -> Result<Volumes, String> {
        let binds = self.profiles.get(&shape.profile).is_none_or(|profile| profile.filters_by(Plugin::VolumeBinding));
        match Volumes::of(pod, shape, &self.cluster) {
            Ok(volumes) => Ok(volumes.waiting_if(binds)),
            Err(general) if binds => Err(general),
            Err(_) => Ok(Volumes::default()),
        }
    }

    /// A pod that can be nowhere because of what it claims.
    pub(super) fn wait_for_claims(
        &mut self,
        pod: Arc<Object<Pod>>,
        plugin: Plugin,
        general: String,
        now: Instant,
    ) -> Decision {
        let diagnosis = self.without_claims(&pod, plugin, general);
        self.queue.park(&pod.key(), &diagnosis.plugins, now);
        Decision::Wait { pod, diagnosis, room: None }
    }

    /// Why a pod can be nowhere that does not get what it claims.
    pub(super) fn without_claims(&self, pod: &Pod, plugin: Plugin, general: String) -> Diagnosis {
        let nodes = self.cluster.len();
        let preempts = self.profile(pod).is_some_and(|profile| profile.preemption.is_some());
        let helpless = BTreeMap::from([("Preemption is not helpful for scheduling".to_owned(), nodes)]);
        let claims = (plugin == Plugin::DynamicResources).then(|| "no new claims to deallocate".to_owned());
        let preemption = preempts.then(|| format!("preemption: {}", summary(nodes, None, &helpless)));
        Diagnosis {
            nodes,
            general: Some(general),
            afterwards: claims.into_iter().chain(preemption).collect(),
            plugins: vec![plugin],
            ..Diagnosis::default()
        }
    }
}
