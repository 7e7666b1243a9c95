//! Macros: calls that are not evaluated as such, but stand for something longer.
//!
//! Each is a row of one table; those that go over something all become the one loop of [`Comprehension`].

use crate::ast::{Ast, Comprehension, Expr, Item, Kind, Literal, operator};
use crate::issue::{Issue, Position};
use std::sync::Arc;

/// Holds what a loop has gathered so far. No expression can name it.
pub(crate) const ACCUMULATOR: &str = "@result";
const RESERVED_ACCUMULATOR: &str = "__result__";
/// Adds an entry to a map, or the entries of another.
pub(crate) const MAP_INSERT: &str = "cel.@mapInsert";
/// How many nodes macros may repeat.
const MAX_COPIED: usize = 100_000;
const UNUSED: &str = "#unused";
const SORTED: &str = "@__sortBy_input__";

struct Macro {
    function: &'static str,
    /// Called on something, and with so many arguments.
    member: bool,
    arguments: usize,
    expand: fn(&mut Expander, Expr, Vec<Expr>) -> Result<Kind, Issue>,
}

const fn member(
    function: &'static str,
    arguments: usize,
    expand: fn(&mut Expander, Expr, Vec<Expr>) -> Result<Kind, Issue>,
) -> Macro {
    Macro { function, member: true, arguments, expand }
}

const ALL: &[Macro] = &[
    Macro { function: "has", member: false, arguments: 1, expand: |expander, _, args| expander.has(args) },
    member("all", 2, |expander, range, args| expander.quantifier(range, args, &ALL_HOLD)),
    member("all", 3, |expander, range, args| expander.quantifier(range, args, &ALL_HOLD)),
    member("exists", 2, |expander, range, args| expander.quantifier(range, args, &ANY_HOLDS)),
    member("exists", 3, |expander, range, args| expander.quantifier(range, args, &ANY_HOLDS)),
    member("exists_one", 2, |expander, range, args| expander.quantifier(range, args, &ONE_HOLDS)),
    member("existsOne", 2, |expander, range, args| expander.quantifier(range, args, &ONE_HOLDS)),
    member("existsOne", 3, |expander, range, args| expander.quantifier(range, args, &ONE_HOLDS)),
    member("map", 2, |expander, range, args| expander.gather(range, args, 1, Gathered::List)),
    member("map", 3, |expander, range, args| expander.gather(range, args, 1, Gathered::List)),
    member("filter", 2, |expander, range, args| expander.filter(range, args)),
    member("transformList", 3, |expander, range, args| expander.gather(range, args, 2, Gathered::List)),
    member("transformList", 4, |expander, range, args| expander.gather(range, args, 2, Gathered::List)),
    member("transformMap", 3, |expander, range, args| expander.gather(range, args, 2, Gathered::Map)),
    member("transformMap", 4, |expander, range, args| expander.gather(range, args, 2, Gathered::Map)),
    member("transformMapEntry", 3, |expander, range, args| expander.gather(range, args, 2, Gathered::Entries)),
    member("transformMapEntry", 4, |expander, range, args| expander.gather(range, args, 2, Gathered::Entries)),
    member("optMap", 2, |expander, target, args| expander.if_present(target, args, "optMap")),
    member("optFlatMap", 2, |expander, target, args| expander.if_present(target, args, "optFlatMap")),
    member("sortBy", 2, |expander, target, args| expander.sort_by(target, args)),
    member("bind", 3, |expander, target, args| expander.bind(target, args)),
];

#[derive(Clone, Copy)]
enum Gathered {
    List,
    Map,
    Entries,
}

/// How a loop decides something about all elements.
struct Quantifier {
    init: Literal,
    condition: fn(&mut Expander) -> Expr,
    step: fn(&mut Expander, Expr) -> Expr,
    result: fn(&mut Expander) -> Expr,
}

