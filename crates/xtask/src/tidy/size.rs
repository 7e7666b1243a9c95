//! `size`: files, functions and nesting that have outgrown one reading.
//!
//! The limits to warn are for product code; tests and generated files are held to the limits to deny only.

use super::Finding;
use super::repository::Repository;
use super::rust::{Kind, Parsed, Rust};
use proc_macro2::Span;
use syn::visit::{self, Visit};

const FILE_LINES: Limit = Limit { warn: 400, deny: 1000 };
const FUNCTION_LINES: Limit = Limit { warn: 70, deny: 200 };
const NESTING: Limit = Limit { warn: 5, deny: usize::MAX };

struct Limit {
    warn: usize,
    deny: usize,
}

impl Limit {
    fn find(&self, size: usize, lenient: bool, file: &str, line: usize, what: &str) -> Option<Finding> {
        if size > self.deny {
            Some(Finding::deny(file, line, format!("{what} {size}, more than {} at most", self.deny)))
        } else if size > self.warn && !lenient {
            Some(Finding::warn(
                file,
                line,
                format!("{what} {size}; past {}, look for the second responsibility", self.warn),
            ))
        } else {
            None
        }
    }
}

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository.rust.iter().flat_map(check_file).collect()
}

fn check_file(rust: &Rust) -> Vec<Finding> {
    let parsed = match &rust.parsed {
        Ok(parsed) => parsed,
        Err(unparsed) => return vec![Finding::deny(&rust.path, unparsed.line, &*unparsed.message)],
    };
    let mut found: Vec<Finding> = file_length(rust).into_iter().collect();
    for function in Functions::of(parsed) {
        let lenient = rust.kind != Kind::Product || rust.is_test(function.line);
        let (file, line, name) = (&rust.path, function.line, &function.name);
        found.extend(FUNCTION_LINES.find(function.lines, lenient, file, line, &format!("lines in `{name}`:")));
        found.extend(NESTING.find(function.nesting, lenient, file, function.deepest, &format!("nesting in `{name}`:")));
    }
    found
}

/// A file is one length to deny and, without its tests, another to warn: tests beside the code cost no reading.
fn file_length(rust: &Rust) -> Option<Finding> {
    let without_tests = (1..=rust.lines).filter(|line| !rust.is_test(*line)).count();
    let size = if rust.lines > FILE_LINES.deny { rust.lines } else { without_tests };
    FILE_LINES.find(size, rust.kind != Kind::Product, &rust.path, 1, "lines in this file:")
}

struct Function {
    name: String,
    line: usize,
    /// From the signature to the closing brace.
    lines: usize,
    /// How many branches, loops, closures and async blocks enclose the innermost one, itself included.
    nesting: usize,
    /// The line of that innermost one.
    deepest: usize,
}

/// Collects the functions of a file; `open` are those around the place being visited, with the depth there.
#[derive(Default)]
struct Functions {
    done: Vec<Function>,
    open: Vec<(Function, usize)>,
}

impl Functions {
    fn of(parsed: &Parsed) -> Vec<Function> {
        let mut functions = Functions::default();
        functions.visit_file(&parsed.syntax);
        functions.done
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block, walk: impl FnOnce(&mut Self)) {
        let line = signature.ident.span().start().line;
        let end = block.brace_token.span.close().start().line;
        let name = signature.ident.to_string();
        self.open.push((Function { name, line, lines: end - line + 1, nesting: 0, deepest: line }, 0));
        walk(self);
        let (function, _) = self.open.pop().expect("what was pushed above");
        self.done.push(function);
    }

    /// Walks something that nests. Outside functions, such as in the value of a constant, nothing is counted.
    fn nest(&mut self, at: Span, walk: impl FnOnce(&mut Self)) {
        if let Some((function, depth)) = self.open.last_mut() {
            *depth += 1;
            if *depth > function.nesting {
                (function.nesting, function.deepest) = (*depth, at.start().line);
            }
        }
        walk(self);
        if let Some((_, depth)) = self.open.last_mut() {
            *depth -= 1;
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block, |this| visit::visit_item_fn(this, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block, |this| visit::visit_impl_item_fn(this, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block, |this| visit::visit_trait_item_fn(this, item));
        }
    }

    /// `else if` reads on the level of its `if`, so only the branches nest, and the chain is walked here.
    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.visit_expr(&expr.cond);
        self.nest(expr.if_token.span, |this| this.visit_block(&expr.then_branch));
        match expr.else_branch.as_ref().map(|(_, branch)| &**branch) {
            Some(syn::Expr::Block(branch)) => self.nest(expr.if_token.span, |this| this.visit_block(&branch.block)),
            Some(branch) => self.visit_expr(branch),
            None => {}
        }
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        self.visit_expr(&expr.expr);
        self.nest(expr.match_token.span, |this| expr.arms.iter().for_each(|arm| this.visit_arm(arm)));
    }

