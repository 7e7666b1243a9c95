//! Evaluates checked expressions, and counts what that costs.
//!
//! Upstream counts per step of its own plan of an expression. Of that plan only this is left here: a chain such as
//! `a.b[c].d` costs one, and one more for each link; where the chain is itself an index or a branch of a choice, or
//! starts with a choice, the first one is not counted.

use crate::ast::{Entry, Expr, Field, Item, Kind, Literal, operator};
use crate::checker::Reference;
use crate::compare;
use crate::cost;
use crate::environment::{MAX_ARGUMENTS, Overload, Run};
use crate::functions::regex::compile;
use crate::macros::{self, ACCUMULATOR};
use crate::program::{Program, Variables};
use crate::qualify::{Found, accepts, no_such_overload, qualify, text_of};
use crate::value::{Error, Key, Text, Value};
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) type Evaluated<'a> = Result<Value<'a>, Error>;

/// The value, and what it cost.
pub(crate) fn evaluate<'a>(program: &'a Program, variables: &Variables<'a>, limit: u64) -> (Evaluated<'a>, u64) {
    let mut evaluator = Evaluator { program, variables, scopes: Vec::new(), cost: 0, limit, regexes: BTreeMap::new() };
    let value = evaluator.eval(&program.root);
    (value, evaluator.cost)
}

pub(crate) struct Evaluator<'a, 'v> {
    program: &'a Program,
    variables: &'v Variables<'a>,
    /// The variables of the loops we are in.
    pub(crate) scopes: Vec<(&'a str, Slot<'a>)>,
    cost: u64,
    limit: u64,
    /// Those that were not known beforehand.
    regexes: BTreeMap<String, Regex>,
}

/// What it takes to compile an expression is not charged, so not all that many are compiled in one evaluation.
const MAX_REGEXES: usize = 1000;

