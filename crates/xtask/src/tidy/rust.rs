//! A Rust file as the checks see it: its tokens without comments and literals, its syntax tree, and which of its
//! lines are tests.
//!
//! Tokens and not text, so that a word in a comment or a string is never taken for a call; tokens and not only the
//! tree, because the bodies of macros are tokens to the parser too.

use super::repository::File;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::ops::RangeInclusive;

#[derive(Debug)]
pub(super) struct Rust {
    pub(super) path: String,
    pub(super) lines: usize,
    pub(super) kind: Kind,
    pub(super) parsed: Result<Parsed, Unparsed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Product,
    /// A file of tests or benchmarks as a whole.
    Test,
    /// Written by a program, which says so with `@generated` in the first lines.
    Generated,
}

pub(super) struct Parsed {
    pub(super) tokens: Vec<Token>,
    pub(super) syntax: syn::File,
    /// Items under `#[cfg(test)]` or a test attribute; they may contain each other.
    pub(super) tests: Vec<Tests>,
}

#[derive(Debug)]
pub(super) struct Unparsed {
    pub(super) line: usize,
    pub(super) message: String,
}

/// An identifier, one punctuation character or one delimiter. A literal is an empty token: it holds its place.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
    /// For an opening delimiter, the index of the one that closes it.
    close: usize,
}

#[derive(Debug)]
pub(super) struct Tests {
    pub(super) lines: RangeInclusive<usize>,
    /// The test runs on paused time, where sleeping takes none.
    pub(super) paused: bool,
}

/// The syntax tree has no `Debug` without a costly feature of `syn`.
impl std::fmt::Debug for Parsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parsed").field("tokens", &self.tokens.len()).field("tests", &self.tests).finish_non_exhaustive()
    }
}

impl Rust {
    pub(super) fn parse(file: &File) -> Self {
        let parsed = parse(&file.text).map_err(|error| Unparsed {
            line: error.span().start().line.max(1),
            message: format!("does not parse: {error}"),
        });
        Rust { path: file.path.clone(), lines: file.text.lines().count(), kind: Kind::of(file), parsed }
    }

    pub(super) fn is_test(&self, line: usize) -> bool {
        self.kind == Kind::Test || self.tests().iter().any(|tests| tests.lines.contains(&line))
    }

    pub(super) fn is_on_paused_time(&self, line: usize) -> bool {
        self.tests().iter().any(|tests| tests.paused && tests.lines.contains(&line))
    }

    fn tests(&self) -> &[Tests] {
        self.parsed.as_ref().map_or(&[], |parsed| &parsed.tests)
    }
}

impl Kind {
    fn of(file: &File) -> Self {
        let components: Vec<&str> = file.path.split('/').collect();
        if file.text.lines().take(5).any(|line| line.contains("@generated")) {
            Kind::Generated
        } else if components.iter().any(|component| matches!(*component, "tests" | "benches" | "tests.rs")) {
            Kind::Test
        } else {
            Kind::Product
        }
    }
}

fn parse(text: &str) -> syn::Result<Parsed> {
    let stream: TokenStream = text.parse()?;
    let mut tokens = Vec::new();
    flatten(stream.clone(), &mut tokens);
    let tests = find_tests(&tokens);
    Ok(Parsed { tokens, syntax: syn::parse2(stream)?, tests })
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let text = match tree {
            TokenTree::Ident(ident) => ident.to_string(),
            TokenTree::Punct(punct) => punct.as_char().to_string(),
            TokenTree::Literal(_) => String::new(),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                let opened = tokens.len();
                tokens.push(Token { text: open.to_owned(), line, close: opened });
                flatten(group.stream(), tokens);
                tokens[opened].close = tokens.len();
                tokens.push(Token { text: close.to_owned(), line: group.span_close().start().line, close: 0 });
                continue;
            }
        };
        tokens.push(Token { text, line, close: 0 });
    }
}

