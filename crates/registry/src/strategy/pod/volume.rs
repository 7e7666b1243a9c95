//! The rules of volumes. What each source of a volume needs stands in one table; those with more to say have a
//! function there, and those that put files together are in `projection`.

use super::container::PULL_POLICIES;
use super::{paths, projection};
use crate::strategy::place::Place;
use crate::strategy::value::quantity;
use crate::strategy::volume_claim;
use object::field::Errors;
use object::{Value, name};
use std::collections::{BTreeMap, BTreeSet};

/// What the rules need to know of the pod that has the volumes.
#[derive(Clone, Copy)]
pub(super) struct Owner<'v> {
    /// Empty in a template, or as long as it is to be generated.
    pub name: &'v str,
    pub is_pod: bool,
}

struct Source {
    field: &'static str,
    /// What must be said of it.
    required: &'static [&'static str],
    rules: for<'v> fn(source: &Place<'v, '_>, volume: &Place<'v, '_>, owner: Owner, errors: &mut Errors),
}

const fn source(field: &'static str, required: &'static [&'static str]) -> Source {
    Source { field, required, rules: |_, _, _, _| {} }
}

const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// In the order in which Kubernetes looks for them, since the second one found is the one that is too many.
const SOURCES: [Source; 30] = [
    Source { rules: empty_dir, ..source("emptyDir", &[]) },
    Source { rules: host_path, ..source("hostPath", &["path"]) },
    Source {
        rules: |git, _, _, errors| paths::descending(&git.field("directory"), errors),
        ..source("gitRepo", &["repository"])
    },
    Source { rules: gce_disk, ..source("gcePersistentDisk", &[]) },
    Source { rules: |disk, _, _, errors| partition(disk, errors), ..source("awsElasticBlockStore", &["volumeID"]) },
    Source { rules: files, ..source("secret", &["secretName"]) },
    Source { rules: nfs, ..source("nfs", &["server", "path"]) },
    Source { rules: iscsi, ..source("iscsi", &["targetPortal", "iqn"]) },
    source("glusterfs", &["endpoints", "path"]),
    Source { rules: flocker, ..source("flocker", &[]) },
    source("persistentVolumeClaim", &["claimName"]),
    source("rbd", &["monitors", "image"]),
    Source { rules: |disk, _, _, errors| secret_name(disk, errors), ..source("cinder", &["volumeID"]) },
    source("cephfs", &["monitors"]),
    Source { rules: quobyte, ..source("quobyte", &[]) },
    Source {
        rules: |downward, _, _, errors| projection::validate_downward(downward, errors),
        ..source("downwardAPI", &[])
    },
    Source { rules: fibre_channel, ..source("fc", &[]) },
    Source { rules: flex, ..source("flexVolume", &["driver"]) },
    Source { rules: files, ..source("configMap", &["name"]) },
    source("azureFile", &["secretName", "shareName"]),
    source("vsphereVolume", &["volumePath"]),
    source("photonPersistentDisk", &["pdID"]),
    source("portworxVolume", &["volumeID"]),
    Source { rules: azure_disk, ..source("azureDisk", &["diskName", "diskURI"]) },
    Source { rules: storage_os, ..source("storageos", &[]) },
    Source { rules: |files, _, _, errors| projection::validate(files, errors), ..source("projected", &[]) },
    source("scaleIO", &["gateway", "system", "volumeName"]),
    Source { rules: csi, ..source("csi", &[]) },
    Source { rules: ephemeral, ..source("ephemeral", &[]) },
    Source { rules: image, ..source("image", &[]) },
];

/// Returns the volumes that nothing is wrong with, by name; only those can be mounted.
pub(super) fn validate<'v>(volumes: &Place<'v, '_>, owner: Owner, errors: &mut Errors) -> BTreeMap<&'v str, &'v Value> {
    let mut good = BTreeMap::new();
    for volume in volumes.items() {
        let before = errors.len();
        let name = volume.field("name");
        one(&volume, owner, errors);
        name.require_follows(errors, name::dns_label);
        if good.contains_key(name.text()) {
            name.duplicate(errors, name.text());
        }
        if errors.len() == before {
            good.insert(name.text(), volume.value());
        }
    }
    created_claims(volumes, owner, errors);
    good
}

fn one(volume: &Place, owner: Owner, errors: &mut Errors) {
    let given = volume.entries().filter_map(|(field, _)| SOURCES.iter().position(|source| source.field == field));
    let mut given: Vec<_> = given.collect();
    given.sort_unstable();
    let Some((first, more)) = given.split_first() else {
        return volume.required(errors, "must specify a volume type");
    };
    let Source { field, required, rules } = &SOURCES[*first];
    let source = volume.field(field);
    let before = errors.len();
    for field in *required {
        source.field(field).require(errors);
    }
    // There is nothing more to say of a directory of the host that has no path.
    if *field != "hostPath" || errors.len() == before {
        rules(&source, volume, owner, errors);
    }
    for source in more {
        volume.field(SOURCES[*source].field).forbidden(errors, "may not specify more than 1 volume type");
    }
}

