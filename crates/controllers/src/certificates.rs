//! Certificates: requests of nodes are approved, approved requests are signed, and old requests are deleted.
//!
//! Which requests a signer of Kubernetes takes is in [`rules`]. Requests for other signers are left to those, and whom
//! else to approve to people.

use crate::settings::{Settings, Signer};
use kinds::{CertificateSigningRequest, Id, Kind, Object, Time};
use object::{ApiError, Edit, Value, View, base64, json};
use runtime::{Client, Context, Controller, Plan, Request, Write};
use std::sync::Arc;
use std::time::Duration;

mod rules;

const HOUR: Duration = Duration::from_secs(3600);
/// How long requests are kept that were decided, and those that wait.
const DECIDED: Duration = HOUR;
const WAITING: Duration = Duration::from_secs(24 * 3600);
/// How soon it is asked again whether somebody may have what was refused.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// How long certificates are good, unless less is asked for, but at least so long.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
const MIN_LIFETIME: Duration = Duration::from_secs(600);
/// Clocks may be behind.
const BACKDATE: Duration = Duration::from_secs(300);
/// Certificates that are good for less than this do not lose that much at the end.
const SHORT: Duration = Duration::from_secs(8 * 3600);
const REVIEW: Id = Id::new("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", false);

pub(crate) fn controller(settings: &Settings) -> Controller {
    let signer = settings.signer.clone();
    Controller::new("certificate-controller")
        .primary::<CertificateSigningRequest>()
        .plans_with(move |context, request| reconcile(signer.clone(), context, request))
}

type Asking = Object<CertificateSigningRequest>;

async fn reconcile(signer: Option<Arc<dyn Signer>>, context: Context, request: Request) -> Result<Plan, ApiError> {
    let Some(asking) = context.caches.of::<CertificateSigningRequest>().get(&request.key) else {
        return Ok(Plan::default());
    };
    let Some(signer) = signer.filter(|_| !is_over(&asking, request.now)) else {
        return plan(&asking, None, Approval::None, request.now);
    };
    let mut approval = Approval::None;
    for (subresource, message) in approvable(&asking, &*signer) {
        approval = Approval::Refused;
        if may(&context.client, &asking, subresource).await? {
            approval = Approval::Granted(message);
            break;
        }
    }
    plan(&asking, Some(&*signer), approval, request.now)
}

