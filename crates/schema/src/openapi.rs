//! The schema in OpenAPI's words, for `kubectl explain`, `diff` and whoever generates clients.
//!
//! What is known here is a type's fields and how they merge. Which kinds are served at which paths is not: whoever
//! serves the document adds that.

use crate::descriptions::Descriptions;
use crate::node::{Field, ListMerge, NodeId, Scalar, Schema, Shape, Struct};
use object::{Map, Value, json};
use std::collections::BTreeSet;

/// The two versions of OpenAPI differ in where definitions stand and in what may stand beside a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// What leads to a definition, given its full name.
    pub fn reference(self, name: &str) -> Value {
        match self {
            Dialect::V2 => json!({ "$ref": format!("#/definitions/{name}") }),
            Dialect::V3 => json!({ "$ref": format!("#/components/schemas/{name}") }),
        }
    }
}

/// The name that clients know a type by: `apps.v1.Deployment` is `io.k8s.api.apps.v1.Deployment`.
pub fn full_name(name: &str) -> String {
    let package = match name.split('.').next().unwrap_or(name) {
        "meta" => "io.k8s.apimachinery.pkg.apis.",
        "apiextensions" => "io.k8s.apiextensions-apiserver.pkg.apis.",
        "apiregistration" => "io.k8s.kube-aggregator.pkg.apis.",
        "Raw" => return "io.k8s.apimachinery.pkg.runtime.RawExtension".to_owned(),
        "FieldsV1" => return "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1".to_owned(),
        "Json" => return "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON".to_owned(),
        "SchemaOrArray" | "SchemaOrBool" | "SchemaOrStrings" => {
            let kind = match name {
                "SchemaOrArray" => "Array",
                "SchemaOrBool" => "Bool",
                _ => "StringArray",
            };
            return format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOr{kind}");
        }
        _ => "io.k8s.api.",
    };
    format!("{package}{name}")
}

/// The definitions of these types and of all that they refer to, by full name, each once and one after the other:
/// all of them at a time would take megabytes.
pub fn definitions(
    schema: &Schema,
    roots: impl IntoIterator<Item = NodeId>,
    dialect: Dialect,
) -> impl Iterator<Item = (String, Value)> {
    let describe = Describe { schema, dialect, descriptions: Descriptions::read(), is_inline: false };
    let mut pending: Vec<NodeId> = roots.into_iter().collect();
    let mut seen = BTreeSet::new();
    std::iter::from_fn(move || {
        loop {
            let id = pending.pop()?;
            let shape = schema.shape(id);
            let (name, definition) = match (schema.node(id).name.as_deref(), shape) {
                (Some(name), _) if seen.insert(name) => (full_name(name), describe.definition(name, shape)),
                (None, Shape::Scalar(scalar)) => match shared_name(*scalar) {
                    Some(name) if seen.insert(name) => (name.to_owned(), describe.shared_definition(name, *scalar)),
                    _ => continue,
                },
                _ => continue,
            };
            if let Shape::Struct(fields) = shape {
                pending.extend(fields.fields.iter().map(|field| describe.innermost(field.node)));
            }
            return Some((name, definition));
        }
    })
}

/// One type with all that is in it, such as that of a custom resource. Only types with a name are referred to.
pub fn inline(schema: &Schema, id: NodeId, dialect: Dialect) -> Value {
    let describe = Describe { schema, dialect, descriptions: Descriptions::default(), is_inline: true };
    match schema.shape(id) {
        Shape::Struct(fields) => describe.structure("", fields),
        _ => describe.node(id),
    }
}

/// Scalars that are types of their own to clients.
fn shared_name(scalar: Scalar) -> Option<&'static str> {
    match scalar {
        Scalar::Quantity => Some("io.k8s.apimachinery.pkg.api.resource.Quantity"),
        Scalar::IntOrString => Some("io.k8s.apimachinery.pkg.util.intstr.IntOrString"),
        Scalar::Time => Some("io.k8s.apimachinery.pkg.apis.meta.v1.Time"),
        Scalar::MicroTime => Some("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"),
        Scalar::Duration => Some("io.k8s.apimachinery.pkg.apis.meta.v1.Duration"),
        Scalar::String | Scalar::Bytes | Scalar::Bool | Scalar::Int32 | Scalar::Int64 | Scalar::Double => None,
    }
}

/// Lists and options name their type in JSON, though in no field of theirs that the tables know.
fn says_its_type(name: &str) -> bool {
    name == "meta.v1.DeleteOptions" || name.ends_with("List")
}

struct Describe<'a> {
    schema: &'a Schema,
    dialect: Dialect,
    descriptions: Descriptions,
    /// Whether scalars are described where they stand, even those that are types of their own to clients.
    is_inline: bool,
}

