//! The data directory: who owns it, where its files are, and how far writes in it were acknowledged.

use crate::{Error, Result, Revision};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// An open data directory. The lock is held until this is dropped, even by a crash.
#[derive(Debug)]
pub(super) struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Makes the directory if need be and takes its lock.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |what: &str, error: std::io::Error| open_error(path, format!("{what}: {error}"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| failed("the directory cannot be made", error))?;
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
        let dir = DataDir { path: path.to_owned(), _lock: lock };
        private_file(&dir.log()).map_err(|error| failed("the log file cannot be made", error))?;
        sync_dir(path).map_err(|error| failed("the directory cannot be synced", error))?;
        Ok(dir)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The database. SQLite keeps its write-ahead log beside it, with the same permissions.
    pub(super) fn log(&self) -> PathBuf {
        log_in(&self.path)
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
    path.join("log.db")
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

/// How far writes were acknowledged, noted beside the log after every group of them.
///
/// It is written after the log's fsync and never synced itself, so it is at most what is durable. A log that ends
/// before it has lost acknowledged writes: a cut or damaged write-ahead log, which SQLite by itself would take for
/// the end of the log.
#[derive(Debug)]
pub(super) struct Watermark(File);

const WATERMARK: &str = "acknowledged";

impl Watermark {
    pub(super) fn open(dir: &DataDir) -> std::io::Result<Self> {
        Ok(Watermark(private_file(&dir.path.join(WATERMARK))?))
    }

    /// The revision noted last; none if there is no note or the system crashed before it reached the disk.
    pub(super) fn read(&self) -> std::io::Result<Option<Revision>> {
        let mut note = [0; 12];
        match self.0.read_exact_at(&mut note, 0) {
            Ok(()) => {
                let (revision, sum) = note.split_at(8);
                let intact = crc32fast::hash(revision).to_le_bytes() == sum;
                let revision = u64::from_le_bytes(revision.try_into().expect("the note is split after eight bytes"));
                Ok(intact.then_some(Revision(revision)))
            }
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn write(&self, revision: Revision) -> std::io::Result<()> {
        let revision = revision.0.to_le_bytes();
        let mut note = [0; 12];
        note[..8].copy_from_slice(&revision);
        note[8..].copy_from_slice(&crc32fast::hash(&revision).to_le_bytes());
        self.0.write_all_at(&note, 0)
    }

    /// Compares the note with what recovery found.
    pub(super) fn check(&self, dir: &DataDir, recovered: Revision) -> Result<()> {
        let noted =
            self.read().map_err(|error| open_error(&dir.path, format!("{WATERMARK} cannot be read: {error}")))?;
        match noted {
            Some(acknowledged) if acknowledged > recovered => Err(Error::Damaged {
                path: dir.path.clone(),
                what: format!(
                    "the log ends at revision {recovered}, but writes up to {acknowledged} were acknowledged; restore a \
                     backup, or delete the file {WATERMARK:?} to go on without the lost writes"
                ),
            }),
            _ => Ok(()),
        }
    }
}
