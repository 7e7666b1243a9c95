//! Semantic versions.

use crate::cost::Cost;
use crate::environment::{Row, row};
use crate::functions::unsuitable;
use crate::value::{Error, Opaque, Value};
use std::any::Any;
use std::cmp::Ordering;

pub(crate) const SEMVER: &str = "kubernetes.Semver";

const ONE: Cost = Cost::Fixed(1);
const READ: Cost = Cost::Read(1);

/// A version. What follows a plus sign says nothing about which is newer, and is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    before: Vec<Identifier>,
}

/// A part of what makes a version one before the release. Numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |version: &Version| (version.major, version.minor, version.patch);
        // Without anything it is the release itself, which comes last.
        let released = |version: &Version| version.before.is_empty();
        numbers(self)
            .cmp(&numbers(other))
            .then(released(self).cmp(&released(other)))
            .then_with(|| self.before.cmp(&other.before))
    }
}

impl Opaque for Version {
    fn type_name(&self) -> &str {
        SEMVER
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn number(text: &str, name: &str) -> Result<u64, Error> {
    if !is_number(text) {
        return Err(Error::new(format!("Invalid character(s) found in {} number {text:?}", name.to_lowercase())));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(Error::new(format!("{name} number must not contain leading zeroes {text:?}")));
    }
    text.parse().map_err(|_| Error::new(format!("strconv.ParseUint: parsing {text:?}: value out of range")))
}

fn identifier(text: &str) -> Result<Identifier, Error> {
    match text {
        "" => Err(Error::new("Prerelease is empty")),
        text if is_number(text) && text.len() > 1 && text.starts_with('0') => {
            Err(Error::new(format!("Numeric PreRelease version must not contain leading zeroes {text:?}")))
        }
        text if is_number(text) => Ok(Identifier::Number(number(text, "Prerelease")?)),
        text if is_word(text) => Ok(Identifier::Word(text.to_owned())),
        text => Err(Error::new(format!("Invalid character(s) found in prerelease {text:?}"))),
    }
}

impl Version {
    pub fn parse(text: &str) -> Result<Version, Error> {
        if text.is_empty() {
            return Err(Error::new("Version string empty"));
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts[..] else {
            return Err(Error::new("No Major.Minor.Patch elements found"));
        };
        let (major, minor) = (number(major, "Major")?, number(minor, "Minor")?);
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, before) = rest.split_once('-').map_or((rest, None), |(patch, before)| (patch, Some(before)));
        let patch = number(patch, "Patch")?;
        let before = before.into_iter().flat_map(|before| before.split('.'));
        let before = before.map(identifier).collect::<Result<_, _>>()?;
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err(Error::new("Build meta data is empty"));
            }
            if !is_word(part) {
                return Err(Error::new(format!("Invalid character(s) found in build meta data {part:?}")));
            }
        }
        Ok(Version { major, minor, patch, before })
    }

    /// Also without all three numbers, with a `v`, or with leading zeroes.
    fn parse_tolerantly(text: &str) -> Result<Version, Error> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeroes).collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err(Error::new("short version cannot contain PreRelease/Build meta data"));
        }
        parts.resize(3, "0".to_owned());
        Version::parse(&parts.join("."))
    }
}

fn without_leading_zeroes(part: &str) -> String {
    let stripped = part.trim_start_matches('0');
    match part.len() > 1 && !stripped.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("0{stripped}"),
        false if part.len() > 1 => stripped.to_owned(),
        false => part.to_owned(),
    }
}

fn read(args: &[Value<'_>]) -> Result<Version, Error> {
    match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Version::parse(text),
        [Value::String(text), Value::Bool(true)] => Version::parse_tolerantly(text),
        _ => Err(unsuitable()),
    }
}

fn parse<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    read(args).map(Value::opaque)
}

fn is_semver<'a>(args: &mut [Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(read(args).is_ok()))
}

fn part<'a>(args: &[Value<'_>], part: fn(&Version) -> u64) -> Result<Value<'a>, Error> {
    let version: &Version = args[0].as_opaque().ok_or_else(unsuitable)?;
    Ok(Value::Int(i64::try_from(part(version)).unwrap_or(i64::MAX)))
}

fn order(args: &[Value<'_>]) -> Result<Ordering, Error> {
    match args {
        [one, other] => {
            let one: &Version = one.as_opaque().ok_or_else(unsuitable)?;
            Ok(one.cmp(other.as_opaque().ok_or_else(unsuitable)?))
        }
        _ => Err(unsuitable()),
    }
}

pub(crate) const TABLE: &[Row] = &[
    row("semver", "(string) -> kubernetes.Semver", READ, parse),
    row("semver", "(string, bool) -> kubernetes.Semver", READ, parse),
    row("isSemver", "(string) -> bool", READ, is_semver),
    row("isSemver", "(string, bool) -> bool", READ, is_semver),
    row("major", "kubernetes.Semver.() -> int", ONE, |args| part(args, |version| version.major)),
    row("minor", "kubernetes.Semver.() -> int", ONE, |args| part(args, |version| version.minor)),
    row("patch", "kubernetes.Semver.() -> int", ONE, |args| part(args, |version| version.patch)),
    row("isGreaterThan", "kubernetes.Semver.(kubernetes.Semver) -> bool", ONE, |args| {
        order(args).map(|order| Value::Bool(order.is_gt()))
    }),
    row("isLessThan", "kubernetes.Semver.(kubernetes.Semver) -> bool", ONE, |args| {
        order(args).map(|order| Value::Bool(order.is_lt()))
    }),
    row("compareTo", "kubernetes.Semver.(kubernetes.Semver) -> int", ONE, |args| {
        order(args).map(|order| Value::Int(order as i64))
    }),
];
