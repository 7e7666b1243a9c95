//! Which versions of the API are served: all but those that are still being tried out, unless they are asked for.

use crate::resource::Resource;
use crate::table::builtin;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

/// The versions of groups that are served besides those that always are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    previews: BTreeSet<String>,
}

impl Resource {
    /// Whether it may still change, and is served only where it is asked for. Upstream's clusters get the group of
    /// metrics from outside, so whether it is served is not asked there.
    pub fn is_preview(&self) -> bool {
        self.stage() != "api/ga" && self.group != "metrics.k8s.io"
    }

    /// What it is switched with besides its own name.
    fn stage(&self) -> &'static str {
        match &self.version {
            version if version.contains("alpha") => "api/alpha",
            version if version.contains("beta") => "api/beta",
            _ => "api/ga",
        }
    }
}

impl Served {
    /// Whether a version that is still being tried out is served: `scheduling.k8s.io/v1alpha2`.
    pub fn previews(&self, version: &str) -> bool {
        self.previews.contains(version)
    }

    /// The versions that are still being tried out and served.
    pub fn all_previews(&self) -> &BTreeSet<String> {
        &self.previews
    }

    /// The rows of what is served. Fields that speak of what is not served are not kept.
    pub fn rows(&self) -> Vec<Arc<Resource>> {
        let is_served = |row: &&Arc<Resource>| !row.is_preview() || self.previews(&row.api_version());
        builtin().iter().filter(is_served).map(|row| self.row(row)).collect()
    }

    fn row(&self, row: &Arc<Resource>) -> Arc<Resource> {
        let (kept, withheld): (Vec<_>, Vec<_>) =
            row.withheld.iter().copied().partition(|field| self.previews(field.version));
        if kept.is_empty() { row.clone() } else { Arc::new(Resource { withheld: withheld.into(), ..(**row).clone() }) }
    }
}

/// As `--runtime-config` wants it: `api/alpha=true,scheduling.k8s.io/v1alpha2=false`. What says more goes before what
/// says less, whatever the order.
impl FromStr for Served {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let versions: BTreeMap<String, &Resource> = builtin().iter().map(|row| (row.api_version(), &**row)).collect();
        let mut asked = BTreeMap::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, "true"));
            let value = value.parse::<bool>().map_err(|_| format!("{part}: expected true or false"))?;
            let is_known =
                matches!(name, "api/all" | "api/ga" | "api/beta" | "api/alpha") || versions.contains_key(name);
            if !is_known {
                let known: Vec<&str> =
                    versions.iter().filter(|(_, row)| row.is_preview()).map(|(name, _)| &**name).collect();
                let known = known.join(", ");
                return Err(format!(
                    "{name}: no such version; api/alpha, api/beta, api/all or one of {known} can be switched"
                ));
            }
            if !value && (name == "api/ga" || versions.get(name).is_some_and(|row| !row.is_preview())) {
                return Err(format!("{name} is always served: the cluster itself relies on it"));
            }
            asked.insert(name, value);
        }
        let is_on = |row: &Resource| {
            let names = [row.api_version(), row.stage().to_owned(), "api/all".to_owned()];
            names.iter().find_map(|name| asked.get(name.as_str()).copied()).unwrap_or(false)
        };
        let on = builtin().iter().filter(|row| row.is_preview() && is_on(row));
        // What is stored in another version is of no use without that.
        let previews = on.flat_map(|row| [row.api_version(), row.stored_as.to_string()]).collect();
        Ok(Served { previews })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    const GROUPS: &str = "scheduling.k8s.io/v1alpha2";

    fn kinds(served: &str) -> Vec<String> {
        let served: Served = served.parse().unwrap();
        let previews = served.rows().into_iter().filter(|row| row.is_preview());
        previews.map(|row| row.kind.to_string()).collect()
    }

    #[test]
    fn what_is_tried_out_is_served_where_it_is_asked_for() {
        for (asked, expected) in [
            ("", &[][..]),
            ("scheduling.k8s.io/v1alpha2=true", &["PodGroup", "Workload"]),
            ("scheduling.k8s.io/v1alpha2", &["PodGroup", "Workload"]),
            ("resource.k8s.io/v1beta2", &["DeviceTaintRule"]),
            ("resource.k8s.io/v1alpha3", &["DeviceTaintRule", "DeviceTaintRule"]),
            ("api/alpha=true", &["PodGroup", "Workload", "DeviceTaintRule", "DeviceTaintRule"]),
            ("api/all=true", &["PodGroup", "Workload", "DeviceTaintRule", "DeviceTaintRule"]),
            ("api/all=true,api/alpha=false", &["DeviceTaintRule"]),
            ("scheduling.k8s.io/v1alpha2=false,api/alpha=true", &["DeviceTaintRule", "DeviceTaintRule"]),
            ("api/beta=true,apps/v1=true", &["DeviceTaintRule"]),
        ] {
            assert_eq!(kinds(asked), expected, "{asked}");
        }
    }

    #[test]
    fn what_cannot_be_switched_is_refused() {
        for (asked, expected) in [
            (
                "apps/v2=true",
                "apps/v2: no such version; api/alpha, api/beta, api/all or one of resource.k8s.io/v1alpha3, \
                 resource.k8s.io/v1beta2, scheduling.k8s.io/v1alpha2 can be switched",
            ),
            ("api/alpha=yes", "api/alpha=yes: expected true or false"),
            ("apps/v1=false", "apps/v1 is always served: the cluster itself relies on it"),
            ("api/ga=false", "api/ga is always served: the cluster itself relies on it"),
        ] {
            assert_eq!(asked.parse::<Served>(), Err(expected.to_owned()), "{asked}");
        }
    }

    #[test]
    fn pods_keep_what_they_say_of_groups_where_groups_are_served() {
        let spec = json!({ "schedulingGroup": { "podGroupName": "g" }, "nodeName": "n" });
        for (plural, make) in [
            ("pods", (|spec| json!({ "spec": spec })) as fn(object::Value) -> object::Value),
            ("deployments", |spec| json!({ "spec": { "template": { "spec": spec } } })),
            ("podtemplates", |spec| json!({ "template": { "spec": spec } })),
            ("cronjobs", |spec| json!({ "spec": { "jobTemplate": { "spec": { "template": { "spec": spec } } } } })),
        ] {
            let bare = make(json!({ "nodeName": "n" }));
            let full = make(spec.clone());
            for (served, old, expected) in [
                ("", None, &bare),
                ("", Some(&bare), &bare),
                ("", Some(&full), &full),
                (GROUPS, None, &full),
                (GROUPS, Some(&bare), &full),
            ] {
                let rows = served.parse::<Served>().unwrap().rows();
                let row = rows.iter().find(|row| row.plural == plural).unwrap();
                let mut object = full.clone();
                row.withhold(&mut object, old);
                assert_eq!(object, *expected, "{plural} {served:?} {old:?}");
            }
        }
    }
}
