//! Backups that are known to be good, and stores made from them.

use super::files::{self, DataDir, open_error};
use super::log::{self, Bounds, LogError, LogResult};
use super::recovery;
use crate::head::Snapshot;
use crate::{Result, Revision};
use std::path::{Path, PathBuf};

/// How far a restored store's revision jumps ahead, so that it never hands out a revision that some client has seen
/// with other content. etcd's practice is the same.
const RESTORE_STEP: u64 = 1_000_000_000;

/// Copies a log as of now, writers going on, and verifies the copy before giving it its name.
pub(super) fn backup(log_file: &Path, to: &Path) -> Result<Revision> {
    let partial = partial_name(to);
    let finished = copy(log_file, &partial).and_then(|revision| {
        std::fs::rename(&partial, to)
            .and_then(|()| files::sync_dir(files::parent(to)))
            .map_err(|error| io(to, &error))?;
        Ok(revision)
    });
    if finished.is_err() {
        // The error that counts is the first one; a leftover is overwritten by the next attempt.
        let _ = std::fs::remove_file(&partial);
    }
    finished.map_err(|error| error.on_opening(to))
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
    check_vacant(data_dir)?;
    if !backup.exists() {
        return Err(open_error(backup, "there is no such backup".to_owned()));
    }
    let source = log::open_for_reading(backup)
        .and_then(|db| recovery::check_structure(&db).map(|()| db))
        .and_then(|db| recovery::recover(&db))
        .map_err(|error| error.on_opening(backup))?;
    let dir = DataDir::lock(data_dir)?;
    check_vacant(data_dir)?;
    let base = Revision(source.head.revision().0 + RESTORE_STEP);
    // Under another name until all of it is durable: a crash leaves no store that is empty or half full.
    let restoring = dir.restoring();
    let finished = remove_leftovers(&restoring).and_then(|()| write(&restoring, &source.head.snapshot(), base));
    let finished = finished.and_then(|()| {
        std::fs::rename(&restoring, dir.log())
            .and_then(|()| files::sync_dir(data_dir))
            .map_err(|error| io(data_dir, &error))
    });
    finished.map_err(|error| error.on_opening(data_dir))?;
    Ok(base)
}

fn check_vacant(data_dir: &Path) -> Result<()> {
    match files::has_store(data_dir) {
        true => Err(open_error(data_dir, "there is a store in it already; restore into an empty directory".to_owned())),
        false => Ok(()),
    }
}

/// What a restore that was interrupted left behind.
fn remove_leftovers(restoring: &Path) -> LogResult<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = restoring.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(io(restoring, &error)),
        }
    }
    Ok(())
}

/// Makes a log that begins with these items, durable and in one file when this returns.
fn write(path: &Path, snapshot: &Snapshot, base: Revision) -> LogResult<()> {
    files::private_file(path).map_err(|error| io(path, &error))?;
    files::sync_dir(files::parent(path)).map_err(|error| io(path, &error))?;
    let db = log::open_for_writing(path)?;
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
    log::settle(db, || Ok(()))
}

fn io(path: &Path, error: &std::io::Error) -> LogError {
    LogError::Unusable(format!("{}: {error}", path.display()))
}

fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}
