//! What etcd or the way to it can answer instead of a result, told apart by what follows from it.

use crate::{Error, MAX_TXN_BYTES};
use std::error::Error as StdError;
use std::io;
use tonic::{Code, ConnectError, Status};

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No member was reached: nothing happened.
    NotSent(String),
    /// A member was reached and the cluster has no leader at the moment: nothing happened.
    NoLeader(String),
    /// The request went out and no verdict came back: what was asked may have happened.
    Lost(String),
    /// The revision asked for has been compacted.
    Compacted,
    /// The revision asked for is yet to come.
    Future,
    /// The lease has expired or was revoked, so nothing happened.
    LeaseNotFound,
    TooLarge,
    /// The request can never succeed as it is.
    Invalid(String),
    /// etcd said no for now, such as for want of space or permission: nothing happened.
    Refused(String),
    /// The store is closed.
    Closed,
}

impl Failure {
    pub(super) fn new(error: etcd_client::Error) -> Self {
        match error {
            etcd_client::Error::GRpcStatus(status) => Failure::from_status(&status),
            etcd_client::Error::TransportError(error) => Failure::NotSent(causes(&error)),
            other => Failure::Lost(other.to_string()),
        }
    }

    fn from_status(status: &Status) -> Self {
        if let Some(source) = status.source() {
            return match was_never_sent(source) {
                true => Failure::NotSent(causes(source)),
                false => Failure::Lost(causes(source)),
            };
        }
        let message = status.message();
        let says = |words: &str| message.contains(words);
        match status.code() {
            Code::OutOfRange if says("has been compacted") => Failure::Compacted,
            Code::OutOfRange if says("is a future revision") => Failure::Future,
            Code::NotFound if says("lease not found") => Failure::LeaseNotFound,
            Code::InvalidArgument if says("request is too large") => Failure::TooLarge,
            Code::ResourceExhausted if says("message larger than max") => Failure::TooLarge,
            Code::InvalidArgument | Code::OutOfRange => Failure::Invalid(message.to_owned()),
            Code::Unavailable if says("no leader") => Failure::NoLeader(message.to_owned()),
            Code::ResourceExhausted
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::NotFound
            | Code::Unimplemented => Failure::Refused(message.to_owned()),
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::AlreadyExists
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss => Failure::Lost(message.to_owned()),
        }
    }

    /// Whether another member may do better.
    pub(super) fn is_of_member(&self) -> bool {
        matches!(self, Failure::NotSent(_) | Failure::NoLeader(_) | Failure::Lost(_))
    }

    /// Whether nothing has happened, for sure.
    pub(super) fn is_without_trace(&self) -> bool {
        matches!(self, Failure::NotSent(_) | Failure::NoLeader(_))
    }

    /// The error of a request that changes nothing. What a revision means is for the caller to say first.
    pub(super) fn of_read(self, endpoints: &str) -> Error {
        match self {
            Failure::NotSent(cause) | Failure::NoLeader(cause) | Failure::Lost(cause) | Failure::Refused(cause) => {
                Error::Unavailable(format!("etcd at {endpoints}: {cause}"))
            }
            Failure::Invalid(cause) => Error::Invalid(cause),
            Failure::TooLarge => Error::Invalid("the request is too large for etcd".to_owned()),
            Failure::Closed => Error::Closed,
            unexpected @ (Failure::Compacted | Failure::Future | Failure::LeaseNotFound) => Error::Unavailable(
                format!("etcd at {endpoints} answered a request as if it were another: {unexpected:?}"),
            ),
        }
    }

    /// The error of a transaction that brings so many bytes.
    pub(super) fn of_write(self, endpoints: &str, bytes: usize) -> Error {
        match self {
            Failure::Lost(cause) => Error::Unknown(format!("etcd at {endpoints}: {cause}")),
            Failure::TooLarge => Error::TooLarge { bytes, limit: MAX_TXN_BYTES },
            other => other.of_read(endpoints),
        }
    }
}

/// Whether the failure came before the request was handed to a connection: what fails later has an error of HTTP's in
/// its chain.
fn was_never_sent(source: &(dyn StdError + 'static)) -> bool {
    let chain = || std::iter::successors(Some(source), |error| (*error).source());
    let connecting = chain().any(|error| error.is::<ConnectError>() || error.is::<io::Error>());
    connecting && !chain().any(|error| error.is::<hyper::Error>())
}

/// An error with what lies behind it, each cause once.
pub(super) fn causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = String::new();
    for cause in std::iter::successors(Some(error), |error| (*error).source()) {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = if text.is_empty() { words } else { format!("{text}: {words}") };
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_without_a_verdict_is_unknown_and_a_refused_one_is_not() {
        let unknown = |message: &str| Error::Unknown(format!("etcd at e: {message}"));
        let unavailable = |message: &str| Error::Unavailable(format!("etcd at e: {message}"));
        let cases = [
            (Code::Unavailable, "etcdserver: request timed out", unknown("etcdserver: request timed out")),
            (Code::Unavailable, "etcdserver: server stopped", unknown("etcdserver: server stopped")),
            (Code::Unavailable, "etcdserver: no leader", unavailable("etcdserver: no leader")),
            (Code::ResourceExhausted, "etcdserver: too many requests", unavailable("etcdserver: too many requests")),
            (Code::PermissionDenied, "etcdserver: permission denied", unavailable("etcdserver: permission denied")),
            (
                Code::InvalidArgument,
                "etcdserver: request is too large",
                Error::TooLarge { bytes: 9, limit: MAX_TXN_BYTES },
            ),
        ];
        for (code, message, expected) in cases {
            assert_eq!(Failure::from_status(&Status::new(code, message)).of_write("e", 9), expected);
        }
    }

    #[test]
    fn a_revision_out_of_range_is_told_apart() {
        let of = |message: &str| Failure::from_status(&Status::new(Code::OutOfRange, message));
        assert_eq!(of("etcdserver: mvcc: required revision has been compacted"), Failure::Compacted);
        assert_eq!(of("etcdserver: mvcc: required revision is a future revision"), Failure::Future);
    }
}
