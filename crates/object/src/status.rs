//! API errors: what a client is told when a request fails, as a `Status` object.

use crate::{Map, Value, json};
use crate::{View, field};
use std::fmt;

/// Why a request failed, in Kubernetes' words; each has its HTTP code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Unauthorized,
    Forbidden,
    NotFound,
    AlreadyExists,
    Conflict,
    Gone,
    Expired,
    Invalid,
    ServerTimeout,
    Timeout,
    TooManyRequests,
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    InternalError,
    ServiceUnavailable,
    /// A failure that has no name of its own.
    Unknown,
}

impl Reason {
    const ALL: [Reason; 19] = [
        Reason::Unauthorized,
        Reason::Forbidden,
        Reason::NotFound,
        Reason::AlreadyExists,
        Reason::Conflict,
        Reason::Gone,
        Reason::Expired,
        Reason::Invalid,
        Reason::ServerTimeout,
        Reason::Timeout,
        Reason::TooManyRequests,
        Reason::BadRequest,
        Reason::MethodNotAllowed,
        Reason::NotAcceptable,
        Reason::RequestEntityTooLarge,
        Reason::UnsupportedMediaType,
        Reason::InternalError,
        Reason::ServiceUnavailable,
        Reason::Unknown,
    ];

    pub fn code(self) -> u16 {
        match self {
            Reason::BadRequest => 400,
            Reason::Unauthorized => 401,
            Reason::Forbidden => 403,
            Reason::NotFound => 404,
            Reason::MethodNotAllowed => 405,
            Reason::NotAcceptable => 406,
            Reason::AlreadyExists | Reason::Conflict => 409,
            Reason::Gone | Reason::Expired => 410,
            Reason::RequestEntityTooLarge => 413,
            Reason::UnsupportedMediaType => 415,
            Reason::Invalid => 422,
            Reason::TooManyRequests => 429,
            Reason::ServerTimeout | Reason::InternalError | Reason::Unknown => 500,
            Reason::ServiceUnavailable => 503,
            Reason::Timeout => 504,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Unknown => Ok(()),
            named => fmt::Debug::fmt(named, f),
        }
    }
}

/// One of several things that are wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

/// A failed request. On the wire it is a `Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError(Box<Details>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Details {
    reason: Reason,
    message: String,
    group: String,
    /// The resource or kind the error is about.
    kind: String,
    name: String,
    uid: String,
    causes: Vec<Cause>,
    retry_after_seconds: Option<u32>,
    /// With which a list that has expired can go on.
    continue_token: String,
}