/// Whether a request is approved by itself.
#[derive(Clone, Copy)]
enum Approval {
    /// It is not of a kind that is.
    None,
    /// It is, but whoever asks is not allowed to, or not yet.
    Refused,
    /// It is, and this is said of it.
    Granted(&'static str),
}

/// Deletes what is old, or approves, or signs. What cannot be signed now is tried again.
fn plan(asking: &Asking, signer: Option<&dyn Signer>, approval: Approval, now: Time) -> Result<Plan, ApiError> {
    let mut plan = Plan::default();
    if is_over(asking, now) {
        plan.delete(asking);
        return Ok(plan);
    }
    match approval {
        Approval::Granted(message) => {
            let condition = condition("Approved", "AutoApproved", message, now);
            update(&mut plan, asking, "approval", |status| status.push("conditions", condition));
        }
        Approval::Refused => {
            plan.requeue_after(ASK_AGAIN);
        }
        Approval::None => {
            if let Some(signer) = signer.filter(|_| waits_for_signature(asking)) {
                sign(&mut plan, asking, signer, now)?;
            }
        }
    }
    if let Some(end) = kept_until(asking) {
        plan.requeue_after(end.since(now) + Duration::from_secs(1));
    }
    Ok(plan)
}

fn has(asking: &CertificateSigningRequest, kind: &str) -> bool {
    kinds::condition(&asking.status.conditions, kind).is_some_and(|condition| condition.status == "True")
}

fn waits_for_signature(asking: &CertificateSigningRequest) -> bool {
    asking.status.certificate.is_empty() && has(asking, "Approved") && !has(asking, "Denied") && !has(asking, "Failed")
}

fn pem(asking: &CertificateSigningRequest) -> Result<String, String> {
    let bytes = base64::decode(&asking.spec.request).ok_or("the request is not in base64")?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// What somebody has to be allowed so that a request is approved by itself, and what is said then.
fn approvable(asking: &CertificateSigningRequest, signer: &dyn Signer) -> Vec<(&'static str, &'static str)> {
    let is_open = asking.status.certificate.is_empty() && !has(asking, "Approved") && !has(asking, "Denied");
    let asked = pem(asking).and_then(|pem| signer.read(&pem)).ok();
    let Some(asked) = asked.filter(|_| is_open && asking.spec.signer_name == rules::KUBELET_CLIENT) else {
        return Vec::new();
    };
    if rules::check(rules::KUBELET_CLIENT, &asked, &asking.spec.usages) != Some(Ok(())) {
        return Vec::new();
    }
    let own = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.");
    let any = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.");
    if asked.common_name == asking.spec.username { vec![own, any] } else { vec![any] }
}

/// Whether whoever asks may do this to requests.
async fn may(client: &Client, asking: &CertificateSigningRequest, subresource: &str) -> Result<bool, ApiError> {
    let spec = &asking.spec;
    let attributes = json!({
        "group": "certificates.k8s.io", "version": "*", "resource": "certificatesigningrequests",
        "subresource": subresource, "verb": "create",
    });
    let mut review = json!({ "kind": REVIEW.kind, "apiVersion": REVIEW.api_version, "spec": {
        "user": spec.username, "uid": spec.uid, "groups": spec.groups, "resourceAttributes": attributes,
    } });
    if !spec.extra.is_null() {
        review["spec"].set("extra", spec.extra.clone());
    }
    let answer = client.create(&REVIEW, &review).await?;
    let answer = object::json::parse(&answer.json).map_err(ApiError::internal)?;
    Ok(answer.at("status").flag("allowed"))
}

/// Signs what its signer takes, and says of the rest why not. Only what is asked for can be wrong for good: if signing
/// itself fails, it may succeed later.
fn sign(plan: &mut Plan, asking: &Asking, signer: &dyn Signer, now: Time) -> Result<(), ApiError> {
    let spec = &asking.spec;
    let taken = pem(asking).and_then(|pem| {
        let asked = signer.read(&pem)?;
        let Some(verdict) = rules::check(&spec.signer_name, &asked, &spec.usages) else { return Ok(None) };
        verdict.map(|()| Some(pem))
    });
    match taken {
        Ok(None) => {}
        Ok(Some(pem)) => {
            let (from, until) = validity(spec.expiration_seconds, now);
            let certificate = signer.sign(&pem, &spec.usages, from, until);
            let certificate =
                certificate.map_err(|why| ApiError::internal(format!("error auto signing csr: {why}")))?;
            update(plan, asking, "status", |status| {
                status.set("certificate", base64::encode(certificate.as_bytes()));
            });
        }
        Err(why) => {
            let condition = condition("Failed", "SignerValidationFailure", &why, now);
            update(plan, asking, "status", |status| status.push("conditions", condition));
        }
    }
    Ok(())
}

/// From when until when a certificate is good, since 1970.
fn validity(seconds: Option<i32>, now: Time) -> (Duration, Duration) {
    let asked = seconds.map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
    let lifetime = asked.map_or(LIFETIME, |asked| asked.clamp(MIN_LIFETIME, LIFETIME));
    let from = (now - BACKDATE).since(Time(0));
    (from, if lifetime < SHORT { from + BACKDATE + lifetime } else { from + lifetime })
}

fn condition(kind: &str, reason: &str, message: &str, now: Time) -> Value {
    json!({
        "type": kind, "status": "True", "reason": reason, "message": message, "lastUpdateTime": now,
        "lastTransitionTime": now,
    })
}

fn update(plan: &mut Plan, asking: &Asking, subresource: &'static str, edit: impl FnOnce(&mut Value)) {
    let mut object = asking.json();
    edit(object.object_or_new("status"));
    plan.writes.push(Write::Update { id: CertificateSigningRequest::ID, subresource, object, announce: None });
}

/// Until when a request is kept.
fn kept_until(asking: &CertificateSigningRequest) -> Option<Time> {
    let is_issued = !asking.status.certificate.is_empty();
    if asking.status.conditions.is_empty() {
        return asking.metadata.creation_timestamp.map(|created| created + WAITING);
    }
    let ends = asking.status.conditions.iter().filter_map(|condition| {
        let kept = match condition.kind.as_str() {
            "Approved" if !is_issued => WAITING,
            "Approved" | "Denied" | "Failed" => DECIDED,
            _ => return None,
        };
        Some(condition.last_update_time? + kept)
    });
    ends.min()
}

fn is_over(asking: &CertificateSigningRequest, now: Time) -> bool {
    kept_until(asking).is_some_and(|end| end < now)
}

#[cfg(test)]
mod tests;
