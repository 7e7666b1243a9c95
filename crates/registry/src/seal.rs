//! How values are kept at rest: some resources are encrypted before they reach the store.

use crate::stored::Unreadable;
use bytes::Bytes;

/// Turns what is served into what is stored, and back.
pub trait Seal: std::fmt::Debug + Send + Sync + 'static {
    fn seal(&self, key: &[u8], value: Bytes) -> Bytes;

    fn open(&self, key: &[u8], value: &Bytes) -> Result<Bytes, Unreadable>;

    /// Whether a stored value is as it would be stored now.
    fn is_current(&self, key: &[u8], value: &[u8]) -> bool;
}

/// Everything is stored as it is.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Seal for Plain {
    fn seal(&self, _: &[u8], value: Bytes) -> Bytes {
        value
    }

    fn open(&self, _: &[u8], value: &Bytes) -> Result<Bytes, Unreadable> {
        Ok(value.clone())
    }

    fn is_current(&self, _: &[u8], _: &[u8]) -> bool {
        true
    }
}
