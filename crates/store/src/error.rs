//! What can go wrong, told apart by what the caller can do about it.

use crate::Revision;
use std::path::PathBuf;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Read the current state and start over from there.
    #[error("revision {requested} has been compacted, the oldest one kept is {compacted}")]
    Compacted { requested: Revision, compacted: Revision },

    #[error("revision {requested} is in the future, the current one is {current}")]
    FutureRevision { requested: Revision, current: Revision },

    /// The request can never succeed as it is.
    #[error("invalid request: {0}")]
    Invalid(String),

    #[error("the request has {bytes} bytes, the limit is {limit}")]
    TooLarge { bytes: usize, limit: usize },

    /// Nothing was changed; try again later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),

    /// The write may or may not have happened: look before trying again.
    #[error("the outcome of the write is unknown: {0}")]
    Unknown(String),

    /// A write or fsync failed, so nothing more is acknowledged. The process should exit and recover.
    #[error("the store has failed and acknowledges nothing more: {0}")]
    Failed(String),

    /// What is on disk is not what was written.
    #[error("the data in {} is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },

    /// The directory cannot be opened as a store, for a reason the message names.
    #[error("cannot open the store in {}: {what}", path.display())]
    Open { path: PathBuf, what: String },

    #[error("the store is closed")]
    Closed,
}
