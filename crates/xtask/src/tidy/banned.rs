//! `banned`: calls that have one home, or none.
//!
//! Clippy's disallowed lists cover what it can resolve. This covers the same ground by tokens, and so also macro
//! bodies and code compiled out on this machine, and it does not yield to an `allow` attribute.

use super::repository::Repository;
use super::rust::{Kind, Parsed, Rust};
use super::{Finding, Severity};
use std::collections::{BTreeSet, HashMap};
use syn::UseTree;
use syn::visit::Visit;

struct Rule {
    /// Token sequences; a path matches its longer forms too, so `time::sleep` covers `tokio::time::sleep`.
    patterns: &'static [&'static str],
    scope: Scope,
    /// Paths, and what they begin, where the rule does not hold.
    except: &'static [&'static str],
    severity: Severity,
    /// What to do instead.
    instead: &'static str,
}

enum Scope {
    Everywhere,
    OutsideTests,
    /// In tests that run on real time.
    InRealTimeTests,
}

/// A rule that holds everywhere and fails the run; the rows below say how they differ.
const DENY: Rule = Rule { patterns: &[], scope: Scope::Everywhere, except: &[], severity: Severity::Deny, instead: "" };

const RULES: &[Rule] = &[
    Rule {
        patterns: &["SystemTime::now", "Utc::now", "Local::now", "Timestamp::now", "Zoned::now"],
        except: &["crates/ambient/src/clock.rs"],
        instead: "use ambient::Clock::wall",
        ..DENY
    },
    Rule {
        patterns: &["Instant::now"],
        except: &["crates/ambient/src/clock.rs"],
        instead: "use ambient::Clock::monotonic",
        ..DENY
    },
    Rule {
        patterns: &[
            "rand::rng",
            "rand::random",
            "rand::make_rng",
            "thread_rng",
            "SysRng",
            "OsRng",
            "from_os_rng",
            "getrandom::fill",
            "Uuid::new_v4",
        ],
        except: &["crates/ambient/src/random.rs"],
        instead: "use ambient::Random",
        ..DENY
    },
    Rule {
        patterns: &["tokio::spawn", "task::spawn", "task::spawn_local"],
        except: &["crates/ambient/src/tasks.rs"],
        instead: "use ambient::Tasks::spawn",
        ..DENY
    },
    // A test joins what it starts, so nothing outlives it.
    Rule { patterns: &["JoinSet"], scope: Scope::OutsideTests, instead: "use ambient::Tasks::spawn", ..DENY },
    Rule {
        patterns: &["spawn_blocking"],
        except: &["crates/ambient/src/tasks.rs"],
        instead: "use ambient::Tasks::blocking",
        ..DENY
    },
    Rule {
        patterns: &["thread::spawn", "thread::Builder", "thread::scope"],
        except: &["crates/ambient/src/tasks.rs"],
        instead: "use ambient::Tasks::thread",
        ..DENY
    },
    Rule {
        patterns: &["std::sync::Mutex", "std::sync::RwLock", "std::sync::Condvar"],
        instead: "use parking_lot's: there is no poisoning to handle",
        ..DENY
    },
    Rule {
        patterns: &["process::exit", "process::abort"],
        except: &["crates/setpoint/", "crates/testkit/src/bin/"],
        scope: Scope::OutsideTests,
        instead: "return an error; only the binary decides to exit",
        ..DENY
    },
    Rule {
        patterns: &[".unwrap()", ".unwrap_err()"],
        except: &["crates/testkit/", "crates/xtask/"],
        scope: Scope::OutsideTests,
        instead: "return the error, or say why it cannot happen with `expect`",
        ..DENY
    },
    Rule {
        patterns: &[".ok().unwrap_or", ".ok().unwrap_or_default", ".ok().unwrap_or_else"],
        scope: Scope::OutsideTests,
        severity: Severity::Warn,
        instead: "an error must not become an ordinary value; match on it",
        ..DENY
    },
    Rule { patterns: &["#[ignore"], instead: "a test runs or is deleted", ..DENY },
    Rule { patterns: &["todo!", "unimplemented!"], instead: "finish it or leave it out", ..DENY },
    Rule { patterns: &["thread::sleep"], instead: "await a condition, or tokio's timer", ..DENY },
    Rule {
        patterns: &["time::sleep", "time::sleep_until"],
        scope: Scope::InRealTimeTests,
        instead: "await the condition, or pause time with `start_paused = true`",
        ..DENY
    },
];

