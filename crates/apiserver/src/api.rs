//! The API itself, without a transport: one request in, one response out. HTTP connections and in-process clients
//! both come through here.

use crate::aggregated::Aggregated;
use crate::audit::Audit;
use crate::authn::Authentication;
use crate::authorization::Authorization;
use crate::debug::DebugSources;
use crate::drafts::Drafts;
use crate::flow::Flow;
use crate::known::Recent;
use crate::logs::LogSource;
use crate::metrics::Metrics;
use crate::openapi::Documents;
use crate::usage::UsageSource;
use ambient::Ambient;
use registry::Registry;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A handle; clones are the same API.
#[derive(Clone, Debug)]
pub struct Api(Arc<Shared>);

#[derive(Debug)]
pub struct Shared {
    pub registry: Registry,
    pub ambient: Ambient,
    pub metrics: Metrics,
    pub(crate) authentication: Authentication,
    pub(crate) authorization: Authorization,
    pub(crate) flow: Flow,
    pub(crate) recent: Recent,
    pub(crate) drafts: Drafts,
    pub(crate) documents: Documents,
    pub(crate) aggregated: Aggregated,
    pub(crate) audit: Option<Audit>,
    /// Where clients reach this server: `127.0.0.1:6443`.
    pub(crate) address: String,
    /// Who knows what nodes and pods use, once there is somebody.
    pub(crate) usage: OnceLock<Arc<dyn UsageSource>>,
    /// Who has the logs of pods, once there is somebody.
    pub(crate) logs: OnceLock<Arc<dyn LogSource>>,
    pub(crate) debug: DebugSources,
}

impl Deref for Api {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Api {
    /// The day it is, as `2026-01-31`.
    pub(crate) fn today(&self) -> String {
        let seconds = i64::try_from(self.ambient.clock.wall().0 / 1000).unwrap_or(i64::MAX);
        object::time::format(seconds).unwrap_or_default().split('T').next().unwrap_or_default().to_owned()
    }

    pub fn new(
        registry: Registry,
        ambient: Ambient,
        authentication: Authentication,
        authorization: Authorization,
        audit: Option<Audit>,
        address: String,
    ) -> Self {
        let started = std::time::Duration::from_millis(ambient.clock.wall().0);
        let metrics = Metrics::new(started);
        let api = Api(Arc::new(Shared {
            registry,
            flow: Flow::new(&metrics.registry),
            metrics,
            authentication,
            authorization,
            recent: Recent::default(),
            drafts: Drafts::default(),
            documents: Documents::default(),
            aggregated: Aggregated::default(),
            audit,
            address,
            usage: OnceLock::new(),
            logs: OnceLock::new(),
            debug: DebugSources::default(),
            ambient,
        }));
        api.authorization.start(&api);
        api.flow.start(&api);
        api
    }

    /// From now on `source` is asked what nodes and pods use; the first one stays.
    pub fn measure(&self, source: Arc<dyn UsageSource>) {
        let _ = self.usage.set(source);
    }

    /// From now on `source` is asked for the logs of pods; the first one stays.
    pub fn show_logs(&self, source: Arc<dyn LogSource>) {
        let _ = self.logs.set(source);
    }
}
