//! A compiled expression, what it is evaluated with, and how much that may cost.

use crate::ast::{Ast, Expr, Kind, Literal};
use crate::checker::{Checked, Node, Reference};
use crate::declaration::Declaration;
use crate::environment::Run;
use crate::evaluator;
use crate::functions::conversions;
use crate::functions::regex::compile;
use crate::issue::Issue;
use crate::json;
use crate::types::Type;
use crate::value::{Error, Value};
use object::Value as Json;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How much one evaluation may cost, about a tenth of a second.
pub const PER_CALL_LIMIT: u64 = 1_000_000;
/// How much all rules for an object may cost together, about a second.
pub const RUNTIME_BUDGET: u64 = 10_000_000;
/// How much all match conditions of a webhook or a policy may cost together.
pub const MATCH_CONDITIONS_BUDGET: u64 = 2_500_000;

/// What evaluations may still cost.
#[derive(Clone, Debug)]
pub struct Budget {
    remaining: u64,
    per_call: u64,
}

impl Budget {
    pub fn new(total: u64) -> Budget {
        Budget { remaining: total, per_call: PER_CALL_LIMIT }
    }

    /// With another limit on each evaluation.
    pub fn per_call(self, limit: u64) -> Budget {
        Budget { per_call: limit, ..self }
    }

    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    fn spend(&mut self, cost: u64) -> Result<(), Error> {
        match self.remaining.checked_sub(cost) {
            Some(remaining) => self.remaining = remaining,
            None => {
                self.remaining = 0;
                return Err(Error::OutOfBudget);
            }
        }
        Ok(())
    }
}

/// For rules of objects.
impl Default for Budget {
    fn default() -> Self {
        Budget::new(RUNTIME_BUDGET)
    }
}

/// The values of variables in one evaluation.
#[derive(Clone, Debug, Default)]
pub struct Variables<'a>(Vec<(&'a str, Variable<'a>)>);

#[derive(Clone, Debug)]
enum Variable<'a> {
    /// To be read as declared.
    Json(&'a Json),
    Value(Value<'a>),
}

impl<'a> Variables<'a> {
    pub fn new() -> Variables<'a> {
        Variables::default()
    }

    pub fn json(mut self, name: &'a str, json: &'a Json) -> Variables<'a> {
        self.0.push((name, Variable::Json(json)));
        self
    }

    pub fn value(mut self, name: &'a str, value: Value<'a>) -> Variables<'a> {
        self.0.push((name, Variable::Value(value)));
        self
    }

    pub(crate) fn get(&self, name: &str, program: &'a Program) -> Result<Value<'a>, Error> {
        match self.0.iter().find(|(variable, _)| *variable == name) {
            Some((_, Variable::Value(value))) => Ok(value.clone()),
            Some((_, Variable::Json(json))) => match program.variables.get(name) {
                Some(declared) => json::read(json, declared),
                None => Ok(Value::from_json(json)),
            },
            None => Err(Error::new(format!("no such attribute(s): {name}"))),
        }
    }
}

/// A checked expression. It can be shared between threads.
#[derive(Debug)]
pub struct Program {
    pub(crate) root: Expr,
    pub(crate) nodes: Checked,
    pub(crate) variables: BTreeMap<Arc<str>, Arc<Declaration>>,
    /// Which nodes depend on nothing, and so cost nothing; by their id.
    pub(crate) constants: Vec<bool>,
    /// Those regular expressions that are known before.
    pub(crate) regexes: BTreeMap<Arc<str>, Regex>,
}

impl Program {
    pub(crate) fn new(
        ast: Ast,
        nodes: Checked,
        variables: BTreeMap<Arc<str>, Arc<Declaration>>,
    ) -> Result<Program, Vec<Issue>> {
        let mut plan = Plan {
            nodes: &nodes,
            constants: vec![false; nodes.len()],
            regexes: BTreeMap::new(),
            issues: Vec::new(),
            ast: &ast,
        };
        plan.visit(&ast.root);
        let Plan { constants, regexes, issues, .. } = plan;
        if !issues.is_empty() {
            return Err(issues);
        }
        Ok(Program { root: ast.root, nodes, variables, constants, regexes })
    }

