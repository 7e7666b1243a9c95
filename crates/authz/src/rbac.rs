//! Roles and bindings, found by whom they are for.
//!
//! The index is by subject: a decision looks up the user and each of its groups, once for the whole cluster and once
//! for the namespace, and reads the rules of the roles bound there. Roles are found when asked for and not when bound,
//! because either may come first.

use crate::request::{Attributes, Decision, Reason, User};
use crate::rule::Rule;
use object::{Value, View};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

/// All roles and bindings there are.
#[derive(Debug, Default)]
pub struct Rules {
    cluster: Scope,
    namespaces: HashMap<String, Scope>,
}

/// What stands in one namespace, or in none.
#[derive(Debug, Default)]
struct Scope {
    roles: HashMap<String, Vec<Rule>>,
    bindings: HashMap<String, Arc<Binding>>,
    /// For each user, service accounts included, the bindings that name it, sorted by name.
    users: BySubject,
    groups: BySubject,
}

type BySubject = HashMap<String, Vec<Arc<Binding>>>;

#[derive(Debug)]
struct Binding {
    name: String,
    /// Empty for a binding in the whole cluster.
    namespace: String,
    role_kind: String,
    role_name: String,
    subjects: Vec<Subject>,
}

#[derive(Debug)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
    matches: Matches,
}

#[derive(Debug)]
enum Matches {
    User(String),
    Group(String),
    Nobody,
}

impl Subject {
    fn of(subject: &Value, binding_namespace: &str) -> Self {
        let (kind, name) = (subject.text("kind"), subject.text("name"));
        let namespace = match subject.text("namespace") {
            "" => binding_namespace,
            namespace => namespace,
        };
        let matches = match kind {
            "User" => Matches::User(name.to_owned()),
            "Group" => Matches::Group(name.to_owned()),
            "ServiceAccount" if !namespace.is_empty() => {
                Matches::User(format!("system:serviceaccount:{namespace}:{name}"))
            }
            _ => Matches::Nobody,
        };
        Subject { kind: kind.to_owned(), name: name.to_owned(), namespace: namespace.to_owned(), matches }
    }

    fn matches(&self, user: &User) -> bool {
        match &self.matches {
            Matches::User(name) => *name == user.name,
            Matches::Group(group) => user.is_in(group),
            Matches::Nobody => false,
        }
    }
}

impl Binding {
    fn of(namespace: &str, name: &str, binding: &Value) -> Self {
        let role = binding.at("roleRef");
        Binding {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            role_kind: role.text("kind").to_owned(),
            role_name: role.text("name").to_owned(),
            subjects: binding.items("subjects").iter().map(|subject| Subject::of(subject, namespace)).collect(),
        }
    }
}

impl Scope {
    fn index(&mut self, matches: &Matches) -> Option<(&mut BySubject, String)> {
        match matches {
            Matches::User(name) => Some((&mut self.users, name.clone())),
            Matches::Group(name) => Some((&mut self.groups, name.clone())),
            Matches::Nobody => None,
        }
    }

    fn set_binding(&mut self, name: &str, binding: Option<Binding>) {
        if let Some(old) = self.bindings.remove(name) {
            for subject in &old.subjects {
                let Some((index, key)) = self.index(&subject.matches) else { continue };
                let Some(bindings) = index.get_mut(&key) else { continue };
                bindings.retain(|binding| binding.name != name);
                if bindings.is_empty() {
                    index.remove(&key);
                }
            }
        }
        let Some(binding) = binding.map(Arc::new) else { return };
        for subject in &binding.subjects {
            let Some((index, key)) = self.index(&subject.matches) else { continue };
            let bindings = index.entry(key).or_default();
            if let Err(at) = bindings.binary_search_by(|other| other.name.as_str().cmp(name)) {
                bindings.insert(at, binding.clone());
            }
        }
        self.bindings.insert(name.to_owned(), binding);
    }

    fn set_role(&mut self, name: &str, role: Option<&Value>) {
        match role {
            Some(role) => self.roles.insert(name.to_owned(), Rule::all(role)),
            None => self.roles.remove(name),
        };
    }

    fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.bindings.is_empty()
    }

    /// The bindings that name a user, itself or by a group. One that does both comes twice.
    fn bindings_of<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Arc<Binding>> {
        let by_name = self.users.get(&user.name).into_iter().flatten();
        by_name.chain(user.groups.iter().flat_map(|group| self.groups.get(group).into_iter().flatten()))
    }
}

/// A binding that allows something, and the subject in it that the user is.
#[derive(Clone, Copy)]
pub struct Grant<'a> {
    binding: &'a Binding,
    subject: &'a Subject,
}

impl fmt::Debug for Grant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Grant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { name, namespace, role_kind, role_name, .. } = self.binding;
        match namespace.as_str() {
            "" => write!(f, "ClusterRoleBinding {name:?}")?,
            namespace => write!(f, "RoleBinding \"{name}/{namespace}\"")?,
        }
        let Subject { kind, name, namespace, .. } = self.subject;
        write!(f, " of {role_kind} {role_name:?} to {kind} ")?;
        match kind.as_str() {
            "ServiceAccount" => write!(f, "\"{name}/{namespace}\""),
            _ => write!(f, "{name:?}"),
        }
    }
}

/// A binding refers to a role that is not there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoleNotFound {
    kind: String,
    name: String,
}

impl fmt::Display for RoleNotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.as_str() {
            "Role" | "ClusterRole" => {
                write!(f, "{}.rbac.authorization.k8s.io {:?} not found", self.kind.to_lowercase(), self.name)
            }
            kind => write!(f, "unsupported role reference kind: {kind:?}"),
        }
    }
}

impl std::error::Error for RoleNotFound {}

/// What a user may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    pub resource_rules: Vec<Rule>,
    pub non_resource_rules: Vec<Rule>,
    /// Whether the user may do more than is listed.
    pub incomplete: bool,
    /// What went wrong on the way; what is listed holds nevertheless.
    pub errors: Vec<String>,
}

impl Rules {
    /// Takes note of an object, or with none, of its deletion. Other kinds do not matter here.
    pub fn apply(&mut self, kind: &str, namespace: &str, name: &str, object: Option<&Value>) {
        let binding = || object.map(|object| Binding::of(namespace, name, object));
        match kind {
            "ClusterRole" => self.cluster.set_role(name, object),
            "ClusterRoleBinding" => self.cluster.set_binding(name, object.map(|object| Binding::of("", name, object))),
            "Role" => self.in_namespace(namespace, |scope| scope.set_role(name, object)),
            "RoleBinding" => self.in_namespace(namespace, |scope| scope.set_binding(name, binding())),
            _ => {}
        }
    }

    fn in_namespace(&mut self, namespace: &str, change: impl FnOnce(&mut Scope)) {
        let scope = self.namespaces.entry(namespace.to_owned()).or_default();
        change(scope);
        if scope.is_empty() {
            self.namespaces.remove(namespace);
        }
    }

    /// Whether the roles bound to a user allow a request.
    pub fn authorize<'a>(&'a self, request: &Attributes<'a>) -> Decision<'a> {
        let mut missing = BTreeSet::new();
        for binding in self.bindings_of(request.user, request.namespace) {
            match self.role(&binding.role_kind, &binding.role_name, &binding.namespace) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(request)) => {
                    let subject = binding.subjects.iter().find(|subject| subject.matches(request.user));
                    let grant = subject.map_or(Reason::None, |subject| Reason::Grant(Grant { binding, subject }));
                    return Decision::Allow(grant);
                }
                Ok(_) => {}
                Err(error) => {
                    missing.insert(error);
                }
            }
        }
        let reason = if missing.is_empty() { Reason::None } else { Reason::Missing(missing.into_iter().collect()) };
        Decision::NoOpinion(reason)
    }

    /// The bindings that name a user, in the whole cluster and, if there is one, in the namespace.
    fn bindings_of<'a>(&'a self, user: &'a User, namespace: &str) -> impl Iterator<Item = &'a Arc<Binding>> {
        let local = self.namespaces.get(namespace).filter(|_| !namespace.is_empty());
        self.cluster.bindings_of(user).chain(local.into_iter().flat_map(|scope| scope.bindings_of(user)))
    }

    /// The rules of a role that a binding refers to; the namespace is that of the binding.
    pub fn role(&self, kind: &str, name: &str, namespace: &str) -> Result<&[Rule], RoleNotFound> {
        let scope = match kind {
            "ClusterRole" => Some(&self.cluster),
            "Role" => self.namespaces.get(namespace),
            _ => None,
        };
        let rules = scope.and_then(|scope| scope.roles.get(name));
        rules.map(Vec::as_slice).ok_or_else(|| RoleNotFound { kind: kind.to_owned(), name: name.to_owned() })
    }

    /// Everything the roles bound to a user allow in a namespace, the whole cluster included.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Granted {
        let (mut granted, mut seen, mut missing) = (Granted::default(), BTreeSet::new(), BTreeSet::new());
        for binding in self.bindings_of(user, namespace) {
            if !seen.insert((&binding.namespace, &binding.name)) {
                continue;
            }
            match self.role(&binding.role_kind, &binding.role_name, &binding.namespace) {
                Ok(rules) => rules.iter().for_each(|rule| granted.add(rule)),
                Err(error) => missing.extend(Some(error)),
            }
        }
        granted.errors = missing.iter().map(RoleNotFound::to_string).collect();
        granted
    }
}

