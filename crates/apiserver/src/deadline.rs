//! How long a request may take: as long as the client asks for, but no longer than is good for everybody.

use crate::request::{Info, Query};
use object::{ApiError, Reason};
use std::time::Duration;

/// What a request gets that does not ask, or asks for more.
pub(crate) const MAX: Duration = Duration::from_secs(60);

/// The time a request has; none where it lasts as long as the client wants.
pub(crate) fn limit(info: &Info, query: &Query) -> Result<Option<Duration>, ApiError> {
    if info.is_long_running() {
        return Ok(None);
    }
    let Some(text) = query.get("timeout") else { return Ok(Some(MAX)) };
    let asked = parse(text).ok_or_else(|| {
        let message = format!("invalid timeout specified in the request URL - time: invalid duration {text:?}");
        ApiError::bad_request(message)
    })?;
    // Nothing asked for is no limit of the client's own.
    Ok(Some(if asked.is_zero() { MAX } else { asked.min(MAX) }))
}

/// The answer to a request, or that there was none in time. What has been written by then stays written.
pub(crate) async fn within<T>(
    limit: Result<Option<Duration>, ApiError>,
    answer: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let Some(limit) = limit? else { return answer.await };
    tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
        let message = "Timeout: request did not complete within the allotted timeout";
        Err(ApiError::new(Reason::Timeout, message))
    })
}

/// Reads a duration as Go writes it, such as `1m30s` or `500ms`. One below nothing is nothing.
fn parse(text: &str) -> Option<Duration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let amount: f64 = rest.get(..number)?.parse().ok()?;
        rest = rest.get(number..)?;
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        seconds += amount * unit_seconds(rest.get(..unit)?)?;
        rest = rest.get(unit..)?;
    }
    if negative {
        return Some(Duration::ZERO);
    }
    Duration::try_from_secs_f64(seconds).ok()
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(uri: &str) -> Result<Option<Duration>, ApiError> {
        let (path, query) = uri.split_once('?').map_or((uri, None), |(path, query)| (path, Some(query)));
        let query = Query::parse(query);
        limit(&Info::new(&http::Method::GET, path, &query), &query)
    }

    #[test]
    fn a_request_has_the_time_it_asks_for_up_to_a_minute() {
        for (uri, seconds) in [
            ("/version", 60.0),
            ("/version?timeout=0s", 60.0),
            ("/version?timeout=-1s", 60.0),
            ("/version?timeout=3m", 60.0),
            ("/version?timeout=500ms", 0.5),
            ("/version?timeout=0m1.5s", 1.5),
        ] {
            assert_eq!(of(uri).unwrap(), Some(Duration::from_secs_f64(seconds)), "{uri}");
        }
        assert_eq!(of("/api/v1/pods?watch=true&timeout=x").unwrap(), None);
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for timeout in ["invalid", "10", "1x", "s", "1.2.3s"] {
            let error = of(&format!("/version?timeout={timeout}")).unwrap_err();
            assert_eq!(error.code(), 400, "{timeout}");
            assert!(error.message().contains("invalid timeout specified in the request URL"), "{}", error.message());
        }
    }

    #[tokio::test]
    async fn what_takes_too_long_is_answered_as_such() {
        let limit = Ok(Some(Duration::from_millis(5)));
        let error = within(limit, std::future::pending::<Result<(), ApiError>>()).await.unwrap_err();
        assert_eq!(error.code(), 504);
    }
}
