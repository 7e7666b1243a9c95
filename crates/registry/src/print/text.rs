//! Texts of cells that several kinds share: ages, lists, labels, selectors, containers, conditions.

use object::selector::LabelSelector;
use object::{Quantity, Value, View, time};

pub(super) const NONE: &str = "<none>";
pub(super) const UNKNOWN: &str = "<unknown>";
pub(super) const UNSET: &str = "<unset>";

pub(super) fn name(object: &Value) -> &str {
    object.at("metadata").text("name")
}

pub(super) fn is_being_deleted(object: &Value) -> bool {
    object.at("metadata").has("deletionTimestamp")
}

/// How long ago the object was created.
pub(super) fn age(object: &Value, now: i64) -> String {
    since(object.at("metadata").at("creationTimestamp"), now)
}

/// How long ago that was.
pub(super) fn since(timestamp: &Value, now: i64) -> String {
    seconds(timestamp).map_or_else(|| UNKNOWN.to_owned(), |then| duration(now.saturating_sub(then)))
}

/// A timestamp in seconds since 1970.
pub(super) fn seconds(timestamp: &Value) -> Option<i64> {
    time::parse(timestamp.as_str()?).map(|(seconds, _)| seconds)
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// From so many seconds on, a duration is shown in this unit, and in the smaller one beside it if there is one.
const STEPS: [(i64, Unit, Option<Unit>); 9] = [
    (8 * YEAR, ('y', YEAR), None),
    (2 * YEAR, ('y', YEAR), Some(('d', DAY))),
    (8 * DAY, ('d', DAY), None),
    (2 * DAY, ('d', DAY), Some(('h', HOUR))),
    (8 * HOUR, ('h', HOUR), None),
    (3 * HOUR, ('h', HOUR), Some(('m', MINUTE))),
    (10 * MINUTE, ('m', MINUTE), None),
    (2 * MINUTE, ('m', MINUTE), Some(('s', 1))),
    (0, ('s', 1), None),
];
type Unit = (char, i64);

/// A duration in two or three digits: `90s`, `5m30s`, `3d4h`, `2y`.
pub(super) fn duration(seconds: i64) -> String {
    // Clocks may differ by a second without anything being wrong.
    let seconds = if seconds == -1 { 0 } else { seconds };
    let Some((_, (letter, unit), smaller)) = STEPS.iter().find(|(from, ..)| seconds >= *from) else {
        return "<invalid>".to_owned();
    };
    let (count, rest) = (seconds / unit, seconds % unit);
    match smaller {
        Some((small_letter, small)) if rest >= *small => format!("{count}{letter}{}{small_letter}", rest / small),
        _ => format!("{count}{letter}"),
    }
}

/// The text, or what stands for an empty one.
pub(super) fn or<'a>(text: &'a str, empty: &'a str) -> &'a str {
    if text.is_empty() { empty } else { text }
}

/// The text of a field, or what stands for an absent one.
pub(super) fn text_or<'a>(object: &'a Value, field: &str, absent: &'a str) -> &'a str {
    if object.has(field) { object.text(field) } else { absent }
}

pub(super) fn count(object: &Value, field: &str) -> i64 {
    object.int(field).unwrap_or_default()
}

/// How many items or entries there are.
pub(super) fn size(object: &Value, field: &str) -> usize {
    match object.at(field) {
        Value::Array(items) => items.len(),
        Value::Object(entries) => entries.len(),
        _ => 0,
    }
}

/// A number or a text as it is.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn strings<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    object.items(field).iter().filter_map(Value::as_str)
}

pub(super) fn join<T: AsRef<str>>(texts: impl IntoIterator<Item = T>, separator: &str) -> String {
    let mut joined = String::new();
    for (at, text) in texts.into_iter().enumerate() {
        if at > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text.as_ref());
    }
    joined
}

/// The first few of a list, and how many more there are.
pub(super) fn first<T: AsRef<str>>(max: usize, texts: &[T], separator: &str) -> String {
    let shown = join(&texts[..texts.len().min(max)], separator);
    more(shown, texts.len().saturating_sub(max))
}

pub(super) fn more(shown: String, others: usize) -> String {
    if others == 0 { shown } else { format!("{shown} + {others} more...") }
}

/// A map of labels: `a=b,c=d`.
pub(super) fn labels(object: &Value, field: &str) -> String {
    let pairs = object.entries(field).map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    or(&join(pairs, ","), NONE).to_owned()
}

/// A label selector in its text form, by key; none if it cannot be understood. An absent one is empty.
pub(super) fn selector(selector: &Value) -> Option<String> {
    let selector = LabelSelector::from_object(selector).ok()?;
    let mut requirements: Vec<_> = selector.requirements().iter().collect();
    requirements.sort_by(|a, b| a.key.cmp(&b.key));
    Some(join(requirements.iter().map(|requirement| requirement.to_string()), ","))
}

/// The same in a cell.
pub(super) fn selector_cell(object: &Value) -> String {
    selector(object).map_or_else(|| "<error>".to_owned(), |text| or(&text, NONE).to_owned())
}

/// One field of all containers of a pod template: their names, or their images.
pub(super) fn containers(template: &Value, field: &str) -> String {
    join(template.at("spec").items("containers").iter().map(|container| container.text(field)), ",")
}

/// The condition of that type.
pub(super) fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status.items("conditions").iter().find(|condition| condition.text("type") == kind)
}

pub(super) fn has_condition(status: &Value, kind: &str) -> bool {
    condition(status, kind).is_some_and(|condition| condition.text("status") == "True")
}

/// A quantity in its canonical form; an absent one is zero.
pub(super) fn quantity(value: &Value) -> String {
    if value.is_null() {
        return "0".to_owned();
    }
    let text = plain(value);
    text.parse::<Quantity>().map_or(text, |quantity| quantity.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn durations_are_shown_in_a_few_digits() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 59, "3h"),
            (3 * HOUR + 60, "3h1m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (3 * DAY + 4 * HOUR, "3d4h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (8 * YEAR - 1, "7y364d"),
            (8 * YEAR + DAY, "8y"),
        ] {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn a_time_that_is_absent_is_unknown() {
        assert_eq!(since(&Value::Null, 0), UNKNOWN);
        assert_eq!(since(&json!("1970-01-01T00:00:00.999999Z"), 90), "90s");
    }

    #[test]
    fn lists_show_the_first_few() {
        assert_eq!(first(3, &["a", "b", "c"], ","), "a,b,c");
        assert_eq!(first(3, &["a", "b", "c", "d", "e"], ","), "a,b,c + 2 more...");
        assert_eq!(first::<&str>(3, &[], ","), "");
    }

    #[test]
    fn selectors_are_sorted_by_key() {
        let object = json!({
            "matchLabels": { "b": "1" },
            "matchExpressions": [{ "key": "a", "operator": "In", "values": ["y", "x"] }],
        });
        assert_eq!(selector(&object).unwrap(), "a in (x,y),b=1");
        assert_eq!(selector_cell(&Value::Null), NONE);
        assert_eq!(selector_cell(&json!({ "matchExpressions": [{ "key": "a", "operator": "?" }] })), "<error>");
        assert_eq!(labels(&json!({ "l": { "a": "b", "c": "" } }), "l"), "a=b,c=");
    }

    #[test]
    fn quantities_are_canonical() {
        for (value, text) in [(json!(null), "0"), (json!("1024Mi"), "1Gi"), (json!(2), "2"), (json!("?"), "?")] {
            assert_eq!(quantity(&value), text);
        }
    }
}
