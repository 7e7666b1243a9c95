//! The rules of a pod's names and of how it finds others: host name, name servers, host aliases.

use crate::strategy::address;
use crate::strategy::place::Place;
use object::field::Errors;
use object::name;

const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const NAME_SERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCHES_MAX_CHARS: usize = 2048;
const HOSTNAME_MAX: usize = 64;

pub(super) fn validate(spec: &Place, errors: &mut Errors) {
    spec.field("dnsPolicy").require_one_of(errors, &DNS_POLICIES);
    dns_config(&spec.field("dnsConfig"), spec.field("dnsPolicy").text(), errors);
    spec.field("hostname").follows_if_set(errors, name::dns_label);
    spec.field("subdomain").follows_if_set(errors, name::dns_label);
    let name = spec.field("hostnameOverride");
    if name.is_set() {
        for (flag, value) in [("setHostnameAsFQDN", true), ("hostNetwork", true)] {
            if spec.field(flag).value() == value {
                name.forbidden(errors, format!("may not be specified when {flag} is true"));
            }
        }
        if name.text().len() > HOSTNAME_MAX {
            name.too_long(errors, HOSTNAME_MAX);
        }
        name.follows(errors, name::dns_subdomain);
    }
    for alias in spec.field("hostAliases").items() {
        alias.field("ip").follows(errors, address::address);
        alias.field("hostnames").items().for_each(|name| name.follows(errors, name::dns_subdomain));
    }
}

fn dns_config(config: &Place, policy: &str, errors: &mut Errors) {
    let (servers, searches) = (config.field("nameservers"), config.field("searches"));
    if policy == "None" && !config.is_set() {
        return config.required(errors, "must provide `dnsConfig` when `dnsPolicy` is None");
    }
    if policy == "None" && servers.is_empty() {
        return servers.required(errors, "must provide at least one DNS nameserver when `dnsPolicy` is None");
    }
    if servers.items().count() > NAME_SERVERS_MAX {
        servers.invalid(errors, format!("must not have more than {NAME_SERVERS_MAX} nameservers"));
    }
    servers.items().for_each(|server| server.follows(errors, address::address));
    let count = searches.items().count();
    if count > SEARCHES_MAX {
        searches.invalid(errors, format!("must not have more than {SEARCHES_MAX} search paths"));
    }
    let length = searches.items().map(|search| search.text().len() + 1).sum::<usize>().saturating_sub(1);
    if length > SEARCHES_MAX_CHARS {
        let detail =
            format!("must not have more than {SEARCHES_MAX_CHARS} characters (including spaces) in the search list");
        searches.invalid(errors, detail);
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let domain = search.text().strip_suffix('.').unwrap_or(search.text());
        domain_with_underscores(domain).into_iter().for_each(|message| search.invalid_value(errors, domain, message));
    }
    for option in config.field("options").items() {
        if option.field("name").text().is_empty() {
            option.required(errors, "must not be empty");
        }
    }
}

/// A domain as some name servers know it: its labels may begin with an underscore and have more of them.
fn domain_with_underscores(domain: &str) -> Vec<String> {
    let label = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
    let plain: Vec<_> = domain.split('.').map(|part| part.strip_prefix('_').unwrap_or(part)).collect();
    let ends_well = !plain.iter().any(|part| part.starts_with('_') || part.ends_with('_'));
    let is_well_formed = ends_well && name::dns_subdomain(&plain.join(".").replace('_', "-")).is_empty();
    if is_well_formed {
        return Vec::new();
    }
    vec![format!(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must \
         start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '{label}(\\.{label})*')"
    )]
}
