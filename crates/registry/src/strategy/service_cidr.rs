//! ServiceCIDRs, and the IPAddresses that are taken from them.

use crate::strategy::place::{IMMUTABLE, Place};
use crate::strategy::{PLAIN, Strategy, address};
use object::field::{Error, Errors};
use object::{Value, View, name};

pub const SERVICE_CIDR: Strategy = Strategy { validate: Some(validate), ..PLAIN };
pub const IP_ADDRESS: Strategy =
    Strategy { name: address::canonical_address, validate: Some(validate_address), ..PLAIN };

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = Place::root(new).child("spec");
    let Some(old) = old else { return validate_subnets(&spec, errors) };
    let (now, was) = (spec.items("cidrs"), old.at("spec").items("cidrs"));
    // A second family may be added, and nothing else may change.
    if now.len() != was.len() && (was.len(), now.len()) != (1, 2) {
        errors.push(spec.child("cidrs").invalid(IMMUTABLE));
        return;
    }
    let changed = spec.list("cidrs").zip(was).filter(|(now, was)| now.value != *was);
    errors.extend(changed.map(|(now, _)| now.invalid(IMMUTABLE)));
    if now.len() > was.len() {
        validate_subnets(&spec, errors);
    }
}

fn validate_subnets(spec: &Place, errors: &mut Errors) {
    let all = spec.child("cidrs");
    let subnets: Vec<&str> = spec.items("cidrs").iter().filter_map(Value::as_str).collect();
    if !all.required("at least one CIDR required", errors) {
        return;
    }
    if subnets.len() > 2 {
        errors.push(Error::invalid(&all.path, spec.value.clone(), "may only hold up to 2 values"));
        return;
    }
    spec.list("cidrs").for_each(|subnet| subnet.follows(address::canonical_subnet, errors));
    let known = subnets.iter().all(|subnet| address::parse_subnet(subnet).is_some());
    if subnets.len() == 2 && known && !address::is_dual_stack(subnets.into_iter()) {
        errors.push(
            all.invalid("may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"),
        );
    }
}

fn validate_address(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let parent = Place::root(new).descend(&["spec", "parentRef"]);
    if let Some(old) = old {
        parent.unchanged(old.path(&["spec", "parentRef"]), errors);
    } else if parent.is_null() {
        errors.push(Error::required(&parent.path, ""));
    } else {
        parent.child("group").optional_follows(name::dns_subdomain, errors);
        parent.child("resource").required_follows(name::path_segment, errors);
        parent.child("name").required_follows(name::path_segment, errors);
        parent.child("namespace").optional_follows(name::path_segment, errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::place::testing::{each_change_has_its_message, each_mistake_has_its_message};
    use object::json;

    #[test]
    fn one_subnet_for_each_family() {
        let good = json!({ "spec": { "cidrs": ["10.0.0.0/16"] } });
        each_mistake_has_its_message(
            &SERVICE_CIDR,
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
            &SERVICE_CIDR,
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
            &IP_ADDRESS,
            "networking.v1.IPAddress",
            &good,
            &[
                ("spec.parentRef", json!(null), &["spec.parentRef: Required value"]),
                ("spec.parentRef.resource", json!(""), &["spec.parentRef.resource: Required value"]),
            ],
        );
    }
}
