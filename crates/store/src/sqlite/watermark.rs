//! How far writes were acknowledged, noted in a file beside the log after every group of them.
//!
//! SQLite takes a cut or damaged write-ahead log for one that ends there. The note tells them apart. It is written after
//! the log's fsync and not synced itself, so it promises at most what is durable: whatever a crash leaves of it, a log
//! that holds less has lost acknowledged writes.
//!
//! It has to name a place in the write-ahead log and not just a revision. After a checkpoint the database may be at the
//! newest revision by itself, and what is left of a damaged write-ahead log would put old pages over newer ones.

use super::files::{DataDir, NOTE, open_error, private_file};
use crate::{Error, Result, Revision};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The bytes of a note: revision, salts, frames, and a checksum over them.
const NOTE_BYTES: usize = 28;
/// The bytes in front of a write-ahead log's frames.
pub(super) const WAL_HEADER_BYTES: usize = 32;

#[derive(Debug)]
pub(super) struct Watermark {
    file: File,
    wal: PathBuf,
    /// Opened when it is first needed: SQLite makes the file.
    open_wal: Option<File>,
}

/// Everything up to `revision` is in the database and the first `frames` frames of the write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Note {
    revision: Revision,
    /// Which write-ahead log: SQLite draws new ones when it starts over, all of the old one being in the database.
    salts: u64,
    frames: u64,
}

impl Note {
    fn to_bytes(self) -> [u8; NOTE_BYTES] {
        let mut bytes = [0; NOTE_BYTES];
        bytes[..8].copy_from_slice(&self.revision.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.salts.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.frames.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..24]);
        bytes[24..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// None if the bytes are not what was written.
    fn from_bytes(bytes: &[u8; NOTE_BYTES]) -> Option<Note> {
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let intact = crc32fast::hash(&bytes[..24]).to_le_bytes() == bytes[24..];
        let note = Note { revision: Revision(number(0)?), salts: number(8)?, frames: number(16)? };
        intact.then_some(note)
    }
}

impl Watermark {
    pub(super) fn open(dir: &DataDir) -> Result<Self> {
        let file = private_file(&dir.note()).map_err(|error| unreadable(dir, &error))?;
        Ok(Watermark { file, wal: dir.wal(), open_wal: None })
    }

    /// The note made last; none if there is none or the system crashed before it reached the disk.
    fn read(&self) -> io::Result<Option<Note>> {
        let mut bytes = [0; NOTE_BYTES];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(Note::from_bytes(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Notes what is durable now, with that many frames in the write-ahead log.
    pub(super) fn write(&mut self, revision: Revision, frames: u64) -> io::Result<()> {
        if self.open_wal.is_none() {
            self.open_wal = Some(File::open(&self.wal)?);
        }
        let salts = self.open_wal.as_ref().map_or(Ok(None), salts)?;
        let salts = salts.ok_or_else(|| io::Error::other("the write-ahead log has no header"))?;
        self.file.write_all_at(&Note { revision, salts, frames }.to_bytes(), 0)
    }

    /// Notes that nothing in the write-ahead log is needed any more. Durable when it returns: the file may go then.
    pub(super) fn write_settled(&self) -> io::Result<()> {
        if let Some(note) = self.read()? {
            self.file.write_all_at(&Note { salts: 0, frames: 0, ..note }.to_bytes(), 0)?;
        }
        self.file.sync_all()
    }

    /// Before SQLite touches anything: without a database it would make a new one and delete the write-ahead log.
    pub(super) fn check_present(&self, dir: &DataDir) -> Result<()> {
        let length = |path: PathBuf| match path.metadata() {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(unreadable(dir, &error)),
        };
        let noted = self.read().map_err(|error| unreadable(dir, &error))?.is_some();
        match length(dir.log())? == 0 && (noted || length(dir.wal())? > 0) {
            true => Err(damaged(dir, "the database is empty or missing, and there was something in it")),
            false => Ok(()),
        }
    }

    /// Before anything is read: compares the note with the number of whole frames that SQLite found.
    pub(super) fn check_wal(&self, dir: &DataDir, frames: u64) -> Result<()> {
        let noted = self.read().map_err(|error| unreadable(dir, &error))?;
        let Some(note) = noted.filter(|note| note.frames > frames) else { return Ok(()) };
        let found = match File::open(&self.wal) {
            Ok(file) => salts(&file).map_err(|error| unreadable(dir, &error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(dir, &error)),
        };
        match found {
            // Started over since, just before the system crashed.
            Some(salts) if salts != note.salts => Ok(()),
            _ => Err(lost(dir, &format!("only {frames} of {} pages in the write-ahead log are whole", note.frames))),
        }
    }

    /// Compares the note with the revision that was recovered.
    pub(super) fn check_revision(&self, dir: &DataDir, recovered: Revision) -> Result<()> {
        let noted = self.read().map_err(|error| unreadable(dir, &error))?;
        match noted.map(|note| note.revision) {
            Some(acknowledged) if acknowledged > recovered => {
                Err(lost(dir, &format!("the log ends at revision {recovered}, not at {acknowledged}")))
            }
            _ => Ok(()),
        }
    }
}

/// What tells a write-ahead log from the one before; none if its header is not whole.
fn salts(wal: &File) -> io::Result<Option<u64>> {
    let mut header = [0; WAL_HEADER_BYTES];
    match wal.read_exact_at(&mut header, 0) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let words: Vec<u32> =
        header.chunks_exact(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]])).collect();
    // The lowest bit of the magic number says in which byte order SQLite summed.
    let summed = |word: &u32| if words[0] & 1 == 1 { *word } else { word.swap_bytes() };
    let sum = words[..6].chunks_exact(2).fold((0_u32, 0_u32), |(first, second), pair| {
        let first = first.wrapping_add(summed(&pair[0])).wrapping_add(second);
        (first, second.wrapping_add(summed(&pair[1])).wrapping_add(first))
    });
    let whole = sum == (words[6], words[7]);
    Ok(whole.then_some(u64::from(words[4]) << 32 | u64::from(words[5])))
}

fn unreadable(dir: &DataDir, error: &io::Error) -> Error {
    open_error(dir.path(), format!("what was acknowledged cannot be found out: {error}"))
}

fn damaged(dir: &DataDir, what: &str) -> Error {
    Error::Damaged { path: dir.path().to_owned(), what: what.to_owned() }
}

fn lost(dir: &DataDir, what: &str) -> Error {
    let way_out = format!("restore a backup, or delete the file {NOTE:?} to go on without what is missing");
    damaged(dir, &format!("{what}, so acknowledged writes are missing; {way_out}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_with_a_flipped_bit_is_none() {
        let note = Note { revision: Revision(7), salts: 0x0102_0304_0506_0708, frames: 3 };
        let bytes = note.to_bytes();
        assert_eq!(Note::from_bytes(&bytes), Some(note));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Note::from_bytes(&flipped), None, "bit {bit}");
        }
    }
}
