//! Pods.

use crate::shared::share;
use crate::{
    Container, ContainerStatus, Dict, Empty, LabelSelector, Labels, List, Meta, NodeSelector, Resources,
    SchedulingGroup, Shared, Time, kind,
};
use object::{Quantity, Value, View};
use serde::Deserialize;
use std::mem::take;
use std::ops::Deref;
use std::sync::Arc;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    pub metadata: Meta,
    pub spec: PodSpec,
    pub status: PodStatus,
}

kind!(Pod, "v1", "pods", namespaced,
"node" => |pod| vec![pod.spec.node_name.clone()],
"orphan" => |pod| pod.metadata.orphaned(),
"job" => |pod| pod.tracked_by(),
"claim" => |pod| pod.claims().map(|name| format!("{}/{name}", pod.metadata.namespace)).collect(),
"resource-claim" => |pod| {
    pod.resource_claim_names().map(|name| format!("{}/{name}", pod.metadata.namespace)).collect()
},
"claim-template" => |pod| {
    let templates = pod.spec.resource_claims.iter().filter_map(|claim| claim.resource_claim_template_name.as_ref());
    templates.map(|name| format!("{}/{name}", pod.metadata.namespace)).collect()
},
"group" => |pod| pod.group().map(|group| group.to_string()).into_iter().collect());

/// What is a pod's own, and through it what all pods of its template have alike.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "CommonSpec")]
pub struct PodSpec {
    pub node_name: String,
    pub hostname: String,
    /// Those that other objects have to do with.
    pub volumes: List<Volume>,
    common: Arc<CommonSpec>,
}

impl Deref for PodSpec {
    type Target = CommonSpec;
    fn deref(&self) -> &CommonSpec {
        &self.common
    }
}

impl From<CommonSpec> for PodSpec {
    fn from(mut read: CommonSpec) -> Self {
        let (node_name, hostname) = (take(&mut read.node_name), take(&mut read.hostname));
        let volumes = take(&mut read.volumes).into_iter().filter(Volume::concerns_others).collect();
        PodSpec { node_name, hostname, volumes, common: share(read) }
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct CommonSpec {
    /// These three are read here and moved to the pod's own.
    node_name: String,
    hostname: String,
    volumes: Vec<Volume>,
    pub scheduler_name: String,
    pub service_account_name: String,
    pub host_network: bool,
    pub subdomain: String,
    pub restart_policy: String,
    pub priority: Option<i32>,
    pub preemption_policy: String,
    pub termination_grace_period_seconds: Option<i64>,
    pub active_deadline_seconds: Option<i64>,
    pub node_selector: Labels,
    /// Read further where it is needed: most pods have none.
    pub affinity: Option<Box<Value>>,
    pub tolerations: List<Toleration>,
    pub topology_spread_constraints: List<Value>,
    pub scheduling_gates: List<Named>,
    pub scheduling_group: Option<Box<SchedulingGroup>>,
    pub readiness_gates: List<ReadinessGate>,
    pub containers: List<Container>,
    pub init_containers: List<Container>,
    pub overhead: Dict<Quantity>,
    pub resources: Option<Box<Resources>>,
    pub resource_claims: List<PodResourceClaim>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default)]
pub struct Named {
    pub name: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct ReadinessGate {
    pub condition_type: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct Toleration {
    pub key: String,
    pub operator: String,
    pub value: String,
    pub effect: String,
    pub toleration_seconds: Option<i64>,
}

/// A volume of a pod: its name, and what of its source other objects are found by.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct Volume {
    pub name: String,
    pub persistent_volume_claim: Option<ClaimSource>,
    /// A claim that is made for the pod; its name is the pod's, a dash and the volume's.
    pub ephemeral: Option<Box<Value>>,
    pub gce_persistent_disk: Option<Box<Value>>,
    pub aws_elastic_block_store: Option<Box<Value>>,
    pub iscsi: Option<Box<Value>>,
    pub rbd: Option<Box<Value>>,
}

impl Volume {
    /// Whether it is more than something of the pod alone.
    fn concerns_others(&self) -> bool {
        let name = self.name.clone();
        *self != Volume { name, ..Volume::default() }
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimSource {
    pub claim_name: String,
    pub read_only: bool,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct PodResourceClaim {
    pub name: String,
    pub resource_claim_name: Option<String>,
    pub resource_claim_template_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    pub phase: String,
    pub reason: Box<str>,
    pub conditions: Shared<Vec<Condition>>,
    #[serde(rename = "podIP")]
    pub pod_ip: String,
    #[serde(rename = "podIPs")]
    pub pod_ips: List<PodIp>,
    pub start_time: Option<Time>,
    pub nominated_node_name: Box<str>,
    pub container_statuses: Shared<Vec<ContainerStatus>>,
    pub init_container_statuses: Shared<Vec<ContainerStatus>>,
    pub resource_claim_statuses: List<PodResourceClaim>,
    /// The claim that was made for what it asks for by the names of resources.
    pub extended_resource_claim_status: Option<Box<ExtendedResourceClaim>>,
    pub observed_generation: i64,
    /// What the pod as a whole has, and what it has been promised.
    pub resources: Shared<Resources>,
    pub allocated_resources: Shared<Dict<Quantity>>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct ExtendedResourceClaim {
    pub resource_claim_name: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default)]
pub struct PodIp {
    pub ip: String,
}

/// A condition of any kind: they all look alike.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub last_transition_time: Option<Time>,
    pub last_heartbeat_time: Option<Time>,
    pub last_update_time: Option<Time>,
    pub observed_generation: i64,
}

impl CommonSpec {
    /// The nodes that its affinity restricts it to, if it does.
    pub fn required_nodes(&self) -> Option<NodeSelector> {
        let path = ["nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
        let required = self.affinity.as_deref()?.path(&path);
        (!required.is_null()).then(|| NodeSelector::read(required))
    }
}

/// Keeps a pod of a job until it has been counted.
pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

impl Pod {
    /// For an index: the job that has yet to count it, as `namespace/name`.
    fn tracked_by(&self) -> Vec<String> {
        let meta = &self.metadata;
        let job = meta.controller().filter(|owner| owner.kind == "Job" && meta.has_finalizer(JOB_TRACKING));
        job.iter().map(|job| format!("{}/{}", meta.namespace, job.name)).collect()
    }

    /// The condition of a type, if it is there.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        condition(&self.status.conditions, kind)
    }

    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|ready| ready.status == "True")
    }