fn find_tests(tokens: &[Token]) -> Vec<Tests> {
    let mut found = Vec::new();
    for start in 0..tokens.len() {
        let inner = text_at(tokens, start + 1) == "!";
        let open = if inner { start + 2 } else { start + 1 };
        if text_at(tokens, start) != "#" || text_at(tokens, open) != "[" {
            continue;
        }
        let attribute: Vec<&str> =
            tokens[open + 1..tokens[open].close].iter().map(|token| token.text.as_str()).collect();
        if !marks_tests(&attribute) {
            continue;
        }
        let end = if inner { tokens.len() - 1 } else { end_of_item(tokens, tokens[open].close + 1) };
        let first = if inner { 1 } else { tokens[start].line };
        let paused = attribute.windows(3).any(|window| window == ["start_paused", "=", "true"]);
        found.push(Tests { lines: first..=tokens[end].line, paused });
    }
    found
}

fn text_at(tokens: &[Token], index: usize) -> &str {
    tokens.get(index).map_or("", |token| &token.text)
}

/// `cfg(test)` in any combination without `not`, or a path that ends in `test`, such as `tokio::test(...)`.
fn marks_tests(attribute: &[&str]) -> bool {
    if attribute.first() == Some(&"cfg") {
        return attribute.contains(&"test") && !attribute.contains(&"not");
    }
    let path = attribute.split(|text| *text == "(").next().unwrap_or_default();
    path.last() == Some(&"test")
}

/// The index of the brace or semicolon that ends the item whose attributes or keywords begin at `index`.
fn end_of_item(tokens: &[Token], mut index: usize) -> usize {
    while index < tokens.len() {
        match text_at(tokens, index) {
            "{" => return tokens[index].close,
            ";" => return index,
            "(" | "[" => index = tokens[index].close + 1,
            _ => index += 1,
        }
    }
    tokens.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(path: &str, text: &str) -> Rust {
        Rust::parse(&File { path: path.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn comments_and_literals_leave_no_words_behind() {
        let rust = rust("a.rs", "//! one\n/* two */ fn f() -> &'static str { \"three\" } // four");
        let words: Vec<String> = rust.parsed.unwrap().tokens.into_iter().map(|token| token.text).collect();
        for word in ["two", "three", "four"] {
            assert!(!words.iter().any(|token| token.contains(word)), "{word}");
        }
        assert!(words.contains(&"f".to_owned()));
    }

    #[test]
    fn a_test_module_is_its_lines_from_attribute_to_closing_brace() {
        let rust = rust("a.rs", "fn f() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    fn g() {}\n}\nfn h() {}\n");
        let tests: Vec<usize> = (1..=7).filter(|line| rust.is_test(*line)).collect();
        assert_eq!(tests, [2, 3, 4, 5, 6]);
    }

    #[test]
    fn code_for_everything_but_tests_is_no_test() {
        assert!(!rust("a.rs", "#[cfg(not(test))]\nfn f() {}\n").is_test(2));
    }

    #[test]
    fn an_inner_attribute_makes_the_whole_file_a_test() {
        let rust = rust("a.rs", "//! x\n#![cfg(test)]\nfn f() {}\n");
        assert!(rust.is_test(1) && rust.is_test(3));
    }

    #[test]
    fn only_a_test_that_pauses_time_is_on_paused_time() {
        let paused = rust("a.rs", "#[tokio::test(start_paused = true)]\nasync fn f() {}\n");
        let real = rust("a.rs", "#[tokio::test]\nasync fn f() {}\n");
        assert!(paused.is_test(2) && paused.is_on_paused_time(2));
        assert!(real.is_test(2) && !real.is_on_paused_time(2));
    }

    #[test]
    fn where_a_file_stands_and_what_it_says_of_itself_decide_its_kind() {
        assert_eq!(rust("crates/store/tests/contract.rs", "").kind, Kind::Test);
        assert_eq!(rust("crates/store/src/sqlite/tests.rs", "").kind, Kind::Test);
        assert_eq!(rust("crates/store/src/sqlite.rs", "").kind, Kind::Product);
        assert_eq!(rust("crates/schema/src/facts.rs", "//! Facts. @generated by xtask.\n").kind, Kind::Generated);
    }

    #[test]
    fn a_file_that_does_not_parse_says_where() {
        assert_eq!(rust("a.rs", "fn f() {}\nfn g( {}\n").parsed.unwrap_err().line, 2);
    }
}
