//! The operations on resources: for every row its URLs, and what is sent to and comes back from each.

use super::operation::{Answer, Body, Content, OBJECT, Operation, Route, capitalized, group_id, group_tag};
use super::parameters::{self as known, Parameter};
use super::types::{self, Kind};
use crate::verbs;
use registry::{Resource, Subresource, Verb};

const STREAM: &[&str] = &[
    "application/json",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/yaml",
];
const CUSTOM_OBJECT: &[&str] = &["application/json", "application/yaml"];
const LOG: &[&str] = &["application/json", "application/vnd.kubernetes.protobuf", "application/yaml", "text/plain"];
const ANYTHING: &[&str] = &["*/*"];
const PATCHES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];
/// Types that are known only at run time have no merge keys to be strategic with.
const CUSTOM_PATCHES: &[&str] =
    &["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];

/// All URLs of a resource.
pub(super) fn of_resource(resource: &Resource) -> Vec<Route> {
    let row = Row::new(resource);
    let mut routes = vec![row.collection(), row.item()];
    if resource.is_namespaced() {
        routes.push(row.everywhere());
    }
    routes.extend(row.watches());
    for subresource in resource.subresources.iter().copied() {
        routes.extend(row.subresource(subresource));
    }
    routes.retain(|route| !route.operations.is_empty());
    routes
}

/// A row, and what its operations have in common.
struct Row<'a> {
    resource: &'a Resource,
    /// `AppsV1`.
    group_version: String,
    /// `/apis/apps/v1`.
    base: String,
    /// The URL of the collection, without the base.
    collection: String,
    /// The parameters in it.
    scope: Vec<Parameter>,
}

impl<'a> Row<'a> {
    fn new(resource: &'a Resource) -> Self {
        let (collection, scope) = match resource.is_namespaced() {
            true => (format!("namespaces/{{namespace}}/{}", resource.plural), vec![known::NAMESPACE]),
            false => (resource.plural.to_string(), Vec::new()),
        };
        Row {
            resource,
            group_version: format!("{}{}", group_id(&resource.group), capitalized(&resource.version)),
            base: types::base_path(&resource.group, &resource.version),
            collection,
            scope,
        }
    }

    fn id(&self, verb: &str, infix: &str, suffix: &str) -> String {
        let namespaced = if self.resource.is_namespaced() { "Namespaced" } else { "" };
        format!("{verb}{}{infix}{namespaced}{}{suffix}", self.group_version, self.resource.kind)
    }

    /// An operation on the resource that takes what all of them take, and `parameters`.
    fn operation(&self, method: &'static str, action: &'static str, id: String, parameters: &[Parameter]) -> Operation {
        let media = if self.resource.is_builtin() { OBJECT } else { CUSTOM_OBJECT };
        let mut parameters: Vec<Parameter> =
            self.scope.iter().chain(parameters).chain([&known::PRETTY]).copied().collect();
        parameters.sort_unstable();
        Operation {
            method,
            id,
            tag: format!("{}_{}", group_tag(&self.resource.group), self.resource.version),
            description: format!("{} the kind {}.", sentence(action), self.resource.kind),
            action: Some(action),
            kind: Some(Kind::of(self.resource)),
            parameters,
            body: Body::None,
            answer: Answer { content: Content::Type(types::full_name(self.resource)), media, codes: &[200] },
        }
    }

    /// An operation on one object.
    fn on_item(&self, method: &'static str, action: &'static str, id: String, parameters: &[Parameter]) -> Operation {
        let parameters: Vec<Parameter> = parameters.iter().chain([&known::NAME]).copied().collect();
        self.operation(method, action, id, &parameters)
    }

    fn own_type(&self) -> Body {
        Body::Object { name: types::full_name(self.resource), required: true }
    }

    fn deletion(&self, mut operation: Operation) -> Operation {
        operation.body = Body::Object { name: types::meta("DeleteOptions"), required: false };
        operation.answer.content = Content::Type(types::meta("Status"));
        operation
    }

    fn list(&self, mut operation: Operation) -> Operation {
        operation.answer.content = Content::Type(types::full_name(self.resource) + "List");
        operation.answer.media = if self.resource.is_builtin() { STREAM } else { CUSTOM_OBJECT };
        operation
    }

