//! Since when devices are tainted: since now, if nobody says otherwise. Upstream has this among its defaults.

use super::{Operation, Review};
use object::{ApiError, Edit, Value, View};

pub(super) fn mutate(review: &mut Review<'_>) -> Result<(), ApiError> {
    if review.operation == Operation::Delete || !review.subresource().is_empty() {
        return Ok(());
    }
    let now = review.ctx.now();
    match review.table() {
        "resourceslices.resource.k8s.io" => {
            let Some(spec) = review.object.object("spec") else { return Ok(()) };
            spec.each("devices").for_each(|device| device.each("taints").for_each(|taint| stamp(taint, None, &now)));
        }
        "devicetaintrules.resource.k8s.io" => {
            let old = review.old.map(|old| old.path(&["spec", "taint"]));
            if let Some(taint) = review.object.object("spec").and_then(|spec| spec.object("taint")) {
                stamp(taint, old, &now);
            }
        }
        _ => {}
    }
    Ok(())
}

/// The time is that of the effect: another effect begins now, unless the time was changed along with it.
fn stamp(taint: &mut Value, old: Option<&Value>, now: &str) {
    let begins = old.is_some_and(|old| {
        old.text("effect") != taint.text("effect") && old.text("timeAdded") == taint.text("timeAdded")
    });
    if begins || taint.text("timeAdded").is_empty() {
        taint.set("timeAdded", now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_taint_is_as_old_as_its_effect_unless_somebody_says_otherwise() {
        let (then, now, other) = ("2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2024-01-01T00:00:00Z");
        let taint = |effect: &str, time: Option<&str>| json!({ "key": "k", "effect": effect, "timeAdded": time });
        for (new, old, expected) in [
            (taint("None", None), None, now),
            (taint("None", Some(then)), None, then),
            (taint("None", Some(then)), Some(taint("None", Some(then))), then),
            (taint("NoExecute", Some(then)), Some(taint("None", Some(then))), now),
            (taint("NoExecute", Some(other)), Some(taint("None", Some(then))), other),
            (taint("NoExecute", None), Some(taint("NoExecute", Some(then))), now),
        ] {
            let mut stamped = new.clone();
            stamp(&mut stamped, old.as_ref(), now);
            assert_eq!(stamped.text("timeAdded"), expected, "{new} {old:?}");
        }
    }
}
