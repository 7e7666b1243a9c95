//! Asks the API: for the scale of a target, and for what the metrics APIs measure.

use super::metric::Figures;
use super::usage::{Reading, Readings};
use http::Method;
use kinds::{HorizontalPodAutoscaler, Id, Selector, Time};
use object::{ApiError, Quantity, Reason, Value, View};
use parking_lot::Mutex;
use runtime::{Client, ListOptions, with_query};
use std::collections::BTreeMap;
use std::time::Duration;

const POD_METRICS: Id = Id::new("metrics.k8s.io/v1beta1", "PodMetrics", "pods", true);
/// Newest first: adapters serve one of them.
const CUSTOM_METRICS: [&str; 2] = ["/apis/custom.metrics.k8s.io/v1beta2", "/apis/custom.metrics.k8s.io/v1beta1"];
const EXTERNAL_METRICS: &str = "/apis/external.metrics.k8s.io/v1beta1";
/// Over how long a figure was measured if it does not say.
const WINDOW: Duration = Duration::from_secs(60);
const JSON: &str = "application/json";
/// What the API says of a resource that it does not have, whatever the name of the object.
const UNKNOWN_RESOURCE: &str = "the server could not find the requested resource";

/// How many replicas a target has, and which pods are its own.
pub(super) struct Scale {
    pub(super) id: Id,
    pub(super) object: Value,
    /// How many it is to have.
    pub(super) replicas: i32,
    /// How many it says it has.
    pub(super) reported_replicas: i32,
    pub(super) selector: String,
}

/// Which resource a kind is, by group and kind: what discovery has said so far.
#[derive(Default)]
pub(super) struct Kinds(Mutex<BTreeMap<(String, String), Id>>);

impl Kinds {
    async fn find(&self, client: &Client, api_version: &str, kind: &str) -> Result<Id, String> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let name = (group.to_owned(), kind.to_owned());
        if let Some(id) = self.0.lock().get(&name) {
            return Ok(id.clone());
        }
        let found = client.discover().await.map_err(|error| error.to_string())?;
        let mut known = self.0.lock();
        for resource in found {
            known.insert((resource.id.group().to_owned(), resource.id.kind.to_string()), resource.id);
        }
        known.get(&name).cloned().ok_or_else(|| format!("no matches for kind {kind:?} in group {group:?}"))
    }

    /// What was found is no longer there, or in another version: discovery is asked again the next time.
    fn forget(&self, id: &Id) {
        self.0.lock().remove(&(id.group().to_owned(), id.kind.to_string()));
    }
}

/// The scale of the target of an autoscaler.
pub(super) async fn scale(
    client: &Client,
    kinds: &Kinds,
    autoscaler: &HorizontalPodAutoscaler,
) -> Result<Scale, String> {
    let target = &autoscaler.spec.scale_target_ref;
    let id = kinds.find(client, &target.api_version, &target.kind).await?;
    let path = format!("{}/scale", id.path(&autoscaler.metadata.namespace, &target.name));
    let object = get(client, &path).await.map_err(|error| {
        if error.message() == UNKNOWN_RESOURCE {
            kinds.forget(&id);
        }
        error.to_string()
    })?;
    let count = |part: &str| i32::try_from(object.at(part).int("replicas").unwrap_or(0)).unwrap_or(i32::MAX);
    Ok(Scale {
        replicas: count("spec"),
        reported_replicas: count("status"),
        selector: object.at("status").text("selector").to_owned(),
        object,
        id,
    })
}

async fn get(client: &Client, path: &str) -> Result<Value, ApiError> {
    let raw = client.call(Method::GET, path, JSON, None).await?;
    object::json::parse(&raw.json).map_err(ApiError::internal)
}

/// What is measured for a metric; `selector` is that of the pods of the target.
pub(super) async fn figures(
    client: &Client,
    kinds: &Kinds,
    namespace: &str,
    spec: &Value,
    selector: &str,
) -> Result<Figures, String> {
    match spec.text("type") {
        "Pods" => of_pods(client, namespace, spec.at("pods"), selector).await.map(Figures::PerPod),
        "Object" => of_object(client, kinds, namespace, spec.at("object")).await.map(Figures::Total),
        "External" => external(client, namespace, spec.at("external")).await.map(Figures::Total),
        "ContainerResource" => {
            let source = spec.at("containerResource");
            let (name, container) = (source.text("name"), source.text("container"));
            resource(client, namespace, name, container, selector).await.map(Figures::PerPod)
        }
        _ => {
            let name = spec.at("resource").text("name");
            resource(client, namespace, name, "", selector).await.map(Figures::PerPod)
        }
    }
}

async fn resource(
    client: &Client,
    namespace: &str,
    name: &str,
    container: &str,
    selector: &str,
) -> Result<Readings, String> {
    let options = ListOptions { label_selector: selector.to_owned(), ..ListOptions::default() };
    let list = client.list_raw(&POD_METRICS, namespace, &options).await;
    let list = list.map_err(|error| format!("unable to fetch metrics from resource metrics API: {error}"))?;
    if list.items.is_empty() {
        return Err("no metrics returned from resource metrics API".to_owned());
    }
    let metrics = list.items.iter().filter_map(|raw| object::json::parse(&raw.json).ok());
    Ok(metrics.filter_map(|pod| reading_of_pod(&pod, name, container)).collect())
}

