//! Comparing what was printed with what a transcript expects, line by line.

use regex::Regex;
use std::fmt;
use std::sync::LazyLock;

/// What a transcript may leave open, by name.
const PATTERNS: [(&str, &str); 9] = [
    ("<age>", r"\d+[smhd](?:\d+[smh])?"),
    ("<uid>", r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("<time>", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"),
    ("<number>", r"\d+"),
    ("<suffix>", r"[a-z0-9]{5,10}"),
    ("<token>", r"[\w-]+\.[\w-]+\.[\w-]+"),
    ("<server>", r"https://127\.0\.0\.1:\d+"),
    ("<ip>", r"\d+\.\d+\.\d+\.\d+"),
    ("<any>", r".*?"),
];

/// Stands for any number of lines.
const ELLIPSIS: &str = "...";

/// A line that is expected.
enum Line {
    Exactly(String),
    Like(Regex),
    Ellipsis,
}

impl Line {
    /// A block of lines. Columns are as wide as what stands in them: where some of that is left open, so is how many
    /// spaces are between columns. Indentation is not.
    fn block(lines: &[String]) -> Vec<Self> {
        let is_open = |line: &String| PATTERNS.iter().any(|(name, _)| line.contains(name));
        let is_open = lines.iter().any(is_open);
        let line = |text: &String| match text.as_str() {
            ELLIPSIS => Line::Ellipsis,
            text if is_open => Line::like(text),
            text => Line::Exactly(text.to_owned()),
        };
        lines.iter().map(line).collect()
    }

    fn like(text: &str) -> Self {
        let mut source = regex::escape(text);
        for (name, pattern) in PATTERNS {
            source = source.replace(&regex::escape(name), pattern);
        }
        let indentation = source.len() - source.trim_start_matches(' ').len();
        let (indentation, rest) = source.split_at(indentation);
        let rest = SPACES.replace_all(rest, " +");
        Line::Like(Regex::new(&format!("^{indentation}{rest}$")).expect("what is escaped is a valid expression"))
    }

    fn matches(&self, printed: &str) -> bool {
        match self {
            Line::Exactly(text) => text == printed,
            Line::Like(expression) => expression.is_match(printed),
            Line::Ellipsis => false,
        }
    }
}

static SPACES: LazyLock<Regex> = LazyLock::new(|| Regex::new(" {2,}").expect("the expression is valid"));

#[derive(Clone, Debug, PartialEq, Eq)]
enum Edit {
    /// As expected.
    Same(String),
    /// Three dots.
    Ellipsis,
    /// Printed where three dots allow anything.
    Elided,
    Missing(String),
    Surplus(String),
}

/// How what was printed differs from what was expected, with as few differences as there can be.
#[derive(Debug)]
pub(super) struct Alignment(Vec<Edit>);

impl Alignment {
    pub(super) fn new(expected: &[String], printed: &[String]) -> Self {
        let lines = Line::block(expected);
        // cost[i][j]: the fewest differences between the lines from i on and what was printed from j on.
        let (rows, columns) = (lines.len(), printed.len());
        let mut cost = vec![vec![0_usize; columns + 1]; rows + 1];
        let mut same = vec![vec![false; columns]; rows];
        for i in (0..=rows).rev() {
            for j in (0..=columns).rev() {
                let is_ellipsis = matches!(lines.get(i), Some(Line::Ellipsis));
                let step = usize::from(!is_ellipsis);
                let mut best = if i == rows && j == columns { 0 } else { usize::MAX };
                if i < rows && j < columns {
                    same[i][j] = lines[i].matches(&printed[j]);
                    if same[i][j] {
                        best = cost[i + 1][j + 1];
                    }
                }
                if i < rows {
                    best = best.min(cost[i + 1][j] + step);
                }
                if j < columns {
                    best = best.min(cost[i][j + 1] + step);
                }
                cost[i][j] = best;
            }
        }
        let (mut i, mut j) = (0, 0);
        let mut edits = Vec::new();
        while i < rows || j < columns {
            let is_ellipsis = matches!(lines.get(i), Some(Line::Ellipsis));
            let step = usize::from(!is_ellipsis);
            if i < rows && j < columns && same[i][j] && cost[i][j] == cost[i + 1][j + 1] {
                edits.push(Edit::Same(expected[i].clone()));
                (i, j) = (i + 1, j + 1);
            } else if i < rows && cost[i][j] == cost[i + 1][j] + step {
                edits.push(if is_ellipsis { Edit::Ellipsis } else { Edit::Missing(expected[i].clone()) });
                i += 1;
            } else {
                edits.push(if is_ellipsis { Edit::Elided } else { Edit::Surplus(printed[j].clone()) });
                j += 1;
            }
        }
        Alignment(edits)
    }

    pub(super) fn is_exact(&self) -> bool {
        !self.0.iter().any(|edit| matches!(edit, Edit::Missing(_) | Edit::Surplus(_)))
    }

    /// What to expect from now on: what was printed, with the names that were there, and obvious new ones.
    pub(super) fn updated(&self) -> Vec<String> {
        let line = |edit: &Edit| match edit {
            Edit::Same(line) => Some(line.clone()),
            Edit::Ellipsis => Some(ELLIPSIS.to_owned()),
            Edit::Elided | Edit::Missing(_) => None,
            Edit::Surplus(line) => Some(generalized(line)),
        };
        self.0.iter().filter_map(line).collect()
    }
}

/// A line with names for what surely differs from run to run.
fn generalized(line: &str) -> String {
    static OBVIOUS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let pattern = |name: &str| PATTERNS.iter().find(|(known, _)| *known == name).map_or("", |(_, pattern)| pattern);
        let expression = |text: String| Regex::new(&text).expect("the expression is valid");
        vec![
            (expression(pattern("<uid>").to_owned()), "<uid>"),
            (expression(pattern("<time>").to_owned()), "<time>"),
            (expression(pattern("<server>").to_owned()), "<server>"),
            (expression(r"\b10\.96\.\d+\.\d+\b".to_owned()), "<ip>"),
            (expression(r"(?P<before>   )\d+s(?P<after>   |$)".to_owned()), "$before<age>$after"),
            (expression(r#"(?P<before>resourceVersion"?: )"\d+""#.to_owned()), "$before\"<number>\""),
        ]
    });
    OBVIOUS.iter().fold(line.to_owned(), |line, (expression, name)| expression.replace_all(&line, *name).into_owned())
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for edit in &self.0 {
            match edit {
                Edit::Same(line) => writeln!(f, "    {line}")?,
                Edit::Ellipsis => writeln!(f, "    {ELLIPSIS}")?,
                Edit::Elided => {}
                Edit::Missing(line) => writeln!(f, "  - {line}")?,
                Edit::Surplus(line) => writeln!(f, "  + {line}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn align(expected: &str, printed: &str) -> Alignment {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        Alignment::new(&lines(expected), &lines(printed))
    }

    #[test]
    fn names_stand_for_what_differs_from_run_to_run() {
        for (expected, printed, same) in [
            ("a   <age>", "a   12s", true),
            ("a   <age>   b", "a   3m4s  b", true),
            ("a   <age>", "a   old", false),
            ("uid: <uid>", "uid: 8c0f5a38-7a0e-4f0e-9c5b-1d1f0b0c9a11", true),
            ("  at: <time>", "  at: 2026-01-02T03:04:05Z", true),
            ("  at: <time>", "   at: 2026-01-02T03:04:05Z", false),
            ("<none> <any>", "<none> ", true),
            ("a.b", "aXb", false),
        ] {
            assert_eq!(align(expected, printed).is_exact(), same, "{expected} / {printed}");
        }
    }

    #[test]
    fn a_column_is_as_wide_as_what_is_left_open_in_it() {
        assert!(
            align("NAME   IP              AGE\na      <ip>   1s", "NAME   IP        AGE\na      1.2.3.4   1s")
                .is_exact()
        );
        assert!(!align("NAME   AGE\na      1s", "NAME  AGE\na     1s").is_exact());
    }

    #[test]
    fn three_dots_stand_for_any_number_of_lines() {
        for (expected, same) in
            [("...", true), ("a\n...\nd", true), ("a\n...\nb\n...\nd\n...", true), ("...\na", false)]
        {
            assert_eq!(align(expected, "a\nb\nc\nd").is_exact(), same, "{expected}");
        }
    }

    #[test]
    fn a_difference_is_shown_beside_what_is_the_same() {
        assert_eq!(align("a\nb\nc", "a\nx\nc").to_string(), "    a\n  - b\n  + x\n    c\n");
    }

    #[test]
    fn an_update_keeps_the_names_and_finds_obvious_ones() {
        let printed = "NAME   AGE\na      1s\nuid: 8c0f5a38-7a0e-4f0e-9c5b-1d1f0b0c9a11";
        assert_eq!(align("NAME   AGE\na   <any>", printed).updated(), ["NAME   AGE", "a   <any>", "uid: <uid>"]);
        assert_eq!(align("", printed).updated(), ["NAME   AGE", "a      <age>", "uid: <uid>"]);
    }
}
