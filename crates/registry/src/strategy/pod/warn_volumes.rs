//! Volumes that no longer work, and files of a volume that lie on top of each other.

use crate::strategy::place::Place;

/// The field, its name in the message, and the message.
const DEPRECATED: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];
/// Volumes of files: the field, what it is called, and where its name is.
const FILES: [(&str, &str, &str); 3] =
    [("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName"), ("downwardAPI", "DownwardAPI", "")];

pub(super) fn validate(volumes: &Place, warnings: &mut Vec<String>) {
    for volume in volumes.items() {
        for (given, _) in volume.entries() {
            let deprecated = DEPRECATED.iter().find(|(field, ..)| *field == given);
            warnings.extend(deprecated.map(|(_, label, message)| format!("{}: {message}", volume.field(label))));
        }
    }
    for volume in volumes.items() {
        let name = volume.field("name").text();
        for (field, kind, named) in FILES {
            let source = volume.field(field);
            if !source.is_set() {
                continue;
            }
            let of =
                if named.is_empty() { kind.to_owned() } else { format!("{kind} {:?}", source.field(named).text()) };
            let paths = paths(&source, "");
            warnings.extend(overlaps(&paths).map(|pair| format!("volume {name:?} ({of}): overlapping paths: {pair}")));
        }
        let projected = volume.field("projected");
        let mut all = Vec::new();
        for source in projected.field("sources").items() {
            if source.is_empty() {
                warnings.push(format!("volume {name:?} (Projected) has no sources provided"));
            }
            for (field, kind, named) in FILES {
                let source = source.field(field);
                if !source.field("items").is_set() {
                    continue;
                }
                let named = if named.is_empty() { "" } else { "name" };
                let of = match named {
                    "" => kind.to_owned(),
                    named => format!("{kind} {:?}", source.field(named).text()),
                };
                all.extend(paths(&source, &of));
            }
            let token = source.field("serviceAccountToken");
            if token.is_set() {
                all.push((token.field("path").text().to_owned(), "ServiceAccountToken".to_owned()));
            }
        }
        warnings.extend(overlaps(&all).map(|pair| format!("volume {name:?} (Projected): overlapping paths: {pair}")));
    }
}

/// The paths of a volume's files, each with where it comes from.
fn paths(source: &Place, of: &str) -> Vec<(String, String)> {
    let items = source.field("items");
    items.items().map(|item| (item.field("path").text().trim_end_matches('/').to_owned(), of.to_owned())).collect()
}

/// Each path that is the same as an earlier one, above it or below it.
fn overlaps(paths: &[(String, String)]) -> impl Iterator<Item = String> {
    let shown = |(path, of): &(String, String)| match of.as_str() {
        "" => format!("{path:?}"),
        of => format!("{path:?} ({of})"),
    };
    let holds = |one: &str, other: &str| format!("{other}/").starts_with(&format!("{one}/"));
    paths.iter().enumerate().flat_map(move |(index, path)| {
        let earlier = paths[..index].iter().filter(|other| !path.0.is_empty() && !other.0.is_empty());
        let hit = earlier.filter(move |other| holds(&path.0, &other.0) || holds(&other.0, &path.0));
        hit.map(move |other| format!("{} with {}", shown(path), shown(other))).collect::<Vec<_>>()
    })
}
