//! Authorization: may this user do this. The decisions are made in `authz`; here is what feeds them, and who may pose
//! as whom.
//!
//! Roles and bindings are as current as the watch cache, which may be a moment behind the store, and what is known of
//! nodes a moment behind that. So a refusal is looked at again once everything that was acknowledged before the request
//! is known: nobody is refused what has just been granted.

use crate::api::Api;
use crate::identity::AUTHENTICATED;
use crate::node_graph::NodeGraph;
use crate::request::{Info, Target};
use authz::{Attributes, Granted, Rules, User};
use http::HeaderMap;
use object::selector::FieldSelector;
use object::{ApiError, Reason};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What roles are made of, with the tables they are stored in.
const OF_RULES: [(&str, &str); 4] = [
    ("ClusterRole", "clusterroles.rbac.authorization.k8s.io"),
    ("ClusterRoleBinding", "clusterrolebindings.rbac.authorization.k8s.io"),
    ("Role", "roles.rbac.authorization.k8s.io"),
    ("RoleBinding", "rolebindings.rbac.authorization.k8s.io"),
];

#[derive(Debug, Default)]
pub struct Authorization {
    rules: Arc<RwLock<Rules>>,
    graph: NodeGraph,
}

/// A question in words that live as long as it takes to answer it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Set for what is no resource.
    pub(crate) path: Option<String>,
    pub(crate) fields: Option<FieldSelector>,
}

impl Question {
    pub(crate) fn about(info: &Info) -> Self {
        let Some(target) = &info.target else {
            return Question { verb: info.verb.to_owned(), path: Some(info.path.clone()), ..Question::default() };
        };
        let Target { group, version, namespace, resource, subresource, name, .. } = target.clone();
        Question {
            verb: info.verb.to_owned(),
            group,
            version,
            resource,
            subresource,
            name,
            namespace,
            ..Question::default()
        }
    }

    fn attributes<'a>(&'a self, user: &'a User) -> Attributes<'a> {
        Attributes {
            user,
            verb: &self.verb,
            api_group: &self.group,
            api_version: &self.version,
            resource: &self.resource,
            subresource: &self.subresource,
            name: &self.name,
            namespace: &self.namespace,
            path: self.path.as_deref().unwrap_or_default(),
            is_resource_request: self.path.is_none(),
            field_selector: self.fields.as_ref(),
        }
    }

    /// A refusal in the words that clients show.
    fn refusal(&self, user: &User, reason: &str) -> ApiError {
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        if let Some(path) = &self.path {
            let message = format!("forbidden: User {:?} cannot {} path {path:?}{reason}", user.name, self.verb);
            return ApiError::new(Reason::Forbidden, message);
        }
        let resource = match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        };
        let scope = match self.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        let cause = format!(
            "User {:?} cannot {} resource {resource:?} in API group {:?} {scope}{reason}",
            user.name, self.verb, self.group
        );
        ApiError::forbidden(&self.group, &self.resource, &self.name, &cause)
    }
}

/// What was decided, and why.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) allowed: bool,
    pub(crate) reason: String,
}

impl Authorization {
    /// Follows roles and bindings. Returns when those that are there are known.
    pub(crate) fn start(&self, api: &Api) {
        for (kind, table) in OF_RULES {
            let rules = self.rules.clone();
            api.registry.cache.observe(table, move |event| {
                let value = event.current().map(|object| object.tree());
                rules.write().apply(kind, event.object.namespace(), event.object.name(), value.as_ref());
            });
        }
    }

    fn decide(&self, user: &User, question: &Question) -> Verdict {
        let (graph, rules) = (self.graph.read(), self.rules.read());
        let attributes = question.attributes(user);
        let decision = authz::authorize(&attributes, &graph, &rules);
        Verdict { allowed: decision.is_allowed(), reason: decision.reason().to_string() }
    }

    fn allows_now(&self, user: &User, question: &Question) -> bool {
        let (graph, rules) = (self.graph.read(), self.rules.read());
        authz::authorize(&question.attributes(user), &graph, &rules).is_allowed()
    }

    /// The verdict, with what the caller wants to know of it.
    pub(crate) async fn verdict(&self, api: &Api, user: &User, question: &Question) -> Result<Verdict, ApiError> {
        self.follow_nodes_for(api, user);
        if !self.allows_now(user, question) {
            api.registry.catch_up().await?;
            if authz::node::name(user).is_some() {
                self.graph.caught_up(&api.registry.cache).await;
            }
        }
        Ok(self.decide(user, question))
    }

