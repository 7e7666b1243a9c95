//! How an object differs from another, for people: the lines that changed, and a few around them.

use object::Value;
use serde_json::ser::{PrettyFormatter, Serializer};
use std::fmt::Write;

const CONTEXT: usize = 3;

/// One hunk of a unified diff, from the first line that differs to the last.
pub(super) fn diff(old: &Value, new: &Value) -> String {
    let (old, new) = (lines(old), lines(new));
    let same =
        |pairs: &mut dyn Iterator<Item = (&String, &String)>| pairs.take_while(|(one, other)| one == other).count();
    let head = same(&mut old.iter().zip(&new));
    let rest = old.len().min(new.len()) - head;
    let tail = same(&mut old.iter().rev().zip(new.iter().rev())).min(rest);
    let start = head.saturating_sub(CONTEXT);
    let end = |lines: &[String]| (lines.len() - tail + CONTEXT).min(lines.len());
    let (old_end, new_end) = (end(&old), end(&new));
    let mut text = format!("@@ -{},{} +{},{} @@\n", start + 1, old_end - start, start + 1, new_end - start);
    let changed = |lines: &[String]| lines[head..lines.len() - tail].to_vec();
    let marked = [
        (' ', old[start..head].to_vec()),
        ('-', changed(&old)),
        ('+', changed(&new)),
        (' ', old[old.len() - tail..old_end].to_vec()),
    ];
    for (mark, lines) in marked {
        lines.iter().for_each(|line| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{mark}{line}");
        });
    }
    text
}

fn lines(value: &Value) -> Vec<String> {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b" "));
    // A tree that is in memory can be written to memory.
    let written = serde::Serialize::serialize(value, &mut serializer);
    debug_assert!(written.is_ok());
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_changed_line_stands_among_its_neighbours() {
        let old = json!({ "a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7 });
        let mut new = old.clone();
        new["d"] = json!(0);
        assert_eq!(
            diff(&old, &new),
            "@@ -2,7 +2,7 @@\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3,\n- \"d\": 4,\n+ \"d\": 0,\n  \"e\": 5,\n  \"f\": 6,\n  \"g\": 7\n"
        );
    }
}
