//! The API over HTTPS: who asks, may they, what do they ask, and the answer.
//!
//! One way for every request ([`pipeline`]), one file per verb, no handler per resource. What a kind is particular
//! about stands in its row in `registry`.

mod admission;
mod aggregated;
mod api;
mod audit;
mod authn;
mod authorization;
mod body;
mod bootstrap;
mod compress;
mod context;
mod deadline;
mod debug;
mod decode;
mod drafts;
mod flow;
mod identity;
mod known;
mod local;
mod logs;
mod media;
mod metrics;
mod naming;
mod node_graph;
mod openapi;
mod options;
mod other;
mod ownership;
mod pipeline;
pub mod pki;
mod render;
mod request;
mod sealing;
mod server;
mod special;
mod table;
mod usage;
mod verbs;
mod write;
mod yaml;

pub use api::Api;
pub use audit::{Audit, Policy as AuditPolicy};
pub use authn::{Authentication, SigningKey, StaticTokens};
pub use authorization::Authorization;
pub use authz::User;
pub use body::Body;
pub use bootstrap::bootstrap;
pub use debug::DebugSource;
pub use identity::user;
pub use local::Local;
pub use logs::{LogRequest, LogSource, LogStream};
pub use pipeline::Peer;
pub use sealing::Sealing;
pub use server::{Tls, serve};
pub use usage::{Sample, Usage, UsageSource};
pub use verbs::{Live, Stream};
