//! The failing disk: compiles `shim/faults.c` and says what a worker needs in its environment to get it.

use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug)]
pub(crate) struct Shim {
    _dir: tempfile::TempDir,
    library: PathBuf,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: &'static str,
    /// The name of the file that is hit; empty: any.
    pub(crate) file: &'static str,
    /// The number of the call that is hit, among those of this kind to this file.
    pub(crate) at: u64,
    pub(crate) seed: u64,
}

impl Shim {
    pub(crate) fn build() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("faults.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim/faults.c");
        let compiled = Command::new("cc")
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(source)
            .arg("-ldl")
            .status()
            .expect("there is a C compiler: building SQLite needs one too");
        assert!(compiled.success(), "the shim does not compile");
        Shim { _dir: dir, library }
    }

    pub(crate) fn environment(&self, dir: &Path, fault: Fault) -> [(&'static str, String); 6] {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAULT_DIR", dir.display().to_string()),
            ("FAULT_KIND", fault.kind.to_owned()),
            ("FAULT_FILE", fault.file.to_owned()),
            ("FAULT_AT", fault.at.to_string()),
            ("FAULT_SEED", fault.seed.to_string()),
        ]
    }
}
