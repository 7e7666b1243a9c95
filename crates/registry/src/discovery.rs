//! Discovery: what is served, told to clients. All of it follows from the rows.

use crate::resource::{Resource, Scope, Subresource};
use object::{Value, json};
use std::sync::Arc;

/// The group, version and kind that a URL speaks.
struct Speaks<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

impl Subresource {
    /// What is sent to it and comes back; none if that is the object itself.
    fn speaks(self) -> Option<Speaks<'static>> {
        let (group, version, kind) = match self {
            Subresource::Attach => ("", "v1", "PodAttachOptions"),
            Subresource::Binding => ("", "v1", "Binding"),
            Subresource::Eviction => ("policy", "v1", "Eviction"),
            Subresource::Exec => ("", "v1", "PodExecOptions"),
            Subresource::PortForward => ("", "v1", "PodPortForwardOptions"),
            Subresource::Scale => ("autoscaling", "v1", "Scale"),
            Subresource::Token => ("authentication.k8s.io", "v1", "TokenRequest"),
            Subresource::Approval
            | Subresource::EphemeralContainers
            | Subresource::Finalize
            | Subresource::Log
            | Subresource::Proxy
            | Subresource::Resize
            | Subresource::Status => return None,
        };
        Some(Speaks { group, version, kind })
    }

    /// What can be done with it, in the words of discovery.
    pub fn verbs(self) -> &'static [&'static str] {
        match self {
            Subresource::Binding | Subresource::Eviction | Subresource::Token => &["create"],
            Subresource::Attach | Subresource::Exec | Subresource::PortForward => &["create", "get"],
            Subresource::Finalize => &["update"],
            Subresource::Log => &["get"],
            Subresource::Proxy => &["create", "delete", "get", "patch", "update"],
            Subresource::Approval
            | Subresource::EphemeralContainers
            | Subresource::Resize
            | Subresource::Scale
            | Subresource::Status => &["get", "patch", "update"],
        }
    }
}

impl Resource {
    fn speaks(&self) -> Speaks<'_> {
        Speaks { group: &self.group, version: &self.version, kind: &self.kind }
    }

    /// The group, version and kind that a subresource speaks. The proxies name their options after the kind.
    pub fn subresource_speaks(&self, subresource: Subresource) -> (String, String, String) {
        let own = |speaks: Speaks<'_>| (speaks.group.to_owned(), speaks.version.to_owned(), speaks.kind.to_owned());
        match (subresource, subresource.speaks()) {
            (_, Some(speaks)) => own(speaks),
            (Subresource::Proxy, None) => (String::new(), "v1".to_owned(), format!("{}ProxyOptions", self.kind)),
            (_, None) => own(self.speaks()),
        }
    }

    fn verb_names(&self) -> Vec<&'static str> {
        self.verbs.iter().map(crate::Verb::name).collect()
    }
}

/// `/api`: the versions of the core group.
pub fn core_versions(server_address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": server_address }],
    })
}

/// `/apis`: all groups but the core one.
pub fn groups(resources: &[Arc<Resource>]) -> Value {
    let names = distinct(resources.iter().map(|resource| resource.group.as_ref()).filter(|group| !group.is_empty()));
    let groups: Vec<Value> = names.into_iter().map(|name| group(resources, name)).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// One group with its versions, the preferred one first.
pub fn group(resources: &[Arc<Resource>], name: &str) -> Value {
    let versions =
        distinct(resources.iter().filter(|resource| resource.group == name).map(|resource| &*resource.version));
    let versions: Vec<Value> = versions
        .into_iter()
        .map(|version| json!({ "groupVersion": format!("{name}/{version}"), "version": version }))
        .collect();
    json!({ "name": name, "preferredVersion": versions.first(), "versions": versions })
}

/// `/api/v1`, `/apis/apps/v1`: the resources of one version.
pub fn resources(resources: &[Arc<Resource>], api_version: &str) -> Value {
    let mut listed = Vec::new();
    for resource in resources.iter().filter(|resource| resource.api_version() == api_version) {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular,
            "namespaced": resource.scope == Scope::Namespaced,
            "kind": resource.kind, "verbs": resource.verb_names(),
        });
        add_names(&mut entry, resource);
        listed.push(entry);
        for subresource in resource.subresources.iter().copied() {
            let (group, version, kind) = resource.subresource_speaks(subresource);
            let mut entry = json!({
                "name": format!("{}/{}", resource.plural, subresource.name()), "singularName": "",
                "namespaced": resource.scope == Scope::Namespaced,
                "kind": kind, "verbs": subresource.verbs(),
            });
            // Said only where it is not that of the list.
            if (group.as_str(), version.as_str()) != (&*resource.group, &*resource.version) {
                entry["group"] = json!(group);
                entry["version"] = json!(version);
            }
            listed.push(entry);
        }
    }
    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed })
}

