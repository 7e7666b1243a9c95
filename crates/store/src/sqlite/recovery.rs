//! Opening a log: checking that it is whole, and finding the newest value of every key.

use super::log::{self, Bounds, LogError, LogResult};
use crate::head::Head;
use crate::{Item, Revision};
use bytes::Bytes;
use rusqlite::Connection;
use std::collections::HashSet;

/// What is in a log.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) head: Head,
    pub(super) bounds: Bounds,
    /// Values that are kept though they are no longer current.
    pub(super) history_bytes: u64,
}

/// Reads the log from the newest row to the oldest: the first row of a key is its current value.
///
/// Rows of replaced values are checked as well. One whose key is damaged may be the newest of a key that then seems to
/// have an older value.
pub(super) fn recover(db: &Connection) -> LogResult<Recovered> {
    let bounds = log::read_bounds(db)?;
    let (mut items, mut seen) = (Vec::<Item>::new(), HashSet::<Bytes>::new());
    let (mut newest, mut history_bytes) = (None, 0);
    let mut select = db.prepare(&format!("SELECT {} FROM log ORDER BY id DESC", log::COLUMNS))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let checked = log::check(row)?;
        newest.get_or_insert(checked.revision());
        if seen.contains(checked.key) {
            history_bytes += log::row_bytes(checked.key.len(), checked.value.map_or(0, <[u8]>::len));
            continue;
        }
        let record = checked.into_record();
        seen.insert(record.key.clone());
        match record.current {
            Some(item) => items.push(item),
            None => history_bytes += log::row_bytes(record.key.len(), 0),
        }
    }
    let revision = newest.unwrap_or(Revision::ZERO).max(bounds.base).max(bounds.compacted);
    Ok(Recovered { head: Head::recovered(revision, items), bounds, history_bytes })
}

/// SQLite's own check of the file's structure.
pub(super) fn check_structure(db: &Connection) -> LogResult<()> {
    let mut check = db.prepare("PRAGMA quick_check(3)")?;
    let findings = check.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    match findings.as_slice() {
        [ok] if ok == "ok" => Ok(()),
        findings => Err(LogError::Damaged(findings.join("; "))),
    }
}
