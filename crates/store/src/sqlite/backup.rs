//! Backups that are known to be good, and stores made from them.

use super::files::{self, DataDir, open_error};
use super::log::{self, Bounds, LogError, LogResult};
use super::recovery;
use crate::{Error, Result, Revision};
use std::path::{Path, PathBuf};

/// How far a restored store's revision jumps ahead, so that it never hands out a revision that some client has seen
/// with other content. etcd's practice is the same.
const RESTORE_STEP: u64 = 1_000_000_000;

/// Copies a log as of now, writers going on, and verifies the copy before giving it its name.
pub(super) fn backup(log_file: &Path, to: &Path) -> Result<Revision> {
    let partial = partial_name(to);
    let finished = copy(log_file, &partial).and_then(|revision| {
        std::fs::rename(&partial, to).and_then(|()| files::sync_dir(parent(to))).map_err(|error| io(to, &error))?;
        Ok(revision)
    });
    if finished.is_err() {
        // The error that counts is the first one; a leftover is overwritten by the next attempt.
        let _ = std::fs::remove_file(&partial);
    }
    finished.map_err(|error| named(to, &error))
}

fn copy(log_file: &Path, partial: &Path) -> LogResult<Revision> {
    if partial.exists() {
        std::fs::remove_file(partial).map_err(|error| io(partial, &error))?;
    }
    let file = files::private_file(partial).map_err(|error| io(partial, &error))?;
    let name = partial.to_str().ok_or_else(|| LogError::Unusable("the path is not valid UTF-8".to_owned()))?;
    log::open_for_reading(log_file)?.execute("VACUUM INTO ?", [name])?;
    file.sync_all().map_err(|error| io(partial, &error))?;
    let copied = log::open_for_reading(partial)?;
    recovery::check_structure(&copied)?;
    Ok(recovery::recover(&copied)?.head.revision())
}

/// Makes a new store in `data_dir` from a backup, after verifying all of it.
///
/// It holds what was live when the backup was made. Its revision is far ahead of the backup's and everything before
/// is compacted, so clients with older state list again instead of mixing two histories.
pub fn restore(backup: &Path, data_dir: &Path) -> Result<Revision> {
    let existing = files::log_in(data_dir);
    if existing.exists() {
        return Err(open_error(data_dir, "there is a store in it already; restore into an empty directory".to_owned()));
    }
    if !backup.exists() {
        return Err(open_error(backup, "there is no such backup".to_owned()));
    }
    let source = log::open_for_reading(backup)
        .and_then(|db| recovery::check_structure(&db).map(|()| db))
        .and_then(|db| recovery::recover(&db))
        .map_err(|error| named(backup, &error))?;
    let dir = DataDir::open(data_dir)?;
    let base = Revision(source.head.revision().0 + RESTORE_STEP);
    let snapshot = source.head.snapshot();
    let written = log::open_for_writing(&dir.log()).and_then(|db| {
        db.execute_batch("BEGIN IMMEDIATE")?;
        let (mut revision, mut position) = (Revision::ZERO, 0);
        let mut items: Vec<_> = snapshot.iter(&crate::Range::default()).collect();
        items.sort_by_key(|item| item.mod_revision);
        for item in items {
            position = if item.mod_revision == revision { position + 1 } else { 0 };
            revision = item.mod_revision;
            log::append_base(&db, item, position)?;
        }
        log::write_bounds(&db, Bounds { compacted: base, base })?;
        db.execute_batch("COMMIT")?;
        Ok(())
    });
    written.map_err(|error| named(data_dir, &error))?;
    Ok(base)
}

fn named(path: &Path, error: &LogError) -> Error {
    match error.is_damage() {
        true => Error::Damaged { path: path.to_owned(), what: error.to_string() },
        false => open_error(path, error.to_string()),
    }
}

fn io(path: &Path, error: &std::io::Error) -> LogError {
    LogError::Unusable(format!("{}: {error}", path.display()))
}

fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
