//! What Kubernetes adds to the language.

use crate::{give, hold};

#[test]
fn text_is_counted_in_characters() {
    give(&[
        ("'täst'.charAt(1) + 'a'.charAt(1)", "\"ä\""),
        ("'a'.charAt(2)", "error: index out of range: 2"),
        ("'tästä'.indexOf('ä') * 10 + 'tästä'.lastIndexOf('ä')", "14"),
        ("'tästä'.indexOf('ä', 2)", "4"),
        ("'tästä'.lastIndexOf('ä', 3)", "1"),
        ("'abc'.indexOf('x') + 'abc'.lastIndexOf('')", "2"),
        ("'abc'.indexOf('b', -1)", "error: index out of range: -1"),
        ("'tacocat'.substring(4) + 'tacocat'.substring(0, 4)", "\"cattaco\""),
        ("'ab'.substring(2, 1)", "error: invalid substring range. start: 2, end: 1"),
        ("'ab'.substring(3)", "error: index out of range: 3"),
        ("'TäST'.lowerAscii() + 'tä'.upperAscii()", "\"tästTä\""),
        ("'  a b \\t'.trim()", "\"a b\""),
        ("'a-b-c'.replace('-', '+') + 'a-b-c'.replace('-', '', 1)", "\"a+b+cab-c\""),
        ("'ab'.replace('', '.')", "\".a.b.\""),
        ("'a,b,c'.split(',') + 'a,b,c'.split(',', 2) + 'ab'.split('')", r#"["a","b","c","a","b,c","a","b"]"#),
        ("'a,b'.split(',', 0)", "[]"),
        ("['a', 'b'].join() + ['a', 'b'].join('-')", "\"aba-b\""),
        ("strings.quote('a\"\\n')", r#""\"a\\\"\\n\"""#),
        ("'x'.contains('') && 'abc'.startsWith('ab') && 'abc'.endsWith('bc')", "true"),
    ]);
}

#[test]
fn text_is_formatted_as_people_read_it() {
    give(&[
        ("'%s is %d%%'.format(['a', 50])", "\"a is 50%\""),
        ("'%.2f %f'.format([1234567.891, 1.5])", "\"1,234,567.89 1.500000\""),
        ("'%e'.format([1052.032911275])", "\"1.052033×10⁰³\""),
        ("'%x %X %o %b'.format([255, 'hi', 8, -5])", "\"ff 6869 10 -101\""),
        (
            "'%s %s'.format([['a', 1.5, null], {'b': true, 'a': 1u}])",
            r#""[\"a\", 1.500000, null] {\"a\":1, \"b\":true}""#,
        ),
        ("'%s'.format([duration('90s')])", "\"90s\""),
        (
            "'%d'.format(['a'])",
            "error: error during formatting: decimal clause can only be used on integers, was given string",
        ),
        ("'%s'.format([])", "error: index 0 out of range"),
        ("'%'.format([1])", "error: unexpected end of string"),
        ("'%q'.format([1])", "error: error during formatting: unrecognized formatting clause \"q\""),
    ]);
}

#[test]
fn regular_expressions_are_found_in_text() {
    give(&[
        ("'abc123'.matches('^[a-z]+[0-9]+$') && matches('a', 'A|a')", "true"),
        ("'abc 123'.find('[0-9]+') + 'abc'.find('[0-9]+')", "\"123\""),
        ("'1 22 333'.findAll('[0-9]+')", r#"["1","22","333"]"#),
        ("'1 22 333'.findAll('[0-9]+', 2)", r#"["1","22"]"#),
        ("'a'.matches('[' + 'a')", "error: error parsing regexp: \"[a\""),
    ]);
}

#[test]
fn lists_are_searched_sorted_and_summed() {
    give(&[
        ("[1, 2, 2].isSorted() && !['b', 'a'].isSorted()", "true"),
        ("[1, 2, 3].sum() + [3, 1, 2].max() + [3, 1, 2].min()", "10"),
        ("string([duration('1s'), duration('2s')].sum())", "\"3s\""),
        ("dyn([]).min()", "error: min called on empty list"),
        ("[1, 2, 1].indexOf(1) + [1, 2, 1].lastIndexOf(1) + [1].indexOf(5)", "1"),
        ("[1, 2, 3].slice(1, 3)", "[2,3]"),
        ("[1].slice(0, 2)", "error: cannot slice(0, 2), list is length 1"),
        ("[[1], [2, 3]].flatten()", "[1,2,3]"),
        ("[dyn(1), dyn([dyn(2), dyn([dyn(3), dyn([4])])])].flatten(2)", "[1,2,3,[4]]"),
        ("[1].flatten(-1)", "error: level must be non-negative"),
        ("lists.range(3)", "[0,1,2]"),
        ("lists.range(100000000)", "error: operation cancelled: actual cost limit exceeded"),
        ("[3, 1, 2].sort() + [1, 2].reverse() + [1, 1, 2].distinct()", "[1,2,3,2,1,1,2]"),
        ("['ccc', 'a', 'bb'].sortBy(x, x.size())", r#"["a","bb","ccc"]"#),
    ]);
    hold(&[
        "sets.contains([1, 2, 3], [2, 3]) && !sets.contains([1], [2])",
        "sets.equivalent([1, 2, 1], [2, 1]) && !sets.equivalent([1], [1, 2])",
        "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [])",
    ]);
}

#[test]
fn addresses_and_networks_know_each_other() {
    hold(&[
        "ip('192.168.0.1').family() == 4 && ip('::1').isLoopback() && ip('::1').family() == 6",
        "isIP('10.0.0.1') && !isIP('10.0.0.256') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0')",
        "ip.isCanonical('2001:db8::1') && !ip.isCanonical('2001:DB8::1')",
        "ip('0.0.0.0').isUnspecified() && ip('169.254.1.1').isLinkLocalUnicast()",
        "ip('224.0.0.1').isLinkLocalMulticast() && ip('8.8.8.8').isGlobalUnicast()",
        "ip('10.0.0.1') == ip('10.0.0.1') && ip('10.0.0.1') != ip('10.0.0.2')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.0.0.0/8').containsCIDR(cidr('0.0.0.0/0'))",
        "cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
        "cidr('2001:db8::/32').prefixLength() == 32 && string(cidr('10.0.0.0/8')) == '10.0.0.0/8'",
        "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08')",
        "type(ip('::1')) == net.IP && string(ip('::1')) == '::1'",
    ]);
    let ip = |text: &str, why: &str| {
        format!("error: IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): {why}")
    };
    let cidr = "error: network address parse error during conversion from string: ".to_owned()
        + "network address parse error during conversion from string: netip.ParsePrefix(\"10.0.0.0/x\"): "
        + "bad bits after slash: \"x\"";
    give(&[
        ("ip('x').family()", &ip("x", "unable to parse IP")),
        ("ip('1.2.3.4.5')", &ip("1.2.3.4.5", "IPv4 address too long")),
        ("ip('1.2.300.4')", &ip("1.2.300.4", "IPv4 field has value >255")),
        ("cidr('10.0.0.0/x')", &cidr),
    ]);
}

#[test]
fn quantities_and_versions_compare_by_what_they_mean() {
    hold(&[
        "quantity('1.5Gi').isGreaterThan(quantity('1G')) && quantity('1k') == quantity('1000')",
        "quantity('500m').add(quantity('1.5')) == quantity('2') && quantity('2').sub(1).asInteger() == 1",
        "quantity('1').compareTo(quantity('2')) == -1 && sign(quantity('-1')) == -1",
        "!quantity('1500m').isInteger() && quantity('1500m').asApproximateFloat() == 1.5",
        "isQuantity('10Mi') && !isQuantity('10 Mi')",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
        "semver('1.0.0-rc.2').compareTo(semver('1.0.0-rc.10')) == -1 && semver('1.2.3').minor() == 2",
        "isSemver('1.0.0+build') && !isSemver('1.0') && isSemver('v1.02', true)",
        "semver('v1.2', true) == semver('1.2.0')",
    ]);
    give(&[
        ("quantity('1m').asInteger()", "error: cannot convert value to integer"),
        ("semver('1').major()", "error: No Major.Minor.Patch elements found"),
    ]);
}

#[test]
fn urls_are_taken_apart() {
    hold(&[
        "url('https://user@example.com:8443/a%20b?x=1&x=2&y=%41#f').getHost() == 'example.com:8443'",
        "url('https://example.com:8443/a b').getEscapedPath() == '/a%20b'",
        "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getPort() == '80'",
        "url('https://example.com/?x=1&x=2&y=%41').getQuery() == {'x': ['1', '2'], 'y': ['A']}",
        "url('/path').getScheme() == '' && url('HTTP://a').getScheme() == 'http'",
        "isURL('https://example.com') && isURL('/a') && !isURL('a/b') && !isURL('../a') && !isURL('https://a:b/')",
    ]);
    give(&[("url('a')", "error: URL parse error during conversion from string: parse \"a\": invalid URI for request")]);
}

#[test]
fn formats_say_what_is_wrong() {
    hold(&[
        "!format.dns1123Label().validate('my-name').hasValue()",
        "format.named('dns1123Label').value().validate('My').value().size() == 1",
        "!format.named('nothing').hasValue()",
        "!format.dns1123LabelPrefix().validate('my-name-').hasValue()",
        "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
        "format.date().validate('2026-02-30').value() == ['invalid date']",
        "!format.datetime().validate('2026-02-03T04:05:06Z').hasValue()",
        "!format.byte().validate('aGVsbG8=').hasValue() && format.byte().validate('a').hasValue()",
        "!format.uri().validate('https://a').hasValue()",
    ]);
}
