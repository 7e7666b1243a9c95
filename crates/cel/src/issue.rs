//! What is wrong with an expression, and where: messages as people know them from Kubernetes, with a line that points.

use std::fmt;

/// Where something stands in an expression; both count from zero, columns in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    pub position: Position,
    pub message: String,
}

/// Why an expression does not compile. Printed, it is what Kubernetes prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    source: String,
    issues: Vec<Issue>,
}

/// A line longer than this is not repeated in a message.
const MAX_SNIPPET: usize = 16_384;
/// Who has more mistakes than this is told about these first.
const MAX_ISSUES: usize = 100;

impl Issues {
    pub(crate) fn new(source: &str, mut issues: Vec<Issue>) -> Self {
        issues.sort_by_key(|issue| issue.position);
        issues.truncate(MAX_ISSUES);
        Issues { source: source.to_owned(), issues }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.issues.iter()
    }
}

impl std::error::Error for Issues {}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.issues.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let Position { line, column } = issue.position;
            write!(f, "ERROR: <input>:{}:{}: {}", line + 1, column + 1, issue.message)?;
            let snippet = self.source.split('\n').nth(line as usize).filter(|line| line.len() <= MAX_SNIPPET);
            if let Some(snippet) = snippet {
                write!(f, "\n | {}\n | {}", snippet.replace('\t', " "), pointer(snippet, column as usize))?;
            }
        }
        Ok(())
    }
}

/// Dots up to the column, and a caret below it; as wide as what stands above them.
fn pointer(line: &str, column: usize) -> String {
    let mut characters = line.chars();
    let mut pointer: String =
        characters.by_ref().take(column).map(|c| if c.is_ascii() { '.' } else { '\u{ff0e}' }).collect();
    pointer.push(if characters.next().is_none_or(|c| c.is_ascii()) { '^' } else { '\u{ff3e}' });
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issues_come_in_the_order_of_the_text_and_point_at_their_place() {
        let at =
            |line, column, message: &str| Issue { position: Position { line, column }, message: message.to_owned() };
        let issues = Issues::new("a +\n\tü ß", vec![at(1, 3, "second"), at(0, 0, "first")]);
        assert_eq!(
            issues.to_string(),
            "ERROR: <input>:1:1: first\n | a +\n | ^\n\
             ERROR: <input>:2:4: second\n |  ü ß\n | .\u{ff0e}.\u{ff3e}"
        );
    }
}
