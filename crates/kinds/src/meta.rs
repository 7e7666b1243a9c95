//! Metadata, owners and label selectors.

use crate::{Dict, Id, Shared, Time};
use object::{Value, json};
use serde::Deserialize;

pub type Labels = Shared<Dict<String>>;

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Meta {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    pub labels: Labels,
    pub annotations: Labels,
    pub owner_references: Shared<Vec<OwnerReference>>,
    pub finalizers: Shared<Vec<String>>,
    pub creation_timestamp: Option<Time>,
    pub deletion_timestamp: Option<Time>,
    pub deletion_grace_period_seconds: Option<i64>,
}

impl Meta {
    pub fn is_being_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The owner that manages this object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    /// For indexes: the namespace, if nobody manages this object.
    pub(crate) fn orphaned(&self) -> Vec<String> {
        Vec::from_iter(self.controller().is_none().then(|| self.namespace.clone()))
    }

    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller().is_some_and(|owner| owner.uid == uid)
    }

    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }

    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    pub fn annotation(&self, name: &str) -> &str {
        self.annotations.get(name).map_or("", String::as_str)
    }

    /// The reference that makes an object of this kind, with this metadata, the controller of another.
    pub fn controller_reference(&self, id: &Id) -> Value {
        json!({
            "apiVersion": id.api_version,
            "kind": id.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub controller: bool,
    pub block_owner_deletion: bool,
}

impl OwnerReference {
    /// Whether it names this kind, in whatever version.
    pub fn is(&self, id: &Id) -> bool {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        self.kind == id.kind && group == id.group()
    }
}

/// A selector as objects carry it: `matchLabels` and `matchExpressions`. Absent, it selects nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabelSelector(Option<Selector>);

/// A selector in its ready form.
pub type Selector = object::selector::LabelSelector;

impl LabelSelector {
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.as_ref().is_some_and(|selector| selector.matches(|key| labels.get(key).map(String::as_str)))
    }

    /// Whether it is there and selects everything.
    pub fn is_everything(&self) -> bool {
        self.0.as_ref().is_some_and(Selector::is_everything)
    }

    /// In its ready form, if it is there.
    pub fn ready(&self) -> Option<Selector> {
        self.0.clone()
    }

    pub fn is_absent(&self) -> bool {
        self.0.is_none()
    }

    /// Requires exactly these labels, as the selectors of services do. No labels at all select nothing.
    pub fn from_labels(labels: &Labels) -> Self {
        let selector = (!labels.is_empty()).then(|| Selector::from_object(&json!({ "matchLabels": labels })));
        LabelSelector(selector.and_then(Result::ok))
    }
}

impl std::fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(selector) => selector.fmt(f),
            None => f.write_str("<none>"),
        }
    }
}

impl<'de> Deserialize<'de> for LabelSelector {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.is_null() {
            return Ok(LabelSelector(None));
        }
        // The server validates selectors; what it let through and this cannot read selects nothing.
        Ok(LabelSelector(Selector::from_object(&value).ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_selector_selects_nothing_and_an_empty_one_everything() {
        let labels = Labels::from([("a".into(), "b".into())]);
        let read = |value: Value| object::from_value::<LabelSelector>(&value).unwrap();
        assert!(!read(Value::Null).matches(&labels) && !LabelSelector::default().matches(&labels));
        assert!(read(json!({})).matches(&labels));
        assert!(read(json!({ "matchLabels": { "a": "b" } })).matches(&labels));
        assert!(!LabelSelector::from_labels(&Labels::new()).matches(&labels));
        assert!(LabelSelector::from_labels(&labels).matches(&labels));
    }
}
