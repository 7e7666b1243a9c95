//! Flow control: how many requests are worked on at once, per class, and how many may wait.
//!
//! Leases and the status of nodes have a class of their own, so that heartbeats never queue behind lists.

use crate::metrics::Metrics;
use crate::request::Info;
use object::ApiError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Upstream's default is 400 reading and 200 changing requests.
const READING: (usize, usize) = (400, 2_000);
const CHANGING: (usize, usize) = (200, 5_000);
const VITAL: (usize, usize) = (200, 10_000);
const RETRY_AFTER_SECONDS: u32 = 1;

#[derive(Debug)]
pub(crate) struct Flow {
    reading: Class,
    changing: Class,
    vital: Class,
}

#[derive(Debug)]
struct Class {
    name: &'static str,
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
    max_waiting: usize,
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            reading: Class::new("readOnly", READING),
            changing: Class::new("mutating", CHANGING),
            vital: Class::new("vital", VITAL),
        }
    }
}

/// A request that may be worked on, as long as this lives. Long-running ones have none: they are not counted.
#[derive(Debug)]
pub(crate) struct Admitted {
    _permit: Option<OwnedSemaphorePermit>,
    gauge: Option<prometheus::IntGauge>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(gauge) = &self.gauge {
            gauge.dec();
        }
    }
}

impl Flow {
    pub(crate) async fn admit(&self, info: &Info, metrics: &Metrics) -> Result<Admitted, ApiError> {
        if info.is_long_running() {
            return Ok(Admitted { _permit: None, gauge: None });
        }
        let class = self.class(info);
        let permit = class.enter().await.inspect_err(|_| metrics.rejected(class.name))?;
        let gauge = metrics.inflight(class.name);
        gauge.inc();
        Ok(Admitted { _permit: Some(permit), gauge: Some(gauge) })
    }

    fn class(&self, info: &Info) -> &Class {
        let vital = info.target.as_ref().is_some_and(|target| {
            target.resource == "leases" || target.resource == "nodes" && target.subresource == "status"
        });
        match (vital, info.is_mutating()) {
            (true, _) => &self.vital,
            (false, true) => &self.changing,
            (false, false) => &self.reading,
        }
    }
}

impl Class {
    fn new(name: &'static str, (at_once, max_waiting): (usize, usize)) -> Self {
        Class { name, permits: Arc::new(Semaphore::new(at_once)), waiting: AtomicUsize::new(0), max_waiting }
    }

    async fn enter(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        if let Ok(permit) = self.permits.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let _waiting = Waiting::new(self)?;
        self.permits.clone().acquire_owned().await.map_err(ApiError::internal)
    }
}

/// A place in the queue, given up also by a client that goes away.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(class: &'a Class) -> Result<Self, ApiError> {
        if class.waiting.fetch_add(1, Ordering::Relaxed) >= class.max_waiting {
            class.waiting.fetch_sub(1, Ordering::Relaxed);
            let message = "too many requests, please try again later";
            return Err(ApiError::too_many_requests(message, RETRY_AFTER_SECONDS));
        }
        Ok(Waiting(&class.waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Query;

    #[tokio::test]
    async fn beyond_what_may_wait_requests_are_refused_and_heartbeats_are_not() {
        let flow = Flow {
            reading: Class::new("readOnly", (1, 0)),
            changing: Class::new("mutating", (1, 1)),
            vital: Class::new("vital", (1, 0)),
        };
        let metrics = Metrics::new(std::time::Duration::ZERO);
        let info = |method: http::Method, path: &str| Info::new(&method, path, &Query::default());
        let list = info(http::Method::GET, "/api/v1/pods");
        let lease = info(http::Method::PUT, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n");
        let held = flow.admit(&list, &metrics).await.unwrap();
        let refused = flow.admit(&list, &metrics).await.unwrap_err();
        assert_eq!((refused.code(), refused.retry_after_seconds()), (429, Some(1)));
        flow.admit(&lease, &metrics).await.unwrap();
        drop(held);
        flow.admit(&list, &metrics).await.unwrap();
    }
}
