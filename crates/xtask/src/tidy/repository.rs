//! What the checks look at: the tracked text files, the Rust among them parsed once, and `cargo metadata`.
//!
//! All reading happens here, so that each check is a pure function and its tests need no files.

use super::rust::Rust;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The repository at one moment.
#[derive(Debug, Default)]
pub(super) struct Repository {
    /// Text files that git tracks or would track, sorted by path.
    pub(super) files: Vec<File>,
    /// The `.rs` files among them.
    pub(super) rust: Vec<Rust>,
    /// Every package in the dependency graph, workspace members included.
    pub(super) packages: Vec<Package>,
}

#[derive(Clone, Debug)]
pub(super) struct File {
    /// Relative to the root of the repository, with `/` between components.
    pub(super) path: String,
    pub(super) text: String,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// The SPDX expression, if the manifest declares one.
    pub(super) license: Option<String>,
    pub(super) member: Option<Member>,
}

/// What only a member of the workspace has.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    /// Relative to the root of the repository.
    pub(super) manifest: String,
    /// Dependencies on other members.
    pub(super) uses: Vec<(String, DependencyKind)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DependencyKind {
    Normal,
    Build,
    Dev,
}

impl Repository {
    /// Reads the workspace around the current directory.
    pub(super) fn load() -> anyhow::Result<Self> {
        let manifest =
            stdout_of(Command::new(cargo()).args(["locate-project", "--workspace", "--message-format=plain"]))?;
        let root = Path::new(manifest.trim()).parent().context("the workspace manifest is in a directory")?;
        let files = read_files(root)?;
        let packages = packages(&metadata(root, &files)?, root)?;
        Ok(Repository::new(files, packages))
    }

    pub(super) fn new(mut files: Vec<File>, packages: Vec<Package>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let rust = files.iter().filter(|file| file.path.ends_with(".rs")).map(Rust::parse).collect();
        Repository { files, rust, packages }
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        let found = self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        self.files.get(found)
    }
}

impl File {
    /// The first line for which `matches` holds, or 1: findings about a whole file point at its start.
    pub(super) fn line_where(&self, matches: impl FnMut(&str) -> bool) -> usize {
        self.text.lines().position(matches).map_or(1, |index| index + 1)
    }
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

fn stdout_of(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("running {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} printed something other than UTF-8"))
}

/// Untracked files count as well unless ignored: a new file is checked before its first commit.
fn read_files(root: &Path) -> anyhow::Result<Vec<File>> {
    let listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let paths = stdout_of(Command::new("git").args(listing).current_dir(root))?;
    let mut files = Vec::new();
    for path in paths.split_terminator('\0') {
        let on_disk = root.join(path);
        // Deleted but still in the index, or a symbolic link to something listed by itself or outside.
        if !on_disk.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            continue;
        }
        let bytes = std::fs::read(&on_disk).with_context(|| format!("reading {path}"))?;
        if let Ok(text) = String::from_utf8(bytes)
            && !text.contains('\0')
        {
            files.push(File { path: path.to_owned(), text });
        }
    }
    Ok(files)
}

/// Only the platforms named in `deny.toml` are resolved, so nothing has to be downloaded for the others.
fn metadata(root: &Path, files: &[File]) -> anyhow::Result<Value> {
    let deny: toml::Table = match files.iter().find(|file| file.path == "deny.toml") {
        Some(file) => file.text.parse().context("parsing deny.toml")?,
        None => toml::Table::new(),
    };
    let mut command = Command::new(cargo());
    command.args(["metadata", "--format-version=1"]).current_dir(root);
    let targets = deny.get("graph").and_then(|graph| graph.get("targets")).and_then(toml::Value::as_array);
    for target in targets.into_iter().flatten().filter_map(toml::Value::as_str) {
        command.args(["--filter-platform", target]);
    }
    serde_json::from_str(&stdout_of(&mut command)?).context("parsing cargo metadata")
}

fn packages(metadata: &Value, root: &Path) -> anyhow::Result<Vec<Package>> {
    let members = metadata["workspace_members"].as_array().context("cargo metadata lists workspace members")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    let is_member = |package: &Value| members.contains(&package["id"]);
    let member_names: Vec<&str> =
        packages.iter().filter(|package| is_member(package)).filter_map(|package| package["name"].as_str()).collect();
    let read = |package: &Value| {
        Some(Package {
            name: package["name"].as_str()?.to_owned(),
            version: package["version"].as_str()?.to_owned(),
            license: package["license"].as_str().map(str::to_owned),
            member: if is_member(package) { Some(member(package, &member_names, root)?) } else { None },
        })
    };
    packages.iter().map(|package| read(package).context("a package in cargo metadata lacks a field")).collect()
}

fn member(package: &Value, members: &[&str], root: &Path) -> Option<Member> {
    let manifest = Path::new(package["manifest_path"].as_str()?);
    let mut uses = Vec::new();
    for dependency in package["dependencies"].as_array()? {
        let name = dependency["name"].as_str()?;
        // A registry package may bear the name of a member; only a path leads into the workspace.
        if dependency["path"].is_string() && members.contains(&name) {
            uses.push((name.to_owned(), dependency_kind(&dependency["kind"])?));
        }
    }
    Some(Member { manifest: manifest.strip_prefix(root).unwrap_or(manifest).to_str()?.to_owned(), uses })
}

fn dependency_kind(kind: &Value) -> Option<DependencyKind> {
    match kind {
        Value::Null => Some(DependencyKind::Normal),
        Value::String(kind) if kind == "build" => Some(DependencyKind::Build),
        Value::String(kind) if kind == "dev" => Some(DependencyKind::Dev),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_yields_members_with_their_edges_and_dependencies_without() {
        let metadata = json!({
            "workspace_members": ["store 0.1", "ambient 0.1"],
            "packages": [
                { "id": "store 0.1", "name": "store", "version": "0.1.0", "license": "Apache-2.0",
                  "manifest_path": "/repo/crates/store/Cargo.toml", "dependencies": [
                    { "name": "ambient", "kind": null, "path": "/repo/crates/ambient" },
                    { "name": "ambient", "kind": "dev", "path": "/repo/crates/ambient" },
                    { "name": "bytes", "kind": null } ] },
                { "id": "ambient 0.1", "name": "ambient", "version": "0.1.0", "license": "Apache-2.0",
                  "manifest_path": "/repo/crates/ambient/Cargo.toml", "dependencies": [] },
                { "id": "bytes 1.0", "name": "bytes", "version": "1.0.0", "license": null, "dependencies": [] },
            ],
        });
        let packages = packages(&metadata, Path::new("/repo")).unwrap();
        let store = packages[0].member.as_ref().unwrap();
        assert_eq!(store.manifest, "crates/store/Cargo.toml");
        assert_eq!(
            store.uses,
            [("ambient".to_owned(), DependencyKind::Normal), ("ambient".to_owned(), DependencyKind::Dev)]
        );
        assert!(packages[2].member.is_none());
    }
}