pub(crate) enum Slot<'a> {
    Known(Evaluated<'a>),
    /// Evaluated when it is first looked at.
    Later(&'a Expr),
}

impl<'a> Evaluator<'a, '_> {
    fn charge(&mut self, cost: u64) -> Result<(), Error> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Error::CallCostExceeded) } else { Ok(()) }
    }

    pub(crate) fn eval(&mut self, expr: &'a Expr) -> Evaluated<'a> {
        let free = self.program.constants[expr.id];
        let before = self.cost;
        if is_chain(expr) && !is_choice(start(expr)) && !self.is_type(expr) {
            self.charge(cost::SELECT)?;
        }
        let value = self.resolve(expr);
        if free {
            self.cost = before;
        }
        value
    }

    fn is_type(&self, expr: &Expr) -> bool {
        matches!(self.program.nodes[expr.id].reference, Reference::Type(_))
    }

    /// The value of something whose first step has been paid for, or is free.
    fn resolve(&mut self, expr: &'a Expr) -> Evaluated<'a> {
        match &expr.kind {
            Kind::Literal(literal) => Ok(literal_value(literal)),
            Kind::Ident(_) => self.reference(expr),
            Kind::Select { operand, field, test } => self.select(expr, operand, field, *test),
            Kind::Call { target, function, args } => self.call(expr, target.as_deref(), function, args),
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { fields, .. } => self.object(fields),
            Kind::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    /// What a chain starts with, or is indexed by: another chain is a part of this one.
    fn link(&mut self, expr: &'a Expr) -> Evaluated<'a> {
        if is_chain(expr) { self.resolve(expr) } else { self.eval(expr) }
    }

    fn reference(&mut self, expr: &'a Expr) -> Evaluated<'a> {
        match &self.program.nodes[expr.id].reference {
            Reference::Type(of) => Ok(Value::Type(of.clone())),
            Reference::Variable(name) => match self.scopes.iter().rposition(|(known, _)| *known == &**name) {
                Some(scope) => self.scoped(scope),
                None => self.variables.get(name, self.program),
            },
            _ => Err(Error::new("invalid attribute")),
        }
    }

    fn scoped(&mut self, scope: usize) -> Evaluated<'a> {
        let expr = match &self.scopes[scope].1 {
            Slot::Known(value) => return value.clone(),
            Slot::Later(expr) => *expr,
        };
        // It was written outside, and must not see what is within.
        let within = self.scopes.split_off(scope);
        let value = self.eval(expr);
        self.scopes.extend(within);
        self.scopes[scope].1 = Slot::Known(value.clone());
        value
    }

    fn select(&mut self, expr: &'a Expr, operand: &'a Expr, field: &'a str, test: bool) -> Evaluated<'a> {
        if !matches!(self.program.nodes[expr.id].reference, Reference::None) {
            return self.reference(expr);
        }
        let operand = self.link(operand)?;
        self.charge(cost::SELECT)?;
        let found = qualify(&operand, &Value::String(Text::Borrowed(field)));
        if test {
            return Ok(Value::Bool(match found? {
                Found::Missing | Found::Wrapped(None) => false,
                Found::Value(_) | Found::Wrapped(Some(_)) => true,
            }));
        }
        found?.required(|| format!("no such key: {field}"))
    }

    fn call(&mut self, expr: &'a Expr, target: Option<&'a Expr>, function: &str, args: &'a [Expr]) -> Evaluated<'a> {
        match (function, args, target) {
            (operator::AND, [left, right], None) => self.logical(left, right, false),
            (operator::OR, [left, right], None) => self.logical(left, right, true),
            (operator::CONDITIONAL, [condition, positive, negative], None) => match self.eval(condition)? {
                Value::Bool(true) => self.link(positive),
                Value::Bool(false) => self.link(negative),
                other => Err(no_such_overload(function, &[other])),
            },
            (operator::NOT_STRICTLY_FALSE, [condition], None) => {
                let holds = match self.eval(condition) {
                    Ok(value) => value.as_bool() != Some(false),
                    Err(error) if error.is_absorbable() => true,
                    Err(error) => return Err(error),
                };
                self.charge(1)?;
                Ok(Value::Bool(holds))
            }
            (operator::INDEX, [operand, index], None) => self.index(operand, index, false),
            (operator::OPTIONAL_INDEX | operator::OPTIONAL_SELECT, [operand, index], None) => {
                self.index(operand, index, true)
            }
            ("or" | "orValue", [other], Some(target)) => match self.eval(target)? {
                Value::Optional(None) => self.eval(other),
                Value::Optional(Some(value)) if function == "orValue" => Ok((*value).clone()),
                Value::Optional(value) => Ok(Value::Optional(value)),
                value => Err(no_such_overload(function, &[value])),
            },
            (operator::IN, [item, Expr { id, kind: Kind::List(items) }], None)
                if self.program.constants[*id] && items.iter().all(|item| is_primitive(&item.value)) =>
            {
                self.in_constants(item, items)
            }
            _ => self.function(expr, target, function, args),
        }
    }

    /// An error or a value of another type is no end if the other side decides.
    fn logical(&mut self, left: &'a Expr, right: &'a Expr, decisive: bool) -> Evaluated<'a> {
        let function = if decisive { operator::OR } else { operator::AND };
        let mut failed = None;
        for side in [left, right] {
            match self.eval(side) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(other) => failed = failed.or(Some(no_such_overload(function, &[other]))),
                Err(error) if error.is_absorbable() => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        failed.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn index(&mut self, operand: &'a Expr, index: &'a Expr, optional: bool) -> Evaluated<'a> {
        let operand = self.link(operand)?;
        let index = self.link(index)?;
        let found = qualify(&operand, &index)?;
        if optional && matches!(found, Found::Missing | Found::Wrapped(None)) {
            return Ok(Value::Optional(None));
        }
        self.charge(cost::SELECT)?;
        if optional && let Found::Value(value) = found {
            return value.map(Value::some);
        }
        found.required(|| match operand {
            Value::List(_) => format!("index out of bounds: {}", text_of(&index)),
            _ => format!("no such key: {}", text_of(&index)),
        })
    }

    /// Whether something is among constants is looked up, and costs nothing.
    fn in_constants(&mut self, item: &'a Expr, items: &'a [Item]) -> Evaluated<'a> {
        let item = self.eval(item)?;
        for other in items {
            if compare::equal(&item, &self.resolve(&other.value)?)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }

    fn function(
        &mut self,
        expr: &'a Expr,
        target: Option<&'a Expr>,
        function: &str,
        args: &'a [Expr],
    ) -> Evaluated<'a> {
        let Reference::Overloads { overloads, namespaced } = &self.program.nodes[expr.id].reference else {
            return Err(Error::new(format!("no such overload: {function}")));
        };
        let mut values: [Value<'a>; MAX_ARGUMENTS] = Default::default();
        let target = target.filter(|_| !namespaced);
        let extends = [operator::ADD, macros::MAP_INSERT].contains(&function);
        let (mut count, mut failed) = (0, None);
        for arg in target.into_iter().chain(args) {
            let value = match &arg.kind {
                // What a loop has gathered is about to be replaced by something longer: it is handed over.
                Kind::Ident(name) if count == 0 && extends && &**name == ACCUMULATOR => self.take_accumulator(),
                _ => self.eval(arg),
            };
            match value {
                Ok(value) => values[count] = value,
                Err(error) if error.is_absorbable() => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            }
            count += 1;
        }
        if let Some(error) = failed {
            self.charge(1)?;
            return Err(error);
        }
        let values = &mut values[..count];
        let fits = |overload: &&Arc<Overload>| {
            let wanted = &overload.signature.args;
            wanted.len() == values.len() && wanted.iter().zip(values.iter()).all(|(of, value)| accepts(of, value))
        };
        let Some(overload) = overloads.iter().find(fits) else {
            return Err(no_such_overload(function, values));
        };
        let beforehand = !overload.cost.follows_from_result();
        if beforehand {
            self.charge(overload.cost.actual(values, &Value::Null))?;
        }
        let result = match overload.run {
            Run::Plain(run) => run(values),
            Run::Regex(run) => self.with_regex(run, values),
            Run::Special => Err(no_such_overload(function, values)),
        };
        if !beforehand {
            self.charge(overload.cost.actual(values, result.as_ref().unwrap_or(&Value::Null)))?;
        }
        result
    }

    fn with_regex(
        &mut self,
        run: for<'v> fn(&Regex, &'v mut [Value<'a>]) -> Evaluated<'a>,
        values: &mut [Value<'a>],
    ) -> Evaluated<'a> {
        let Some(pattern) = values.get(1).and_then(Value::as_str) else { return Err(Error::new("no such overload")) };
        if let Some(regex) = self.program.regexes.get(pattern).or_else(|| self.regexes.get(pattern)) {
            return run(regex, values);
        }
        if self.regexes.len() == MAX_REGEXES {
            return Err(Error::CallCostExceeded);
        }
        let (pattern, regex) = (pattern.to_owned(), compile(pattern)?);
        run(self.regexes.entry(pattern).or_insert(regex), values)
    }

    fn take_accumulator(&mut self) -> Evaluated<'a> {
        self.charge(cost::SELECT)?;
        let scope = self.scopes.iter_mut().rfind(|(name, _)| *name == ACCUMULATOR);
        match scope {
            Some((_, Slot::Known(value))) => std::mem::replace(value, Ok(Value::Null)),
            _ => Err(Error::new("no such attribute(s): @result")),
        }
    }

    fn list(&mut self, items: &'a [Item]) -> Evaluated<'a> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match (self.eval(&item.value)?, item.optional) {
                (value, false) => values.push(value),
                (Value::Optional(value), true) => values.extend(value.map(|value| (*value).clone())),
                (value, true) => {
                    let value = text_of(&value);
                    return Err(Error::new(format!(
                        "cannot initialize optional list element from non-optional value {value}"
                    )));
                }
            }
        }
        self.charge(cost::CREATE_LIST)?;
        Ok(Value::list(values))
    }

    fn map(&mut self, entries: &'a [Entry]) -> Evaluated<'a> {
        let mut map = BTreeMap::new();
        for Entry { key, value, optional } in entries {
            let key = self.eval(key)?;
            let Some(key) = key.as_key() else {
                return Err(Error::new(format!("unsupported key type: {}", key.type_name())));
            };
            let value = self.eval(value)?;
            let Some(value) = present(value, *optional, || text_of(&Value::from_key(key.clone())))? else { continue };
            if let Some(_before) = map.insert(key.clone(), value) {
                let key = text_of(&Value::from_key(key));
                return Err(Error::new(format!("insert failed: key {key} already exists")));
            }
        }
        self.charge(cost::CREATE_MAP)?;
        Ok(Value::map(map))
    }

    fn object(&mut self, fields: &'a [Field]) -> Evaluated<'a> {
        let mut map = BTreeMap::new();
        for Field { name, value, optional, .. } in fields {
            let value = self.eval(value)?;
            if let Some(value) = present(value, *optional, || name.to_string())? {
                map.insert(Key::String(Text::Borrowed(name)), value);
            }
        }
        self.charge(cost::CREATE_OBJECT)?;
        Ok(Value::map(map))
    }
}

/// Names, and what is selected from something.
fn is_chain(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Ident(_) => true,
        Kind::Select { test, .. } => !test,
        Kind::Call { target: None, function, .. } => {
            [operator::INDEX, operator::OPTIONAL_INDEX, operator::OPTIONAL_SELECT].contains(&&**function)
        }
        _ => false,
    }
}

/// What a chain starts with.
fn start(expr: &Expr) -> &Expr {
    match &expr.kind {
        Kind::Select { operand, .. } => start(operand),
        Kind::Call { args, .. } if is_chain(expr) => args.first().map_or(expr, start),
        _ => expr,
    }
}

fn is_choice(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::Call { function, .. } if &**function == operator::CONDITIONAL)
}

fn is_primitive(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::Literal(literal) if !matches!(literal, Literal::Bytes(_) | Literal::Null))
}

pub(crate) fn literal_value(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::String(Text::Borrowed(text)),
        Literal::Bytes(bytes) => Value::Bytes((&**bytes).into()),
    }
}

/// A value that is left out if it is an optional one without a value.
fn present<'a>(value: Value<'a>, optional: bool, name: impl Fn() -> String) -> Result<Option<Value<'a>>, Error> {
    match (value, optional) {
        (value, false) => Ok(Some(value)),
        (Value::Optional(value), true) => Ok(value.map(|value| (*value).clone())),
        (value, true) => {
            let (name, value) = (name(), text_of(&value));
            Err(Error::new(format!("cannot initialize optional entry '{name}' from non-optional value {value}")))
        }
    }
}
