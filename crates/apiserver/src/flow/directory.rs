//! What the objects of flow control come to: which schema a request falls under, and the level it is served at.
//!
//! A directory is made anew whenever an object changes, and never changed itself, so whoever has one needs no lock. The
//! levels at work go from one to the next. A level whose object is gone is in none: no request comes to it any more, and
//! those that it has are served or time out as its last limit allows.

use super::classify::{self, Distinguisher, Index, Schema};
use super::defaults::{self, CATCH_ALL, MANDATORY};
use super::figures::{Figures, LaneFigures};
use super::level::{Level, Response, Terms};
use super::shares::{self, Bounds};
use crate::request::Info;
use authz::User;
use aws_lc_rs::digest::{SHA256, digest};
use http::HeaderValue;
use object::{Value, View};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The objects there are, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    pub(super) schemas: BTreeMap<String, Value>,
    pub(super) levels: BTreeMap<String, Value>,
}

/// The objects, what was read from them, and the levels at work.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) objects: Objects,
    schemas: BTreeMap<String, Arc<Schema>>,
    terms: BTreeMap<String, Terms>,
    levels: BTreeMap<String, Arc<Level>>,
}

/// Decides where requests go.
#[derive(Debug)]
pub(super) struct Directory {
    index: Index,
    /// In the order of the index.
    lanes: Vec<Arc<Lane>>,
    /// For what no schema is for.
    catch_all: Arc<Lane>,
    levels: Vec<(Arc<Level>, Bounds)>,
}

/// The way of the requests that fall under one schema.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(super) schema: String,
    distinguisher: Distinguisher,
    pub(super) level: Arc<Level>,
    pub(super) is_exempt: bool,
    /// What answers say of it: upstream shows no names, which might tell users what others think of them.
    pub(super) schema_uid: HeaderValue,
    pub(super) level_uid: HeaderValue,
    pub(super) figures: LaneFigures,
}

/// Whether two objects decide alike: what is in their status does not matter.
fn is_same(old: Option<&Value>, new: Option<&Value>) -> bool {
    let decides = |object: &Value| (object.at("spec").clone(), object.at("metadata").text("uid").to_owned());
    old.map(decides) == new.map(decides)
}

fn put<T>(map: &mut BTreeMap<String, T>, name: &str, value: Option<T>) -> Option<T> {
    match value {
        Some(value) => map.insert(name.to_owned(), value),
        None => map.remove(name),
    }
}

impl Known {
    /// Takes in a FlowSchema, or that it is gone; whether that changes any decision.
    pub(super) fn put_schema(&mut self, name: &str, object: Option<Value>) -> bool {
        put(&mut self.schemas, name, object.as_ref().map(|object| Arc::new(Schema::read(object))));
        let old = put(&mut self.objects.schemas, name, object);
        !is_same(old.as_ref(), self.objects.schemas.get(name))
    }

    /// The same for a PriorityLevelConfiguration.
    pub(super) fn put_level(&mut self, name: &str, object: Option<Value>) -> bool {
        put(&mut self.terms, name, object.as_ref().map(Terms::read));
        let old = put(&mut self.objects.levels, name, object);
        !is_same(old.as_ref(), self.objects.levels.get(name))
    }

    /// What follows from all objects.
    pub(super) fn directory(&mut self, figures: &Figures) -> Directory {
        let mut terms = self.terms.clone();
        for object in mandatory(defaults::levels()) {
            terms.entry(name_of(&object)).or_insert_with(|| Terms::read(&object));
        }
        let levels = self.keep_levels(&terms, figures);
        let mut schemas = self.schemas.clone();
        for object in mandatory(defaults::schemas()) {
            schemas.entry(name_of(&object)).or_insert_with(|| Arc::new(Schema::read(&object)));
        }
        // One that names a level that is not there decides nothing.
        let mut schemas: Vec<_> = schemas.into_values().filter(|schema| terms.contains_key(&schema.level)).collect();
        classify::order(&mut schemas);
        let lane = |schema: &Arc<Schema>| {
            let (terms, level) = (terms.get(&schema.level)?, self.levels.get(&schema.level)?);
            Some(Arc::new(Lane {
                schema: schema.name.clone(),
                distinguisher: schema.distinguisher,
                level: level.clone(),
                is_exempt: terms.response == Response::Exempt,
                schema_uid: uid(&schema.uid),
                level_uid: uid(&terms.uid),
                figures: figures.of(&level.name, &schema.name),
            }))
        };
        let lanes: Vec<Arc<Lane>> = schemas.iter().filter_map(lane).collect();
        let catch_all = lanes.iter().find(|lane| lane.schema == CATCH_ALL).cloned();
        Directory {
            index: Index::new(&schemas),
            lanes,
            catch_all: catch_all.expect("the mandatory schema is there, and so is its level"),
            levels,
        }
    }

    /// Brings the levels at work up to date; those that go on keep whom they serve.
    fn keep_levels(&mut self, terms: &BTreeMap<String, Terms>, figures: &Figures) -> Vec<(Arc<Level>, Bounds)> {
        self.levels.retain(|name, _| {
            let stays = terms.contains_key(name);
            if !stays {
                figures.forget(name);
            }
            stays
        });
        let shares: Vec<_> = terms.values().map(|terms| terms.share).collect();
        let kept = terms.iter().zip(shares::bounds(&shares)).map(|((name, terms), bounds)| {
            let level = self.levels.entry(name.clone()).or_insert_with(|| Arc::new(Level::new(name)));
            level.configure(terms.response, bounds);
            figures.limits(name, bounds, level.digest().limit);
            (level.clone(), bounds)
        });
        kept.collect()
    }
}

