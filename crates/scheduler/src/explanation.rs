//! What stands in the way of a pod that waits, node by node: worked out anew when somebody asks, from what is known of
//! the nodes anyway, so that nothing has to be kept for those that nobody asks about.

use crate::queue::Entry;
use crate::verdict::{Plugin, Refusal};
use object::{Value, json};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    pub(crate) profile: String,
    /// Where it waits.
    pub(crate) queue: &'static str,
    /// How often it has been tried.
    pub(crate) attempts: u32,
    /// Where others are leaving for it.
    pub(crate) nominated: Option<String>,
    /// What stands in the way wherever it is.
    pub(crate) general: Option<String>,
    pub(crate) nodes: usize,
    pub(crate) refused: BTreeMap<(Plugin, String), Refused>,
    /// Nodes that would do: it is about to be tried again.
    pub(crate) open: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Refused {
    nodes: Vec<String>,
    /// On how many of them pods that matter less could make room.
    resolvable: usize,
}

impl Explanation {
    pub(crate) fn of(entry: &Entry, queue: &'static str, nodes: usize) -> Self {
        Explanation {
            profile: entry.shape.profile.clone(),
            queue,
            attempts: entry.failures,
            nominated: entry.nominated.clone(),
            nodes,
            ..Explanation::default()
        }
    }

    pub(crate) fn refused(&mut self, node: &str, refusal: &Refusal) {
        for reason in &refusal.reasons {
            let refused = self.refused.entry((refusal.plugin, reason.to_string())).or_default();
            refused.nodes.push(node.to_owned());
            refused.resolvable += usize::from(refusal.resolvable);
        }
    }

    /// As it is shown: reasons by how many nodes they hold for, nodes by name.
    pub fn json(&self) -> Value {
        let mut refused: Vec<(&(Plugin, String), &Refused)> = self.refused.iter().collect();
        refused.sort_by_key(|(_, refused)| std::cmp::Reverse(refused.nodes.len()));
        let refused = refused.into_iter().map(|((plugin, reason), refused)| {
            let mut nodes = refused.nodes.clone();
            nodes.sort();
            json!({
                "plugin": plugin.name(), "reason": reason, "count": nodes.len(), "nodes": nodes,
                "couldMakeRoom": refused.resolvable,
            })
        });
        let mut json = json!({
            "profile": self.profile, "queue": self.queue, "attempts": self.attempts, "nodes": self.nodes,
            "refused": refused.collect::<Vec<Value>>(), "open": self.open,
        });
        for (field, said) in [("reason", &self.general), ("nominatedNode", &self.nominated)] {
            if let Some(said) = said {
                json[field] = json!(said);
            }
        }
        json
    }
}
