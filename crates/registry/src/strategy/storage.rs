//! Classes of storage and of volume attributes, drivers, what they have on each node, attachments and capacities.

use crate::strategy::place::{Place, quantity, same};
use crate::strategy::{PLAIN, Strategy, label_selector, node, volume};
use object::field::{Error, Errors};
use object::{Edit, Value, View, json, name};

pub const STORAGE_CLASS: Strategy =
    Strategy { default: Some(default_class), validate: Some(validate_class), warn: Some(warn_of_class), ..PLAIN };
pub const VOLUME_ATTRIBUTES_CLASS: Strategy = Strategy { validate: Some(validate_attributes_class), ..PLAIN };
pub const CSI_DRIVER: Strategy = Strategy {
    default: Some(default_driver),
    validate: Some(validate_driver),
    warn: Some(warn_of_driver),
    generation: true,
    unconditional_update: false,
    ..PLAIN
};
pub const CSI_NODE: Strategy = Strategy { validate: Some(validate_node), unconditional_update: false, ..PLAIN };
pub const CSI_STORAGE_CAPACITY: Strategy =
    Strategy { validate: Some(validate_capacity), warn: Some(warn_of_capacity), unconditional_update: false, ..PLAIN };
pub const VOLUME_ATTACHMENT: Strategy = Strategy {
    validate: Some(validate_attachment),
    validate_status: Some(validate_attachment_status),
    unconditional_update: false,
    ..PLAIN
};

const PARAMETERS_MAX: usize = 512;
const PARAMETERS_MAX_BYTES: usize = 256 * 1024;
const MESSAGE_MAX_BYTES: usize = 1024;
const NODE_ID_MAX_BYTES: usize = 256;
const TOKENS_IN_SECRETS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true \
                                 to prevent possible logging of tokens in volume attributes";

fn default_class(class: &mut Value) {
    class.set_default("reclaimPolicy", "Delete");
    class.set_default("volumeBindingMode", "Immediate");
}

fn validate_class(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let class = Place::root(new);
    if let Some(old) = old {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            class.child(field).unchanged(old.at(field), errors);
        }
        return;
    }
    validate_provisioner(&class.child("provisioner"), errors);
    validate_parameters(&class.child("parameters"), errors);
    let policy = class.child("reclaimPolicy");
    if !policy.is_empty() {
        policy.one_of(&["Delete", "Retain"], errors);
    }
    class.child("volumeBindingMode").required_one_of(&["Immediate", "WaitForFirstConsumer"], errors);
    let mut seen: Vec<&Value> = Vec::new();
    for term in class.list("allowedTopologies") {
        for expression in term.list("matchLabelExpressions") {
            expression.child("values").required("", errors);
            expression.unique("values", errors);
            expression.child("key").follows(name::qualified_name, errors);
        }
        term.unique_by("matchLabelExpressions", "key", errors);
        if seen.contains(&term.value) {
            errors.push(Error::duplicate(&term.child("matchLabelExpressions").path, ""));
        }
        seen.push(term.value);
    }
}

fn validate_provisioner(provisioner: &Place, errors: &mut Errors) {
    if provisioner.required("", errors) {
        let text = provisioner.string().to_lowercase();
        let wrong = name::qualified_name(&text).into_iter();
        errors.extend(wrong.map(|message| Error::invalid(&provisioner.path, text.as_str(), message)));
    }
}

fn validate_parameters(parameters: &Place, errors: &mut Errors) {
    let Some(entries) = parameters.as_object() else { return };
    if entries.len() > PARAMETERS_MAX {
        errors.push(Error::too_long(&parameters.path, PARAMETERS_MAX));
        return;
    }
    if entries.contains_key("") {
        errors.push(Error::invalid(&parameters.path, "", "field can not be empty."));
    }
    let bytes: usize = entries.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if bytes > PARAMETERS_MAX_BYTES {
        errors.push(Error::too_long(&parameters.path, PARAMETERS_MAX_BYTES));
    }
}

fn warn_of_class(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let terms = Place::root(new).list("allowedTopologies");
    let keys = terms.flat_map(|term| term.list("matchLabelExpressions")).map(|expression| expression.child("key"));
    keys.filter_map(|key| node::deprecated_label(key.string()).map(|message| format!("{}: {message}", key.path)))
        .collect()
}

fn validate_attributes_class(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let class = Place::root(new);
    for field in ["driverName", "parameters"] {
        if old.is_some_and(|old| !same(new.at(field), old.at(field))) {
            let detail = format!("updates to {field} are forbidden.");
            errors.push(Error::forbidden(&class.child(field).path, detail));
        }
    }
    validate_provisioner(&class.child("driverName"), errors);
    validate_parameters(&class.child("parameters"), errors);
    class.child("parameters").required("must contain at least one key/value pair", errors);
}

