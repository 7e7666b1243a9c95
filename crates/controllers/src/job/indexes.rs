//! Sets of completion indexes, kept as intervals because there may be a hundred thousand: `0-4,6,8,9`.

use std::fmt;

/// Intervals in order, with a gap between any two. Both ends belong to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(i32, i32)>);

impl Indexes {
    /// Reads the text of a status; what is not below `completions`, or makes no sense, is left out.
    pub(super) fn parse(text: &str, completions: i32) -> Self {
        let interval = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last) = (first.parse::<i32>().ok()?, last.parse::<i32>().ok()?);
            (first < completions && first <= last).then(|| (first, last.min(completions - 1)))
        };
        Indexes(Vec::new()).union(text.split(',').filter_map(interval))
    }

    fn union(&self, others: impl IntoIterator<Item = (i32, i32)>) -> Self {
        let mut all: Vec<_> = self.0.iter().copied().chain(others).collect();
        all.sort_unstable();
        let mut merged: Vec<(i32, i32)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        Indexes(merged)
    }

    pub(super) fn with(&self, indexes: impl IntoIterator<Item = i32>) -> Self {
        self.union(indexes.into_iter().map(|index| (index, index)))
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        self.union(other.0.iter().copied())
    }

    pub(super) fn len(&self) -> i32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, index: i32) -> bool {
        let after = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(after).is_some_and(|(first, _)| *first <= index)
    }

    /// How many indexes are in both.
    pub(super) fn shared(&self, other: &Self) -> i32 {
        let overlap = |a: &(i32, i32), b: &(i32, i32)| (a.1.min(b.1) - a.0.max(b.0) + 1).max(0);
        let overlaps = |a: &(i32, i32)| {
            let from = other.0.partition_point(|(_, last)| *last < a.0);
            let near = other.0[from..].iter().take_while(|b| b.0 <= a.1);
            near.map(|b| overlap(a, b)).sum::<i32>()
        };
        self.0.iter().map(overlaps).sum()
    }

    /// The first indexes below `completions` that are not in it.
    pub(super) fn missing(&self, completions: i32, count: usize) -> Vec<i32> {
        let mut missing = Vec::new();
        let mut next = 0;
        let end = (completions, completions);
        for (first, last) in self.0.iter().copied().chain([end]) {
            let room = count - missing.len();
            missing.extend((next..first.min(completions)).take(room));
            next = next.max(last.saturating_add(1));
        }
        missing
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_and_written_as_statuses_have_them() {
        for (text, completions, canonical, total) in [
            ("", 5, "", 0),
            ("0", 5, "0", 1),
            ("0,1", 5, "0,1", 2),
            ("0-2,3", 5, "0-3", 4),
            ("1,3-5,7", 5, "1,3,4", 3),
            ("x,2", 5, "2", 1),
            ("4-2", 5, "", 0),
        ] {
            let indexes = Indexes::parse(text, completions);
            assert_eq!((indexes.to_string().as_str(), indexes.len()), (canonical, total), "{text:?}");
        }
    }

    #[test]
    fn sets_are_joined_and_compared() {
        let some = Indexes::parse("0-2,5,9", 10);
        assert_eq!(some.with([4, 3]).to_string(), "0-5,9");
        assert_eq!(some.and(&Indexes::parse("3,4,6-8", 10)).to_string(), "0-9");
        assert!(some.has(1) && some.has(5) && !some.has(3) && !some.has(10));
        assert_eq!(some.shared(&Indexes::parse("2-5,8-9", 10)), 3);
        assert_eq!(some.missing(10, 10), [3, 4, 6, 7, 8]);
        assert_eq!(some.missing(10, 2), [3, 4]);
        assert_eq!(some.missing(2, 5), [] as [i32; 0]);
        assert_eq!(Indexes::default().missing(3, 5), [0, 1, 2]);
    }
}
