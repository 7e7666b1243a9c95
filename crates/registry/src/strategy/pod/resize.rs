//! Changing how much the containers of a running pod get.

use super::annotations::MIRROR;
use super::qos_class;
use super::resources::is_sidecar;
use super::update::restore;
use crate::strategy::place::Place;
use crate::strategy::value::same;
use object::field::Errors;
use object::{Edit, Value, View};

const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Undoes what is no resize: only resources and how they are resized come from the request.
pub(super) fn prepare(new: &mut Value, old: &Value) {
    let (asked, before) = (new.at("spec").clone(), old.at("spec"));
    let mut spec = before.clone();
    for list in LISTS {
        let names = |spec: &Value| spec.items(list).iter().map(|one| one.at("name").clone()).collect::<Vec<_>>();
        // Containers that come, go or change their names are for validation to refuse.
        if names(&asked) != names(before) {
            return;
        }
        for (container, asked) in spec.each(list).zip(asked.items(list)) {
            restore(container, asked, "resources");
            restore(container, asked, "resizePolicy");
        }
    }
    restore(&mut spec, &asked, "resources");
    new.set("spec", spec);
    restore(new, old, "status");
}

pub(super) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    let whole = if old.path(&["metadata", "annotations"]).has(MIRROR) {
        Some("static pods cannot be resized")
    } else if old.at("spec").at("os").text("name") == "windows" {
        Some("windows pods cannot be resized")
    } else {
        None
    };
    if let Some(detail) = whole {
        errors.clear();
        return Place::object(new).forbidden(errors, detail);
    }
    let object = Place::object(new);
    let spec = object.field("spec");
    let class = match old.at("status").text("qosClass") {
        "" => qos_class(old),
        class => class,
    };
    if class != qos_class(new) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        spec.invalid_value(errors, new.at("status").at("qosClass").clone(), detail);
    }
    if !supported(old.at("status")) {
        spec.forbidden(errors, "Pod running on node without support for resize");
    }
    let pod_level_is_wrong = validate_pod_level(&spec, old.at("spec"), errors);
    if !validate_order(&spec, old.at("spec"), errors) {
        return;
    }
    validate_containers(&spec, old.at("spec"), errors);
    if errors.is_empty() && !pod_level_is_wrong && !same(&masked(new, old), old.at("spec")) {
        spec.forbidden(errors, "only cpu and memory resources are mutable");
    }
}

/// A node that can resize reports the resources of what runs.
fn supported(status: &Value) -> bool {
    let mut running = status.items("containerStatuses").iter().filter(|one| one.at("state").has("running"));
    running.next().is_none_or(|one| one.has("resources"))
}

fn removed(new: &Value, old: &Value) -> bool {
    old.as_object().into_iter().flatten().any(|(name, _)| !new.has(name))
}

/// Returns whether something was wrong.
fn validate_pod_level(spec: &Place, before: &Value, errors: &mut Errors) -> bool {
    let (resources, old) = (spec.field("resources"), before.at("resources"));
    let count = errors.len();
    if !old.is_null() && !resources.is_set() {
        resources.forbidden(errors, "pod-level resources cannot be removed");
        return true;
    }
    for (list, what) in [("requests", "requests"), ("limits", "limits")] {
        if removed(resources.field(list).value(), old.at(list)) {
            let detail = format!("pod-level resource {what} cannot be removed");
            resources.field(list).forbidden(errors, detail);
        }
    }
    let mut rest = resources.value().clone();
    mask(&mut rest, old);
    if !same(&rest, old) {
        spec.forbidden(errors, "only cpu and memory resources are mutable at pod-level");
    }
    errors.len() > count
}

fn validate_order(spec: &Place, before: &Value, errors: &mut Errors) -> bool {
    let count = errors.len();
    for list in LISTS {
        let containers = spec.field(list);
        let old = before.items(list);
        if containers.items().count() != old.len() {
            containers.forbidden(errors, format!("{list} may not be added or removed on resize"));
            continue;
        }
        for (container, old) in containers.items().zip(old) {
            if container.field("name").value() != old.at("name") {
                let detail = format!("{list} may not be renamed or reordered on resize");
                container.field("name").forbidden(errors, detail);
            }
        }
    }
    errors.len() == count
}

fn validate_containers(spec: &Place, before: &Value, errors: &mut Errors) {
    for list in LISTS {
        for (container, old) in spec.field(list).items().zip(before.items(list)) {
            let resources = container.field("resources");
            for part in ["requests", "limits"] {
                if removed(resources.field(part).value(), old.at("resources").at(part)) {
                    resources.field(part).forbidden(errors, format!("resource {part} cannot be removed"));
                }
            }
            let mut rest = container.value().clone();
            if let Some(resources) = rest.object("resources") {
                mask(resources, old.at("resources"));
            }
            let is_init = list == "initContainers";
            let changed = !same(&rest, old);
            if changed && is_init {
                let detail = "only cpu and memory resources for init or sidecar containers are mutable";
                container.forbidden(errors, detail);
            } else if changed {
                spec.forbidden(errors, "only cpu and memory resources are mutable");
            }
            let restarts = container.field("resizePolicy").values().iter();
            let restarts = restarts.filter(|policy| policy.text("restartPolicy") == "RestartContainer").count() > 0;
            if is_init && restarts && !same(container.value(), old) && !is_sidecar(container.value()) {
                let detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                container.forbidden(errors, detail);
            }
        }
    }
}

/// Sets processors and memory back to what they were.
fn mask(resources: &mut Value, old: &Value) {
    for list in ["requests", "limits"] {
        if resources.at(list).is_null() && old.at(list).is_null() {
            continue;
        }
        let amounts = resources.object_or_new(list);
        ["cpu", "memory"].iter().for_each(|name| restore(amounts, old.at(list), name));
    }
}

fn masked(new: &Value, old: &Value) -> Value {
    let (mut spec, before) = (new.at("spec").clone(), old.at("spec"));
    restore(&mut spec, before, "resources");
    for list in LISTS {
        for (container, old) in spec.each(list).zip(before.items(list)) {
            restore(container, old, "resources");
            restore(container, old, "resizePolicy");
        }
    }
    spec
}
