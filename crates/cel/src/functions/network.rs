//! Addresses and networks.

use crate::cost::Cost;
use crate::environment::{Row, row};
use crate::functions::unsuitable;
use crate::value::{Error, Opaque, Value};
use std::any::Any;
use std::net::IpAddr;

pub(crate) const IP: &str = "net.IP";
pub(crate) const CIDR: &str = "net.CIDR";

const ONE: Cost = Cost::Fixed(1);
const READ: Cost = Cost::Read(1);

/// A network: an address, and how many of its first bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u8,
}

impl Opaque for IpAddr {
    fn type_name(&self) -> &str {
        IP
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    /// In bytes.
    fn size(&self) -> u64 {
        if self.is_ipv4() { 4 } else { 16 }
    }
    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Opaque for Network {
    fn type_name(&self) -> &str {
        CIDR
    }
    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    /// Of the bits that count, in bytes.
    fn size(&self) -> u64 {
        u64::from(self.bits.div_ceil(8))
    }
    fn text(&self) -> Option<String> {
        Some(format!("{}/{}", self.address, self.bits))
    }
}

impl Network {
    fn masked(self) -> Network {
        let address = match self.address {
            IpAddr::V4(address) => {
                IpAddr::V4((address.to_bits() & u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0)).into())
            }
            IpAddr::V6(address) => {
                IpAddr::V6((address.to_bits() & u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0)).into())
            }
        };
        Network { address, ..self }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && Network { address, ..self }.masked() == self.masked()
    }

    fn contains_network(self, other: Network) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }
}

fn parse_ip(text: &str) -> Result<IpAddr, Error> {
    if text.contains('%') {
        return Err(Error::new(format!("IP address {text:?} with zone value is not allowed")));
    }
    let address = text.parse().map_err(|_| {
        let why = format!("ParseAddr({text:?}): {}", no_address(text));
        Error::new(format!("IP Address {text:?} parse error during conversion from string: {why}"))
    })?;
    not_mapped(address, text)
}

/// Why it is no address, in Go's words.
fn no_address(text: &str) -> &'static str {
    let fields: Vec<&str> = text.split('.').collect();
    if text.contains(':') || fields.len() == 1 {
        return "unable to parse IP";
    }
    for field in &fields {
        if field.is_empty() {
            return "IPv4 field must have at least one digit";
        }
        if !field.bytes().all(|digit| digit.is_ascii_digit()) {
            return "unexpected character";
        }
        if field.len() > 1 && field.starts_with('0') {
            return "IPv4 field has octet with leading zero";
        }
        if field.parse::<u8>().is_err() {
            return "IPv4 field has value >255";
        }
    }
    if fields.len() < 4 { "IPv4 address too short" } else { "IPv4 address too long" }
}

/// An address of the old protocol has one way to be written.
fn not_mapped(address: IpAddr, text: &str) -> Result<IpAddr, Error> {
    match address {
        IpAddr::V6(new) if new.to_ipv4_mapped().is_some() => {
            Err(Error::new(format!("IPv4-mapped IPv6 address {text:?} is not allowed")))
        }
        address => Ok(address),
    }
}

fn parse_network(text: &str) -> Result<Network, Error> {
    let invalid = |why: &str| {
        let why = format!("netip.ParsePrefix({text:?}): {why}");
        Error::new(format!("network address parse error during conversion from string: {why}"))
    };
    let (address, length) = text.rsplit_once('/').ok_or_else(|| invalid("no '/'"))?;
    let address: IpAddr = address.parse().map_err(|_| invalid(no_address(address)))?;
    let plain = length.bytes().all(|digit| digit.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    let bits: Option<u8> = length.parse().ok().filter(|_| plain);
    match bits {
        Some(bits) if bits <= if address.is_ipv4() { 32 } else { 128 } => {
            Ok(Network { address: not_mapped(address, text)?, bits })
        }
        Some(_) => Err(invalid("prefix length out of range")),
        None => Err(invalid(&format!("bad bits after slash: {length:?}"))),
    }
}

fn text<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v str, Error> {
    args.get(index).and_then(Value::as_str).ok_or_else(unsuitable)
}

fn ip<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v IpAddr, Error> {
    args.get(index).and_then(Value::as_opaque).ok_or_else(unsuitable)
}

fn network(args: &[Value<'_>], index: usize) -> Result<Network, Error> {
    args.get(index).and_then(Value::as_opaque).copied().ok_or_else(unsuitable)
}

fn property<'a>(args: &[Value<'_>], holds: fn(&IpAddr) -> bool) -> Result<Value<'a>, Error> {
    ip(args, 0).map(|address| Value::Bool(holds(address)))
}

fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_link_local_multicast(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_global_unicast(address: &IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !broadcast
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local(address)
}

pub(crate) const TABLE: &[Row] = &[
    row("ip", "(string) -> net.IP", READ, |args| parse_ip(text(args, 0)?).map(Value::opaque)),
    row("isIP", "(string) -> bool", READ, |args| Ok(Value::Bool(parse_ip(text(args, 0)?).is_ok()))),
    row("ip.isCanonical", "(string) -> bool", Cost::Read(2), |args| {
        let text = text(args, 0)?;
        parse_ip(text).map(|address| Value::Bool(address.to_string() == text))
    }),
    row("family", "net.IP.() -> int", ONE, |args| {
        ip(args, 0).map(|address| Value::Int(if address.is_ipv4() { 4 } else { 6 }))
    }),
    row("isUnspecified", "net.IP.() -> bool", ONE, |args| property(args, IpAddr::is_unspecified)),
    row("isLoopback", "net.IP.() -> bool", ONE, |args| property(args, IpAddr::is_loopback)),
    row("isLinkLocalMulticast", "net.IP.() -> bool", ONE, |args| property(args, is_link_local_multicast)),
    row("isLinkLocalUnicast", "net.IP.() -> bool", ONE, |args| property(args, is_link_local)),
    row("isGlobalUnicast", "net.IP.() -> bool", ONE, |args| property(args, is_global_unicast)),
    row("cidr", "(string) -> net.CIDR", READ, |args| {
        // Upstream says it twice.
        let twice = |error| Error::new(format!("network address parse error during conversion from string: {error}"));
        parse_network(text(args, 0)?).map(Value::opaque).map_err(twice)
    }),
    row("isCIDR", "(string) -> bool", READ, |args| Ok(Value::Bool(parse_network(text(args, 0)?).is_ok()))),
    row("containsIP", "net.CIDR.(string) -> bool", Cost::ContainsNetwork { network: false, text: true }, |args| {
        Ok(Value::Bool(network(args, 0)?.contains(parse_ip(text(args, 1)?)?)))
    }),
    row("containsIP", "net.CIDR.(net.IP) -> bool", Cost::ContainsNetwork { network: false, text: false }, |args| {
        Ok(Value::Bool(network(args, 0)?.contains(*ip(args, 1)?)))
    }),
    row("containsCIDR", "net.CIDR.(string) -> bool", Cost::ContainsNetwork { network: true, text: true }, |args| {
        Ok(Value::Bool(network(args, 0)?.contains_network(parse_network(text(args, 1)?)?)))
    }),
    row("containsCIDR", "net.CIDR.(net.CIDR) -> bool", Cost::ContainsNetwork { network: true, text: false }, |args| {
        Ok(Value::Bool(network(args, 0)?.contains_network(network(args, 1)?)))
    }),
    row("ip", "net.CIDR.() -> net.IP", ONE, |args| Ok(Value::opaque(network(args, 0)?.address))),
    row("prefixLength", "net.CIDR.() -> int", ONE, |args| Ok(Value::Int(i64::from(network(args, 0)?.bits)))),
    row("masked", "net.CIDR.() -> net.CIDR", ONE, |args| Ok(Value::opaque(network(args, 0)?.masked()))),
];
