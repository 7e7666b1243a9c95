//! Which FlowSchema a request falls under. Pure functions over an index that is made anew when a schema changes.
//!
//! Schemas are asked in the order of their precedence, and of their names where that is the same; the first with a rule
//! for the request decides. The index is by subject: a decision looks up the user and each of its groups, and among the
//! rules found there takes the first that matches. It allocates nothing, and what it costs does not depend on how many
//! schemas there are for others.

use crate::request::{Info, Target};
use authz::User;
use object::{Value, View};
use std::collections::HashMap;
use std::sync::Arc;

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const EVERYTHING: &str = "*";

/// A FlowSchema as far as it decides about requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Schema {
    pub(super) name: String,
    pub(super) uid: String,
    /// The priority level that its requests are served at.
    pub(super) level: String,
    precedence: i64,
    pub(super) distinguisher: Distinguisher,
    rules: Vec<(Vec<Subject>, Arc<Rule>)>,
}

/// What tells the flows of a schema apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Distinguisher {
    #[default]
    None,
    ByUser,
    ByNamespace,
}

#[derive(Clone, Debug)]
enum Subject {
    /// Service accounts are users, too.
    User(String),
    Group(String),
    /// Every service account of a namespace.
    Accounts(String),
    Everybody,
}

#[derive(Debug)]
struct Rule {
    resources: Vec<ResourceRule>,
    urls: Vec<UrlRule>,
}

/// Names, or all that there are.
#[derive(Debug)]
enum Words {
    All,
    Some(Vec<String>),
}

#[derive(Debug)]
struct ResourceRule {
    verbs: Words,
    groups: Words,
    /// With subresources; none: all.
    resources: Option<Vec<(String, String)>>,
    namespaces: Words,
    cluster: bool,
}

#[derive(Debug)]
struct UrlRule {
    verbs: Words,
    /// A path as such, and what paths below it begin with; none: all.
    urls: Option<Vec<(String, String)>>,
}

impl Schema {
    pub(super) fn read(object: &Value) -> Self {
        let (metadata, spec) = (object.at("metadata"), object.at("spec"));
        let rules = spec.items("rules").iter().map(|rule| {
            let subjects = rule.items("subjects").iter().filter_map(Subject::read).collect();
            let resources = rule.items("resourceRules").iter().map(ResourceRule::read).collect();
            let urls = rule.items("nonResourceRules").iter().map(UrlRule::read).collect();
            (subjects, Arc::new(Rule { resources, urls }))
        });
        Schema {
            name: metadata.text("name").to_owned(),
            uid: metadata.text("uid").to_owned(),
            level: spec.at("priorityLevelConfiguration").text("name").to_owned(),
            precedence: spec.int("matchingPrecedence").unwrap_or_default(),
            distinguisher: match spec.at("distinguisherMethod").text("type") {
                "ByUser" => Distinguisher::ByUser,
                "ByNamespace" => Distinguisher::ByNamespace,
                _ => Distinguisher::None,
            },
            rules: rules.collect(),
        }
    }
}

impl Subject {
    fn read(subject: &Value) -> Option<Self> {
        let named = |field: &str| subject.at(field).text("name").to_owned();
        Some(match subject.text("kind") {
            "User" | "Group" if [named("user"), named("group")].iter().any(|name| name == EVERYTHING) => {
                Subject::Everybody
            }
            "User" => Subject::User(named("user")),
            "Group" => Subject::Group(named("group")),
            "ServiceAccount" => {
                let (namespace, name) = (subject.at("serviceAccount").text("namespace"), named("serviceAccount"));
                match name.as_str() {
                    EVERYTHING => Subject::Accounts(namespace.to_owned()),
                    name => Subject::User(format!("{SERVICE_ACCOUNT}{namespace}:{name}")),
                }
            }
            _ => return None,
        })
    }
}

impl Words {
    fn read(rule: &Value, field: &str) -> Self {
        let words = rule.items(field).iter().filter_map(Value::as_str);
        if words.clone().any(|word| word == EVERYTHING) {
            Words::All
        } else {
            Words::Some(words.map(str::to_owned).collect())
        }
    }

    fn contain(&self, word: &str) -> bool {
        match self {
            Words::All => true,
            Words::Some(words) => words.iter().any(|one| one == word),
        }
    }

    /// Each of them in another form.
    fn map<T>(self, form: impl Fn(String) -> T) -> Option<Vec<T>> {
        match self {
            Words::All => None,
            Words::Some(words) => Some(words.into_iter().map(form).collect()),
        }
    }
}

