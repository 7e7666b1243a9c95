//! Nobody may give away what they do not have: comparing the rules of two parties.

use crate::request::User;
use crate::rule::{ALL, Rule, includes, quoted, url_covers};
use std::collections::{BTreeMap, BTreeSet};

/// Rules multiply: a verb on a resource of a group, by name. Past this many, what is wanted counts as not covered,
/// because comparing it would take longer than anyone has a use for.
const MAX_ATOMS: usize = 100_000;

/// What of the wanted rules no rule of the owner covers, broken down to single verbs on single resources.
pub fn covers(owner: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let (mut uncovered, mut left) = (Vec::new(), MAX_ATOMS);
    for rule in wanted.iter().filter(|rule| !owner.iter().any(|owner| covers_all(owner, rule))) {
        let atoms = atom_count(rule);
        if atoms > left {
            uncovered.push(rule.clone());
            continue;
        }
        left -= atoms;
        uncovered.extend(atoms_of(rule).into_iter().filter(|atom| !owner.iter().any(|owner| covers_all(owner, atom))));
    }
    uncovered
}

fn atom_count(rule: &Rule) -> usize {
    let on_resources = rule.api_groups.len().saturating_mul(rule.resources.len()).saturating_mul(rule.verbs.len());
    let on_resources = on_resources.saturating_mul(rule.resource_names.len().max(1));
    on_resources.saturating_add(rule.non_resource_urls.len().saturating_mul(rule.verbs.len()))
}

/// The same in rules of one verb on one resource, by one name at most, or on one path.
fn atoms_of(rule: &Rule) -> Vec<Rule> {
    let names = match rule.resource_names.as_slice() {
        [] => vec![vec![]],
        names => names.iter().map(|name| vec![name.clone()]).collect(),
    };
    let mut atoms = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                atoms.extend(names.iter().map(|names| Rule {
                    verbs: vec![verb.clone()],
                    api_groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    resource_names: names.clone(),
                    non_resource_urls: vec![],
                }));
            }
        }
    }
    for url in &rule.non_resource_urls {
        atoms.extend(rule.verbs.iter().map(|verb| Rule {
            verbs: vec![verb.clone()],
            non_resource_urls: vec![url.clone()],
            ..Rule::default()
        }));
    }
    atoms
}

/// Whether one rule allows all that another does.
fn covers_all(owner: &Rule, wanted: &Rule) -> bool {
    let has_names = match wanted.resource_names.as_slice() {
        [] => owner.resource_names.is_empty(),
        names => owner.resource_names.is_empty() || names.iter().all(|name| owner.resource_names.contains(name)),
    };
    has_names
        && wanted.verbs.iter().all(|verb| includes(&owner.verbs, verb))
        && wanted.api_groups.iter().all(|group| includes(&owner.api_groups, group))
        && wanted.resources.iter().all(|resource| covers_resource(owner, resource))
        && wanted
            .non_resource_urls
            .iter()
            .all(|wanted| owner.non_resource_urls.iter().any(|url| url_covers(url, wanted)))
}

fn covers_resource(owner: &Rule, wanted: &str) -> bool {
    let of_all =
        |resource: &str| wanted.split_once('/').is_some_and(|(_, sub)| resource.strip_prefix("*/") == Some(sub));
    owner.resources.iter().any(|resource| resource == ALL || resource == wanted || of_all(resource))
}

/// What a user is told who tries to give away more than they have.
pub fn escalation_message(user: &User, uncovered: &[Rule]) -> String {
    let texts: BTreeSet<_> = compact(uncovered).iter().map(Rule::to_string).collect();
    format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(&user.groups),
        texts.into_iter().collect::<Vec<_>>().join("\n")
    )
}

/// Joins rules about the same single resource that differ in their verbs only; in no particular order.
fn compact(rules: &[Rule]) -> Vec<Rule> {
    let (mut simple, mut others) = (BTreeMap::<_, Rule>::new(), Vec::new());
    for rule in rules {
        match (rule.api_groups.as_slice(), rule.resources.as_slice(), rule.resource_names.as_slice()) {
            ([group], [resource], names @ ([] | [_])) if rule.non_resource_urls.is_empty() => {
                let joined = simple.entry((group, resource, names));
                let joined = joined.or_insert_with(|| Rule { verbs: vec![], ..rule.clone() });
                joined.verbs.extend_from_slice(&rule.verbs);
            }
            _ => others.push(rule.clone()),
        }
    }
    others.into_iter().chain(simple.into_values()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    /// `get,list core pods,pods/log named a`, or `get url /x`.
    fn rule(text: &str) -> Rule {
        crate::defaults::rule(text).unwrap()
    }

    #[test]
    fn what_is_not_covered_is_broken_down() {
        for (owner, wanted, uncovered) in [
            (&["* * *", "* url *"][..], &["get core pods", "get url /x"][..], &[][..]),
            (&["* * *"], &["get url /x"], &["get url /x"]),
            (&["get,list core pods"], &["get,list,watch core pods"], &["watch core pods"]),
            (&["get core pods", "list core pods"], &["get,list core pods"], &[]),
            (&["get core pods"], &["get core pods named a"], &[]),
            (&["get core pods named a"], &["get core pods"], &["get core pods"]),
            (&["get core pods named a"], &["get core pods named a,b"], &["get core pods named b"]),
            (&["get core */scale"], &["get core pods/scale,pods/log"], &["get core pods/log"]),
            (&["get core pods"], &["get core */log"], &["get core */log"]),
            (&["get core pods"], &["get core,apps pods"], &["get apps pods"]),
            (&["get core pods"], &["* core pods"], &["* core pods"]),
            (&["get url /api/*"], &["get url /api/x,/api", "get url /api/y/*"], &["get url /api"]),
            (&[], &["create core pods"], &["create core pods"]),
        ] {
            let rules = |texts: &[&str]| texts.iter().map(|text| rule(text)).collect::<Vec<_>>();
            assert_eq!(covers(&rules(owner), &rules(wanted)), rules(uncovered), "{owner:?} {wanted:?}");
        }
    }

    #[test]
    fn too_much_at_once_counts_as_not_covered() {
        let many: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let wanted =
            Rule { verbs: many.clone(), api_groups: many.clone(), resources: many, ..Rule::from_value(&json!({})) };
        let wanted = [wanted];
        assert_eq!(covers(&[rule("get core pods")], &wanted), wanted);
        assert_eq!(covers(&[rule("* * *")], &wanted), []);
    }

    #[test]
    fn the_message_is_the_one_clients_know() {
        let user = User { name: "u".to_owned(), groups: vec!["g".to_owned(), "h".to_owned()], ..User::default() };
        let missing = covers(&[], &[rule("get,list core pods"), rule("get core pods named a"), rule("get url /x")]);
        assert_eq!(
            escalation_message(&user, &missing),
            "user \"u\" (groups=[\"g\" \"h\"]) is attempting to grant RBAC permissions not currently held:\n\
             {APIGroups:[\"\"], Resources:[\"pods\"], ResourceNames:[\"a\"], Verbs:[\"get\"]}\n\
             {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n\
             {NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}"
        );
    }
}
