//! A request as authorization sees it, and what is decided about it.

use crate::rbac::{Grant, RoleNotFound};
use object::selector::FieldSelector;
use std::collections::BTreeMap;
use std::fmt;

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|of_user| of_user == group)
    }
}

/// What is asked. Empty is what the request does not say.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    pub user: &'a User,
    pub verb: &'a str,
    pub api_group: &'a str,
    pub api_version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub name: &'a str,
    pub namespace: &'a str,
    /// Where the request goes if it is not about a resource.
    pub path: &'a str,
    pub is_resource_request: bool,
    /// What a list or watch is limited to.
    pub field_selector: Option<&'a FieldSelector>,
}

impl<'a> Attributes<'a> {
    /// A request that says only who asks.
    pub fn of(user: &'a User) -> Self {
        Attributes {
            user,
            verb: "",
            api_group: "",
            api_version: "",
            resource: "",
            subresource: "",
            name: "",
            namespace: "",
            path: "",
            is_resource_request: false,
            field_selector: None,
        }
    }

    /// A request about a resource.
    pub fn resource(user: &'a User, verb: &'a str, api_group: &'a str, resource: &'a str) -> Self {
        Attributes { verb, api_group, resource, is_resource_request: true, ..Attributes::of(user) }
    }
}

#[derive(Clone, Debug)]
pub enum Decision<'a> {
    Allow(Reason<'a>),
    /// Others may still allow it; if nobody does, it is forbidden.
    NoOpinion(Reason<'a>),
}

impl<'a> Decision<'a> {
    pub fn is_allowed(&self) -> bool {
        matches!(self, Decision::Allow(_))
    }

    pub fn reason(&self) -> &Reason<'a> {
        match self {
            Decision::Allow(reason) | Decision::NoOpinion(reason) => reason,
        }
    }
}

/// Why something was decided; written out as clients and audit logs know it.
#[derive(Clone, Debug)]
pub enum Reason<'a> {
    None,
    Text(&'static str),
    /// A text that names the node, and more.
    Written(String),
    Grant(Grant<'a>),
    /// Bound roles that do not exist, and so may be what is missing.
    Missing(Vec<RoleNotFound>),
    Both(Box<(Reason<'a>, Reason<'a>)>),
}

impl Reason<'_> {
    pub fn is_none(&self) -> bool {
        matches!(self, Reason::None)
    }

    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Reason::None, reason) | (reason, Reason::None) => reason,
            (first, second) => Reason::Both(Box::new((first, second))),
        }
    }
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::None => Ok(()),
            Reason::Text(text) => f.write_str(text),
            Reason::Written(text) => f.write_str(text),
            Reason::Grant(grant) => write!(f, "RBAC: allowed by {grant}"),
            Reason::Missing(roles) => match roles.as_slice() {
                [role] => write!(f, "RBAC: {role}"),
                roles => {
                    let texts: Vec<_> = roles.iter().map(RoleNotFound::to_string).collect();
                    write!(f, "RBAC: [{}]", texts.join(", "))
                }
            },
            Reason::Both(both) => write!(f, "{}\n{}", both.0, both.1),
        }
    }
}
