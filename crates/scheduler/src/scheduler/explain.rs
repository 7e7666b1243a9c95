//! Asking the scheduler about a pod, which changes nothing.

use super::Scheduler;
use crate::explanation::Explanation;
use kinds::{Key, Pod};

impl Scheduler {
    /// What stands in the way of a pod that waits; none if it does not wait here.
    pub(crate) fn explain(&mut self, key: &Key) -> Option<Explanation> {
        let nodes = self.cluster.len();
        if self.gated.contains(key) {
            let pod = self.cluster.caches.of::<Pod>().get(key);
            let general = pod.and_then(|pod| self.lacks(&pod));
            return Some(Explanation { queue: "gated", nodes, general, ..Explanation::default() });
        }
        let (entry, queue) = self.queue.get(key).map(|(entry, queue)| (entry.clone(), queue))?;
        let mut explanation = Explanation::of(&entry, queue, nodes);
        let claims = match self.claims(&entry.pod, &entry.shape) {
            Ok(claims) => claims,
            Err((_, general)) => return Some(Explanation { general: Some(general), ..explanation }),
        };
        // Room that is kept for the pod does not stand in its way.
        let promised = entry.nominated.as_deref().unwrap_or_default();
        self.cluster.withdraw(key, promised);
        let mut ranking = self.ranking(&entry.shape, claims);
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
