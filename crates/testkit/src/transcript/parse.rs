//! The text of a transcript: its commands and what they print.

use std::fmt;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Transcript {
    pub(super) steps: Vec<Step>,
    /// Comments after the last command.
    end: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Where the command is in the file, from 1.
    pub(super) line: usize,
    /// Comments before the command, and empty lines between them.
    before: Vec<String>,
    /// With its here-document, if it has one.
    pub(super) command: String,
    pub(super) expected: Vec<String>,
}

impl Transcript {
    pub(super) fn parse(text: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let (mut steps, mut before) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < lines.len() {
            let Some(first) = lines[at].strip_prefix("$ ") else {
                let is_prose = lines[at].is_empty() || lines[at].starts_with('#');
                assert!(is_prose, "line {}: neither a command nor a comment: {}", at + 1, lines[at]);
                before.push(lines[at].to_owned());
                at += 1;
                continue;
            };
            let command_end = at + 1 + rest_of_command(first, &lines[at + 1..]);
            let command = std::iter::once(first).chain(lines[at + 1..command_end].iter().copied());
            let command = command.collect::<Vec<_>>().join("\n");
            let end = (command_end..lines.len()).find(|&line| ends_output(&lines, line)).unwrap_or(lines.len());
            let expected = trimmed(lines[command_end..end].iter().map(|&line| line.to_owned()).collect());
            steps.push(Step { line: at + 1, before: std::mem::take(&mut before), command, expected });
            at = end;
        }
        Transcript { steps, end: before }
    }
}

/// How many lines after its first belong to a command.
fn rest_of_command(first: &str, rest: &[&str]) -> usize {
    match first.split_once("<<") {
        Some((_, word)) => {
            let word = word.split_whitespace().next().unwrap_or_default().trim_matches('\'');
            let end = rest.iter().position(|line| *line == word);
            end.unwrap_or_else(|| panic!("nothing ends the here-document of: {first}")) + 1
        }
        None => {
            let continued = std::iter::once(&first).chain(rest).take_while(|line| line.ends_with('\\'));
            continued.count()
        }
    }
}

/// Output may have empty lines; it ends before a command, and before a comment after an empty line.
fn ends_output(lines: &[&str], line: usize) -> bool {
    lines[line].starts_with("$ ") || (lines[line].starts_with("# ") && lines[line - 1].is_empty())
}

/// Without empty lines at its end.
pub(super) fn trimmed(mut lines: Vec<String>) -> Vec<String> {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            step.before.iter().try_for_each(|line| writeln!(f, "{line}"))?;
            writeln!(f, "$ {}", step.command)?;
            step.expected.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        }
        self.end.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# About.\n\n# More.\n$ one\nfirst\n\nsecond\n\n$ two -f - <<EOF\n# no comment\n$ no command\nEOF\n\n\
                        # Three prints nothing.\n$ three \\\n  and more\n";

    #[test]
    fn comments_commands_and_output_are_told_apart() {
        let steps = Transcript::parse(TEXT).steps;
        let commands: Vec<&str> = steps.iter().map(|step| step.command.as_str()).collect();
        assert_eq!(commands, ["one", "two -f - <<EOF\n# no comment\n$ no command\nEOF", "three \\\n  and more"]);
        assert_eq!(steps[0].expected, ["first", "", "second"]);
        assert_eq!((steps[0].before.len(), steps[1].before.len(), &steps[2].before[0][..7]), (3, 0, "# Three"));
        assert_eq!(steps.iter().map(|step| step.line).collect::<Vec<_>>(), [4, 9, 15]);
    }

    #[test]
    fn a_transcript_is_written_as_it_was_read() {
        assert_eq!(Transcript::parse(TEXT).to_string(), TEXT);
    }
}
