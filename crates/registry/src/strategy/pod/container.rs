//! The rules of containers: those all have, and those of each of the three lists.

use super::requirements::{self, Of};
use super::resources::is_sidecar;
use super::{env, mounts, probe, security};
use crate::strategy::place::Place;
use object::field::Errors;
use object::{Value, name};
use std::collections::{BTreeMap, BTreeSet};

/// What the rules of a container need to know of its pod.
pub(super) struct Pod<'v> {
    /// The volumes that nothing is wrong with.
    pub volumes: BTreeMap<&'v str, &'v Value>,
    pub claims: BTreeSet<&'v str>,
    pub grace_seconds: Option<i64>,
    pub restart_policy: &'v str,
    pub host_users: bool,
    pub os: &'v str,
    /// Rather than a template of one.
    pub is_pod: bool,
}

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
pub(super) const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const RESTART_RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
/// What an ephemeral container, which comes late and is not relied upon, cannot have.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
];

pub(super) fn validate_all(spec: &Place, pod: &Pod, errors: &mut Errors) {
    let (containers, init) = (spec.field("containers"), spec.field("initContainers"));
    let mut names = BTreeSet::new();
    if containers.is_empty() {
        containers.required(errors, "");
    }
    let mut host_ports = BTreeSet::new();
    for container in containers.items() {
        validate(&container, pod, errors);
        unique_name(&container, &mut names, errors);
        probe::validate_all(&container, pod, errors);
        restart_policy(&container, errors);
    }
    for container in containers.items() {
        unique_host_ports(&container, &mut host_ports, errors);
    }
    for container in init.items() {
        validate(&container, pod, errors);
        restart_policy(&container, errors);
        unique_name(&container, &mut names, errors);
        // Those that run one after the other may use the same port.
        unique_host_ports(&container, &mut BTreeSet::new(), errors);
        validate_init(&container, pod, errors);
    }
    let ephemeral = spec.field("ephemeralContainers");
    if ephemeral.is_empty() {
        return;
    }
    let others = names.clone();
    for container in ephemeral.items() {
        validate(&container, pod, errors);
        image_is_trimmed(&container, errors);
        unique_name(&container, &mut names, errors);
        validate_ephemeral(&container, &others, errors);
    }
}

fn validate(container: &Place, pod: &Pod, errors: &mut Errors) {
    container.field("name").require_follows(errors, name::dns_label);
    container.field("image").require(errors);
    let policy = container.field("terminationMessagePolicy");
    policy.require_one_of(errors, &["File", "FallbackToLogsOnError"]);
    ports(&container.field("ports"), errors);
    env::validate(container, errors);
    mounts::validate(container, pod, errors);
    container.field("imagePullPolicy").require_one_of(errors, &PULL_POLICIES);
    requirements::validate(&container.field("resources"), Of::Container, pod, errors);
    resize_policy(&container.field("resizePolicy"), pod, errors);
    security::validate_container(&container.field("securityContext"), pod.host_users, errors);
}

fn unique_name<'v>(container: &Place<'v, '_>, names: &mut BTreeSet<&'v str>, errors: &mut Errors) {
    let name = container.field("name");
    if !names.insert(name.text()) {
        name.duplicate(errors, name.text());
    }
}

fn ports(ports: &Place, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.field("name");
        if !name.is_empty() {
            let before = errors.len();
            name.follows(errors, name::port_name);
            if errors.len() == before && !names.insert(name.text()) {
                name.duplicate(errors, name.text());
            }
        }
        match port.field("containerPort") {
            number if number.int() == 0 => number.required(errors, ""),
            number => number.port(errors),
        }
        if port.field("hostPort").int() != 0 {
            port.field("hostPort").port(errors);
        }
        port.field("protocol").require_one_of(errors, &PROTOCOLS);
    }
}

fn unique_host_ports<'v>(
    container: &Place<'v, '_>,
    taken: &mut BTreeSet<(&'v str, &'v str, i64)>,
    errors: &mut Errors,
) {
    for port in container.field("ports").items() {
        let number = port.field("hostPort");
        let (protocol, address) = (port.field("protocol").text(), port.field("hostIP").text());
        if number.int() != 0 && !taken.insert((protocol, address, number.int())) {
            number.duplicate(errors, format!("{protocol}/{address}/{}", number.int()));
        }
    }
}

