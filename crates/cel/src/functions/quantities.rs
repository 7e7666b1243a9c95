//! Quantities, such as `500m` and `1.5Gi`.

use crate::cost::Cost;
use crate::environment::{Row, row};
use crate::functions::unsuitable;
use crate::value::{Error, Opaque, Value};
use object::Quantity;
use std::any::Any;
use std::cmp::Ordering;

pub(crate) const QUANTITY: &str = "kubernetes.Quantity";

const ONE: Cost = Cost::Fixed(1);
const READ: Cost = Cost::Read(1);

impl Opaque for Quantity {
    fn type_name(&self) -> &str {
        QUANTITY
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

fn parse(value: &Value<'_>) -> Result<Quantity, Error> {
    value
        .as_str()
        .ok_or_else(unsuitable)?
        .parse()
        .map_err(|error: object::quantity::InvalidQuantity| Error::new(error.to_string()))
}

fn quantity(args: &[Value<'_>]) -> Result<Quantity, Error> {
    args[0].as_opaque().copied().ok_or_else(unsuitable)
}

/// The second argument, which may be a number.
fn amount(args: &[Value<'_>]) -> Result<Quantity, Error> {
    match args.get(1) {
        Some(Value::Int(units)) => Ok(Quantity::from_units(*units)),
        Some(other) => other.as_opaque().copied().ok_or_else(unsuitable),
        None => Err(unsuitable()),
    }
}

fn is<'a>(args: &[Value<'_>], wanted: Ordering) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(quantity(args)?.cmp(&amount(args)?) == wanted))
}

fn add<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::opaque(quantity(args)? + amount(args)?))
}

fn subtract<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::opaque(quantity(args)? - amount(args)?))
}

pub(crate) const TABLE: &[Row] = &[
    row("quantity", "(string) -> kubernetes.Quantity", READ, |args| parse(&args[0]).map(Value::opaque)),
    row("isQuantity", "(string) -> bool", READ, |args| Ok(Value::Bool(parse(&args[0]).is_ok()))),
    row("sign", "(kubernetes.Quantity) -> int", ONE, |args| {
        Ok(Value::Int(quantity(args)?.cmp(&Quantity::default()) as i64))
    }),
    row("isInteger", "kubernetes.Quantity.() -> bool", ONE, |args| Ok(Value::Bool(quantity(args)?.whole().is_some()))),
    row("asInteger", "kubernetes.Quantity.() -> int", ONE, |args| {
        quantity(args)?.whole().map(Value::Int).ok_or_else(|| Error::new("cannot convert value to integer"))
    }),
    row("asApproximateFloat", "kubernetes.Quantity.() -> double", ONE, |args| {
        Ok(Value::Double(quantity(args)?.approximate()))
    }),
    row("isGreaterThan", "kubernetes.Quantity.(kubernetes.Quantity) -> bool", ONE, |args| is(args, Ordering::Greater)),
    row("isLessThan", "kubernetes.Quantity.(kubernetes.Quantity) -> bool", ONE, |args| is(args, Ordering::Less)),
    row("compareTo", "kubernetes.Quantity.(kubernetes.Quantity) -> int", ONE, |args| {
        Ok(Value::Int(quantity(args)?.cmp(&amount(args)?) as i64))
    }),
    row("add", "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity", ONE, add),
    row("add", "kubernetes.Quantity.(int) -> kubernetes.Quantity", ONE, add),
    row("sub", "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity", ONE, subtract),
    row("sub", "kubernetes.Quantity.(int) -> kubernetes.Quantity", ONE, subtract),
];
