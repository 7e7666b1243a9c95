//! Classes of storage and of volume attributes, drivers, what they have on each node, attachments and capacities.

use crate::strategy::place::Place;
use crate::strategy::value::{quantity, same};
use crate::strategy::{PLAIN, Strategy, label_selector, node, volume};
use object::field::Errors;
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
    let class = Place::object(new);
    if let Some(old) = old {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            class.field(field).unchanged(errors, old.at(field));
        }
        return;
    }
    validate_provisioner(&class.field("provisioner"), errors);
    validate_parameters(&class.field("parameters"), errors);
    let policy = class.field("reclaimPolicy");
    if !policy.is_empty() {
        policy.one_of(errors, &["Delete", "Retain"]);
    }
    class.field("volumeBindingMode").require_one_of(errors, &["Immediate", "WaitForFirstConsumer"]);
    let mut seen: Vec<&Value> = Vec::new();
    for term in class.field("allowedTopologies").items() {
        for expression in term.field("matchLabelExpressions").items() {
            expression.field("values").require(errors);
            expression.field("values").unique(errors);
            expression.field("key").follows(errors, name::qualified_name);
        }
        term.field("matchLabelExpressions").unique_by(errors, "key");
        if seen.contains(&term.value()) {
            term.field("matchLabelExpressions").duplicate(errors, "");
        }
        seen.push(term.value());
    }
}

fn validate_provisioner(provisioner: &Place, errors: &mut Errors) {
    if provisioner.require(errors) {
        let text = provisioner.text().to_lowercase();
        provisioner.text_follows(errors, &text, name::qualified_name);
    }
}

fn validate_parameters(parameters: &Place, errors: &mut Errors) {
    let Some(entries) = parameters.value().as_object() else { return };
    if entries.len() > PARAMETERS_MAX {
        parameters.too_long(errors, PARAMETERS_MAX);
        return;
    }
    if entries.contains_key("") {
        parameters.invalid_value(errors, "", "field can not be empty.");
    }
    let bytes: usize = entries.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if bytes > PARAMETERS_MAX_BYTES {
        parameters.too_long(errors, PARAMETERS_MAX_BYTES);
    }
}

fn warn_of_class(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    for term in Place::field_of(new, "allowedTopologies").items() {
        for expression in term.field("matchLabelExpressions").items() {
            let key = expression.field("key");
            warnings.extend(node::deprecated_label(key.text()).map(|message| format!("{key}: {message}")));
        }
    }
    warnings
}

