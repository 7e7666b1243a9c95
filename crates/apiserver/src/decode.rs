//! Bodies of requests: read within limits, made to conform to the schema, mistakes named.

use crate::media::Format;
use crate::options::FieldValidation;
use crate::yaml;
use object::{ApiError, Edit, Value, View, json};
use registry::Resource;
use schema::protobuf::Envelope;
use schema::{NodeId, Schema};

/// No body is longer: 3 MiB, as Kubernetes has it.
pub(crate) const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// What a body says.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub value: Value,
    /// The lines of YAML that set a key again.
    pub lines: Vec<String>,
    /// What was dropped: fields that are unknown, or there twice.
    pub mistakes: Vec<String>,
}

/// Parses a body of any kind, not yet checked against a schema.
pub(crate) fn parse(format: Format, bytes: &[u8]) -> Result<Decoded, ApiError> {
    match format {
        Format::Json => {
            let (value, duplicates) = object::json::parse_strictly(bytes).map_err(ApiError::bad_request_from)?;
            let mistakes = duplicates.into_iter().map(|field| format!("duplicate field {field:?}")).collect();
            Ok(Decoded { mistakes, ..Decoded::new(value) })
        }
        Format::Yaml => {
            let (value, lines) = yaml::parse(bytes)?;
            Ok(Decoded { lines, ..Decoded::new(value) })
        }
        Format::Protobuf => Err(ApiError::bad_request("the body is protobuf, and its kind is not known")),
    }
}

/// Reads an object of the kind that a resource speaks.
pub(crate) fn object(resource: &Resource, format: Format, bytes: &[u8]) -> Result<Decoded, ApiError> {
    typed(resource.schema(), resource.node, &resource.api_version(), &resource.kind, format, bytes)
}

/// Reads an object of a given type. One that does not say what it is, is what is expected here.
pub(crate) fn typed(
    schema: &Schema,
    node: NodeId,
    api_version: &str,
    kind: &str,
    format: Format,
    bytes: &[u8],
) -> Result<Decoded, ApiError> {
    if bytes.is_empty() {
        return Err(ApiError::bad_request("the body of the request is empty"));
    }
    let mut decoded = match format {
        Format::Protobuf => {
            let envelope = Envelope::open(bytes).map_err(ApiError::bad_request_from)?;
            check_type(envelope.api_version, envelope.kind, api_version, kind)?;
            let value = envelope.decode(schema, node).map_err(ApiError::bad_request_from)?;
            Decoded::new(value)
        }
        format => parse(format, bytes)?,
    };
    if !decoded.value.is_object() {
        let message = format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            type_name(&decoded.value)
        );
        return Err(ApiError::bad_request(message));
    }
    check_type(decoded.value.text("apiVersion"), decoded.value.text("kind"), api_version, kind)?;
    decoded.value.set("apiVersion", api_version);
    decoded.value.set("kind", kind);
    let unknown = unknown_fields(schema, node, api_version, kind, &mut decoded.value)?;
    match format {
        Format::Json if !unknown.is_empty() => decoded.mistakes = in_order(bytes, &unknown)?,
        _ => decoded.add_unknown(unknown),
    }
    Ok(decoded)
}

/// What is wrong with JSON, in the order of the text.
fn in_order(text: &[u8], unknown: &[String]) -> Result<Vec<String>, ApiError> {
    let mistakes = object::json::mistakes(text, unknown).map_err(ApiError::bad_request_from)?;
    let named = mistakes.into_iter().map(|mistake| {
        let what = if mistake.unknown { "unknown" } else { "duplicate" };
        format!("{what} field {:?}", mistake.path)
    });
    Ok(named.collect())
}

/// Makes a value conform, adding to its mistakes.
pub(crate) fn conform(
    schema: &Schema,
    node: NodeId,
    api_version: &str,
    kind: &str,
    decoded: &mut Decoded,
) -> Result<(), ApiError> {
    let unknown = unknown_fields(schema, node, api_version, kind, &mut decoded.value)?;
    decoded.add_unknown(unknown);
    Ok(())
}

fn unknown_fields(
    schema: &Schema,
    node: NodeId,
    api_version: &str,
    kind: &str,
    value: &mut Value,
) -> Result<Vec<String>, ApiError> {
    schema::conform(schema, node, value).map_err(|error| cannot_handle(api_version, kind, &error))
}

/// The same for the result of a patch, which is blamed in other words.
pub(crate) fn conform_patched(resource: &Resource, decoded: &mut Decoded, known: &Value) -> Result<(), String> {
    let unknown = schema::conform_changed(resource.schema(), resource.node, &mut decoded.value, known);
    let unknown = unknown.map_err(|error| error.to_string())?;
    decoded.add_unknown(unknown);
    Ok(())
}

fn cannot_handle(api_version: &str, kind: &str, why: &dyn std::fmt::Display) -> ApiError {
    let version = api_version.rsplit('/').next().unwrap_or(api_version);
    ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

fn check_type(api_version: &str, kind: &str, expected_version: &str, expected_kind: &str) -> Result<(), ApiError> {
    if !api_version.is_empty() && api_version != expected_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected_version})"
        )));
    }
    if !kind.is_empty() && kind != expected_kind {
        let version = expected_version.rsplit('/').next().unwrap_or(expected_version);
        return Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {expected_kind}: the kind in the data ({kind}) does not match the expected kind ({expected_kind})"
        )));
    }
    Ok(())
}

/// What JSON calls the type of a value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Decoded {
    pub(crate) fn new(value: Value) -> Self {
        Decoded { value, lines: Vec::new(), mistakes: Vec::new() }
    }

    pub(crate) fn has_no_mistakes(&self) -> bool {
        self.lines.is_empty() && self.mistakes.is_empty()
    }

    fn add_unknown(&mut self, fields: Vec<String>) {
        self.mistakes.extend(fields.into_iter().map(|field| format!("unknown field {field:?}")));
    }

    /// The value, with its mistakes refused, passed on as warnings or ignored.
    pub(crate) fn accept(
        self,
        resource: &Resource,
        validation: FieldValidation,
        warnings: &mut Vec<String>,
    ) -> Result<Value, ApiError> {
        match validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => warnings.extend(self.lines.into_iter().chain(self.mistakes)),
            FieldValidation::Strict if self.lines.is_empty() && self.mistakes.is_empty() => {}
            FieldValidation::Strict => {
                let lines = Some(yaml::summary(&self.lines)).filter(|_| !self.lines.is_empty());
                let mistakes: Vec<String> = lines.into_iter().chain(self.mistakes).collect();
                let why = format!("strict decoding error: {}", mistakes.join(", "));
                return Err(cannot_handle(&resource.api_version(), &resource.kind, &why));
            }
        }
        Ok(self.value)
    }
}

/// `DeleteOptions`, which may be left out.
pub(crate) fn delete_options(format: Format, bytes: &[u8]) -> Result<Value, ApiError> {
    if bytes.is_empty() {
        return Ok(json!({}));
    }
    let schema = schema::builtin();
    let node = schema.named("meta.v1.DeleteOptions").expect("the facts have DeleteOptions");
    let mut value = match format {
        Format::Protobuf => {
            let envelope = Envelope::open(bytes).map_err(ApiError::bad_request_from)?;
            envelope.decode(schema, node).map_err(ApiError::bad_request_from)?
        }
        format => parse(format, bytes)?.value,
    };
    schema::conform(schema, node, &mut value).map_err(ApiError::bad_request_from)?;
    Ok(value)
}
