//! What expressions can use: variables with their types, and functions.
//!
//! A function is some rows of a table. Each has a signature, a cost and an implementation, so the checker, the
//! estimate and the evaluator cannot disagree about what there is.

use crate::checker;
use crate::cost::Cost;
use crate::declaration::Declaration;
use crate::functions;
use crate::issue::Issues;
use crate::macros;
use crate::parser;
use crate::program::Program;
use crate::types::{Signature, Type};
use crate::value::{Error, Value};
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// Arguments, the one that is called on first. An implementation may take them.
pub type Arguments<'v, 'a> = &'v mut [Value<'a>];
/// What a function does.
pub type Implementation = for<'v, 'a> fn(Arguments<'v, 'a>) -> Result<Value<'a>, Error>;

/// No function takes more arguments.
pub(crate) const MAX_ARGUMENTS: usize = 4;

/// One way a function can be called.
#[derive(Clone, Debug)]
pub(crate) struct Overload {
    pub(crate) signature: Signature,
    pub(crate) cost: Cost,
    pub(crate) run: Run,
}

#[derive(Clone, Copy)]
pub(crate) enum Run {
    Plain(Implementation),
    /// With the second argument as an expression, which has been compiled before if it was written down.
    Regex(for<'v, 'a> fn(&Regex, Arguments<'v, 'a>) -> Result<Value<'a>, Error>),
    /// The evaluator does it itself, because not all arguments are evaluated, or errors are no end.
    Special,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Run::Plain(_) => "Plain",
            Run::Regex(_) => "Regex",
            Run::Special => "Special",
        })
    }
}

/// A row of a table of functions: name, signature, cost, implementation.
pub(crate) struct Row(pub(crate) &'static str, pub(crate) &'static str, pub(crate) Cost, pub(crate) Run);

pub(crate) const fn row(name: &'static str, signature: &'static str, cost: Cost, run: Implementation) -> Row {
    Row(name, signature, cost, Run::Plain(run))
}

/// Functions by name.
type Functions = BTreeMap<Arc<str>, Vec<Arc<Overload>>>;

/// What every environment of Kubernetes has.
static BASE: LazyLock<Functions> = LazyLock::new(|| read(functions::TABLES.iter().copied().flatten()));

fn read<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Functions {
    let mut functions = Functions::new();
    for Row(name, signature, cost, run) in rows {
        functions.entry((*name).into()).or_default().extend(overloads(name, signature, *cost, *run));
    }
    functions
}

/// All that a row stands for. Signatures are part of the program, so one that is none is a mistake in it.
fn overloads(name: &str, signature: &str, cost: Cost, run: Run) -> impl Iterator<Item = Arc<Overload>> {
    let read = Signature::parse(signature).filter(|signature| signature.args.len() <= MAX_ARGUMENTS);
    let instances = read.map(Signature::instances).unwrap_or_else(|| panic!("{name}: {signature} is no signature"));
    instances.into_iter().map(move |signature| Arc::new(Overload { signature, cost, run }))
}

/// The most an expression may use; made once, and shared by all that compile in it.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<Arc<str>, Arc<Declaration>>,
    /// Those that are not in every environment.
    functions: Functions,
    /// Types of objects that can be put together, by name.
    objects: BTreeMap<Arc<str>, Arc<Declaration>>,
    /// The first parts of names of types that have whatever fields one writes.
    open_objects: Vec<Arc<str>>,
    bindings: bool,
}

impl Environment {
    pub fn new() -> Environment {
        Environment::default()
    }

    /// A variable that is read from an object as declared.
    pub fn variable(mut self, name: &str, declared: impl Into<Arc<Declaration>>) -> Environment {
        self.variables.insert(name.into(), declared.into());
        self
    }

    /// A variable that is given as a value of this type.
    pub fn typed(self, name: &str, of: Type) -> Environment {
        self.variable(name, Declaration::plain(of))
    }

    /// A function, or one more way to call it: `kubernetes.authorization.Authorizer.(string) -> bool`.
    ///
    /// # Panics
    ///
    /// If that is no signature, or one of more than four arguments.
    pub fn function(mut self, name: &str, signature: &str, cost: Cost, run: Implementation) -> Environment {
        let overloads = overloads(name, signature, cost, Run::Plain(run));
        self.functions.entry(name.into()).or_default().extend(overloads);
        self
    }

    /// Objects of this type can be put together: `JSONPatch{op: "add", path: "/a"}`.
    pub fn object(mut self, declared: impl Into<Arc<Declaration>>) -> Environment {
        let declared = declared.into();
        self.objects.insert(declared.type_name().into(), declared);
        self
    }

    /// So can objects of all types whose names start with this, with any fields: `Object.spec{replicas: 1}`.
    pub fn open_object(mut self, name: &str) -> Environment {
        self.open_objects.push(name.into());
        self
    }

    /// With `cel.bind`, which selectors of devices have and rules have not.
    pub fn with_bindings(mut self) -> Environment {
        self.bindings = true;
        self
    }

    /// With what helps to write patches of objects.
    pub fn with_patches(mut self) -> Environment {
        self.functions.extend(read(functions::strings::PATCHES));
        self
    }

    /// Checks an expression; from then on it can be evaluated any number of times.
    pub fn compile(&self, source: &str) -> Result<Program, Issues> {
        let (ast, issues) = macros::expand(parser::parse(source)?, self.bindings);
        if !issues.is_empty() {
            return Err(Issues::new(source, issues));
        }
        let checked = checker::check(self, &ast, source)?;
        Program::new(ast, checked, self.variables.clone()).map_err(|issues| Issues::new(source, issues))
    }

    pub(crate) fn variable_type(&self, name: &str) -> Option<Type> {
        self.variables.get(name.strip_prefix('.').unwrap_or(name)).map(Declaration::of_type)
    }

    /// All ways to call a function.
    pub(crate) fn overloads(&self, name: &str) -> Option<impl Iterator<Item = &Arc<Overload>>> {
        let name = name.strip_prefix('.').unwrap_or(name);
        let (base, own) = (BASE.get(name), self.functions.get(name));
        (base.is_some() || own.is_some()).then(|| base.into_iter().chain(own).flatten())
    }

    pub(crate) fn object_type(&self, name: &str) -> Option<ObjectType> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some(declared) = self.objects.get(name) {
            return Some(ObjectType::Declared(declared.clone()));
        }
        let is_open = self
            .open_objects
            .iter()
            .any(|prefix| name.strip_prefix(&**prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')));
        is_open.then_some(ObjectType::Open)
    }
}

pub(crate) enum ObjectType {
    Declared(Arc<Declaration>),
    Open,
}
