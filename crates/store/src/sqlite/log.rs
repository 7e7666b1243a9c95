//! The log on disk: one row per change, in commit order, and the two numbers that bound it.
//!
//! A row knows the revision of the value it replaced, so the values of a key form a chain from newest to oldest, and
//! no index is needed: writing is appending, and sweeping is one walk from old to new. Every row carries a checksum
//! over all of its columns; what does not match is reported as damage and never returned.

use crate::data::Commit;
use crate::{Change, Error, Item, KeyValue, Revision};
use ambient::Timestamp;
use bytes::Bytes;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Statement};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Row numbers are `revision * POSITIONS + position`: the changes of a transaction are neighbours.
const POSITIONS: u64 = 256;
/// Rises when the tables change in a way older programs cannot read.
const FORMAT: i64 = 1;
const APPLICATION_ID: i64 = 0x5e79_0127;
/// Twice SQLite's default: objects of one to four kilobytes fill such a page better, and group commits write as fast.
pub(super) const PAGE_BYTES: u64 = 8192;
/// Pages that a connection caches: live data is served from memory, so the cache only spares the tree's spine.
const CACHED_PAGES: i64 = 256;
/// A longer write-ahead log than this (one that a long read kept from being started over) is cut when it is.
const KEPT_WAL_BYTES: u64 = 64 << 20;

const TABLES: &str = "
    CREATE TABLE log (
        id       INTEGER PRIMARY KEY,  -- revision * 256 + position in the transaction
        at       INTEGER NOT NULL,     -- when, in milliseconds since 1970
        previous INTEGER NOT NULL,     -- revision of the value this one replaced; 0 if none
        created  INTEGER NOT NULL,     -- revision at which the key came into being; 0 for a deletion
        version  INTEGER NOT NULL,     -- puts since then; 0 for a deletion
        expires  INTEGER NOT NULL,     -- when the key expires; 0 if never
        checksum INTEGER NOT NULL,     -- over all other columns
        key      BLOB NOT NULL,
        value    BLOB                  -- NULL for a deletion
    ) STRICT;
    CREATE TABLE bounds (
        one       INTEGER PRIMARY KEY CHECK (one = 1),
        compacted INTEGER NOT NULL,    -- the oldest kept revision
        base      INTEGER NOT NULL,    -- the current revision is never below this
        checksum  INTEGER NOT NULL
    ) STRICT;";

#[derive(Debug, thiserror::Error)]
pub(super) enum LogError {
    #[error("{0}{call}", call = failed_call(.0))]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Damaged(String),
    #[error("{0}")]
    Unusable(String),
}

impl LogError {
    /// Whether the file is wrong, rather than the disk or the request.
    pub(super) fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match self {
            LogError::Damaged(_) => true,
            LogError::Sqlite(error) => matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase)),
            LogError::Unusable(_) => false,
        }
    }

    /// The error of a store that cannot be opened because of this.
    pub(super) fn on_opening(&self, path: &Path) -> Error {
        match self.is_damage() {
            true => Error::Damaged { path: path.to_owned(), what: self.to_string() },
            false => Error::Open { path: path.to_owned(), what: self.to_string() },
        }
    }
}

/// What the system refused to do, which SQLite's own message ("disk I/O error") keeps to itself.
fn failed_call(error: &rusqlite::Error) -> String {
    use rusqlite::ffi;
    let code = error.sqlite_error().map_or(0, |error| error.extended_code);
    match code {
        ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ => " (a read failed)".to_owned(),
        ffi::SQLITE_IOERR_WRITE => " (a write failed)".to_owned(),
        ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC => " (a sync failed)".to_owned(),
        ffi::SQLITE_IOERR_TRUNCATE => " (cutting a file failed)".to_owned(),
        code if code & 0xff == ffi::SQLITE_IOERR => format!(" (SQLite's code {code})"),
        _ => String::new(),
    }
}

pub(super) type LogResult<T> = Result<T, LogError>;

/// Which revisions the log covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The oldest kept revision: everything replaced or deleted at or before it has been swept.
    pub(super) compacted: Revision,
    /// The current revision is never below this, even with an empty log.
    pub(super) base: Revision,
}

/// One change as the log has it.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) revision: Revision,
    pub(super) previous: Option<Revision>,
    pub(super) key: Bytes,
    pub(super) current: Option<Item>,
}

/// Opens a connection for the writer, creating the tables in a new file.
pub(super) fn open_for_writing(path: &Path) -> LogResult<Connection> {
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    match db.pragma_query_value(None, "application_id", |row| row.get::<_, i64>(0))? {
        APPLICATION_ID => check_format(&db)?,
        0 if is_empty(&db)? => {}
        _ => return Err(LogError::Unusable("the file is some other program's database".to_owned())),
    }
    let mode: String = db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(LogError::Unusable(format!("the file system does not support a write-ahead log ({mode})")));
    }
    db.pragma_update(None, "synchronous", "FULL")?;
    // Checkpoints are made by a thread of their own, so that they never stall a commit.
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    db.pragma_update(None, "journal_size_limit", KEPT_WAL_BYTES)?;
    if is_empty(&db)? {
        create_tables(&db)?;
    }
    Ok(db)
}

