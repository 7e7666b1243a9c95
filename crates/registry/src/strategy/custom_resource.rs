//! CustomResourceDefinitions: names, and how versions convert. What is in a version has rules of its own, in
//! [`super::custom_resource_version`]; whether names collide and the conditions are a controller's to say.

use crate::strategy::place::Place;
use crate::strategy::value::set_if_empty;
use crate::strategy::{PLAIN, Strategy, custom_resource_version, webhook};
use object::field::Errors;
use object::{Edit, Value, View, json, name};

pub const STRATEGY: Strategy = Strategy {
    default: Some(default),
    prepare: Some(prepare),
    validate: Some(validate),
    validate_status: Some(validate_status),
    generation: true,
    unconditional_update: false,
    ..PLAIN
};

const APPROVAL: &str = "api-approved.kubernetes.io";

fn default(definition: &mut Value) {
    let stored = storage_version(definition);
    let spec = definition.object_or_new("spec");
    let names = spec.object_or_new("names");
    let kind = names.text("kind").to_owned();
    set_if_empty(names, "singular", kind.to_lowercase());
    if !kind.is_empty() {
        set_if_empty(names, "listKind", format!("{kind}List"));
    }
    spec.set_default("conversion", json!({ "strategy": "None" }));
    let webhook = spec.object("conversion").and_then(|conversion| conversion.object("webhook"));
    if let Some(config) = webhook.and_then(|webhook| webhook.object("clientConfig")) {
        webhook::default_client(config);
    }
    if let Some(stored) = stored {
        set_if_empty(definition.object_or_new("status"), "storedVersions", json!([stored]));
    }
}

fn storage_version(definition: &Value) -> Option<String> {
    let versions = definition.at("spec").items("versions");
    versions.iter().find(|version| version.flag("storage")).map(|version| version.text("name").to_owned())
}

/// Objects may be stored in every version that was ever the one to store.
fn prepare(new: &mut Value, _old: Option<&Value>) {
    if let Some(version) = storage_version(new) {
        let mut stored = new.at("status").items("storedVersions").to_vec();
        if !stored.contains(&json!(version)) {
            stored.push(json!(version));
            new.object_or_new("status").set("storedVersions", stored);
        }
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let definition = Place::object(new);
    let spec = definition.field("spec");
    let name = definition.descend(&["metadata", "name"]);
    if old.is_none()
        && name.text() != format!("{}.{}", spec.value().at("names").text("plural"), spec.field("group").text())
    {
        name.invalid(errors, "must be spec.names.plural+\".\"+spec.group");
    }
    validate_spec(&spec, errors);
    validate_stored_versions(&definition, errors);
    validate_approval(&definition, old, errors);
    let was_preserving = old.is_some_and(|old| old.at("spec").flag("preserveUnknownFields"));
    if spec.field("preserveUnknownFields").flag() && !was_preserving {
        spec.field("preserveUnknownFields").invalid(
            errors,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        );
    }
    if let Some(old) = old {
        validate_change(&spec, old, errors);
    }
}

fn validate_spec(spec: &Place, errors: &mut Errors) {
    let group = spec.field("group");
    if group.require(errors) {
        validate_joined(&group, name::dns_subdomain, errors);
        if !group.text().contains('.') {
            group.invalid(errors, "should be a domain with at least one dot");
        }
    }
    spec.field("scope").require_one_of(errors, &["Cluster", "Namespaced"]);
    for version in spec.field("versions").items() {
        let schema = version.descend(&["schema", "openAPIV3Schema"]);
        if !schema.is_set() {
            schema.required(errors, "");
        }
    }
    for version in spec.field("versions").items() {
        validate_joined(&version.field("name"), name::dns_1035_label, errors);
        custom_resource_version::validate(spec, &version, errors);
    }
    let versions = spec.field("versions");
    let names: Vec<&str> = spec.field("versions").values().iter().map(|version| version.text("name")).collect();
    if (1..names.len()).any(|index| names[..index].contains(&names[index])) {
        versions.invalid(errors, "must contain unique version names");
    }
    if spec.field("versions").values().iter().filter(|version| version.flag("storage")).count() != 1 {
        versions.invalid(errors, "must have exactly one version marked as storage version");
    }
    let names = spec.field("names");
    for field in ["plural", "singular", "kind", "listKind"] {
        names.field(field).require(errors);
    }
    validate_names(&names, errors);
    validate_conversion(&spec.field("conversion"), errors);
}

/// All that is wrong, as one message.
fn validate_joined(place: &Place, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let wrong = rule(place.text());
    if !wrong.is_empty() {
        place.invalid_value(errors, place.text(), wrong.join(","));
    }
}

fn validate_names(names: &Place, errors: &mut Errors) {
    for field in ["plural", "singular"].map(|field| names.field(field)).into_iter().filter(|field| !field.is_empty()) {
        validate_joined(&field, name::dns_1035_label, errors);
    }
    for field in ["kind", "listKind"].map(|field| names.field(field)).into_iter().filter(|field| !field.is_empty()) {
        let wrong = name::dns_1035_label(&field.text().to_lowercase());
        if !wrong.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            field.invalid(errors, detail);
        }
    }
    if !names.field("kind").text().is_empty() && names.field("kind").text() == names.field("listKind").text() {
        names.field("listKind").invalid(errors, "kind and listKind may not be the same");
    }
    for item in names.field("shortNames").items().chain(names.field("categories").items()) {
        validate_joined(&item, name::dns_1035_label, errors);
    }
}

