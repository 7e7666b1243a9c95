//! Quantities: `500m`, `1.5Gi`, `2e3`. Exact to a billionth, and written in one canonical form.
//!
//! Kubernetes rewrites quantities when it reads them (`0.5` becomes `500m`, `1024Mi` becomes `1Gi`) and compares
//! them by value, so both the value and the family of suffixes are kept, never the original text.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Neg, Sub};
use std::str::FromStr;

/// The smallest difference there is: everything is counted in billionths.
const NANOS: i128 = 1_000_000_000;
/// Larger amounts are cut to this, as Kubernetes does.
const MAX_NANOS: i128 = i64::MAX as i128 * NANOS;

/// An amount of something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// The family of suffixes a quantity was written with, and is written with again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Format {
    #[default]
    DecimalSI,
    BinarySI,
    DecimalExponent,
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// Powers of 1024, from the first on.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuantity {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Form,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    pub fn from_units(units: i64) -> Self {
        Quantity { nanos: i128::from(units) * NANOS, format: Format::DecimalSI }
    }

    pub fn from_millis(millis: i64) -> Self {
        Quantity { nanos: i128::from(millis) * (NANOS / 1000), format: Format::DecimalSI }
    }

    /// So many bytes, to be written with binary suffixes.
    pub fn from_bytes(bytes: i64) -> Self {
        Quantity { format: Format::BinarySI, ..Quantity::from_units(bytes) }
    }

    /// Whole units, rounded up: how the scheduler counts memory.
    pub fn units(self) -> i64 {
        self.rounded_up(NANOS)
    }

    /// Thousandths, rounded up: how the scheduler counts processors.
    pub fn millis(self) -> i64 {
        self.rounded_up(NANOS / 1000)
    }

    fn rounded_up(self, unit: i128) -> i64 {
        let (quotient, rest) = (self.nanos.div_euclid(unit), self.nanos.rem_euclid(unit));
        i64::try_from(quotient + i128::from(rest > 0)).unwrap_or(i64::MAX)
    }

    /// The amount as a whole number, if it is one. What was cut is none.
    pub fn whole(self) -> Option<i64> {
        let exact = self.nanos % NANOS == 0 && self.nanos.abs() < MAX_NANOS;
        if exact { i64::try_from(self.nanos / NANOS).ok() } else { None }
    }

    /// The number next to the amount that floating points can say.
    pub fn approximate(self) -> f64 {
        self.nanos as f64 / NANOS as f64
    }

    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    fn with_nanos(self, nanos: i128) -> Self {
        Quantity { nanos: nanos.clamp(-MAX_NANOS, MAX_NANOS), ..self }
    }
}

/// Quantities are equal if their amounts are, however they were written.
impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl std::hash::Hash for Quantity {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Add for Quantity {
    type Output = Quantity;
    /// A sum is written like its first part, unless that is zero.
    fn add(self, other: Quantity) -> Quantity {
        let format = if self.is_zero() { other.format } else { self.format };
        Quantity { format, ..self }.with_nanos(self.nanos + other.nanos)
    }
}

impl Sub for Quantity {
    type Output = Quantity;
    fn sub(self, other: Quantity) -> Quantity {
        self + -other
    }
}

impl Neg for Quantity {
    type Output = Quantity;
    fn neg(self) -> Quantity {
        self.with_nanos(-self.nanos)
    }
}

impl std::iter::Sum for Quantity {
    fn sum<I: Iterator<Item = Quantity>>(quantities: I) -> Quantity {
        quantities.fold(Quantity::default(), Add::add)
    }
}

/// What a suffix multiplies by.
enum Scale {
    Ten(i32),
    Two(u32),
}

fn parse_suffix(suffix: &str) -> Option<(Scale, Format)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((Scale::Ten(*power), Format::DecimalSI));
    }
    if let Some(power) = BINARY.iter().position(|known| *known == suffix) {
        return Some((Scale::Two(10 * (power as u32 + 1)), Format::BinarySI));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((Scale::Ten(exponent.parse().ok()?), Format::DecimalExponent))
}

impl FromStr for Quantity {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(InvalidQuantity::Form);
        }
        let exponent = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if !exponent.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(InvalidQuantity::Form);
        }
        let (scale, format) = parse_suffix(suffix).ok_or(InvalidQuantity::Suffix)?;
        let (factor, power) = match scale {
            Scale::Ten(power) => (1, power),
            Scale::Two(power) => (1_i128 << power, 0),
        };
        // More than these exceed the largest amount even in billionths; behind the point, more than those are rounded.
        const MAX_WHOLE_DIGITS: usize = 28;
        const MAX_FRACTION_DIGITS: usize = 19;
        let digits = whole.trim_start_matches('0');
        if digits.len() > MAX_WHOLE_DIGITS {
            let largest = if text.starts_with('-') { -MAX_NANOS } else { MAX_NANOS };
            return Ok(Quantity { nanos: largest, format });
        }
        let kept = &fraction[..fraction.len().min(MAX_FRACTION_DIGITS).min(MAX_WHOLE_DIGITS + 9 - digits.len())];
        let cut = fraction[kept.len()..].bytes().any(|digit| digit != b'0');
        // They are digits, and few enough.
        let mantissa =
            digits.bytes().chain(kept.bytes()).fold(0, |number, digit| number * 10 + i128::from(digit - b'0'));
        let magnitude = scaled(mantissa, factor, power + 9 - kept.len() as i32, cut);
        let nanos = if text.starts_with('-') { -magnitude } else { magnitude };
        Ok(Quantity { nanos: 0, format }.with_nanos(nanos))
    }
}

