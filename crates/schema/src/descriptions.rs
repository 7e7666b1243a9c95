//! What types and fields are for, in a sentence or two each, for `kubectl explain`.
//!
//! The sentences stand in `facts/descriptions/`, in a file for each table of types, a block for each type:
//!
//! ```text
//! Container  A program that runs in a pod.                  a type, two spaces and what it is
//!   image  The image to run.                                a field of it
//!
//! EphemeralContainer like Container  A container for ...    fields without a line here are described there
//!   targetContainerName  The container to look into.
//! ```
//!
//! What a version leaves out is described as in the other versions of its group, and what all of them leave out as in
//! the family that a type belongs to by the end of its name. Families and types of no table are in `shared.txt`.
//! The sentences are found when a document is made, and nothing of them is kept: documents are rare.

use std::collections::HashMap;

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../facts/descriptions/", $name, ".txt")))),*] };
}

/// By package; of one group, the version that describes the others comes first.
const FILES: &[(&str, &str)] = files!(
    "admissionregistration.v1",
    "apiextensions.v1",
    "apiregistration.v1",
    "apps.v1",
    "authentication.v1",
    "authorization.v1",
    "autoscaling.v2",
    "autoscaling.v1",
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
    "node.v1",
    "policy.v1",
    "rbac.v1",
    "resource.v1",
    "resource.v1beta1",
    "resource.v1beta2",
    "scheduling.v1",
    "scheduling.v1alpha2",
    "shared",
    "storage.v1",
    "storagemigration.v1beta1",
);

/// Types by the ends of their names, the more particular first.
const FAMILIES: [&str; 5] = ["*Condition", "*List", "*Reference", "*VolumeSource", "*"];

/// What is said of one type.
#[derive(Debug)]
struct Block {
    sentence: &'static str,
    like: Option<&'static str>,
    fields: &'static str,
}

impl Block {
    fn field(&self, field: &str) -> Option<&'static str> {
        pairs(self.fields).find_map(|(name, sentence)| (name == field).then_some(sentence))
    }
}

/// By package and name; empty where nothing is described.
#[derive(Debug, Default)]
pub(crate) struct Descriptions(HashMap<(&'static str, &'static str), Block>);

impl Descriptions {
    pub(crate) fn read() -> Self {
        Descriptions(blocks().collect())
    }

    pub(crate) fn of_type(&self, name: &str) -> Option<String> {
        let (package, kind) = split(name);
        if let Some(block) = self.in_every_version(package, kind).next() {
            return Some(block.1.sentence.to_owned());
        }
        let kind = kind.strip_suffix("List").filter(|_| !self.0.is_empty())?;
        Some(format!("A list of objects of the kind {kind}."))
    }

    pub(crate) fn of_field(&self, owner: &str, field: &str) -> Option<&'static str> {
        let (package, kind) = split(owner);
        let families = FAMILIES.iter().filter(|family| kind.ends_with(&family[1..]));
        let of_family = || families.filter_map(|family| self.0.get(&("shared", *family)));
        self.of_its_own(package, kind, field).or_else(|| of_family().find_map(|block| block.field(field)))
    }

    fn of_its_own(&self, package: &str, kind: &str, field: &str) -> Option<&'static str> {
        self.in_every_version(package, kind).find_map(|(package, block)| {
            block.field(field).or_else(|| {
                let like = block.like?;
                let (package, kind) = if like.contains('.') { split(like) } else { (package, like) };
                self.of_its_own(package, kind, field)
            })
        })
    }

    /// What is said of a type in its own package, and then in the others of its group.
    fn in_every_version<'a>(
        &'a self,
        package: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Block)> + 'a {
        let is_sibling = move |other: &str| other != package && group(other) == group(package);
        let others = FILES.iter().map(|(name, _)| *name).filter(move |name| is_sibling(name));
        std::iter::once(package).chain(others).filter_map(move |name| Some((name, self.0.get(&(name, kind))?)))
    }
}

/// `core.v1.Pod` is `Pod` of `core.v1`; what has no package is shared.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or(("shared", name))
}

fn group(package: &str) -> &str {
    package.split('.').next().unwrap_or(package)
}

fn blocks() -> impl Iterator<Item = ((&'static str, &'static str), Block)> {
    let blocks = FILES.iter().flat_map(|(package, text)| text.split("\n\n").map(move |block| (*package, block)));
    blocks.filter(|(_, block)| !block.starts_with('#')).filter_map(|(package, block)| {
        let (heading, fields) = block.split_once('\n').unwrap_or((block, ""));
        let (name, sentence) = heading.split_once("  ")?;
        let (name, like) = name.split_once(" like ").map_or((name, None), |(name, like)| (name, Some(like)));
        Some(((package, name), Block { sentence, like, fields }))
    })
}