impl Rule {
    fn holds(&self, rust: &Rust, line: usize) -> bool {
        let in_scope = match self.scope {
            Scope::Everywhere => true,
            Scope::OutsideTests => !rust.is_test(line),
            Scope::InRealTimeTests => rust.is_test(line) && !rust.is_on_paused_time(line),
        };
        in_scope && !self.except.iter().any(|path| rust.path.starts_with(path))
    }
}

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let patterns = Patterns::new(RULES);
    repository
        .rust
        .iter()
        .filter(|rust| rust.kind != Kind::Generated)
        .flat_map(|rust| check_file(rust, &patterns))
        .collect()
}

/// A file that does not parse is reported by `size`; there is nothing to match here.
fn check_file(rust: &Rust, patterns: &Patterns) -> Vec<Finding> {
    let Ok(parsed) = &rust.parsed else { return Vec::new() };
    // An import without braces is found by its tokens and by its path, and is one finding.
    let mut found = BTreeSet::new();
    for (pattern, line) in patterns.find(parsed) {
        if pattern.rule.holds(rust, line) {
            let message = format!("`{}`: {}", pattern.text, pattern.rule.instead);
            found.insert(Finding { severity: pattern.rule.severity, ..Finding::deny(&rust.path, line, message) });
        }
    }
    found.into_iter().collect()
}

struct Pattern {
    rule: &'static Rule,
    text: &'static str,
    /// The tokens after the first, which is the key under which the pattern stands.
    rest: Vec<&'static str>,
}

/// Patterns by their first token, so that most tokens cost one lookup.
struct Patterns(HashMap<&'static str, Vec<Pattern>>);

impl Patterns {
    fn new(rules: &'static [Rule]) -> Self {
        let mut patterns: HashMap<_, Vec<_>> = HashMap::new();
        for (rule, text) in rules.iter().flat_map(|rule| rule.patterns.iter().map(move |text| (rule, *text))) {
            let mut tokens = split(text).into_iter();
            let first = tokens.next().expect("a pattern has a token");
            patterns.entry(first).or_default().push(Pattern { rule, text, rest: tokens.collect() });
        }
        Patterns(patterns)
    }

    /// Every occurrence in code and, by their full paths, in grouped imports.
    fn find(&self, parsed: &Parsed) -> Vec<(&Pattern, usize)> {
        let tokens: Vec<(&str, usize)> = parsed.tokens.iter().map(|token| (token.text.as_str(), token.line)).collect();
        let mut found = self.find_in(&tokens);
        let mut imports = Imports::default();
        imports.visit_file(&parsed.syntax);
        for (path, line) in &imports.paths {
            let tokens: Vec<(&str, usize)> = split(path).into_iter().map(|token| (token, *line)).collect();
            found.extend(self.find_in(&tokens));
        }
        found
    }

    fn find_in(&self, tokens: &[(&str, usize)]) -> Vec<(&Pattern, usize)> {
        let mut found = Vec::new();
        for (index, (first, line)) in tokens.iter().enumerate() {
            for pattern in self.0.get::<str>(first).into_iter().flatten() {
                let following = tokens[index + 1..].iter().map(|(text, _)| *text);
                if following.take(pattern.rest.len()).eq(pattern.rest.iter().copied()) {
                    found.push((pattern, *line));
                }
            }
        }
        found
    }
}

/// Splits text into identifiers and single characters, the way a file's tokens are kept.
fn split(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// The full path of every imported name.
#[derive(Default)]
struct Imports {
    paths: Vec<(String, usize)>,
}

impl Imports {
    fn add(&mut self, prefix: &str, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.add(&format!("{prefix}{}::", path.ident), &path.tree),
            UseTree::Name(name) => self.add_name(prefix, &name.ident),
            UseTree::Rename(name) => self.add_name(prefix, &name.ident),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add(prefix, tree)),
            UseTree::Glob(_) => {}
        }
    }

    fn add_name(&mut self, prefix: &str, name: &proc_macro2::Ident) {
        self.paths.push((format!("{prefix}{name}"), name.span().start().line));
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add("", &item.tree);
    }
}

