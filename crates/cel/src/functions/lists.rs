//! Lists, and lists as sets.

use crate::compare::{compare, contains, position};
use crate::cost::Cost;
use crate::environment::{Row, row};
use crate::functions::unsuitable;
use crate::value::{Error, List, Value};
use std::cmp::Ordering;

/// A longer list would cost more than any evaluation may.
const MAX_RANGE: i64 = 1_000_000;

pub(crate) const TABLE: &[Row] = &[
    row("isSorted", "list(O).() -> bool", Cost::Elements, is_sorted),
    row("min", "list(O).() -> O", Cost::Elements, |args| extreme(args, "min", Ordering::Less)),
    row("max", "list(O).() -> O", Cost::Elements, |args| extreme(args, "max", Ordering::Greater)),
    row("sort", "list(O).() -> list(O)", Cost::Sort(0), sort),
    row("@sortByAssociatedKeys", "list(A).(list(O)) -> list(A)", Cost::Sort(1), sort_by),
    row("sum", "list(int).() -> int", Cost::Elements, |args| sum(args, Value::Int(0))),
    row("sum", "list(uint).() -> uint", Cost::Elements, |args| sum(args, Value::Uint(0))),
    row("sum", "list(double).() -> double", Cost::Elements, |args| sum(args, Value::Double(0.0))),
    row("sum", "list(duration).() -> duration", Cost::Elements, |args| sum(args, Value::Duration(0))),
    row("indexOf", "list(A).(A) -> int", Cost::Elements, |args| match args {
        [Value::List(items), item] => Ok(index(position(items.iter(), item)?)),
        _ => Err(unsuitable()),
    }),
    row("lastIndexOf", "list(A).(A) -> int", Cost::Elements, |args| match args {
        [Value::List(items), item] => {
            let backwards = (0..items.len()).rev().filter_map(|position| items.get(position));
            Ok(index(position(backwards, item)?.map(|found| items.len() - 1 - found)))
        }
        _ => Err(unsuitable()),
    }),
    row("slice", "list(A).(int, int) -> list(A)", Cost::Slice, |args| match args {
        [Value::List(items), Value::Int(start), Value::Int(end)] => slice(items, *start, *end),
        _ => Err(unsuitable()),
    }),
    row("flatten", "list(list(A)).() -> list(A)", Cost::Flatten, |args| match args {
        [Value::List(items)] => flatten(items, 1).map(Value::list),
        _ => Err(unsuitable()),
    }),
    row("flatten", "list(dyn).(int) -> list(dyn)", Cost::Flatten, |args| match args {
        [Value::List(_), Value::Int(..0)] => Err(Error::new("level must be non-negative")),
        [Value::List(items), Value::Int(depth)] => flatten(items, *depth).map(Value::list),
        _ => Err(unsuitable()),
    }),
    row("lists.range", "(int) -> list(int)", Cost::MakeList, |args| match args {
        [Value::Int(MAX_RANGE..)] => Err(Error::CallCostExceeded),
        [Value::Int(end)] => Ok(Value::list((0..*end).map(Value::Int).collect())),
        _ => Err(unsuitable()),
    }),
    row("reverse", "list(A).() -> list(A)", Cost::MakeList, |args| match args {
        [Value::List(items)] => {
            let mut items = items.clone().into_vec()?;
            items.reverse();
            Ok(Value::list(items))
        }
        _ => Err(unsuitable()),
    }),
    row("distinct", "list(A).() -> list(A)", Cost::Sort(0), |args| match args {
        [Value::List(items)] => {
            let mut distinct: Vec<Value<'_>> = Vec::new();
            for item in items.iter() {
                let item = item?;
                if position(distinct.iter().cloned().map(Ok), &item)?.is_none() {
                    distinct.push(item);
                }
            }
            Ok(Value::list(distinct))
        }
        _ => Err(unsuitable()),
    }),
];

