//! The audit log: who did what, as JSON lines in the form that tools for Kubernetes read.
//!
//! A policy says how much is written of which request. Lines go through a bounded queue to a thread of their own; when
//! the queue is full, requests wait rather than go unrecorded.

use crate::identity;
use crate::media::Format;
use crate::request::Info;
use authz::User;
use bytes::Bytes;
use object::{Value, View, json, time};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// So many lines may wait to be written.
const MAX_QUEUED: usize = 4096;

/// How much is written of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    None,
    Metadata,
    Request,
    RequestResponse,
}

impl Level {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "None" => Some(Level::None),
            "Metadata" => Some(Level::Metadata),
            "Request" => Some(Level::Request),
            "RequestResponse" => Some(Level::RequestResponse),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

/// Rules in order; the first that matches decides.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<Value>,
}

impl Default for Policy {
    /// Everything, without what was sent.
    fn default() -> Self {
        Policy { rules: vec![json!({ "level": "Metadata" })] }
    }
}

impl Policy {
    /// Reads an `audit.k8s.io/v1` policy, in YAML or JSON.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |why: String| format!("{}: {why}", path.display());
        let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        let (policy, twice) = crate::yaml::parse(&bytes).map_err(|error| failed(error.to_string()))?;
        if !twice.is_empty() {
            return Err(failed(twice.join(", ")));
        }
        if policy.text("kind") != "Policy" || !policy.text("apiVersion").starts_with("audit.k8s.io/") {
            return Err(failed("expected kind Policy of audit.k8s.io/v1".to_owned()));
        }
        let rules = policy.items("rules").to_vec();
        match rules.iter().find(|rule| Level::parse(rule.text("level")).is_none()) {
            Some(rule) => {
                Err(failed(format!("{:?} is no level: None, Metadata, Request, RequestResponse", rule.text("level"))))
            }
            None => Ok(Policy { rules }),
        }
    }

    pub(crate) fn level(&self, user: &User, info: &Info) -> Level {
        let rule = self.rules.iter().find(|rule| matches(rule, user, info));
        rule.and_then(|rule| Level::parse(rule.text("level"))).unwrap_or(Level::None)
    }
}

fn matches(rule: &Value, user: &User, info: &Info) -> bool {
    let lists =
        |field: &str, value: &str| rule.items(field).is_empty() || rule.items(field).iter().any(|item| *item == value);
    let groups = rule.items("userGroups");
    if !lists("users", &user.name) || !lists("verbs", info.verb) {
        return false;
    }
    if !groups.is_empty() && !user.groups.iter().any(|group| groups.iter().any(|item| item == group)) {
        return false;
    }
    match &info.target {
        Some(target) => {
            let resources = rule.items("resources");
            let of = |resource: &Value| {
                let names = resource.items("resourceNames");
                resource.text("group") == target.group
                    && (resource.items("resources").is_empty()
                        || resource.items("resources").iter().any(|item| names_resource(item, target)))
                    && (names.is_empty() || names.iter().any(|name| *name == target.name))
            };
            rule.items("nonResourceURLs").is_empty()
                && lists("namespaces", &target.namespace)
                && (resources.is_empty() || resources.iter().any(of))
        }
        None => {
            let urls = rule.items("nonResourceURLs");
            let matches = |url: &Value| match url.as_str().unwrap_or_default().strip_suffix('*') {
                Some(prefix) => info.path.starts_with(prefix),
                None => *url == info.path,
            };
            rule.items("resources").is_empty()
                && rule.items("namespaces").is_empty()
                && (urls.is_empty() || urls.iter().any(matches))
        }
    }
}

/// `pods`, `pods/log`, `pods/*`, `*/scale`, `*`.
fn names_resource(item: &Value, target: &crate::request::Target) -> bool {
    let text = item.as_str().unwrap_or_default();
    let (resource, subresource) = text.split_once('/').unwrap_or((text, ""));
    let any = |pattern: &str, value: &str| pattern == "*" || pattern == value;
    text == "*" || any(resource, &target.resource) && any(subresource, &target.subresource)
}

/// Where lines go.
#[derive(Clone, Debug)]
pub struct Audit {
    policy: Arc<Policy>,
    lines: tokio::sync::mpsc::Sender<String>,
}

