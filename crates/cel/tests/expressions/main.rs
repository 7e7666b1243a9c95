//! Tables of expressions and what becomes of them, by area.

mod costs;
mod estimates;
mod language;
mod libraries;
mod mistakes;
mod objects;

use cel::{Budget, Environment, Program, Value, Variables};

/// Compiles with nothing but what every environment has.
fn compile(source: &str) -> Result<Program, String> {
    Environment::new().with_bindings().compile(source).map_err(|issues| issues.to_string())
}

/// What a value looks like in JSON, or why there is none.
fn shown(value: Result<Value<'_>, cel::Error>) -> String {
    match value.and_then(|value| value.to_json()) {
        Ok(json) => json.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

/// The value of an expression that needs no variables.
fn evaluated(source: &str) -> String {
    match compile(source) {
        Ok(program) => shown(program.evaluate(&Variables::new(), &mut Budget::default())),
        Err(issues) => issues,
    }
}

/// All of these hold.
fn hold(expressions: &[&str]) {
    for source in expressions {
        assert_eq!(evaluated(source), "true", "{source}");
    }
}

/// Each of these gives what stands beside it, as JSON, or fails as it says.
fn give(rows: &[(&str, &str)]) {
    for (source, expected) in rows {
        assert_eq!(evaluated(source), *expected, "{source}");
    }
}
