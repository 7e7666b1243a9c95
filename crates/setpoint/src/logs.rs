//! The logs of pods, for the API to show: those of simulated nodes.

use apiserver::{LogRequest, LogSource, LogStream};
use async_trait::async_trait;
use bytes::Bytes;
use kinds::Key;
use node::simulated::{Logs, Reader};
use object::ApiError;

#[derive(Debug)]
pub struct SimulatedLogs(pub Logs);

struct Reading(Reader);

#[async_trait]
impl LogSource for SimulatedLogs {
    async fn open(&self, wanted: &LogRequest) -> Option<Result<Box<dyn LogStream>, ApiError>> {
        self.0.ready().await;
        let pod = Key::new(wanted.namespace.as_str(), wanted.pod.as_str());
        let opened = self.0.open(&pod, &wanted.container, wanted.excerpt)?;
        Some(match opened {
            Ok(reader) => Ok(Box::new(Reading(reader))),
            Err(why) => Err(ApiError::bad_request(why)),
        })
    }
}

#[async_trait]
impl LogStream for Reading {
    async fn next(&mut self) -> Option<Bytes> {
        self.0.next().await.map(Bytes::from)
    }
}
