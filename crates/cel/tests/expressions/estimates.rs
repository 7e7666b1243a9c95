//! What rules are estimated to cost before there is anything to evaluate them on.

use cel::{Declaration, Environment, RULE_COST_LIMIT, Type, exceeds_budget};
use object::{Value, json};
use std::sync::Arc;

/// The most a rule costs for what a schema declares.
fn most(schema: &Value, source: &str) -> u64 {
    let declared = Arc::new(Declaration::from_schema(schema, false).unwrap());
    let environment = Environment::new().variable("self", declared.clone()).variable("oldSelf", declared);
    environment.compile(source).unwrap_or_else(|issues| panic!("{issues}")).estimate().max
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn map(values: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": values })
}

#[test]
fn without_bounds_the_size_of_requests_is_the_bound() {
    let number = json!({ "type": "number" });
    let text = json!({ "type": "string" });
    let flag = json!({ "type": "boolean" });
    let either = json!({ "x-kubernetes-int-or-string": true });
    let of = |format: &str| json!({ "type": "string", "format": format });
    for (schema, source, expected) in [
        (list(&number), "self.all(x, true)", 4_718_591),
        (list(&text), "self.all(x, true)", 3_145_727),
        (list(&flag), "self.all(x, true)", 1_887_437),
        (list(&list(&number)), "self.all(x, true)", 3_145_727),
        (list(&either), "self.all(x, true)", 4_718_591),
        (list(&of("duration")), "self.all(x, true)", 2_359_295),
        (list(&of("date")), "self.all(x, true)", 725_936),
        (list(&of("date-time")), "self.all(x, true)", 428_963),
        (map(&number), "self.all(x, true)", 1_348_169),
        (map(&text), "self.all(x, true)", 1_179_647),
        (map(&map(&number)), "self.all(x, true)", 1_179_647),
        (map(&of("date-time")), "self.all(x, true)", 349_526),
        (map(&number), "has(self.x)", 1),
        (text.clone(), "self.contains('test')", 314_574),
        (text.clone(), "self.startsWith('test')", 2),
        (text.clone(), "size(self + 'hello') > size('hello')", 314_578),
        (text.clone(), "self.matches('x')", 314_574),
        (text.clone(), "''.matches('(((((((((())))))))))[0-9]')", 7),
        (text.clone(), "self.matches('')", 1),
        (text.clone(), "self == 'x'", 2),
        (of("byte"), "self == b'x'", 2),
        (text.clone(), "self.find('[0-9]+') == ''", 629_147),
        (text, "self.lowerAscii() == 'abc'", 314_575),
        (list(&number), "self[1] == 0.0", 2),
        (list(&json!({ "type": "string" })), "self[1] == self[1]", 314_577),
        (list(&either), "self[0] == 5", 3),
        (list(&list(&number)), "self[0][0] == -1.0", 3),
        (list(&map(&number)), "self.all(x, x.y == 25.2)", 6_291_452),
        (list(&map(&number)), "self[0].x > 2.0", 4),
        (list(&of("duration")), "self[0].getHours() == 2", 4),
        (map(&number), "oldSelf.size() == self.size()", 5),
        (map(&of("date-time")), "self['a'] == self['b']", 8),
    ] {
        assert_eq!(most(&schema, source), expected, "{source} {schema}");
    }
}

#[test]
fn bounds_make_rules_cheaper() {
    let bounded = |mut schema: Value, bound: &str, size: u64| {
        schema[bound] = json!(size);
        schema
    };
    let number = json!({ "type": "number" });
    let numbers = |size| bounded(list(&number), "maxItems", size);
    let text = |size| bounded(json!({ "type": "string" }), "maxLength", size);
    for (schema, source, expected) in [
        (numbers(10), "self.all(x, true)", 32),
        (numbers(10), "self.all(x, self.all(y, true))", 352),
        (numbers(10), "self.all(x, self.all(y, self.all(z, true)))", 3_552),
        (numbers(3 * 1024 * 2048), "self.all(x, x == 0.0)", 25_165_826),
        (bounded(map(&number), "maxProperties", 100), "self.all(x, true)", 302),
        (text(10), "self.contains('test')", 5),
        (text(4), "size(self + 'hello') > size('hello')", 7),
        (text(50), "self.matches('x')", 22),
        (text(0), "self == 'x'", 1),
        (text(10), "self.find('[0-9]+') == ''", 11),
        (text(10), "self.lowerAscii() == 'abc'", 6),
        (bounded(list(&text(10)), "maxItems", 10), "self.isSorted()", 51),
    ] {
        assert_eq!(most(&schema, source), expected, "{source} {schema}");
    }
}

#[test]
fn an_estimate_spans_what_may_be_skipped() {
    let environment = Environment::new().typed("a", Type::Bool).typed("b", Type::Int).with_bindings();
    for (source, min, max) in [
        ("a || b > 1", 1, 3),
        ("a ? b : 1", 1, 2),
        ("cel.bind(x, b, x + x)", 14, 14),
        ("[b, b].map(x, x)", 49, 49),
        ("lists.range(10).sort()", 232, 232),
        ("[3, 1].sort().reverse()", 44, 44),
        ("{'a': b}.all(k, k == 'a')", 35, 37),
        ("optional.of(b).orValue(1)", 3, 3),
    ] {
        let estimate = environment.compile(source).unwrap_or_else(|issues| panic!("{issues}")).estimate();
        assert_eq!((estimate.min, estimate.max), (min, max), "{source}");
    }
}

#[test]
fn selectors_of_devices_are_estimated_by_the_sizes_of_attributes() {
    let text = |size| Declaration::plain(Type::String).at_most(size);
    let attributes = Declaration::map(Declaration::plain(Type::Dyn).at_most(64)).at_most(32);
    let fields = [("driver", text(63)), ("attributes", Declaration::map(attributes).at_most(32))];
    let device =
        Declaration::object("kubernetes.DRADevice", fields.map(|(name, declared)| (name.to_owned(), declared)));
    let environment = Environment::new().variable("device", device).with_bindings();
    for (source, expected) in [
        ("'dra.example.com' in device.attributes", 3),
        ("device.driver == ''", 2),
        ("device.driver == 'dra.example.com'", 4),
        ("device.attributes['dra.example.com'].name > 0", 5),
        ("device.attributes['dra.example.com']['name'] == 'fish'", 5),
        ("cel.bind(dra, device.attributes['dra.example.com'], dra.name)", 15),
        ("device.attributes['dra.example.com'].name.isGreaterThan(quantity('0'))", 6),
        ("device.attributes['dra.example.com'].name.exists(x, x > 0)", 5 + 6 * 64),
    ] {
        let program = environment.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        assert_eq!(program.estimate().max, expected, "{source}");
    }
}

#[test]
fn a_rule_that_costs_too_much_is_told_by_how_much() {
    let advice = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and \
                  strings are declared)";
    for (cost, factor) in [(10_000_001, "1.000000x"), (25_000_000, "2.5x"), (u64::MAX, "more than 100x")] {
        let expected = format!("estimated rule cost exceeds budget by factor of {factor} {advice}");
        assert_eq!(exceeds_budget("estimated rule cost", cost, RULE_COST_LIMIT), expected);
    }
    let declared = Declaration::from_schema(&json!({ "type": "string" }), false).unwrap();
    assert_eq!(declared.max_cardinality(), 3 * 1024 * 1024 / 3);
}