impl Describe<'_> {
    fn definition(&self, name: &str, shape: &Shape) -> Value {
        let described = match shape {
            Shape::Struct(fields) => self.structure(name, fields),
            _ if name.starts_with("Schema") || name == "Json" => json!({}),
            _ => json!({ "type": "object" }),
        };
        self.with_description(name, described)
    }

    fn shared_definition(&self, full_name: &str, scalar: Scalar) -> Value {
        let name = full_name.rsplit('.').next().unwrap_or(full_name);
        self.with_description(name, self.shared(scalar))
    }

    fn with_description(&self, name: &str, mut described: Value) -> Value {
        if let Some(description) = self.descriptions.of_type(name) {
            described["description"] = json!(description);
        }
        described
    }

    fn structure(&self, name: &str, fields: &Struct) -> Value {
        let mut described = json!({ "type": "object" });
        let required: Vec<_> =
            fields.fields.iter().filter(|field| field.required).map(|field| field.name.as_ref()).collect();
        if !required.is_empty() {
            described["required"] = json!(required);
        }
        let properties = fields.fields.iter().map(|field| (field.name.to_string(), self.field(name, field)));
        let mut properties: Map = properties.collect();
        if says_its_type(name) {
            for field in ["apiVersion", "kind"] {
                let description = self.descriptions.of_field(name, field);
                properties.insert(field, json!({ "type": "string", "description": description }));
            }
        }
        if !properties.is_empty() {
            described["properties"] = Value::Object(properties);
        }
        if fields.atomic {
            described["x-kubernetes-map-type"] = json!("atomic");
        }
        if fields.open {
            described["x-kubernetes-preserve-unknown-fields"] = json!(true);
        }
        described
    }

    fn field(&self, owner: &str, field: &Field) -> Value {
        let mut described = self.node(field.node);
        if let Some(description) = self.descriptions.of_field(owner, &field.name) {
            described["description"] = json!(description);
        }
        if let (Dialect::V3, Some(default)) = (self.dialect, &field.default) {
            described["default"] = default.clone();
        }
        self.add_merging(&mut described, field);
        if owner.ends_with("List") && &*field.name == "items" {
            // Lists are never written, so that nobody says how they would merge.
            described.as_object_mut().and_then(|members| members.remove("x-kubernetes-list-type"));
        }
        // OpenAPI 3.0 ignores what stands beside a reference, so the reference goes inside.
        if let (Dialect::V3, Some(members)) = (self.dialect, described.as_object_mut())
            && members.len() > 1
            && let Some(reference) = members.remove("$ref")
        {
            members.insert("allOf", json!([{ "$ref": reference }]));
        }
        described
    }

    fn add_merging(&self, described: &mut Value, field: &Field) {
        if field.granular {
            described["x-kubernetes-map-type"] = json!("granular");
        }
        let strategies = [
            (field.patch.merge.is_some(), "merge"),
            (field.patch.replace, "replace"),
            (field.patch.retain_keys, "retainKeys"),
        ];
        let strategies: Vec<_> = strategies.into_iter().filter(|(holds, _)| *holds).map(|(_, name)| name).collect();
        if !strategies.is_empty() {
            described["x-kubernetes-patch-strategy"] = json!(strategies.join(","));
        }
        if let Some(key) = field.patch.merge.as_deref().filter(|key| !key.is_empty()) {
            described["x-kubernetes-patch-merge-key"] = json!(key);
        }
    }

    fn node(&self, id: NodeId) -> Value {
        if let Some(name) = &self.schema.node(id).name {
            return self.dialect.reference(&full_name(name));
        }
        match self.schema.shape(id) {
            Shape::Any if self.is_inline => json!({ "x-kubernetes-preserve-unknown-fields": true }),
            Shape::Any => json!({}),
            Shape::Struct(fields) => self.structure("", fields),
            Shape::Scalar(Scalar::IntOrString) if self.is_inline => json!({ "x-kubernetes-int-or-string": true }),
            Shape::Scalar(scalar) if self.is_inline => self.shared(*scalar),
            Shape::Scalar(scalar) => match shared_name(*scalar) {
                Some(name) => self.dialect.reference(name),
                None => plain(*scalar),
            },
            Shape::List(list) => {
                let mut described = json!({ "type": "array", "items": self.node(list.items) });
                let (kind, keys) = match &list.merge {
                    ListMerge::Atomic => ("atomic", None),
                    ListMerge::Set => ("set", None),
                    ListMerge::Map(keys) => ("map", Some(keys.iter().map(AsRef::as_ref).collect::<Vec<&str>>())),
                };
                described["x-kubernetes-list-type"] = json!(kind);
                if let Some(keys) = keys {
                    described["x-kubernetes-list-map-keys"] = json!(keys);
                }
                described
            }
            Shape::Map(map) => {
                let mut described = json!({ "type": "object", "additionalProperties": self.node(map.values) });
                if map.atomic {
                    described["x-kubernetes-map-type"] = json!("atomic");
                }
                described
            }
        }
    }

    fn shared(&self, scalar: Scalar) -> Value {
        match (scalar, self.dialect) {
            (Scalar::Quantity, Dialect::V3) => json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
            (Scalar::IntOrString, Dialect::V3) => {
                json!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] })
            }
            (Scalar::IntOrString, Dialect::V2) => json!({ "type": "string", "format": "int-or-string" }),
            (Scalar::Time | Scalar::MicroTime, _) => json!({ "type": "string", "format": "date-time" }),
            (scalar, _) => plain(scalar),
        }
    }

    /// What a field refers to, behind lists and maps.
    fn innermost(&self, id: NodeId) -> NodeId {
        match self.schema.shape(id) {
            Shape::List(list) => self.innermost(list.items),
            Shape::Map(map) => self.innermost(map.values),
            Shape::Any | Shape::Scalar(_) | Shape::Struct(_) => id,
        }
    }
}

