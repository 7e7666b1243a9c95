//! Conversions between the versions of a kind.

use object::Value;

/// Turns an object of one version into one of another.
pub fn convert(_value: &mut Value, _from: &str, _to: &str, _kind: &str) {}
