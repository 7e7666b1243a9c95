//! ServiceAccounts.

use crate::strategy::{PLAIN, Strategy};
use object::{Edit, Value, View, json};

pub const STRATEGY: Strategy = Strategy { prepare: Some(prepare), warn: Some(warn), ..PLAIN };

const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// Secrets are named, and nothing else of the reference means anything.
fn prepare(new: &mut Value, _old: Option<&Value>) {
    for secret in new.each("secrets") {
        *secret = json!({ "name": secret.text("name") });
    }
}

fn warn(new: &Value, old: Option<&Value>) -> Vec<String> {
    let enforces = |account: &Value| account.path(&["metadata", "annotations"]).has(ENFORCE_MOUNTABLE_SECRETS);
    if enforces(new) && !old.is_some_and(enforces) {
        vec![format!(
            "metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate \
             access to mounted secrets"
        )]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_secrets_are_names() {
        let mut account = json!({ "secrets": [{ "name": "a", "kind": "Secret", "uid": "1" }] });
        prepare(&mut account, None);
        assert_eq!(account, json!({ "secrets": [{ "name": "a" }] }));
    }
}