/// `mantissa * factor * 10^power`, rounded up, and cut at the largest amount.
fn scaled(mantissa: i128, factor: i128, power: i32, cut: bool) -> i128 {
    let Some(product) = mantissa.checked_mul(factor) else { return MAX_NANOS };
    let ten = |power: u32| 10_i128.checked_pow(power);
    match u32::try_from(power) {
        Ok(power) if product == 0 => i128::from(cut && power == 0),
        Ok(power) => {
            ten(power).and_then(|ten| product.checked_mul(ten)).map_or(MAX_NANOS, |nanos| nanos.min(MAX_NANOS))
        }
        Err(_) => match ten(power.unsigned_abs()) {
            Some(ten) => product / ten + i128::from(product % ten != 0 || cut),
            None => i128::from(product != 0),
        },
    }
}

/// From text, or from a number as people write it in manifests.
impl<'de> serde::Deserialize<'de> for Quantity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = crate::Value::deserialize(deserializer)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.format {
            Format::BinarySI if self.nanos.abs() >= 1024 * NANOS && self.nanos % NANOS == 0 => self.write_binary(f),
            Format::BinarySI | Format::DecimalSI => {
                let (mantissa, power) = self.decimal();
                let (suffix, _) = DECIMAL.iter().find(|(_, known)| *known == power).expect("powers are multiples of 3");
                write!(f, "{mantissa}{suffix}")
            }
            Format::DecimalExponent => match self.decimal() {
                (mantissa, 0) => write!(f, "{mantissa}"),
                (mantissa, power) => write!(f, "{mantissa}e{power}"),
            },
        }
    }
}

impl Quantity {
    /// The amount as a whole number times the largest possible power of a thousand.
    fn decimal(&self) -> (i128, i32) {
        if self.nanos == 0 {
            return (0, 0);
        }
        let (mut mantissa, mut power) = (self.nanos, -9);
        while mantissa % 1000 == 0 && power < 18 {
            mantissa /= 1000;
            power += 3;
        }
        (mantissa, power)
    }

    fn write_binary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut mantissa, mut suffix) = (self.nanos / NANOS, "");
        for next in BINARY {
            if mantissa % 1024 != 0 {
                break;
            }
            mantissa /= 1024;
            suffix = next;
        }
        write!(f, "{mantissa}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_numbers_where_they_can_be() {
        for (text, whole, approximate) in [
            ("1500m", None, 1.5),
            ("2Ki", Some(2048), 2048.0),
            ("-3", Some(-3), -3.0),
            ("1000E", None, i64::MAX as f64),
        ] {
            let quantity: Quantity = text.parse().unwrap();
            assert_eq!((quantity.whole(), quantity.approximate()), (whole, approximate));
        }
    }

    #[test]
    fn quantities_are_written_in_canonical_form() {
        for (text, canonical) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("1", "1"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.", "1"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("100k", "100k"),
            ("1Ki", "1Ki"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000Ki", "1000Ki"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("12E6", "12e6"),
            ("1e-3", "1e-3"),
            ("-5", "-5"),
            ("+5", "5"),
            ("0.1n", "1n"),
            ("1E", "1E"),
            ("007", "7"),
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap().to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "-", "x", ".", "1.2.3", "1 Gi", "1gi", "1KI", "Gi", "1e", "1ex", "1mm", "--1"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_rounded_up_and_cut() {
        let parse = |text: &str| text.parse::<Quantity>().unwrap();
        assert_eq!(parse("1500m").units(), 2);
        assert_eq!(parse("100u").millis(), 1);
        assert_eq!(parse("-1500m").units(), -1);
        assert_eq!(parse("1e30").units(), i64::MAX);
        assert_eq!(parse("99999999999999999999Ei").units(), i64::MAX);
        assert_eq!(parse("0.00000000000000000000000000001").to_string(), "1n");
    }

    #[test]
    fn sums_keep_the_suffixes_of_their_first_part() {
        let parse = |text: &str| text.parse::<Quantity>().unwrap();
        assert_eq!((parse("1Gi") + parse("1Gi")).to_string(), "2Gi");
        assert_eq!((parse("0") + parse("1Ki")).to_string(), "1Ki");
        assert_eq!((parse("1") - parse("250m")).to_string(), "750m");
        assert_eq!(parse("1Ki"), parse("1024"));
        assert!(parse("1k") < parse("1Ki"));
    }

    proptest! {
        #[test]
        fn the_canonical_form_means_the_same_and_is_its_own(
            text in "[+-]?[0-9]{1,12}(\\.[0-9]{1,9})?(n|u|m||k|M|G|T|Ki|Mi|Gi|e[0-6]|e-[0-6])"
        ) {
            let quantity: Quantity = text.parse().unwrap();
            let canonical = quantity.to_string();
            let again: Quantity = canonical.parse().unwrap();
            prop_assert_eq!(again, quantity);
            prop_assert_eq!(again.to_string(), canonical);
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}") {
            let _ = text.parse::<Quantity>();
        }
    }
}
