//! Room in the write-ahead log, made before it is needed.
//!
//! Syncing a file that has grown writes its metadata besides its data, one after the other, which makes a lone commit
//! wait half as long again. So while little is written, zeros are put behind the log between two commits, for frames to
//! overwrite. Where much is written, many commits share a sync, and the zeros would only be one more thing to write.
//! SQLite takes the first frame that is not whole for the end of the log, and zeros are none. Where there is no room
//! the log grows as it always would; after it has been started over for the first time it is long enough anyway.
//!
//! Only the writer's thread may call this: whoever else appended could overwrite a frame.

use super::log::{LogError, LogResult, PAGE_BYTES};
use super::watermark::WAL_HEADER_BYTES;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// In front of the page in each frame.
const FRAME_HEADER_BYTES: u64 = 24;
/// Room is made when there is less, and so much of it: some hundred commits' worth.
const LOW_BYTES: u64 = 256 << 10;
const STEP_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Room {
    path: PathBuf,
    /// Opened when it is first needed: SQLite makes the file.
    file: Option<File>,
    /// The file is at least so long, as far as is known.
    length: u64,
    /// No room is made beyond this: the log is started over before.
    enough: u64,
}

impl Room {
    /// Room in the write-ahead log at `path` for so many pages, in time.
    pub(super) fn new(path: PathBuf, pages: u64) -> Self {
        Room { path, file: None, length: 0, enough: end_of(pages) }
    }

    /// Whether to make room, with so many pages in the log.
    pub(super) fn is_short(&self, pages: u64) -> bool {
        pages > 0 && self.length < self.enough && self.length < end_of(pages) + LOW_BYTES
    }

    /// Makes some. Where the disk has no room either, commits will say so when they need it.
    pub(super) fn make(&mut self, pages: u64) -> LogResult<()> {
        match self.grow(pages) {
            Ok(None) => Ok(()),
            // What cannot be synced here may be lost anywhere: as with any other sync, nothing goes on after it.
            Ok(Some(grown)) => grown
                .sync_data()
                .map_err(|error| LogError::Unusable(format!("cannot sync room in the write-ahead log: {error}"))),
            Err(error) => {
                tracing::debug!(%error, "no room can be made in the write-ahead log");
                self.length = self.enough;
                Ok(())
            }
        }
    }

    /// Appends zeros unless the file is long enough as it is; returns it if it has grown.
    fn grow(&mut self, pages: u64) -> std::io::Result<Option<&File>> {
        if self.file.is_none() {
            self.file = Some(OpenOptions::new().read(true).write(true).open(&self.path)?);
        }
        let Some(file) = &self.file else { return Ok(None) };
        self.length = file.metadata()?.len();
        if !self.is_short(pages) {
            return Ok(None);
        }
        let zeros = vec![0; STEP_BYTES as usize];
        file.write_all_at(&zeros, self.length)?;
        self.length += STEP_BYTES;
        Ok(self.file.as_ref())
    }
}

/// Where a log of so many pages ends.
fn end_of(pages: u64) -> u64 {
    WAL_HEADER_BYTES as u64 + pages * (FRAME_HEADER_BYTES + PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_behind_what_is_there_when_little_is_left_and_no_more_than_is_needed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wal");
        let log = vec![7; end_of(3) as usize];
        std::fs::write(&path, &log).unwrap();
        let mut room = Room::new(path.clone(), 300);
        let length = || path.metadata().unwrap().len();
        assert!(!room.is_short(0), "nothing has been written yet");
        assert!(room.is_short(3));
        room.make(3).unwrap();
        assert_eq!(length(), end_of(3) + STEP_BYTES);
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.starts_with(&log) && bytes[log.len()..].iter().all(|byte| *byte == 0));
        assert!(!room.is_short(4));
        let pages_until_low = (STEP_BYTES - LOW_BYTES) / (FRAME_HEADER_BYTES + PAGE_BYTES) + 4;
        assert!(room.is_short(pages_until_low));
        for pages in [pages_until_low, 290, 299] {
            while room.is_short(pages) {
                room.make(pages).unwrap();
            }
        }
        assert!((end_of(300)..end_of(300) + STEP_BYTES).contains(&length()), "{} bytes", length());
    }

    #[test]
    fn a_log_that_is_long_enough_is_left_alone_and_one_that_cannot_grow_does_without() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wal");
        std::fs::write(&path, vec![7; (2 * STEP_BYTES) as usize]).unwrap();
        let mut room = Room::new(path.clone(), 2000);
        room.make(1).unwrap();
        assert_eq!(path.metadata().unwrap().len(), 2 * STEP_BYTES);
        assert!(!room.is_short(1));
        let mut nowhere = Room::new(dir.path().join("missing/wal"), 2000);
        nowhere.make(1).unwrap();
        assert!(!nowhere.is_short(1), "it is not tried again and again");
    }
}
