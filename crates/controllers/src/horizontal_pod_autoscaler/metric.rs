//! What each metric proposes.

use super::behavior::Tolerance;
use super::report::Conditions;
use super::usage::{self, Readings, Target, Usage, scaled};
use kinds::{HorizontalPodAutoscaler, Object, Pod, Time};
use object::{Quantity, Value, View, json};
use runtime::{Note, Plan};
use std::fmt::Write as _;
use std::sync::Arc;

/// What was measured for a metric.
#[derive(Clone, Debug)]
pub(super) enum Figures {
    /// Of each pod.
    PerPod(Readings),
    /// Of an object, or of something outside, in thousandths.
    Total(i64),
}

/// What a proposal depends on, besides the figures.
pub(super) struct Situation<'a> {
    pub(super) namespace: &'a str,
    /// How many replicas the target is to have.
    pub(super) replicas: i32,
    /// How many it says it has.
    pub(super) reported_replicas: i32,
    pub(super) pods: &'a [Arc<Object<Pod>>],
    pub(super) tolerance: Tolerance,
    pub(super) now: Time,
}

/// The largest number that any metric asks for.
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// What the metric is called in messages.
    pub(super) metric: String,
    pub(super) statuses: Vec<Value>,
}

/// Asks all metrics. If some fail the others may still ask for more, but not for less: the failing ones might know
/// better. On failure, why, and what is known of the metrics.
pub(super) fn propose(
    plan: &mut Plan,
    autoscaler: &Object<HorizontalPodAutoscaler>,
    figures: &[Result<Figures, String>],
    situation: &Situation<'_>,
    conditions: &mut Conditions,
) -> Result<Proposal, (String, Vec<Value>)> {
    let specs = &autoscaler.spec.metrics;
    let mut proposal = Proposal { replicas: 0, metric: String::new(), statuses: Vec::new() };
    let mut failures: Vec<Failure> = Vec::new();
    for (spec, figures) in specs.iter().zip(figures) {
        match Metric::of(spec).propose(figures, situation) {
            Ok(Answer { replicas, name, current }) => {
                proposal.statuses.push(Metric::of(spec).status(&current));
                if proposal.replicas == 0 || replicas > proposal.replicas {
                    (proposal.replicas, proposal.metric) = (replicas, name);
                }
            }
            Err(failure) => {
                proposal.statuses.push(json!({ "type": "" }));
                plan.event(Note::warning(autoscaler, failure.reason, failure.why.as_str()));
                failures.push(failure);
            }
        }
    }
    if let Some(first) = failures.first()
        && (failures.len() == specs.len() || proposal.replicas < situation.replicas)
    {
        let message = format!("the HPA was unable to compute the replica count: {}", first.why);
        conditions.set("ScalingActive", false, first.reason, &message);
        let (invalid, of, why) = (failures.len(), specs.len(), &first.context);
        let why = format!("invalid metrics ({invalid} invalid out of {of}), first error is: {why}: {}", first.why);
        return Err((why, proposal.statuses));
    }
    let message = format!("the HPA was able to successfully calculate a replica count from {}", proposal.metric);
    conditions.set("ScalingActive", true, "ValidMetricFound", &message);
    Ok(proposal)
}

struct Answer {
    replicas: i32,
    name: String,
    current: Value,
}

struct Failure {
    /// Of the event and the condition.
    reason: &'static str,
    why: String,
    /// What is said before that where all metrics are spoken of.
    context: String,
}

/// One metric of the specification.
struct Metric<'a> {
    source: Source,
    /// What the specification says of it.
    body: &'a Value,
}

#[derive(Clone, Copy, PartialEq)]
enum Source {
    Resource,
    ContainerResource,
    Pods,
    Object,
    External,
}

/// For each source its name, its field, and the reason why it failed if it did.
const SOURCES: [(Source, &str, &str, &str); 5] = [
    (Source::Resource, "Resource", "resource", "FailedGetResourceMetric"),
    (Source::ContainerResource, "ContainerResource", "containerResource", "FailedGetContainerResourceMetric"),
    (Source::Pods, "Pods", "pods", "FailedGetPodsMetric"),
    (Source::Object, "Object", "object", "FailedGetObjectMetric"),
    (Source::External, "External", "external", "FailedGetExternalMetric"),
];

