//! Conditions as kinds of later days have them: each says since when it holds, and why.

use crate::strategy::place::Place;
use object::field::Errors;
use object::name;

const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const REASON_MAX_BYTES: usize = 1024;
const MESSAGE_MAX_BYTES: usize = 32 * 1024;

/// Everything that is wrong with a list of conditions.
pub fn validate_all(conditions: &Place, errors: &mut Errors) {
    conditions.unique_by(errors, "type");
    for condition in conditions.items() {
        condition.field("type").follows(errors, name::qualified_name);
        condition.field("status").one_of(errors, &STATUSES);
        if condition.field("observedGeneration").int() < 0 {
            condition.field("observedGeneration").invalid(errors, "must be greater than or equal to zero");
        }
        condition.field("lastTransitionTime").require(errors);
        let reason = condition.field("reason");
        if reason.require(errors) {
            reason.follows(errors, reason_mistakes);
            reason.shorter_than(errors, REASON_MAX_BYTES);
        }
        condition.field("message").shorter_than(errors, MESSAGE_MAX_BYTES);
    }
}

fn reason_mistakes(reason: &str) -> Vec<String> {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_,:".contains(&byte);
    let bytes = reason.as_bytes();
    let starts = bytes.first().is_some_and(u8::is_ascii_alphabetic);
    let ends = bytes.last().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if starts && ends && bytes.iter().all(|byte| is_inner(*byte)) {
        return Vec::new();
    }
    let rule = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric \
                characters or '_,:', and must end with an alphanumeric character or '_'";
    let examples = "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB'";
    vec![format!("{rule} (e.g. {examples}, regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')")]
}
