//! Who sends a request.

use object::{Value, json};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

pub const AUTHENTICATED: &str = "system:authenticated";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
pub const MASTERS: &str = "system:masters";

impl User {
    pub fn new(name: &str, groups: &[&str]) -> Self {
        User {
            name: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..User::default()
        }
    }

    pub fn anonymous() -> Self {
        User::new("system:anonymous", &[UNAUTHENTICATED])
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|of| of == group)
    }

    /// As reviews and admission show it.
    pub fn to_value(&self) -> Value {
        let mut value = json!({ "username": self.name, "groups": self.groups });
        if !self.uid.is_empty() {
            value["uid"] = json!(self.uid);
        }
        if !self.extra.is_empty() {
            value["extra"] = json!(self.extra);
        }
        value
    }
}
