//! What an expression may cost at most, from how large things can get: so that a rule that could never be afforded is
//! refused when it is written, and not when it is needed.
//!
//! Which rules a cluster accepts depends on these numbers, so they are upstream's, and follow its ways where these are
//! odd.

use crate::ast::{Comprehension, Expr, Kind, Literal, operator};
use crate::checker::Reference;
use crate::cost::{self, Operand, Range};
use crate::declaration::{Declaration, MAX_REQUEST_BYTES, Shape};
use crate::environment::Overload;
use crate::program::Program;
use crate::types::Type;
use std::sync::Arc;

/// How much a rule may be estimated to cost, and how much all rules of a definition.
pub const RULE_COST_LIMIT: u64 = 10_000_000;
pub const DEFINITION_COST_LIMIT: u64 = 100_000_000;

/// What is said about something that may cost more than its limit.
pub fn exceeds_budget(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        100.0.. => "more than 100x".to_owned(),
        ..1.5 => format!("{factor:.6}x"),
        _ => format!("{factor:.1}x"),
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

impl Declaration {
    /// How often such a value fits into a request.
    pub fn max_cardinality(&self) -> u64 {
        MAX_REQUEST_BYTES / (self.min_bytes + 1)
    }
}

impl Program {
    /// What it costs at least and at most.
    pub fn estimate(&self) -> Range {
        Estimator { program: self, scopes: Vec::new() }.estimate(&self.root).0
    }
}

/// What is known about a value before there is one.
#[derive(Clone, Debug, Default)]
struct Facts<'p> {
    /// If it is a part of a variable.
    declared: Option<&'p Declaration>,
    size: Option<Range>,
    /// The sizes of keys, or indices, and of values, if they follow from the expression.
    entries: Option<(Range, Range)>,
}

struct Estimator<'p> {
    program: &'p Program,
    scopes: Vec<(&'p str, Facts<'p>)>,
}

