//! Evaluates the one loop there is.

use crate::ast::Comprehension;
use crate::evaluator::{Evaluated, Evaluator, Slot};
use crate::value::{Error, Value};

impl<'a> Evaluator<'a, '_> {
    pub(crate) fn comprehension(&mut self, comprehension: &'a Comprehension) -> Evaluated<'a> {
        let outside = self.scopes.len();
        let value = match comprehension.is_binding() {
            true => {
                self.scopes.push((&comprehension.accumulator, Slot::Later(&comprehension.init)));
                self.eval(&comprehension.result)
            }
            false => self.fold(comprehension),
        };
        self.scopes.truncate(outside);
        value
    }

    fn fold(&mut self, comprehension: &'a Comprehension) -> Evaluated<'a> {
        let range = self.eval(&comprehension.range)?;
        let init = self.eval(&comprehension.init)?;
        let accumulator = self.scopes.len();
        self.scopes.push((&comprehension.accumulator, Slot::Known(Ok(init))));
        let two = comprehension.second.is_some();
        match &range {
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let index = if two { Some(Value::Int(index as i64)) } else { None };
                    if !self.step(comprehension, accumulator, index.map(Ok), item)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for key in map.keys() {
                    let value = if two { map.get(&key) } else { None };
                    let key = Ok(Value::from_key(key));
                    let (first, second) = value.map_or((None, key.clone()), |value| (Some(key), value));
                    if !self.step(comprehension, accumulator, first, second)? {
                        break;
                    }
                }
            }
            other => {
                // In the words of Go, since these are what people know.
                let name = other.type_name();
                let (first, rest) = name.split_at_checked(1).unwrap_or(("", &name));
                let name = first.to_ascii_uppercase() + rest;
                return Err(Error::new(format!("got 'types.{name}', expected iterable type")));
            }
        }
        self.scopes.truncate(accumulator + 1);
        self.eval(&comprehension.result)
    }

    /// One element, which is the second variable if there are two. Returns whether to go on.
    fn step(
        &mut self,
        comprehension: &'a Comprehension,
        accumulator: usize,
        first: Option<Evaluated<'a>>,
        element: Evaluated<'a>,
    ) -> Result<bool, Error> {
        self.scopes.truncate(accumulator + 1);
        match (&comprehension.second, first) {
            (Some(second), Some(first)) => {
                self.scopes.push((&comprehension.variable, Slot::Known(first)));
                self.scopes.push((second, Slot::Known(element)));
            }
            _ => self.scopes.push((&comprehension.variable, Slot::Known(element))),
        }
        if self.eval(&comprehension.condition)?.as_bool() == Some(false) {
            return Ok(false);
        }
        let value = self.eval(&comprehension.step);
        match value {
            Err(error) if !error.is_absorbable() => return Err(error),
            value => self.scopes[accumulator].1 = Slot::Known(value),
        }
        Ok(true)
    }
}
