//! The rules of requests, limits and claims, of a container and of a pod as a whole.

use super::container::Pod;
use super::resources::{HUGE_PAGES, aggregate, is_pod_level};
use crate::strategy::place::Place;
use crate::strategy::resource_name::{self, can_overcommit, is_extended};
use crate::strategy::value::quantity;
use object::field::{Error, Errors, Kind};
use object::{Quantity, View, name};
use std::collections::BTreeSet;

/// Whose requirements they are, which decides what may be asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Container,
    Pod,
}

pub(super) fn validate(resources: &Place, of: Of, pod: &Pod, errors: &mut Errors) {
    if resources.is_empty() {
        return;
    }
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    let (mut has_compute, mut has_huge_pages) = (false, false);
    for list in [&limits, &requests] {
        for (name, amount) in list.entries() {
            one(name, &amount, of, errors);
            has_compute |= matches!(name, "cpu" | "memory");
            has_huge_pages |= name.starts_with(HUGE_PAGES);
        }
    }
    for (name, request) in requests.entries() {
        within_limit(name, &request, &limits, &requests, errors);
    }
    if has_huge_pages && !has_compute {
        resources.forbidden(errors, "HugePages require cpu or memory");
    }
    claims(&resources.field("claims"), pod, errors);
}

/// What a runtime class adds to a pod: limits without requests.
pub(super) fn validate_overhead(overhead: &Place, errors: &mut Errors) {
    // The rules are those of limits, and the path says so.
    let limits = overhead.field("limits");
    for (name, amount) in limits.with(overhead.value()).entries() {
        one(name, &amount, Of::Container, errors);
    }
}

fn one(name: &str, amount: &Place, of: Of, errors: &mut Errors) {
    validate_name(name, amount, of, errors);
    // Quantities are in their canonical form.
    if amount.text().starts_with('-') {
        amount.invalid(errors, "must be greater than or equal to 0");
    }
    if is_extended(name) && quantity(amount.value()).millis() % 1000 != 0 {
        amount.invalid(errors, "must be an integer");
    }
    if let Some(size) = name.strip_prefix(HUGE_PAGES) {
        let page = size.parse::<Quantity>().unwrap_or_default();
        if page.units() <= 0 || quantity(amount.value()).units() % page.units() != 0 {
            amount.invalid(errors, format!("{} is not positive integer multiple of {name}", amount.text()));
        }
    }
}

fn validate_name(name: &str, amount: &Place, of: Of, errors: &mut Errors) {
    let known = match of {
        Of::Container => matches!(name, "cpu" | "memory" | "ephemeral-storage"),
        Of::Pod => matches!(name, "cpu" | "memory"),
    };
    if known {
        return;
    }
    match of {
        Of::Container => resource_name::validate_container(name, amount, errors),
        Of::Pod => {
            if resource_name::validate(name, amount, errors) && !is_pod_level(name) {
                amount.not_supported_value(errors, name, &["cpu", HUGE_PAGES, "memory"]);
            }
        }
    }
}

fn within_limit(name: &str, request: &Place, limits: &Place, requests: &Place, errors: &mut Errors) {
    let limit = limits.key(name).value();
    if limit.is_null() {
        if !can_overcommit(name) {
            limits.required(errors, "Limit must be set for non overcommitable resources");
        }
        return;
    }
    if request.value() == limit {
        return;
    }
    let (asked, most) = (quantity(request.value()), quantity(limit));
    let relation = if asked != most && !can_overcommit(name) {
        "equal to"
    } else if asked > most {
        "less than or equal to"
    } else {
        return;
    };
    let most = limit.as_str().unwrap_or_default();
    requests.invalid_value(errors, request.text(), format!("must be {relation} {name} limit of {most}"));
}

/// The claims a container uses must be claims of its pod.
fn claims(claims: &Place, pod: &Pod, errors: &mut Errors) {
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for claim in claims.items() {
        let (name, request) = (claim.field("name").text(), claim.field("request").text());
        if name.is_empty() {
            claim.required(errors, "");
            continue;
        }
        claim.field("request").follows_if_set(errors, name::dns_label);
        let whole_is_taken = seen.contains(&(name, ""));
        let part_is_taken = request.is_empty() && seen.iter().any(|(other, _)| *other == name);
        if whole_is_taken || part_is_taken {
            claim.duplicate(errors, name);
        } else if !seen.insert((name, request)) {
            claim.duplicate(errors, format!("{name}/{request}"));
        }
        seen.insert((name, request));
        if !pod.claims.contains(name) {
            let names: Vec<_> = pod.claims.iter().copied().collect();
            let detail = match names.as_slice() {
                [] => "must be one of the names in pod.spec.resourceClaims which is empty".to_owned(),
                names => format!("must be one of the names in pod.spec.resourceClaims: {}", names.join(", ")),
            };
            errors.push(Error { kind: Kind::NotFound, path: claim.to_path(), value: name.into(), detail });
        }
    }
}

/// What a pod asks for as a whole must hold what its containers ask for.
pub(super) fn validate_pod_level(spec: &Place, pod: &Pod, errors: &mut Errors) {
    let resources = spec.field("resources");
    if !resources.is_set() {
        return;
    }
    if pod.os == "windows" {
        resources.forbidden(errors, "may not be set for a windows pod");
        return;
    }
    if resources.field("claims").is_set() {
        resources.field("claims").forbidden(errors, "claims may not be set for Resources at pod-level");
    }
    validate(&resources, Of::Pod, pod, errors);
    for (list, what) in [("requests", "requests"), ("limits", "limits")] {
        let amounts = resources.field(list);
        for (name, sum) in aggregate(spec.value(), list) {
            let at = amounts.key(name);
            let counts = list == "requests" || name.starts_with(HUGE_PAGES);
            if counts && at.is_set() && sum > quantity(at.value()) {
                at.invalid(errors, format!("must be greater than or equal to aggregate container {what} of {sum}"));
            }
        }
    }
    let most = resources.field("limits");
    for (index, container) in spec.field("containers").values().iter().enumerate() {
        for (name, limit) in container.at("resources").entries("limits") {
            let bound = most.key(name).value();
            if !bound.is_null() && quantity(limit) > quantity(bound) {
                let containers = resources.field("containers");
                let container = containers.item(index);
                let bound = bound.as_str().unwrap_or_default();
                let detail = format!("must be less than or equal to pod limits of {bound}");
                container.key(name).field("limits").invalid_value(errors, limit.clone(), detail);
            }
        }
    }
}