fn plain(scalar: Scalar) -> Value {
    match scalar {
        Scalar::Bytes => json!({ "type": "string", "format": "byte" }),
        Scalar::Bool => json!({ "type": "boolean" }),
        Scalar::Int32 => json!({ "type": "integer", "format": "int32" }),
        Scalar::Int64 => json!({ "type": "integer", "format": "int64" }),
        Scalar::Double => json!({ "type": "number", "format": "double" }),
        Scalar::String
        | Scalar::Quantity
        | Scalar::IntOrString
        | Scalar::Time
        | Scalar::MicroTime
        | Scalar::Duration => {
            json!({ "type": "string" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    fn all(dialect: Dialect) -> Map {
        definitions(builtin(), builtin().types().map(|(_, id)| id), dialect).collect()
    }

    /// Every reference in a value.
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, value)| match (key.as_str(), value.as_str()) {
                ("$ref", Some(reference)) => found.push(reference),
                _ => references(value, found),
            }),
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_to_a_definition() {
        for dialect in [Dialect::V2, Dialect::V3] {
            let definitions = all(dialect);
            for (name, definition) in &definitions {
                let mut found = Vec::new();
                references(definition, &mut found);
                for reference in found {
                    let target = reference.rsplit('/').next().unwrap();
                    assert!(definitions.contains_key(target), "{name} refers to {reference}");
                }
            }
        }
    }

    #[test]
    fn only_what_is_reachable_is_described() {
        let lease = builtin().named("coordination.v1.Lease").unwrap();
        let names: Map = definitions(builtin(), [lease], Dialect::V3).collect();
        assert!(names.contains_key("io.k8s.api.coordination.v1.LeaseSpec"));
        assert!(names.contains_key("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
        assert!(!names.contains_key("io.k8s.api.core.v1.Pod"));
    }

    #[test]
    fn nothing_stands_beside_a_reference_in_the_third_version() {
        let spec = |dialect| all(dialect)["io.k8s.api.core.v1.Pod"]["properties"]["spec"].clone();
        let name = "io.k8s.api.core.v1.PodSpec";
        assert_eq!(spec(Dialect::V3)["allOf"], json!([{ "$ref": format!("#/components/schemas/{name}") }]));
        assert_eq!(spec(Dialect::V3)["default"], json!({}));
        assert_eq!(spec(Dialect::V2)["$ref"], format!("#/definitions/{name}"));
        assert_eq!(spec(Dialect::V2).get("default"), None);
    }

    #[test]
    fn fields_say_how_they_merge() {
        let definitions = all(Dialect::V3);
        let container = &definitions["io.k8s.api.core.v1.Container"];
        assert_eq!(
            container["properties"]["ports"],
            json!({
                "description": "The ports that the container listens on; what is not listed can be reached all the same.",
                "type": "array",
                "items": { "$ref": "#/components/schemas/io.k8s.api.core.v1.ContainerPort" },
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "containerPort",
            })
        );
        assert_eq!(container["required"], json!(["name"]));
        let lists = &definitions["io.k8s.api.core.v1.PodList"]["properties"];
        assert_eq!(lists["kind"]["type"], "string");
        let volumes = &definitions["io.k8s.api.core.v1.PodSpec"]["properties"]["volumes"];
        assert_eq!(volumes["x-kubernetes-patch-strategy"], "merge,retainKeys");
        assert_eq!(
            definitions["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"]["x-kubernetes-map-type"],
            "atomic"
        );
    }
}
