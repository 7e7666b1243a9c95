//! Documents that have been asked for, compressed.
//!
//! A document is made when it is first asked for, and again once the rows it is made of are others. What nobody asks
//! for takes no memory. Documents of rows that are gone go at the next request for any document.

use super::draft::{Draft, Forms, Written};
use super::sections::Section;
use super::{v2, v3};
use crate::api::Api;
use object::ApiError;
use registry::Resource;
use std::collections::BTreeMap;
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
    pub(super) written: Written,
}

impl Document {
    /// Whether it is of exactly these rows.
    fn is_of(&self, rows: &[Arc<Resource>]) -> bool {
        self.rows.len() == rows.len() && self.rows.iter().zip(rows).all(|(own, row)| Arc::ptr_eq(own, row))
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
        let make = move || {
            let mut draft = Draft::new(Forms::JsonAndProtobuf);
            v2::write(&rows, &mut draft);
            draft.finish().map(|written| Document { rows, written })
        };
        let made = api.ambient.tasks.blocking(make).await?;
        Ok(whole.insert(Arc::new(made)).clone())
    }

    /// All sections, by their paths.
    pub(super) async fn sections(&self, api: &Api) -> Result<BTreeMap<String, Arc<Document>>, ApiError> {
        let resources = api.registry.resources();
        let sections = Section::all(resources.rows());
        let made = self.made(api, resources.rows(), sections.iter().cloned().collect()).await?;
        Ok(sections.iter().map(Section::path).zip(made).collect())
    }

    /// The section of a path, if there is one.
    pub(super) async fn section(&self, api: &Api, path: &str) -> Result<Option<Arc<Document>>, ApiError> {
        let resources = api.registry.resources();
        match Section::all(resources.rows()).into_iter().find(|section| section.path() == path) {
            Some(section) => Ok(self.made(api, resources.rows(), vec![section]).await?.pop()),
            None => Ok(None),
        }
    }

    /// The documents of these sections, in their order. Those that are not there are made, all on one thread: each
    /// thread would keep some of the memory that it took for the largest.
    async fn made(
        &self,
        api: &Api,
        rows: &[Arc<Resource>],
        sections: Vec<Section>,
    ) -> Result<Vec<Arc<Document>>, ApiError> {
        let mut known = self.sections.lock().await;
        let fresh = |(section, document): (&Section, &mut Arc<Document>)| document.is_of(&section.rows(rows));
        let served = Section::all(rows);
        known.retain(|section, document| served.contains(section) && fresh((section, document)));
        let missing = sections.iter().filter(|section| !known.contains_key(section));
        let missing: Vec<_> = missing.map(|section| (section.clone(), section.rows(rows))).collect();
        if !missing.is_empty() {
            let make = move || -> Result<Vec<_>, ApiError> {
                let each = missing.into_iter().map(|(section, rows)| {
                    let mut draft = Draft::new(Forms::Json);
                    v3::write(&section, &rows, &mut draft);
                    let written = draft.finish()?;
                    Ok((section, Arc::new(Document { rows, written })))
                });
                each.collect()
            };
            known.extend(api.ambient.tasks.blocking(make).await?);
        }
        Ok(sections.iter().filter_map(|section| known.get(section).cloned()).collect())
    }
}
