//! What of a log somebody wants to see.

/// Everything, unless it says less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogExcerpt {
    /// Goes on with what is written from now on, until the container ends.
    pub follow: bool,
    /// Of the run before this one.
    pub previous: bool,
    pub timestamps: bool,
    /// Nothing older, in seconds since 1970.
    pub since: Option<i64>,
    /// Only so many of the last lines.
    pub tail_lines: Option<u64>,
    /// No more than that.
    pub limit_bytes: Option<u64>,
}
