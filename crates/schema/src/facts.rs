//! The types of the built-in kinds, read from the tables in `facts/`.
//!
//! A table lists the types of one group and version. Its lines:
//!
//! ```text
//! Container                                                   a type; "kind" if it has apiVersion and kind of its own,
//!   name!  1 string =""                                         "whole" if it merges as one value
//!   ports  6 [ContainerPort] map=containerPort,protocol patch-merge=containerPort
//!   limits 2 {Quantity}                                       a field: name, ! if required, protobuf number, type, ?
//!   stop   9 int32?                                             if zero is not the same as not set, and then how it
//! ```                                                           merges and what it defaults to
//!
//! A number like `2.3` is field 3 of the message in field 2 whose fields JSON shows inline. Types of other tables are
//! named in full (`meta.v1.ObjectMeta`). The tables are part of the program; a mistake in one is a bug, so reading
//! them panics where it cannot go on, and a test reads them all.

use crate::node::{Field, List, ListMerge, Map, NodeId, Patch, Scalar, Schema, Shape, Struct};
use std::sync::{Arc, LazyLock};

macro_rules! tables {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../facts/", $name, ".txt")))),*] };
}

const TABLES: &[(&str, &str)] = tables!(
    "admissionregistration.v1",
    "admissionregistration.v1beta1",
    "apiextensions.v1",
    "apiregistration.v1",
    "apps.v1",
    "authentication.v1",
    "authorization.v1",
    "autoscaling.v1",
    "autoscaling.v2",
    "batch.v1",
    "certificates.v1",
    "certificates.v1beta1",
    "coordination.v1",
    "coordination.v1beta1",
    "core.v1",
    "discovery.v1",
    "events.v1",
    "flowcontrol.v1",
    "meta.v1",
    "metrics.v1beta1",
    "networking.v1",
    "networking.v1beta1",
    "node.v1",
    "policy.v1",
    "rbac.v1",
    "resource.v1",
    "resource.v1alpha3",
    "resource.v1beta1",
    "resource.v1beta2",
    "scheduling.v1",
    "scheduling.v1alpha2",
    "storage.v1",
    "storage.v1beta1",
    "storagemigration.v1beta1",
);

/// The schema of everything built in, read once.
pub fn builtin() -> &'static Schema {
    static BUILTIN: LazyLock<Schema> = LazyLock::new(|| {
        let mut schema = Schema::default();
        for (package, table) in TABLES {
            Reader { package, schema: &mut schema }.read(table);
        }
        schema
    });
    &BUILTIN
}

struct Reader<'a> {
    package: &'a str,
    schema: &'a mut Schema,
}