    fn collection(&self) -> Route {
        let has = |verb: Verb| self.resource.verbs.contains(verb);
        let mut operations = Vec::new();
        if has(Verb::List) {
            operations.push(self.list(self.operation("get", "list", self.id("list", "", ""), known::LIST)));
        }
        if has(Verb::Create) {
            let mut create = self.operation("post", "post", self.id("create", "", ""), known::WRITE);
            create.body = self.own_type();
            create.answer.codes = &[200, 201, 202];
            operations.push(create);
        }
        if has(Verb::DeleteCollection) {
            let id = self.id("delete", "Collection", "");
            let delete = self.operation("delete", "deletecollection", id, known::DELETE_COLLECTION);
            operations.push(self.deletion(delete));
        }
        Route { path: format!("{}/{}", self.base, self.collection), operations }
    }

    fn item(&self) -> Route {
        let has = |verb: Verb| self.resource.verbs.contains(verb);
        let mut operations = self.reads_and_writes(&has, "");
        if has(Verb::Delete) {
            let delete = self.on_item("delete", "delete", self.id("delete", "", ""), known::DELETE);
            let mut delete = self.deletion(delete);
            delete.answer.codes = &[200, 202];
            if verbs::answers_with_the_object(self.resource) {
                delete.answer.content = Content::Type(types::full_name(self.resource));
            }
            operations.push(delete);
        }
        Route { path: format!("{}/{}/{{name}}", self.base, self.collection), operations }
    }

    /// What can be done to an object, or to a part of it that `suffix` names.
    fn reads_and_writes(&self, has: &dyn Fn(Verb) -> bool, suffix: &str) -> Vec<Operation> {
        let mut operations = Vec::new();
        if has(Verb::Get) {
            operations.push(self.on_item("get", "get", self.id("read", "", suffix), &[]));
        }
        if has(Verb::Update) {
            let mut update = self.on_item("put", "put", self.id("replace", "", suffix), known::WRITE);
            update.body = self.own_type();
            update.answer.codes = &[200, 201];
            operations.push(update);
        }
        if has(Verb::Patch) {
            let mut patch = self.on_item("patch", "patch", self.id("patch", "", suffix), known::PATCH);
            patch.body = Body::Patch { media: if self.resource.is_builtin() { PATCHES } else { CUSTOM_PATCHES } };
            patch.answer.codes = &[200, 201];
            operations.push(patch);
        }
        operations
    }

    /// The list over all namespaces.
    fn everywhere(&self) -> Route {
        let mut operations = Vec::new();
        if self.resource.verbs.contains(Verb::List) {
            let id = format!("list{}{}ForAllNamespaces", self.group_version, self.resource.kind);
            operations.push(self.list(without_namespace(self.operation("get", "list", id, known::LIST))));
        }
        Route { path: format!("{}/{}", self.base, self.resource.plural), operations }
    }

    /// The old form of watches, which have URLs of their own.
    fn watches(&self) -> Vec<Route> {
        if !self.resource.verbs.contains(Verb::Watch) || !self.resource.is_builtin() {
            return Vec::new();
        }
        let event = |mut operation: Operation| {
            operation.answer.content = Content::Type(types::meta("WatchEvent"));
            operation.answer.media = STREAM;
            operation
        };
        let mut routes = Vec::new();
        let mut add = |path: String, operation: Operation| {
            routes.push(Route { path: format!("{}/watch/{path}", self.base), operations: vec![event(operation)] });
        };
        let id = self.id("watch", "", "List");
        add(self.collection.clone(), self.operation("get", "watchlist", id, known::LIST));
        let id = self.id("watch", "", "");
        add(format!("{}/{{name}}", self.collection), self.on_item("get", "watch", id, known::LIST));
        if self.resource.is_namespaced() {
            let id = format!("watch{}{}ListForAllNamespaces", self.group_version, self.resource.kind);
            let everywhere = without_namespace(self.operation("get", "watchlist", id, known::LIST));
            add(self.resource.plural.to_string(), everywhere);
        }
        routes
    }