fn mandatory(objects: Vec<Value>) -> impl Iterator<Item = Value> {
    objects.into_iter().filter(|object| MANDATORY.contains(&name_of(object).as_str()))
}

fn name_of(object: &Value) -> String {
    object.at("metadata").text("name").to_owned()
}

fn uid(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

impl Directory {
    pub(super) fn lane(&self, user: &User, info: &Info) -> &Arc<Lane> {
        self.index.classify(user, info).and_then(|place| self.lanes.get(place)).unwrap_or(&self.catch_all)
    }

    /// Lends seats that are not needed to levels that are short. Returns whether anything is lent.
    pub(super) fn balance(&self, figures: &Figures) -> bool {
        let demands: Vec<_> = self.levels.iter().map(|(level, bounds)| (*bounds, level.take_demand())).collect();
        let limits = shares::balance(&demands);
        for ((level, bounds), limit) in self.levels.iter().zip(&limits) {
            level.set_limit(*limit);
            figures.limits(&level.name, *bounds, *limit);
        }
        self.levels.iter().zip(&limits).any(|((_, bounds), limit)| bounds.nominal != *limit)
    }

    pub(super) fn levels(&self) -> impl Iterator<Item = &Arc<Level>> {
        self.levels.iter().map(|(level, _)| level)
    }
}

impl Lane {
    /// The hash of the flow that a request belongs to.
    pub(super) fn flow(&self, user: &User, info: &Info) -> u64 {
        let distinguisher = match self.distinguisher {
            Distinguisher::None => "",
            Distinguisher::ByUser => &user.name,
            Distinguisher::ByNamespace => info.target.as_ref().map_or("", |target| target.namespace.as_str()),
        };
        let name = [self.schema.as_bytes(), distinguisher.as_bytes()].join(&0);
        let hash = digest(&SHA256, &name);
        hash.as_ref().iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::user;
    use crate::request::Query;
    use object::json;

    fn directory(known: &mut Known) -> Directory {
        known.directory(&Figures::new(&prometheus::Registry::new()))
    }

    fn place(directory: &Directory, user: &User) -> (String, String) {
        let lane = directory.lane(user, &Info::new(&http::Method::GET, "/api/v1/pods", &Query::default()));
        (lane.schema.clone(), lane.level.name.clone())
    }

    #[test]
    fn without_any_object_administrators_are_exempt_and_all_others_are_caught() {
        let directory = directory(&mut Known::default());
        let masters = user("admin", &["system:masters"]);
        assert_eq!(place(&directory, &masters), ("exempt".into(), "exempt".into()));
        for other in [user("ann", &["system:authenticated"]), user("stray", &[])] {
            assert_eq!(place(&directory, &other), ("catch-all".into(), "catch-all".into()));
        }
        assert_eq!(directory.levels().map(|level| level.digest().limit).collect::<Vec<_>>(), [600, 0]);
    }

    #[test]
    fn a_schema_whose_level_is_gone_decides_nothing_and_the_level_serves_whom_it_has() {
        let mut known = Known::default();
        for level in defaults::levels() {
            known.put_level(&name_of(&level), Some(level));
        }
        for schema in defaults::schemas() {
            known.put_schema(&name_of(&schema), Some(schema));
        }
        let ann = user("ann", &["system:authenticated"]);
        let before = directory(&mut known);
        assert_eq!(place(&before, &ann).1, "global-default");
        assert!(known.put_level("global-default", None));
        let after = directory(&mut known);
        assert_eq!(place(&after, &ann).1, "catch-all");
        let old = &before.lane(&ann, &Info::new(&http::Method::GET, "/", &Query::default())).level;
        assert!(matches!(old.enter(1, || 0), super::super::level::Entry::Seat));
    }

    #[test]
    fn what_is_in_a_status_changes_no_decision_and_levels_go_on_as_they_are() {
        let mut known = Known::default();
        let schema = |status: Value| json!({ "metadata": { "uid": "u" }, "spec": { "rules": [] }, "status": status });
        assert!(known.put_schema("a", Some(schema(Value::Null))));
        let before = directory(&mut known);
        assert!(!known.put_schema("a", Some(schema(json!({ "conditions": [] })))));
        let after = directory(&mut known);
        assert!(before.levels().zip(after.levels()).all(|(old, new)| Arc::ptr_eq(old, new)));
    }

    #[test]
    fn flows_are_told_apart_as_their_schema_says() {
        let lane = |distinguisher| {
            let lanes = directory(&mut Known::default()).lanes;
            let lane = Arc::into_inner(lanes.into_iter().next().unwrap()).unwrap();
            Lane { distinguisher, ..lane }
        };
        let info = |path: &str| Info::new(&http::Method::GET, path, &Query::default());
        let (ann, bob) = (user("ann", &[]), user("bob", &[]));
        let (here, there) = (info("/api/v1/namespaces/a/pods"), info("/api/v1/namespaces/b/pods"));
        let flows =
            |lane: &Lane| [(&ann, &here), (&bob, &here), (&ann, &there)].map(|(user, info)| lane.flow(user, info));
        let [one, two, three] = flows(&lane(Distinguisher::ByUser));
        assert!(one != two && one == three);
        let [one, two, three] = flows(&lane(Distinguisher::ByNamespace));
        assert!(one == two && one != three);
        let [one, two, three] = flows(&lane(Distinguisher::None));
        assert!(one == two && one == three);
    }
}