fn default_driver(driver: &mut Value) {
    let spec = driver.object_or_new("spec");
    spec.set_default("attachRequired", true);
    for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        spec.set_default(field, false);
    }
    spec.set_default("fsGroupPolicy", "ReadWriteOnceWithFSType");
    if spec.items("volumeLifecycleModes").is_empty() {
        spec.set("volumeLifecycleModes", json!(["Persistent"]));
    }
}

fn validate_driver(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    spec.child("fsGroupPolicy").optional_one_of(&["File", "None", "ReadWriteOnceWithFSType"], errors);
    spec.unique_by("tokenRequests", "audience", errors);
    for request in spec.list("tokenRequests") {
        let seconds = request.child("expirationSeconds");
        match seconds.as_i64() {
            Some(..600) => errors.push(seconds.invalid("may not specify a duration less than 10 minutes")),
            Some(number) if number > 1 << 32 => {
                errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
            }
            _ => {}
        }
    }
    let modes = spec.child("volumeLifecycleModes");
    for mode in spec.items("volumeLifecycleModes") {
        Place::new(mode, &modes.path).one_of(&["Persistent", "Ephemeral"], errors);
    }
    let period = spec.child("nodeAllocatableUpdatePeriodSeconds");
    if period.as_i64().is_some_and(|seconds| seconds < 10) {
        errors.push(period.invalid("must be greater than or equal to 10 seconds"));
    }
    let in_secrets = spec.child("serviceAccountTokenInSecrets");
    if !in_secrets.is_null() && spec.items("tokenRequests").is_empty() {
        errors.push(in_secrets.invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified"));
    }
    if let Some(old) = old {
        // Kubernetes gives the field a name it does not have.
        let attach = Place::new(spec.at("attachRequired"), &spec.path.child("attachedRequired"));
        attach.unchanged(old.path(&["spec", "attachRequired"]), errors);
        modes.unchanged(old.path(&["spec", "volumeLifecycleModes"]), errors);
    }
}

fn warn_of_driver(new: &Value, old: Option<&Value>) -> Vec<String> {
    let spec = new.at("spec");
    let requests = spec.at("tokenRequests");
    let is_news = old.is_none_or(|old| !same(old.path(&["spec", "tokenRequests"]), requests));
    if is_news && !spec.items("tokenRequests").is_empty() && !spec.has("serviceAccountTokenInSecrets") {
        vec![TOKENS_IN_SECRETS.to_owned()]
    } else {
        Vec::new()
    }
}

fn validate_node(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    for driver in spec.list("drivers") {
        volume::validate_driver_name(&driver.child("name"), errors);
        let id = driver.child("nodeID");
        id.required("", errors);
        if id.string().len() > NODE_ID_MAX_BYTES {
            errors.push(id.invalid(format!("must be {NODE_ID_MAX_BYTES} characters or less")));
        }
        driver.descend(&["allocatable", "count"]).non_negative(errors);
        for key in driver.items("topologyKeys") {
            Place::new(key, &driver.path).required_follows(name::qualified_name, errors);
        }
    }
    spec.unique_by("drivers", "name", errors);
    let known = old.map_or(&[][..], |old| old.at("spec").items("drivers"));
    for driver in spec.items("drivers") {
        let fixed = ["name", "nodeID", "topologyKeys"];
        let old = known.iter().find(|old| old.at("name") == driver.at("name"));
        if old.is_some_and(|old| fixed.iter().any(|field| !same(old.at(field), driver.at(field)))) {
            errors.push(Error::invalid(&spec.child("drivers").path, driver.clone(), "field is immutable"));
        }
    }
}

fn validate_capacity(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let capacity = Place::root(new);
    label_selector::validate(new.at("nodeTopology"), &capacity.child("nodeTopology").path, errors);
    capacity.child("storageClassName").follows(name::dns_subdomain, errors);
    let amount = capacity.child("capacity");
    if quantity(amount.value).is_negative() {
        errors.push(amount.invalid("must be greater than or equal to 0"));
    }
    for field in ["nodeTopology", "storageClassName"] {
        if let Some(old) = old {
            capacity.child(field).unchanged(old.at(field), errors);
        }
    }
}

fn warn_of_capacity(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let topology = Place::root(new).child("nodeTopology");
    let mut warnings = node::selector_term_warnings(&topology);
    let labels = topology.entries("matchLabels").filter_map(|(key, _)| Some((key, node::deprecated_label(key)?)));
    warnings.extend(labels.map(|(key, message)| format!("nodeTopology.matchLabels.{key}: {message}")));
    warnings
}

fn validate_attachment(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    volume::validate_driver_name(&spec.child("attacher"), errors);
    let source = spec.child("source");
    let exactly_one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let volume = source.child("persistentVolumeName");
    match (source.has("inlineVolumeSpec"), !volume.is_null()) {
        (false, false) => errors.push(Error::required(&source.path, exactly_one)),
        (true, true) => errors.push(Error::forbidden(&source.path, exactly_one)),
        (false, true) => {
            if volume.required("must specify non empty persistentVolumeName", errors) {
                volume.follows(name::dns_subdomain, errors);
            }
        }
        (true, false) => {
            let inline = source.child("inlineVolumeSpec");
            inline.child("csi").required("has to be specified in the context of inline volumes", errors);
        }
    }
    spec.child("nodeName").follows(name::dns_subdomain, errors);
    if let Some(old) = old {
        spec.unchanged(old.at("spec"), errors);
    }
}

fn validate_attachment_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let status = Place::root(new).child("status");
    validate_parameters(&status.child("attachmentMetadata"), errors);
    for error in ["attachError", "detachError"].map(|field| status.child(field)) {
        error.child("message").shorter_than(MESSAGE_MAX_BYTES, errors);
        let code = error.child("errorCode");
        if code.as_i64().is_some_and(|code| code < 0) {
            errors.push(code.invalid("must be between 0 and 2147483647, inclusive"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_change_has_its_message, each_mistake_has_its_message, filled};

    #[test]
    fn a_class_of_storage_stays_as_it_is() {
        let class = json!({ "provisioner": "example.com/p" });
        assert_eq!(filled(&STORAGE_CLASS, "storage.v1.StorageClass", &class)["volumeBindingMode"], "Immediate");
        each_mistake_has_its_message(
            &STORAGE_CLASS,
            "storage.v1.StorageClass",
            &class,
            &[
                ("provisioner", json!(""), &["provisioner: Required value"]),
                (
                    "reclaimPolicy",
                    json!("Recycle"),
                    &["reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", \"Retain\""],
                ),
                (
                    "allowedTopologies",
                    json!([{ "matchLabelExpressions": [{ "key": "a", "values": [] }] }]),
                    &["allowedTopologies[0].matchLabelExpressions[0].values: Required value"],
                ),
            ],
        );
        each_change_has_its_message(
            &STORAGE_CLASS,
            "storage.v1.StorageClass",
            &class,
            &[
                ("parameters", json!({ "a": "b" }), &["parameters: Invalid value: {\"a\":\"b\"}: field is immutable"]),
                ("allowVolumeExpansion", json!(true), &[]),
            ],
        );
    }

    #[test]
    fn drivers_nodes_and_attachments_follow_their_rules() {
        let driver = filled(&CSI_DRIVER, "storage.v1.CSIDriver", &json!({ "spec": {} }));
        assert_eq!(driver["spec"]["volumeLifecycleModes"], json!(["Persistent"]));
        each_change_has_its_message(
            &CSI_DRIVER,
            "storage.v1.CSIDriver",
            &driver,
            &[(
                "spec.attachRequired",
                json!(false),
                &["spec.attachedRequired: Invalid value: false: field is immutable"],
            )],
        );
        let node = json!({ "spec": { "drivers": [{ "name": "a", "nodeID": "1" }] } });
        each_mistake_has_its_message(
            &CSI_NODE,
            "storage.v1.CSINode",
            &node,
            &[
                ("spec.drivers.0.nodeID", json!(""), &["spec.drivers[0].nodeID: Required value"]),
                (
                    "spec.drivers.1",
                    json!({ "name": "a", "nodeID": "2" }),
                    &["spec.drivers[1].name: Duplicate value: \"a\""],
                ),
            ],
        );
        let attachment =
            json!({ "spec": { "attacher": "a", "nodeName": "n", "source": { "persistentVolumeName": "v" } } });
        each_mistake_has_its_message(
            &VOLUME_ATTACHMENT,
            "storage.v1.VolumeAttachment",
            &attachment,
            &[(
                "spec.source",
                json!({}),
                &["spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"],
            )],
        );
        let class = json!({ "driverName": "a", "parameters": { "b": "c" } });
        each_change_has_its_message(
            &VOLUME_ATTRIBUTES_CLASS,
            "storage.v1.VolumeAttributesClass",
            &class,
            &[("parameters.b", json!("d"), &["parameters: Forbidden: updates to parameters are forbidden."])],
        );
    }
}