fn validate_conversion(conversion: &Place, errors: &mut Errors) {
    if !conversion.is_set() {
        return;
    }
    conversion.field("strategy").require_one_of(errors, &["None", "Webhook"]);
    let hook = conversion.field("webhook").value();
    let config = conversion.field("webhookClientConfig").with(hook.at("clientConfig"));
    let versions = conversion.field("conversionReviewVersions").with(hook.at("conversionReviewVersions"));
    if conversion.field("strategy").text() == "Webhook" {
        if !config.is_set() {
            config.required(errors, "required when strategy is set to Webhook");
        } else {
            webhook::validate_client(&config, errors);
        }
        if versions.require(errors) {
            webhook::validate_versions(&versions, &["v1", "v1beta1"], errors);
        }
    } else {
        for place in [config, versions] {
            place.forbid(errors, "should not be set when strategy is not set to Webhook");
        }
    }
}

fn validate_stored_versions(definition: &Place, errors: &mut Errors) {
    let stored = definition.descend(&["status", "storedVersions"]);
    let status = definition.field("status");
    if stored.is_empty() {
        stored.invalid_value(errors, json!([]), "must have at least one stored version");
        return;
    }
    let versions = definition.value().at("spec").items("versions");
    if let Some(version) = storage_version(definition.value())
        && !status.field("storedVersions").values().contains(&json!(version))
    {
        stored.invalid(errors, format!("must have the storage version {version}"));
    }
    for version in status.field("storedVersions").items() {
        if !versions.iter().any(|known| known.at("name") == version.value()) {
            let name = version.text();
            version.invalid(errors, format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until \
                 a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            ));
        }
    }
}

/// The groups of Kubernetes itself are not for everybody.
fn validate_approval(definition: &Place, old: Option<&Value>, errors: &mut Errors) {
    let group = definition.value().at("spec").text("group");
    let is_protected =
        ["k8s.io", "kubernetes.io"].iter().any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    let annotations = definition.descend(&["metadata", "annotations"]);
    let annotation = annotations.key(APPROVAL);
    let was = old.map(|old| old.path(&["metadata", "annotations", APPROVAL]));
    let text = annotation.text();
    let is_link = text.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    if !is_protected || was == Some(annotation.value()) || text.starts_with("unapproved") || is_link {
        return;
    }
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let must = format!("protected groups must have approval annotation {APPROVAL:?}");
    if text.is_empty() {
        annotation.required(errors, format!("{must}, {see}"));
    } else {
        annotation.invalid(errors, format!("{must} with either a URL or a reason starting with \"unapproved\", {see}"));
    }
}

