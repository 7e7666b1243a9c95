//! `edges`: which crate of the workspace may use which, compared with `cargo metadata`.
//!
//! Dependencies point up the table, never down. Towards what tests and benchmarks are made with any crate may have a
//! dev-dependency, and none another kind.

use super::Finding;
use super::repository::{DependencyKind, Member, Repository};

enum Uses {
    Only(&'static [&'static str]),
    /// Every crate above it in the table.
    AllAbove,
}

/// What a control loop may use: it sees the API through `runtime`, like any other client.
const CLIENT: Uses = Uses::Only(&["runtime", "kinds", "object", "ambient"]);

/// Every crate there may be, those still to be written included.
const TABLE: &[(&str, Uses)] = &[
    ("ambient", Uses::Only(&[])),
    ("object", Uses::Only(&[])),
    ("kinds", Uses::Only(&["object"])),
    ("cel", Uses::Only(&["object"])),
    ("schema", Uses::Only(&["object"])),
    ("authz", Uses::Only(&["object"])),
    ("quota", Uses::Only(&["object"])),
    ("store", Uses::Only(&["ambient"])),
    ("registry", Uses::Only(&["object", "schema", "cel", "store", "ambient"])),
    ("apiserver", Uses::Only(&["registry", "authz", "quota", "object", "schema", "store", "ambient"])),
    ("runtime", Uses::Only(&["kinds", "object", "ambient"])),
    // Some of what the API decides, loops keep up: with the same pure functions.
    ("controllers", Uses::Only(&["runtime", "kinds", "authz", "quota", "object", "ambient"])),
    // Selectors of devices are expressions.
    ("scheduler", Uses::Only(&["runtime", "kinds", "cel", "object", "ambient"])),
    ("node", CLIENT),
    ("net", CLIENT),
    ("setpoint", Uses::AllAbove),
    ("testkit", Uses::AllAbove),
    ("figures", Uses::Only(&[])),
    ("xtask", Uses::Only(&[])),
];

/// Never part of the program.
const FOR_TESTS: [&str; 2] = ["testkit", "figures"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let members =
        repository.packages.iter().filter_map(|package| Some((package.name.as_str(), package.member.as_ref()?)));
    members.flat_map(|(name, member)| check_member(name, member, repository)).collect()
}

fn check_member(name: &str, member: &Member, repository: &Repository) -> Vec<Finding> {
    let Some(row) = TABLE.iter().position(|(crate_name, _)| *crate_name == name) else {
        let message =
            format!("crate `{name}` has no row in the table of allowed edges (crates/xtask/src/tidy/edges.rs)");
        return vec![Finding::deny(&member.manifest, 1, message)];
    };
    let forbidden = member.uses.iter().filter(|(used, kind)| !may_use(row, used, *kind));
    let finding = |(used, kind): &(String, DependencyKind)| {
        let line = repository.file(&member.manifest).map_or(1, |file| file.line_where(|line| declares(line, used)));
        let kind = match kind {
            DependencyKind::Normal => "use",
            DependencyKind::Build => "use in its build script",
            DependencyKind::Dev => "use in its tests",
        };
        Finding::deny(&member.manifest, line, format!("`{name}` may not {kind} `{used}`"))
    };
    forbidden.map(finding).collect()
}

fn may_use(row: usize, used: &str, kind: DependencyKind) -> bool {
    if FOR_TESTS.contains(&used) {
        return kind == DependencyKind::Dev;
    }
    match &TABLE[row].1 {
        Uses::Only(crates) => crates.contains(&used),
        Uses::AllAbove => TABLE[..row].iter().any(|(name, _)| *name == used),
    }
}

/// Whether a line of a manifest declares a dependency of that name, as `name = ...` or `name.workspace = ...`.
fn declares(line: &str, name: &str) -> bool {
    line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
}

#[cfg(test)]
mod tests {
    use super::super::repository::{File, Package};
    use super::*;
    use DependencyKind::{Build, Dev, Normal};

    fn findings(name: &str, uses: &[(&str, DependencyKind)]) -> Vec<Finding> {
        let manifest = format!("crates/{name}/Cargo.toml");
        let text = "[package]\n\n[dependencies]\nstore.workspace = true\n".to_owned();
        let uses = uses.iter().map(|(used, kind)| ((*used).to_owned(), *kind)).collect();
        let member = Some(Member { manifest: manifest.clone(), uses });
        let package = Package { name: name.to_owned(), member, ..Package::default() };
        check(&Repository::new(vec![File { path: manifest, text }], vec![package]))
    }

    #[test]
    fn edges_in_the_table_pass() {
        assert_eq!(findings("registry", &[("store", Normal), ("object", Build), ("schema", Dev)]), []);
        assert_eq!(findings("setpoint", &[("apiserver", Normal), ("net", Normal)]), []);
        assert_eq!(findings("testkit", &[("setpoint", Normal)]), []);
    }

    #[test]
    fn a_controller_that_sees_the_store_is_found_on_the_line_that_declares_it() {
        for kind in [Normal, Build, Dev] {
            let found = findings("controllers", &[("store", kind)]);
            assert_eq!((found.len(), found[0].line), (1, 4), "{kind:?}");
        }
    }

    #[test]
    fn any_crate_may_use_testkit_in_tests_and_none_otherwise() {
        assert_eq!(findings("object", &[("testkit", Dev)]), []);
        assert_eq!(findings("setpoint", &[("testkit", Normal)]).len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        assert!(findings("helpers", &[])[0].message.contains("no row"));
    }

    #[test]
    fn the_table_has_no_cycle_because_every_edge_points_up() {
        for (row, (name, uses)) in TABLE.iter().enumerate() {
            let Uses::Only(crates) = uses else { continue };
            for used in *crates {
                assert!(TABLE[..row].iter().any(|(above, _)| above == used), "{name} -> {used}");
            }
        }
    }
}
