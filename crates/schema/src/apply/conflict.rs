//! What is in the way of an apply, in the words that clients show to their users.

use super::managers::{Identity, Operation};
use object::{ApiError, Reason};
use std::fmt;

/// A field that somebody else owns and that would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Such as `.spec.template.spec.containers[name="c"].image`.
    pub path: String,
    pub owner: Identity,
    /// When the owner last wrote. Messages do not show it, so that the same conflict has the same message.
    pub time: Option<String>,
}

impl Conflict {
    fn message(&self) -> String {
        format!("conflict with {}", self.owner)
    }
}

/// One conflict or more, sorted by owner and then by path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(Vec<Conflict>);

impl Conflicts {
    /// None: there is nothing in the way.
    pub(super) fn new(mut conflicts: Vec<Conflict>) -> Option<Self> {
        // The paths of one owner are in order already.
        conflicts.sort_by(|a, b| a.owner.cmp(&b.owner));
        (!conflicts.is_empty()).then_some(Conflicts(conflicts))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Conflict> {
        self.0.iter()
    }

    /// The answer to the request, with a cause for each field.
    pub fn to_api_error(&self) -> ApiError {
        self.0.iter().fold(ApiError::new(Reason::Conflict, self.to_string()), |error, conflict| {
            error.with_cause("FieldManagerConflict", conflict.message(), &conflict.path)
        })
    }
}

/// The message of the answer.
impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = self.0.as_slice() {
            return write!(f, "Apply failed with 1 conflict: {}: {}", conflict.message(), conflict.path);
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        for (at, conflicts) in self.0.chunk_by(|a, b| a.owner == b.owner).enumerate() {
            let line = if at == 0 { "" } else { "\n" };
            write!(f, "{line}conflicts with {}:", conflicts[0].owner)?;
            for conflict in conflicts {
                write!(f, "\n- {}", conflict.path)?;
            }
        }
        Ok(())
    }
}

/// As conflicts name an owner. Appliers come without their version: it does not tell them apart.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.manager)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        match self.operation {
            Operation::Apply => Ok(()),
            Operation::Update => write!(f, " using {}", self.api_version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict(manager: &str, operation: Operation, subresource: &str, path: &str) -> Conflict {
        let owner = Identity {
            manager: manager.to_owned(),
            operation,
            api_version: "apps/v1".to_owned(),
            subresource: subresource.to_owned(),
        };
        Conflict { path: path.to_owned(), owner, time: Some("2024-01-01T00:00:00Z".to_owned()) }
    }

    #[test]
    fn messages_are_those_that_clients_know() {
        for (conflicts, expected) in [
            (
                vec![conflict("kubectl-client-side-apply", Operation::Update, "", ".spec.replicas")],
                r#"Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas"#,
            ),
            (
                vec![conflict("hpa", Operation::Update, "scale", ".spec.replicas")],
                r#"Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using apps/v1: .spec.replicas"#,
            ),
            (
                vec![
                    conflict("foo", Operation::Update, "", ".spec.paused"),
                    conflict("bar", Operation::Apply, "", ".metadata.labels.app"),
                    conflict("foo", Operation::Update, "", ".spec.replicas"),
                ],
                "Apply failed with 3 conflicts: conflicts with \"bar\":\n- .metadata.labels.app\nconflicts with \"foo\" using apps/v1:\n- .spec.paused\n- .spec.replicas",
            ),
        ] {
            assert_eq!(Conflicts::new(conflicts).unwrap().to_string(), expected);
        }
        assert_eq!(Conflicts::new(Vec::new()), None);
    }

    #[test]
    fn the_answer_has_a_cause_for_each_field() {
        let conflicts = vec![conflict("foo", Operation::Apply, "", ".spec.replicas")];
        let error = Conflicts::new(conflicts).unwrap().to_api_error();
        assert_eq!((error.code(), error.causes().len()), (409, 1));
        assert_eq!(error.causes()[0].reason, "FieldManagerConflict");
        assert_eq!(error.causes()[0].message, "conflict with \"foo\"");
        assert_eq!(error.causes()[0].field, ".spec.replicas");
    }
}
