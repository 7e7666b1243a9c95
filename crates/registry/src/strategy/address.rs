//! Addresses and subnets in objects: what is one, what is one badly written, and where an address can lead.

use crate::strategy::place::Place;
use crate::strategy::rule::Rule;
use object::Value;
use object::field::Errors;
use std::net::{IpAddr, Ipv4Addr};

const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NO_SUBNET: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// Reads an address as old clients wrote it: with leading zeros.
pub fn parse(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        // An IPv4 address that is dressed as IPv6 is an IPv4 address.
        return text.parse::<IpAddr>().ok().map(|address| address.to_canonical());
    }
    let octets: Vec<u8> = text.split('.').map(|octet| octet.parse().ok()).collect::<Option<_>>()?;
    let octets: [u8; 4] = octets.try_into().ok()?;
    let well_formed = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    well_formed.then(|| IpAddr::V4(Ipv4Addr::from(octets)))
}

fn is_mapped(text: &str) -> bool {
    text.contains(':') && parse(text).is_some_and(|address| address.is_ipv4())
}

/// A subnet: its address as written, and the length of its prefix.
pub fn parse_subnet(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = text.split_once('/')?;
    let address = parse(address)?;
    let max = if text.contains(':') { 128 } else { 32 };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let length = length.parse().ok().filter(|length| digits && *length <= max)?;
    Some((address, length))
}

/// The address with all bits beyond the prefix cleared.
pub fn network(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            IpAddr::V4((u32::from(address) & u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0)).into())
        }
        IpAddr::V6(address) => {
            IpAddr::V6((u128::from(address) & u128::MAX.checked_shl(128 - length.min(128)).unwrap_or(0)).into())
        }
    }
}

/// An address in any form that has one meaning.
pub fn address(text: &str) -> Vec<String> {
    if parse(text).is_none() {
        vec![NO_ADDRESS.to_owned()]
    } else if text.parse::<IpAddr>().is_err() {
        vec!["must not have leading 0s".to_owned()]
    } else if is_mapped(text) {
        vec!["must not be an IPv4-mapped IPv6 address".to_owned()]
    } else {
        Vec::new()
    }
}

/// An address in its one canonical form, as newer kinds want it.
pub fn canonical_address(text: &str) -> Vec<String> {
    let wrong = address(text);
    match parse(text) {
        Some(parsed) if wrong.is_empty() && parsed.to_string() != text => {
            vec![format!("must be in canonical form ({:?})", parsed.to_string())]
        }
        _ => wrong,
    }
}

/// A subnet in any form that has one meaning.
pub fn subnet(text: &str) -> Vec<String> {
    let Some((address, length)) = parse_subnet(text) else { return vec![NO_SUBNET.to_owned()] };
    let written = text.split_once('/').unwrap_or_default();
    let leading_zero = written.1.len() > 1 && written.1.starts_with('0');
    let message = if written.0.parse::<IpAddr>().is_err() || leading_zero {
        "must not have leading 0s in IP or prefix length"
    } else if is_mapped(written.0) {
        "must not have an IPv4-mapped IPv6 address"
    } else if network(address, length) != address {
        "must not have bits set beyond the prefix length"
    } else {
        return Vec::new();
    };
    vec![message.to_owned()]
}

/// A subnet in its one canonical form.
pub fn canonical_subnet(text: &str) -> Vec<String> {
    let wrong = subnet(text);
    match parse_subnet(text).map(|(address, length)| format!("{address}/{length}")) {
        Some(canonical) if wrong.is_empty() && canonical != text => {
            vec![format!("must be in canonical form ({canonical:?})")]
        }
        _ => wrong,
    }
}

/// Whether the texts are addresses or subnets of both families, one of each.
pub fn is_dual_stack<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    let families: Vec<bool> = texts.map(|text| text.contains(':')).collect();
    families.len() == 2 && families[0] != families[1]
}

