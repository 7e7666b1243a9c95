//! `/debug/...`: what parts of this process tell about themselves. Who may ask is decided by the path, as for everything
//! that is no resource.

use crate::api::Api;
use async_trait::async_trait;
use object::{ApiError, Value};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

/// Somebody who can be asked; `path` is what follows the topic.
#[async_trait]
pub trait DebugSource: Debug + Send + Sync {
    async fn answer(&self, path: &[&str]) -> Result<Value, ApiError>;
}

/// By topic.
#[derive(Debug, Default)]
pub(crate) struct DebugSources(RwLock<BTreeMap<&'static str, Arc<dyn DebugSource>>>);

impl DebugSources {
    pub(crate) fn topics(&self) -> Vec<String> {
        self.0.read().keys().map(|topic| format!("/debug/{topic}")).collect()
    }

    pub(crate) async fn answer(&self, topic: &str, path: &[&str]) -> Option<Result<Value, ApiError>> {
        let source = self.0.read().get(topic).cloned()?;
        Some(source.answer(path).await)
    }
}

impl Api {
    /// From now on `source` answers what is asked under `/debug/<topic>/`.
    pub fn debug(&self, topic: &'static str, source: Arc<dyn DebugSource>) {
        self.debug.0.write().insert(topic, source);
    }
}
