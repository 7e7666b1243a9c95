//! How identities and what they may do or know look.

use super::text::{NONE, age, duration, join, name, or, size};
use super::{AGE, NAME, printer, string};
use object::{Value, View};

printer!(CONFIG_MAP = |object, now| {
    NAME => name(object),
    string("Data", "Number of entries") => size(object, "data") + size(object, "binaryData"),
    AGE => age(object, now),
});

printer!(SECRET = |object, now| {
    NAME => name(object),
    string("Type", "What it is used for") => object.text("type"),
    string("Data", "Number of entries") => size(object, "data"),
    AGE => age(object, now),
});

printer!(SERVICE_ACCOUNT = |object, now| {
    NAME => name(object),
    AGE => age(object, now),
});

printer!(
    /// Bindings in one namespace and in all.
    ROLE_BINDING = |object, now| {
        NAME => name(object),
        string("Role", "What is allowed")
            => format!("{}/{}", object.at("roleRef").text("kind"), object.at("roleRef").text("name")),
        AGE => age(object, now),
        string("Users", "Users it is allowed to").wide() => subjects(object, "User"),
        string("Groups", "Groups it is allowed to").wide() => subjects(object, "Group"),
        string("ServiceAccounts", "Service accounts it is allowed to").wide() => subjects(object, "ServiceAccount"),
    }
);

fn subjects(binding: &Value, kind: &str) -> String {
    let subjects = binding.items("subjects").iter().filter(|subject| subject.text("kind") == kind);
    let text = |subject: &Value| match kind {
        "ServiceAccount" => format!("{}/{}", subject.text("namespace"), subject.text("name")),
        _ => subject.text("name").to_owned(),
    };
    join(subjects.map(text), ", ")
}

printer!(CERTIFICATE_SIGNING_REQUEST = |object, now| {
    NAME => name(object),
    AGE => age(object, now),
    string("SignerName", "Who is asked to sign") => or(object.at("spec").text("signerName"), NONE),
    string("Requestor", "Who asks") => object.at("spec").text("username"),
    string("RequestedDuration", "How long the certificate shall be valid") => requested_duration(object.at("spec")),
    string("Condition", "What became of the request") => request_condition(object.at("status")),
});

fn requested_duration(spec: &Value) -> String {
    spec.int("expirationSeconds").map_or_else(|| NONE.to_owned(), duration)
}

fn request_condition(status: &Value) -> String {
    let has = |kind: &str| super::text::condition(status, kind).is_some();
    let decision = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if status.text("certificate").is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;
    use object::json;

    #[test]
    fn entries_are_counted_and_not_shown() {
        check(
            &CONFIG_MAP,
            &[
                (json!({ "data": { "a": "", "b": "" }, "binaryData": { "c": "" } }), json!([3])),
                (json!({}), json!([0])),
            ],
        );
        check(&SECRET, &[(json!({ "type": "Opaque", "data": { "a": "" } }), json!(["Opaque", 1]))]);
        check(&SERVICE_ACCOUNT, &[(json!({}), json!([]))]);
    }

    #[test]
    fn bindings_name_their_subjects_by_kind() {
        let subjects = json!([
            { "kind": "User", "name": "u" }, { "kind": "Group", "name": "g" }, { "kind": "Group", "name": "h" },
            { "kind": "ServiceAccount", "namespace": "n", "name": "s" },
        ]);
        let role = json!({ "kind": "ClusterRole", "name": "view" });
        check(
            &ROLE_BINDING,
            &[
                (json!({ "roleRef": role, "subjects": subjects }), json!(["ClusterRole/view", "u", "g, h", "n/s"])),
                (json!({ "roleRef": role }), json!(["ClusterRole/view", "", "", ""])),
            ],
        );
    }

    #[test]
    fn certificate_requests_say_what_became_of_them() {
        let conditions = |kinds: &[&str]| kinds.iter().map(|kind| json!({ "type": kind })).collect::<Value>();
        for (kinds, certificate, text) in [
            (&[][..], "", "Pending"),
            (&["Approved"], "", "Approved"),
            (&["Approved"], "YQ==", "Approved,Issued"),
            (&["Approved", "Denied"], "", "Denied"),
            (&["Approved", "Failed"], "", "Approved,Failed"),
        ] {
            let status = json!({ "conditions": conditions(kinds), "certificate": certificate });
            assert_eq!(request_condition(&status), text);
        }
        check(
            &CERTIFICATE_SIGNING_REQUEST,
            &[
                (json!({}), json!([NONE, "", NONE, "Pending"])),
                (
                    json!({ "spec": { "signerName": "s/t", "username": "u", "expirationSeconds": 7200 } }),
                    json!(["s/t", "u", "120m", "Pending"]),
                ),
            ],
        );
    }
}
