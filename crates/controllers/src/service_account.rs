//! ServiceAccount: every namespace has one called `default`, for pods that ask for none.

use kinds::{Key, Namespace, ServiceAccount};
use object::json;
use runtime::{Caches, Controller, Plan, Request};

const NAME: &str = "default";

pub(crate) fn controller() -> Controller {
    Controller::new("service-account-controller")
        .primary::<Namespace>()
        .watches::<ServiceAccount>(|account, _| match account.metadata.name.as_str() {
            NAME => vec![Key::cluster(account.metadata.namespace.as_str())],
            _ => vec![],
        })
        .plans(plan)
}

fn plan(caches: &Caches, request: &Request) -> Plan {
    let mut plan = Plan::default();
    let namespace = caches.of::<Namespace>().get(&request.key);
    let lives = namespace.is_some_and(|namespace| !namespace.metadata.is_being_deleted());
    if lives && caches.of::<ServiceAccount>().named(&request.key.name, NAME).is_none() {
        plan.create::<ServiceAccount>(json!({ "metadata": { "name": NAME, "namespace": request.key.name } }));
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::{Object, Time};

    #[test]
    fn a_namespace_that_lives_gets_its_account_once() {
        let mut caches = Caches::default().with::<Namespace>().with::<ServiceAccount>();
        let planned = |caches: &Caches, name: &str| {
            plan(caches, &Request { key: Key::cluster(name), now: Time(0), failure: None }).summary()
        };
        assert!(planned(&caches, "a").is_empty());
        caches.put(Object::<Namespace>::of(&json!({ "metadata": { "name": "a" } })));
        caches.put(Object::<Namespace>::of(
            &json!({ "metadata": { "name": "b", "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
        ));
        assert_eq!(planned(&caches, "a"), ["create serviceaccounts default"]);
        assert!(planned(&caches, "b").is_empty());
        caches.put(Object::<ServiceAccount>::of(&json!({ "metadata": { "name": "default", "namespace": "a" } })));
        assert!(planned(&caches, "a").is_empty());
    }
}
