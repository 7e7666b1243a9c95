//! ServiceCIDRs, and the IPAddresses that are taken from them.

use crate::strategy::place::Place;
use crate::strategy::rule::IMMUTABLE;
use crate::strategy::{PLAIN, Strategy, address};
use object::field::Errors;
use object::{Value, View, name};

pub const SERVICE_CIDR: Strategy = Strategy { validate: Some(validate), ..PLAIN };
pub const IP_ADDRESS: Strategy =
    Strategy { name: address::canonical_address, validate: Some(validate_address), ..PLAIN };

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::field_of(new, "spec");
    let Some(old) = old else { return validate_subnets(&spec, errors) };
    let (all, was) = (spec.field("cidrs"), old.at("spec").items("cidrs"));
    let now = all.values();
    // A second family may be added, and nothing else may change.
    if now.len() != was.len() && (was.len(), now.len()) != (1, 2) {
        all.invalid(errors, IMMUTABLE);
        return;
    }
    let changed = all.items().zip(was).filter(|(now, was)| now.value() != *was);
    changed.for_each(|(now, _)| now.invalid(errors, IMMUTABLE));
    if now.len() > was.len() {
        validate_subnets(&spec, errors);
    }
}

fn validate_subnets(spec: &Place, errors: &mut Errors) {
    let all = spec.field("cidrs");
    let subnets: Vec<&str> = all.values().iter().filter_map(Value::as_str).collect();
    if !all.require_because(errors, "at least one CIDR required") {
        return;
    }
    if subnets.len() > 2 {
        all.invalid_value(errors, spec.value().clone(), "may only hold up to 2 values");
        return;
    }
    all.items().for_each(|subnet| subnet.follows(errors, address::canonical_subnet));
    let known = subnets.iter().all(|subnet| address::parse_subnet(subnet).is_some());
    if subnets.len() == 2 && known && !address::is_dual_stack(subnets.into_iter()) {
        all.invalid(errors, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64");
    }
}

fn validate_address(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let parent = Place::named(new.path(&["spec", "parentRef"]), "spec.parentRef");
    if let Some(old) = old {
        parent.unchanged(errors, old.path(&["spec", "parentRef"]));
    } else if !parent.is_set() {
        parent.required(errors, "");
    } else {
        parent.field("group").follows_if_set(errors, name::dns_subdomain);
        parent.field("resource").require_follows(errors, name::path_segment);
        parent.field("name").require_follows(errors, name::path_segment);
        parent.field("namespace").follows_if_set(errors, name::path_segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::check::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn one_subnet_for_each_family() {
        let good = json!({ "spec": { "cidrs": ["10.0.0.0/16"] } });
        each_mistake_has_its_message(
            "networking.v1.ServiceCIDR",
            &good,
            &[
                ("spec.cidrs", json!([]), &["spec.cidrs: Required value: at least one CIDR required"]),
                (
                    "spec.cidrs.1",
                    json!("10.1.0.0/16"),
                    &[
                        "spec.cidrs: Invalid value: [\"10.0.0.0/16\",\"10.1.0.0/16\"]: may specify no more than one IP for each IP \
                   family, i.e 192.168.0.0/24 and 2001:db8::/64",
                    ],
                ),
            ],
        );
        each_change_has_its_message(
            "networking.v1.ServiceCIDR",
            &good,
            &[
                ("spec.cidrs.1", json!("2001:db8::/64"), &[]),
                (
                    "spec.cidrs.0",
                    json!("10.1.0.0/16"),
                    &["spec.cidrs[0]: Invalid value: \"10.1.0.0/16\": field is immutable"],
                ),
            ],
        );
    }

    #[test]
    fn an_address_is_named_by_itself_and_has_a_parent() {
        assert_eq!((IP_ADDRESS.name)("2001:DB8::1"), ["must be in canonical form (\"2001:db8::1\")"]);
        let good = json!({ "spec": { "parentRef": { "resource": "services", "name": "a", "namespace": "b" } } });
        each_mistake_has_its_message(
            "networking.v1.IPAddress",
            &good,
            &[
                ("spec.parentRef", json!(null), &["spec.parentRef: Required value"]),
                ("spec.parentRef.resource", json!(""), &["spec.parentRef.resource: Required value"]),
            ],
        );
    }
}