/// A claim that is made for an ephemeral volume cannot be another volume of the same pod.
fn created_claims(volumes: &Place, owner: Owner, errors: &mut Errors) {
    let is_ephemeral = |volume: &Place| volume.field("ephemeral").is_set();
    if owner.name.is_empty() || !volumes.items().any(|volume| is_ephemeral(&volume)) {
        return;
    }
    let ephemeral = volumes.items().filter(is_ephemeral);
    let created: BTreeSet<_> =
        ephemeral.map(|volume| format!("{}-{}", owner.name, volume.field("name").text())).collect();
    for volume in volumes.items() {
        let claim = volume.field("persistentVolumeClaim");
        if created.contains(claim.field("claimName").text()) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            claim.field("claimName").invalid(errors, detail);
        }
    }
}

fn empty_dir(source: &Place, _: &Place, _: Owner, errors: &mut Errors) {
    if quantity(source.field("sizeLimit").value()).is_negative() {
        source.field("sizeLimit").forbidden(errors, "SizeLimit field must be a valid resource quantity");
    }
}

fn host_path(source: &Place, _: &Place, _: Owner, errors: &mut Errors) {
    paths::no_backsteps(&source.field("path"), errors);
    source.field("type").one_of_if_set(errors, &HOST_PATH_TYPES);
}

/// The path of its mistakes names another field than the one there is.
fn gce_disk<'v>(source: &Place<'v, '_>, volume: &Place<'v, '_>, _: Owner, errors: &mut Errors) {
    let place = volume.field("persistentDisk");
    let disk = place.with(source.value());
    disk.field("pdName").require(errors);
    partition(&disk, errors);
}

fn partition(disk: &Place, errors: &mut Errors) {
    let partition = disk.field("partition");
    if !(0..=255).contains(&partition.int()) {
        partition.invalid(errors, "must be between 1 and 255, inclusive");
    }
}

fn files(source: &Place, _: &Place, _: Owner, errors: &mut Errors) {
    projection::mode(&source.field("defaultMode"), errors);
    source.field("items").items().for_each(|item| projection::key_to_path(&item, errors));
}

fn nfs(source: &Place, _: &Place, _: Owner, errors: &mut Errors) {
    if !source.field("path").text().starts_with('/') {
        source.field("path").invalid(errors, "must be an absolute path");
    }
}

fn iscsi(source: &Place, volume: &Place, _: Owner, errors: &mut Errors) {
    source.field("iqn").follows_if_set(errors, iscsi_name);
    source.field("lun").within(errors, 0, 255);
    let authenticates = ["chapAuthDiscovery", "chapAuthSession"].iter().any(|flag| source.field(flag).value() == true);
    if authenticates && !source.field("secretRef").is_set() {
        source.field("secretRef").required(errors, "");
    }
    let initiator = source.field("initiatorName");
    if initiator.is_set() {
        for message in iscsi_name(initiator.text()) {
            source.field("initiatorname").invalid_value(errors, initiator.text(), message);
        }
        let (name, portal) = (volume.field("name"), source.field("targetPortal").text());
        if name.text().len() + portal.len() + 1 > 64 {
            let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                          iscsi.initiatorName is specified.";
            name.invalid(errors, detail);
        }
    }
}

/// `iqn.2001-04.com.example:storage`, `eui.` and 16 or `naa.` and 32 letters and digits.
fn iscsi_name(name: &str) -> Vec<String> {
    let alphanumeric =
        |text: &str, length: usize| text.len() == length && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let good = match name.get(..3) {
        Some("iqn") => is_qualified_iscsi_name(name),
        Some("eui") => name.get(4..).is_some_and(|rest| alphanumeric(rest, 16)),
        Some("naa") => name.get(4..).is_some_and(|rest| alphanumeric(rest, 32)),
        _ => return vec!["must be valid format starting with iqn, eui, or naa".to_owned()],
    };
    if good { Vec::new() } else { vec!["must be valid format".to_owned()] }
}

fn is_qualified_iscsi_name(name: &str) -> bool {
    let Some((date, rest)) = name.strip_prefix("iqn.").and_then(|rest| rest.split_once('.')) else { return false };
    let Some((authority, target)) = rest.split_once(':') else { return false };
    let is_date = date.len() == 7
        && date.bytes().enumerate().all(|(at, byte)| if at == 4 { byte == b'-' } else { byte.is_ascii_digit() });
    let is_authority = authority.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    let is_target = !target.contains(|c: char| c.is_whitespace() || ",;*&$|".contains(c));
    is_date && is_authority && is_target && !authority.is_empty() && !target.is_empty()
}

