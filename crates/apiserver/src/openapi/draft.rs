//! A document while it is being written, member by member and straight into compressed bytes.
//!
//! As a tree of values the largest document takes twenty megabytes, as text one, compressed a twentieth of that. So
//! only one member at a time is ever a tree.

use super::gnostic;
use aws_lc_rs::digest::{Context, SHA512};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use object::{ApiError, Value, json};
use schema::protobuf::wire::Writer;
use std::io::{Read, Write};

/// The forms that a document is served in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forms {
    Json,
    JsonAndProtobuf,
}

pub(super) struct Draft {
    json: GzEncoder<Vec<u8>>,
    digest: Context,
    protobuf: Option<Writer>,
    /// The objects that are open, outermost first.
    open: Vec<String>,
    /// Whether the innermost object that is open has no member yet.
    is_empty: bool,
    failure: Option<ApiError>,
}

/// A document.
#[derive(Debug)]
pub(super) struct Written {
    /// A name for its content, the same in all forms.
    pub(super) tag: String,
    pub(super) json: Packed,
    /// Empty where no such form is served.
    pub(super) protobuf: Packed,
}

/// Bytes, compressed.
#[derive(Debug, Default)]
pub(super) struct Packed(Bytes);

impl Draft {
    pub(super) fn new(forms: Forms) -> Self {
        let mut draft = Draft {
            json: GzEncoder::new(Vec::new(), Compression::default()),
            digest: Context::new(&SHA512),
            protobuf: (forms == Forms::JsonAndProtobuf).then(Writer::default),
            open: Vec::new(),
            is_empty: true,
            failure: None,
        };
        draft.text("{");
        draft
    }

    /// Adds a member whose own members follow, until it is closed.
    pub(super) fn open(&mut self, key: &str) {
        self.key(key);
        self.text("{");
        self.open.push(key.to_owned());
        self.is_empty = true;
    }

    pub(super) fn close(&mut self) {
        self.text("}");
        self.open.pop();
        self.is_empty = false;
    }

    pub(super) fn member(&mut self, key: &str, value: &Value) {
        self.key(key);
        self.text(&value.to_string());
        if let Some(protobuf) = &mut self.protobuf {
            let innermost = json!({ key: value });
            let part = self.open.iter().rev().fold(innermost, |inner, key| json!({ key: inner }));
            if let Err(misfit) = gnostic::encode(protobuf, &part) {
                self.failure = Some(ApiError::internal(misfit));
            }
        }
    }

    pub(super) fn members(&mut self, key: &str, members: impl IntoIterator<Item = (impl AsRef<str>, Value)>) {
        self.open(key);
        for (key, value) in members {
            self.member(key.as_ref(), &value);
        }
        self.close();
    }

    pub(super) fn finish(mut self) -> Result<Written, ApiError> {
        self.text("}");
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let digest = self.digest.finish();
        Ok(Written {
            tag: digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect(),
            json: Packed(self.json.finish().map_err(ApiError::internal)?.into()),
            protobuf: match self.protobuf {
                Some(writer) => Packed::new(&writer.0).map_err(ApiError::internal)?,
                None => Packed::default(),
            },
        })
    }

    fn key(&mut self, key: &str) {
        if !self.is_empty {
            self.text(",");
        }
        self.is_empty = false;
        self.text(&format!("{}:", Value::from(key)));
    }

    fn text(&mut self, text: &str) {
        self.digest.update(text.as_bytes());
        if let Err(error) = self.json.write_all(text.as_bytes()) {
            self.failure = Some(ApiError::internal(error));
        }
    }
}

impl Packed {
    fn new(bytes: &[u8]) -> std::io::Result<Self> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes)?;
        Ok(Packed(encoder.finish()?.into()))
    }

    pub(super) fn compressed(&self) -> Bytes {
        self.0.clone()
    }

    pub(super) fn unpack(&self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        GzDecoder::new(&self.0[..]).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
