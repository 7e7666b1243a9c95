//! What loops have to be told about the cluster, since no object says it.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Settings {
    /// The certificate of the cluster's authority, as PEM.
    pub authority: Arc<str>,
    /// Where others reach this machine.
    pub address: IpAddr,
    /// Where pods get their addresses from.
    pub cluster_cidr: Cidr,
    /// Whoever has the key of the authority; without, nobody signs.
    pub signer: Option<Arc<dyn Signer>>,
    /// From how many nodes a second pods are driven off, in each zone that is well.
    pub node_eviction_rate: f64,
    /// Versions of the API that are served here and not everywhere.
    pub previews: BTreeSet<String>,
}

/// Signs certificates in the name of the cluster's authority.
pub trait Signer: std::fmt::Debug + Send + Sync {
    /// What a request, as PEM, asks for; or what is wrong with it.
    fn read(&self, request: &str) -> Result<Asked, String>;
    /// A certificate for that, as PEM. Times are since 1970.
    fn sign(&self, request: &str, usages: &[String], from: Duration, until: Duration) -> Result<String, String>;
}

/// Whom a certificate is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub common_name: String,
    pub organizations: Vec<String>,
    pub dns_names: usize,
    pub addresses: usize,
    pub emails: usize,
    pub uris: usize,
}

impl Settings {
    /// As upstream has it: one node in ten seconds.
    pub const NODE_EVICTION_RATE: f64 = 0.1;
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            authority: "".into(),
            address: Ipv4Addr::LOCALHOST.into(),
            cluster_cidr: Cidr::PODS,
            signer: None,
            node_eviction_rate: Settings::NODE_EVICTION_RATE,
            previews: BTreeSet::new(),
        }
    }
}

/// A range of addresses: everything that begins with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    first: u32,
    bits: u32,
}

impl Cidr {
    /// The range that pods get their addresses from unless something else is wanted.
    pub const PODS: Cidr = Cidr { first: u32::from_be_bytes([10, 244, 0, 0]), bits: 16 };
    /// The same for clusters of more nodes than that has room for.
    pub const PODS_OF_MANY_NODES: Cidr = Cidr { first: u32::from_be_bytes([10, 128, 0, 0]), bits: 9 };

    /// Reads `10.244.0.0/16`; none if it is something else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let (address, bits) = (address.parse::<Ipv4Addr>().ok()?, bits.parse::<u32>().ok()?);
        (bits <= 32).then(|| Cidr { first: u32::from(address) & mask(bits), bits })
    }

    /// How many parts of this size it has.
    pub(crate) fn parts(self, bits: u32) -> u32 {
        bits.checked_sub(self.bits).and_then(|more| 1_u32.checked_shl(more)).unwrap_or(0)
    }

    /// One of its parts, by number.
    pub(crate) fn part(self, bits: u32, number: u32) -> Cidr {
        Cidr { first: self.first + number * (!mask(bits) + 1), bits }
    }

    /// The numbers of the parts of this size that another range touches.
    pub(crate) fn touched(self, bits: u32, other: Cidr) -> std::ops::Range<u32> {
        let last = |range: Cidr| range.first | !mask(range.bits);
        if last(other) < self.first || other.first > last(self) {
            return 0..0;
        }
        let number = |address: u32| (address - self.first) >> (32 - bits).min(31);
        number(other.first.max(self.first))..number(last(other).min(last(self))) + 1
    }
}

fn mask(bits: u32) -> u32 {
    u32::MAX.checked_shl(32 - bits).unwrap_or(0)
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.first), self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_parts_and_others_touch_some_of_them() {
        let range = Cidr::PODS;
        assert_eq!((range.to_string().as_str(), range.parts(24), range.parts(8)), ("10.244.0.0/16", 256, 0));
        assert_eq!(range.part(24, 255).to_string(), "10.244.255.0/24");
        for (other, expected) in [
            ("10.244.3.0/24", 3..4),
            ("10.244.3.17/24", 3..4),
            ("10.244.2.0/23", 2..4),
            ("10.244.7.128/25", 7..8),
            ("10.0.0.0/8", 0..256),
            ("10.245.0.0/24", 0..0),
            ("0.0.0.0/0", 0..256),
        ] {
            assert_eq!(range.touched(24, Cidr::parse(other).unwrap()), expected, "{other}");
        }
        for bad in ["10.244.0.0", "10.244.0.0/33", "fd00::/64", ""] {
            assert_eq!(Cidr::parse(bad), None, "{bad}");
        }
    }
}
