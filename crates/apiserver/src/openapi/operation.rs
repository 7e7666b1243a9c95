//! An operation of the API, in no version of OpenAPI: `v2` and `v3` each write it down in their own way.

use super::parameters::Parameter;
use super::types::{self, Kind};

/// One URL.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) path: String,
    pub(super) operations: Vec<Operation>,
}

/// One method of a URL.
#[derive(Debug)]
pub(super) struct Operation {
    /// In lower case.
    pub(super) method: &'static str,
    /// A name that no other operation has.
    pub(super) id: String,
    pub(super) tag: String,
    pub(super) description: String,
    /// What is done, in Kubernetes' words; none where it is done to no resource.
    pub(super) action: Option<&'static str>,
    /// What is spoken.
    pub(super) kind: Option<Kind>,
    /// Sorted by name.
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Body,
    pub(super) answer: Answer,
}

impl Route {
    /// The parameters that all operations take; they are said once, for the whole URL.
    pub(super) fn common(&self) -> Vec<Parameter> {
        let Some((first, others)) = self.operations.split_first() else { return Vec::new() };
        let shared = |parameter: &&Parameter| others.iter().all(|other| other.parameters.contains(parameter));
        first.parameters.iter().filter(shared).copied().collect()
    }
}

#[derive(Debug)]
pub(super) enum Body {
    None,
    /// The full name of a type. Options may be left out.
    Object {
        name: String,
        required: bool,
    },
    Patch {
        media: &'static [&'static str],
    },
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) content: Content,
    pub(super) media: &'static [&'static str],
    /// The status codes of success.
    pub(super) codes: &'static [u16],
}

impl Answer {
    /// A type of `meta.v1`.
    pub(super) fn meta(kind: &str) -> Self {
        Answer { content: Content::Type(types::meta(kind)), media: OBJECT, codes: &[200] }
    }
}

#[derive(Debug)]
pub(super) enum Content {
    /// The full name of a type.
    Type(String),
    Text,
}

pub(super) const JSON: &[&str] = &["application/json"];
pub(super) const OBJECT: &[&str] = &["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];

/// A URL that is about no resource: it has one operation, which reads it.
pub(super) fn plain(path: &str, id: &str, tag: &str, answer: Answer, description: &str) -> Route {
    let operation = Operation {
        method: "get",
        id: id.to_owned(),
        tag: tag.to_owned(),
        description: description.to_owned(),
        action: None,
        kind: None,
        parameters: Vec::new(),
        body: Body::None,
        answer,
    };
    Route { path: path.to_owned(), operations: vec![operation] }
}

/// `rbac.authorization.k8s.io` is `RbacAuthorization`.
pub(super) fn group_id(group: &str) -> String {
    match group.strip_suffix(".k8s.io").unwrap_or(group) {
        "" => "Core".to_owned(),
        group => group.split(['.', '-']).map(capitalized).collect(),
    }
}

/// The same, beginning in lower case.
pub(super) fn group_tag(group: &str) -> String {
    let id = group_id(group);
    id[..1].to_lowercase() + &id[1..]
}

pub(super) fn capitalized(word: &str) -> String {
    let mut rest = word.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}