/// Opens a connection that can look but not touch.
pub(super) fn open_for_reading(path: &Path) -> LogResult<Connection> {
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    check_format(&db)?;
    Ok(db)
}

fn connect(path: &Path, flags: OpenFlags) -> LogResult<Connection> {
    let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(Duration::from_secs(5))?;
    db.pragma_update(None, "page_size", PAGE_BYTES)?;
    db.pragma_update(None, "cache_size", CACHED_PAGES)?;
    db.pragma_update(None, "cell_size_check", true)?;
    // SQLite would move and delete the write-ahead log when its last connection closes, even one that has just been
    // found to be damaged. A store does that itself, when it closes in order.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(db)
}

/// How many whole frames the write-ahead log has.
pub(super) fn wal_frames(db: &Connection) -> LogResult<u64> {
    let frames: i64 = db.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))?;
    Ok(u64::try_from(frames).unwrap_or(0))
}

/// Moves all of the write-ahead log into the database; once `settled` has taken note of that, the file is deleted.
/// Only for the last connection.
pub(super) fn settle(db: Connection, settled: impl FnOnce() -> std::io::Result<()>) -> LogResult<()> {
    let (frames, moved): (i64, i64) =
        db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(1)?, row.get(2)?)))?;
    if frames == moved {
        settled().map_err(|error| LogError::Unusable(format!("cannot note that the log is settled: {error}")))?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    }
    db.close().map_err(|(_, error)| error.into())
}

fn is_empty(db: &Connection) -> LogResult<bool> {
    Ok(db.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?)
}

fn check_format(db: &Connection) -> LogResult<()> {
    match db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? {
        FORMAT => Ok(()),
        found => Err(LogError::Unusable(format!(
            "the file has format {found}, this program reads format {FORMAT}: use the version that wrote it"
        ))),
    }
}

fn create_tables(db: &Connection) -> LogResult<()> {
    db.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT};"
    ))?;
    write_bounds(db, Bounds { compacted: Revision::ZERO, base: Revision::ZERO })?;
    db.execute_batch("COMMIT")?;
    Ok(())
}

pub(super) fn read_bounds(db: &Connection) -> LogResult<Bounds> {
    let found = db.prepare_cached("SELECT compacted, base, checksum FROM bounds WHERE one = 1")?.query_row([], |row| {
        let bounds = Bounds { compacted: Revision(row.get(0)?), base: Revision(row.get(1)?) };
        Ok((bounds, row.get::<_, u32>(2)?))
    });
    match found.optional()? {
        Some((bounds, checksum)) if checksum == bounds_checksum(bounds) => Ok(bounds),
        _ => Err(LogError::Damaged("the bounds of the log do not match their checksum".to_owned())),
    }
}

pub(super) fn write_bounds(db: &Connection, bounds: Bounds) -> LogResult<()> {
    db.prepare_cached("INSERT OR REPLACE INTO bounds (one, compacted, base, checksum) VALUES (1, ?, ?, ?)")?
        .execute((bounds.compacted.0, bounds.base.0, bounds_checksum(bounds)))?;
    Ok(())
}

fn bounds_checksum(bounds: Bounds) -> u32 {
    checksum(&[bounds.compacted.0, bounds.base.0], &[], None)
}

const INSERT: &str = "INSERT INTO log (id, at, previous, created, version, expires, checksum, key, value)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// Appends all changes of a commit.
pub(super) fn append(db: &Connection, commit: &Commit) -> LogResult<()> {
    let mut insert = db.prepare_cached(INSERT)?;
    for (position, change) in commit.changes.iter().enumerate() {
        let previous = change.previous.as_ref().map(|item| item.mod_revision);
        let id = first_id(commit.revision) + position as u64;
        insert_row(&mut insert, id, commit.at, previous, &change.key, change.current.as_deref())?;
    }
    Ok(())
}

/// Writes an item as the oldest one known of its key: how a restored store begins.
pub(super) fn append_base(db: &Connection, item: &KeyValue, position: u64) -> LogResult<()> {
    let mut insert = db.prepare_cached(INSERT)?;
    let id = first_id(item.mod_revision) + position;
    insert_row(&mut insert, id, Timestamp(0), None, &item.key, Some(item))
}

fn insert_row(
    insert: &mut Statement<'_>,
    id: u64,
    at: Timestamp,
    previous: Option<Revision>,
    key: &[u8],
    current: Option<&KeyValue>,
) -> LogResult<()> {
    let previous = previous.map_or(0, |revision| revision.0);
    let (created, version, expires) = current.map_or((0, 0, 0), |item| {
        (item.create_revision.0, item.version, item.expires.map_or(0, |deadline| deadline.0))
    });
    let value = current.map(|item| item.value.as_ref());
    let sum = checksum(&[id, at.0, previous, created, version, expires], key, value);
    insert.execute((id, at.0, previous, created, version, expires, sum, key, value))?;
    Ok(())
}