impl Reader<'_> {
    fn read(&mut self, table: &str) {
        let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut current: Option<(NodeId, Struct)> = None;
        for line in lines {
            match (line.strip_prefix("  "), &mut current) {
                (Some(field), Some((_, fields))) => fields.fields.push(self.field(field)),
                (Some(_), None) => panic!("{}: a field before the first type: {line}", self.package),
                (None, _) => {
                    self.finish(current.take());
                    current = Some(self.heading(line));
                }
            }
        }
        self.finish(current);
    }

    fn heading(&mut self, line: &str) -> (NodeId, Struct) {
        let mut words = line.split(' ');
        let name = format!("{}.{}", self.package, words.next().expect("a line that is not empty has a word"));
        let mut found = Struct::default();
        for word in words {
            match word {
                "kind" => found.fields.extend(["apiVersion", "kind"].map(|name| self.type_field(name))),
                "whole" => found.atomic = true,
                other => panic!("{name}: what does {other:?} mean?"),
            }
        }
        (self.schema.declare(&name), found)
    }

    /// `apiVersion` and `kind` travel beside the protobuf message, not in it.
    fn type_field(&mut self, name: &str) -> Field {
        let node = self.schema.add(Shape::Scalar(Scalar::String));
        Field {
            name: name.into(),
            node,
            required: false,
            number: Vec::new(),
            default: None,
            keeps_zero: true,
            granular: false,
            patch: Patch::default(),
        }
    }

    fn finish(&mut self, finished: Option<(NodeId, Struct)>) {
        if let Some((id, mut found)) = finished {
            found.fields.sort_by(|a, b| a.name.cmp(&b.name));
            self.schema.define(id, Shape::Struct(found));
        }
    }

    fn field(&mut self, line: &str) -> Field {
        let (facts, default) = match line.split_once(" =") {
            Some((facts, default)) => (facts, Some(default)),
            None => (line, None),
        };
        let mut words = facts.split_whitespace();
        let mut word = || words.next().unwrap_or_else(|| panic!("{}: too short: {line}", self.package));
        let (name, number, kind) = (word(), word(), word());
        let node = self.kind(kind.trim_end_matches('?'));
        let (mut patch, mut granular) = (Patch::default(), false);
        for word in words {
            match word {
                "granular" => granular = true,
                word => self.merging(node, word, &mut patch),
            }
        }
        Field {
            name: name.trim_end_matches('!').into(),
            node,
            required: name.ends_with('!'),
            number: number.split('.').map(|part| part.parse().expect("protobuf numbers are numbers")).collect(),
            default: default.map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: what is {text}?"))),
            keeps_zero: kind.ends_with('?') || name.ends_with('!') || default.is_some(),
            granular,
            patch,
        }
    }

    /// The node for the type of a field; each field has its own, since merging is a property of the field.
    fn kind(&mut self, text: &str) -> NodeId {
        let inside = |open, close| text.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
        if let Some(items) = inside('[', ']') {
            let items = self.kind(items);
            return self.schema.add(Shape::List(List { items, merge: ListMerge::Atomic }));
        }
        if let Some(values) = inside('{', '}') {
            let values = self.kind(values);
            return self.schema.add(Shape::Map(Map { values, atomic: false }));
        }
        let scalar = match text {
            "string" => Scalar::String,
            "bytes" => Scalar::Bytes,
            "bool" => Scalar::Bool,
            "int32" => Scalar::Int32,
            "int64" => Scalar::Int64,
            "double" => Scalar::Double,
            "Quantity" => Scalar::Quantity,
            "IntOrString" => Scalar::IntOrString,
            "Time" => Scalar::Time,
            "MicroTime" => Scalar::MicroTime,
            "Duration" => Scalar::Duration,
            "Raw" | "FieldsV1" | "Json" | "SchemaOrArray" | "SchemaOrBool" | "SchemaOrStrings" => {
                // Named after what they are, for the protobuf codec; to everything else they are any JSON.
                return self.schema.declare(text);
            }
            name if name.contains('.') => return self.schema.declare(name),
            name => return self.schema.declare(&format!("{}.{name}", self.package)),
        };
        self.schema.add(Shape::Scalar(scalar))
    }

    fn merging(&mut self, node: NodeId, word: &str, patch: &mut Patch) {
        let (word, argument) = word.split_once('=').unwrap_or((word, ""));
        let keys = || argument.split(',').map(Arc::from).collect();
        match word {
            "atomic" => self.merge_list(node, ListMerge::Atomic),
            "set" => self.merge_list(node, ListMerge::Set),
            "map" => self.merge_list(node, ListMerge::Map(keys())),
            "whole" => self.merge_whole(node),
            "patch-merge" => patch.merge = Some(argument.into()),
            "patch-replace" => patch.replace = true,
            "patch-retainKeys" => patch.retain_keys = true,
            other => panic!("{}: what does {other:?} mean?", self.package),
        }
    }

    fn merge_list(&mut self, node: NodeId, merge: ListMerge) {
        match self.schema.shape(node) {
            Shape::List(list) => {
                let list = List { merge, ..list.clone() };
                self.schema.define(node, Shape::List(list));
            }
            other => panic!("{}: {other:?} merges as a list", self.package),
        }
    }

    fn merge_whole(&mut self, node: NodeId) {
        match self.schema.shape(node) {
            Shape::Map(map) => {
                let map = Map { atomic: true, ..map.clone() };
                self.schema.define(node, Shape::Map(map));
            }
            other => panic!("{}: {other:?} merges as a map", self.package),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    fn at<'a>(schema: &'a Schema, name: &str, path: &[&str]) -> (&'a Field, &'a Shape) {
        let mut id = schema.named(name).unwrap();
        let mut found = None;
        for step in path {
            while let Shape::List(list) = schema.shape(id) {
                id = list.items;
            }
            let Shape::Struct(fields) = schema.shape(id) else { panic!("{step} in no struct") };
            let field = fields.field(step).unwrap_or_else(|| panic!("no field {step}"));
            id = field.node;
            found = Some(field);
        }
        (found.unwrap(), schema.shape(id))
    }

    #[test]
    fn every_type_that_is_named_is_defined() {
        let schema = builtin();
        let special = ["Raw", "FieldsV1", "Json", "SchemaOrArray", "SchemaOrBool", "SchemaOrStrings"];
        for (name, id) in schema.types().filter(|(name, _)| !special.contains(name)) {
            assert!(matches!(schema.shape(id), Shape::Struct(_)), "{name} is not defined");
        }
    }

    #[test]
    fn the_tables_say_what_is_known_of_some_fields() {
        let schema = builtin();
        let (ports, shape) = at(schema, "core.v1.Pod", &["spec", "containers", "ports"]);
        assert_eq!(ports.patch.merge.as_deref(), Some("containerPort"));
        let Shape::List(List { merge: ListMerge::Map(keys), .. }) = shape else { panic!("{shape:?}") };
        assert_eq!(keys.iter().map(AsRef::as_ref).collect::<Vec<_>>(), ["containerPort", "protocol"]);
        let (protocol, _) = at(schema, "core.v1.Container", &["ports", "protocol"]);
        assert_eq!(protocol.default, Some(json!("TCP")));
        let (host_path, _) = at(schema, "core.v1.Volume", &["hostPath"]);
        assert_eq!(host_path.number, [2, 1]);
        let (selector, shape) = at(schema, "core.v1.Service", &["spec", "selector"]);
        assert!(!selector.required);
        assert!(matches!(shape, Shape::Map(Map { atomic: true, .. })), "{shape:?}");
        let (volumes, _) = at(schema, "core.v1.PodSpec", &["volumes"]);
        assert!(volumes.patch.retain_keys && volumes.patch.merge.as_deref() == Some("name"));
        assert!(at(schema, "apps.v1.Deployment", &["spec", "selector"]).0.required);
        assert!(at(schema, "apps.v1.Deployment", &["kind"]).0.number.is_empty());
    }
}