impl<'p> Estimator<'p> {
    fn of(&self, expr: &Expr) -> &'p Type {
        &self.program.nodes[expr.id].of
    }

    /// The size, from the best there is to tell it.
    fn size(&self, expr: &Expr, facts: &Facts<'p>) -> Option<Range> {
        let written = match &expr.kind {
            Kind::Literal(Literal::String(text)) => Some(text.chars().count() as u64),
            Kind::Literal(Literal::Bytes(bytes)) => Some(bytes.len() as u64),
            Kind::Literal(_) => Some(1),
            Kind::List(items) => Some(items.len() as u64),
            Kind::Map(entries) => Some(entries.len() as u64),
            _ => None,
        };
        let is_name = matches!(expr.kind, Kind::Ident(_));
        let computed = facts.size.filter(|_| !is_name);
        let declared = facts.declared.map(|declared| Range { min: 0, max: declared.max_size });
        let scalar = is_scalar(self.of(expr)).then_some(Range::exactly(1));
        computed.or(written.map(Range::exactly)).or(declared).or(scalar).or(facts.size)
    }

    fn estimate(&mut self, expr: &'p Expr) -> (Range, Facts<'p>) {
        let (cost, mut facts) = match &expr.kind {
            Kind::Literal(_) => (Range::ZERO, Facts::default()),
            Kind::Ident(_) => (Range::exactly(cost::SELECT), self.named(expr)),
            Kind::Select { operand, field, test } => self.select(expr, operand, field, *test),
            Kind::Call { target, function, args } => self.call(expr, target.as_deref(), function, args),
            Kind::List(items) => {
                let empty = if items.is_empty() { Range::ZERO } else { Range::NONE };
                let (cost, size) = self.all(items.iter().map(|item| &item.value), empty);
                let entries = Some((Range::exactly(1), size));
                (cost.plus(Range::exactly(cost::CREATE_LIST)), Facts { entries, ..Facts::default() })
            }
            Kind::Map(entries) => {
                let empty = if entries.is_empty() { Range::ZERO } else { Range::NONE };
                let (keys, key) = self.all(entries.iter().map(|entry| &entry.key), empty);
                let (values, value) = self.all(entries.iter().map(|entry| &entry.value), empty);
                let cost = keys.plus(values).plus(Range::exactly(cost::CREATE_MAP));
                (cost, Facts { entries: Some((key, value)), ..Facts::default() })
            }
            Kind::Struct { fields, .. } => {
                let (cost, _) = self.all(fields.iter().map(|field| &field.value), Range::ZERO);
                (cost.plus(Range::exactly(cost::CREATE_OBJECT)), Facts::default())
            }
            Kind::Comprehension(comprehension) if comprehension.is_binding() => self.binding(comprehension),
            Kind::Comprehension(comprehension) => self.comprehension(comprehension),
        };
        facts.size = self.size(expr, &facts);
        (cost, facts)
    }

    /// The cost of all together, and the size of each.
    fn all(&mut self, exprs: impl Iterator<Item = &'p Expr>, empty: Range) -> (Range, Range) {
        exprs.fold((Range::ZERO, empty), |(cost, size), expr| {
            let (more, facts) = self.estimate(expr);
            (cost.plus(more), size.union(facts.size.unwrap_or(Range::UNKNOWN)))
        })
    }

    /// What is no part of a variable, but has a name, upstream takes for the whole object.
    fn lost(&self) -> Option<&'p Declaration> {
        self.program.variables.get("self").map(|declared| &**declared)
    }

    fn named(&self, expr: &Expr) -> Facts<'p> {
        let Reference::Variable(name) = &self.program.nodes[expr.id].reference else {
            return Facts { declared: self.lost(), ..Facts::default() };
        };
        match self.scopes.iter().rfind(|(known, _)| *known == &**name) {
            Some((_, facts)) => facts.clone(),
            None => {
                let declared = self.program.variables.get(name).map(|declared| &**declared);
                Facts { declared, ..Facts::default() }
            }
        }
    }

    fn select(&mut self, expr: &'p Expr, operand: &'p Expr, field: &str, test: bool) -> (Range, Facts<'p>) {
        if !matches!(self.program.nodes[expr.id].reference, Reference::None) {
            return (Range::exactly(cost::SELECT), self.named(expr));
        }
        let (cost, facts) = self.estimate(operand);
        if test {
            return (cost, Facts::default());
        }
        let costs = matches!(self.of(operand), Type::Map(_) | Type::Object(_));
        let declared = facts.declared.and_then(|declared| match &declared.shape {
            Shape::Object { fields, .. } => fields.get(field).map(|field| &*field.declaration),
            // Attributes of devices are written like fields.
            Shape::Map { values, .. } if matches!(values.shape, Shape::Plain(Type::Dyn)) => Some(&**values),
            _ => None,
        });
        let step = if costs { Range::exactly(cost::SELECT) } else { Range::ZERO };
        (cost.plus(step), Facts { declared, ..Facts::default() })
    }

    fn call(
        &mut self,
        expr: &'p Expr,
        target: Option<&'p Expr>,
        function: &str,
        args: &'p [Expr],
    ) -> (Range, Facts<'p>) {
        if let (operator::AND | operator::OR, [left, right]) = (function, args) {
            let (left, right) = (self.estimate(left).0, self.estimate(right).0);
            return (Range { min: left.min, max: left.plus(right).max }, Facts::default());
        }
        let Reference::Overloads { overloads, namespaced } = &self.program.nodes[expr.id].reference else {
            // What is selected from something that may not be there.
            let (cost, _) = self.all(args.iter(), Range::ZERO);
            return (cost.plus(Range::exactly(1)), Facts::default());
        };
        let parts: Vec<&Expr> = target.filter(|_| !namespaced).into_iter().chain(args).collect();
        let estimates: Vec<(Range, Facts<'p>)> = parts.iter().map(|part| self.estimate(part)).collect();
        let costs: Vec<Range> = estimates.iter().map(|(cost, _)| *cost).collect();
        let all = costs.iter().fold(Range::ZERO, |sum, cost| sum.plus(*cost));
        let operands: Vec<Operand> =
            parts.iter().zip(&estimates).map(|(part, (_, facts))| self.operand(part, facts)).collect();
        if function == "dyn" {
            let facts = estimates.into_iter().next().map(|(_, facts)| facts).unwrap_or_default();
            return (all.plus(Range::exactly(1)), Facts { declared: None, ..facts });
        }
        let mut cost = Range::NONE;
        let mut facts = Facts::default();
        for overload in overloads {
            let (own, size) = own_cost(overload, &operands);
            let with_arguments = match (function, &costs[..]) {
                (operator::CONDITIONAL, [condition, positive, negative]) => condition.plus(positive.union(*negative)),
                _ => own.plus(all),
            };
            cost = cost.union(with_arguments);
            facts.size = match (facts.size, size) {
                (Some(before), Some(size)) => Some(before.union(size)),
                (before, size) => before.or(size),
            };
            let first = estimates.first().map(|(_, facts)| facts);
            if function == operator::INDEX
                && let Some(first) = first
            {
                facts.size = first.entries.map(|(_, value)| value);
                facts.declared = first.declared.and_then(element);
            }
        }
        facts.entries = match (function, &estimates[..]) {
            (operator::CONDITIONAL, [_, (_, one), (_, other)]) | (operator::ADD, [(_, one), (_, other)]) => {
                one.entries.zip(other.entries).map(|(one, other)| (one.0.union(other.0), one.1.union(other.1)))
            }
            _ => None,
        };
        (cost, facts)
    }

    fn operand(&self, expr: &Expr, facts: &Facts<'p>) -> Operand {
        let elements = match self.of(expr) {
            Type::List(items) => {
                let size = facts.declared.and_then(element).map(|items| Range { min: 0, max: items.max_size });
                Some(((**items).clone(), size.unwrap_or(Range::UNKNOWN)))
            }
            _ => None,
        };
        let literal = match expr.kind {
            Kind::Literal(Literal::Int(number)) => Some(number),
            _ => None,
        };
        Operand { of: self.of(expr).clone(), size: facts.size.unwrap_or(Range::UNKNOWN), elements, literal }
    }

    fn binding(&mut self, comprehension: &'p Comprehension) -> (Range, Facts<'p>) {
        let (range, _) = self.estimate(&comprehension.range);
        let (init, facts) = self.estimate(&comprehension.init);
        self.scopes.push((&comprehension.accumulator, facts));
        let (result, facts) = self.estimate(&comprehension.result);
        self.scopes.pop();
        (range.plus(init).plus(result), Facts { declared: None, ..facts })
    }

    fn comprehension(&mut self, comprehension: &'p Comprehension) -> (Range, Facts<'p>) {
        let (range, over) = self.estimate(&comprehension.range);
        let (init, start) = self.estimate(&comprehension.init);
        let outside = self.scopes.len();
        self.scopes.push((&comprehension.accumulator, Facts { declared: None, ..start.clone() }));
        let (first, second) = self.elements(comprehension, &over);
        self.scopes.push((&comprehension.variable, first));
        self.scopes.extend(comprehension.second.as_deref().map(|variable| (variable, second)));
        let (condition, _) = self.estimate(&comprehension.condition);
        let (step, stepped) = self.estimate(&comprehension.step);
        self.scopes.truncate(outside + 1);
        let (result, _) = self.estimate(&comprehension.result);
        self.scopes.truncate(outside);
        let times = over.size.unwrap_or(Range::UNKNOWN);
        let cost = range.plus(init).plus(result).plus(times.times(condition.plus(step)));
        let facts = match comprehension.init.kind {
            Kind::Literal(_) => Facts { size: start.size, ..Facts::default() },
            Kind::List(_) | Kind::Map(_) => Facts { size: Some(times), entries: stepped.entries, declared: None },
            _ => Facts::default(),
        };
        (cost, facts)
    }

    /// What is known about the variables of a loop.
    fn elements(&self, comprehension: &Comprehension, over: &Facts<'p>) -> (Facts<'p>, Facts<'p>) {
        let is_list = match over.declared.map(|declared| &declared.shape) {
            Some(Shape::List { .. }) => true,
            Some(Shape::Map { .. }) => false,
            _ => matches!(self.of(&comprehension.range), Type::List(_)),
        };
        let key_size = over.entries.map(|(key, _)| key);
        let value_size = over.entries.map(|(_, value)| value);
        let part = |part: fn(&Declaration) -> Option<&Declaration>| match over.declared {
            Some(declared) => part(declared),
            None => self.lost(),
        };
        let value = Facts { declared: part(element), size: value_size, entries: None };
        let key = Facts { declared: part(key_of), size: key_size, entries: None };
        match (is_list, comprehension.second.is_some()) {
            (true, true) => (Facts { declared: None, ..key }, value),
            (true, false) => (value, Facts::default()),
            (false, _) => (key, value),
        }
    }
}

/// What calling it costs, without its arguments.
fn own_cost(overload: &Arc<Overload>, operands: &[Operand]) -> (Range, Option<Range>) {
    match (overload.cost, operands) {
        (cost::Cost::Compare, [Operand { of: Type::Abstract(name), .. }, other]) => {
            (cost::compared(name, other.size), None)
        }
        (cost, operands) => cost.estimated(operands),
    }
}

/// How the items of a list or the values of a map were declared.
fn element(declared: &Declaration) -> Option<&Declaration> {
    match &declared.shape {
        Shape::List { items: declared, .. } | Shape::Map { values: declared, .. } => Some(declared),
        _ => None,
    }
}

fn key_of(declared: &Declaration) -> Option<&Declaration> {
    match &declared.shape {
        Shape::Map { keys, .. } => Some(keys),
        _ => None,
    }
}

fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}
