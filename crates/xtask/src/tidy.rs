//! `tidy`: the rules of this repository that a program can check and clippy cannot.
//!
//! One file per check and one line per check in [`ALL`]. A check is a pure function of the [`Repository`]; it returns
//! what it found and prints nothing.

use anyhow::Context;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

mod banned;
mod docs;
mod edges;
mod licences;
mod repository;
mod rust;
mod size;
mod traces;

use repository::Repository;

struct Check {
    name: &'static str,
    run: fn(&Repository) -> Vec<Finding>,
}

const ALL: &[Check] = &[
    Check { name: "edges", run: edges::check },
    Check { name: "banned", run: banned::check },
    Check { name: "size", run: size::check },
    Check { name: "docs", run: docs::check },
    Check { name: "licences", run: licences::check },
    Check { name: "traces", run: traces::check },
];

/// Something a check objects to, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    /// Relative to the root of the repository.
    file: String,
    /// Counted from one.
    line: usize,
    severity: Severity,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    /// Fails the run.
    Deny,
    /// Is printed and does not fail the run.
    Warn,
}

impl Finding {
    fn deny(file: &str, line: usize, message: impl Into<String>) -> Self {
        Finding { file: file.to_owned(), line, severity: Severity::Deny, message: message.into() }
    }

    fn warn(file: &str, line: usize, message: impl Into<String>) -> Self {
        Finding { severity: Severity::Warn, ..Finding::deny(file, line, message) }
    }
}

/// Runs every check on the workspace around the current directory.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let repository = Repository::load().context("reading the repository")?;
    let outcomes: Vec<_> = ALL.iter().map(|check| (check.name, (check.run)(&repository))).collect();
    std::io::stdout().lock().write_all(render(&outcomes).as_bytes())?;
    let failed = count(&outcomes, Severity::Deny) > 0;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn count(outcomes: &[(&str, Vec<Finding>)], severity: Severity) -> usize {
    outcomes.iter().flat_map(|(_, findings)| findings).filter(|finding| finding.severity == severity).count()
}

/// The report: findings grouped by check in file order, then one line of totals.
fn render(outcomes: &[(&str, Vec<Finding>)]) -> String {
    let mut report = String::new();
    for (name, findings) in outcomes.iter().filter(|(_, findings)| !findings.is_empty()) {
        let mut findings = findings.clone();
        findings.sort();
        let _ = writeln!(report, "{name}");
        for Finding { file, line, severity, message } in findings {
            let severity = match severity {
                Severity::Deny => "error",
                Severity::Warn => "warning",
            };
            let _ = writeln!(report, "  {severity} {file}:{line}: {message}");
        }
    }
    let (errors, warnings) = (count(outcomes, Severity::Deny), count(outcomes, Severity::Warn));
    let _ = writeln!(report, "tidy: {} checks, {errors} errors, {warnings} warnings", outcomes.len());
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_run_is_one_line() {
        assert_eq!(render(&[("edges", vec![]), ("size", vec![])]), "tidy: 2 checks, 0 errors, 0 warnings\n");
    }

    #[test]
    fn findings_are_grouped_by_check_and_sorted_by_place() {
        let findings = vec![Finding::warn("b.rs", 7, "long"), Finding::deny("a.rs", 9, "too long")];
        assert_eq!(
            render(&[("edges", vec![]), ("size", findings)]),
            "size\n  error a.rs:9: too long\n  warning b.rs:7: long\ntidy: 2 checks, 1 errors, 1 warnings\n"
        );
    }
}
