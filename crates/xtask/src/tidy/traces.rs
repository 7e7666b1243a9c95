//! `traces`: nothing in the repository points at one person's machine, and nothing is left for later in a comment.
//!
//! The words searched for are put together below, so that this file passes its own check.

use super::Finding;
use super::repository::{File, Repository};

struct Trace {
    text: &'static str,
    place: Place,
    why: &'static str,
}

enum Place {
    /// As an absolute path: not in the middle of a relative one or of a URL.
    AbsolutePath,
    /// As a word of its own.
    Word,
    Anywhere,
}

const MACHINE: &str = "a path of one machine";
const MIRROR: &str = "a package registry other than the public one belongs in the configuration of a machine";
const LATER: &str = "finish it, leave it out, or open an issue";

const TRACES: &[Trace] = &[
    Trace { text: concat!("/wo", "rk/"), place: Place::AbsolutePath, why: MACHINE },
    Trace { text: concat!("/ro", "ot/"), place: Place::AbsolutePath, why: MACHINE },
    Trace { text: concat!("art", "ifactory"), place: Place::Anywhere, why: MIRROR },
    Trace { text: concat!("jf", "rog"), place: Place::Anywhere, why: MIRROR },
    Trace { text: concat!("code", "artifact"), place: Place::Anywhere, why: MIRROR },
    Trace { text: concat!("index", "-url"), place: Place::Anywhere, why: MIRROR },
    Trace { text: concat!("replace", "-with"), place: Place::Anywhere, why: MIRROR },
    Trace { text: concat!("TO", "DO"), place: Place::Word, why: LATER },
    Trace { text: concat!("FIX", "ME"), place: Place::Word, why: LATER },
];

/// Where every locked package comes from.
const PUBLIC_REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository.files.iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for trace in TRACES.iter().filter(|trace| trace.is_in(line)) {
            found.push(Finding::deny(&file.path, index + 1, format!("`{}`: {}", trace.text, trace.why)));
        }
        if file.path.ends_with("Cargo.lock") && is_foreign(line) {
            found.push(Finding::deny(&file.path, index + 1, MIRROR));
        }
    }
    found
}

fn is_foreign(line: &str) -> bool {
    line.strip_prefix("source = ").is_some_and(|source| source.trim_matches('"') != PUBLIC_REGISTRY)
}

impl Trace {
    fn is_in(&self, line: &str) -> bool {
        line.match_indices(self.text).any(|(start, text)| {
            let before = line[..start].chars().next_back();
            let after = line[start + text.len()..].chars().next();
            match self.place {
                Place::AbsolutePath => !before.is_some_and(continues_a_path),
                Place::Word => !before.is_some_and(is_word) && !after.is_some_and(is_word),
                Place::Anywhere => true,
            }
        })
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a slash after `c` is inside a path: `$(CURDIR)/x/` and `~/x/` are not absolute.
fn continues_a_path(c: char) -> bool {
    is_word(c) || matches!(c, '.' | '-' | '~' | ')' | '}' | '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        check_file(&file).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_path_of_a_machine_is_found_and_a_relative_one_is_not() {
        let path = concat!("/wo", "rk/");
        assert_eq!(lines("a.md", &format!("x\nsee `{path}main`\n")), [2]);
        assert_eq!(lines("a.md", &format!("a{path}b $(CURDIR){path}b https://example.org{path}\n")), [0; 0]);
    }

    #[test]
    fn a_note_to_self_is_found_as_a_word_only() {
        let note = concat!("TO", "DO");
        assert_eq!(lines("a.rs", &format!("// {note}: later\n// {note}S and MAS{note}N\n")), [1]);
        assert_eq!(lines("a.rs", &format!("// {}\n", note.to_lowercase())), [0; 0]);
    }

    #[test]
    fn locked_packages_come_from_the_public_registry() {
        let line = |source: &str| format!("source = \"{source}\"\n");
        assert_eq!(lines("Cargo.lock", &line(PUBLIC_REGISTRY)), [0; 0]);
        assert_eq!(lines("Cargo.lock", &line("registry+https://crates.example.org/index")), [1]);
        assert_eq!(lines("Cargo.lock", &line("git+https://example.org/a#1")), [1]);
    }
}