impl Audit {
    /// Appends to a file, which only its owner may read.
    pub fn start(path: &Path, policy: Policy, tasks: &ambient::Tasks) -> std::io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let (lines, mut receiver) = tokio::sync::mpsc::channel::<String>(MAX_QUEUED);
        tasks.thread("audit", move || {
            while let Some(line) = receiver.blocking_recv() {
                if let Err(error) = file.write_all(line.as_bytes()) {
                    tracing::error!(%error, "the audit log cannot be written");
                }
            }
        })?;
        Ok(Audit { policy: Arc::new(policy), lines })
    }

    pub(crate) fn level(&self, user: &User, info: &Info) -> Level {
        self.policy.level(user, info)
    }

    pub(crate) async fn write(&self, entry: &Entry<'_>) {
        let mut line = entry.to_value().to_string();
        line.push('\n');
        if self.lines.send(line).await.is_err() {
            tracing::error!("the audit log has ended");
        }
    }
}

/// One request, answered.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) id: &'a str,
    pub(crate) level: Level,
    pub(crate) info: &'a Info,
    pub(crate) uri: &'a str,
    pub(crate) user: &'a User,
    pub(crate) impersonated: Option<&'a User>,
    pub(crate) source: String,
    pub(crate) agent: &'a str,
    pub(crate) code: u16,
    pub(crate) request: Option<(Format, Bytes)>,
    pub(crate) response: Option<Bytes>,
    /// In milliseconds since 1970.
    pub(crate) received: u64,
    pub(crate) completed: u64,
}

impl Entry<'_> {
    fn to_value(&self) -> Value {
        let stage = if self.info.verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
        let mut event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": self.level.name(), "auditID": self.id, "stage": stage,
            "requestURI": self.uri, "verb": self.info.verb, "user": identity::to_value(self.user),
            "sourceIPs": [self.source], "userAgent": self.agent,
            "responseStatus": { "metadata": {}, "code": self.code },
            "requestReceivedTimestamp": micros(self.received), "stageTimestamp": micros(self.completed),
            "annotations": { "authorization.k8s.io/decision": if self.code == 403 { "forbid" } else { "allow" } },
        });
        if let Some(user) = self.impersonated {
            event["impersonatedUser"] = identity::to_value(user);
        }
        if let Some(target) = &self.info.target {
            let mut reference = json!({ "resource": target.resource, "apiVersion": target.version });
            let more = [
                ("namespace", &target.namespace),
                ("name", &target.name),
                ("apiGroup", &target.group),
                ("subresource", &target.subresource),
            ];
            for (field, value) in more.into_iter().filter(|(_, value)| !value.is_empty()) {
                reference[field] = json!(value);
            }
            event["objectRef"] = reference;
        }
        if self.level >= Level::Request
            && let Some((Format::Json, body)) = &self.request
            && let Ok(value) = object::json::parse(body)
        {
            event["requestObject"] = value;
        }
        if self.level == Level::RequestResponse
            && let Some(value) = self.response.as_ref().and_then(|body| object::json::parse(body).ok())
        {
            event["responseObject"] = value;
        }
        event
    }
}

fn micros(millis: u64) -> Option<String> {
    let nanos = u32::try_from(millis % 1000).ok()? * 1_000_000;
    time::format_micros(i64::try_from(millis / 1000).ok()?, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Query;

    #[test]
    fn the_first_rule_that_matches_decides() {
        let policy = Policy {
            rules: vec![
                json!({ "level": "None", "users": ["system:kube-proxy"], "verbs": ["watch"] }),
                json!({ "level": "None", "nonResourceURLs": ["/healthz*", "/version"] }),
                json!({ "level": "Metadata", "resources": [{ "group": "", "resources": ["secrets", "pods/log"] }] }),
                json!({ "level": "Request", "userGroups": ["dev"], "namespaces": ["a"] }),
                json!({ "level": "RequestResponse", "resources": [{ "group": "apps" }] }),
            ],
        };
        let level = |user: &str, groups: &[&str], method: &str, uri: &str| {
            let (path, query) = uri.split_once('?').map_or((uri, None), |(path, query)| (path, Some(query)));
            let info = Info::new(&method.parse().unwrap(), path, &Query::parse(query));
            policy.level(&identity::user(user, groups), &info)
        };
        for (user, groups, method, uri, expected) in [
            ("system:kube-proxy", &[][..], "GET", "/api/v1/services?watch=true", Level::None),
            ("a", &[], "GET", "/healthz/ping", Level::None),
            ("a", &[], "GET", "/api/v1/secrets", Level::Metadata),
            ("a", &[], "GET", "/api/v1/namespaces/x/pods/p/log", Level::Metadata),
            ("a", &["dev"], "POST", "/api/v1/namespaces/a/pods", Level::Request),
            ("a", &["ops"], "POST", "/api/v1/namespaces/a/pods", Level::None),
            ("a", &[], "PUT", "/apis/apps/v1/namespaces/b/deployments/d", Level::RequestResponse),
        ] {
            assert_eq!(level(user, groups, method, uri), expected, "{user} {method} {uri}");
        }
    }
}
