//! What a request is about: read from its method and URL alone, once, and used for everything that follows.

use std::fmt;

/// A request as authorization, admission and the verbs see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    /// `get`, `list`, `create`, ...; for what is no resource the method in lower case.
    pub verb: &'static str,
    /// The path as it was sent, percent-decoded.
    pub path: String,
    /// What the path names, if it names a resource.
    pub target: Option<Target>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    /// Empty for all namespaces, and for what has none.
    pub namespace: String,
    /// The plural.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Empty for the collection.
    pub name: String,
    /// What follows the subresource: the path that a proxy forwards to.
    pub rest: String,
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.path)
    }
}

/// Subresources of a namespace; any other segment there is a resource in the namespace.
const OF_NAMESPACES: [&str; 2] = ["status", "finalize"];

impl Info {
    pub(crate) fn new(method: &http::Method, path: &str, query: &Query) -> Self {
        let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned();
        let Some((mut target, legacy_watch)) = target(&path) else {
            return Info { verb: plain_verb(method), path, target: None };
        };
        let collection = target.name.is_empty();
        let verb = match *method {
            http::Method::POST => "create",
            http::Method::PUT => "update",
            http::Method::PATCH => "patch",
            http::Method::DELETE if collection => "deletecollection",
            http::Method::DELETE => "delete",
            // No resource has a verb of this name, so nothing allows it and nothing serves it.
            http::Method::OPTIONS | http::Method::TRACE | http::Method::CONNECT => "",
            _ if legacy_watch => "watch",
            // Even a single object can be watched, by a field selector or by a parameter that is there for it.
            _ if query.flag("watch") && (collection || target.subresource.is_empty()) => "watch",
            _ if collection => "list",
            _ => "get",
        };
        // A list of one name is about that name, so that rules which allow only this name apply.
        if matches!(verb, "list" | "watch" | "deletecollection")
            && let Some(fields) = query.get("fieldSelector")
            && let Ok(fields) = object::selector::FieldSelector::parse(fields)
            && let Some(name) = fields.requires("metadata.name")
            && object::name::path_segment(name).is_empty()
        {
            target.name = name.to_owned();
        }
        Info { verb, path, target: Some(target) }
    }

    pub(crate) fn is_mutating(&self) -> bool {
        matches!(self.verb, "create" | "update" | "patch" | "delete" | "deletecollection" | "post" | "put")
    }

    /// Requests that last as long as the client wants.
    pub(crate) fn is_long_running(&self) -> bool {
        let streams = ["attach", "exec", "log", "portforward", "proxy"];
        self.verb == "watch" || self.target.as_ref().is_some_and(|t| streams.contains(&t.subresource.as_str()))
    }
}

impl Info {
    /// What a request for a shell in a pod, or the like, has to be allowed besides: browsers can only `get` a
    /// WebSocket, and looking at pods must not be enough to run programs in them.
    pub(crate) fn as_creation_of_a_stream(&self, upgrades: bool) -> Option<Self> {
        let target = self.target.as_ref()?;
        let streams = ["exec", "attach", "portforward"].contains(&target.subresource.as_str());
        let asks = upgrades && self.verb == "get" && target.resource == "pods" && streams;
        asks.then(|| Info { verb: "create", ..self.clone() })
    }
}

fn plain_verb(method: &http::Method) -> &'static str {
    match *method {
        http::Method::POST => "post",
        http::Method::PUT => "put",
        http::Method::PATCH => "patch",
        http::Method::DELETE => "delete",
        http::Method::HEAD => "head",
        http::Method::OPTIONS => "options",
        http::Method::TRACE => "trace",
        _ => "get",
    }
}

