//! `docs`: links between documents lead somewhere, and every Rust file says what it owns.
//!
//! Links to the web are not followed: a check must not depend on someone else's server.

use super::Finding;
use super::repository::{File, Repository};
use super::rust::Kind;
use std::collections::{HashMap, HashSet};

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut found = check_openings(repository);
    let documents = || repository.files.iter().filter(|file| file.path.ends_with(".md"));
    let anchors: HashMap<&str, HashSet<String>> =
        documents().map(|file| (file.path.as_str(), anchors(&file.text))).collect();
    for file in documents() {
        for (line, target) in links(&file.text) {
            if let Some(problem) = problem(repository, &anchors, file, &target) {
                found.push(Finding::deny(&file.path, line, problem));
            }
        }
    }
    found
}

/// Generated files are often included into others, where an inner comment is not allowed.
fn check_openings(repository: &Repository) -> Vec<Finding> {
    let written = repository.rust.iter().filter(|rust| rust.kind != Kind::Generated);
    let opens = |path: &str| repository.file(path).is_some_and(|file| file.text.starts_with("//!"));
    let mute = written.filter(|rust| !opens(&rust.path));
    mute.map(|rust| Finding::deny(&rust.path, 1, "opens without a `//!` comment that says what it owns")).collect()
}

fn problem(
    repository: &Repository,
    anchors: &HashMap<&str, HashSet<String>>,
    file: &File,
    target: &str,
) -> Option<String> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = path.replace("%20", " ");
    let Some(path) = resolve(&file.path, &path) else {
        return Some(format!("link `{target}` leads out of the repository"));
    };
    let directory = format!("{path}/");
    let exists = |other: &File| other.path == path || other.path.starts_with(&directory);
    if !path.is_empty() && !repository.files.iter().any(exists) {
        return Some(format!("link `{target}` leads to `{path}`, which is not in the repository"));
    }
    match (anchor, anchors.get(path.as_str())) {
        (Some(anchor), Some(known)) if !known.contains(anchor) => Some(format!("`{path}` has no heading `#{anchor}`")),
        _ => None,
    }
}

/// The path that `link` means in `file`; empty for the root, none if it leads above it.
fn resolve(file: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(file.to_owned());
    }
    let mut components: Vec<&str> = file.split('/').collect();
    components.pop();
    if link.starts_with('/') {
        components.clear();
    }
    for component in link.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                components.pop()?;
            }
            name => components.push(name),
        }
    }
    Some(components.join("/"))
}

/// Relative link targets with their lines, from `[text](target)` and `[label]: target`.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code_spans(line);
        let inline = line.split("](").skip(1).filter_map(|rest| target(rest, ')'));
        let reference =
            line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).and_then(|(_, rest)| target(rest, ' '));
        found.extend(
            inline.chain(reference).filter(|target| is_relative(target)).map(|target| (number, target.to_owned())),
        );
    }
    found
}

/// The destination at the start of `rest`, without its title or angle brackets.
fn target(rest: &str, end: char) -> Option<&str> {
    if let Some(rest) = rest.strip_prefix('<') {
        return rest.split('>').next();
    }
    rest.split([end, ' ']).next().filter(|target| !target.is_empty())
}

fn is_relative(target: &str) -> bool {
    let scheme = target.split(['/', '#']).next().unwrap_or_default();
    !scheme.contains(':') && !target.starts_with("//")
}

/// The lines outside fenced code, numbered from one.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, None) => return Some((index + 1, line)),
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
        }
        None
    })
}

/// Between backticks there is code, not a link; an unpaired backtick is an ordinary character.
fn without_code_spans(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let paired = parts.len() - 1 + parts.len() % 2;
    parts.iter().enumerate().filter(|(index, _)| index % 2 == 0 || *index >= paired).map(|(_, part)| *part).collect()
}

/// The anchors a document offers: its headings the way GitHub names them, and explicit `id`s.
fn anchors(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (_, line) in prose(text) {
        let explicit = ["id=\"", "name=\""].into_iter().flat_map(|mark| line.split(mark).skip(1));
        found.extend(explicit.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
        let Some(heading) = heading(line) else { continue };
        let slug = slug(heading);
        let count = seen.entry(slug.clone()).or_default();
        found.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    found
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    ((1..=6).contains(&level) && text.starts_with(' ')).then(|| text.trim())
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<(usize, String)> {
        let file = |(path, text): &(&str, &str)| File { path: (*path).to_owned(), text: (*text).to_owned() };
        let repository = Repository::new(files.iter().map(file).collect(), vec![]);
        check(&repository).into_iter().map(|finding| (finding.line, finding.message)).collect()
    }

    #[test]
    fn links_to_files_directories_and_headings_resolve() {
        let readme = "# Read me\n[a](docs/a.md#how-it-works) [b](./docs) [c](#read-me) ![d](/docs/a.md \"title\")\n[e]: docs/a.md\n";
        assert_eq!(findings(&[("README.md", readme), ("docs/a.md", "## How it *works*?\n[up](../README.md)\n")]), []);
    }

    #[test]
    fn a_link_to_nothing_is_found_on_its_line() {
        let found = findings(&[("docs/a.md", "# A\n\nsee [b](b.md),\n[c](../../c.md)\n[d](#d)\n[e]: e.md\n")]);
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 4, 5, 6]);
    }

    #[test]
    fn code_and_the_web_are_left_alone() {
        let text = "`[a](a.md)` [b](https://example.org/b#c) [c](mailto:x@example.org)\n```\n[d](d.md)\n```\n";
        assert_eq!(findings(&[("a.md", text)]), []);
    }

    #[test]
    fn text_between_two_code_spans_is_not_code() {
        assert_eq!(without_code_spans("`a` [b](c) `d`"), " [b](c) ");
        assert_eq!(without_code_spans("a ` [b](c)"), "a  [b](c)");
    }

    #[test]
    fn repeated_headings_are_numbered_and_fenced_ones_do_not_count() {
        let anchors = anchors("# A\n# A\n```\n# B\n```\n<a id=\"c\"></a>\n");
        assert_eq!(anchors, ["a", "a-1", "c"].map(str::to_owned).into());
    }

    #[test]
    fn a_rust_file_opens_with_what_it_owns() {
        assert_eq!(findings(&[("crates/a/src/lib.rs", "//! A.\n"), ("b.rs", "// @generated\n")]), []);
        assert_eq!(findings(&[("crates/a/src/b.rs", "use c;\n//! A.\n")]).len(), 1);
    }
}