impl<'a> Metric<'a> {
    fn of(spec: &'a Value) -> Self {
        // The API lets no other source through.
        let row = SOURCES.iter().find(|(_, name, ..)| *name == spec.text("type")).unwrap_or(&SOURCES[0]);
        Metric { source: row.0, body: spec.at(row.2) }
    }

    fn row(&self) -> &'static (Source, &'static str, &'static str, &'static str) {
        SOURCES.iter().find(|(source, ..)| *source == self.source).unwrap_or(&SOURCES[0])
    }

    fn name(&self) -> &str {
        self.body.at("metric").text("name")
    }

    fn status(&self, current: &Value) -> Value {
        let (_, name, field, _) = self.row();
        let mut status = json!({ "current": current });
        for field in ["name", "container", "metric", "describedObject"] {
            if self.body.has(field) {
                status[field] = self.body.at(field).clone();
            }
        }
        json!({ "type": name, (*field): status })
    }

    fn propose(&self, figures: &Result<Figures, String>, situation: &Situation<'_>) -> Result<Answer, Failure> {
        let fail = |why: String| {
            let (name, is_shared) = (self.name(), self.body.at("target").has("averageValue"));
            let context = match self.source {
                Source::Resource => format!("failed to get {} resource metric value", self.body.text("name")),
                Source::ContainerResource => {
                    format!("failed to get {} container metric value", self.body.text("container"))
                }
                Source::Pods => "failed to get pods metric value".to_owned(),
                Source::Object if is_shared => {
                    format!("failed to get object metric value: failed to get {name} object metric")
                }
                Source::Object => "failed to get object metric value".to_owned(),
                Source::External if is_shared => {
                    format!("failed to get {name} external metric value: failed to get {name} external metric")
                }
                Source::External => {
                    format!("failed to get {name} external metric value: failed to get external metric {name}")
                }
            };
            Failure { reason: self.row().3, why, context }
        };
        match self.source {
            Source::Resource | Source::ContainerResource => self.by_resource(figures, situation),
            Source::Pods => self.by_pods(figures, situation),
            Source::Object | Source::External => self.by_total(figures, situation),
        }
        .map_err(fail)
    }

    fn by_resource(&self, figures: &Result<Figures, String>, situation: &Situation<'_>) -> Result<Answer, String> {
        let (resource, container) = (self.body.text("name"), self.body.text("container"));
        let target = self.body.at("target");
        let of_container = if self.source == Source::ContainerResource { " container" } else { "" };
        let (what, name) = if target.has("averageValue") {
            ("usage", format!("{resource} resource"))
        } else if target.has("averageUtilization") {
            ("utilization", format!("{resource}{of_container} resource utilization (percentage of request)"))
        } else {
            let why = "neither an average utilization target nor an average value (usage) target was set";
            return Err(format!("invalid resource metric source: {why}"));
        };
        let compute = || {
            let readings =
                per_pod(figures).map_err(|why| format!("unable to get metrics for resource {resource}: {why}"))?;
            let target = || match millis(target.at("averageValue")) {
                Some(average) => Ok(Target::Average(average)),
                None => Ok(Target::Utilization {
                    percent: i32::try_from(target.int("averageUtilization").unwrap_or(0)).unwrap_or(i32::MAX),
                    requests: usage::requests(situation.pods, resource, container)?,
                }),
            };
            by_usage(readings, target, resource == "cpu", situation)
        };
        let (replicas, usage) = compute().map_err(|why| format!("failed to get {resource} {what}: {why}"))?;
        let mut current = json!({ "averageValue": amount(usage.average, resource == "memory") });
        if let Some(utilization) = usage.utilization {
            current["averageUtilization"] = json!(utilization);
        }
        Ok(Answer { replicas, name, current })
    }

    fn by_pods(&self, figures: &Result<Figures, String>, situation: &Situation<'_>) -> Result<Answer, String> {
        let name = self.name();
        let readings = per_pod(figures).map_err(|why| format!("unable to get metric {name}: {why}"))?;
        let target = Target::Average(millis(self.body.at("target").at("averageValue")).unwrap_or(0));
        let (replicas, usage) = by_usage(readings, || Ok(target), false, situation)?;
        let current = json!({ "averageValue": amount(usage.average, false) });
        Ok(Answer { replicas, name: format!("pods metric {name}"), current })
    }

    /// Figures that are not of single pods: as they are, or divided among the pods.
    fn by_total(&self, figures: &Result<Figures, String>, situation: &Situation<'_>) -> Result<Answer, String> {
        let (name, selector) = (self.name(), shown(self.body.at("metric").at("selector")));
        let object = self.body.at("describedObject");
        let (kind, named, namespace) = (object.text("kind"), object.text("name"), situation.namespace);
        let total = match figures {
            Ok(Figures::Total(total)) => *total,
            Ok(Figures::PerPod(_)) => 0,
            Err(why) if self.source == Source::Object => {
                return Err(format!("unable to get metric {name} on {kind} {namespace}/{named}: {why}"));
            }
            Err(why) => return Err(format!("unable to get external metric {namespace}/{name}/{selector}: {why}")),
        };
        let target = self.body.at("target");
        let external = format!("external metric {name}({selector})");
        if let Some(average) = millis(target.at("averageValue")) {
            let share = total as f64 / f64::from(situation.reported_replicas.max(1));
            let is_close = situation.reported_replicas > 0 && situation.tolerance.allows(share / average as f64);
            let wanted = scaled(total as f64 / average as f64, 1);
            let replicas = if is_close { situation.reported_replicas } else { wanted };
            let current = json!({ "averageValue": amount(share.ceil() as i64, false) });
            return Ok(Answer { replicas, name: external, current });
        }
        let Some(value) = millis(target.at("value")) else {
            let source = if self.source == Source::Object { "object" } else { "external" };
            let why = "neither a value target nor an average value target was set";
            return Err(format!("invalid {source} metric source: {why}"));
        };
        let ratio = total as f64 / value as f64;
        let ready = situation.pods.iter().filter(|pod| pod.status.phase == "Running" && pod.is_ready()).count();
        let replicas = match situation.replicas {
            0 => scaled(ratio, 1),
            replicas if situation.tolerance.allows(ratio) => replicas,
            _ if situation.pods.is_empty() => {
                let why = "no pods returned by selector while calculating replica count";
                return Err(format!("unable to calculate ready pods: {why}"));
            }
            _ => scaled(ratio, ready),
        };
        let name = if self.source == Source::Object { format!("{kind} metric {name}") } else { external };
        Ok(Answer { replicas, name, current: json!({ "value": amount(total, false) }) })
    }
}