/// Reads `/api/v1/...` and `/apis/group/version/...`, and whether it is the old form of a watch.
fn target(path: &str) -> Option<(Target, bool)> {
    let mut segments = path.trim_start_matches('/').split('/').filter(|segment| !segment.is_empty());
    let mut target = Target::default();
    match segments.next()? {
        "api" => {}
        "apis" => target.group = segments.next()?.to_owned(),
        _ => return None,
    }
    target.version = segments.next()?.to_owned();
    let mut rest: Vec<&str> = segments.collect();
    let legacy_watch = rest.first() == Some(&"watch");
    if legacy_watch {
        rest.remove(0);
    }
    let mut rest = rest.into_iter();
    let first = rest.next()?;
    let mut take = || rest.next().unwrap_or_default().to_owned();
    if first == "namespaces" {
        let namespace = take();
        let resource = take();
        if resource.is_empty() || OF_NAMESPACES.contains(&resource.as_str()) {
            // The namespace itself; requests about it are in it.
            target.namespace.clone_from(&namespace);
            (target.resource, target.name, target.subresource) = (first.to_owned(), namespace, resource);
        } else {
            (target.namespace, target.resource, target.name, target.subresource) =
                (namespace, resource, take(), take());
        }
    } else {
        (target.resource, target.name, target.subresource) = (first.to_owned(), take(), take());
    }
    target.rest = rest.collect::<Vec<_>>().join("/");
    // A trailing slash is part of what a proxy forwards.
    if !target.rest.is_empty() && path.ends_with('/') {
        target.rest.push('/');
    }
    Some((target, legacy_watch))
}

/// The parameters of a URL, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        Query(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// The first value of that name that is not empty.
    pub(crate) fn get<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).find(|value| !value.is_empty())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// Anything but `false` and `0` is true, as Kubernetes reads it.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.all(name).next().is_some_and(|value| !matches!(value, "false" | "0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(method: &str, uri: &str) -> Info {
        let (path, query) = uri.split_once('?').map_or((uri, None), |(path, query)| (path, Some(query)));
        Info::new(&method.parse().unwrap(), path, &Query::parse(query))
    }

    #[test]
    fn a_url_says_what_it_is_about() {
        for (method, uri, verb, [group, namespace, resource, name, subresource, rest]) in [
            ("GET", "/api/v1/pods", "list", ["", "", "pods", "", "", ""]),
            ("GET", "/api/v1/namespaces/a/pods/b", "get", ["", "a", "pods", "b", "", ""]),
            ("GET", "/api/v1/namespaces/a/pods/b/log", "get", ["", "a", "pods", "b", "log", ""]),
            ("GET", "/api/v1/namespaces/a", "get", ["", "a", "namespaces", "a", "", ""]),
            ("PUT", "/api/v1/namespaces/a/finalize", "update", ["", "a", "namespaces", "a", "finalize", ""]),
            ("GET", "/api/v1/namespaces", "list", ["", "", "namespaces", "", "", ""]),
            ("GET", "/api/v1/pods?watch=1", "watch", ["", "", "pods", "", "", ""]),
            ("GET", "/api/v1/pods?watch=false", "list", ["", "", "pods", "", "", ""]),
            ("GET", "/api/v1/watch/namespaces/a/pods", "watch", ["", "a", "pods", "", "", ""]),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dx", "list", ["", "", "pods", "x", "", ""]),
            ("POST", "/apis/apps/v1/namespaces/a/deployments", "create", ["apps", "a", "deployments", "", "", ""]),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/deployments",
                "deletecollection",
                ["apps", "a", "deployments", "", "", ""],
            ),
            ("DELETE", "/api/v1/nodes/n", "delete", ["", "", "nodes", "n", "", ""]),
            (
                "GET",
                "/api/v1/namespaces/a/services/s:80/proxy/x/y/",
                "get",
                ["", "a", "services", "s:80", "proxy", "x/y/"],
            ),
        ] {
            let info = info(method, uri);
            let target = info.target.unwrap();
            let found = [target.group, target.namespace, target.resource, target.name, target.subresource, target.rest];
            assert_eq!(
                (info.verb, found),
                (verb, [group, namespace, resource, name, subresource, rest].map(str::to_owned)),
                "{uri}"
            );
        }
    }

    #[test]
    fn what_is_no_resource_has_a_path_only() {
        for uri in ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/openapi/v2"] {
            assert_eq!(info("GET", uri).target, None, "{uri}");
        }
        assert_eq!(info("POST", "/version").verb, "post");
    }
}