    pub fn output_type(&self) -> &Type {
        &self.nodes[self.root.id].of
    }

    /// Whether it looks at the variable, such as `oldSelf`.
    pub fn uses(&self, variable: &str) -> bool {
        let is_it = |node: &Node| matches!(&node.reference, Reference::Variable(name) if **name == *variable);
        self.nodes.iter().any(is_it)
    }

    /// The value. What it cost is taken from the budget, whatever came out.
    pub fn evaluate<'a>(&'a self, variables: &Variables<'a>, budget: &mut Budget) -> Result<Value<'a>, Error> {
        let (value, cost) = evaluator::evaluate(self, variables, budget.per_call);
        budget.spend(cost)?;
        value
    }
}

/// What is found out about an expression before it is evaluated for the first time.
struct Plan<'p> {
    ast: &'p Ast,
    nodes: &'p Checked,
    constants: Vec<bool>,
    regexes: BTreeMap<Arc<str>, Regex>,
    issues: Vec<Issue>,
}

impl Plan<'_> {
    /// Returns whether the node is a constant.
    fn visit(&mut self, expr: &Expr) -> bool {
        let constant = match &expr.kind {
            Kind::Literal(_) => return true,
            Kind::Ident(_) => false,
            Kind::Select { .. } | Kind::Struct { .. } | Kind::Comprehension(_) => {
                self.visit_all(expr.parts().into_iter());
                false
            }
            Kind::Call { target, function, args } => {
                let constant = self.visit_all(args.iter());
                if let Some(target) = target {
                    self.visit(target);
                }
                self.visit_call(expr, function, args);
                constant && target.is_none() && args.len() == 1 && conversions::NAMES.contains(&&**function)
            }
            Kind::List(items) => {
                self.visit_all(items.iter().map(|item| &item.value)) && !items.iter().any(|item| item.optional)
            }
            Kind::Map(entries) => {
                self.visit_all(expr.parts().into_iter()) && !entries.iter().any(|entry| entry.optional)
            }
        };
        self.constants[expr.id] = constant;
        constant
    }

    /// Visits all of them; returns whether all are constants.
    fn visit_all<'e>(&mut self, exprs: impl Iterator<Item = &'e Expr>) -> bool {
        exprs.filter(|expr| !self.visit(expr)).count() == 0
    }

    /// Mistakes in what is written down are found before anything is evaluated.
    fn visit_call(&mut self, expr: &Expr, function: &str, args: &[Expr]) {
        let Reference::Overloads { overloads, .. } = &self.nodes[expr.id].reference else { return };
        let Some(run) = overloads.first().map(|overload| overload.run) else { return };
        let member = overloads.first().is_some_and(|overload| overload.signature.member);
        let written = |arg: Option<&Expr>| match arg {
            Some(Expr { id, kind: Kind::Literal(literal) }) => Some((*id, literal.clone())),
            _ => None,
        };
        let wrong = match run {
            Run::Regex(_) => {
                let pattern = written(args.get(usize::from(!member)));
                pattern.filter(|(_, pattern)| matches!(pattern, Literal::String(text) if !self.compile(text)))
            }
            Run::Plain(run) if args.len() == 1 && conversions::NAMES.contains(&function) => {
                let literal = written(args.first());
                literal.filter(|(_, literal)| run(&mut [evaluator::literal_value(literal)]).is_err())
            }
            _ => None,
        };
        if let Some((id, _)) = wrong {
            let message = format!("invalid {function} argument");
            self.issues.push(Issue { position: self.ast.positions[id], message });
        }
    }

    /// Keeps the expression for when it is needed, if it is one.
    fn compile(&mut self, pattern: &Arc<str>) -> bool {
        let compiled = compile(pattern);
        let good = compiled.is_ok();
        self.regexes.extend(compiled.ok().map(|regex| (pattern.clone(), regex)));
        good
    }
}
