//! Gives every node its type and every call the functions it may be, or says what is wrong.

use crate::ast::{Ast, Comprehension, Expr, Id, Kind, Literal, operator};
use crate::environment::{Environment, ObjectType, Overload};
use crate::functions;
use crate::issue::{Issue, Issues};
use crate::types::{self, Type};
use crate::unify::{Bindings, is_more_general};
use std::sync::Arc;

/// What is known about a node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) of: Type,
    pub(crate) reference: Reference,
}

/// What a name turned out to be.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reference {
    #[default]
    None,
    /// A variable, possibly of a name with dots in it.
    Variable(Arc<str>),
    Type(Type),
    /// Those that fit the types. Which one it is can depend on values.
    Overloads {
        overloads: Vec<Arc<Overload>>,
        /// What looks like a target is a part of the name: `math.greatest(1)`.
        namespaced: bool,
    },
}

/// Nodes by their [`Id`].
pub(crate) type Checked = Vec<Node>;

pub(crate) fn check(environment: &Environment, ast: &Ast, source: &str) -> Result<Checked, Issues> {
    let unknown = Node { of: Type::Error, reference: Reference::None };
    let mut checker = Checker {
        environment,
        ast,
        nodes: vec![unknown; ast.positions.len()],
        scopes: Vec::new(),
        bindings: Bindings::default(),
        issues: Vec::new(),
    };
    checker.check(&ast.root);
    let Checker { mut nodes, bindings, mut issues, .. } = checker;
    for node in &mut nodes {
        node.of = bindings.resolve(&node.of, true);
    }
    if issues.is_empty() {
        homogeneous(ast, &nodes, &ast.root, &mut issues);
    }
    if issues.is_empty() { Ok(nodes) } else { Err(Issues::new(source, issues)) }
}

/// What is called.
#[derive(Clone, Copy)]
struct Callee<'n> {
    name: &'n str,
    /// On something.
    member: bool,
    namespaced: bool,
}

struct Checker<'c> {
    environment: &'c Environment,
    ast: &'c Ast,
    nodes: Checked,
    /// The variables of the loops we are in.
    scopes: Vec<(Arc<str>, Type)>,
    bindings: Bindings,
    issues: Vec<Issue>,
}