/// Names and sentences, a line each.
fn pairs(fields: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    fields.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeId;
    use crate::{Shape, builtin};
    use std::collections::BTreeSet;

    fn full_name(package: &str, name: &str) -> String {
        if package == "shared" { name.to_owned() } else { format!("{package}.{name}") }
    }

    /// Types that a block may speak of: one, or those of a family.
    fn types_of(package: &str, name: &str) -> Vec<NodeId> {
        let types = builtin().types();
        match name.strip_prefix('*') {
            Some(end) => types.filter(|(name, _)| name.ends_with(end)).map(|(_, id)| id).collect(),
            None => builtin().named(&full_name(package, name)).into_iter().collect(),
        }
    }

    fn has_field(id: NodeId, field: &str) -> bool {
        matches!(builtin().shape(id), Shape::Struct(fields) if fields.field(field).is_some())
    }

    #[test]
    fn every_type_and_every_field_is_described() {
        let descriptions = Descriptions::read();
        let mut missing = Vec::new();
        for (name, id) in builtin().types() {
            if descriptions.of_type(name).is_none() {
                missing.push(name.to_owned());
            }
            let Shape::Struct(fields) = builtin().shape(id) else { continue };
            let is_missing = |field: &&str| descriptions.of_field(name, field).is_none();
            let names = fields.fields.iter().map(|field| field.name.as_ref());
            missing.extend(names.filter(is_missing).map(|field| format!("{name}.{field}")));
        }
        assert!(missing.is_empty(), "{} have no description:\n{}", missing.len(), missing.join("\n"));
    }

    #[test]
    fn every_description_is_of_something_that_is_there() {
        const SCALARS: [&str; 5] = ["Duration", "IntOrString", "MicroTime", "Quantity", "Time"];
        let mut wrong = Vec::new();
        for ((package, name), block) in blocks() {
            let types = types_of(package, name);
            if types.is_empty() && !SCALARS.contains(&name) {
                wrong.push(format!("{package}: there is no {name}"));
            }
            if name.starts_with('*') && !FAMILIES.contains(&name) {
                wrong.push(format!("{name} is no family"));
            }
            for (field, _) in pairs(block.fields) {
                if !types.iter().any(|id| has_field(*id, field)) {
                    wrong.push(format!("{package}: there is no {name}.{field}"));
                }
            }
            if let Some(like) = block.like
                && builtin().named(like).is_none()
                && builtin().named(&full_name(package, like)).is_none()
            {
                wrong.push(format!("{package}: {name} cannot be like {like}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_line_describes_one_thing_once() {
        let mut seen = BTreeSet::new();
        let mut described = 0;
        for ((package, name), block) in blocks() {
            for (field, sentence) in pairs(block.fields).chain([("", block.sentence)]) {
                assert!(seen.insert((package, name, field)), "{package}: {name} {field} is there twice");
                assert!(sentence.ends_with('.'), "{package}: {name} {field}: {sentence}");
                assert_eq!(sentence, sentence.trim(), "{package}: {name} {field}");
                described += 1;
            }
        }
        let is_description = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let lines: usize = FILES.iter().map(|(_, text)| text.lines().filter(is_description).count()).sum();
        assert_eq!(described, lines, "some lines describe nothing");
    }

    #[test]
    fn fields_of_a_type_are_described_before_those_of_its_family() {
        let descriptions = Descriptions::read();
        let of_field = |owner, field| descriptions.of_field(owner, field).unwrap();
        assert_eq!(of_field("core.v1.Pod", "metadata"), of_field("no.v1.Kind", "metadata"));
        assert_ne!(of_field("core.v1.Pod", "status"), of_field("core.v1.PodCondition", "status"));
        assert_ne!(of_field("core.v1.Pod", "spec"), of_field("core.v1.Service", "spec"));
        assert_eq!(descriptions.of_type("core.v1.PodList").unwrap(), "A list of objects of the kind Pod.");
        assert_eq!(Descriptions::default().of_type("core.v1.PodList"), None);
    }

    #[test]
    fn what_is_alike_is_described_alike() {
        let descriptions = Descriptions::read();
        let of_field = |owner, field| descriptions.of_field(owner, field).unwrap();
        assert_eq!(of_field("core.v1.EphemeralContainer", "image"), of_field("core.v1.Container", "image"));
        assert_ne!(of_field("core.v1.EphemeralContainer", "name"), of_field("core.v1.Container", "name"));
        assert_eq!(of_field("resource.v1beta2.DeviceTaint", "key"), of_field("resource.v1.DeviceTaint", "key"));
        let count = of_field("resource.v1.ExactDeviceRequest", "count");
        assert_eq!(of_field("resource.v1beta1.DeviceSubRequest", "count"), count);
        let of_type = |name| descriptions.of_type(name);
        assert_eq!(of_type("resource.v1beta1.DeviceTaint"), of_type("resource.v1.DeviceTaint"));
        assert_ne!(
            of_type("autoscaling.v1.HorizontalPodAutoscaler"),
            of_type("autoscaling.v2.HorizontalPodAutoscaler")
        );
    }
}