/// Everything at once, as clients of this decade ask for it: the core group at `/api`, the others at `/apis`.
pub fn aggregated(resources: &[Arc<Resource>], core: bool) -> Value {
    let names = distinct(resources.iter().map(|resource| resource.group.as_ref()));
    let groups = names.into_iter().filter(|name| name.is_empty() == core).map(|name| {
        let of_group: Vec<&Arc<Resource>> = resources.iter().filter(|resource| resource.group == name).collect();
        let versions = distinct(of_group.iter().map(|resource| &*resource.version)).into_iter().map(|version| {
            let of_version = of_group.iter().filter(|resource| resource.version == version);
            let entries: Vec<Value> = of_version.map(|resource| aggregated_entry(resource)).collect();
            json!({ "version": version, "resources": entries, "freshness": "Current" })
        });
        json!({ "metadata": { "name": name, "creationTimestamp": null }, "versions": versions.collect::<Vec<_>>() })
    });
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": groups.collect::<Vec<_>>(),
    })
}

fn aggregated_entry(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.plural, "singularResource": resource.singular,
        "responseKind": { "group": resource.group, "version": resource.version, "kind": resource.kind },
        "scope": match resource.scope { Scope::Namespaced => "Namespaced", Scope::Cluster => "Cluster" },
        "verbs": resource.verb_names(),
    });
    add_names(&mut entry, resource);
    if !resource.subresources.is_empty() {
        let subresources = resource.subresources.iter().map(|subresource| {
            let (group, version, kind) = resource.subresource_speaks(*subresource);
            json!({
                "subresource": subresource.name(), "verbs": subresource.verbs(),
                "responseKind": { "group": group, "version": version, "kind": kind },
            })
        });
        entry["subresources"] = subresources.collect();
    }
    entry
}

fn add_names(entry: &mut Value, resource: &Resource) {
    for (key, names) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !names.is_empty() {
            entry[key] = json!(names);
        }
    }
}

/// Each once, in the order in which they first come.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn groups_come_by_importance_and_versions_by_preference() {
        let groups = groups(builtin());
        let names: Vec<_> = groups["groups"].as_array().unwrap().iter().map(|group| group["name"].clone()).collect();
        assert_eq!(names[..3], ["apiregistration.k8s.io", "apps", "events.k8s.io"]);
        assert_eq!(
            group(builtin(), "autoscaling"),
            json!({
                "name": "autoscaling",
                "preferredVersion": { "groupVersion": "autoscaling/v2", "version": "v2" },
                "versions": [
                    { "groupVersion": "autoscaling/v2", "version": "v2" },
                    { "groupVersion": "autoscaling/v1", "version": "v1" },
                ],
            })
        );
    }

    #[test]
    fn resources_and_subresources_say_what_they_speak() {
        let apps = resources(builtin(), "apps/v1");
        let find =
            |name: &str| apps["resources"].as_array().unwrap().iter().find(|entry| entry["name"] == name).cloned();
        assert_eq!(
            find("deployments").unwrap(),
            json!({
                "name": "deployments", "singularName": "deployment", "namespaced": true, "kind": "Deployment",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "shortNames": ["deploy"], "categories": ["all"],
            })
        );
        assert_eq!(
            find("deployments/scale").unwrap(),
            json!({
                "name": "deployments/scale", "singularName": "", "namespaced": true,
                "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"],
            })
        );
        assert_eq!(find("deployments/status").unwrap().get("group"), None);
        let core = resources(builtin(), "v1");
        let eviction = core["resources"].as_array().unwrap().iter().find(|entry| entry["name"] == "pods/eviction");
        assert_eq!(eviction.unwrap()["group"], "policy");
    }

    #[test]
    fn the_two_forms_of_discovery_agree() {
        let mut listed = 0;
        for core in [true, false] {
            for group in aggregated(builtin(), core)["items"].as_array().unwrap() {
                for version in group["versions"].as_array().unwrap() {
                    let (group, version_name) =
                        (group["metadata"]["name"].as_str().unwrap(), version["version"].as_str().unwrap());
                    let api_version =
                        if group.is_empty() { version_name.to_owned() } else { format!("{group}/{version_name}") };
                    let plain = resources(builtin(), &api_version);
                    for entry in version["resources"].as_array().unwrap() {
                        let plain = plain["resources"].as_array().unwrap();
                        let found = plain.iter().find(|plain| plain["name"] == entry["resource"]).unwrap();
                        assert_eq!(
                            (&found["verbs"], &found["kind"]),
                            (&entry["verbs"], &entry["responseKind"]["kind"])
                        );
                        listed += 1;
                    }
                }
            }
        }
        assert_eq!(listed, builtin().len());
    }
}
