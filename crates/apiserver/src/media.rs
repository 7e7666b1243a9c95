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
    /// The version in which tables and metadata come; it says nothing of objects themselves.
    pub meta: &'static str,
}

impl Accept {
    pub(crate) const JSON: Accept = Accept { format: Format::Json, guise: Guise::Itself, meta: META };
}

/// The version of tables and metadata, and the one before it, which has the same fields.
const META: &str = "meta.k8s.io/v1";
const OLD_META: &str = "meta.k8s.io/v1beta1";

const SUPPORTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Chooses among what a client accepts: by weight, then by order. Not everything has `tables`.
pub(crate) fn accept(header: Option<&str>, tables: bool) -> Result<Accept, ApiError> {
    let header = header.unwrap_or("application/json");
    let mut offers: Vec<(f32, Option<Accept>)> = header.split(',').map(offer).collect();
    offers.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let served = |accept: &Accept| tables || accept.guise != Guise::Table;
    offers.into_iter().find_map(|(_, accept)| accept.filter(served)).ok_or_else(|| {
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
    let meta = match (guise, group, version) {
        (Some(Guise::Itself), ..) | (_, "meta.k8s.io", "v1") => Some(META),
        (_, "meta.k8s.io", "v1beta1") => Some(OLD_META),
        _ => None,
    };
    let accept = format.zip(guise).zip(meta).map(|((format, guise), meta)| Accept { format, guise, meta });
    // Tables have no binary form that anybody reads.
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
            let accepted = accept(Some(header), true).unwrap();
            assert_eq!((accepted.format, accepted.guise), (format, guise), "{header}");
        }
        for header in ["text/html", "application/json;as=Chart;g=meta.k8s.io;v=v1"] {
            assert_eq!(accept(Some(header), true).unwrap_err().code(), 406, "{header}");
        }
    }

    #[test]
    fn a_table_is_refused_where_there_is_none_unless_something_else_will_do() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(accept(Some(table), false).unwrap_err().code(), 406);
        assert_eq!(accept(Some(&format!("{table},application/json")), false).unwrap(), Accept::JSON);
    }

    #[test]
    fn tables_come_in_the_version_that_was_asked_for() {
        for version in ["v1", "v1beta1"] {
            let header = format!("application/json;as=Table;v={version};g=meta.k8s.io");
            assert_eq!(accept(Some(&header), true).unwrap().meta, format!("meta.k8s.io/{version}"));
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