impl ResourceRule {
    fn read(rule: &Value) -> Self {
        ResourceRule {
            verbs: Words::read(rule, "verbs"),
            groups: Words::read(rule, "apiGroups"),
            resources: Words::read(rule, "resources").map(|resource| match resource.split_once('/') {
                Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
                None => (resource, String::new()),
            }),
            namespaces: Words::read(rule, "namespaces"),
            cluster: rule.flag("clusterScope"),
        }
    }

    fn matches(&self, verb: &str, target: &Target) -> bool {
        let is_target = |(resource, subresource): &(String, String)| {
            *resource == target.resource && *subresource == target.subresource
        };
        let in_scope = match target.namespace.as_str() {
            "" => self.cluster,
            namespace => self.namespaces.contain(namespace),
        };
        in_scope
            && self.verbs.contain(verb)
            && self.resources.as_ref().is_none_or(|resources| resources.iter().any(is_target))
            && self.groups.contain(&target.group)
    }
}

impl UrlRule {
    fn read(rule: &Value) -> Self {
        let urls = Words::read(rule, "nonResourceURLs").map(|url| {
            let below = url.trim_end_matches('*').trim_end_matches('/').to_owned() + "/";
            (url, below)
        });
        UrlRule { verbs: Words::read(rule, "verbs"), urls }
    }

    fn matches(&self, verb: &str, path: &str) -> bool {
        let is_path = |(url, below): &(String, String)| url == path || path.starts_with(below.as_str());
        self.verbs.contain(verb) && self.urls.as_ref().is_none_or(|urls| urls.iter().any(is_path))
    }
}

impl Rule {
    fn matches(&self, info: &Info) -> bool {
        match &info.target {
            Some(target) => self.resources.iter().any(|rule| rule.matches(info.verb, target)),
            None => self.urls.iter().any(|rule| rule.matches(info.verb, &info.path)),
        }
    }
}

/// Numbers of rules, from the first that is asked to the last.
type Numbers = Vec<usize>;

/// All schemas that decide, in their order.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The rules of all schemas, each with the place of its schema.
    rules: Vec<(usize, Arc<Rule>)>,
    users: HashMap<String, Numbers>,
    groups: HashMap<String, Numbers>,
    /// By the namespace of a service account.
    accounts: HashMap<String, Numbers>,
    everybody: Numbers,
}

/// Puts schemas into the order in which they are asked.
pub(super) fn order(schemas: &mut [Arc<Schema>]) {
    schemas.sort_by(|one, other| (one.precedence, &one.name).cmp(&(other.precedence, &other.name)));
}

impl Index {
    /// Of schemas that are in order.
    pub(super) fn new(schemas: &[Arc<Schema>]) -> Self {
        let mut index = Index::default();
        for (place, schema) in schemas.iter().enumerate() {
            for (subjects, rule) in &schema.rules {
                let number = index.rules.len();
                index.rules.push((place, rule.clone()));
                for subject in subjects {
                    index.of(subject).push(number);
                }
            }
        }
        index
    }

    fn of(&mut self, subject: &Subject) -> &mut Numbers {
        match subject {
            Subject::User(name) => self.users.entry(name.clone()).or_default(),
            Subject::Group(name) => self.groups.entry(name.clone()).or_default(),
            Subject::Accounts(namespace) => self.accounts.entry(namespace.clone()).or_default(),
            Subject::Everybody => &mut self.everybody,
        }
    }

    /// The place of the schema that a request falls under, if there is one.
    pub(super) fn classify(&self, user: &User, info: &Info) -> Option<usize> {
        let account = user.name.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':'));
        let of_groups = user.groups.iter().map(|group| self.groups.get(group.as_str()));
        let lists = of_groups
            .chain([self.users.get(user.name.as_str()), Some(&self.everybody)])
            .chain([account.and_then(|(namespace, _)| self.accounts.get(namespace))]);
        let mut first = self.rules.len();
        for numbers in lists.flatten() {
            let earlier = numbers.iter().take_while(|number| **number < first);
            let matching =
                earlier.copied().find(|number| self.rules.get(*number).is_some_and(|(_, rule)| rule.matches(info)));
            first = matching.unwrap_or(first);
        }
        self.rules.get(first).map(|(place, _)| *place)
    }
}

#[cfg(test)]
mod tests;