const ALL_HOLD: Quantifier = Quantifier {
    init: Literal::Bool(true),
    condition: |e| {
        let so_far = e.accumulator();
        e.call(operator::NOT_STRICTLY_FALSE, vec![so_far])
    },
    step: |e, predicate| {
        let so_far = e.accumulator();
        e.call(operator::AND, vec![so_far, predicate])
    },
    result: Expander::accumulator,
};

const ANY_HOLDS: Quantifier = Quantifier {
    init: Literal::Bool(false),
    condition: |e| {
        let so_far = e.accumulator();
        let none = e.call(operator::NOT, vec![so_far]);
        e.call(operator::NOT_STRICTLY_FALSE, vec![none])
    },
    step: |e, predicate| {
        let so_far = e.accumulator();
        e.call(operator::OR, vec![so_far, predicate])
    },
    result: Expander::accumulator,
};

const ONE_HOLDS: Quantifier = Quantifier {
    init: Literal::Int(0),
    condition: |e| e.literal(Literal::Bool(true)),
    step: |e, predicate| {
        let (so_far, one) = (e.accumulator(), e.literal(Literal::Int(1)));
        let more = e.call(operator::ADD, vec![so_far, one]);
        e.if_holds(Some(predicate), more)
    },
    result: |e| {
        let (count, one) = (e.accumulator(), e.literal(Literal::Int(1)));
        e.call(operator::EQUALS, vec![count, one])
    },
};

/// The tree with all macros expanded, and what is wrong with them.
pub(crate) fn expand(ast: Ast, bindings: bool) -> (Ast, Vec<Issue>) {
    let Ast { root, positions } = ast;
    let mut expander = Expander { positions, position: Position::default(), bindings, issues: Vec::new(), copied: 0 };
    let root = expander.expr(root);
    (Ast { root, positions: expander.positions }, expander.issues)
}

struct Expander {
    positions: Vec<Position>,
    /// Of the macro that is being expanded, where everything it is made of is said to stand.
    position: Position,
    /// Whether `cel.bind` is known.
    bindings: bool,
    issues: Vec<Issue>,
    /// How many nodes there are more than once.
    copied: usize,
}

impl Expander {
    /// What a macro is called with is expanded first: the innermost comes first.
    fn expr(&mut self, expr: Expr) -> Expr {
        let kind = match expr.kind {
            Kind::Select { operand, field, test } => {
                Kind::Select { operand: Box::new(self.expr(*operand)), field, test }
            }
            Kind::Call { target, function, args } => {
                let target = target.map(|target| self.expr(*target));
                let args = args.into_iter().map(|arg| self.expr(arg)).collect();
                self.call_or_macro(expr.id, target, function, args)
            }
            Kind::List(items) => {
                let items = items.into_iter();
                Kind::List(items.map(|item| Item { value: self.expr(item.value), ..item }).collect())
            }
            Kind::Map(mut entries) => {
                for entry in &mut entries {
                    for part in [&mut entry.key, &mut entry.value] {
                        *part = self.expr(std::mem::replace(part, NOTHING));
                    }
                }
                Kind::Map(entries)
            }
            Kind::Struct { name, mut fields } => {
                for field in &mut fields {
                    field.value = self.expr(std::mem::replace(&mut field.value, NOTHING));
                }
                Kind::Struct { name, fields }
            }
            kind @ (Kind::Literal(_) | Kind::Ident(_) | Kind::Comprehension(_)) => kind,
        };
        Expr { id: expr.id, kind }
    }

    fn call_or_macro(&mut self, id: usize, target: Option<Expr>, function: Arc<str>, args: Vec<Expr>) -> Kind {
        let found = ALL.iter().find(|known| {
            known.function == &*function && known.member == target.is_some() && known.arguments == args.len()
        });
        let for_bindings = function.as_ref() != "bind" || (self.bindings && target.as_ref().is_some_and(is_cel));
        let Some(found) = found.filter(|_| for_bindings) else {
            return Kind::Call { target: target.map(Box::new), function, args };
        };
        self.position = self.positions[id];
        (found.expand)(self, target.unwrap_or(NOTHING), args).unwrap_or_else(|issue| {
            self.issues.push(issue);
            Kind::Literal(Literal::Null)
        })
    }

