//! The checks that rules are made of, with the messages clients know.
//!
//! A check looks at the place it is called on and adds what is wrong there. It says what must be here: `one_of` also
//! of what is not there, `one_of_if_set` only of what is; `require_one_of` has a message of its own for nothing.

use crate::strategy::place::Place;
use crate::strategy::value::same;
use object::field::Errors;
use object::{Value, View, name};

pub const IMMUTABLE: &str = "field is immutable";
pub const NEGATIVE: &str = "must be greater than or equal to 0";

/// What is wrong with a text.
pub type Rule = fn(&str) -> Vec<String>;

/// Something or nothing.
impl Place<'_, '_> {
    /// Something must be here. Says whether it is, for rules that then stop.
    pub fn require(&self, errors: &mut Errors) -> bool {
        self.require_because(errors, "")
    }

    pub fn require_because(&self, errors: &mut Errors, detail: &str) -> bool {
        let missing = self.is_empty();
        if missing {
            self.required(errors, detail);
        }
        !missing
    }

    /// The same, where an empty text, list or map is something.
    pub fn require_set(&self, errors: &mut Errors) -> bool {
        if !self.is_set() {
            self.required(errors, "");
        }
        self.is_set()
    }

    /// Nothing may be here.
    pub fn forbid(&self, errors: &mut Errors, detail: &str) {
        if !self.is_empty() {
            self.forbidden(errors, detail);
        }
    }

    /// Must be what it was.
    pub fn unchanged(&self, errors: &mut Errors, old: &Value) {
        if !same(self.value(), old) {
            self.invalid(errors, IMMUTABLE);
        }
    }
}

/// Texts.
impl Place<'_, '_> {
    /// A text must follow a rule.
    pub fn follows(&self, errors: &mut Errors, rule: Rule) {
        rule(self.text()).into_iter().for_each(|message| self.invalid(errors, message));
    }

    pub fn follows_if_set(&self, errors: &mut Errors, rule: Rule) {
        if !self.is_empty() {
            self.follows(errors, rule);
        }
    }

    pub fn require_follows(&self, errors: &mut Errors, rule: Rule) {
        if self.require(errors) {
            self.follows(errors, rule);
        }
    }

    /// A text that belongs to this place and is not all that is here must follow a rule. Says whether it does.
    pub fn text_follows(&self, errors: &mut Errors, text: &str, rule: Rule) -> bool {
        let wrong = rule(text);
        let good = wrong.is_empty();
        wrong.into_iter().for_each(|message| self.invalid_value(errors, text, message));
        good
    }

    /// One of a few words.
    pub fn one_of(&self, errors: &mut Errors, supported: &[&str]) {
        if !supported.contains(&self.text()) {
            self.not_supported_value(errors, self.text(), supported);
        }
    }

    pub fn one_of_if_set(&self, errors: &mut Errors, supported: &[&str]) {
        if self.is_set() {
            self.one_of(errors, supported);
        }
    }

    pub fn require_one_of(&self, errors: &mut Errors, supported: &[&str]) {
        if self.require(errors) {
            self.one_of(errors, supported);
        }
    }

    pub fn shorter_than(&self, errors: &mut Errors, max_bytes: usize) {
        if self.text().len() > max_bytes {
            self.too_long(errors, max_bytes);
        }
    }
}

/// Numbers. One that is not there counts as zero.
impl Place<'_, '_> {
    pub fn not_negative(&self, errors: &mut Errors) {
        if self.int() < 0 {
            self.invalid(errors, NEGATIVE);
        }
    }

    pub fn positive(&self, errors: &mut Errors) {
        if self.int() <= 0 {
            self.invalid_value(errors, self.int(), "must be greater than zero");
        }
    }

    /// The same, as the rules say it that let the number be left out.
    pub fn positive_if_set(&self, errors: &mut Errors) {
        if self.number().is_some_and(|number| number <= 0) {
            self.invalid(errors, "must be greater than 0");
        }
    }

    pub fn within(&self, errors: &mut Errors, least: i64, most: i64) {
        if !(least..=most).contains(&self.int()) {
            self.invalid_value(errors, self.int(), format!("must be between {least} and {most}, inclusive"));
        }
    }

    pub fn port(&self, errors: &mut Errors) {
        self.within(errors, 1, 65535);
    }

    /// The number or the name of a port.
    pub fn port_or_name(&self, errors: &mut Errors) {
        match self.value() {
            Value::String(_) => self.follows(errors, name::port_name),
            _ => self.port(errors),
        }
    }
}

/// Lists and maps.
impl Place<'_, '_> {
    /// The names and values of labels. The path of a mistake is that of the map, and does not name the key.
    pub fn labels(&self, errors: &mut Errors) {
        for (key, value) in self.entries() {
            self.text_follows(errors, key, name::qualified_name);
            self.text_follows(errors, value.text(), name::label_value);
        }
    }

    /// No item may be there twice.
    pub fn unique(&self, errors: &mut Errors) {
        for (index, item) in self.items().enumerate() {
            if self.values()[..index].contains(item.value()) {
                item.duplicate(errors, item.value().clone());
            }
        }
    }

    /// No two items may have the same text in a field.
    pub fn unique_by(&self, errors: &mut Errors, field: &str) {
        for (index, item) in self.items().enumerate() {
            let name = item.field(field);
            if !name.is_empty() && self.values()[..index].iter().any(|other| other.text(field) == name.text()) {
                name.duplicate(errors, name.text());
            }
        }
    }

    /// At most so many items.
    pub fn at_most(&self, errors: &mut Errors, max: usize) {
        if self.values().len() > max {
            self.too_many(errors, self.values().len(), max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn shared_checks_say_what_clients_know() {
        let object = json!({
            "word": "C", "negative": -1, "zero": 0, "name": "A", "empty": "", "list": ["a", "a"],
            "items": [{ "name": "a" }, { "name": "a" }, {}, {}], "map": { "a": "b" },
        });
        let at = Place::object(&object);
        let mut errors = Errors::new();
        at.field("word").one_of_if_set(&mut errors, &["A", "B"]);
        at.field("absent").one_of_if_set(&mut errors, &["A"]);
        at.field("absent").one_of(&mut errors, &["A"]);
        at.field("empty").require_one_of(&mut errors, &["A"]);
        at.field("map").entries().for_each(|(_, value)| value.one_of(&mut errors, &["c"]));
        at.field("negative").not_negative(&mut errors);
        at.field("zero").port(&mut errors);
        at.field("absent").positive(&mut errors);
        at.field("absent").positive_if_set(&mut errors);
        at.field("zero").positive_if_set(&mut errors);
        at.field("name").unchanged(&mut errors, &json!("B"));
        at.field("word").forbid(&mut errors, "no");
        at.field("list").unique(&mut errors);
        at.field("list").at_most(&mut errors, 1);
        at.field("items").unique_by(&mut errors, "name");
        let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "word: Unsupported value: \"C\": supported values: \"A\", \"B\"",
                "absent: Unsupported value: \"\": supported values: \"A\"",
                "empty: Required value",
                "map[a]: Unsupported value: \"b\": supported values: \"c\"",
                "negative: Invalid value: -1: must be greater than or equal to 0",
                "zero: Invalid value: 0: must be between 1 and 65535, inclusive",
                "absent: Invalid value: 0: must be greater than zero",
                "zero: Invalid value: 0: must be greater than 0",
                "name: Invalid value: \"A\": field is immutable",
                "word: Forbidden: no",
                "list[1]: Duplicate value: \"a\"",
                "list: Too many: 2: must have at most 1 item",
                "items[1].name: Duplicate value: \"a\"",
            ]
        );
    }
}
