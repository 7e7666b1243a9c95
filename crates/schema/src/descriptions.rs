//! What types and fields are for, in a sentence each, for `kubectl explain`.
//!
//! The sentences stand in `facts/descriptions.txt`: a name, two spaces, the sentence. A name is that of a type
//! (`core.v1.Container`), of a field (`core.v1.Container.image`), of a field of all lists or all conditions
//! (`*Condition.status`), or of a field of whatever type (`*.metadata`).
//! They are read when a document is made and not kept: documents are rare.

use std::collections::HashMap;

const TABLE: &str = include_str!("../facts/descriptions.txt");

/// Types by the ends of their names, the more particular first.
const FAMILIES: [&str; 3] = ["*Condition", "*List", "*"];

/// By name; empty where nothing is described.
#[derive(Debug, Default)]
pub(crate) struct Descriptions(HashMap<&'static str, &'static str>);

impl Descriptions {
    pub(crate) fn read() -> Self {
        Descriptions(lines().collect())
    }

    pub(crate) fn of_type(&self, name: &str) -> Option<String> {
        if let Some(description) = self.0.get(name) {
            return Some((*description).to_owned());
        }
        let kind = name.rsplit('.').next()?.strip_suffix("List").filter(|_| !self.0.is_empty())?;
        Some(format!("A list of objects of the kind {kind}."))
    }

    pub(crate) fn of_field(&self, owner: &str, field: &str) -> Option<&'static str> {
        let get = |owner: &str| self.0.get(format!("{owner}.{field}").as_str()).copied();
        let of_family =
            || FAMILIES.iter().filter(|family| owner.ends_with(&family[1..])).find_map(|family| get(family));
        get(owner).or_else(of_family)
    }
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split_once("  "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shape, builtin};

    #[test]
    fn every_description_is_of_something_that_is_there() {
        let schema = builtin();
        let is_type = |name: &str| schema.named(name).is_some();
        for (name, description) in lines() {
            assert!(description.ends_with('.'), "{name}: {description}");
            let (owner, field) = name.rsplit_once('.').unwrap();
            let has_field = |id| matches!(schema.shape(id), Shape::Struct(fields) if fields.field(field).is_some());
            let found = match owner {
                family if FAMILIES.contains(&family) => {
                    schema.types().any(|(name, id)| name.ends_with(&family[1..]) && has_field(id))
                }
                _ => is_type(name) || schema.named(owner).is_some_and(has_field),
            };
            assert!(found, "there is no {name}");
        }
    }

    #[test]
    fn every_line_describes_one_thing_once() {
        let mut names: Vec<_> = lines().map(|(name, _)| name).collect();
        let described = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert_eq!(names.len(), described);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name is there twice");
    }

    #[test]
    fn every_kind_is_described() {
        let descriptions = Descriptions::read();
        for (name, id) in builtin().types() {
            let Shape::Struct(fields) = builtin().shape(id) else { continue };
            if fields.field("apiVersion").is_some() && fields.field("metadata").is_some() {
                assert!(descriptions.of_type(name).is_some(), "{name} is not described");
            }
        }
    }

    #[test]
    fn fields_of_a_type_are_described_before_those_of_all_types() {
        let descriptions = Descriptions::read();
        assert_ne!(descriptions.of_field("core.v1.ConfigMap", "data"), None);
        assert_eq!(descriptions.of_field("core.v1.Pod", "metadata"), descriptions.of_field("no.v1.Kind", "metadata"));
        assert_ne!(
            descriptions.of_field("core.v1.Pod", "status"),
            descriptions.of_field("core.v1.PodCondition", "status")
        );
        assert_ne!(descriptions.of_field("core.v1.Pod", "spec"), descriptions.of_field("core.v1.Service", "spec"));
        assert_eq!(descriptions.of_type("core.v1.PodList").unwrap(), "A list of objects of the kind Pod.");
        assert_eq!(Descriptions::default().of_type("core.v1.PodList"), None);
    }
}
