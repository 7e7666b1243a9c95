//! What nodes may do: with most things what the role `system:node` says, but with what belongs to pods, volumes and
//! nodes only as far as it is theirs.
//!
//! A node may change only its own objects. Where the request does not say whose they are, it is allowed here and left to
//! admission, which sees the object.

mod graph;
mod references;

pub use graph::Graph;

use crate::request::{Attributes, Decision, Reason, User};
use crate::rule::Rule;
use graph::Kind;
use object::View;
use std::sync::LazyLock;

/// The group of all nodes; alone it makes nobody a node.
const NODES: &str = "system:nodes";

/// The name of the node that a user is.
pub fn name(user: &User) -> Option<&str> {
    user.name.strip_prefix("system:node:").filter(|_| user.is_in(NODES))
}

/// Whether a node may do something. Who is no node is none of its business.
pub fn authorize<'a>(request: &Attributes<'_>, graph: &Graph) -> Decision<'a> {
    let Some(node) = name(request.user) else { return Decision::NoOpinion(Reason::None) };
    if node.is_empty() {
        return Decision::NoOpinion(Reason::Written(format!("unknown node for user {:?}", request.user.name)));
    }
    let asked = Asked { node, request, graph };
    let verdict = match (request.is_resource_request, request.api_group, request.resource) {
        (true, "", "secrets") => asked.read(Kind::Secret),
        (true, "", "configmaps") => asked.read(Kind::ConfigMap),
        (true, "", "persistentvolumeclaims") if request.subresource == "status" => asked.write_claim_status(),
        (true, "", "persistentvolumeclaims") => asked.get(Kind::Claim),
        (true, "", "persistentvolumes") => asked.get(Kind::Volume),
        (true, "resource.k8s.io", "resourceclaims") => asked.get(Kind::ResourceClaim),
        (true, "storage.k8s.io", "volumeattachments") => asked.get(Kind::VolumeAttachment),
        (true, "", "serviceaccounts") => asked.service_account(),
        (true, "coordination.k8s.io", "leases") => asked.lease(),
        (true, "storage.k8s.io", "csinodes") => asked.csi_node(),
        (true, "resource.k8s.io", "resourceslices") => asked.resource_slice(),
        (true, "", "nodes") => asked.node(),
        (true, "", "pods") => asked.pod(),
        _ => asked.by_role(),
    };
    match verdict {
        Ok(()) => Decision::Allow(Reason::None),
        Err(reason) => Decision::NoOpinion(reason),
    }
}

/// Allowed, or why not.
type Verdict<'a> = Result<(), Reason<'a>>;

const ALLOWED: Verdict<'static> = Ok(());

fn refused<'a>(why: &'static str) -> Verdict<'a> {
    Err(Reason::Text(why))
}

fn unless<'a>(wrong: bool, why: &'static str) -> Verdict<'a> {
    if wrong { refused(why) } else { ALLOWED }
}

struct Asked<'r> {
    node: &'r str,
    request: &'r Attributes<'r>,
    graph: &'r Graph,
}