impl ApiError {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        ApiError(Box::new(Details {
            reason,
            message: message.into(),
            group: String::new(),
            kind: String::new(),
            name: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: None,
            continue_token: String::new(),
        }))
    }

    /// An error about one object; `resource` is the plural of its kind.
    fn about(reason: Reason, group: &str, resource: &str, name: &str, message: String) -> Self {
        ApiError::new(reason, message).with_object(group, resource, name)
    }

    pub fn with_object(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.0.group = group.to_owned();
        self.0.kind = kind.to_owned();
        self.0.name = name.to_owned();
        self
    }

    pub fn with_cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Self {
        self.0.causes.push(Cause { reason: reason.to_owned(), message: message.into(), field: field.to_owned() });
        self
    }

    pub fn with_continue(mut self, token: &str) -> Self {
        token.clone_into(&mut self.0.continue_token);
        self
    }

    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after_seconds = Some(seconds);
        self
    }

    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {name:?} not found", qualified(resource, group));
        ApiError::about(Reason::NotFound, group, resource, name, message)
    }

    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified(resource, group));
        ApiError::about(Reason::AlreadyExists, group, resource, name, message)
    }

    pub fn conflict(group: &str, resource: &str, name: &str, cause: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {cause}", qualified(resource, group));
        ApiError::about(Reason::Conflict, group, resource, name, message)
    }

    pub fn forbidden(group: &str, resource: &str, name: &str, cause: &str) -> Self {
        let resource_name = qualified(resource, group);
        let message = match name {
            "" => format!("{resource_name} is forbidden: {cause}"),
            name => format!("{resource_name} {name:?} is forbidden: {cause}"),
        };
        ApiError::about(Reason::Forbidden, group, resource, name, message)
    }

    /// Several fields of an object are wrong; `kind` is its kind, not its resource.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[field::Error]) -> Self {
        let messages: Vec<_> = errors.iter().map(field::Error::to_string).collect();
        let list = match messages.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let message = format!("{} {name:?} is invalid: {list}", qualified(kind, group));
        let mut error = ApiError::about(Reason::Invalid, group, kind, name, message);
        error.0.causes = errors
            .iter()
            .map(|error| Cause {
                reason: error.kind.reason().to_owned(),
                message: error.body(),
                field: error.path.to_string(),
            })
            .collect();
        error
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        ApiError::new(Reason::BadRequest, message)
    }

    /// A bad request for the reason that an error gives.
    pub fn bad_request_from(cause: impl fmt::Display) -> Self {
        ApiError::bad_request(cause.to_string())
    }

    pub fn internal(cause: impl fmt::Display) -> Self {
        ApiError::new(Reason::InternalError, format!("Internal error occurred: {cause}")).with_cause(
            "",
            cause.to_string(),
            "",
        )
    }

    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        ApiError::new(Reason::TooManyRequests, message).with_retry_after(retry_after_seconds)
    }

    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    pub fn code(&self) -> u16 {
        self.0.reason.code()
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn causes(&self) -> &[Cause] {
        &self.0.causes
    }

    pub fn retry_after_seconds(&self) -> Option<u32> {
        self.0.retry_after_seconds
    }

    /// What a `Status` object says, as a client reads it.
    pub fn from_status(status: &Value) -> Self {
        let details = status.at("details");
        let named = Reason::ALL.into_iter().find(|reason| reason.to_string() == status.text("reason"));
        let code = status.int("code").and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
        let mut error = match named {
            Some(reason) if reason != Reason::Unknown => ApiError::new(reason, status.text("message")),
            _ => ApiError::from_code(code, status.text("message")),
        };
        error = error.with_object(details.text("group"), details.text("kind"), details.text("name"));
        details.text("uid").clone_into(&mut error.0.uid);
        for cause in details.items("causes") {
            error = error.with_cause(cause.text("reason"), cause.text("message"), cause.text("field"));
        }
        error.0.retry_after_seconds = details.int("retryAfterSeconds").and_then(|seconds| u32::try_from(seconds).ok());
        error.with_continue(status.at("metadata").text("continue"))
    }

    /// What an answer without a `Status` means, by its code alone.
    pub fn from_code(code: u16, message: impl Into<String>) -> Self {
        let reason = Reason::ALL.into_iter().find(|reason| reason.code() == code);
        ApiError::new(reason.unwrap_or(Reason::Unknown), message)
    }

    /// The `Status` object that says so.
    pub fn to_status(&self) -> Value {
        let Details { reason, message, group, kind, name, uid, causes, retry_after_seconds, continue_token } = &*self.0;
        let mut details = Map::new();
        for (key, text) in [("name", name), ("group", group), ("kind", kind), ("uid", uid)] {
            if !text.is_empty() {
                details.insert(key, json!(text));
            }
        }
        if !causes.is_empty() {
            details.insert("causes", causes.iter().map(Cause::to_value).collect());
        }
        if let Some(seconds) = retry_after_seconds {
            details.insert("retryAfterSeconds", json!(seconds));
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "code": reason.code(),
        });
        if *reason != Reason::Unknown {
            status["reason"] = json!(reason.to_string());
        }
        if !continue_token.is_empty() {
            status["metadata"]["continue"] = json!(continue_token);
        }
        if !details.is_empty() {
            status["details"] = Value::Object(details);
        }
        status
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let fields = [("reason", &self.reason), ("message", &self.message), ("field", &self.field)];
        let present = fields.into_iter().filter(|(_, text)| !text.is_empty());
        Value::Object(present.map(|(key, text)| (key.to_owned(), json!(text))).collect())
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ApiError {}

/// `deployments.apps`, or just `pods` in the core group.
fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Path;

    #[test]
    fn messages_are_those_clients_know() {
        let path = Path::new("spec");
        let one = [field::Error::required(&path, "")];
        let two = [field::Error::required(&path, ""), field::Error::forbidden(&path, "no")];
        let cases = [
            (ApiError::not_found("apps", "deployments", "web"), 404, "deployments.apps \"web\" not found"),
            (ApiError::already_exists("", "pods", "a"), 409, "pods \"a\" already exists"),
            (
                ApiError::conflict("", "pods", "a", "the object has been modified"),
                409,
                "Operation cannot be fulfilled on pods \"a\": the object has been modified",
            ),
            (ApiError::invalid("", "Pod", "a", &one), 422, "Pod \"a\" is invalid: spec: Required value"),
            (
                ApiError::invalid("apps", "Deployment", "a", &two),
                422,
                "Deployment.apps \"a\" is invalid: [spec: Required value, spec: Forbidden: no]",
            ),
            (ApiError::forbidden("", "pods", "", "no"), 403, "pods is forbidden: no"),
        ];
        for (error, code, message) in cases {
            assert_eq!((error.code(), error.message()), (code, message));
        }
    }

    #[test]
    fn a_status_leaves_out_what_is_empty() {
        let status = ApiError::not_found("", "pods", "a").to_status();
        assert_eq!(status["details"], json!({ "name": "a", "kind": "pods" }));
        assert_eq!(ApiError::bad_request("no").to_status().get("details"), None);
    }
}
