//! `licences`: every package in the dependency graph may be used under a licence that `deny.toml` allows.
//!
//! The list stands in `deny.toml` only. cargo-deny checks more (advisories, sources) but has to be installed; this
//! part runs everywhere.

use super::Finding;
use super::repository::{File, Package, Repository};
use spdx::{Expression, Licensee, ParseMode};

const LIST: &str = "deny.toml";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let allowed = match repository.file(LIST).map(|file| allowed(&file.text)) {
        Some(Ok(allowed)) => allowed,
        Some(Err(problem)) => return vec![Finding::deny(LIST, 1, problem)],
        None => return vec![Finding::deny(LIST, 1, "is missing, and with it the list of allowed licences")],
    };
    let lock = repository.file("Cargo.lock");
    let found = |package: &Package| {
        let problem = problem(package.license.as_deref(), &allowed)?;
        let line = lock.map_or(1, |lock| line_of(lock, package));
        Some(Finding::deny("Cargo.lock", line, format!("{} {}: {problem}", package.name, package.version)))
    };
    repository.packages.iter().filter_map(found).collect()
}

fn allowed(deny: &str) -> Result<Vec<Licensee>, String> {
    let deny: toml::Table = deny.parse().map_err(|error| format!("does not parse: {error}"))?;
    let list = deny.get("licenses").and_then(|licences| licences.get("allow")).and_then(toml::Value::as_array);
    let list = list.ok_or("has no list `allow` under `[licenses]`")?;
    let parse = |entry: &toml::Value| {
        let text = entry.as_str().ok_or_else(|| format!("`{entry:?}` in `allow` is not a string"))?;
        Licensee::parse(text).map_err(|error| format!("`{text}` in `allow` is no SPDX licence: {}", error.reason))
    };
    list.iter().map(parse).collect()
}

/// Why a package may not be used, if so. Old manifests separate alternatives by `/`, which the lax mode reads as `OR`.
fn problem(license: Option<&str>, allowed: &[Licensee]) -> Option<String> {
    let Some(license) = license else {
        return Some("declares no licence expression".to_owned());
    };
    match Expression::parse_mode(license, ParseMode::LAX) {
        Err(error) => Some(format!("licence `{license}` is no SPDX expression: {}", error.reason)),
        Ok(expression) => {
            let satisfied = expression.evaluate(|required| allowed.iter().any(|licence| licence.satisfies(required)));
            (!satisfied).then(|| format!("licence `{license}` is not among those allowed in {LIST}"))
        }
    }
}

fn line_of(lock: &File, package: &Package) -> usize {
    let name = format!("name = \"{}\"", package.name);
    let version = format!("version = \"{}\"", package.version);
    let lines: Vec<&str> = lock.text.lines().collect();
    lines.windows(2).position(|pair| pair == [name.as_str(), version.as_str()]).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: &str = "[licenses]\nallow = [\"MIT\", \"Apache-2.0\", \"Apache-2.0 WITH LLVM-exception\", \"ISC\"]\n";

    fn is_allowed(license: &str) -> bool {
        problem(Some(license), &allowed(DENY).unwrap()).is_none()
    }

    #[test]
    fn one_alternative_suffices_and_every_conjunct_is_needed() {
        for (license, expected) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("GPL-3.0-only OR MIT", true),
            ("MIT AND GPL-3.0-only", false),
            ("MIT AND (GPL-3.0-only OR ISC)", true),
            ("(MIT OR Apache-2.0) AND GPL-3.0-only", false),
        ] {
            assert_eq!(is_allowed(license), expected, "{license}");
        }
    }

    #[test]
    fn an_exception_is_allowed_by_name_only() {
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception"));
        assert!(!is_allowed("MIT WITH LLVM-exception"));
    }

    #[test]
    fn a_slash_separates_alternatives_in_old_manifests() {
        assert!(is_allowed("MIT/Apache-2.0") && is_allowed("GPL-3.0 / MIT"));
    }

    #[test]
    fn a_package_without_a_licence_or_with_an_unknown_one_is_found_in_the_lock_file() {
        for license in [None, Some("Proprietary".to_owned())] {
            let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
            let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n";
            let package = Package { name: "a".to_owned(), version: "1.0.0".to_owned(), license, member: None };
            let found = check(&Repository::new(vec![file("deny.toml", DENY), file("Cargo.lock", lock)], vec![package]));
            assert_eq!((found.len(), found[0].line), (1, 4));
        }
    }

    #[test]
    fn without_a_list_nothing_is_allowed() {
        assert_eq!(check(&Repository::default()).len(), 1);
        assert!(allowed("[licenses]\n").is_err());
        assert!(allowed("[licenses]\nallow = [\"Nonsense\"]\n").is_err());
    }
}
