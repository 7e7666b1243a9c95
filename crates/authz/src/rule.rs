//! One rule of a role: what it allows, and how it reads.

use crate::request::Attributes;
use object::{Value, View, json};
use std::fmt;

/// Verbs on resources, or on paths that are no resources. An empty list allows nothing, except that no resource names
/// mean all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    pub verbs: Vec<String>,
    /// The core group is the empty text.
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    pub resource_names: Vec<String>,
    pub non_resource_urls: Vec<String>,
}

/// Stands for everything, wherever it stands.
pub(crate) const ALL: &str = "*";

impl Rule {
    pub fn from_value(rule: &Value) -> Self {
        let list = |field: &str| rule.items(field).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Rule {
            verbs: list("verbs"),
            api_groups: list("apiGroups"),
            resources: list("resources"),
            resource_names: list("resourceNames"),
            non_resource_urls: list("nonResourceURLs"),
        }
    }

    /// The rules of a role.
    pub fn all(role: &Value) -> Vec<Rule> {
        role.items("rules").iter().map(Rule::from_value).collect()
    }

    pub fn to_value(&self) -> Value {
        let mut rule = json!({ "verbs": self.verbs });
        for (field, list) in [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !list.is_empty() {
                rule[field] = json!(list);
            }
        }
        rule
    }

    pub fn allows(&self, request: &Attributes<'_>) -> bool {
        if !includes(&self.verbs, request.verb) {
            return false;
        }
        if !request.is_resource_request {
            return self.non_resource_urls.iter().any(|url| url_covers(url, request.path));
        }
        includes(&self.api_groups, request.api_group)
            && self.resources.iter().any(|resource| resource_allows(resource, request))
            && (self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == request.name))
    }
}

/// Whether a list has the word, or the one that stands for all.
pub(crate) fn includes(list: &[String], word: &str) -> bool {
    list.iter().any(|item| item == ALL || item == word)
}

/// Whether `pods`, `pods/log`, `*/log` or `*` stands for what is asked for.
fn resource_allows(resource: &str, request: &Attributes<'_>) -> bool {
    if resource == ALL {
        return true;
    }
    if request.subresource.is_empty() {
        return resource == request.resource;
    }
    let Some(parent) = resource.strip_suffix(request.subresource).and_then(|rest| rest.strip_suffix('/')) else {
        return false;
    };
    parent == ALL || parent == request.resource
}

/// Whether a path of a rule, which may end in stars, stands for another path.
pub(crate) fn url_covers(rule: &str, path: &str) -> bool {
    rule == path || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}

/// As messages show it: `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let present = parts.iter().filter(|(_, list)| !list.is_empty());
        let texts: Vec<_> = present.map(|(name, list)| format!("{name}:{}", quoted(list))).collect();
        write!(f, "{{{}}}", texts.join(", "))
    }
}

/// `["a" "b"]`
pub(crate) fn quoted(list: &[String]) -> String {
    let texts: Vec<_> = list.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::User;

    #[test]
    fn a_rule_allows_what_all_its_lists_include() {
        let user = User::default();
        let request = |verb, group, resource, subresource, name| Attributes {
            subresource,
            name,
            ..Attributes::resource(&user, verb, group, resource)
        };
        let rule = |verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]| {
            Rule::from_value(&json!({
                "verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names,
            }))
        };
        for (rule, request, allowed) in [
            (rule(&["get"], &[""], &["pods"], &[]), request("get", "", "pods", "", ""), true),
            (rule(&["get"], &[""], &["pods"], &[]), request("list", "", "pods", "", ""), false),
            (rule(&["get"], &[""], &["pods"], &[]), request("get", "apps", "pods", "", ""), false),
            (rule(&["get"], &[""], &["pods"], &[]), request("get", "", "pods", "log", ""), false),
            (rule(&["get"], &[""], &["pods/log"], &[]), request("get", "", "pods", "log", ""), true),
            (rule(&["get"], &[""], &["pods/log"], &[]), request("get", "", "pods", "", ""), false),
            (rule(&["get"], &[""], &["pods/*"], &[]), request("get", "", "pods", "log", ""), false),
            (rule(&["*"], &["*"], &["*"], &[]), request("get", "x", "pods", "log", "n"), true),
            (rule(&["get"], &["apps"], &["*/scale"], &[]), request("get", "apps", "x", "scale", ""), true),
            (rule(&["get"], &["apps"], &["*/scale"], &[]), request("get", "apps", "x", "status", ""), false),
            (rule(&["get"], &["apps"], &["*/scale"], &[]), request("get", "apps", "x", "", ""), false),
            (rule(&["get"], &[""], &["pods"], &["a"]), request("get", "", "pods", "", "a"), true),
            (rule(&["get"], &[""], &["pods"], &["a"]), request("get", "", "pods", "", "b"), false),
            (rule(&["list"], &[""], &["pods"], &["a"]), request("list", "", "pods", "", ""), false),
            (rule(&[], &[""], &["pods"], &[]), request("get", "", "pods", "", ""), false),
            (rule(&["get"], &[], &["pods"], &[]), request("get", "", "pods", "", ""), false),
        ] {
            assert_eq!(rule.allows(&request), allowed, "{rule} {request:?}");
        }
    }

    #[test]
    fn paths_match_to_the_star_at_their_end() {
        let user = User::default();
        for (url, path, allowed) in [
            ("/healthz", "/healthz", true),
            ("/healthz", "/healthz/etcd", false),
            ("/healthz/*", "/healthz/etcd", true),
            ("/healthz/*", "/healthz", false),
            ("/api*", "/apis/apps", true),
            ("*", "/x", true),
            ("/a/*/b", "/a/x/b", false),
        ] {
            let rule = Rule::from_value(&json!({ "verbs": ["get"], "nonResourceURLs": [url] }));
            let request = Attributes { verb: "get", path, ..Attributes::of(&user) };
            assert_eq!(rule.allows(&request), allowed, "{url} {path}");
        }
    }

    #[test]
    fn a_rule_survives_being_written_and_read() {
        let value = json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a", "b"] });
        let rule = Rule::from_value(&value);
        assert_eq!(rule.to_value(), value);
        assert_eq!(rule.to_string(), r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["a" "b"], Verbs:["get"]}"#);
    }
}
