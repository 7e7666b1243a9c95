//! The data directory: who owns it, and where its files are.

use crate::{Error, Result};
use parking_lot::Mutex;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const LOG: &str = "log.db";
/// Named by SQLite after the log.
const WAL: &str = "log.db-wal";
const JOURNAL: &str = "log.db-journal";
/// The note of what was acknowledged.
pub(super) const NOTE: &str = "acknowledged";

/// An open data directory. The lock is held until it is taken out or this is dropped, even by a crash.
#[derive(Debug)]
pub(super) struct DataDir {
    path: PathBuf,
    lock: Mutex<Option<File>>,
}

impl DataDir {
    /// Makes the directory and an empty log in it if need be, and takes its lock.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |what: &str, error: std::io::Error| open_error(path, format!("{what}: {error}"));
        let dir = DataDir::lock(path)?;
        if dir.restoring().exists() {
            return Err(open_error(path, "a restore into it did not finish; restore again".to_owned()));
        }
        private_file(&dir.log()).map_err(|error| failed("the log file cannot be made", error))?;
        sync_dir(path).map_err(|error| failed("the directory cannot be synced", error))?;
        Ok(dir)
    }

    /// Makes the directory if need be and takes its lock.
    pub(super) fn lock(path: &Path) -> Result<Self> {
        let failed = |what: &str, error: std::io::Error| open_error(path, format!("{what}: {error}"));
        make_dir(path).map_err(|error| failed("the directory cannot be made", error))?;
        let mut lock = private_file(&path.join("lock")).map_err(|error| failed("no lock file can be made", error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                lock.read_to_string(&mut owner).map_err(|error| failed("the lock file cannot be read", error))?;
                return Err(open_error(
                    path,
                    format!("process {} is using it; stop that one or choose another directory", owner.trim()),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(failed("its lock cannot be taken", error)),
        }
        let noted =
            lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| writeln!(lock, "{}", std::process::id()));
        noted.map_err(|error| failed("the lock file cannot be written", error))?;
        Ok(DataDir { path: path.to_owned(), lock: Mutex::new(Some(lock)) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The database. SQLite keeps its write-ahead log beside it, with the same permissions.
    pub(super) fn log(&self) -> PathBuf {
        log_in(&self.path)
    }

    /// SQLite's write-ahead log.
    pub(super) fn wal(&self) -> PathBuf {
        self.path.join(WAL)
    }

    /// Where the note of what was acknowledged is kept.
    pub(super) fn note(&self) -> PathBuf {
        self.path.join(NOTE)
    }

    /// What is to become the log, while a backup is being restored.
    pub(super) fn restoring(&self) -> PathBuf {
        self.path.join("restoring.db")
    }

    /// Gives up the directory once what is returned is dropped; none if that has happened before.
    pub(super) fn take_lock(&self) -> Option<File> {
        self.lock.lock().take()
    }

    /// What all files take up together.
    pub(super) fn bytes(&self) -> std::io::Result<u64> {
        let mut bytes = 0;
        for entry in std::fs::read_dir(&self.path)? {
            bytes += match entry?.metadata() {
                Ok(metadata) => metadata.len(),
                // SQLite removes files of its own now and then.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
                Err(error) => return Err(error),
            };
        }
        Ok(bytes)
    }
}

pub(super) fn log_in(path: &Path) -> PathBuf {
    path.join(LOG)
}

/// Whether there is a store in a directory, or something of one that a new store would take for its own.
pub(super) fn has_store(path: &Path) -> bool {
    [LOG, WAL, JOURNAL, NOTE].iter().any(|name| path.join(name).exists())
}

/// Makes a directory and those above it, durably: a store is no use in a directory that a power loss takes away.
fn make_dir(path: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|dir| !dir.exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    missing.into_iter().filter(|made| !made.as_os_str().is_empty()).try_for_each(|made| sync_dir(parent(made)))
}

/// The directory that a file or directory is in.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn open_error(path: &Path, what: String) -> Error {
    Error::Open { path: path.to_owned(), what }
}

/// Opens a file that only its owner can read, making it if need be.
pub(super) fn private_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}