impl<'a> Asked<'_> {
    /// What is the same for all nodes.
    fn by_role(&self) -> Verdict<'a> {
        static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
            let objects = crate::default_objects(&|_| false);
            let role = objects.iter().find(|object| {
                object.text("kind") == "ClusterRole" && object.at("metadata").text("name") == "system:node"
            });
            Rule::all(role.expect("the default policy has a role for nodes"))
        });
        if RULES.iter().any(|rule| rule.allows(self.request)) { ALLOWED } else { Err(Reason::None) }
    }

    /// Whether the object that is asked for has to do with the node.
    fn related(&self, kind: Kind) -> Verdict<'a> {
        unless(self.request.name.is_empty(), "No Object name found")?;
        self.connected(kind)
    }

    fn connected(&self, kind: Kind) -> Verdict<'a> {
        if self.graph.connects(kind, self.request.namespace, self.request.name, self.node) {
            return ALLOWED;
        }
        Err(Reason::Written(format!("no relationship found between node '{}' and this object", self.node)))
    }

    fn is_verb(&self, verbs: &[&str]) -> bool {
        verbs.contains(&self.request.verb)
    }

    fn has_subresource(&self) -> bool {
        !self.request.subresource.is_empty()
    }

    fn get(&self, kind: Kind) -> Verdict<'a> {
        unless(!self.is_verb(&["get"]), "can only get individual resources of this type")?;
        unless(self.has_subresource(), "cannot get subresource")?;
        self.related(kind)
    }

    /// A list or watch of a single object is a read of that object.
    fn read(&self, kind: Kind) -> Verdict<'a> {
        unless(!self.is_verb(&["get", "list", "watch"]), "can only read resources of this type")?;
        unless(self.has_subresource(), "cannot read subresource")?;
        unless(self.request.namespace.is_empty(), "can only read namespaced object of this type")?;
        self.related(kind)
    }

    fn write_claim_status(&self) -> Verdict<'a> {
        unless(!self.is_verb(&["update", "patch"]), "can only get/update/patch this type")?;
        self.related(Kind::Claim)
    }

    fn service_account(&self) -> Verdict<'a> {
        if self.is_verb(&["get"]) && !self.has_subresource() {
            return self.read(Kind::ServiceAccount);
        }
        let is_create = self.is_verb(&["create"]) && !self.request.name.is_empty();
        unless(!is_create, "can only create tokens for individual service accounts")?;
        unless(self.request.subresource != "token", "can only create token subresource of serviceaccount")?;
        self.connected(Kind::ServiceAccount)
    }

    /// Whether the object has the name of the node, as far as the request names one.
    fn is_own(&self) -> bool {
        self.is_verb(&["create"]) || self.request.name == self.node
    }

    fn lease(&self) -> Verdict<'a> {
        let known = self.is_verb(&["get", "create", "update", "patch", "delete"]);
        unless(!known, "can only get, create, update, patch, or delete a node lease")?;
        let elsewhere = self.request.namespace != "kube-node-lease";
        unless(elsewhere, "can only access leases in the \"kube-node-lease\" system namespace")?;
        unless(!self.is_own(), "can only access node lease with the same name as the requesting node")
    }

    fn csi_node(&self) -> Verdict<'a> {
        let known = self.is_verb(&["get", "create", "update", "patch", "delete"]);
        unless(!known, "can only get, create, update, patch, or delete a CSINode")?;
        unless(self.has_subresource(), "cannot authorize CSINode subresources")?;
        unless(!self.is_own(), "can only access CSINode with the same name as the requesting node")
    }

    /// Whether the request is limited to what is on this node.
    fn selects_node(&self, field: &str) -> bool {
        self.request.field_selector.is_some_and(|selector| selector.requires(field) == Some(self.node))
    }

    fn resource_slice(&self) -> Verdict<'a> {
        unless(self.has_subresource(), "cannot authorize ResourceSlice subresources")?;
        match self.request.verb {
            "create" => ALLOWED,
            "get" | "update" | "patch" | "delete" => self.related(Kind::ResourceSlice),
            "watch" | "list" | "deletecollection" => unless(
                !self.selects_node("spec.nodeName"),
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => refused(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, \
                 delete, deletecollection",
            ),
        }
    }

    /// A node may look for its own object before that exists, so this does not depend on what is there.
    fn node(&self) -> Verdict<'a> {
        let (node, name) = (self.node, self.request.name);
        match (self.request.subresource, self.request.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => ALLOWED,
            ("", "get" | "list" | "watch") if name == node => ALLOWED,
            ("", "get" | "list" | "watch") => Err(Reason::Written(match name {
                "" => format!("node '{node}' cannot read all nodes, only its own Node object"),
                name => format!("node '{node}' cannot read '{name}', only its own Node object"),
            })),
            _ => Err(Reason::None),
        }
    }

    fn pod(&self) -> Verdict<'a> {
        match (self.request.subresource, self.request.verb) {
            ("", "get") => self.get(Kind::Pod),
            ("", "list" | "watch") if self.selects_node("spec.nodeName") => ALLOWED,
            ("", "list" | "watch") if !self.request.name.is_empty() => self.related(Kind::Pod),
            ("", "list" | "watch") => refused("can only list/watch pods with spec.nodeName field selector"),
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => ALLOWED,
            _ => Err(Reason::None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;
    use object::selector::FieldSelector;

    fn graph() -> Graph {
        let mut graph = Graph::default();
        let volumes = json!([
            { "secret": { "secretName": "s" } }, { "configMap": { "name": "c" } },
            { "persistentVolumeClaim": { "claimName": "claim" } },
        ]);
        let spec = json!({ "nodeName": "me", "serviceAccountName": "a", "volumes": volumes });
        graph.apply("Pod", "n", "p", Some(&json!({ "metadata": { "name": "p" }, "spec": spec })));
        let claim = json!({ "namespace": "n", "name": "claim" });
        graph.apply("PersistentVolume", "", "v", Some(&json!({ "spec": { "claimRef": claim } })));
        graph.apply("VolumeAttachment", "", "va", Some(&json!({ "spec": { "nodeName": "me" } })));
        graph.apply("ResourceSlice", "", "rs", Some(&json!({ "spec": { "nodeName": "me" } })));
        graph
    }

    fn user(name: &str, groups: &[&str]) -> User {
        User {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..User::default()
        }
    }

    /// What is decided about `verb resource[.group][/subresource] [namespace/]name`.
    fn decide(node: &User, text: &str, selector: Option<&FieldSelector>) -> (bool, String) {
        let (verb, rest) = text.split_once(' ').unwrap();
        let (what, object) = rest.split_once(' ').unwrap_or((rest, ""));
        let (what, subresource) = what.split_once('/').unwrap_or((what, ""));
        let (resource, api_group) = what.split_once('.').unwrap_or((what, ""));
        let (namespace, name) = object.split_once('/').unwrap_or(("", object));
        let request = Attributes {
            subresource,
            namespace,
            name,
            field_selector: selector,
            ..Attributes::resource(node, verb, api_group, resource)
        };
        let decision = authorize(&request, &graph());
        (decision.is_allowed(), decision.reason().to_string())
    }

    const UNRELATED: &str = "no relationship found between node 'me' and this object";
    const YES: &str = "yes";

    #[test]
    fn a_node_may_do_what_its_pods_need() {
        let me = user("system:node:me", &[NODES]);
        for (text, expected) in [
            ("get secrets n/s", YES),
            ("list secrets n/s", YES),
            ("watch configmaps n/c", YES),
            ("get secrets n/other", UNRELATED),
            ("get secrets m/s", UNRELATED),
            ("list secrets n/", "No Object name found"),
            ("list secrets", "can only read namespaced object of this type"),
            ("update secrets n/s", "can only read resources of this type"),
            ("get secrets/x n/s", "cannot read subresource"),
            ("get persistentvolumeclaims n/claim", YES),
            ("list persistentvolumeclaims n/claim", "can only get individual resources of this type"),
            ("patch persistentvolumeclaims/status n/claim", YES),
            ("get persistentvolumeclaims/status n/claim", "can only get/update/patch this type"),
            ("update persistentvolumeclaims/status n/other", UNRELATED),
            ("get persistentvolumes v", YES),
            ("get persistentvolumes w", UNRELATED),
            ("get persistentvolumes/status v", "cannot get subresource"),
            ("get volumeattachments.storage.k8s.io va", YES),
            ("get volumeattachments.storage.k8s.io vb", UNRELATED),
            ("get resourceclaims.resource.k8s.io n/r", UNRELATED),
            ("get serviceaccounts n/a", YES),
            ("get serviceaccounts n/b", UNRELATED),
            ("create serviceaccounts/token n/a", YES),
            ("create serviceaccounts/token n/b", UNRELATED),
            ("create serviceaccounts n/a", "can only create token subresource of serviceaccount"),
            ("delete serviceaccounts n/a", "can only create tokens for individual service accounts"),
        ] {
            let (allowed, reason) = decide(&me, text, None);
            assert_eq!((allowed, &*reason), (expected == YES, if expected == YES { "" } else { expected }), "{text}");
        }
    }

    #[test]
    fn a_node_may_see_to_its_own_objects() {
        let me = user("system:node:me", &[NODES]);
        let own_lease = "can only access node lease with the same name as the requesting node";
        for (text, expected) in [
            ("get leases.coordination.k8s.io kube-node-lease/me", YES),
            ("create leases.coordination.k8s.io kube-node-lease/", YES),
            ("update leases.coordination.k8s.io kube-node-lease/you", own_lease),
            (
                "get leases.coordination.k8s.io n/me",
                "can only access leases in the \"kube-node-lease\" system namespace",
            ),
            (
                "list leases.coordination.k8s.io kube-node-lease/me",
                "can only get, create, update, patch, or delete a node lease",
            ),
            ("patch csinodes.storage.k8s.io me", YES),
            ("create csinodes.storage.k8s.io", YES),
            ("get csinodes.storage.k8s.io you", "can only access CSINode with the same name as the requesting node"),
            ("list csinodes.storage.k8s.io", "can only get, create, update, patch, or delete a CSINode"),
            ("get csinodes.storage.k8s.io/status me", "cannot authorize CSINode subresources"),
            ("get nodes me", YES),
            ("watch nodes me", YES),
            ("create nodes", YES),
            ("patch nodes/status me", YES),
            ("get nodes you", "node 'me' cannot read 'you', only its own Node object"),
            ("list nodes", "node 'me' cannot read all nodes, only its own Node object"),
            ("delete nodes me", ""),
            ("get nodes/proxy me", ""),
            ("create resourceslices.resource.k8s.io", YES),
            ("update resourceslices.resource.k8s.io rs", YES),
            ("delete resourceslices.resource.k8s.io other", UNRELATED),
            ("get pods n/p", YES),
            ("get pods n/q", UNRELATED),
            ("watch pods n/p", YES),
            ("list pods", "can only list/watch pods with spec.nodeName field selector"),
            ("create pods n/", YES),
            ("patch pods/status n/p", YES),
            ("create pods/eviction n/p", YES),
            ("get pods/log n/p", ""),
            ("update pods n/p", ""),
        ] {
            let (allowed, reason) = decide(&me, text, None);
            assert_eq!((allowed, &*reason), (expected == YES, if expected == YES { "" } else { expected }), "{text}");
        }
    }

    #[test]
    fn lists_have_to_be_limited_to_the_node() {
        let me = user("system:node:me", &[NODES]);
        for (text, selector, allowed) in [
            ("list pods", "spec.nodeName=me", true),
            ("watch pods", "metadata.name=x,spec.nodeName=me", true),
            ("list pods", "spec.nodeName!=me", false),
            ("list pods", "spec.nodeName=you", false),
            ("list resourceslices.resource.k8s.io", "spec.nodeName=me", true),
            ("deletecollection resourceslices.resource.k8s.io", "spec.nodeName=you", false),
        ] {
            let parsed = FieldSelector::parse(selector).unwrap();
            assert_eq!(decide(&me, text, Some(&parsed)).0, allowed, "{text} {selector}");
        }
        assert!(!decide(&me, "list resourceslices.resource.k8s.io", None).0);
    }

    #[test]
    fn for_the_rest_all_nodes_may_do_the_same() {
        let me = user("system:node:me", &[NODES]);
        for (text, allowed) in [
            ("list services", true),
            ("create events n/", true),
            ("create tokenreviews.authentication.k8s.io", true),
            ("watch runtimeclasses.node.k8s.io", true),
            ("create certificatesigningrequests.certificates.k8s.io", true),
            ("create podcertificaterequests.certificates.k8s.io n/", false),
            ("create deployments.apps n/", false),
        ] {
            assert_eq!(decide(&me, text, None), (allowed, String::new()), "{text}");
        }
    }

    #[test]
    fn only_who_has_the_name_and_the_group_is_a_node() {
        assert_eq!(decide(&user("system:node:me", &[]), "get nodes me", None), (false, String::new()));
        assert_eq!(decide(&user("me", &[NODES]), "get nodes me", None), (false, String::new()));
        let nameless = decide(&user("system:node:", &[NODES]), "get nodes me", None);
        assert_eq!(nameless, (false, "unknown node for user \"system:node:\"".to_owned()));
    }
}
