//! The types that documents define: those of the rows, and those that all operations share.

use object::{Map, Value, json};
use registry::{Resource, SchemaRef};
use schema::openapi::{self, Dialect};
use schema::{NodeId, builtin};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the server says of itself at `/version`.
pub(super) const VERSION_INFO: &str = "io.k8s.apimachinery.pkg.version.Info";
const VERSION_FIELDS: [&str; 9] =
    ["buildDate", "compiler", "gitCommit", "gitTreeState", "gitVersion", "goVersion", "major", "minor", "platform"];

/// What operations on resources take and answer with.
const OF_OPERATIONS: [&str; 5] = ["APIResourceList", "DeleteOptions", "ObjectMeta", "Status", "WatchEvent"];

/// Built-in types that are kinds of the core group, though no resource.
const META_KINDS: [&str; 7] =
    ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "DeleteOptions", "Status", "WatchEvent"];

/// A group, version and kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

impl Kind {
    pub(super) fn new((group, version, kind): (String, String, String)) -> Self {
        Kind { group, version, kind }
    }

    pub(super) fn of(resource: &Resource) -> Self {
        Kind::new((resource.group.to_string(), resource.version.to_string(), resource.kind.to_string()))
    }

    pub(super) fn to_value(&self) -> Value {
        json!({ "group": self.group, "kind": self.kind, "version": self.version })
    }
}

/// `/api/v1`, `/apis/apps/v1`.
pub(super) fn base_path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// The full name of a type of `meta.v1`.
pub(super) fn meta(kind: &str) -> String {
    openapi::full_name(&format!("meta.v1.{kind}"))
}

/// The full name of a resource's type. That of a custom one begins with its group, the last part first.
pub(super) fn full_name(resource: &Resource) -> String {
    match resource.schema {
        SchemaRef::Builtin => openapi::full_name(&resource.schema_type),
        SchemaRef::Custom(_) => {
            let group: Vec<&str> = resource.group.rsplit('.').collect();
            format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
        }
    }
}

/// The full name of the built-in type of a kind.
pub(super) fn builtin_name(kind: &Kind) -> Option<String> {
    builtin().node(builtin_node(kind)?).name.as_deref().map(openapi::full_name)
}

fn builtin_node(kind: &Kind) -> Option<NodeId> {
    let api_version = base_path(&kind.group, &kind.version);
    let api_version = api_version.trim_start_matches("/apis/").trim_start_matches("/api/");
    crate::render::schema_type(api_version, &kind.kind)
}

/// All types of these rows and of the answers to operations on them, and these types of `meta.v1`, by full name.
pub(super) fn definitions<'a>(
    rows: &'a [Arc<Resource>],
    meta_types: &[&str],
    dialect: Dialect,
) -> impl Iterator<Item = (String, Value)> + 'a {
    let named = |name: String| builtin().named(&name);
    let mut roots: Vec<NodeId> = meta_types.iter().filter_map(|name| named(format!("meta.v1.{name}"))).collect();
    for row in rows {
        roots.extend(OF_OPERATIONS.iter().filter_map(|name| named(format!("meta.v1.{name}"))));
        if row.is_builtin() {
            roots.push(row.node);
            roots.extend(named(format!("{}List", row.schema_type)));
        }
        let spoken = row.subresources.iter().map(|part| Kind::new(row.subresource_speaks(*part)));
        roots.extend(spoken.filter_map(|kind| builtin_node(&kind)));
    }
    let patch = json!({ "type": "object", "description": "A change, in the form that its media type says." });
    let patch = (!rows.is_empty()).then(|| (meta("Patch"), patch));
    let custom = rows.iter().filter(|row| !row.is_builtin()).flat_map(move |row| custom(row, dialect));
    let kinds = kinds(rows);
    openapi::definitions(builtin(), roots, dialect).chain(patch).chain(custom).map(move |(name, mut definition)| {
        if let Some(kinds) = kinds.get(&name) {
            let kinds: Vec<Value> = kinds.iter().map(Kind::to_value).collect();
            definition["x-kubernetes-group-version-kind"] = json!(kinds);
        }
        (name, definition)
    })
}

/// The type of `/version`.
pub(super) fn version_info() -> (String, Value) {
    let text = json!({ "type": "string" });
    let properties: Map = VERSION_FIELDS.map(|name| (name.to_owned(), text.clone())).into_iter().collect();
    let definition = json!({
        "type": "object", "description": "The version of the server.",
        "properties": properties, "required": VERSION_FIELDS,
    });
    (VERSION_INFO.to_owned(), definition)
}

/// The type of a custom resource, and that of its list.
fn custom(row: &Resource, dialect: Dialect) -> [(String, Value); 2] {
    let name = full_name(row);
    let text = |description: &str| json!({ "type": "string", "description": description });
    let kind = text("The kind of the object, in CamelCase.");
    let api_version = text("The group and version of the API that the object is written in.");
    let mut definition = openapi::inline(row.schema(), row.node, dialect);
    definition["properties"]["kind"] = kind.clone();
    definition["properties"]["apiVersion"] = api_version.clone();
    definition["properties"]["metadata"] = dialect.reference(&meta("ObjectMeta"));
    let list = json!({
        "type": "object", "description": format!("A list of objects of the kind {}.", row.kind), "required": ["items"],
        "properties": {
            "kind": kind, "apiVersion": api_version, "metadata": dialect.reference(&meta("ListMeta")),
            "items": { "type": "array", "items": dialect.reference(&name) },
        },
    });
    [(format!("{name}List"), list), (name, definition)]
}

/// The kinds that each definition is the type of, by its name.
fn kinds(rows: &[Arc<Resource>]) -> BTreeMap<String, BTreeSet<Kind>> {
    let mut kinds: BTreeMap<String, BTreeSet<Kind>> = BTreeMap::new();
    let mut add = |name: String, kind: Kind| kinds.entry(name).or_default().insert(kind);
    // Rows of other documents too: a deployment's document has claims in it, say.
    for row in registry::builtin().iter().chain(rows) {
        let (name, kind) = (full_name(row), Kind::of(row));
        add(format!("{name}List"), Kind { kind: format!("{}List", row.kind), ..kind.clone() });
        add(name, kind);
        for spoken in row.subresources.iter().map(|part| Kind::new(row.subresource_speaks(*part))) {
            if let Some(name) = builtin_name(&spoken) {
                add(name, spoken);
            }
        }
    }
    let core = |kind: &str| Kind::new((String::new(), "v1".to_owned(), kind.to_owned()));
    for kind in META_KINDS {
        add(meta(kind), core(kind));
    }
    // Options and events are sent in the version of what they are about.
    for (row, kind) in rows.iter().flat_map(|row| [(row, "DeleteOptions"), (row, "WatchEvent")]) {
        add(meta(kind), Kind { kind: kind.to_owned(), ..Kind::of(row) });
    }
    kinds
}