fn validate_change(spec: &Place, old: &Value, errors: &mut Errors) {
    let before = old.at("spec");
    let conditions = old.at("status").items("conditions");
    let established = conditions
        .iter()
        .any(|condition| condition.text("type") == "Established" && condition.text("status") == "True");
    let kept: &[&[&str]] = match established {
        true => &[&["scope"], &["names", "kind"], &["group"], &["names", "plural"]],
        false => &[&["group"], &["names", "plural"]],
    };
    kept.iter().for_each(|path| spec.descend(path).unchanged(errors, before.path(path)));
}

fn validate_status(new: &Value, _old: &Value, errors: &mut Errors) {
    validate_names(&Place::object(new).descend(&["status", "acceptedNames"]), errors);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message, filled};

    const KIND: &str = "apiextensions.v1.CustomResourceDefinition";

    fn definition() -> Value {
        let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "object" } } } });
        json!({
            "metadata": { "name": "things.example.com" },
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": { "plural": "things", "kind": "Thing" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
            },
        })
    }

    #[test]
    fn names_follow_from_the_kind() {
        let mut definition = filled(KIND, &definition());
        assert_eq!(definition["spec"]["names"]["singular"], "thing");
        assert_eq!(definition["spec"]["names"]["listKind"], "ThingList");
        assert_eq!(definition["spec"]["conversion"], json!({ "strategy": "None" }));
        definition["status"] = json!({});
        prepare(&mut definition, None);
        assert_eq!(definition["status"]["storedVersions"], json!(["v1"]));
    }

    #[test]
    fn each_mistake_is_reported() {
        each_mistake_has_its_message(
            KIND,
            &definition(),
            &[
                (
                    "metadata.name",
                    json!("thing.example.com"),
                    &[
                        "metadata.name: Invalid value: \"thing.example.com\": must be spec.names.plural+\".\"+spec.group",
                    ],
                ),
                (
                    "spec.scope",
                    json!("Everywhere"),
                    &["spec.scope: Unsupported value: \"Everywhere\": supported values: \"Cluster\", \"Namespaced\""],
                ),
                ("spec.versions.0.schema", json!({}), &["spec.versions[0].schema.openAPIV3Schema: Required value"]),
                (
                    "spec.versions.0.schema.openAPIV3Schema.properties.spec",
                    json!({}),
                    &[
                        "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified \
                   object fields",
                    ],
                ),
                (
                    "spec.versions.0.additionalPrinterColumns",
                    json!([{ "name": "A", "type": "text", "jsonPath": "spec" }]),
                    &[
                        "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of \
                     boolean,date,integer,number,string",
                        "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec\": must be a simple json path starting \
                     with .",
                    ],
                ),
                (
                    "spec.versions.0.subresources",
                    json!({ "scale": { "specReplicasPath": ".status.replicas", "statusReplicasPath": "" } }),
                    &[
                        "spec.subresources.scale.specReplicasPath: Invalid value: \".status.replicas\": should be a json path under \
                     .spec",
                        "spec.subresources.scale.statusReplicasPath: Required value",
                    ],
                ),
                (
                    "spec.preserveUnknownFields",
                    json!(true),
                    &["spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
                   x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"],
                ),
            ],
        );
        let mut none_stored = definition();
        none_stored["spec"]["versions"][0]["storage"] = json!(false);
        none_stored["status"] = json!({ "storedVersions": ["v1"] });
        let messages = crate::strategy::check::messages(KIND, &none_stored, None);
        assert!(
            messages.len() == 1 && messages[0].ends_with("must have exactly one version marked as storage version")
        );
    }

    #[test]
    fn what_urls_are_made_of_stays() {
        let mut old = definition();
        old["status"] =
            json!({ "storedVersions": ["v1"], "conditions": [{ "type": "Established", "status": "True" }] });
        each_change_has_its_message(
            KIND,
            &old,
            &[
                ("spec.scope", json!("Cluster"), &["spec.scope: Invalid value: \"Cluster\": field is immutable"]),
                ("spec.names.shortNames", json!(["th"]), &[]),
            ],
        );
    }
}
