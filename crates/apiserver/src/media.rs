//! Representations: which one a client wants, and which one it sent.

use object::{ApiError, Reason};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
    Protobuf,
}

impl Format {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::Json => "application/json",
            Format::Yaml => "application/yaml",
            Format::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    fn of(media_type: &str) -> Option<Self> {
        match media_type {
            "application/json" | "*/*" | "application/*" => Some(Format::Json),
            "application/yaml" => Some(Format::Yaml),
            "application/vnd.kubernetes.protobuf" => Some(Format::Protobuf),
            _ => None,
        }
    }
}

/// In what guise objects are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guise {
    Itself,
    Table,
    /// Metadata only, of one object or of a list.
    Metadata,
}

/// How to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    pub format: Format,
    pub guise: Guise,
}

impl Accept {
    pub(crate) const JSON: Accept = Accept { format: Format::Json, guise: Guise::Itself };
}

const SUPPORTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Chooses among what a client accepts: by weight, then by order.
pub(crate) fn accept(header: Option<&str>) -> Result<Accept, ApiError> {
    let header = header.unwrap_or("application/json");
    let mut offers: Vec<(f32, Option<Accept>)> = header.split(',').map(offer).collect();
    offers.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    offers.into_iter().find_map(|(_, accept)| accept).ok_or_else(|| {
        ApiError::new(Reason::NotAcceptable, format!("only the following media types are accepted: {SUPPORTED}"))
    })
}

/// One media type with its weight; none where it is not served.
fn offer(text: &str) -> (f32, Option<Accept>) {
    let mut parts = text.split(';').map(str::trim);
    let format = Format::of(parts.next().unwrap_or_default());
    let (mut weight, mut guise, mut group, mut version) = (1.0, Some(Guise::Itself), "", "");
    for parameter in parts {
        match parameter.split_once('=').unwrap_or((parameter, "")) {
            ("q", value) => weight = value.parse().unwrap_or(0.0),
            ("as", "Table") => guise = Some(Guise::Table),
            ("as", "PartialObjectMetadata" | "PartialObjectMetadataList") => guise = Some(Guise::Metadata),
            ("as", _) => guise = None,
            ("g", value) => group = value,
            ("v", value) => version = value,
            _ => {}
        }
    }
    let known = matches!(guise, Some(Guise::Itself)) || group == "meta.k8s.io" && matches!(version, "v1" | "v1beta1");
    // Tables have no binary form that anybody reads.
    let accept = format.zip(guise.filter(|_| known)).map(|(format, guise)| Accept { format, guise });
    (weight, accept.filter(|accept| (accept.format, accept.guise) != (Format::Protobuf, Guise::Table)))
}

/// What a body is written in.
pub(crate) fn content_type(header: Option<&str>) -> Result<Format, ApiError> {
    let media_type = header.unwrap_or("application/json").split(';').next().unwrap_or_default().trim();
    match media_type {
        "" => Ok(Format::Json),
        "*/*" | "application/*" => Err(unsupported()),
        media_type => Format::of(media_type).ok_or_else(unsupported),
    }
}

fn unsupported() -> ApiError {
    let message =
        format!("the body of the request was in an unknown format - accepted media types include: {SUPPORTED}");
    ApiError::new(Reason::UnsupportedMediaType, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_served_is_chosen_unless_weights_say_otherwise() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        for (header, format, guise) in [
            ("application/json", Format::Json, Guise::Itself),
            ("*/*", Format::Json, Guise::Itself),
            ("text/html, application/yaml", Format::Yaml, Guise::Itself),
            ("application/vnd.kubernetes.protobuf, */*", Format::Protobuf, Guise::Itself),
            ("application/json;q=0.5, application/yaml", Format::Yaml, Guise::Itself),
            (table, Format::Json, Guise::Table),
            ("application/json;as=Table;v=v1;g=example.com,application/yaml", Format::Yaml, Guise::Itself),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                Format::Protobuf,
                Guise::Metadata,
            ),
        ] {
            assert_eq!(accept(Some(header)).unwrap(), Accept { format, guise }, "{header}");
        }
        for header in ["text/html", "application/json;as=Chart;g=meta.k8s.io;v=v1"] {
            assert_eq!(accept(Some(header)).unwrap_err().code(), 406, "{header}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        assert_eq!(content_type(Some("application/yaml; charset=utf-8")).unwrap(), Format::Yaml);
        assert_eq!(content_type(None).unwrap(), Format::Json);
        for header in ["text/plain", "*/*", "application/json-patch+json"] {
            assert_eq!(content_type(Some(header)).unwrap_err().code(), 415, "{header}");
        }
    }
}
