//! What a worker says, one line each: it announces an action before it sends it and reports how it was answered.
//!
//! A line is written with one system call and is shorter than what a pipe takes atomically, so whatever moment the
//! worker dies at, the listener has whole lines, and an answer counts from the moment its line is in the pipe.

use ambient::Random;
use bytes::Bytes;
use std::fmt;
use std::time::Duration;
use store::{Revision, Txn};

/// The keys of a group are always written together and must always agree.
pub const GROUP_MEMBERS: [&str; 4] = ["a", "b", "c", "d"];
/// Keys under this prefix expire so soon that they may be gone at any time.
pub const FLEETING: &str = "fleeting/";
const FLEETING_TTL: Duration = Duration::from_millis(20);
/// Keys under this prefix have a time to live, but will not see the end of it.
pub const LEASED: &str = "leased/";
const LEASED_TTL: Duration = Duration::from_secs(36_000);
const GROUP: &str = "group/";

/// Something a writer does, apart from the condition it may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Put {
        key: String,
        bytes: usize,
    },
    /// A put that holds only if nobody came in between.
    Swap {
        key: String,
        bytes: usize,
    },
    Delete {
        key: String,
    },
    PutGroup {
        group: u64,
        bytes: usize,
    },
    DeleteGroup {
        group: u64,
    },
}

impl Action {
    /// What it does to each key, if it happens: the new value, or none for a deletion.
    pub fn effects(&self, operation: u64) -> Vec<(Bytes, Option<Bytes>)> {
        let single = |key: &String, value| vec![(Bytes::from(key.clone()), value)];
        match self {
            Action::Put { key, bytes } | Action::Swap { key, bytes } => single(key, Some(value(operation, *bytes))),
            Action::Delete { key } => single(key, None),
            Action::PutGroup { group, bytes } => {
                let value = value(operation, *bytes);
                members(*group).map(|key| (key, Some(value.clone()))).collect()
            }
            Action::DeleteGroup { group } => members(*group).map(|key| (key, None)).collect(),
        }
    }

    pub fn transaction(&self, operation: u64) -> Txn {
        self.effects(operation).into_iter().fold(Txn::default(), |txn, (key, value)| match value {
            Some(value) if key.starts_with(FLEETING.as_bytes()) => txn.and_put_for(key, value, FLEETING_TTL),
            Some(value) if key.starts_with(LEASED.as_bytes()) => txn.and_put_for(key, value, LEASED_TTL),
            Some(value) => txn.and_put(key, value),
            None => txn.and_delete(key),
        })
    }
}

fn members(group: u64) -> impl Iterator<Item = Bytes> {
    GROUP_MEMBERS.iter().map(move |member| Bytes::from(format!("{GROUP}{group}/{member}")))
}

/// The group a key belongs to, if any.
pub fn group_of(key: &[u8]) -> Option<&[u8]> {
    let rest = key.strip_prefix(GROUP.as_bytes())?;
    rest.split(|byte| *byte == b'/').next()
}

/// The value that an operation puts: unlike any other operation's, and known from its number and size.
pub fn value(operation: u64, bytes: usize) -> Bytes {
    let mut value = format!("{operation}:").into_bytes();
    let named = value.len();
    value.resize(named.max(bytes), 0);
    Random::seeded(operation).fill(&mut value[named..]);
    Bytes::from(value)
}

