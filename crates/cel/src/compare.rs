//! When values are equal, and which of two is the smaller.

use crate::declaration::{Declaration, Equality};
use crate::json;
use crate::value::{Error, List, Map, Value, name_of_type};
use object::{Map as JsonMap, View};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

/// To put lists together costs next to nothing, so that they could grow without bound. Whoever looked at all items of a
/// longer list would pay more than there is.
const MAX_ITEMS: usize = 1_000_000;

/// Numbers are equal if they are the same number, of whatever type. Values of different types are not equal.
pub(crate) fn equal<'a>(one: &Value<'a>, other: &Value<'a>) -> Result<bool, Error> {
    Ok(match (one, other) {
        (Value::Null, Value::Null) => true,
        (Value::String(one), Value::String(other)) => **one == **other,
        (Value::Bytes(one), Value::Bytes(other)) => one == other,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Timestamp(one), Value::Timestamp(other)) => one == other,
        (Value::Duration(one), Value::Duration(other)) => one == other,
        (Value::List(one), Value::List(other)) => equal_lists(one, other)?,
        (Value::Map(one), Value::Map(other)) => equal_maps(one, other)?,
        (Value::Type(one), Value::Type(other)) => name_of_type(one) == name_of_type(other),
        (Value::Optional(Some(one)), Value::Optional(Some(other))) => equal(one, other)?,
        (Value::Optional(None), Value::Optional(None)) => true,
        (Value::Opaque(one), Value::Opaque(other)) => one.equals(&**other),
        _ => numbers(one, other).is_some_and(|order| order == Some(Ordering::Equal)),
    })
}

/// None if one is no number; none within if one is not a number, as the floating points call it.
fn numbers(one: &Value<'_>, other: &Value<'_>) -> Option<Option<Ordering>> {
    Some(match (one, other) {
        (Value::Int(one), Value::Int(other)) => Some(one.cmp(other)),
        (Value::Uint(one), Value::Uint(other)) => Some(one.cmp(other)),
        (Value::Double(one), Value::Double(other)) => one.partial_cmp(other),
        (Value::Int(one), Value::Uint(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Value::Uint(one), Value::Int(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Value::Int(one), Value::Double(other)) => (*one as f64).partial_cmp(other),
        (Value::Double(one), Value::Int(other)) => one.partial_cmp(&(*other as f64)),
        (Value::Uint(one), Value::Double(other)) => (*one as f64).partial_cmp(other),
        (Value::Double(one), Value::Uint(other)) => one.partial_cmp(&(*other as f64)),
        _ => return None,
    })
}

/// Which is the smaller; none if they cannot be ordered.
pub(crate) fn compare(one: &Value<'_>, other: &Value<'_>) -> Option<Result<Ordering, Error>> {
    Some(Ok(match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::String(one), Value::String(other)) => (**one).cmp(&**other),
        (Value::Bytes(one), Value::Bytes(other)) => one.cmp(other),
        (Value::Timestamp(one), Value::Timestamp(other)) => one.cmp(other),
        (Value::Duration(one), Value::Duration(other)) => one.cmp(other),
        _ => return Some(numbers(one, other)?.ok_or_else(|| Error::new("NaN values cannot be ordered"))),
    }))
}

pub(crate) fn contains<'a>(list: &List<'a>, item: &Value<'a>) -> Result<bool, Error> {
    Ok(position(list.iter(), item)?.is_some())
}

/// Where the item is among these.
pub(crate) fn position<'a>(
    items: impl Iterator<Item = Result<Value<'a>, Error>>,
    item: &Value<'a>,
) -> Result<Option<usize>, Error> {
    for (index, other) in items.enumerate() {
        if equal(&other?, item)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// How the list wants to be compared.
fn equality<'a>(list: &List<'a>) -> &'a Equality {
    match list {
        List::Owned { equality, .. } | List::Json { equality, .. } => equality,
    }
}

fn equal_lists<'a>(one: &List<'a>, other: &List<'a>) -> Result<bool, Error> {
    if one.len() != other.len() {
        return Ok(false);
    }
    if *equality(one) == Equality::Ordered {
        for (one, other) in one.iter().zip(other.iter()) {
            if !equal(&one?, &other?)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let mut counterparts = BTreeMap::new();
    for item in other.iter() {
        let item = item?;
        counterparts.insert(identity(&item, equality(one))?, item);
    }
    for item in one.iter() {
        let item = item?;
        match counterparts.get(&identity(&item, equality(one))?) {
            Some(counterpart) if equal(&item, counterpart)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// What tells an item of a set or a map apart from the others.
fn identity(item: &Value<'_>, equality: &Equality) -> Result<String, Error> {
    let json = item.to_json()?;
    Ok(match equality {
        Equality::Map(keys) => keys.iter().map(|key| json.at(key).to_string()).collect::<Vec<_>>().join(","),
        Equality::Set | Equality::Ordered => json.to_string(),
    })
}

/// What expressions cannot see counts too.
fn equal_maps<'a>(one: &Map<'a>, other: &Map<'a>) -> Result<bool, Error> {
    if let (Map::Json { entries: one, declared, .. }, Map::Json { entries: other, declared: same }) = (one, other)
        && std::ptr::eq(*declared, *same)
    {
        return equal_entries(one, other, declared);
    }
    let keys = one.keys();
    if keys.len() != other.keys().len() {
        return Ok(false);
    }
    for key in keys {
        let (Some(one), Some(other)) = (one.get(&key), other.get(&key)) else { return Ok(false) };
        if !equal(&one?, &other?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_entries<'a>(one: &'a JsonMap, other: &'a JsonMap, declared: &'a Declaration) -> Result<bool, Error> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for (name, value) in one {
        let Some(counterpart) = other.get(name) else { return Ok(false) };
        if value == counterpart {
            continue;
        }
        let Some(known) = json::declared_as(declared, name) else { return Ok(false) };
        if !equal(&json::read(value, known)?, &json::read(counterpart, known)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Two lists put together as their kind asks for: members of a set are there once, and of a map the second list's
/// items take the places of those with the same keys.
pub(crate) fn concatenate<'a>(one: List<'a>, other: &List<'a>) -> Result<List<'a>, Error> {
    if one.len() + other.len() > MAX_ITEMS {
        return Err(Error::CallCostExceeded);
    }
    let equality = equality(&one);
    let mut items = one.into_vec()?;
    if *equality == Equality::Ordered {
        for item in other.iter() {
            items.push(item?);
        }
        return Ok(List::Owned { items: Rc::new(items), equality });
    }
    let mut places = BTreeMap::new();
    for (place, item) in items.iter().enumerate() {
        places.insert(identity(item, equality)?, place);
    }
    for item in other.iter() {
        let item = item?;
        match places.entry(identity(&item, equality)?) {
            Entry::Occupied(place) => items[*place.get()] = item,
            Entry::Vacant(place) => {
                place.insert(items.len());
                items.push(item);
            }
        }
    }
    Ok(List::Owned { items: Rc::new(items), equality })
}
