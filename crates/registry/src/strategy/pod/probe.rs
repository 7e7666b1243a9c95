//! The rules of probes and of what runs at the start and the end of a container.

use super::container::Pod;
use crate::strategy::place::Place;
use object::field::Errors;

const NUMBERS: [&str; 5] =
    ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];

pub(super) fn validate_all(container: &Place, pod: &Pod, errors: &mut Errors) {
    for field in ["postStart", "preStop"] {
        let hook = container.field("lifecycle");
        if hook.field(field).is_set() {
            handler(&hook.field(field), &LIFECYCLE_HANDLERS, pod, errors);
        }
    }
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.field(field);
        if probe.is_set() {
            validate(&probe, field == "readinessProbe", pod, errors);
        }
    }
}

fn validate(probe: &Place, readiness: bool, pod: &Pod, errors: &mut Errors) {
    handler(probe, &PROBE_HANDLERS, pod, errors);
    for field in NUMBERS {
        probe.field(field).not_negative(errors);
    }
    let grace = probe.field("terminationGracePeriodSeconds");
    if grace.is_set() && grace.int() <= 0 {
        grace.invalid(errors, "must be greater than 0");
    }
    if readiness && grace.is_set() {
        grace.invalid(errors, "must not be set for readinessProbes");
    }
    let threshold = probe.field("successThreshold");
    if !readiness && threshold.int() != 1 {
        threshold.invalid_value(errors, threshold.int(), "must be 1");
    }
}

type Handler = (&'static str, fn(&Place, &Pod, &mut Errors));

const EXEC: Handler = ("exec", |exec, _, errors| {
    exec.field("command").require(errors);
});
const HTTP_GET: Handler = ("httpGet", |get, _, errors| http_get(get, errors));
const TCP_SOCKET: Handler = ("tcpSocket", |socket, _, errors| socket.field("port").port_or_name(errors));
const GRPC: Handler = ("grpc", |grpc, _, errors| grpc.field("port").port(errors));
const SLEEP: Handler = ("sleep", sleep);

const PROBE_HANDLERS: [Handler; 4] = [EXEC, HTTP_GET, TCP_SOCKET, GRPC];
const LIFECYCLE_HANDLERS: [Handler; 4] = [EXEC, HTTP_GET, TCP_SOCKET, SLEEP];

/// Exactly one way to do it.
fn handler(at: &Place, handlers: &[Handler], pod: &Pod, errors: &mut Errors) {
    let mut given = false;
    for (field, check) in handlers {
        let handler = at.field(field);
        if !handler.is_set() {
            continue;
        }
        if given {
            handler.forbidden(errors, "may not specify more than 1 handler type");
        } else {
            given = true;
            check(&handler, pod, errors);
        }
    }
    if !given {
        at.required(errors, "must specify a handler type");
    }
}

fn http_get(get: &Place, errors: &mut Errors) {
    get.field("path").require(errors);
    get.field("port").port_or_name(errors);
    get.field("scheme").one_of_if_set(errors, &["HTTP", "HTTPS"]);
    for header in get.field("httpHeaders").items() {
        let name = header.field("name").text();
        let good = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !good {
            let detail = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', \
                          regex used for validation is '[-A-Za-z0-9]+')";
            get.field("httpHeaders").invalid_value(errors, name, detail);
        }
    }
}

fn sleep(sleep: &Place, pod: &Pod, errors: &mut Errors) {
    let seconds = sleep.field("seconds").int();
    let Some(grace) = pod.grace_seconds else { return };
    if seconds < 0 || seconds > grace {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        sleep.invalid_value(errors, seconds, detail);
    }
}
