//! Which types go together, and what follows from it for types that are not known yet.

use crate::types::Type;

/// What has been found out about type variables so far.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    /// By the number of the variable.
    known: Vec<Option<Type>>,
    /// What was known before each step of the last attempt, in order to take it back.
    trail: Vec<(usize, Option<Type>)>,
}

impl Bindings {
    pub(crate) fn fresh(&mut self) -> Type {
        self.known.push(None);
        Type::Param(self.known.len() - 1)
    }

    fn get(&self, variable: usize) -> Option<&Type> {
        self.known.get(variable)?.as_ref()
    }

    fn set(&mut self, variable: usize, of: Type) {
        let before = self.known[variable].replace(of);
        self.trail.push((variable, before));
    }

    /// The type with everything in it that is known; what is not becomes dynamic in the end.
    pub(crate) fn resolve(&self, of: &Type, finally: bool) -> Type {
        match of {
            Type::Param(variable) => match self.get(*variable) {
                Some(known) => self.resolve(known, finally),
                None if finally => Type::Dyn,
                None => of.clone(),
            },
            other => other.map_parts(|part| self.resolve(part, finally)),
        }
    }

    /// Whether all of these go together; if they do not, nothing is learned.
    pub(crate) fn assignable_all<'t>(&mut self, pairs: impl IntoIterator<Item = (&'t Type, &'t Type)>) -> bool {
        self.trail.clear();
        let good = pairs.into_iter().all(|(from, to)| self.unify(from, to));
        if !good {
            for (variable, before) in self.trail.drain(..).rev() {
                self.known[variable] = before;
            }
        }
        good
    }

    pub(crate) fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.assignable_all([(from, to)])
    }

    fn unify(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Param(variable) = to {
            match self.substitute(from, *variable) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Param(variable) = from {
            return self.substitute(to, *variable).0;
        }
        match (from, to) {
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) => true,
            (Type::Null, Type::Null) => true,
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(_), Type::List(_)) | (Type::Map(_), Type::Map(_)) | (Type::Optional(_), Type::Optional(_)) => {
                from.parts().into_iter().zip(to.parts()).all(|(from, to)| self.unify(from, to))
            }
            _ => from == to,
        }
    }

    /// Whether the variable can stand for the type, and whether it stood for something before.
    fn substitute(&mut self, of: &Type, variable: usize) -> (bool, bool) {
        if *of == Type::Param(variable) {
            return (true, true);
        }
        if let Some(known) = self.get(variable).cloned() {
            if *of == known {
                return (true, true);
            }
            if !self.unify(of, &known) {
                return (false, true);
            }
            let general = if is_more_general(of, &known) { of.clone() } else { known };
            if !self.occurs(variable, &general) {
                self.set(variable, general);
            }
            return (true, true);
        }
        if self.occurs(variable, of) {
            return (false, false);
        }
        self.set(variable, of.clone());
        (true, false)
    }

    fn occurs(&self, variable: usize, within: &Type) -> bool {
        match within {
            Type::Param(other) if *other == variable => true,
            Type::Param(other) => self.get(*other).is_some_and(|known| self.occurs(variable, known)),
            other => other.parts().into_iter().any(|part| self.occurs(variable, part)),
        }
    }
}

/// Types that null may stand for.
fn is_nullable(of: &Type) -> bool {
    matches!(of, Type::Object(_) | Type::Abstract(_) | Type::Optional(_) | Type::Duration | Type::Timestamp)
}

/// Of two types that go together, whether the first allows at least as much.
pub(crate) fn is_more_general(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Param(_)) => false,
        (Type::Type(_), Type::Type(_)) => true,
        (Type::List(_), Type::List(_)) | (Type::Map(_), Type::Map(_)) | (Type::Optional(_), Type::Optional(_)) => {
            one.parts().into_iter().zip(other.parts()).all(|(one, other)| is_more_general(one, other))
        }
        _ => one == other,
    }
}
