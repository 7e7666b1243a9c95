//! Requests, and what becomes of them.

use super::*;
use crate::fixture::NOW;
use crate::settings::Asked;

#[derive(Debug)]
struct Anyone;

impl Signer for Anyone {
    fn read(&self, request: &str) -> Result<Asked, String> {
        match request {
            "nonsense" => Err("it cannot be read".to_owned()),
            name => Ok(Asked {
                common_name: name.to_owned(),
                organizations: vec!["system:nodes".into()],
                ..Asked::default()
            }),
        }
    }

    fn sign(&self, request: &str, _: &[String], from: Duration, until: Duration) -> Result<String, String> {
        match request {
            "too early" => Err("the signer has expired".to_owned()),
            _ => Ok(format!("{request} {}", (until - from).as_secs())),
        }
    }
}

fn asking(request: &str, signer: &str, conditions: &[&str], certificate: &str) -> Asking {
    let conditions: Vec<Value> = conditions.iter().map(|kind| condition(kind, "", "", NOW)).collect();
    Object::of(&json!({
        "metadata": { "name": "r", "creationTimestamp": NOW },
        "spec": {
            "request": base64::encode(request.as_bytes()), "signerName": signer, "username": "system:node:a",
            "usages": ["digital signature", "client auth"],
        },
        "status": { "conditions": conditions, "certificate": certificate },
    }))
}

fn after(hours: u32) -> Time {
    NOW + HOUR * hours + Duration::from_secs(1)
}

#[test]
fn a_node_may_ask_for_itself_or_for_others_if_it_is_allowed_to() {
    let permissions = |asking: &Asking| -> Vec<&str> {
        approvable(asking, &Anyone).into_iter().map(|(subresource, _)| subresource).collect()
    };
    let kubelet = |request: &str, conditions: &[&str]| asking(request, rules::KUBELET_CLIENT, conditions, "");
    assert_eq!(permissions(&kubelet("system:node:a", &[])), ["selfnodeclient", "nodeclient"]);
    assert_eq!(permissions(&kubelet("system:node:b", &[])), ["nodeclient"]);
    for other in [
        kubelet("alice", &[]),
        kubelet("nonsense", &[]),
        kubelet("system:node:a", &["Denied"]),
        kubelet("system:node:a", &["Approved"]),
        asking("system:node:a", "kubernetes.io/kube-apiserver-client", &[], ""),
    ] {
        assert!(permissions(&other).is_empty(), "{other:?}");
    }
}

#[test]
fn what_is_approved_is_signed_and_what_cannot_be_signed_fails() {
    let written = |asking: &Asking, approved: Option<&'static str>| {
        let approval = approved.map_or(Approval::None, Approval::Granted);
        plan(asking, Some(&Anyone), approval, NOW).unwrap().writes.pop().map(|write| match write {
            Write::Update { subresource, object, .. } => (subresource, object["status"].clone()),
            other => panic!("{other:?}"),
        })
    };
    let client = "kubernetes.io/kube-apiserver-client";
    assert_eq!(written(&asking("alice", client, &[], ""), None), None);
    let (subresource, status) = written(&asking("alice", client, &[], ""), Some("because")).unwrap();
    assert_eq!((subresource, status["conditions"][0]["reason"].as_str()), ("approval", Some("AutoApproved")));
    let (subresource, status) = written(&asking("alice", client, &["Approved"], ""), None).unwrap();
    let signed = base64::encode(format!("alice {}", LIFETIME.as_secs()).as_bytes());
    assert_eq!((subresource, status["certificate"].as_str()), ("status", Some(signed.as_str())));
    let (_, status) = written(&asking("alice", rules::KUBELET_CLIENT, &["Approved"], ""), None).unwrap();
    assert_eq!(status["conditions"][1]["message"], "subject common name does not begin with system:node:");
    for done in [
        asking("alice", client, &["Approved"], "PEM"),
        asking("alice", client, &["Approved", "Failed"], ""),
        asking("alice", "example.com/signer", &["Approved"], ""),
    ] {
        assert_eq!(written(&done, None), None, "{done:?}");
    }
}

#[test]
fn what_may_succeed_later_is_tried_again() {
    let client = "kubernetes.io/kube-apiserver-client";
    let failed = plan(&asking("too early", client, &["Approved"], ""), Some(&Anyone), Approval::None, NOW);
    assert_eq!(
        failed.unwrap_err().to_string(),
        "Internal error occurred: error auto signing csr: the signer has expired"
    );
    // Whoever is not allowed to have it may be in a moment.
    let refused =
        plan(&asking("system:node:a", rules::KUBELET_CLIENT, &[], ""), Some(&Anyone), Approval::Refused, NOW).unwrap();
    assert_eq!((refused.writes.len(), refused.requeue_after), (0, Some(ASK_AGAIN)));
}

#[test]
fn requests_are_kept_for_an_hour_after_they_are_decided_and_for_a_day_before() {
    let is_over = |conditions: &[&str], certificate: &str, hours: u32| {
        super::is_over(&asking("alice", "x", conditions, certificate), after(hours))
    };
    for (conditions, certificate, hours) in [
        (&[][..], "", 24),
        (&["Approved"], "", 24),
        (&["Approved"], "PEM", 1),
        (&["Denied"], "", 1),
        (&["Approved", "Failed"], "", 1),
    ] {
        assert!(!is_over(conditions, certificate, hours - 1), "{conditions:?}");
        assert!(is_over(conditions, certificate, hours), "{conditions:?}");
    }
}

#[test]
fn a_certificate_is_good_for_as_long_as_asked_within_reason() {
    for (asked, expected) in [(None, LIFETIME), (Some(1), MIN_LIFETIME + BACKDATE), (Some(i32::MAX), LIFETIME)] {
        let (from, until) = validity(asked, NOW);
        assert_eq!(until - from, expected, "{asked:?}");
        assert!(from < NOW.since(Time(0)));
    }
}
