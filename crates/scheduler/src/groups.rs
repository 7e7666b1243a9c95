//! Groups of pods: who is in which, and whether enough of a gang are there to be worth a try.
//!
//! Pods without a group are not known here, and cost nothing.

use crate::verdict::GroupVerdict;
use kinds::{Key, Object, Pod, PodGroup};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: BTreeMap<Key, Group>,
    /// The groups that pods are in.
    of: HashMap<Key, Key>,
}

#[derive(Debug, Default)]
pub(crate) struct Group {
    /// None until it is declared.
    declared: Option<Arc<Object<PodGroup>>>,
    /// Pods that have no node yet.
    waiting: BTreeMap<Key, Arc<Object<Pod>>>,
    /// How many have one, or are on their way to one.
    placed: usize,
    /// What was told last of what has become of it, as long as that is not seen.
    told: Option<GroupVerdict>,
    /// Whether it lacked something when somebody last joined.
    is_held: bool,
}

impl Group {
    fn is_idle(&self) -> bool {
        self.declared.is_none() && self.waiting.is_empty() && self.placed == 0
    }

    /// How many pods have to be placed before any of them is; none if each is placed by itself.
    fn quorum(&self) -> Option<usize> {
        let gang = self.declared.as_ref()?.spec.scheduling_policy.gang.as_ref()?;
        Some(usize::try_from(gang.min_count).unwrap_or(0))
    }

    fn lacks(&self, name: &str) -> Option<String> {
        match (&self.declared, self.quorum()) {
            (None, _) => Some(format!("waiting for pods's pod group {name:?} to appear in scheduling queue")),
            (Some(_), Some(quorum)) if self.waiting.len() + self.placed < quorum => {
                Some("waiting for minCount pods from a gang to appear in scheduling queue".to_owned())
            }
            (Some(_), _) => None,
        }
    }
}

impl Groups {
    /// A group is declared, or is no more.
    pub(crate) fn declare(&mut self, key: &Key, declared: Option<Arc<Object<PodGroup>>>) {
        let group = self.groups.entry(key.clone()).or_default();
        (group.declared, group.told) = (declared, None);
        self.tidy(key);
    }

    /// The group that a verdict is to be told of, unless it is known there.
    pub(crate) fn tell(&mut self, key: &Key, verdict: &GroupVerdict) -> Option<Arc<Object<PodGroup>>> {
        let group = self.groups.get_mut(key)?;
        let declared = group.declared.as_ref().filter(|declared| verdict.is_news(declared))?;
        let told = group.told.replace(verdict.clone());
        (told.as_ref() != Some(verdict)).then(|| declared.clone())
    }

    /// A pod of a group waits for a node.
    pub(crate) fn awaits(&mut self, key: &Key, pod: &Arc<Object<Pod>>) {
        self.leaves(&pod.key());
        self.of.insert(pod.key(), key.clone());
        self.groups.entry(key.clone()).or_default().waiting.insert(pod.key(), pod.clone());
    }

    /// A pod of a group has a node, or is on its way to one.
    pub(crate) fn places(&mut self, key: &Key, pod: Key) {
        self.leaves(&pod);
        self.of.insert(pod, key.clone());
        self.groups.entry(key.clone()).or_default().placed += 1;
    }

    /// A pod needs no node any more, if it is in a group at all.
    pub(crate) fn leaves(&mut self, pod: &Key) {
        let Some(key) = self.of.remove(pod) else { return };
        if let Some(group) = self.groups.get_mut(&key)
            && group.waiting.remove(pod).is_none()
        {
            group.placed -= 1;
        }
        self.tidy(&key);
    }

    fn tidy(&mut self, key: &Key) {
        if self.groups.get(key).is_some_and(Group::is_idle) {
            self.groups.remove(key);
        }
    }

    /// What the pods of a group wait for before they are worth a try.
    pub(crate) fn lacks(&self, key: &Key) -> Option<String> {
        self.groups.get(key).and_then(|group| group.lacks(&key.name))
    }

    /// The pods that need not wait for others of their group any more, if they had to.
    pub(crate) fn released(&mut self, key: &Key) -> Vec<Arc<Object<Pod>>> {
        let Some(group) = self.groups.get_mut(key) else { return Vec::new() };
        let is_held = group.lacks(&key.name).is_some();
        let was_held = std::mem::replace(&mut group.is_held, is_held);
        if was_held && !is_held { group.waiting.values().cloned().collect() } else { Vec::new() }
    }

    /// Whether the pods of a group are placed together or not at all. As long as nobody says so, they are not at all.
    pub(crate) fn is_gang(&self, key: &Key) -> bool {
        self.groups.get(key).is_some_and(|group| group.declared.is_none() || group.quorum().is_some())
    }

    pub(crate) fn waiting(&self, key: &Key) -> Vec<Key> {
        self.groups.get(key).map(|group| group.waiting.keys().cloned().collect()).unwrap_or_default()
    }

    /// How many more have to be placed before any of a gang is.
    pub(crate) fn missing(&self, key: &Key) -> usize {
        let Some(group) = self.groups.get(key) else { return 0 };
        group.quorum().unwrap_or(0).saturating_sub(group.placed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_gang_lacks_what_it_has_not_got_and_nothing_is_left_of_one_that_is_gone() {
        let (key, mut groups) = (Key::new("default", "g"), Groups::default());
        let pod =
            |name: &str| Arc::new(Object::<Pod>::of(&json!({ "metadata": { "name": name, "namespace": "default" } })));
        let declared = json!({
            "metadata": { "name": "g", "namespace": "default" },
            "spec": { "schedulingPolicy": { "gang": { "minCount": 2 } } },
        });
        groups.awaits(&key, &pod("a"));
        assert!(groups.released(&key).is_empty());
        assert_eq!(groups.lacks(&key).unwrap(), "waiting for pods's pod group \"g\" to appear in scheduling queue");
        groups.declare(&key, Some(Arc::new(Object::of(&declared))));
        assert!(groups.lacks(&key).unwrap().starts_with("waiting for minCount pods"));
        assert!(groups.released(&key).is_empty());
        groups.awaits(&key, &pod("b"));
        assert_eq!((groups.lacks(&key), groups.missing(&key)), (None, 2));
        assert_eq!(groups.released(&key).len(), 2);
        assert!(groups.released(&key).is_empty(), "once is enough");
        groups.places(&key, pod("a").key());
        assert_eq!((groups.missing(&key), groups.waiting(&key)), (1, vec![pod("b").key()]));
        ["a", "b"].iter().for_each(|name| groups.leaves(&pod(name).key()));
        groups.declare(&key, None);
        assert!(groups.groups.is_empty() && groups.of.is_empty());
    }
}
