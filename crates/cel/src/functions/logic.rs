//! What the evaluator does itself, since not all of its arguments are evaluated, or errors do not end it; equality.

use crate::ast::operator;
use crate::compare::{contains, equal};
use crate::cost::Cost;
use crate::environment::{Row, Run, row};
use crate::functions::unsuitable;
use crate::macros::MAP_INSERT;
use crate::value::{Error, Key, Map, Value};
use std::collections::BTreeMap;
use std::rc::Rc;

const fn special(name: &'static str, signature: &'static str, cost: Cost) -> Row {
    Row(name, signature, cost, Run::Special)
}

const ONE: Cost = Cost::Fixed(1);

pub(crate) const TABLE: &[Row] = &[
    special(operator::CONDITIONAL, "(bool, A, A) -> A", Cost::Conditional),
    special(operator::NOT_STRICTLY_FALSE, "(bool) -> bool", ONE),
    special(operator::INDEX, "(list(A), int) -> A", ONE),
    special(operator::INDEX, "(map(A, B), A) -> B", ONE),
    special(operator::INDEX, "(optional(list(A)), int) -> optional(A)", ONE),
    special(operator::INDEX, "(optional(map(A, B)), A) -> optional(B)", ONE),
    special(operator::OPTIONAL_INDEX, "(list(A), int) -> optional(A)", ONE),
    special(operator::OPTIONAL_INDEX, "(optional(list(A)), int) -> optional(A)", ONE),
    special(operator::OPTIONAL_INDEX, "(map(A, B), A) -> optional(B)", ONE),
    special(operator::OPTIONAL_INDEX, "(optional(map(A, B)), A) -> optional(B)", ONE),
    special(operator::OPTIONAL_SELECT, "(dyn, string) -> optional(A)", ONE),
    special("or", "optional(A).(optional(A)) -> optional(A)", ONE),
    special("orValue", "optional(A).(A) -> A", ONE),
    row(operator::NOT, "(bool) -> bool", ONE, |args| match args {
        [Value::Bool(value)] => Ok(Value::Bool(!*value)),
        _ => Err(unsuitable()),
    }),
    row(operator::EQUALS, "(A, A) -> bool", Cost::Compare, |args| match args {
        [one, other] => equal(one, other).map(Value::Bool),
        _ => Err(unsuitable()),
    }),
    row("_!=_", "(A, A) -> bool", Cost::Compare, |args| match args {
        [one, other] => equal(one, other).map(|equal| Value::Bool(!equal)),
        _ => Err(unsuitable()),
    }),
    row(operator::IN, "(A, list(A)) -> bool", Cost::InList, |args| match args {
        [item, Value::List(list)] => contains(list, item).map(Value::Bool),
        _ => Err(unsuitable()),
    }),
    row(operator::IN, "(A, map(A, B)) -> bool", ONE, |args| match args {
        [key, Value::Map(map)] => Ok(Value::Bool(key.as_key().is_some_and(|key| map.contains(&key)))),
        _ => Err(unsuitable()),
    }),
    row(MAP_INSERT, "(map(A, B), A, B) -> map(A, B)", ONE, |args| match args {
        [Value::Map(map), key, value] => {
            let key = key.as_key().ok_or_else(unsuitable)?;
            let added = [(key, std::mem::take(value))];
            insert_all(std::mem::replace(map, no_map()), added.into_iter().map(Ok))
        }
        _ => Err(unsuitable()),
    }),
    row(MAP_INSERT, "(map(A, B), map(A, B)) -> map(A, B)", ONE, |args| match args {
        [Value::Map(map), Value::Map(added)] => insert_all(std::mem::replace(map, no_map()), added.entries()),
        _ => Err(unsuitable()),
    }),
];

fn no_map<'a>() -> Map<'a> {
    Map::Owned(Rc::new(BTreeMap::new()))
}

/// A map with more entries; in place if nobody else has it.
fn insert_all<'a>(
    map: Map<'a>,
    added: impl Iterator<Item = Result<(Key<'a>, Value<'a>), Error>>,
) -> Result<Value<'a>, Error> {
    let mut entries = match map {
        Map::Owned(entries) => Rc::try_unwrap(entries).unwrap_or_else(|shared| (*shared).clone()),
        borrowed => borrowed.entries().collect::<Result<_, _>>()?,
    };
    for entry in added {
        let (key, value) = entry?;
        if entries.insert(key.clone(), value).is_some() {
            let key = super::conversions::to_text(&Value::from_key(key))?;
            return Err(Error::new(format!("insert failed: key {key} already exists")));
        }
    }
    Ok(Value::map(entries))
}
