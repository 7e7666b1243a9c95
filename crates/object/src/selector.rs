//! Selectors: which objects a list, a watch or a controller is about.
//!
//! A label selector has a text form (`app=web,tier in (a, b),!old`) for requests and an object form (`matchLabels`,
//! `matchExpressions`) inside objects; both become the same requirements. A field selector compares a few fields of
//! an object that its resource declares selectable.

use crate::Value;
use crate::name;
use std::collections::BTreeSet;
use std::fmt;

/// All requirements must hold; none at all selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    pub key: String,
    pub test: Test,
}

/// What must hold for the value of a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    In(BTreeSet<String>),
    /// Holds for an absent label too.
    NotIn(BTreeSet<String>),
    Exists,
    DoesNotExist,
    GreaterThan(i64),
    LessThan(i64),
}

impl Requirement {
    pub fn matches(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Test::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// A selector that cannot be understood; the message says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSelector(pub String);

impl LabelSelector {
    pub fn everything() -> Self {
        LabelSelector::default()
    }

    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object with these labels is selected; `label` looks one up.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(label(&requirement.key)))
    }

    /// With another requirement to hold besides.
    pub fn and(mut self, requirement: Requirement) -> Self {
        self.requirements.push(requirement);
        self
    }

    /// The text form, as in `?labelSelector=`.
    pub fn parse(text: &str) -> Result<Self, InvalidSelector> {
        let mut tokens = Tokens::new(text);
        let mut requirements = Vec::new();
        while tokens.peek().is_some() {
            requirements.push(tokens.requirement()?);
            match tokens.next() {
                None => break,
                Some(Token::Symbol(",")) if tokens.peek().is_some() => {}
                Some(Token::Symbol(",")) => return Err(tokens.expected("identifier after ','", None)),
                other => return Err(tokens.expected("',' or 'end of string'", other)),
            }
        }
        Ok(LabelSelector { requirements })
    }

    /// The object form. A null selector selects nothing in Kubernetes; that is for the caller to decide.
    pub fn from_object(selector: &Value) -> Result<Self, InvalidSelector> {
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().ok_or_else(|| InvalidSelector(format!("the value of {key:?} is no string")))?;
            requirements.push(requirement(key, Test::In([value.to_owned()].into()))?);
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or("");
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values: BTreeSet<String> = values.filter_map(Value::as_str).map(str::to_owned).collect();
            let test = match text("operator") {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::DoesNotExist,
                other => return Err(InvalidSelector(format!("{other:?} is not a valid label selector operator"))),
            };
            requirements.push(requirement(text("key"), test)?);
        }
        Ok(LabelSelector { requirements })
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.requirements.iter().map(Requirement::to_string).collect();
        f.write_str(&texts.join(","))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(",");
        let key = &self.key;
        match &self.test {
            Test::In(values) if values.len() == 1 => write!(f, "{key}={}", list(values)),
            Test::In(values) => write!(f, "{key} in ({})", list(values)),
            Test::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", list(values)),
            Test::NotIn(values) => write!(f, "{key} notin ({})", list(values)),
            Test::Exists => f.write_str(key),
            Test::DoesNotExist => write!(f, "!{key}"),
            Test::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Test::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

/// A requirement whose key and values follow the rules of labels.
fn requirement(key: &str, test: Test) -> Result<Requirement, InvalidSelector> {
    let invalid = |what: &str, text: &str, errors: &[String]| {
        InvalidSelector(format!("{what}: Invalid value: {text:?}: {}", errors.join("; ")))
    };
    match name::qualified_name(key) {
        errors if errors.is_empty() => {}
        errors => return Err(invalid("key", key, &errors)),
    }
    if let Test::In(values) | Test::NotIn(values) = &test {
        if values.is_empty() {
            return Err(InvalidSelector(
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty".to_owned(),
            ));
        }
        for value in values {
            match name::label_value(value) {
                errors if errors.is_empty() => {}
                errors => return Err(invalid(&format!("values[0][{key}]"), value, &errors)),
            }
        }
    }
    Ok(Requirement { key: key.to_owned(), test })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
}

/// The tokens of the text form, read from the left.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str) -> Self {
        Tokens { rest: text }
    }

