//! The rules of when a job has failed, when it has succeeded, and when its pods are replaced.

use crate::strategy::place::Place;
use object::field::Errors;
use object::{View, name};
use std::collections::BTreeSet;

const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const CONDITIONS_MAX: usize = 20;
const INDEXES_MAX_BYTES: usize = 64 * 1024;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

pub(super) fn validate(spec: &Place, errors: &mut Errors) {
    let (failure, success) = (spec.field("podFailurePolicy"), spec.field("successPolicy"));
    if failure.is_set() {
        validate_failure(&failure, spec, errors);
    }
    if success.is_set() && spec.field("completionMode").text() == "Indexed" {
        validate_success(&success, spec, errors);
    }
    let replacement = spec.field("podReplacementPolicy");
    if failure.is_set() {
        replacement.one_of_if_set(errors, &["Failed"]);
    } else {
        replacement.one_of_if_set(errors, &["Failed", "TerminatingOrFailed"]);
    }
}

fn too_many(list: &Place, max: usize, errors: &mut Errors) {
    let count = list.items().count();
    if count > max {
        list.too_many(errors, count, max);
    }
}

/// One of a few words, with a message of its own if there is none.
fn word(at: &Place, words: &[&str], errors: &mut Errors) {
    if at.is_empty() {
        let words: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
        at.required(errors, format!("valid values: [{}]", words.join(" ")));
    } else {
        at.one_of_if_set(errors, words);
    }
}

fn validate_failure(policy: &Place, spec: &Place, errors: &mut Errors) {
    let rules = policy.field("rules");
    too_many(&rules, RULES_MAX, errors);
    for rule in rules.items() {
        let action = rule.field("action");
        word(&action, &ACTIONS, errors);
        if action.text() == "FailIndex" && !spec.field("backoffLimitPerIndex").is_set() {
            action.invalid(errors, "requires the backoffLimitPerIndex to be set");
        }
        let (codes, conditions) = (rule.field("onExitCodes"), rule.field("onPodConditions"));
        if codes.is_set() {
            exit_codes(&codes, spec, errors);
        }
        pod_conditions(&conditions, errors);
        let detail = match (codes.is_set(), conditions.is_empty()) {
            (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        rule.invalid_whole(errors, detail);
    }
}

fn exit_codes(codes: &Place, spec: &Place, errors: &mut Errors) {
    word(&codes.field("operator"), &["In", "NotIn"], errors);
    let container = codes.field("containerName");
    let pod = spec.value().path(&["template", "spec"]);
    let mut containers = pod.items("containers").iter().chain(pod.items("initContainers"));
    if container.is_set() && !containers.any(|known| known.text("name") == container.text()) {
        container.invalid(errors, "must be one of the container or initContainer names in the pod template");
    }
    let values = codes.field("values");
    if values.is_empty() {
        values.invalid(errors, "at least one value is required");
    }
    too_many(&values, EXIT_CODES_MAX, errors);
    let mut seen = BTreeSet::new();
    for value in values.items() {
        if codes.field("operator").text() == "In" && value.int() == 0 {
            value.invalid(errors, "must not be 0 for the In operator");
        }
        if !seen.insert(value.int()) {
            value.duplicate(errors, value.int());
        }
    }
    if !values.items().map(|value| value.int()).is_sorted() {
        values.invalid(errors, "must be ordered");
    }
}

fn pod_conditions(conditions: &Place, errors: &mut Errors) {
    too_many(conditions, CONDITIONS_MAX, errors);
    for pattern in conditions.items() {
        pattern.field("type").follows(errors, name::qualified_name);
        word(&pattern.field("status"), &["False", "True", "Unknown"], errors);
    }
}

fn validate_success(policy: &Place, spec: &Place, errors: &mut Errors) {
    let rules = policy.field("rules");
    if rules.is_empty() {
        rules.required(errors, "at least one rules must be specified when the successPolicy is specified");
    }
    too_many(&rules, RULES_MAX, errors);
    let completions = spec.field("completions").int();
    for rule in rules.items() {
        let (count, indexes) = (rule.field("succeededCount"), rule.field("succeededIndexes"));
        if !count.is_set() && !indexes.is_set() {
            rule.required(errors, "at least one of succeededCount or succeededIndexes must be specified");
        }
        let mut total = 0;
        if indexes.is_set() {
            if indexes.text().len() > INDEXES_MAX_BYTES {
                indexes.too_long(errors, INDEXES_MAX_BYTES);
            }
            match count_indexes(indexes.text(), completions) {
                Ok(count) => total = count,
                Err(message) => indexes.invalid(errors, format!("error parsing succeededIndexes: {message}")),
            }
        }
        count.not_negative(errors);
        if count.int() > completions {
            let detail = format!("must be less than or equal to {completions} (the number of specified completions)");
            count.invalid(errors, detail);
        }
        if indexes.is_set() && count.int() > total {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            count.invalid(errors, detail);
        }
    }
}

/// How many indexes `1,3-5` are, all below `completions`.
pub(super) fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let (mut total, mut last) = (0, None);
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = parse_interval(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn parse_interval(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |text: &str| match text.parse::<i64>() {
        Ok(number) if number >= completions => Err(format!("too large index: {text:?}")),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("cannot convert string to integer for index: {text:?}")),
    };
    match interval.split('-').collect::<Vec<_>>().as_slice() {
        [one] => Ok((index(one)?, index(one)?)),
        [first, last] => match (index(first)?, index(last)?) {
            (first, last) if first >= last => Err(format!("non-increasing order, previous: {first}, current: {last}")),
            interval => Ok(interval),
        },
        _ => Err(format!(
            "the fragment {interval:?} violates the requirement that an index interval can have at most two parts \
             separated by '-'"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted_and_mistakes_in_them_named() {
        for (text, counted) in [
            ("", Ok(0)),
            ("0", Ok(1)),
            ("1,3-5,7", Ok(5)),
            ("9", Err("too large index: \"9\"")),
            ("3-1", Err("non-increasing order, previous: 3, current: 1")),
            ("3,2", Err("non-increasing order, previous: 3, current: 2")),
            ("x", Err("cannot convert string to integer for index: \"x\"")),
        ] {
            assert_eq!(count_indexes(text, 9), counted.map_err(str::to_owned), "{text}");
        }
    }
}