fn checksum(numbers: &[u64], key: &[u8], value: Option<&[u8]>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    numbers.iter().for_each(|number| hasher.update(&number.to_le_bytes()));
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key);
    hasher.update(&[u8::from(value.is_some())]);
    hasher.update(value.unwrap_or_default());
    hasher.finalize()
}

/// What a row takes up on disk: as many of its size share a page as fit, and a larger one takes whole pages.
pub(super) fn row_bytes(key: usize, value: usize) -> u64 {
    const BESIDE_KEY_AND_VALUE: u64 = 40;
    const USABLE: u64 = PAGE_BYTES - 16;
    let row = BESIDE_KEY_AND_VALUE + (key + value) as u64;
    match USABLE / row {
        0 => row.div_ceil(USABLE) * PAGE_BYTES,
        fitting => PAGE_BYTES / fitting,
    }
}

/// The first row number a revision can have.
pub(super) fn first_id(revision: Revision) -> u64 {
    revision.0 * POSITIONS
}

pub(super) fn revision_of(id: u64) -> Revision {
    Revision(id / POSITIONS)
}

/// The columns that [`revision_in`], [`key_in`] and [`record`] read, in this order.
pub(super) const COLUMNS: &str = "id, previous, key, at, created, version, expires, checksum, value";

pub(super) fn revision_in(row: &Row<'_>) -> LogResult<Revision> {
    Ok(revision_of(row.get(0)?))
}

pub(super) fn key_in<'a>(row: &'a Row<'_>) -> LogResult<&'a [u8]> {
    row.get_ref(2)?.as_blob().map_err(|_| LogError::Damaged("a row of the log has no key".to_owned()))
}

/// A row that matches its checksum, still in SQLite's memory.
#[derive(Debug)]
pub(super) struct Checked<'a> {
    /// All columns but the checksum, the key and the value, in the order in which the checksum takes them.
    numbers: [u64; 6],
    pub(super) key: &'a [u8],
    pub(super) value: Option<&'a [u8]>,
}

/// Reads a whole row and checks it.
pub(super) fn check<'a>(row: &'a Row<'_>) -> LogResult<Checked<'a>> {
    let id: u64 = row.get(0)?;
    let revision = revision_of(id);
    let numbers = (|| Ok([id, row.get(3)?, row.get(1)?, row.get(4)?, row.get(5)?, row.get(6)?]))();
    let (key, value) = (row.get_ref(2)?.as_blob_or_null(), row.get_ref(8)?.as_blob_or_null());
    let sum = row.get::<_, u32>(7);
    let (Ok(numbers), Ok(Some(key)), Ok(value), Ok(sum)) = (numbers.map_err(|_: rusqlite::Error| ()), key, value, sum)
    else {
        return Err(LogError::Damaged(format!("the row of revision {revision} has a column of the wrong type")));
    };
    if sum != checksum(&numbers, key, value) {
        return Err(LogError::Damaged(format!("the row of revision {revision} does not match its checksum")));
    }
    Ok(Checked { numbers, key, value })
}

/// Reads a whole row, checks it and takes it out of SQLite's memory.
pub(super) fn record(row: &Row<'_>) -> LogResult<Record> {
    check(row).map(Checked::into_record)
}

impl Checked<'_> {
    pub(super) fn revision(&self) -> Revision {
        revision_of(self.numbers[0])
    }

    pub(super) fn into_record(self) -> Record {
        let revision = self.revision();
        let [_, _, previous, created, version, expires] = self.numbers;
        let key = Bytes::copy_from_slice(self.key);
        let current = self.value.map(|value| {
            Arc::new(KeyValue {
                key: key.clone(),
                value: Bytes::copy_from_slice(value),
                create_revision: Revision(created),
                mod_revision: revision,
                version,
                expires: Some(expires).filter(|deadline| *deadline != 0).map(Timestamp),
            })
        });
        Record { revision, previous: Some(previous).filter(|revision| *revision != 0).map(Revision), key, current }
    }
}

/// The value that `key` was given at `revision`.
pub(super) fn item_at(db: &Connection, revision: Revision, key: &[u8]) -> LogResult<Item> {
    let mut select = db.prepare_cached(&format!("SELECT {COLUMNS} FROM log WHERE id >= ? AND id < ? AND key = ?"))?;
    let mut rows = select.query((first_id(revision), first_id(revision.next()), key))?;
    let found = rows.next()?.map(record).transpose()?.and_then(|record| record.current);
    found.ok_or_else(|| LogError::Damaged(format!("the value of revision {revision} is missing from the log")))
}

impl Record {
    /// The change a watcher sees; `previous` is read only where it is asked for.
    pub(super) fn into_change(self, db: &Connection, with_previous: bool) -> LogResult<Change> {
        let previous = self.previous.filter(|_| with_previous);
        let previous = previous.map(|revision| item_at(db, revision, &self.key)).transpose()?;
        Ok(Change { revision: self.revision, key: self.key, current: self.current, previous })
    }
}