    fn peek(&self) -> Option<Token<'a>> {
        Tokens { rest: self.rest }.next()
    }

    fn expected(&self, what: &str, found: Option<Token<'_>>) -> InvalidSelector {
        let found = match found {
            Some(Token::Word(text) | Token::Symbol(text)) => text,
            None => "",
        };
        InvalidSelector(format!("unable to parse requirement: found '{found}', expected: {what}"))
    }

    fn requirement(&mut self) -> Result<Requirement, InvalidSelector> {
        match self.next() {
            Some(Token::Symbol("!")) => requirement(self.word()?, Test::DoesNotExist),
            Some(Token::Word(key)) => self.requirement_of(key),
            other => Err(self.expected("!, identifier, or 'end of string'", other)),
        }
    }

    fn requirement_of(&mut self, key: &str) -> Result<Requirement, InvalidSelector> {
        let test = match self.peek() {
            None | Some(Token::Symbol(",")) => Test::Exists,
            Some(operator) => {
                self.next();
                match operator {
                    Token::Symbol("=" | "==") => Test::In([self.value()].into()),
                    Token::Symbol("!=") => Test::NotIn([self.value()].into()),
                    Token::Symbol(">") => Test::GreaterThan(self.number()?),
                    Token::Symbol("<") => Test::LessThan(self.number()?),
                    Token::Word("in") => Test::In(self.list()?),
                    Token::Word("notin") => Test::NotIn(self.list()?),
                    other => return Err(self.expected("in, notin, =, ==, !=, gt, lt", Some(other))),
                }
            }
        };
        requirement(key, test)
    }

    fn word(&mut self) -> Result<&'a str, InvalidSelector> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            other => Err(self.expected("identifier", other)),
        }
    }

    /// A value may be empty: `key=` and `key=,other`.
    fn value(&mut self) -> String {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.next();
                word.to_owned()
            }
            _ => String::new(),
        }
    }

    fn number(&mut self) -> Result<i64, InvalidSelector> {
        let word = self.word()?;
        word.parse().map_err(|_| {
            InvalidSelector(format!(
                "values[0]: Invalid value: {word:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            ))
        })
    }

    fn list(&mut self) -> Result<BTreeSet<String>, InvalidSelector> {
        match self.next() {
            Some(Token::Symbol("(")) => {}
            other => return Err(self.expected("'('", other)),
        }
        let mut values = BTreeSet::new();
        loop {
            values.insert(self.value());
            match self.next() {
                Some(Token::Symbol(",")) => {}
                Some(Token::Symbol(")")) => return Ok(values),
                other => return Err(self.expected("',' or ')'", other)),
            }
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        const SYMBOLS: [&str; 8] = ["==", "!=", "=", "!", ">", "<", ",", "("];
        self.rest = self.rest.trim_start();
        let symbol = SYMBOLS.into_iter().chain([")"]).find(|symbol| self.rest.starts_with(symbol));
        let length = match symbol {
            Some(symbol) => symbol.len(),
            None => self.rest.find(|c: char| c.is_whitespace() || "=!><,()".contains(c)).unwrap_or(self.rest.len()),
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        match (symbol, token) {
            (Some(_), token) => Some(Token::Symbol(token)),
            (None, "") => None,
            (None, word) => Some(Token::Word(word)),
        }
    }
}

/// Comparisons of fields, such as `metadata.name=web,status.phase!=Running`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    pub field: String,
    pub equal: bool,
    pub value: String,
}

impl FieldSelector {
    pub fn everything() -> Self {
        FieldSelector::default()
    }

    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The same comparisons of fields that go by other names.
    pub fn renamed(mut self, name: impl Fn(&str) -> String) -> Self {
        self.terms.iter_mut().for_each(|term| term.field = name(&term.field));
        self
    }

    /// The value a field must have, if the selector demands one: how a list of one name becomes a get.
    pub fn requires(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }

    /// Whether an object is selected; `field` looks one of its fields up, absent ones being empty.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> &'a str) -> bool {
        self.terms.iter().all(|term| (field(&term.field) == term.value) == term.equal)
    }

    pub fn parse(text: &str) -> Result<Self, InvalidSelector> {
        let parts = split_escaped(text).into_iter().filter(|part| !part.is_empty());
        let terms = parts.map(|part| {
            let at = part.find("!=").map(|at| (at, 2, false)).into_iter();
            let equals = part.find('=').map(|at| (at, if part[at..].starts_with("==") { 2 } else { 1 }, true));
            let first = at.chain(equals).min_by_key(|(at, ..)| *at);
            let Some((at, length, equal)) = first else {
                return Err(InvalidSelector(format!("invalid selector: '{text}'; can't understand '{part}'")));
            };
            Ok(Term { field: part[..at].to_owned(), equal, value: unescape(&part[at + length..]) })
        });
        Ok(FieldSelector { terms: terms.collect::<Result<_, _>>()? })
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escape = |text: &str| text.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
        let text =
            |term: &Term| format!("{}{}{}", term.field, if term.equal { "=" } else { "!=" }, escape(&term.value));
        f.write_str(&self.terms.iter().map(text).collect::<Vec<_>>().join(","))
    }
}

/// Splits at commas that are not escaped.
fn split_escaped(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn unescape(text: &str) -> String {
    let (mut plain, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        plain.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn selects(selector: &LabelSelector, labels: &[(&str, &str)]) -> bool {
        selector.matches(|key| labels.iter().find(|(k, _)| *k == key).map(|(_, value)| *value))
    }

    #[test]
    fn the_text_form_selects_what_it_says() {
        let web = [("app", "web"), ("n", "5")];
        for (text, selected) in [
            ("", true),
            ("app=web", true),
            ("app==web", true),
            ("app = web , n", true),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (web, db)", true),
            ("app in (db)", false),
            ("app notin (db,)", true),
            ("absent notin (x)", true),
            ("app", true),
            ("!app", false),
            ("!absent", true),
            ("n>4", true),
            ("n>5", false),
            ("n<6,app", true),
            ("app=", false),
        ] {
            assert_eq!(selects(&LabelSelector::parse(text).unwrap(), &web), selected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        for text in
            ["app=web,", ",", "app web", "app in web", "app in (", "=x", "!", "a b/c=d", "app=-", "n>x", "app in ()x"]
        {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_selector_survives_being_written_and_read() {
        for text in ["a=b", "a!=b", "a in (b,c)", "a notin (b,c)", "a", "!a", "a>1", "a<1", "a=b,!c"] {
            assert_eq!(LabelSelector::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_object_form_means_the_same_as_the_text_form() {
        let object = json!({
            "matchLabels": { "a": "b" },
            "matchExpressions": [
                { "key": "c", "operator": "In", "values": ["d", "e"] },
                { "key": "f", "operator": "DoesNotExist" },
            ],
        });
        assert_eq!(LabelSelector::from_object(&object).unwrap(), LabelSelector::parse("a=b,c in (d,e),!f").unwrap());
        let unknown = json!({ "matchExpressions": [{ "key": "c", "operator": "Near" }] });
        assert!(LabelSelector::from_object(&unknown).is_err());
    }

    #[test]
    fn field_selectors_compare_and_escape() {
        let selector = FieldSelector::parse(r"metadata.name=web,status.phase!=Running,x=a\,b").unwrap();
        let fields = |phase: &'static str| {
            move |field: &str| match field {
                "metadata.name" => "web",
                "status.phase" => phase,
                "x" => "a,b",
                _ => "",
            }
        };
        assert!(selector.matches(fields("Pending")));
        assert!(!selector.matches(fields("Running")));
        assert_eq!(selector.requires("metadata.name"), Some("web"));
        assert_eq!(selector.requires("status.phase"), None);
        assert_eq!(selector.to_string(), r"metadata.name=web,status.phase!=Running,x=a\,b");
        assert!(FieldSelector::parse("nonsense").is_err());
    }
}