    fn node(&mut self, kind: Kind) -> Expr {
        self.positions.push(self.position);
        Expr { id: self.positions.len() - 1, kind }
    }

    fn literal(&mut self, literal: Literal) -> Expr {
        self.node(Kind::Literal(literal))
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.node(Kind::Ident(name.into()))
    }

    fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.node(Kind::Call { target: None, function: function.into(), args })
    }

    fn issue(&self, at: &Expr, message: impl Into<String>) -> Issue {
        Issue { position: self.positions[at.id], message: message.into() }
    }

    /// The same once more. Copies of copies add up quickly, so there is a bound.
    fn copy(&mut self, expr: &Expr) -> Result<Expr, Issue> {
        fn nodes(expr: &Expr) -> usize {
            1 + expr.parts().into_iter().map(nodes).sum::<usize>()
        }
        self.copied += nodes(expr);
        if self.copied > MAX_COPIED {
            return Err(self.issue(expr, "expression is too large with its macros expanded"));
        }
        Ok(expr.clone())
    }

    /// The step if the predicate holds, and what there was if not.
    fn if_holds(&mut self, predicate: Option<Expr>, step: Expr) -> Expr {
        let Some(predicate) = predicate else { return step };
        let so_far = self.accumulator();
        self.call(operator::CONDITIONAL, vec![predicate, step, so_far])
    }

    /// The variables of a loop, which its first arguments name.
    fn variables(&self, names: &[Expr], wrong: &str) -> Result<(Arc<str>, Option<Arc<str>>), Issue> {
        let mut variables = Vec::new();
        for name in names {
            let Kind::Ident(variable) = &name.kind else { return Err(self.issue(name, wrong)) };
            if [ACCUMULATOR, RESERVED_ACCUMULATOR].contains(&&**variable) {
                return Err(self.issue(name, "iteration variable overwrites accumulator variable"));
            }
            if variables.contains(variable) {
                return Err(self.issue(name, format!("duplicate variable name: {variable}")));
            }
            variables.push(variable.clone());
        }
        let second = variables.get(1).cloned();
        Ok((variables.swap_remove(0), second))
    }

    fn has(&self, mut args: Vec<Expr>) -> Result<Kind, Issue> {
        match args.remove(0) {
            Expr { kind: Kind::Select { operand, field, .. }, .. } => Ok(Kind::Select { operand, field, test: true }),
            other => Err(self.issue(&other, "invalid argument to has() macro")),
        }
    }

    fn quantifier(&mut self, range: Expr, mut args: Vec<Expr>, quantifier: &Quantifier) -> Result<Kind, Issue> {
        let predicate = args.pop().expect("the table says how many arguments there are");
        let (variable, second) = self.variables(&args, "argument must be a simple name")?;
        Ok(Kind::Comprehension(Box::new(Comprehension {
            range,
            variable,
            second,
            accumulator: ACCUMULATOR.into(),
            init: self.literal(quantifier.init.clone()),
            condition: (quantifier.condition)(self),
            step: (quantifier.step)(self, predicate),
            result: (quantifier.result)(self),
        })))
    }

    /// Puts something together: `names` arguments name variables, the last is what to add, and between them there may
    /// be a predicate.
    fn gather(&mut self, range: Expr, mut args: Vec<Expr>, names: usize, into: Gathered) -> Result<Kind, Issue> {
        let added = args.pop().expect("the table says how many arguments there are");
        let predicate = if args.len() > names { args.pop() } else { None };
        let wrong = if names == 1 { "argument is not an identifier" } else { "argument must be a simple name" };
        let (variable, second) = self.variables(&args, wrong)?;
        let so_far = self.accumulator();
        let (init, step) = match into {
            Gathered::List => {
                let added = self.node(Kind::List(vec![Item { value: added, optional: false }]));
                (Kind::List(Vec::new()), self.call(operator::ADD, vec![so_far, added]))
            }
            Gathered::Map => {
                let key = self.ident(&variable);
                (Kind::Map(Vec::new()), self.call(MAP_INSERT, vec![so_far, key, added]))
            }
            Gathered::Entries => (Kind::Map(Vec::new()), self.call(MAP_INSERT, vec![so_far, added])),
        };
        Ok(Kind::Comprehension(Box::new(Comprehension {
            range,
            variable,
            second,
            accumulator: ACCUMULATOR.into(),
            init: self.node(init),
            condition: self.literal(Literal::Bool(true)),
            step: self.if_holds(predicate, step),
            result: self.accumulator(),
        })))
    }

    fn filter(&mut self, range: Expr, args: Vec<Expr>) -> Result<Kind, Issue> {
        let [variable, predicate] = <[Expr; 2]>::try_from(args).expect("the table says how many arguments there are");
        let element = variable.clone();
        self.gather(range, vec![variable, predicate, element], 1, Gathered::List)
    }

    /// Gives a name to a value.
    fn binding(&mut self, name: &Arc<str>, value: Expr, result: Expr) -> Expr {
        let kind = Kind::Comprehension(Box::new(Comprehension {
            range: self.node(Kind::List(Vec::new())),
            variable: UNUSED.into(),
            second: None,
            accumulator: name.clone(),
            init: value,
            condition: self.literal(Literal::Bool(false)),
            step: self.ident(name),
            result,
        }));
        self.node(kind)
    }

    fn bind(&mut self, _: Expr, args: Vec<Expr>) -> Result<Kind, Issue> {
        let [name, value, result] = <[Expr; 3]>::try_from(args).expect("the table says how many arguments there are");
        let Kind::Ident(name) = &name.kind else {
            return Err(self.issue(&name, "cel.bind() variable names must be simple identifiers"));
        };
        Ok(self.binding(name, value, result).kind)
    }

    fn if_present(&mut self, target: Expr, args: Vec<Expr>, function: &str) -> Result<Kind, Issue> {
        let [name, result] = <[Expr; 2]>::try_from(args).expect("the table says how many arguments there are");
        let Kind::Ident(name) = &name.kind else {
            return Err(self.issue(&name, format!("{function}() variable name must be a simple identifier")));
        };
        let on = |target: Expr, function: &str| Kind::Call {
            target: Some(Box::new(target)),
            function: function.into(),
            args: Vec::new(),
        };
        let copy = self.copy(&target)?;
        let there = self.node(on(copy, "hasValue"));
        let value = self.node(on(target, "value"));
        let mut result = self.binding(name, value, result);
        if function == "optMap" {
            result = self.call("optional.of", vec![result]);
        }
        let none = self.call("optional.none", Vec::new());
        Ok(self.call(operator::CONDITIONAL, vec![there, result, none]).kind)
    }

    fn sort_by(&mut self, target: Expr, args: Vec<Expr>) -> Result<Kind, Issue> {
        if matches!(target.kind, Kind::Literal(_) | Kind::Map(_) | Kind::Struct { .. }) {
            let wrong = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err(self.issue(&target, wrong));
        }
        let range = self.ident(SORTED);
        let keys = self.gather(range, args, 1, Gathered::List)?;
        let (sorted, keys) = (self.ident(SORTED), self.node(keys));
        let function = "@sortByAssociatedKeys".into();
        let sorted = self.node(Kind::Call { target: Some(Box::new(sorted)), function, args: vec![keys] });
        Ok(self.binding(&SORTED.into(), target, sorted).kind)
    }
}

/// Stands where something is taken out for a moment, and for the target of what is called on nothing.
const NOTHING: Expr = Expr { id: 0, kind: Kind::Literal(Literal::Null) };

fn is_cel(target: &Expr) -> bool {
    matches!(&target.kind, Kind::Ident(name) if &**name == "cel")
}
