//! The vocabulary of the Kubernetes API: names, selectors, quantities, field errors, statuses. Pure, no I/O.
//!
//! Everything here follows the words and messages of Kubernetes, because clients match on them.

pub mod base64;
pub mod cron;
pub mod field;
pub mod json;
mod log;
pub mod name;
pub mod quantity;
pub mod selector;
mod status;
pub mod time;
mod value;
mod view;

pub use log::LogExcerpt;
pub use quantity::Quantity;
pub use status::{ApiError, Cause, Reason};
pub(crate) use value::Reader;
pub use value::{FieldName, Map, Number, Value, from_value, to_value};
pub use view::{Edit, View};
