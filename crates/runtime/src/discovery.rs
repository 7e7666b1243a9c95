//! Which resources the API has: for loops that treat all of them alike.

use crate::client::Client;
use bytes::Bytes;
use http::Method;
use kinds::Id;
use object::{ApiError, Value, View};
use std::borrow::Cow;
use std::sync::Arc;

/// A resource, in the version that its group prefers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    pub id: Id,
    pub verbs: Vec<String>,
    pub subresources: Vec<String>,
}

impl Discovered {
    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|candidate| candidate == verb)
    }

    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|candidate| candidate == name)
    }
}

const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

impl Client {
    /// Every resource, each once: in the first version of its group that has it.
    pub async fn discover(&self) -> Result<Vec<Discovered>, ApiError> {
        let core = self.call_accepting(Method::GET, "/api", ACCEPT).await?.json;
        let others = self.call_accepting(Method::GET, "/apis", ACCEPT).await?.json;
        // The answer is next to always the one that was read before.
        let known = self.known.lock().clone();
        if let Some(known) = known.filter(|known| known.answers == [core.clone(), others.clone()]) {
            return Ok(known.resources.clone());
        }
        let answers = [core, others];
        let mut resources = Vec::new();
        for answer in &answers {
            read(&object::json::parse(answer).map_err(ApiError::internal)?, &mut resources);
        }
        *self.known.lock() = Some(Arc::new(Known { answers, resources: resources.clone() }));
        Ok(resources)
    }
}

/// What the API has answered, and what that says.
#[derive(Debug)]
pub(crate) struct Known {
    answers: [Bytes; 2],
    resources: Vec<Discovered>,
}

fn read(groups: &Value, found: &mut Vec<Discovered>) {
    for group in groups.items("items") {
        let name = group.at("metadata").text("name");
        for version in group.items("versions") {
            for resource in version.items("resources") {
                let discovered = discovered(name, version.text("version"), resource);
                let same = |other: &Discovered| {
                    other.id.group() == discovered.id.group() && other.id.plural == discovered.id.plural
                };
                if !found.iter().any(same) {
                    found.push(discovered);
                }
            }
        }
    }
}

fn discovered(group: &str, version: &str, resource: &Value) -> Discovered {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let owned = |text: &str| Cow::Owned(text.to_owned());
    Discovered {
        id: Id {
            api_version: Cow::Owned(api_version),
            kind: owned(resource.at("responseKind").text("kind")),
            plural: owned(resource.text("resource")),
            namespaced: resource.text("scope") == "Namespaced",
        },
        verbs: resource.items("verbs").iter().filter_map(|verb| Some(verb.as_str()?.to_owned())).collect(),
        subresources: resource.items("subresources").iter().map(|sub| sub.text("subresource").to_owned()).collect(),
    }
}