pub(crate) const SETS: &[Row] = &[
    row("sets.contains", "(list(A), list(A)) -> bool", Cost::Sets(1), |args| match args {
        [Value::List(all), Value::List(some)] => contains_all(all, some).map(Value::Bool),
        _ => Err(unsuitable()),
    }),
    row("sets.equivalent", "(list(A), list(A)) -> bool", Cost::Sets(2), |args| match args {
        [Value::List(one), Value::List(other)] => {
            Ok(Value::Bool(contains_all(one, other)? && contains_all(other, one)?))
        }
        _ => Err(unsuitable()),
    }),
    row("sets.intersects", "(list(A), list(A)) -> bool", Cost::Sets(1), |args| match args {
        [Value::List(one), Value::List(other)] => {
            for item in one.iter() {
                if contains(other, &item?)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        _ => Err(unsuitable()),
    }),
];

fn contains_all<'a>(all: &List<'a>, some: &List<'a>) -> Result<bool, Error> {
    for item in some.iter() {
        if !contains(all, &item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn index<'a>(found: Option<usize>) -> Value<'a> {
    Value::Int(found.map_or(-1, |found| found as i64))
}

fn order(one: &Value<'_>, other: &Value<'_>) -> Result<Ordering, Error> {
    compare(one, other).unwrap_or_else(|| Err(unsuitable()))
}

fn is_sorted<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    let [Value::List(items)] = args else { return Err(unsuitable()) };
    let mut before = None;
    for item in items.iter() {
        let item = item?;
        if let Some(before) = before.replace(item.clone())
            && order(&before, &item)?.is_gt()
        {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn extreme<'a>(args: &[Value<'a>], name: &str, wanted: Ordering) -> Result<Value<'a>, Error> {
    let [Value::List(items)] = args else { return Err(unsuitable()) };
    let mut extreme: Option<Value<'a>> = None;
    for item in items.iter() {
        let item = item?;
        let better = match &extreme {
            Some(extreme) => order(&item, extreme)? == wanted,
            None => true,
        };
        if better {
            extreme = Some(item);
        }
    }
    extreme.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

fn sum<'a>(args: &[Value<'a>], zero: Value<'a>) -> Result<Value<'a>, Error> {
    let [Value::List(items)] = args else { return Err(unsuitable()) };
    let mut items = items.iter();
    let first = items.next().unwrap_or(Ok(zero))?;
    items.try_fold(first, |sum, item| super::operators::add(&mut [sum, item?]))
}

fn slice<'a>(items: &List<'a>, start: i64, end: i64) -> Result<Value<'a>, Error> {
    let fail = |why: &str| Err(Error::new(format!("cannot slice({start}, {end}), {why}")));
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(from), Ok(to)) if from > to => fail("start index must be less than or equal to end index"),
        (Ok(_), Ok(to)) if to > items.len() => fail(&format!("list is length {}", items.len())),
        (Ok(from), Ok(to)) => {
            let items = (from..to).filter_map(|index| items.get(index)).collect::<Result<_, _>>()?;
            Ok(Value::list(items))
        }
        _ => fail("negative indexes not supported"),
    }
}

fn flatten<'a>(items: &List<'a>, depth: i64) -> Result<Vec<Value<'a>>, Error> {
    let mut flat = Vec::new();
    for item in items.iter() {
        match item? {
            Value::List(inner) if depth > 0 => flat.extend(flatten(&inner, depth - 1)?),
            item => flat.push(item),
        }
    }
    Ok(flat)
}

fn sort<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    let [Value::List(items)] = args else { return Err(unsuitable()) };
    sorted(items, items)
}

fn sort_by<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    let [Value::List(items), Value::List(keys)] = args else { return Err(unsuitable()) };
    sorted(items, keys)
}

fn sorted<'a>(items: &List<'a>, keys: &List<'a>) -> Result<Value<'a>, Error> {
    if items.len() != keys.len() {
        let (items, keys) = (items.len(), keys.len());
        return Err(Error::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {items} and \
             {keys} elements respectively"
        )));
    }
    let mut pairs = Vec::with_capacity(items.len());
    for (key, item) in keys.iter().zip(items.iter()) {
        pairs.push((key?, item?));
    }
    if let Some((first, _)) = pairs.first() {
        let of = first.type_of();
        if pairs.iter().any(|(key, _)| key.type_of() != of) {
            return Err(Error::new("list elements must have the same type"));
        }
        if compare(first, first).is_none() {
            return Err(Error::new("list elements must be comparable"));
        }
    }
    let mut failed = None;
    pairs.sort_by(|(one, _), (other, _)| {
        order(one, other).unwrap_or_else(|error| {
            failed = Some(error);
            Ordering::Equal
        })
    });
    failed.map_or_else(|| Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect())), Err)
}
