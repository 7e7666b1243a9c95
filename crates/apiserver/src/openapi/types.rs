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

pub(super) fn is_custom(resource: &Resource) -> bool {
    matches!(resource.schema, SchemaRef::Custom(_))
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

/// All types of these rows and of the answers to operations on them, by full name.
pub(super) fn of_resources(rows: &[Arc<Resource>], dialect: Dialect) -> Map<String, Value> {
    let named = |name: &str| builtin().named(name);
    let mut roots: Vec<NodeId> = [
        "meta.v1.APIResourceList",
        "meta.v1.DeleteOptions",
        "meta.v1.ObjectMeta",
        "meta.v1.Status",
        "meta.v1.WatchEvent",
    ]
    .into_iter()
    .filter_map(named)
    .collect();
    for row in rows {
        if !is_custom(row) {
            roots.push(row.node);
            roots.extend(named(&format!("{}List", row.schema_type)));
        }
        let spoken = row.subresources.iter().map(|part| Kind::new(row.subresource_speaks(*part)));
        roots.extend(spoken.filter_map(|kind| builtin_node(&kind)));
    }
    let mut definitions = openapi::definitions(builtin(), roots, dialect);
    definitions.insert(
        meta("Patch"),
        json!({ "type": "object", "description": "A change, in the form that its media type says." }),
    );
    for row in rows.iter().filter(|row| is_custom(row)) {
        add_custom(&mut definitions, row, dialect);
    }
    add_kinds(&mut definitions, rows);
    definitions
}

/// A type of `meta.v1`, for documents about no resource.
pub(super) fn of_meta(kind: &str, dialect: Dialect) -> Map<String, Value> {
    let root = builtin().named(&format!("meta.v1.{kind}"));
    let mut definitions = openapi::definitions(builtin(), root, dialect);
    add_kinds(&mut definitions, &[]);
    definitions
}

/// The type of `/version`.
pub(super) fn version_info() -> Value {
    let properties: Map<String, Value> =
        VERSION_FIELDS.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    json!({
        "type": "object", "description": "The version of the server.",
        "properties": properties, "required": VERSION_FIELDS,
    })
}

fn add_custom(definitions: &mut Map<String, Value>, row: &Resource, dialect: Dialect) {
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
    definitions.insert(format!("{name}List"), list);
    definitions.insert(name, definition);
}

/// Says of each definition which kinds it is the type of.
fn add_kinds(definitions: &mut Map<String, Value>, rows: &[Arc<Resource>]) {
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
    for (name, definition) in definitions.iter_mut() {
        if let Some(kinds) = kinds.get(name) {
            let kinds: Vec<Value> = kinds.iter().map(Kind::to_value).collect();
            definition["x-kubernetes-group-version-kind"] = json!(kinds);
        }
    }
}