fn flocker(source: &Place, _: &Place, _: Owner, errors: &mut Errors) {
    let (name, id) = (source.field("datasetName"), source.field("datasetUUID"));
    match (name.is_empty(), id.is_empty()) {
        (true, true) => source.required(errors, "one of datasetName and datasetUUID is required"),
        (false, false) => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            source.invalid_value(errors, "resource", detail);
        }
        _ => {}
    }
    if name.text().contains('/') {
        name.invalid(errors, "must not contain '/'");
    }
}

fn secret_name(source: &Place, errors: &mut Errors) {
    if source.field("secretRef").is_set() {
        source.field("secretRef").field("name").require(errors);
    }
}

fn quobyte(source: &Place, _: &Place, _: Owner, errors: &mut Errors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = source.field("registry");
    if registry.is_empty() {
        registry.required(errors, PAIRS);
    } else if source.field("tenant").text().len() >= 65 {
        source.field("tenant").required(errors, "must be a UUID and may not exceed a length of 64 characters");
    } else {
        let bad = registry.text().split(',').filter(|pair| pair.matches(':').count() != 1 && !pair.contains("]:"));
        bad.for_each(|_| registry.invalid(errors, PAIRS));
    }
    source.field("volume").require(errors);
}

fn fibre_channel(source: &Place, _: &Place, _: Owner, errors: &mut Errors) {
    let (targets, ids, unit) = (source.field("targetWWNs"), source.field("wwids"), source.field("lun"));
    match (targets.is_empty(), ids.is_empty()) {
        (true, true) => targets.required(errors, "must specify either targetWWNs or wwids, but not both"),
        (false, false) => targets.invalid(errors, "targetWWNs and wwids can not be specified simultaneously"),
        _ => {}
    }
    if !targets.is_empty() && !unit.is_set() {
        unit.required(errors, "lun is required if targetWWNs is specified");
    } else if !targets.is_empty() {
        unit.within(errors, 0, 255);
    }
}

fn flex(source: &Place, _: &Place, _: Owner, errors: &mut Errors) {
    for (key, option) in source.field("options").entries() {
        let domain = format!(".{}", key.split_once('/').map_or(key, |(domain, _)| domain).to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            option.invalid_value(errors, key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

fn azure_disk(source: &Place, _: &Place, _: Owner, errors: &mut Errors) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let (kind, address) = (source.field("kind"), source.field("diskURI"));
    source.field("cachingMode").one_of_if_set(errors, &["None", "ReadOnly", "ReadWrite"]);
    kind.one_of_if_set(errors, &["Dedicated", "Managed", "Shared"]);
    match kind.text() {
        "Managed" if !address.text().starts_with("/subscriptions/") => address.not_supported(errors, &[MANAGED]),
        "Managed" => {}
        _ if kind.is_set() && !address.text().starts_with("https://") => address.not_supported(errors, &[BLOB]),
        _ => {}
    }
}

fn storage_os(source: &Place, _: &Place, _: Owner, errors: &mut Errors) {
    source.field("volumeName").require_follows(errors, name::dns_label);
    source.field("volumeNamespace").follows_if_set(errors, name::dns_label);
    secret_name(source, errors);
}

fn csi(source: &Place, _: &Place, _: Owner, errors: &mut Errors) {
    let driver = source.field("driver");
    if driver.require(errors) {
        if driver.text().len() > 63 {
            driver.too_long(errors, 63);
        }
        driver.follows(errors, |driver| name::dns_subdomain(&driver.to_lowercase()));
    }
    let secret = source.field("nodePublishSecretRef");
    if secret.is_set() && secret.field("name").require(errors) {
        source.field("name").text_follows(errors, secret.field("name").text(), name::dns_subdomain);
    }
}

fn ephemeral(source: &Place, volume: &Place, owner: Owner, errors: &mut Errors) {
    let template = source.field("volumeClaimTemplate");
    if template.require_set(errors) {
        claim_template(&template, errors);
    }
    let name = volume.field("name");
    if !owner.name.is_empty() && !name.is_empty() {
        let claim = format!("{}-{}", owner.name, name.text());
        for message in name::dns_subdomain(&claim) {
            name.invalid(errors, format!("PVC name {claim:?}: {message}"));
        }
    }
}

/// A template of a claim has labels and annotations and no other metadata.
fn claim_template(template: &Place, errors: &mut Errors) {
    let metadata = template.field("metadata");
    metadata.field("labels").labels(errors);
    for (field, value) in metadata.entries() {
        if !matches!(field, "labels" | "annotations") && !value.is_empty() {
            metadata.field(field).forbidden(errors, "cannot be set");
        }
    }
    volume_claim::validate_spec(&template.field("spec"), errors);
}

fn image(source: &Place, _: &Place, owner: Owner, errors: &mut Errors) {
    if owner.is_pod {
        source.field("reference").require(errors);
    }
    source.field("pullPolicy").require_one_of(errors, &PULL_POLICIES);
}