fn per_pod(figures: &Result<Figures, String>) -> Result<&Readings, String> {
    match figures {
        Ok(Figures::PerPod(readings)) => Ok(readings),
        Ok(Figures::Total(_)) => Err("no metrics of pods".to_owned()),
        Err(why) => Err(why.clone()),
    }
}

fn by_usage(
    readings: &Readings,
    target: impl FnOnce() -> Result<Target, String>,
    is_cpu: bool,
    situation: &Situation<'_>,
) -> Result<(i32, Usage), String> {
    let Situation { pods, replicas, tolerance, now, .. } = situation;
    if pods.is_empty() {
        return Err("no pods returned by selector while calculating replica count".to_owned());
    }
    usage::replicas(readings, pods, is_cpu, target, *replicas, *tolerance, *now)
}

fn millis(quantity: &Value) -> Option<i64> {
    Some(quantity.as_str()?.parse::<Quantity>().ok()?.millis())
}

/// An amount in thousandths, as quantities are written; bytes in their own way.
fn amount(millis: i64, is_bytes: bool) -> String {
    match is_bytes && millis % 1000 == 0 {
        true => Quantity::from_bytes(millis / 1000).to_string(),
        false => Quantity::from_millis(millis).to_string(),
    }
}

/// A selector in the words of messages about metrics, which people grep for.
fn shown(selector: &Value) -> String {
    if selector.is_null() {
        return "nil".to_owned();
    }
    let mut labels = String::new();
    for (name, value) in selector.entries("matchLabels") {
        let _ = write!(labels, "{name}: {},", value.as_str().unwrap_or_default());
    }
    let expressions = selector.items("matchExpressions").iter().map(|expression| {
        let values: Vec<&str> = expression.items("values").iter().filter_map(Value::as_str).collect();
        let (key, operator) = (expression.text("key"), expression.text("operator"));
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},", values.join(" "))
    });
    let expressions: String = expressions.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