    /// Whether it has been ready for so long.
    pub fn is_available(&self, min_ready_seconds: i64, now: Time) -> bool {
        let Some(ready) = self.condition("Ready").filter(|ready| ready.status == "True") else { return false };
        let since = ready.last_transition_time;
        min_ready_seconds == 0
            || since.is_some_and(|since| Time::from_seconds(since.seconds() + min_ready_seconds) <= now)
    }

    /// Whether what it has is not what it asks for: it is being resized, or is to be.
    pub fn is_resizing(&self) -> bool {
        let differs = |asked: &Resources, has: &Resources, promised: &Dict<Quantity>| {
            !has.is_empty() && (*has != *asked || *promised != asked.requests)
        };
        let of = |containers: &[Container], statuses: &[ContainerStatus]| {
            let mut pairs = statuses.iter().filter_map(|status| {
                let container = containers.iter().find(|container| container.name == status.name)?;
                Some((container, status))
            });
            pairs.any(|(one, status)| differs(&one.resources, &status.resources, &status.allocated_resources))
        };
        let status = &self.status;
        of(&self.spec.containers, &status.container_statuses)
            || of(&self.spec.init_containers, &status.init_container_statuses)
            || self
                .spec
                .resources
                .as_ref()
                .is_some_and(|asked| differs(asked, &status.resources, &status.allocated_resources))
    }

    /// Whether all its containers have ended for good.
    pub fn is_finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether it runs or may yet run, and is not on its way out.
    pub fn is_active(&self) -> bool {
        !self.is_finished() && !self.metadata.is_being_deleted()
    }

    /// The names of the claims of devices it has, as far as they are known: those made for it stand in its status.
    pub fn resource_claim_names(&self) -> impl Iterator<Item = &str> {
        let entries = self.spec.resource_claims.iter().chain(&self.status.resource_claim_statuses);
        let extended = self.status.extended_resource_claim_status.as_ref();
        let extended = extended.map(|status| status.resource_claim_name.as_str());
        entries.filter_map(|entry| entry.resource_claim_name.as_deref()).chain(extended)
    }

    /// The names of the claims it mounts, those made for it included.
    pub fn claims(&self) -> impl Iterator<Item = String> {
        self.spec.volumes.iter().filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(claim), _) => Some(claim.claim_name.clone()),
            (None, Some(_)) => Some(self.claim_for(volume)),
            (None, None) => None,
        })
    }

    /// What the claim is called that is made for a volume of its own.
    fn claim_for(&self, volume: &Volume) -> String {
        format!("{}-{}", self.metadata.name, volume.name)
    }

    /// Whether a claim is one that is made for it.
    pub fn makes_claim(&self, name: &str) -> bool {
        self.spec.volumes.iter().any(|volume| volume.ephemeral.is_some() && self.claim_for(volume) == name)
    }
}

/// The condition of a type, if it is there.
pub fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// The template of a pod: what decides about it is read, and the whole is passed on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodTemplate {
    pub labels: Labels,
    pub annotations: Labels,
    pub json: Value,
}

impl<'de> Deserialize<'de> for PodTemplate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(PodTemplate::from(Value::deserialize(deserializer)?))
    }
}

impl From<Value> for PodTemplate {
    fn from(json: Value) -> Self {
        let texts = |field: &str| {
            let entries = json.at("metadata").entries(field);
            entries.map(|(key, value)| (key.to_owned(), value.as_str().unwrap_or_default().to_owned())).collect()
        };
        PodTemplate { labels: texts("labels"), annotations: texts("annotations"), json }
    }
}

impl PodTemplate {
    pub fn spec(&self) -> PodSpec {
        PodSpec::deserialize(self.json.at("spec")).unwrap_or_default()
    }
}

/// Whether a selector, absent or not, picks a pod.
pub fn selects(selector: &LabelSelector, pod: &Pod) -> bool {
    selector.matches(&pod.metadata.labels)
}