    /// An error if the user may not do this.
    pub(crate) async fn check(&self, api: &Api, user: &User, info: &Info) -> Result<(), ApiError> {
        if user.is_in(authz::MASTERS) {
            return Ok(());
        }
        self.require(api, user, &Question::about(info)).await
    }

    pub(crate) async fn require(&self, api: &Api, user: &User, question: &Question) -> Result<(), ApiError> {
        self.follow_nodes_for(api, user);
        if self.allows_now(user, question) {
            return Ok(());
        }
        match self.verdict(api, user, question).await? {
            Verdict { allowed: true, .. } => Ok(()),
            Verdict { reason, .. } => Err(question.refusal(user, &reason)),
        }
    }

    /// Whether something is allowed by what is known now. For decisions in the middle of a write.
    pub(crate) fn allows(
        &self,
        user: &User,
        verb: &str,
        group: &str,
        resource: &str,
        name: &str,
        namespace: &str,
    ) -> bool {
        let attributes = Attributes { name, namespace, ..Attributes::resource(user, verb, group, resource) };
        authz::authorize(&attributes, &self.graph.read(), &self.rules.read()).is_allowed()
    }

    /// The same for a question; an error says no in the words that clients know.
    pub(crate) fn answer(&self, user: &User, question: &Question) -> Result<(), ApiError> {
        match authz::authorize(&question.attributes(user), &self.graph.read(), &self.rules.read()).is_allowed() {
            true => Ok(()),
            false => Err(question.refusal(user, "")),
        }
    }

    /// What a user may do in a namespace.
    pub(crate) fn granted(&self, user: &User, namespace: &str) -> Granted {
        authz::rules_for(user, namespace, &self.rules.read())
    }

    /// Runs `look` on the roles and bindings.
    pub(crate) fn with_rules<T>(&self, look: impl FnOnce(&Rules) -> T) -> T {
        look(&self.rules.read())
    }

    /// The first request of a node is when pods and volumes begin to matter.
    fn follow_nodes_for(&self, api: &Api, user: &User) {
        if authz::node::name(user).is_some() {
            self.graph.follow(api);
        }
    }

    /// The user that a request is to be taken for, if it says so and its sender may.
    pub(crate) async fn impersonate(
        &self,
        api: &Api,
        user: Arc<User>,
        headers: &HeaderMap,
    ) -> Result<Arc<User>, ApiError> {
        if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
            return Ok(user);
        }
        let asked = Impersonation::read(headers)?;
        for question in asked.questions() {
            self.require(api, &user, &question).await?;
        }
        Ok(Arc::new(asked.user()))
    }
}

/// Whom a request poses as.
struct Impersonation {
    name: String,
    uid: Option<String>,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

impl Impersonation {
    fn read(headers: &HeaderMap) -> Result<Self, ApiError> {
        let text = |value: &http::HeaderValue| value.to_str().map(str::to_owned).map_err(ApiError::bad_request_from);
        let all = |name: &str| headers.get_all(name).iter().map(text).collect::<Result<Vec<_>, _>>();
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix("impersonate-extra-") {
                let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy().into_owned();
                extra.entry(key).or_default().push(text(value)?);
            }
        }
        let name = all("impersonate-user")?.into_iter().next().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| {
            let message = "requested [{UID  []}] without impersonating a user: set the header Impersonate-User too";
            ApiError::internal(message)
        })?;
        Ok(Impersonation {
            name,
            uid: all("impersonate-uid")?.into_iter().next(),
            groups: all("impersonate-group")?,
            extra,
        })
    }

    /// Everything that has to be allowed.
    fn questions(&self) -> Vec<Question> {
        let ask = |group: &str, resource: &str, name: &str| Question {
            verb: "impersonate".to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..Question::default()
        };
        let who = match self.name.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':')) {
            Some((namespace, name)) => Question { namespace: namespace.to_owned(), ..ask("", "serviceaccounts", name) },
            None => ask("", "users", &self.name),
        };
        let mut questions = vec![who];
        questions.extend(self.groups.iter().map(|group| ask("", "groups", group)));
        let extra = self.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        questions.extend(extra.map(|(key, value)| Question {
            subresource: key.clone(),
            ..ask("authentication.k8s.io", "userextras", value)
        }));
        questions.extend(self.uid.iter().map(|uid| ask("authentication.k8s.io", "uids", uid)));
        questions
    }

    fn user(self) -> User {
        let mut groups = self.groups;
        if groups.is_empty()
            && let Some((namespace, _)) = self.name.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':'))
        {
            groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        }
        let anonymous = self.name == "system:anonymous";
        if !anonymous && !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        User { name: self.name, uid: self.uid.unwrap_or_default(), groups, extra: self.extra }
    }
}