impl Checker<'_> {
    fn issue(&mut self, at: Id, message: impl Into<String>) {
        self.issues.push(Issue { position: self.ast.positions[at], message: message.into() });
    }

    fn undeclared(&mut self, at: Id, name: &str) -> Type {
        self.issue(at, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn mismatch(&mut self, at: Id, expected: &Type, found: &Type) {
        let found = self.bindings.resolve(found, false);
        self.issue(at, format!("expected type '{expected}' but found '{found}'"));
    }

    fn check(&mut self, expr: &Expr) -> Type {
        let of = match &expr.kind {
            Kind::Literal(literal) => literal_type(literal),
            Kind::Ident(name) => match self.lookup(name) {
                Some((of, reference)) => {
                    self.nodes[expr.id].reference = reference;
                    of
                }
                None => self.undeclared(expr.id, name),
            },
            Kind::Select { operand, field, test } => self.select(expr, operand, field, *test),
            Kind::Call { target, function, args } => self.call(expr, target.as_deref(), function, args),
            Kind::List(items) => {
                let mut joined = None;
                for item in items {
                    let of = self.check(&item.value);
                    let of = self.unwrapped(&item.value, of, item.optional);
                    joined = Some(self.join(joined, of));
                }
                Type::list(joined.unwrap_or_else(|| self.bindings.fresh()))
            }
            Kind::Map(entries) => {
                let (mut keys, mut values) = (None, None);
                for entry in entries {
                    let of = self.check(&entry.key);
                    keys = Some(self.join(keys, of));
                    let of = self.check(&entry.value);
                    let of = self.unwrapped(&entry.value, of, entry.optional);
                    values = Some(self.join(values, of));
                }
                let keys = keys.unwrap_or_else(|| self.bindings.fresh());
                Type::map(keys, values.unwrap_or_else(|| self.bindings.fresh()))
            }
            Kind::Struct { name, fields } => self.object(expr, name, fields),
            Kind::Comprehension(comprehension) => self.comprehension(comprehension),
        };
        self.nodes[expr.id].of = of.clone();
        of
    }

    fn lookup(&self, name: &str) -> Option<(Type, Reference)> {
        if let Some((_, of)) = self.scopes.iter().rev().find(|(variable, _)| **variable == *name) {
            return Some((of.clone(), Reference::Variable(name.into())));
        }
        if let Some(of) = self.environment.variable_type(name) {
            return Some((of, Reference::Variable(name.strip_prefix('.').unwrap_or(name).into())));
        }
        let of = types::named(name).or_else(|| {
            functions::ABSTRACT_TYPES.iter().find(|known| **known == name).map(|known| Type::Abstract((*known).into()))
        })?;
        Some((Type::Type(Some(Arc::new(of.clone()))), Reference::Type(of)))
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &str, test: bool) -> Type {
        let qualified = if test { None } else { expr.qualified_name() };
        if let Some((of, reference)) = qualified.and_then(|name| self.lookup(&name)) {
            self.nodes[expr.id].reference = reference;
            return of;
        }
        let of = self.select_field(expr.id, operand, field, false);
        if test { Type::Bool } else { of }
    }

    fn select_field(&mut self, at: Id, operand: &Expr, field: &str, optional: bool) -> Type {
        let of = self.check(operand);
        let of = self.bindings.resolve(&of, false);
        let (of, was_optional) = match of {
            Type::Optional(inner) => ((*inner).clone(), true),
            of => (of, false),
        };
        let result = match &of {
            Type::Map(entries) => entries.1.clone(),
            Type::Object(declared) => match declared.field(field) {
                Some(field) => field.declaration.of_type(),
                None => {
                    self.issue(at, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Param(_) => {
                self.bindings.assignable(&Type::Dyn, &of);
                Type::Dyn
            }
            of if of.is_dyn_or_error() => Type::Dyn,
            of => {
                self.issue(at, format!("type '{of}' does not support field selection"));
                Type::Dyn
            }
        };
        if optional || was_optional { Type::optional(result) } else { result }
    }

    fn call(&mut self, expr: &Expr, target: Option<&Expr>, function: &str, args: &[Expr]) -> Type {
        if let (operator::OPTIONAL_SELECT, [operand, Expr { kind: Kind::Literal(Literal::String(field)), .. }]) =
            (function, args)
        {
            return self.select_field(expr.id, operand, field, true);
        }
        let mut types: Vec<Type> = args.iter().map(|arg| self.check(arg)).collect();
        if [operator::AND, operator::OR].contains(&function) {
            return self.all_bool(args, &types);
        }
        let Some(target) = target else {
            return self.resolve(expr.id, Callee { name: function, member: false, namespaced: false }, &types);
        };
        let qualified = target.qualified_name().map(|prefix| format!("{prefix}.{function}"));
        if let Some(name) = qualified.filter(|name| self.environment.overloads(name).is_some()) {
            return self.resolve(expr.id, Callee { name: &name, member: false, namespaced: true }, &types);
        }
        types.insert(0, self.check(target));
        self.resolve(expr.id, Callee { name: function, member: true, namespaced: false }, &types)
    }

    /// The overloads that fit, and what they give.
    fn resolve(&mut self, at: Id, callee: Callee<'_>, types: &[Type]) -> Type {
        let Callee { name, member, namespaced } = callee;
        let environment = self.environment;
        let Some(candidates) = environment.overloads(name) else { return self.undeclared(at, name) };
        let mut overloads = Vec::new();
        let mut result: Option<Type> = None;
        for overload in candidates.filter(|overload| overload.signature.member == member) {
            let signature = &overload.signature;
            let fresh: Vec<Type> = (0..signature.params()).map(|_| self.bindings.fresh()).collect();
            let wanted: Vec<Type> = signature.args.iter().map(|arg| instantiate(arg, &fresh)).collect();
            if types.len() != wanted.len() || !self.bindings.assignable_all(types.iter().zip(&wanted)) {
                continue;
            }
            overloads.push(overload.clone());
            let given = self.bindings.resolve(&instantiate(&signature.result, &fresh), false);
            result = match result {
                None => Some(given),
                Some(before) if before == given || before == Type::Dyn => Some(before),
                Some(_) => Some(Type::Dyn),
            };
        }
        self.nodes[at].reference = Reference::Overloads { overloads, namespaced };
        result.unwrap_or_else(|| self.no_overload(at, name, member, types))
    }

    fn no_overload(&mut self, at: Id, name: &str, member: bool, types: &[Type]) -> Type {
        let mut types: Vec<String> = types.iter().map(|of| self.bindings.resolve(of, true).to_string()).collect();
        let target = if member { format!("{}.", types.remove(0)) } else { String::new() };
        let applied = format!("{target}({})", types.join(", "));
        self.issue(at, format!("found no matching overload for '{name}' applied to '{applied}'"));
        Type::Error
    }

    fn all_bool(&mut self, args: &[Expr], types: &[Type]) -> Type {
        let mut result = Type::Bool;
        for (arg, of) in args.iter().zip(types) {
            if !self.bindings.assignable(of, &Type::Bool) {
                self.mismatch(arg.id, &Type::Bool, of);
                result = Type::Error;
            }
        }
        result
    }

    /// The type of what is in an optional.
    fn unwrapped(&mut self, at: &Expr, of: Type, optional: bool) -> Type {
        match of {
            of if !optional => of,
            Type::Optional(inner) => (*inner).clone(),
            Type::Dyn => Type::Dyn,
            of => {
                self.mismatch(at.id, &Type::optional(of.clone()), &of);
                of
            }
        }
    }

    /// One type for all elements; whether they may differ is seen to in the end.
    fn join(&mut self, before: Option<Type>, of: Type) -> Type {
        let Some(before) = before else { return of };
        if self.bindings.assignable(&before, &of) {
            return if is_more_general(&before, &of) { before } else { of };
        }
        Type::Dyn
    }

    fn object(&mut self, expr: &Expr, name: &str, fields: &[crate::ast::Field]) -> Type {
        let object = self.environment.object_type(name);
        let result = match &object {
            Some(ObjectType::Declared(declared)) => Type::Object(declared.clone()),
            Some(ObjectType::Open) => Type::Dyn,
            None => return self.undeclared(expr.id, name),
        };
        for field in fields {
            let of = self.check(&field.value);
            let of = self.unwrapped(&field.value, of, field.optional);
            let Some(ObjectType::Declared(declared)) = &object else { continue };
            let Some(known) = declared.field(&field.name) else {
                self.issue(field.id, format!("undefined field '{}'", field.name));
                continue;
            };
            let wanted = known.declaration.of_type();
            if !self.bindings.assignable(&wanted, &of) {
                let name = &field.name;
                let message = format!("expected type of field '{name}' is '{wanted}' but provided type is '{of}'");
                self.issue(field.id, message);
            }
        }
        result
    }

    fn comprehension(&mut self, comprehension: &Comprehension) -> Type {
        let range = self.check(&comprehension.range);
        let range = self.bindings.resolve(&range, false);
        let accumulated = self.check(&comprehension.init);
        let outside = self.scopes.len();
        self.scopes.push((comprehension.accumulator.clone(), accumulated.clone()));
        let (first, second) = self.elements(&comprehension.range, &range, comprehension.second.is_some());
        let within = self.scopes.len();
        self.scopes.push((comprehension.variable.clone(), first));
        self.scopes.extend(comprehension.second.clone().map(|variable| (variable, second)));
        for (part, wanted) in [(&comprehension.condition, Type::Bool), (&comprehension.step, accumulated)] {
            let of = self.check(part);
            if !self.bindings.assignable(&wanted, &of) {
                let wanted = self.bindings.resolve(&wanted, false);
                self.mismatch(part.id, &wanted, &of);
            }
        }
        self.scopes.truncate(within);
        let result = self.check(&comprehension.result);
        self.scopes.truncate(outside);
        self.bindings.resolve(&result, false)
    }

    /// The types of the variables of a loop over this. Over a list with one variable: that of its items; with two, that
    /// of the index and that of the items. Over a map: that of keys, and that of values.
    fn elements(&mut self, at: &Expr, range: &Type, two: bool) -> (Type, Type) {
        match range {
            Type::List(items) if two => (Type::Int, (**items).clone()),
            Type::List(items) => ((**items).clone(), Type::Error),
            Type::Map(entries) => entries.as_ref().clone(),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.bindings.assignable(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.issue(at.id, message);
                (Type::Error, Type::Error)
            }
        }
    }
}

/// The elements of a list or a map that is written down are of one type, unless they are to be formatted.
fn homogeneous(ast: &Ast, nodes: &Checked, expr: &Expr, issues: &mut Vec<Issue>) {
    if matches!(&expr.kind, Kind::Call { function, .. } if &**function == "format") {
        return;
    }
    let of = |expr: &Expr, optional: bool| match &nodes[expr.id].of {
        Type::Optional(inner) if optional => (**inner).clone(),
        of => of.clone(),
    };
    let mut expect_same = |elements: Vec<(&Expr, bool)>| {
        let Some((first, optional)) = elements.first() else { return };
        let expected = of(first, *optional);
        if let Some((other, optional)) = elements.iter().find(|(other, optional)| of(other, *optional) != expected) {
            let message = format!("expected type '{expected}' but found '{}'", of(other, *optional));
            issues.push(Issue { position: ast.positions[other.id], message });
        }
    };
    match &expr.kind {
        Kind::List(items) => expect_same(items.iter().map(|item| (&item.value, item.optional)).collect()),
        Kind::Map(entries) => {
            expect_same(entries.iter().map(|entry| (&entry.key, false)).collect());
            expect_same(entries.iter().map(|entry| (&entry.value, entry.optional)).collect());
        }
        _ => {}
    }
    for part in expr.parts() {
        homogeneous(ast, nodes, part, issues);
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// The type of a signature with its letters replaced.
fn instantiate(of: &Type, fresh: &[Type]) -> Type {
    match of {
        Type::Param(letter) => fresh[*letter].clone(),
        other => other.map_parts(|part| instantiate(part, fresh)),
    }
}
