//! Patches: JSON patch (RFC 6902), merge patch (RFC 7396) and Kubernetes' strategic merge patch.
//!
//! Server-side apply is not here: it needs to know who owns what.

mod json;
mod merge;
mod strategic;

pub use json::{MAX_OPERATIONS, json_patch};
pub use merge::merge_patch;
pub use strategic::strategic_merge_patch;

/// A patch that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself makes no sense.
    #[error("{0}")]
    Malformed(String),
    /// It has more operations, or makes a larger object, than is allowed.
    #[error("{0}")]
    TooLarge(String),
    /// It does not fit the object.
    #[error("{0}")]
    Unprocessable(String),
}
