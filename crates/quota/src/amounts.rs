//! Amounts of several resources, by name: `cpu=2,memory=1Gi`.

use object::{ApiError, Map, Quantity, Value, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Amounts(BTreeMap<String, Quantity>);

impl Amounts {
    /// Reads a map of quantities; none at all where there is no map.
    pub fn read(map: &Value) -> Result<Self, ApiError> {
        let entries = map.as_object().into_iter().flatten();
        let amounts = entries.map(|(name, value)| {
            let text =
                value.as_str().ok_or_else(|| ApiError::bad_request(format!("{name}: {value} is no quantity")))?;
            let quantity = text.parse().map_err(|error| ApiError::bad_request(format!("{name}: {error}")))?;
            Ok((name.to_string(), quantity))
        });
        Ok(Amounts(amounts.collect::<Result<_, ApiError>>()?))
    }

    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.0.get(name).copied()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(name, quantity)| (name.as_str(), *quantity))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub fn set(&mut self, name: impl Into<String>, quantity: Quantity) {
        self.0.insert(name.into(), quantity);
    }

    pub fn add(&mut self, other: &Amounts) {
        for (name, quantity) in &other.0 {
            match self.0.entry(name.clone()) {
                Entry::Occupied(mut entry) => *entry.get_mut() = *entry.get() + *quantity,
                Entry::Vacant(entry) => drop(entry.insert(*quantity)),
            }
        }
    }

    /// Raises each amount to that of `other`, where that is more.
    pub fn raise_to(&mut self, other: &Amounts) {
        for (name, quantity) in &other.0 {
            match self.0.get(name) {
                Some(own) if own >= quantity => {}
                _ => drop(self.0.insert(name.clone(), *quantity)),
            }
        }
    }

    /// How much more this is than `other`: only what grows.
    pub fn beyond(&self, other: &Amounts) -> Amounts {
        let grown = self.0.iter().map(|(name, quantity)| match other.get(name) {
            Some(before) => (name.clone(), *quantity - before),
            None => (name.clone(), *quantity),
        });
        Amounts(grown.filter(|(_, quantity)| !quantity.is_negative() && !quantity.is_zero()).collect())
    }

    /// The amounts whose names are wanted.
    pub fn only(&self, wanted: impl Fn(&str) -> bool) -> Amounts {
        Amounts(
            self.0.iter().filter(|(name, _)| wanted(name)).map(|(name, quantity)| (name.clone(), *quantity)).collect(),
        )
    }

    pub fn to_value(&self) -> Value {
        Value::Object(
            self.0.iter().map(|(name, quantity)| (name.clone(), json!(quantity.to_string()))).collect::<Map>(),
        )
    }
}

impl fmt::Display for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.0.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect();
        f.write_str(&texts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(value: &Value) -> Amounts {
        Amounts::read(value).unwrap()
    }

    #[test]
    fn amounts_are_added_raised_and_compared_by_name() {
        let mut sum = amounts(&json!({ "cpu": "500m", "memory": "1Gi" }));
        sum.add(&amounts(&json!({ "cpu": "1", "pods": "1" })));
        assert_eq!(sum.to_string(), "cpu=1500m,memory=1Gi,pods=1");
        sum.raise_to(&amounts(&json!({ "cpu": "1", "memory": "2Gi", "x": "1" })));
        assert_eq!(sum.to_string(), "cpu=1500m,memory=2Gi,pods=1,x=1");
        let more = sum.beyond(&amounts(&json!({ "cpu": "2", "memory": "1Gi", "pods": "1" })));
        assert_eq!(more.to_string(), "memory=1Gi,x=1");
        assert_eq!(more.only(|name| name == "x").to_value(), json!({ "x": "1" }));
    }

    #[test]
    fn what_is_no_quantity_is_an_error_and_not_nothing() {
        assert!(Amounts::read(&json!({ "cpu": "a lot" })).is_err());
        assert!(Amounts::read(&json!(null)).unwrap().is_empty());
    }
}