/// One line from a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The store is open, at this revision.
    Ready(Revision),
    /// The store could not be opened.
    Unopened(String),
    Sent {
        operation: u64,
        action: Action,
    },
    Acknowledged {
        operation: u64,
        revision: Revision,
    },
    /// Answered, and nothing was changed.
    Conflict {
        operation: u64,
    },
    /// Not acknowledged: it may have happened or not.
    Refused {
        operation: u64,
        error: String,
    },
    /// A compaction was acknowledged.
    Compacted(Revision),
    /// The store says that it has failed.
    Failed(String),
    /// Everything that was to be done was answered.
    Done,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Ready(revision) => write!(f, "ready {revision}"),
            Line::Unopened(error) => write!(f, "unopened {}", error.replace('\n', " ")),
            Line::Sent { operation, action } => match action {
                Action::Put { key, bytes } => write!(f, "sent {operation} put {key} {bytes}"),
                Action::Swap { key, bytes } => write!(f, "sent {operation} swap {key} {bytes}"),
                Action::Delete { key } => write!(f, "sent {operation} delete {key}"),
                Action::PutGroup { group, bytes } => write!(f, "sent {operation} put-group {group} {bytes}"),
                Action::DeleteGroup { group } => write!(f, "sent {operation} delete-group {group}"),
            },
            Line::Acknowledged { operation, revision } => write!(f, "acknowledged {operation} {revision}"),
            Line::Conflict { operation } => write!(f, "conflict {operation}"),
            Line::Refused { operation, error } => write!(f, "refused {operation} {}", error.replace('\n', " ")),
            Line::Compacted(revision) => write!(f, "compacted {revision}"),
            Line::Failed(error) => write!(f, "failed {}", error.replace('\n', " ")),
            Line::Done => write!(f, "done"),
        }
    }
}

impl Line {
    /// Reads a line; none if it is not one of ours.
    pub fn parse(line: &str) -> Option<Line> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = |text: &str| text.parse::<u64>().ok();
        match word {
            "ready" => Some(Line::Ready(Revision(number(rest)?))),
            "unopened" => Some(Line::Unopened(rest.to_owned())),
            "sent" => {
                let (operation, action) = rest.split_once(' ')?;
                Some(Line::Sent { operation: number(operation)?, action: parse_action(action)? })
            }
            "acknowledged" => {
                let (operation, revision) = rest.split_once(' ')?;
                Some(Line::Acknowledged { operation: number(operation)?, revision: Revision(number(revision)?) })
            }
            "conflict" => Some(Line::Conflict { operation: number(rest)? }),
            "refused" => {
                let (operation, error) = rest.split_once(' ')?;
                Some(Line::Refused { operation: number(operation)?, error: error.to_owned() })
            }
            "compacted" => Some(Line::Compacted(Revision(number(rest)?))),
            "failed" => Some(Line::Failed(rest.to_owned())),
            "done" => Some(Line::Done),
            _ => None,
        }
    }
}

fn parse_action(text: &str) -> Option<Action> {
    let words: Vec<&str> = text.split(' ').collect();
    let key = || Some((*words.get(1)?).to_owned());
    let group = || words.get(1)?.parse().ok();
    let bytes = || words.get(2)?.parse().ok();
    match *words.first()? {
        "put" => Some(Action::Put { key: key()?, bytes: bytes()? }),
        "swap" => Some(Action::Swap { key: key()?, bytes: bytes()? }),
        "delete" => Some(Action::Delete { key: key()? }),
        "put-group" => Some(Action::PutGroup { group: group()?, bytes: bytes()? }),
        "delete-group" => Some(Action::DeleteGroup { group: group()? }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_reads_back_as_it_was_written() {
        let key = "swapped/3".to_owned();
        let actions = [
            Action::Put { key: key.clone(), bytes: 7 },
            Action::Swap { key: key.clone(), bytes: 7 },
            Action::Delete { key },
            Action::PutGroup { group: 2, bytes: 7 },
            Action::DeleteGroup { group: 2 },
        ];
        let sent = actions.into_iter().map(|action| Line::Sent { operation: 9, action });
        let others = [
            Line::Ready(Revision(4)),
            Line::Unopened("no such thing".to_owned()),
            Line::Acknowledged { operation: 9, revision: Revision(5) },
            Line::Conflict { operation: 9 },
            Line::Refused { operation: 9, error: "disk full".to_owned() },
            Line::Compacted(Revision(3)),
            Line::Failed("disk full".to_owned()),
            Line::Done,
        ];
        for line in sent.chain(others) {
            assert_eq!(Line::parse(&line.to_string()), Some(line));
        }
    }
}