impl Granted {
    fn add(&mut self, rule: &Rule) {
        if !rule.resources.is_empty() {
            self.resource_rules.push(Rule { non_resource_urls: vec![], ..rule.clone() });
        }
        if !rule.non_resource_urls.is_empty() {
            let (verbs, non_resource_urls) = (rule.verbs.clone(), rule.non_resource_urls.clone());
            self.non_resource_rules.push(Rule { verbs, non_resource_urls, ..Rule::default() });
        }
    }

    /// All rules, to be compared with others.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.resource_rules.iter().chain(&self.non_resource_rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn user(name: &str, groups: &[&str]) -> User {
        User {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..User::default()
        }
    }

    fn role(verbs: &[&str], resources: &[&str]) -> Value {
        json!({ "rules": [{ "verbs": verbs, "apiGroups": [""], "resources": resources }] })
    }

    fn binding(role_kind: &str, role: &str, subjects: &[(&str, &str, &str)]) -> Value {
        let subjects: Value = subjects
            .iter()
            .map(|(kind, namespace, name)| json!({ "kind": kind, "namespace": namespace, "name": name }))
            .collect();
        json!({ "roleRef": { "kind": role_kind, "name": role }, "subjects": subjects })
    }

    /// A cluster role to get pods and a role in `n` to get secrets, bound to several.
    fn rules() -> Rules {
        let mut rules = Rules::default();
        let everywhere =
            [("User", "", "u"), ("Group", "", "g"), ("ServiceAccount", "n", "s"), ("ServiceAccount", "", "t")];
        let local = [("ServiceAccount", "", "t"), ("User", "", "v")];
        rules.apply("ClusterRole", "", "pods", Some(&role(&["get"], &["pods"])));
        rules.apply("Role", "n", "secrets", Some(&role(&["get"], &["secrets"])));
        rules.apply("ClusterRoleBinding", "", "everywhere", Some(&binding("ClusterRole", "pods", &everywhere)));
        rules.apply("RoleBinding", "n", "local", Some(&binding("Role", "secrets", &local)));
        rules.apply("RoleBinding", "n", "pods", Some(&binding("ClusterRole", "pods", &[("User", "", "w")])));
        rules
    }

    #[test]
    fn a_binding_allows_what_its_role_says_to_its_subjects() {
        let rules = rules();
        for (name, groups, resource, namespace, reason) in [
            ("u", &[][..], "pods", "x", "ClusterRoleBinding \"everywhere\" of ClusterRole \"pods\" to User \"u\""),
            ("x", &["f", "g"], "pods", "", "ClusterRoleBinding \"everywhere\" of ClusterRole \"pods\" to Group \"g\""),
            (
                "system:serviceaccount:n:s",
                &[],
                "pods",
                "x",
                "ClusterRoleBinding \"everywhere\" of ClusterRole \"pods\" to ServiceAccount \"s/n\"",
            ),
            ("system:serviceaccount:n:t", &[], "pods", "n", ""),
            (
                "system:serviceaccount:n:t",
                &[],
                "secrets",
                "n",
                "RoleBinding \"local/n\" of Role \"secrets\" to ServiceAccount \"t/n\"",
            ),
            ("v", &[], "secrets", "n", "RoleBinding \"local/n\" of Role \"secrets\" to User \"v\""),
            ("v", &[], "secrets", "m", ""),
            ("v", &[], "secrets", "", ""),
            ("w", &[], "pods", "n", "RoleBinding \"pods/n\" of ClusterRole \"pods\" to User \"w\""),
            ("w", &[], "pods", "m", ""),
            ("g", &[], "pods", "n", ""),
        ] {
            let user = user(name, groups);
            let decision =
                rules.authorize(&Attributes { namespace, ..Attributes::resource(&user, "get", "", resource) });
            let expected = if reason.is_empty() { String::new() } else { format!("RBAC: allowed by {reason}") };
            assert_eq!(decision.reason().to_string(), expected, "{name} {resource} {namespace}");
            assert_eq!(decision.is_allowed(), !reason.is_empty(), "{name} {resource} {namespace}");
        }
    }

    #[test]
    fn changes_take_effect_and_leave_nothing_behind() {
        let mut rules = rules();
        let (u, v) = (user("u", &[]), user("v", &[]));
        let gets = |rules: &Rules, user: &User, resource: &str| {
            rules
                .authorize(&Attributes { namespace: "n", ..Attributes::resource(user, "get", "", resource) })
                .is_allowed()
        };
        rules.apply(
            "ClusterRoleBinding",
            "",
            "everywhere",
            Some(&binding("ClusterRole", "pods", &[("User", "", "v")])),
        );
        assert!(!gets(&rules, &u, "pods") && gets(&rules, &v, "pods"));
        rules.apply("ClusterRole", "", "pods", Some(&role(&["get"], &["nodes"])));
        assert!(!gets(&rules, &v, "pods") && gets(&rules, &v, "nodes"));
        for (kind, namespace, name) in [
            ("ClusterRoleBinding", "", "everywhere"),
            ("RoleBinding", "n", "local"),
            ("RoleBinding", "n", "pods"),
            ("Role", "n", "secrets"),
            ("ClusterRole", "", "pods"),
        ] {
            rules.apply(kind, namespace, name, None);
        }
        assert!(!gets(&rules, &v, "nodes"));
        assert!(rules.namespaces.is_empty() && rules.cluster.is_empty());
        assert!(rules.cluster.users.is_empty() && rules.cluster.groups.is_empty());
    }

    #[test]
    fn roles_that_do_not_exist_are_named() {
        let mut rules = Rules::default();
        let v = user("v", &[]);
        let request = Attributes { namespace: "n", ..Attributes::resource(&v, "get", "", "pods") };
        let subjects = [("User", "", "v")];
        rules.apply("ClusterRoleBinding", "", "a", Some(&binding("ClusterRole", "gone", &subjects)));
        let one = "RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found";
        assert_eq!(rules.authorize(&request).reason().to_string(), one);
        rules.apply("RoleBinding", "n", "b", Some(&binding("Role", "gone", &subjects)));
        rules.apply("RoleBinding", "n", "c", Some(&binding("Group", "odd", &subjects)));
        let all = "RBAC: [clusterrole.rbac.authorization.k8s.io \"gone\" not found, \
            unsupported role reference kind: \"Group\", role.rbac.authorization.k8s.io \"gone\" not found]";
        assert_eq!(rules.authorize(&request).reason().to_string(), all);
        assert_eq!(rules.rules_for(&v, "n").errors.len(), 3);
    }

    #[test]
    fn everything_that_is_allowed_is_listed_once() {
        let mut rules = rules();
        let both = json!({ "rules": [
            { "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] },
            { "verbs": ["get"], "nonResourceURLs": ["/x"] },
        ] });
        rules.apply("ClusterRole", "", "pods", Some(&both));
        let granted = rules.rules_for(&user("u", &["g"]), "n");
        assert_eq!((granted.resource_rules.len(), granted.non_resource_rules.len()), (1, 1));
        assert_eq!(granted.non_resource_rules[0].non_resource_urls, ["/x"]);
        assert_eq!(granted.rules().count(), 2);
        assert_eq!(rules.rules_for(&user("v", &[]), "n").resource_rules[0].resources, ["secrets"]);
        assert_eq!(rules.rules_for(&user("v", &[]), "m"), Granted::default());
    }
}
