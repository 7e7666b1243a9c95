//! What calls of functions cost: once by the values they were made with, and once by how large these may be at most.
//!
//! Both stand side by side, because a rule that was accepted for its estimate must not run out of its budget later. The
//! formulas are upstream's, with their quirks: which rules a cluster accepts depends on them.

use crate::types::Type;
use crate::value::Value;

pub(crate) const SELECT: u64 = 1;
pub(crate) const CREATE_LIST: u64 = 10;
pub(crate) const CREATE_MAP: u64 = 30;
pub(crate) const CREATE_OBJECT: u64 = 40;
/// Of reading text once, for each character.
const TRAVERSE: f64 = 0.1;
/// Of applying a regular expression once, for each of its characters.
const REGEX: f64 = 0.25;
/// The longest expression behind a named format.
const MAX_FORMAT_REGEX: f64 = 128.0;

/// How many or how much, at least and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub min: u64,
    pub max: u64,
}

impl Range {
    pub(crate) const ZERO: Range = Range::exactly(0);
    pub(crate) const UNKNOWN: Range = Range { min: 0, max: u64::MAX };
    /// Of nothing yet: with whatever it is put together, that remains.
    pub(crate) const NONE: Range = Range { min: u64::MAX, max: 0 };

    pub(crate) const fn exactly(number: u64) -> Range {
        Range { min: number, max: number }
    }