#[cfg(test)]
mod tests {
    use super::super::repository::File;
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        check(&Repository::new(vec![file], vec![])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_clock_is_read_in_its_own_module_only() {
        let text = "fn f() {\n    std::time::Instant::now();\n    SystemTime :: now();\n}\n";
        assert_eq!(lines("crates/store/src/lib.rs", text), [2, 3]);
        assert_eq!(lines("crates/store/build.rs", text), [2, 3]);
        assert_eq!(lines("crates/store/tests/a.rs", text), [2, 3]);
        assert_eq!(lines("crates/ambient/src/clock.rs", text), [0; 0]);
    }

    #[test]
    fn comments_and_strings_may_name_what_is_banned() {
        assert_eq!(lines("a.rs", "// todo!() .unwrap()\nconst A: &str = \"tokio::spawn\";\n"), [0; 0]);
    }

    #[test]
    fn macro_bodies_are_searched() {
        assert_eq!(lines("a.rs", "macro_rules! m {\n    () => {\n        tokio::spawn(f())\n    };\n}\n"), [3]);
    }

    #[test]
    fn a_grouped_import_is_seen_by_its_full_path() {
        assert_eq!(lines("a.rs", "use std::sync::{\n    Arc,\n    Mutex as Lock,\n};\n"), [3]);
        assert_eq!(lines("a.rs", "use std::sync::Mutex;\n"), [1]);
        assert_eq!(lines("a.rs", "use tokio::sync::{Mutex, RwLock};\nuse parking_lot::Condvar;\n"), [0; 0]);
    }

    #[test]
    fn unwrap_is_for_tests() {
        let text =
            "fn f() {\n    g()\n        .unwrap();\n}\n#[cfg(test)]\nmod tests {\n    fn f() { g().unwrap() }\n}\n";
        assert_eq!(lines("crates/store/src/lib.rs", text), [3]);
        assert_eq!(lines("crates/store/benches/a.rs", text), [0; 0]);
        assert_eq!(lines("crates/testkit/src/lib.rs", text), [0; 0]);
    }

    #[test]
    fn only_the_binary_and_test_programs_exit() {
        let text = "fn f() {\n    std::process::exit(1);\n}\n";
        assert_eq!(lines("crates/store/src/lib.rs", text), [2]);
        assert_eq!(lines("crates/setpoint/src/main.rs", text), [0; 0]);
        assert_eq!(lines("crates/testkit/src/bin/torture.rs", text), [0; 0]);
    }

    #[test]
    fn a_test_sleeps_on_paused_time_only() {
        let sleep = "async fn a_test() {\n    tokio::time::sleep(SECOND).await;\n}\n";
        assert_eq!(lines("a.rs", &format!("#[tokio::test]\n{sleep}")), [3]);
        assert_eq!(lines("a.rs", &format!("#[tokio::test(start_paused = true)]\n{sleep}")), [0; 0]);
        assert_eq!(lines("a.rs", sleep), [0; 0]);
    }

    #[test]
    fn no_test_is_ignored_with_or_without_a_reason() {
        assert_eq!(lines("a.rs", "#[test]\n#[ignore]\nfn f() {}\n"), [2]);
        assert_eq!(lines("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}\n"), [2]);
    }

    #[test]
    fn turning_an_error_into_a_value_is_a_warning() {
        let text = "fn f() -> u8 {\n    g().ok().unwrap_or_default()\n}\n".to_owned();
        let found = check(&Repository::new(vec![File { path: "a.rs".to_owned(), text }], vec![]));
        assert_eq!((found.len(), found[0].severity), (1, Severity::Warn));
    }
}