/// An address that traffic can be sent to.
pub fn reachable(place: &Place, errors: &mut Errors) {
    let text = place.text();
    let Some(address) = parse(text) else {
        place.invalid(errors, "must be a valid IP address");
        return;
    };
    let (link_local, link_local_multicast) = match address {
        IpAddr::V4(address) => (address.is_link_local(), address.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(address) => (address.is_unicast_link_local(), address.segments()[0] & 0xff0f == 0xff02),
    };
    let unspecified = format!("may not be unspecified ({text})");
    let wrong = [
        (address.is_unspecified(), unspecified.as_str()),
        (address.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (link_local_multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ];
    wrong.into_iter().filter(|(wrong, _)| *wrong).for_each(|(_, message)| place.invalid(errors, message));
}

/// Checks the addresses or subnets of a list. What the old object had is accepted, whatever it is.
pub fn each_in(place: &Place, field: &str, old: Option<&[Value]>, rule: Rule, errors: &mut Errors) {
    let kept = |value| old.is_some_and(|old| old.contains(value));
    place.field(field).items().filter(|item| !kept(item.value())).for_each(|item| item.follows(errors, rule));
}

/// A warning of an address that is good and not written the usual way.
pub fn warning(place: &Place) -> Option<String> {
    let text = place.text();
    let address = parse(text)?;
    if text.parse::<IpAddr>().is_err() || is_mapped(text) {
        Some(format!("{place}: non-standard IP address {text:?} is invalid: use {:?}", address.to_string()))
    } else if address.is_ipv6() && address.to_string() != text {
        let canonical = address.to_string();
        Some(format!("{place}: IPv6 address {text:?} should be in RFC 5952 canonical format ({canonical:?})"))
    } else {
        None
    }
}

/// Warnings of a subnet that is good and not written the usual way.
pub fn subnet_warnings(place: &Place) -> Vec<String> {
    let text = place.text();
    let Some((address, length)) = parse_subnet(text) else { return Vec::new() };
    let canonical = format!("{}/{length}", network(address, length));
    let mut warnings = Vec::new();
    if network(address, length) != address {
        let single = format!("{address}/{}", if address.is_ipv6() { 128 } else { 32 });
        warnings.push(format!(
            "{place}: CIDR value {text:?} is ambiguous in this context (should be {canonical:?} or {single:?}?)"
        ));
    }
    if subnet(text).iter().any(|message| !message.contains("bits set")) {
        warnings.push(format!("{place}: non-standard CIDR value {text:?} is invalid: use {canonical:?}"));
    }
    if warnings.is_empty() && address.is_ipv6() && canonical != text {
        warnings
            .push(format!("{place}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format ({canonical:?})"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn addresses_are_judged_as_kubernetes_does() {
        for (text, wrong) in [
            ("10.9.8.7", ""),
            ("2001:DB8::1", ""),
            ("010.9.8.7", "must not have leading 0s"),
            ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
            ("10.9.8", NO_ADDRESS),
            ("10.9.8.+7", NO_ADDRESS),
            ("", NO_ADDRESS),
        ] {
            assert_eq!(address(text).join(""), wrong, "{text}");
        }
        assert_eq!(canonical_address("2001:DB8::1"), ["must be in canonical form (\"2001:db8::1\")"]);
        for (text, wrong) in [
            ("10.0.0.0/8", ""),
            ("::/0", ""),
            ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
            ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
            ("10.0.0.0/33", NO_SUBNET),
            ("10.0.0.0", NO_SUBNET),
        ] {
            assert_eq!(subnet(text).join(""), wrong, "{text}");
        }
    }

    #[test]
    fn some_addresses_lead_nowhere() {
        for (text, message) in [
            ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
            ("::1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
            ("169.254.1.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
            ("224.0.0.9", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        ] {
            let (value, mut errors) = (json!(text), Errors::new());
            reachable(&Place::named(&value, "ip"), &mut errors);
            assert_eq!(errors[0].to_string(), format!("ip: Invalid value: {text:?}: {message}"));
        }
    }

    #[test]
    fn odd_spellings_are_warned_of() {
        let warning = |text: &str| warning(&Place::named(&json!(text), "ip"));
        assert_eq!(warning("10.0.0.1"), None);
        assert_eq!(
            warning("010.0.0.1").unwrap(),
            "ip: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\""
        );
        assert_eq!(
            subnet_warnings(&Place::named(&json!("10.0.0.1/8"), "ip")),
            [
                "ip: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)"
            ]
        );
    }
}
