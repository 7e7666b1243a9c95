//! Volumes that no longer work, and files of a volume that lie on top of each other.

use crate::strategy::place::Place;
use object::View;
use std::fmt;

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
            let files: Vec<File> = paths(&source).map(|path| File { path, of: None }).collect();
            warnings.extend(overlaps(&files).map(|pair| {
                let of = Origin { kind, name: (!named.is_empty()).then(|| source.field(named).text()) };
                format!("volume {name:?} ({of}): overlapping paths: {pair}")
            }));
        }
        let (projected, mut all) = (volume.field("projected"), Vec::new());
        for source in projected.field("sources").items() {
            if source.is_empty() {
                warnings.push(format!("volume {name:?} (Projected) has no sources provided"));
            }
            for (field, kind, named) in FILES {
                let source = source.field(field);
                let of = Origin { kind, name: (!named.is_empty()).then(|| source.field("name").text()) };
                all.extend(paths(&source).map(|path| File { path, of: Some(of) }));
            }
            let token = source.field("serviceAccountToken");
            if token.is_set() {
                let of = Origin { kind: "ServiceAccountToken", name: None };
                all.push(File { path: token.field("path").text(), of: Some(of) });
            }
        }
        warnings.extend(overlaps(&all).map(|pair| format!("volume {name:?} (Projected): overlapping paths: {pair}")));
    }
}

/// A file in a volume.
#[derive(Clone, Copy)]
struct File<'v> {
    path: &'v str,
    /// Where it comes from; none where all files of the volume come from one place.
    of: Option<Origin<'v>>,
}

#[derive(Clone, Copy)]
struct Origin<'v> {
    kind: &'static str,
    name: Option<&'v str>,
}

impl fmt::Display for File<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            None => write!(f, "{:?}", self.path),
            Some(of) => write!(f, "{:?} ({of})", self.path),
        }
    }
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            None => f.write_str(self.kind),
            Some(name) => write!(f, "{} {name:?}", self.kind),
        }
    }
}

/// The paths of the files of a source.
fn paths<'v>(source: &Place<'v, '_>) -> impl Iterator<Item = &'v str> {
    let items = source.field("items").values();
    items.iter().map(|item| item.text("path").trim_end_matches('/'))
}

/// Each path that is the same as an earlier one, above it or below it.
fn overlaps(files: &[File<'_>]) -> impl Iterator<Item = String> {
    let holds = |one: &str, other: &str| {
        other.strip_prefix(one).is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    files.iter().enumerate().flat_map(move |(index, file)| {
        let earlier = files[..index].iter().filter(|other| !file.path.is_empty() && !other.path.is_empty());
        let hit = earlier.filter(move |other| holds(file.path, other.path) || holds(other.path, file.path));
        hit.map(move |other| format!("{file} with {other}"))
    })
}