/// With the network of the host, the port of a container is the port of the host.
pub(super) fn validate_host_network(spec: &Place, pod: &Pod, errors: &mut Errors) {
    if spec.field("hostNetwork").value() != true {
        return;
    }
    for container in spec.field("containers").items() {
        for port in container.field("ports").items() {
            let host = port.field("hostPort");
            let must_match = pod.is_pod || host.int() != 0;
            if must_match && host.int() != port.field("containerPort").int() {
                host.invalid_value(errors, host.int(), "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
}

fn resize_policy(policies: &Place, pod: &Pod, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for policy in policies.items() {
        let (resource, restart) = (policy.field("resourceName"), policy.field("restartPolicy"));
        if !seen.insert(resource.text()) {
            policy.duplicate(errors, resource.text());
        }
        // The path of these mistakes is that of the list.
        for (word, supported) in
            [(resource.text(), ["cpu", "memory"]), (restart.text(), ["NotRequired", "RestartContainer"])]
        {
            match word {
                "" => policies.required(errors, ""),
                word if supported.contains(&word) => {}
                word => policies.not_supported_value(errors, word, &supported),
            }
        }
        if pod.restart_policy == "Never" && restart.text() != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            policies.invalid_value(errors, restart.text(), detail);
        }
    }
}

fn restart_policy(container: &Place, errors: &mut Errors) {
    let (policy, rules) = (container.field("restartPolicy"), container.field("restartPolicyRules"));
    policy.one_of_if_set(errors, &["Always", "Never", "OnFailure"]);
    if rules.is_empty() {
        return;
    }
    if !policy.is_set() {
        policy.required(errors, "must specify restartPolicy when restart rules are used");
    }
    let count = rules.items().count();
    if count > RESTART_RULES_MAX {
        rules.too_many(errors, count, RESTART_RULES_MAX);
    }
    for rule in rules.items() {
        let (action, codes) = (rule.field("action"), rule.field("exitCodes"));
        action.one_of(errors, &["Restart", "RestartAllContainers"]);
        if !codes.is_set() {
            codes.required(errors, "must be specified");
            continue;
        }
        codes.field("operator").one_of(errors, &["In", "NotIn"]);
        let values = codes.field("values");
        let count = values.items().count();
        if count > EXIT_CODES_MAX {
            values.too_many(errors, count, EXIT_CODES_MAX);
        }
    }
}

fn validate_init(container: &Place, pod: &Pod, errors: &mut Errors) {
    if is_sidecar(container.value()) {
        probe::validate_all(container, pod, errors);
        return;
    }
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if container.field(field).is_set() {
            let detail = "may not be set for init containers without restartPolicy=Always";
            container.field(field).forbidden(errors, detail);
        }
    }
    for policy in container.field("resizePolicy").items() {
        if policy.field("restartPolicy").text() == "RestartContainer" {
            let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            policy.field("restartPolicy").invalid(errors, detail);
        }
    }
}

fn validate_ephemeral(container: &Place, others: &BTreeSet<&str>, errors: &mut Errors) {
    const REFUSED: &str = "cannot be set for an Ephemeral Container";
    let target = container.field("targetContainerName");
    if !target.is_empty() && !others.contains(target.text()) {
        target.not_found(errors, target.text());
    }
    for field in NOT_EPHEMERAL {
        if !container.field(field).is_empty() {
            container.field(field).forbidden(errors, REFUSED);
        }
    }
    for mount in container.field("volumeMounts").items() {
        for field in ["subPath", "subPathExpr"] {
            if !mount.field(field).is_empty() {
                mount.field(field).forbidden(errors, REFUSED);
            }
        }
    }
}

/// A template may have blanks around an image, which something fills in; a pod may not.
pub(super) fn image_is_trimmed(container: &Place, errors: &mut Errors) {
    let image = container.field("image");
    if image.text().trim() != image.text() {
        image.invalid(errors, "must not have leading or trailing whitespace");
    }
}
