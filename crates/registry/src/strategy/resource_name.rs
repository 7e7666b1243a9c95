//! Names of what can be requested, limited and counted (`cpu`, `requests.memory`, `example.com/gpu`), and amounts of it.

use crate::strategy::place::Place;
use crate::strategy::value::quantity;
use object::field::Errors;
use object::name;

/// What pods and containers use.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// What is counted in objects, so there is no half of it.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const HUGE_PAGES: &str = "hugepages-";

/// What a quota can limit without a domain in its name.
pub fn is_quota(name: &str) -> bool {
    let compute = |name: &str| COMPUTE.contains(&name);
    let bare = name.strip_prefix("requests.").unwrap_or(name);
    COUNTED.contains(&name)
        || compute(bare)
        || name.strip_prefix("limits.").is_some_and(compute)
        || name == "requests.storage"
        || bare.starts_with(HUGE_PAGES)
}

/// Whether more of it can be promised than there is.
pub fn can_overcommit(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGE_PAGES)
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Resources that nodes offer beyond the usual; they come in whole numbers.
pub fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && name::qualified_name(&format!("requests.{name}")).is_empty()
}

/// The name of any resource.
pub fn validate(name: &str, place: &Place, errors: &mut Errors) -> bool {
    let good = place.text_follows(errors, name, name::qualified_name);
    if good && !name.contains('/') && !is_quota(name) && name != "storage" {
        place.invalid_value(errors, name, "must be a standard resource type or fully qualified");
        return false;
    }
    good
}

/// The name of a resource that containers use.
pub fn validate_container(name: &str, place: &Place, errors: &mut Errors) {
    validate(name, place, errors);
    if !name.contains('/') {
        if !COMPUTE.contains(&name) && !name.starts_with(HUGE_PAGES) {
            place.invalid_value(errors, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        place.invalid_value(errors, name, "doesn't follow extended resource name standard");
    }
}

/// The name of a resource that a quota limits.
pub fn validate_quota(name: &str, place: &Place, errors: &mut Errors) {
    validate(name, place, errors);
    if !name.contains('/') && !is_quota(name) {
        place.invalid_value(errors, name, "must be a standard resource for quota");
    }
}

/// So much of a resource.
pub fn validate_amount(name: &str, amount: &Place, errors: &mut Errors) {
    let value = quantity(amount.value());
    if value.is_negative() {
        amount.invalid(errors, "must be greater than or equal to 0");
    }
    if (COUNTED.contains(&name) || is_extended(name)) && value.millis() % 1000 != 0 {
        amount.invalid(errors, "must be an integer");
    }
}
