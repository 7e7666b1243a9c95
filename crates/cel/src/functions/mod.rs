//! The functions: tables of rows, one file for each area.
//!
//! An implementation is called with arguments its signature allows. It still matches on them, and has
//! [`unsuitable`] for what cannot be.

pub(crate) mod conversions;
mod formats;
mod formatting;
mod lists;
mod logic;
mod network;
mod operators;
mod optionals;
pub(crate) mod quantities;
pub(crate) mod regex;
pub(crate) mod semver;
pub(crate) mod strings;
mod times;
mod url;

use crate::environment::Row;
use crate::value::Error;

/// What every environment has.
pub(crate) const TABLES: [&[Row]; 18] = [
    logic::TABLE,
    operators::TABLE,
    operators::COMPARISONS,
    conversions::TABLE,
    strings::TABLE,
    formatting::TABLE,
    regex::TABLE,
    times::TABLE,
    times::SPANS,
    lists::TABLE,
    lists::SETS,
    optionals::TABLE,
    network::TABLE,
    quantities::TABLE,
    semver::TABLE,
    url::TABLE,
    formats::TABLE,
    &formats::NAMED,
];

/// Types that are known by name only.
pub(crate) const ABSTRACT_TYPES: [&str; 6] =
    [network::IP, network::CIDR, quantities::QUANTITY, semver::SEMVER, url::URL, formats::FORMAT];

pub(crate) fn unsuitable() -> Error {
    Error::new("no such overload")
}