    fn subresource(&self, subresource: Subresource) -> Vec<Route> {
        let path = format!("{}/{}/{{name}}/{}", self.base, self.collection, subresource.name());
        let operations = match subresource {
            Subresource::Log => {
                let mut log = self.on_item("get", "get", self.id("read", "", "Log"), known::LOG);
                log.answer = Answer { content: Content::Text, media: LOG, codes: &[200] };
                vec![log]
            }
            Subresource::Attach => self.connect(subresource, &["get", "post"], known::ATTACH, ""),
            Subresource::Exec => {
                let parameters: Vec<Parameter> = known::ATTACH.iter().chain([&known::COMMAND]).copied().collect();
                self.connect(subresource, &["get", "post"], &parameters, "")
            }
            Subresource::PortForward => self.connect(subresource, &["get", "post"], &[known::PORTS], ""),
            Subresource::Proxy => return self.proxy(path),
            Subresource::Binding | Subresource::Eviction | Subresource::Token => self.created(subresource),
            Subresource::Approval
            | Subresource::EphemeralContainers
            | Subresource::Finalize
            | Subresource::Resize
            | Subresource::Scale
            | Subresource::Status => self.part(subresource),
        };
        vec![Route { path, operations }]
    }

    /// A part of the object, which is read and written like the object.
    fn part(&self, subresource: Subresource) -> Vec<Operation> {
        let verbs = subresource.verbs();
        let mut operations =
            self.reads_and_writes(&|verb| verbs.contains(&verb.name()), &capitalized(subresource.name()));
        for operation in &mut operations {
            self.speak(subresource, operation);
        }
        operations
    }

    /// Something that is done to the object by creating another one.
    fn created(&self, subresource: Subresource) -> Vec<Operation> {
        let id = self.id("create", "", &capitalized(subresource.name()));
        let mut create = self.on_item("post", "post", id, known::WRITE);
        create.body = self.own_type();
        create.answer.codes = &[200, 201, 202];
        self.speak(subresource, &mut create);
        vec![create]
    }

    /// Puts the kind that a subresource speaks in the place of the object's own.
    fn speak(&self, subresource: Subresource, operation: &mut Operation) {
        let kind = Kind::new(self.resource.subresource_speaks(subresource));
        let Some(spoken) = types::builtin_name(&kind).filter(|_| kind != Kind::of(self.resource)) else { return };
        if let Body::Object { name, .. } = &mut operation.body {
            name.clone_from(&spoken);
        }
        operation.answer.content = Content::Type(spoken);
        operation.kind = Some(kind);
    }

    /// A connection to the object, or through it.
    fn connect(
        &self,
        subresource: Subresource,
        methods: &[&'static str],
        parameters: &[Parameter],
        suffix: &str,
    ) -> Vec<Operation> {
        let suffix = format!("{}{suffix}", capitalized(subresource.name()));
        let operation = |method: &'static str| {
            let id = self.id("connect", &capitalized(method), &suffix);
            let mut connect = self.on_item(method, "connect", id, parameters);
            connect.parameters.retain(|parameter| *parameter != known::PRETTY);
            connect.kind = Some(Kind::new(self.resource.subresource_speaks(subresource)));
            connect.answer = Answer { content: Content::Text, media: ANYTHING, codes: &[200] };
            connect
        };
        methods.iter().map(|method| operation(method)).collect()
    }

    fn proxy(&self, path: String) -> Vec<Route> {
        let methods = ["delete", "get", "head", "options", "patch", "post", "put"];
        let deeper = format!("{path}/{{path}}");
        let own = self.connect(Subresource::Proxy, &methods, &[known::PROXIED_QUERY], "");
        let below = self.connect(Subresource::Proxy, &methods, &[known::PROXIED, known::PROXIED_QUERY], "WithPath");
        vec![Route { path, operations: own }, Route { path: deeper, operations: below }]
    }
}

fn without_namespace(mut operation: Operation) -> Operation {
    operation.parameters.retain(|parameter| *parameter != known::NAMESPACE);
    operation
}

/// How the description of an operation begins.
fn sentence(action: &str) -> &'static str {
    match action {
        "list" => "Lists or watches objects of",
        "watchlist" => "Watches objects of",
        "watch" => "Watches one object of",
        "post" => "Creates an object of",
        "put" => "Replaces an object of",
        "patch" => "Changes parts of an object of",
        "delete" => "Deletes an object of",
        "deletecollection" => "Deletes all selected objects of",
        "connect" => "Connects to an object of",
        _ => "Reads an object of",
    }
}
