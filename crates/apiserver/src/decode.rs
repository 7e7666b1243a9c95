//! Bodies of requests: read within limits, made to conform to the schema, mistakes named.

use crate::media::Format;
use crate::options::FieldValidation;
use object::{ApiError, Edit, Value, View, json};
use registry::Resource;
use schema::protobuf::Envelope;
use schema::{NodeId, Schema};

/// No body is longer: 3 MiB, as Kubernetes has it.
pub(crate) const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;
/// YAML that nests deeper is refused before anything recurses into it.
const MAX_YAML_DEPTH: usize = 100;

/// What a body says.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub value: Value,
    /// What was dropped: fields that are unknown, or there twice.
    pub mistakes: Vec<String>,
}

/// Parses a body of any kind, not yet checked against a schema.
pub(crate) fn parse(format: Format, bytes: &[u8]) -> Result<Decoded, ApiError> {
    match format {
        Format::Json => {
            let (value, duplicates) = object::json::parse_strictly(bytes).map_err(ApiError::bad_request_from)?;
            let mistakes = duplicates.into_iter().map(|field| format!("duplicate field {field:?}")).collect();
            Ok(Decoded { value, mistakes })
        }
        Format::Yaml => Ok(Decoded { value: parse_yaml(bytes)?, mistakes: Vec::new() }),
        Format::Protobuf => Err(ApiError::bad_request("the body is protobuf, and its kind is not known")),
    }
}

pub(crate) fn parse_yaml(bytes: &[u8]) -> Result<Value, ApiError> {
    let text = std::str::from_utf8(bytes).map_err(ApiError::bad_request_from)?;
    let mut options = serde_saphyr::Options::default();
    if let Some(budget) = &mut options.budget {
        budget.max_depth = MAX_YAML_DEPTH;
    }
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        ApiError::bad_request(format!(
            "error converting YAML to JSON: {}",
            error.to_string().lines().next().unwrap_or_default()
        ))
    })
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
            Decoded { value, mistakes: Vec::new() }
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
    conform(schema, node, api_version, kind, &mut decoded)?;
    Ok(decoded)
}

/// Makes a value conform, adding to its mistakes.
pub(crate) fn conform(
    schema: &Schema,
    node: NodeId,
    api_version: &str,
    kind: &str,
    decoded: &mut Decoded,
) -> Result<(), ApiError> {
    let unknown =
        schema::conform(schema, node, &mut decoded.value).map_err(|error| cannot_handle(api_version, kind, &error))?;
    decoded.add_unknown(unknown);
    Ok(())
}

/// The same for the result of a patch, which is blamed in other words.
pub(crate) fn conform_patched(resource: &Resource, decoded: &mut Decoded) -> Result<(), String> {
    let unknown = schema::conform(resource.schema(), resource.node, &mut decoded.value).map_err(|e| e.to_string())?;
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
    fn add_unknown(&mut self, fields: Vec<String>) {
        self.mistakes.splice(0..0, fields.into_iter().map(|field| format!("unknown field {field:?}")));
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
            FieldValidation::Warn => warnings.extend(self.mistakes),
            FieldValidation::Strict if self.mistakes.is_empty() => {}
            FieldValidation::Strict => {
                let why = format!("strict decoding error: {}", self.mistakes.join(", "));
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