    fn visit_expr_for_loop(&mut self, expr: &'ast syn::ExprForLoop) {
        self.nest(expr.for_token.span, |this| visit::visit_expr_for_loop(this, expr));
    }

    fn visit_expr_while(&mut self, expr: &'ast syn::ExprWhile) {
        self.nest(expr.while_token.span, |this| visit::visit_expr_while(this, expr));
    }

    fn visit_expr_loop(&mut self, expr: &'ast syn::ExprLoop) {
        self.nest(expr.loop_token.span, |this| visit::visit_expr_loop(this, expr));
    }

    /// A closure that is one expression reads like an argument.
    fn visit_expr_closure(&mut self, expr: &'ast syn::ExprClosure) {
        match &*expr.body {
            syn::Expr::Block(_) => self.nest(expr.inputs_begin.span, |this| visit::visit_expr_closure(this, expr)),
            _ => visit::visit_expr_closure(self, expr),
        }
    }

    fn visit_expr_async(&mut self, expr: &'ast syn::ExprAsync) {
        self.nest(expr.async_token.span, |this| visit::visit_expr_async(this, expr));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::super::repository::File;
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<(usize, Severity)> {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        let found = check(&Repository::new(vec![file], vec![]));
        found.into_iter().map(|finding| (finding.line, finding.severity)).collect()
    }

    fn function_of(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_is_measured_from_signature_to_brace() {
        assert_eq!(findings("a.rs", &function_of(70)), []);
        assert_eq!(findings("a.rs", &function_of(71)), [(1, Severity::Warn)]);
        assert_eq!(findings("a.rs", &function_of(201)), [(1, Severity::Deny)]);
    }

    #[test]
    fn tests_and_generated_files_are_held_to_the_limits_to_deny() {
        for text in [format!("#[test]\n{}", function_of(71)), format!("//! @generated\n{}", function_of(71))] {
            assert_eq!(findings("a.rs", &text), []);
        }
        assert_eq!(findings("tests/a.rs", &function_of(201)), [(1, Severity::Deny)]);
    }

    #[test]
    fn a_long_file_warns_by_its_code_and_is_denied_by_its_length() {
        let code = "const A: u8 = 0;\n";
        let tests = |lines: usize| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", code.repeat(lines - 3));
        assert_eq!(findings("a.rs", &(code.repeat(400) + &tests(300))), []);
        assert_eq!(findings("a.rs", &code.repeat(401)), [(1, Severity::Warn)]);
        assert_eq!(findings("a.rs", &(code.repeat(400) + &tests(601))), [(1, Severity::Deny)]);
    }

    #[test]
    fn nesting_past_five_is_found_where_it_is_deepest() {
        let five = "fn f() {\nfor a in b {\nwhile c {\nloop {\nmatch d {\n_ => {\nif e {\nX }\n}\n}\n}\n}\n}\n}\n";
        assert_eq!(findings("a.rs", five), []);
        assert_eq!(findings("a.rs", &five.replace('X', "if g {}")), [(8, Severity::Warn)]);
    }

    #[test]
    fn a_chain_of_else_if_is_one_level() {
        let chain = "if a {} else if b {} else if c {} else if d {} else if e {} else if f {} else if g {} else {}";
        assert_eq!(findings("a.rs", &format!("fn f() {{ {chain} }}\n")), []);
    }

    #[test]
    fn a_function_within_a_function_starts_from_zero() {
        let inner = "fn g() { if a { if b { if c {} } } }";
        assert_eq!(findings("a.rs", &format!("fn f() {{ if a {{ if b {{ if c {{ {inner} }} }} }} }}\n")), []);
    }

    #[test]
    fn a_file_that_does_not_parse_is_an_error() {
        assert_eq!(findings("a.rs", "fn f( {}\n"), [(1, Severity::Deny)]);
    }
}