fn validate_attributes_class(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let class = Place::object(new);
    for field in ["driverName", "parameters"] {
        if old.is_some_and(|old| !same(new.at(field), old.at(field))) {
            let detail = format!("updates to {field} are forbidden.");
            class.field(field).forbidden(errors, detail);
        }
    }
    validate_provisioner(&class.field("driverName"), errors);
    validate_parameters(&class.field("parameters"), errors);
    class.field("parameters").require_because(errors, "must contain at least one key/value pair");
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
    let spec = Place::field_of(new, "spec");
    spec.field("fsGroupPolicy").one_of_if_set(errors, &["File", "None", "ReadWriteOnceWithFSType"]);
    spec.field("tokenRequests").unique_by(errors, "audience");
    for request in spec.field("tokenRequests").items() {
        let seconds = request.field("expirationSeconds");
        match seconds.number() {
            Some(..600) => seconds.invalid(errors, "may not specify a duration less than 10 minutes"),
            Some(number) if number > 1 << 32 => {
                seconds.invalid(errors, "may not specify a duration larger than 2^32 seconds");
            }
            _ => {}
        }
    }
    let modes = spec.field("volumeLifecycleModes");
    for mode in spec.field("volumeLifecycleModes").values() {
        modes.with(mode).one_of(errors, &["Persistent", "Ephemeral"]);
    }
    let period = spec.field("nodeAllocatableUpdatePeriodSeconds");
    if period.number().is_some_and(|seconds| seconds < 10) {
        period.invalid(errors, "must be greater than or equal to 10 seconds");
    }
    let in_secrets = spec.field("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && spec.field("tokenRequests").is_empty() {
        in_secrets.invalid(errors, "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
    }
    if let Some(old) = old {
        // Kubernetes gives the field a name it does not have.
        let attach = spec.field("attachedRequired").with(spec.field("attachRequired").value());
        attach.unchanged(errors, old.path(&["spec", "attachRequired"]));
        modes.unchanged(errors, old.path(&["spec", "volumeLifecycleModes"]));
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
    let spec = Place::field_of(new, "spec");
    for driver in spec.field("drivers").items() {
        volume::validate_driver_name(&driver.field("name"), errors);
        let id = driver.field("nodeID");
        id.require(errors);
        if id.text().len() > NODE_ID_MAX_BYTES {
            id.invalid(errors, format!("must be {NODE_ID_MAX_BYTES} characters or less"));
        }
        driver.descend(&["allocatable", "count"]).not_negative(errors);
        for key in driver.field("topologyKeys").values() {
            driver.with(key).require_follows(errors, name::qualified_name);
        }
    }
    spec.field("drivers").unique_by(errors, "name");
    let known = old.map_or(&[][..], |old| old.at("spec").items("drivers"));
    for driver in spec.field("drivers").values() {
        let fixed = ["name", "nodeID", "topologyKeys"];
        let old = known.iter().find(|old| old.at("name") == driver.at("name"));
        if old.is_some_and(|old| fixed.iter().any(|field| !same(old.at(field), driver.at(field)))) {
            spec.field("drivers").invalid_value(errors, driver.clone(), "field is immutable");
        }
    }
}

fn validate_capacity(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let capacity = Place::object(new);
    label_selector::validate(&capacity.field("nodeTopology"), errors);
    capacity.field("storageClassName").follows(errors, name::dns_subdomain);
    let amount = capacity.field("capacity");
    if quantity(amount.value()).is_negative() {
        amount.invalid(errors, "must be greater than or equal to 0");
    }
    for field in ["nodeTopology", "storageClassName"] {
        if let Some(old) = old {
            capacity.field(field).unchanged(errors, old.at(field));
        }
    }
}

fn warn_of_capacity(new: &Value, _old: Option<&Value>) -> Vec<String> {
    let topology = Place::field_of(new, "nodeTopology");
    let mut warnings = node::selector_term_warnings(&topology);
    let labels =
        topology.value().entries("matchLabels").filter_map(|(key, _)| Some((key, node::deprecated_label(key)?)));
    warnings.extend(labels.map(|(key, message)| format!("nodeTopology.matchLabels.{key}: {message}")));
    warnings
}

fn validate_attachment(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    volume::validate_driver_name(&spec.field("attacher"), errors);
    let source = spec.field("source");
    let exactly_one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let volume = source.field("persistentVolumeName");
    match (source.field("inlineVolumeSpec").is_set(), volume.is_set()) {
        (false, false) => source.required(errors, exactly_one),
        (true, true) => source.forbidden(errors, exactly_one),
        (false, true) => {
            if volume.require_because(errors, "must specify non empty persistentVolumeName") {
                volume.follows(errors, name::dns_subdomain);
            }
        }
        (true, false) => {
            let inline = source.field("inlineVolumeSpec");
            inline.field("csi").require_because(errors, "has to be specified in the context of inline volumes");
        }
    }
    spec.field("nodeName").follows(errors, name::dns_subdomain);
    if let Some(old) = old {
        spec.unchanged(errors, old.at("spec"));
    }
}

fn validate_attachment_status(new: &Value, _old: &Value, errors: &mut Errors) {
    let status = Place::field_of(new, "status");
    validate_parameters(&status.field("attachmentMetadata"), errors);
    for error in ["attachError", "detachError"].map(|field| status.field(field)) {
        error.field("message").shorter_than(errors, MESSAGE_MAX_BYTES);
        let code = error.field("errorCode");
        if code.number().is_some_and(|code| code < 0) {
            code.invalid(errors, "must be between 0 and 2147483647, inclusive");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message, filled};

    #[test]
    fn a_class_of_storage_stays_as_it_is() {
        let class = json!({ "provisioner": "example.com/p" });
        assert_eq!(filled("storage.v1.StorageClass", &class)["volumeBindingMode"], "Immediate");
        each_mistake_has_its_message(
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
        let driver = filled("storage.v1.CSIDriver", &json!({ "spec": {} }));
        assert_eq!(driver["spec"]["volumeLifecycleModes"], json!(["Persistent"]));
        each_change_has_its_message(
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
            "storage.v1.VolumeAttributesClass",
            &class,
            &[("parameters.b", json!("d"), &["parameters: Forbidden: updates to parameters are forbidden."])],
        );
    }
}