/// What a pod uses of a resource; nothing is known of it unless that is known of all its containers.
fn reading_of_pod(pod: &Value, resource: &str, container: &str) -> Option<(String, Reading)> {
    let of = |candidate: &&Value| container.is_empty() || candidate.text("name") == container;
    let mut containers = pod.items("containers").iter().filter(of).peekable();
    containers.peek()?;
    let values = containers.map(|container| millis(container.at("usage").at(resource)));
    let value = values.sum::<Option<i64>>()?;
    let at = Time::parse(pod.text("timestamp")).unwrap_or_default();
    let window = object::time::parse_duration(pod.text("window")).unwrap_or(WINDOW);
    Some((pod.at("metadata").text("name").to_owned(), Reading { value, at, window }))
}

async fn of_pods(client: &Client, namespace: &str, source: &Value, selector: &str) -> Result<Readings, String> {
    let metric = source.at("metric");
    let path = format!("/namespaces/{namespace}/pods/*/{}", metric.text("name"));
    let items = custom(client, &path, metric, selector).await?;
    let readings = items.iter().filter_map(|item| {
        let seconds = item.int("windowSeconds").and_then(|seconds| u64::try_from(seconds).ok());
        let reading = Reading {
            value: millis(item.at("value"))?,
            at: Time::parse(item.text("timestamp")).unwrap_or_default(),
            window: seconds.map_or(WINDOW, Duration::from_secs),
        };
        Some((item.at("describedObject").text("name").to_owned(), reading))
    });
    Ok(readings.collect())
}

async fn of_object(client: &Client, kinds: &Kinds, namespace: &str, source: &Value) -> Result<i64, String> {
    let (object, metric) = (source.at("describedObject"), source.at("metric"));
    let name = metric.text("name");
    let path = if object.text("kind") == "Namespace" && !object.text("apiVersion").contains('/') {
        format!("/namespaces/{namespace}/metrics/{name}")
    } else {
        let id = kinds.find(client, object.text("apiVersion"), object.text("kind")).await?;
        let resource = match id.group() {
            "" => id.plural.to_string(),
            group => format!("{}.{group}", id.plural),
        };
        format!("/namespaces/{namespace}/{resource}/{}/{name}", object.text("name"))
    };
    let items = custom(client, &path, metric, "").await?;
    let value = items.first().and_then(|item| millis(item.at("value")));
    value.ok_or_else(|| "no metrics returned from custom metrics API".to_owned())
}

/// Asks the custom metrics API, in whichever version it is there.
async fn custom(client: &Client, path: &str, metric: &Value, selector: &str) -> Result<Vec<Value>, String> {
    let mut query = Vec::new();
    if !selector.is_empty() {
        query.push(("labelSelector", selector.to_owned()));
    }
    query.extend(selector_text(metric)?.map(|text| ("metricLabelSelector", text)));
    let mut answer = Err(String::new());
    for root in CUSTOM_METRICS {
        match get(client, &with_query(&format!("{root}{path}"), &query)).await {
            Ok(list) if list.items("items").is_empty() => {
                return Err("no metrics returned from custom metrics API".to_owned());
            }
            Ok(list) => return Ok(list.items("items").to_vec()),
            Err(error) => {
                let is_elsewhere = error.reason() == Reason::NotFound;
                answer = Err(format!("unable to fetch metrics from custom metrics API: {error}"));
                if !is_elsewhere {
                    break;
                }
            }
        }
    }
    answer
}

async fn external(client: &Client, namespace: &str, source: &Value) -> Result<i64, String> {
    let metric = source.at("metric");
    let query: Vec<_> = selector_text(metric)?.map(|text| ("labelSelector", text)).into_iter().collect();
    let path = format!("{EXTERNAL_METRICS}/namespaces/{namespace}/{}", metric.text("name"));
    let list = get(client, &with_query(&path, &query)).await;
    let list = list.map_err(|error| format!("unable to fetch metrics from external metrics API: {error}"))?;
    if list.items("items").is_empty() {
        return Err("no metrics returned from external metrics API".to_owned());
    }
    let values = list.items("items").iter().filter_map(|item| millis(item.at("value")));
    Ok(values.fold(0, i64::saturating_add))
}

/// The selector of a metric, as queries carry it.
fn selector_text(metric: &Value) -> Result<Option<String>, String> {
    let selector = metric.at("selector");
    if selector.is_null() {
        return Ok(None);
    }
    let parsed = Selector::from_object(selector).map_err(|error| error.to_string())?;
    Ok(Some(parsed.to_string()).filter(|text| !text.is_empty()))
}

fn millis(quantity: &Value) -> Option<i64> {
    Some(quantity.as_str()?.parse::<Quantity>().ok()?.millis())
}
