//! Asking the scheduler about a pod, which changes nothing.

use super::Scheduler;
use crate::explanation::Explanation;
use kinds::Key;

impl Scheduler {
    /// What stands in the way of a pod that waits; none if it does not wait here.
    pub(crate) fn explain(&mut self, key: &Key) -> Option<Explanation> {
        let nodes = self.cluster.len();
        if self.gated.contains(key) {
            return Some(Explanation { queue: "gated", nodes, ..Explanation::default() });
        }
        let (entry, queue) = self.queue.get(key).map(|(entry, queue)| (entry.clone(), queue))?;
        let mut explanation = Explanation::of(&entry, queue, nodes);
        let volumes = match self.volumes(&entry.shape) {
            Ok(volumes) => volumes,
            Err(general) => return Some(Explanation { general: Some(general), ..explanation }),
        };
        // Room that is kept for the pod does not stand in its way.
        let promised = entry.nominated.as_deref().unwrap_or_default();
        self.cluster.withdraw(key, promised);
        let mut ranking = self.ranking(&entry.shape, volumes);
        ranking.update(&self.cluster);
        for (node, verdict) in ranking.verdicts(&self.cluster) {
            match verdict {
                Ok(()) => explanation.open.push(node.to_owned()),
                Err(refusal) => explanation.refused(node, &refusal),
            }
        }
        self.keep(ranking);
        if !promised.is_empty() {
            self.cluster.nominate(entry.pod.clone(), entry.shape.clone(), promised);
        }
        Some(explanation)
    }
}
