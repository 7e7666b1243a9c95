//! Whether the pods around a node let one be there.

use super::{Facts, Ranking};
use crate::cluster::{Cluster, NOWHERE, Slot};
use crate::filters::Verdict;
use crate::needs::Needs;
use crate::relation::{Relation, Shift};
use crate::verdict::{Plugin, Refusal};

impl Ranking {
    /// Whether the pods around let the pod be on a node.
    pub(super) fn stands(&self, cluster: &Cluster, slot: Slot, facts: Option<&Facts>) -> Verdict {
        let needs: &Needs = &self.shape;
        let domain = |relation: &Relation| cluster.topology_at(relation.topology).domain(slot);
        for (at, spread) in needs.spread.iter().enumerate().filter(|(_, spread)| spread.is_hard) {
            let relation = &self.relations[at];
            let domain = domain(relation);
            let uneven = "node(s) didn't match pod topology spread constraints";
            if domain == NOWHERE {
                let reason = format!("{uneven} (missing required label)");
                return Err(Refusal::firm(Plugin::PodTopologySpread, reason));
            }
            let shift = self.shift(cluster, slot, at, facts);
            let itself = i64::from(self.itself[at]);
            let minimum = match facts {
                Some(_) => relation.minimum(spread.min_domains, shift),
                None => self.minima[at],
            };
            let skew = relation.sum(domain, shift) + itself - minimum;
            if skew > spread.max_skew {
                return Err(Refusal::for_now(Plugin::PodTopologySpread, uneven));
            }
        }
        if !self.profile.filters_by(Plugin::InterPodAffinity) {
            return Ok(());
        }
        self.near(cluster, slot, facts)?;
        let first = needs.spread.len() + needs.affinity.len();
        for at in first..first + needs.anti_affinity.len() {
            let domain = domain(&self.relations[at]);
            if domain != NOWHERE && self.relations[at].sum(domain, self.shift(cluster, slot, at, facts)) > 0 {
                return Err(Refusal::for_now(Plugin::InterPodAffinity, "node(s) didn't match pod anti-affinity rules"));
            }
        }
        self.welcome(cluster, slot, facts)
    }

    /// Whether those are near that have to be.
    fn near(&self, cluster: &Cluster, slot: Slot, facts: Option<&Facts>) -> Verdict {
        let needs: &Needs = &self.shape;
        let refusal = || Refusal::firm(Plugin::InterPodAffinity, "node(s) didn't match pod affinity rules");
        let range = needs.spread.len()..needs.spread.len() + needs.affinity.len();
        let (mut all_near, mut anybody) = (true, false);
        for at in range {
            let relation = &self.relations[at];
            let domain = cluster.topology_at(relation.topology).domain(slot);
            let shift = self.shift(cluster, slot, at, facts);
            if domain == NOWHERE {
                return Err(refusal());
            }
            all_near &= relation.sum(domain, shift) > 0;
            anybody |= relation.everywhere(shift) > 0;
        }
        // The first of pods that want to be together has nobody to be near.
        let is_first = || !anybody && needs.affinity.iter().all(|term| term.matches(needs, &cluster.namespaces));
        if all_near || is_first() { Ok(()) } else { Err(refusal()) }
    }

    /// Whether nobody who is there minds.
    fn welcome(&self, cluster: &Cluster, slot: Slot, facts: Option<&Facts>) -> Verdict {
        for relation in &self.repelled {
            let domain = cluster.topology_at(relation.topology).domain(slot);
            let said = |facts: &Facts| -> i64 {
                let here = facts.repels.iter().filter(|(topology, _)| *topology == relation.topology);
                here.map(|(_, amount)| amount).sum()
            };
            let by = facts.map_or(0, |facts| said(facts) - relation.share(slot));
            if domain != NOWHERE && relation.sum(domain, Shift { domain, by }) > 0 {
                let reason = "node(s) didn't satisfy existing pods anti-affinity rules";
                return Err(Refusal::for_now(Plugin::InterPodAffinity, reason));
            }
        }
        Ok(())
    }
}
