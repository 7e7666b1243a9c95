//! Rules for names, labels and the like, with the messages Kubernetes gives for breaking them.
//!
//! Each rule returns what is wrong, in the order Kubernetes reports it; an empty list means that the name is good.

const DNS_LABEL_MAX: usize = 63;
const DNS_SUBDOMAIN_MAX: usize = 253;
const QUALIFIED_NAME_MAX: usize = 63;
const LABEL_VALUE_MAX: usize = 63;

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
fn has_dns_label_form(text: &str) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            is_lower_alphanumeric(*first)
                && is_lower_alphanumeric(*last)
                && bytes.iter().all(|byte| is_lower_alphanumeric(*byte) || *byte == b'-')
        }
        _ => false,
    }
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn has_qualified_form(text: &str) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        }
        _ => false,
    }
}

/// Two generations of rules count the same and call it by different names.
fn too_long(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn too_many_bytes(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

fn form(message: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}'")).collect();
    let examples = examples.join(",  or ");
    format!("{message} (e.g. {examples}, regex used for validation is '{pattern}')")
}

fn check(text: &str, max: usize, good: bool, message: impl FnOnce() -> String) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > max {
        errors.push(too_long(max));
    }
    if !good {
        errors.push(message());
    }
    errors
}

/// RFC 1123 label: namespaces, containers, volumes.
pub fn dns_label(text: &str) -> Vec<String> {
    check(text, DNS_LABEL_MAX, has_dns_label_form(text), || {
        if text.split('.').all(has_dns_label_form) {
            return "must not contain dots".to_owned();
        }
        form(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
             end with an alphanumeric character",
            "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "123-abc"],
        )
    })
}

/// RFC 1123 subdomain: most objects.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    check(text, DNS_SUBDOMAIN_MAX, text.split('.').all(has_dns_label_form), || {
        form(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character",
            r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        )
    })
}

/// RFC 1035 label: services.
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let good = has_dns_label_form(text) && text.as_bytes()[0].is_ascii_lowercase();
    check(text, DNS_LABEL_MAX, good, || {
        form(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        )
    })
}

/// A name that has to fit into one segment of a URL path: roles and the like.
pub fn path_segment(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text == "." || text == ".." {
        errors.push(format!("may not be '{text}'"));
        return errors;
    }
    for forbidden in ["/", "%"] {
        if text.contains(forbidden) {
            errors.push(format!("may not contain '{forbidden}'"));
        }
    }
    errors
}

/// An optional DNS subdomain and a name: keys of labels, annotations and taints.
pub fn qualified_name(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((_, rest)) if rest.contains('/') => {
            return vec![
                format!(
                    "a qualified name {}",
                    form(
                        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                     alphanumeric character",
                        "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
                        &["MyName", "my.name", "123-abc"],
                    )
                ) + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            ];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    let mut errors = Vec::new();
    match prefix {
        Some("") => errors.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            let in_bytes =
                |error: String| error.replace(&too_long(DNS_SUBDOMAIN_MAX), &too_many_bytes(DNS_SUBDOMAIN_MAX));
            errors.extend(dns_subdomain(prefix).into_iter().map(|error| format!("prefix part {}", in_bytes(error))));
        }
        None => {}
    }
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > QUALIFIED_NAME_MAX {
        errors.push(format!("name part {}", too_many_bytes(QUALIFIED_NAME_MAX)));
    }
    if !has_qualified_form(name) {
        errors.push(format!(
            "name part {}",
            form(
                "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                 character",
                "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
                &["MyName", "my.name", "123-abc"],
            )
        ));
    }
    errors
}

/// The value of a label; it may be empty.
pub fn label_value(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > LABEL_VALUE_MAX {
        errors.push(too_many_bytes(LABEL_VALUE_MAX));
    }
    let shape = check(text, usize::MAX, text.is_empty() || has_qualified_form(text), || {
        form(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        )
    });
    errors.extend(shape);
    errors
}

/// The name of a port: an IANA service name.
pub fn port_name(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 15 {
        errors.push(too_long(15));
    }
    if !text.bytes().all(|byte| is_lower_alphanumeric(byte) || byte == b'-') || text.is_empty() {
        errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        errors.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        errors.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        errors.push("must not begin or end with a hyphen".to_owned());
    }
    errors
}

/// The key of a config map or secret: it becomes a file name.
pub fn config_map_key(text: &str) -> Vec<String> {
    let good = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let mut errors = check(text, DNS_SUBDOMAIN_MAX, good, || {
        form(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        )
    });
    match text {
        "." | ".." => errors.push(format!("must not be '{text}'")),
        text if text.starts_with("..") => errors.push("must not start with '..'".to_owned()),
        _ => {}
    }
    errors
}

/// The name of an environment variable: any printable ASCII but `=`.
pub fn environment_variable(text: &str) -> Vec<String> {
    let good = !text.is_empty() && text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=');
    match good {
        true => Vec::new(),
        false => {
            vec![
                "a valid environment variable name must consist only of printable ASCII characters other than '='"
                    .to_owned(),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rules() {
        type Rule = fn(&str) -> Vec<String>;
        let cases: &[(Rule, &[&str], &[&str])] = &[
            (dns_label, &["a", "0", "a-b", &"x".repeat(63)], &["", "-a", "a-", "A", "a.b", "a_b", &"x".repeat(64)]),
            (dns_subdomain, &["a.b", "0.x", &"x".repeat(253)], &["", ".a", "a.", "a..b", "A", "a/b", &"x".repeat(254)]),
            (dns_1035_label, &["a", "a0"], &["", "0a", "a.b"]),
            (path_segment, &["system:node", "Any Thing"], &[".", "..", "a/b", "a%2fb"]),
            (qualified_name, &["a", "A_b.c", "x.y/Name"], &["", "/a", "a/", "A/b", "a/b/c", "-a", &"x".repeat(64)]),
            (label_value, &["", "A", "a.b_c-d"], &["-", "a ", ".a", &"x".repeat(64)]),
            (port_name, &["http", "a-1"], &["", "1", "a--b", "-a", "a-", "A", "abcdefghijklmnop"]),
            (config_map_key, &["a", "A.b_c-d", ".a"], &["", "a b", ".", "..", "..a"]),
            (environment_variable, &["A", "a b", "a.b-c"], &["", "a=b", "\u{e9}"]),
        ];
        for (rule, good, bad) in cases {
            good.iter().for_each(|name| assert_eq!(rule(name), [""; 0], "{name:?}"));
            bad.iter().for_each(|name| assert!(!rule(name).is_empty(), "{name:?}"));
        }
    }

    #[test]
    fn messages_are_those_clients_know() {
        assert_eq!(
            dns_subdomain("Bad"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
              start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
              '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(dns_label(&"x".repeat(64)), ["must be no more than 63 characters"]);
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert_eq!(label_value(&"x".repeat(64)), ["must be no more than 63 bytes"]);
        assert_eq!(qualified_name(&"x".repeat(64)), ["name part must be no more than 63 bytes"]);
    }
}