    pub(crate) fn plus(self, other: Range) -> Range {
        Range { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(crate) fn times(self, other: Range) -> Range {
        Range { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Rounded up.
    pub(crate) fn scaled(self, factor: f64) -> Range {
        // Conversions to integers saturate.
        let scale = |number: u64| if number == u64::MAX { number } else { (number as f64 * factor).ceil() as u64 };
        Range { min: scale(self.min), max: scale(self.max) }
    }

    pub(crate) fn union(self, other: Range) -> Range {
        Range { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

fn ceil(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// What a call costs, as a function of its arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cost {
    Fixed(u64),
    /// Reads its first argument so many times.
    Read(u8),
    /// Reads its first argument, and gives as much again.
    Transform,
    StartsWith,
    /// Text to bytes and back: a character is up to four bytes.
    Encode,
    Decode,
    Quote,
    Replace,
    Split,
    Join,
    /// A regular expression, the second argument, is applied to the first.
    Regex,
    /// Like it, and gives parts of the text.
    Find,
    Contains,
    /// Looks at each element of the first argument.
    Elements,
    Compare,
    InList,
    AddText,
    AddList,
    Conditional,
    /// Compares each with each, so many times.
    Sets(u8),
    /// Gives a list, which costs as much as it has items.
    MakeList,
    Slice,
    Flatten,
    /// Compares the items of this argument with each other.
    Sort(usize),
    /// A network contains another, or an address; read from text first, or not.
    ContainsNetwork {
        network: bool,
        text: bool,
    },
    Validate,
}

impl Cost {
    /// Whether it depends on what comes out. All else is paid for beforehand, so that nobody waits for what is not.
    pub(crate) fn follows_from_result(self) -> bool {
        matches!(self, Cost::Join | Cost::MakeList | Cost::Slice)
    }

    /// Of a call that was made.
    pub(crate) fn actual(self, args: &[Value<'_>], result: &Value<'_>) -> u64 {
        let size = |index: usize| args.get(index).map_or(0, Value::size);
        match self {
            Cost::Fixed(cost) => cost,
            Cost::Read(times) => ceil(size(0), TRAVERSE * f64::from(times)),
            Cost::Transform | Cost::StartsWith | Cost::Encode | Cost::Decode | Cost::Quote => ceil(size(0), TRAVERSE),
            Cost::Replace | Cost::Split => ceil(size(0), 2.0 * TRAVERSE),
            Cost::Join => ceil(result.size(), 2.0 * TRAVERSE),
            Cost::Regex | Cost::Find => ceil(size(0) + 1, TRAVERSE).saturating_mul(ceil(size(1), REGEX)),
            Cost::Contains => ceil(size(0), TRAVERSE).saturating_mul(ceil(size(1), TRAVERSE)),
            Cost::Elements => args.first().map_or(0, traversal),
            Cost::Compare if matches!(args, [Value::Opaque(_), _]) => 1,
            Cost::Compare => ceil(size(0).min(size(1)), TRAVERSE),
            Cost::InList => size(1),
            Cost::AddText => ceil(size(0) + size(1), TRAVERSE),
            Cost::AddList | Cost::Conditional => 1,
            Cost::Sets(times) => 1 + size(0).saturating_mul(size(1)).saturating_mul(u64::from(times)),
            Cost::MakeList | Cost::Slice => 1 + CREATE_LIST + result.size(),
            Cost::Flatten => {
                let depth = args.get(1).map_or(1, |depth| if let Value::Int(depth) = depth { *depth } else { 1 });
                1 + CREATE_LIST + size(0).saturating_mul(u64::try_from(depth).unwrap_or(0))
            }
            Cost::Sort(by) => {
                let first = args.get(by).and_then(|list| if let Value::List(list) = list { list.get(0) } else { None });
                let text = matches!(first, Some(Ok(Value::String(_) | Value::Bytes(_))));
                let squared = size(by).saturating_mul(size(by));
                1 + CREATE_LIST + (squared as f64 * sort_factor(text)) as u64
            }
            Cost::ContainsNetwork { network, text } => {
                let compared = ceil(2 * size(0), TRAVERSE);
                let masked = if network { ceil(size(0), TRAVERSE) + 1 } else { 0 };
                compared + masked + if text { ceil(size(1), TRAVERSE) } else { 0 }
            }
            Cost::Validate => ceil(size(1) + 1, TRAVERSE).saturating_mul(ceil(size(0), REGEX)),
        }
    }

    /// Of a call that is yet to be made; and how large its result may be, if the call itself tells.
    pub(crate) fn estimated(self, args: &[Operand]) -> (Range, Option<Range>) {
        let size = |index: usize| args.get(index).map_or(Range::UNKNOWN, |arg| arg.size);
        let one = Range::exactly(1);
        match self {
            Cost::Fixed(cost) => (Range::exactly(cost), None),
            Cost::Read(times) => (size(0).scaled(TRAVERSE * f64::from(times)), None),
            Cost::Transform => (size(0).scaled(TRAVERSE), Some(size(0))),
            Cost::StartsWith => (size(1).scaled(TRAVERSE), None),
            Cost::Encode => (size(0).scaled(TRAVERSE), Some(Range { max: size(0).max.saturating_mul(4), ..size(0) })),
            Cost::Decode => (size(0).scaled(TRAVERSE), Some(Range { min: size(0).min / 4, ..size(0) })),
            Cost::Quote => {
                let Range { min, max } = size(0);
                let result = Range { min: min.saturating_add(2), max: max.saturating_mul(2).saturating_add(2) };
                (size(0).scaled(TRAVERSE), Some(result))
            }
            Cost::Replace => (size(0).scaled(2.0 * TRAVERSE), Some(replaced(size(0), size(1), size(2)))),
            Cost::Split => {
                let limit = args.get(2).and_then(|limit| limit.literal).map(i64::cast_unsigned);
                (size(0).scaled(2.0 * TRAVERSE), Some(Range { min: 0, max: limit.unwrap_or(size(0).max) }))
            }
            Cost::Join => {
                let separators = Range { min: size(0).min.saturating_sub(1), max: size(0).max.saturating_sub(1) };
                let items = args.first().and_then(|list| list.elements.as_ref()).map_or(Range::ZERO, |(_, size)| *size);
                let separator = args.get(1).map_or(Range::ZERO, |separator| separator.size);
                let joined = size(0).times(items).plus(separator.times(separators));
                (joined.scaled(TRAVERSE), Some(joined))
            }
            Cost::Regex | Cost::Find => {
                let cost = size(0).plus(one).scaled(TRAVERSE).times(size(1).scaled(REGEX));
                (cost, (self == Cost::Find).then_some(Range { min: 0, max: size(0).max }))
            }
            Cost::Contains => (size(0).scaled(TRAVERSE).times(size(1).scaled(TRAVERSE)), None),
            Cost::Elements => match args.first().and_then(|list| list.elements.as_ref()) {
                Some((Type::String | Type::Bytes, element)) => {
                    (size(0).times(one.plus(element.scaled(TRAVERSE))), None)
                }
                Some(_) => (size(0), None),
                None => (size(0).scaled(TRAVERSE), None),
            },
            Cost::Compare => {
                let max = size(0).max.min(size(1).max);
                (Range { min: u64::from(max > 0), max }.scaled(TRAVERSE), None)
            }
            Cost::InList => (size(1), None),
            Cost::AddText => (size(0).plus(size(1)).scaled(TRAVERSE), Some(size(0).plus(size(1)))),
            Cost::AddList => (one, Some(size(0).plus(size(1)))),
            Cost::Conditional => (Range::ZERO, Some(size(1).union(size(2)))),
            Cost::Sets(times) => (size(0).times(size(1)).scaled(f64::from(times)).plus(one), None),
            Cost::MakeList | Cost::Slice | Cost::Flatten | Cost::Sort(_) => self.estimated_list(args),
            Cost::ContainsNetwork { network, text } => {
                let bytes = Range { min: 4, max: 16 };
                let masked = if network { bytes.scaled(TRAVERSE).plus(one) } else { Range::ZERO };
                let read = if text { size(1).scaled(TRAVERSE) } else { Range::ZERO };
                (bytes.plus(bytes).scaled(TRAVERSE).plus(masked).plus(read), None)
            }
            Cost::Validate => (size(1).scaled(TRAVERSE).scaled(MAX_FORMAT_REGEX * REGEX), None),
        }
    }

    /// Of functions that make a list.
    fn estimated_list(self, args: &[Operand]) -> (Range, Option<Range>) {
        let size = |index: usize| args.get(index).map_or(Range::UNKNOWN, |arg| arg.size);
        match self {
            Cost::Slice => {
                let literal = |index: usize, otherwise| known(args, index).max.min(otherwise);
                let end = literal(2, size(0).max);
                let start = args.get(1).and_then(|start| start.literal).map_or(0, |_| literal(1, u64::MAX));
                made(1.0, Range::exactly(end.saturating_sub(start)))
            }
            Cost::Flatten => {
                let depth = if args.len() == 1 { 1 } else { known(args, 1).max };
                made(depth as f64, size(0))
            }
            Cost::Sort(by) => {
                let elements = args.get(by).and_then(|list| list.elements.as_ref());
                let text = matches!(elements, Some((Type::String | Type::Bytes, _)));
                made(sort_factor(text), size(by).times(size(by)))
            }
            _ if args.first().is_some_and(|arg| arg.of == Type::Int) => made(1.0, known(args, 0)),
            _ => made(1.0, size(0)),
        }
    }
}

/// Comparing two values that are known by the name of their type only.
pub(crate) fn compared(name: &str, other: Range) -> Range {
    let most = match name {
        "kubernetes.NamedFormat" => 64,
        "kubernetes.URL" => other.max,
        _ => return Range::exactly(1),
    };
    Range { min: 1, max: most }.scaled(TRAVERSE)
}

fn sort_factor(text: bool) -> f64 {
    if text { 2.0 + TRAVERSE } else { 2.0 }
}

fn made(factor: f64, size: Range) -> (Range, Option<Range>) {
    (size.scaled(factor).plus(Range::exactly(1 + CREATE_LIST)), Some(size))
}

/// A number that was written down; any number, if it was not.
fn known(args: &[Operand], index: usize) -> Range {
    let literal = args.get(index).and_then(|arg| arg.literal);
    Range::exactly(literal.map_or(u64::MAX, |literal| u64::try_from(literal).unwrap_or(0)))
}

/// How long a text is after something in it has been replaced.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let max = if old.min == 0 {
        text.max.saturating_add(1).saturating_mul(new.max).saturating_add(text.max)
    } else if new.max <= old.min {
        text.max
    } else {
        text.max.div_ceil(old.min).saturating_mul(new.max)
    };
    let min = if old.max == 0 {
        text.min.saturating_add(1).saturating_mul(new.min).saturating_add(text.min)
    } else if old.max <= new.min {
        text.min
    } else {
        text.min.div_ceil(old.max).saturating_mul(new.min)
    };
    Range { min, max }
}

/// What is known of an argument before it has a value.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) of: Type,
    pub(crate) size: Range,
    /// The type and the size of its elements, if it is a list.
    pub(crate) elements: Option<(Type, Range)>,
    /// The number, if it is one that was written down.
    pub(crate) literal: Option<i64>,
}

/// The cost of looking at everything there is in a value.
fn traversal(value: &Value<'_>) -> u64 {
    let shallow = |size: usize| (size as f64 * TRAVERSE) as u64;
    match value {
        Value::String(text) => shallow(text.len()),
        Value::Bytes(bytes) => shallow(bytes.len()),
        Value::List(items) => items.iter().map(|item| item.map_or(1, |item| traversal(&item))).sum(),
        Value::Map(map) => map
            .entries()
            .map(|entry| entry.map_or(1, |(key, value)| traversal(&Value::from_key(key)) + traversal(&value)))
            .sum(),
        _ => 1,
    }
}
