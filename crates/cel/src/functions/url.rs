//! URLs, as Go takes them apart.

use crate::cost::Cost;
use crate::environment::{Row, row};
use crate::functions::unsuitable;
use crate::value::{Error, Key, Opaque, Text, Value};
use std::any::Any;
use std::collections::BTreeMap;

pub(crate) const URL: &str = "kubernetes.URL";

const ONE: Cost = Cost::Fixed(1);

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
    /// Everything, in order to tell two apart.
    text: String,
}

impl Opaque for Url {
    fn type_name(&self) -> &str {
        URL
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn text(&self) -> Option<String> {
        Some(self.text.clone())
    }
}

/// An absolute URL, or an absolute path.
pub(crate) fn parse(text: &str) -> Result<Url, String> {
    let fail = |why: &str| Err(format!("parse {text:?}: {why}"));
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return fail("net/url: invalid control character in URL");
    }
    if text.is_empty() {
        return fail("empty url");
    }
    let (scheme, rest) = match split_scheme(text) {
        Ok(split) => split,
        Err(why) => return fail(why),
    };
    let without_fragment = rest.split_once('#').map_or(rest, |(rest, _)| rest);
    let (rest, query) = without_fragment.split_once('?').unwrap_or((without_fragment, ""));
    let mut url = Url {
        scheme: scheme.to_ascii_lowercase(),
        host: String::new(),
        path: String::new(),
        query: query.to_owned(),
        text: text.to_owned(),
    };
    if !rest.starts_with('/') {
        return if scheme.is_empty() { fail("invalid URI for request") } else { Ok(url) };
    }
    let mut path = rest;
    if let Some(authority) = rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        let (host, tail) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
        path = tail;
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        if let Err(why) = check_host(host) {
            return fail(&why);
        }
        host.clone_into(&mut url.host);
    }
    if let Some(escape) = bad_escape(path) {
        return fail(&format!("invalid URL escape {escape:?}"));
    }
    url.path = escape_path(path);
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), &'static str> {
    for (index, character) in text.char_indices() {
        match character {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if index > 0 => {}
            ':' if index == 0 => return Err("missing protocol scheme"),
            ':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn check_host(host: &str) -> Result<(), String> {
    let port = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((_, port)) => port,
            None => return Err("missing ']' in host".to_owned()),
        },
        None => host.find(':').map_or("", |colon| &host[colon..]),
    };
    let digits = port.strip_prefix(':').unwrap_or("");
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || (!port.is_empty() && !port.starts_with(':')) {
        return Err(format!("invalid port {port:?} after host"));
    }
    match host.chars().find(|c| " \"<>\\^`{|}".contains(*c)) {
        Some(character) => Err(format!("invalid character {:?} in host name", character.to_string())),
        None => Ok(()),
    }
}

/// A percent sign that is not followed by two digits, with what follows it.
fn bad_escape(text: &str) -> Option<&str> {
    text.match_indices('%').find_map(|(index, _)| {
        let escape = text.get(index..index + 3).unwrap_or(&text[index..]);
        let good = escape.len() == 3 && escape[1..].bytes().all(|byte| byte.is_ascii_hexdigit());
        (!good).then_some(escape)
    })
}

/// With what may not stand in a path written as percent signs and digits.
fn escape_path(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => escaped.push(char::from(byte)),
            _ if b"-_.~$&+,/:;=@!'()*[]%".contains(&byte) => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

impl Url {
    /// The name, and the port if there is one.
    fn host_and_port(&self) -> (&str, &str) {
        match self.host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, port)) => (name, port.strip_prefix(':').unwrap_or("")),
            None => self.host.split_once(':').unwrap_or((&self.host, "")),
        }
    }
}

/// Of a query; none if its escapes are wrong.
fn unescape(text: &str) -> Option<String> {
    if bad_escape(text).is_some() {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits =
                    [rest.next()?, rest.next()?].map(|digit| char::from(digit).to_digit(16).unwrap_or(0) as u8);
                digits[0] << 4 | digits[1]
            }
            byte => byte,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn query<'a>(url: &Url) -> Value<'a> {
    let mut parameters: BTreeMap<String, Vec<Value<'a>>> = BTreeMap::new();
    for parameter in url.query.split('&').filter(|parameter| !parameter.is_empty() && !parameter.contains(';')) {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if let (Some(key), Some(value)) = (unescape(key), unescape(value)) {
            parameters.entry(key).or_default().push(Value::string(value));
        }
    }
    let entries =
        parameters.into_iter().map(|(key, values)| (Key::String(Text::Shared(key.into())), Value::list(values)));
    Value::map(entries.collect())
}

fn text<'v>(args: &'v [Value<'_>]) -> Result<&'v str, Error> {
    args[0].as_str().ok_or_else(unsuitable)
}

fn part<'a>(args: &[Value<'_>], part: fn(&Url) -> &str) -> Result<Value<'a>, Error> {
    args[0].as_opaque().map(|url| Value::string(part(url))).ok_or_else(unsuitable)
}

pub(crate) const TABLE: &[Row] = &[
    row("url", "(string) -> kubernetes.URL", Cost::Transform, |args| {
        let failed = |why: String| Error::new(format!("URL parse error during conversion from string: {why}"));
        parse(text(args)?).map(Value::opaque).map_err(failed)
    }),
    row("isURL", "(string) -> bool", ONE, |args| Ok(Value::Bool(parse(text(args)?).is_ok()))),
    row("getScheme", "kubernetes.URL.() -> string", ONE, |args| part(args, |url| &url.scheme)),
    row("getHost", "kubernetes.URL.() -> string", ONE, |args| part(args, |url| &url.host)),
    row("getHostname", "kubernetes.URL.() -> string", ONE, |args| part(args, |url| url.host_and_port().0)),
    row("getPort", "kubernetes.URL.() -> string", ONE, |args| part(args, |url| url.host_and_port().1)),
    row("getEscapedPath", "kubernetes.URL.() -> string", ONE, |args| part(args, |url| &url.path)),
    row("getQuery", "kubernetes.URL.() -> map(string, list(string))", ONE, |args| {
        args[0].as_opaque().map(query).ok_or_else(unsuitable)
    }),
];
