//! Documents that have been asked for, compressed.
//!
//! A document is made when it is first asked for, and again once the rows it is made of are others. What nobody asks
//! for takes no memory. Documents of rows that are gone go at the next request for any document.

use super::sections::Section;
use super::{gnostic, v2, v3};
use crate::api::Api;
use crate::other;
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use object::{ApiError, Value};
use registry::Resource;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;
use tokio::sync::Mutex;

/// The lock is held while a document is made, so that each is made once however many ask for it.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    sections: Mutex<BTreeMap<Section, Arc<Document>>>,
    whole: Mutex<Option<Arc<Document>>>,
}

#[derive(Debug)]
pub(super) struct Document {
    /// What it was made of.
    rows: Vec<Arc<Resource>>,
    /// A name for its content, the same in all forms.
    pub(super) tag: String,
    pub(super) json: Packed,
    /// Empty where no such form is served.
    pub(super) protobuf: Packed,
}

/// Bytes, compressed: what is described over and over shrinks to a twentieth.
#[derive(Debug, Default)]
pub(super) struct Packed(Bytes);

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

impl Document {
    /// Whether it is of exactly these rows.
    fn is_of(&self, rows: &[Arc<Resource>]) -> bool {
        self.rows.len() == rows.len() && self.rows.iter().zip(rows).all(|(own, row)| Arc::ptr_eq(own, row))
    }

    fn new(rows: Vec<Arc<Resource>>, value: Value, binary: bool) -> Result<Self, ApiError> {
        let protobuf = match binary {
            true => Packed::new(&gnostic::encode(&value).map_err(ApiError::internal)?).map_err(ApiError::internal)?,
            false => Packed::default(),
        };
        let text = value.to_string();
        drop(value);
        let json = Packed::new(text.as_bytes()).map_err(ApiError::internal)?;
        Ok(Document { rows, tag: other::digest(text.as_bytes()), json, protobuf })
    }
}

impl Documents {
    /// The document of everything.
    pub(super) async fn whole(&self, api: &Api) -> Result<Arc<Document>, ApiError> {
        let resources = api.registry.resources();
        let mut whole = self.whole.lock().await;
        if let Some(document) = whole.as_ref().filter(|document| document.is_of(resources.rows())) {
            return Ok(document.clone());
        }
        let rows = resources.rows().to_vec();
        let made = api.ambient.tasks.blocking(move || Document::new(rows.clone(), v2::document(&rows), true)).await?;
        Ok(whole.insert(Arc::new(made)).clone())
    }

    /// All sections, by their paths.
    pub(super) async fn sections(&self, api: &Api) -> Result<BTreeMap<String, Arc<Document>>, ApiError> {
        let resources = api.registry.resources();
        let mut documents = BTreeMap::new();
        for section in Section::all(resources.rows()) {
            let path = section.path();
            documents.insert(path, self.made(api, resources.rows(), section).await?);
        }
        Ok(documents)
    }

    /// The section of a path, if there is one.
    pub(super) async fn section(&self, api: &Api, path: &str) -> Result<Option<Arc<Document>>, ApiError> {
        let resources = api.registry.resources();
        match Section::all(resources.rows()).into_iter().find(|section| section.path() == path) {
            Some(section) => self.made(api, resources.rows(), section).await.map(Some),
            None => Ok(None),
        }
    }

    async fn made(&self, api: &Api, rows: &[Arc<Resource>], section: Section) -> Result<Arc<Document>, ApiError> {
        let served = Section::all(rows);
        let rows = section.rows(rows);
        let mut sections = self.sections.lock().await;
        sections.retain(|known, _| served.contains(known));
        if let Some(document) = sections.get(&section).filter(|document| document.is_of(&rows)) {
            return Ok(document.clone());
        }
        let of = section.clone();
        let make = move || {
            let value = v3::document(&of, &rows);
            Document::new(rows, value, false)
        };
        let made = Arc::new(api.ambient.tasks.blocking(make).await?);
        sections.insert(section, made.clone());
        Ok(made)
    }
}
