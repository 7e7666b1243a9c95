//! Which requests the signers of Kubernetes take.

use crate::settings::Asked;
use std::collections::BTreeSet;

pub(super) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// What is wrong with a request for a signer; none if the signer is nobody here.
pub(super) fn check(signer: &str, asked: &Asked, usages: &[String]) -> Option<Result<(), String>> {
    match signer {
        KUBELET_CLIENT => Some(kubelet(asked, usages, "client auth")),
        KUBELET_SERVING => Some(kubelet(asked, usages, "server auth")),
        CLIENT => Some(client(usages)),
        LEGACY => Some(Ok(())),
        _ => None,
    }
}

/// A node asks under its own name, and as a server for the hosts that it is.
fn kubelet(asked: &Asked, usages: &[String], purpose: &str) -> Result<(), String> {
    let serves = purpose == "server auth";
    let needed = ["digital signature", "key encipherment", purpose];
    let usages: BTreeSet<&str> = usages.iter().map(String::as_str).collect();
    let all = BTreeSet::from(needed);
    // Keys that cannot encipher anything need not be allowed to.
    let are_right = usages == all || usages == BTreeSet::from([needed[0], purpose]);
    let mut sorted = needed;
    sorted.sort_unstable();
    let is_nobody = !asked.common_name.starts_with("system:node:");
    let nobody = "subject common name does not begin with system:node:".to_owned();
    // Of two mistakes the one is told that Kubernetes tells, which for its clients and its servers is not the same.
    let mistakes = [
        (asked.organizations != ["system:nodes"], "subject organization is not system:nodes".to_owned()),
        (serves && asked.dns_names + asked.addresses == 0, "DNS or IP subjectAltName is required".to_owned()),
        (!serves && asked.dns_names > 0, "DNS subjectAltNames are not allowed".to_owned()),
        (asked.emails > 0, "Email subjectAltNames are not allowed".to_owned()),
        (!serves && asked.addresses > 0, "IP subjectAltNames are not allowed".to_owned()),
        (asked.uris > 0, "URI subjectAltNames are not allowed".to_owned()),
        (!serves && is_nobody, nobody.clone()),
        (!are_right, format!("usages did not match [{}]", sorted.join(" "))),
        (is_nobody, nobody),
    ];
    mistakes.into_iter().find(|(is_mistaken, _)| *is_mistaken).map_or(Ok(()), |(_, why)| Err(why))
}

fn client(usages: &[String]) -> Result<(), String> {
    let optional = ["digital signature", "key encipherment"];
    if let Some(usage) = usages.iter().find(|usage| *usage != "client auth" && !optional.contains(&usage.as_str())) {
        return Err(format!("invalid usage for client certificate: {usage}"));
    }
    match usages.iter().any(|usage| usage == "client auth") {
        true => Ok(()),
        false => Err("missing required usage for client certificate: client auth".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signer_takes_what_it_is_for() {
        let node = Asked {
            common_name: "system:node:a".into(),
            organizations: vec!["system:nodes".into()],
            ..Asked::default()
        };
        let host = Asked { dns_names: 1, ..node.clone() };
        let user = Asked { common_name: "alice".into(), ..Asked::default() };
        let nobody = Asked { common_name: "alice".into(), ..node.clone() };
        let nobody_serving = Asked { dns_names: 1, ..nobody.clone() };
        let of_client = ["digital signature", "client auth"];
        let of_server = ["key encipherment", "digital signature", "server auth"];
        let usages = |usages: &[&str]| usages.iter().map(|usage| (*usage).to_owned()).collect::<Vec<_>>();
        for (signer, asked, used, expected) in [
            (KUBELET_CLIENT, &node, &of_client[..], Some("")),
            (KUBELET_CLIENT, &host, &of_client, Some("DNS subjectAltNames are not allowed")),
            (KUBELET_CLIENT, &user, &of_client, Some("subject organization is not system:nodes")),
            (KUBELET_CLIENT, &nobody, &of_server, Some("subject common name does not begin with system:node:")),
            (
                KUBELET_CLIENT,
                &node,
                &of_server,
                Some("usages did not match [client auth digital signature key encipherment]"),
            ),
            (KUBELET_SERVING, &host, &of_server, Some("")),
            (KUBELET_SERVING, &node, &of_server, Some("DNS or IP subjectAltName is required")),
            (
                KUBELET_SERVING,
                &nobody_serving,
                &of_client,
                Some("usages did not match [digital signature key encipherment server auth]"),
            ),
            (CLIENT, &user, &of_client, Some("")),
            (CLIENT, &user, &of_server, Some("invalid usage for client certificate: server auth")),
            (CLIENT, &user, &[], Some("missing required usage for client certificate: client auth")),
            (LEGACY, &user, &["any"], Some("")),
            ("example.com/signer", &user, &of_client, None),
        ] {
            let found = check(signer, asked, &usages(used)).map(|verdict| verdict.err().unwrap_or_default());
            assert_eq!(found.as_deref(), expected, "{signer} {asked:?} {used:?}");
        }
    }
}
