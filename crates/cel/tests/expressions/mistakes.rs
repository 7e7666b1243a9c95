//! What is said about expressions that do not compile.

use crate::{compile, shown};
use cel::{Budget, Environment, Type, Variables};
use object::json;
use proptest::prelude::*;

/// Where, and what.
fn first_mistake(source: &str) -> String {
    let issues = compile(source).map(|_| String::new()).unwrap_or_else(|issues| issues);
    let issues = issues.lines().next().unwrap_or_default();
    issues.strip_prefix("ERROR: <input>:").unwrap_or(issues).to_owned()
}

#[test]
fn mistakes_are_told_in_the_words_of_kubernetes() {
    for (source, expected) in [
        ("x", "1:1: undeclared reference to 'x' (in container '')"),
        ("f(1)", "1:2: undeclared reference to 'f' (in container '')"),
        ("1 + 'a'", "1:3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("'a'.matches(1)", "1:12: found no matching overload for 'matches' applied to 'string.(int)'"),
        ("size(1)", "1:5: found no matching overload for 'size' applied to '(int)'"),
        ("1 && true", "1:1: expected type 'bool' but found 'int'"),
        ("[1, 'a']", "1:5: expected type 'int' but found 'string'"),
        ("{'a': 1, 'b': 'c'}", "1:15: expected type 'int' but found 'string'"),
        ("[1, dyn(2)]", "1:8: expected type 'int' but found 'dyn'"),
        ("true ? 1 : 'a'", "1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
        ("1.a", "1:2: type 'int' does not support field selection"),
        (
            "'a'.all(x, true)",
            "1:1: expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("[1].all(1, true)", "1:9: argument must be a simple name"),
        ("[1].map(1, true)", "1:9: argument is not an identifier"),
        ("[1].all(x, 1)", "1:12: expected type 'bool' but found 'int'"),
        ("[1].all(__result__, true)", "1:9: iteration variable overwrites accumulator variable"),
        ("[1].all(i, i, true)", "1:12: duplicate variable name: i"),
        ("has(1)", "1:5: invalid argument to has() macro"),
        ("duration('x')", "1:10: invalid duration argument"),
        ("int('x')", "1:5: invalid int argument"),
        ("timestamp(-62135596801)", "1:11: invalid timestamp argument"),
        ("'a'.findAll(')', 1)", "1:13: invalid findAll argument"),
        ("timestamp('x')", "1:11: invalid timestamp argument"),
        ("'a'.matches('(')", "1:13: invalid matches argument"),
        ("Object{a: 1}", "1:7: undeclared reference to 'Object' (in container '')"),
        ("[?1]", "1:3: expected type 'optional_type(int)' but found 'int'"),
        ("'a'.reverse()", "1:12: found no matching overload for 'reverse' applied to 'string.()'"),
        ("math.greatest(1, 2)", "1:1: undeclared reference to 'math' (in container '')"),
        ("null == 1", "1:6: found no matching overload for '_==_' applied to '(null, int)'"),
    ] {
        assert_eq!(first_mistake(source), expected, "{source}");
    }
}

#[test]
fn all_mistakes_are_told_with_a_line_that_points() {
    let issues = compile("a ||\n  b").map(|_| ()).unwrap_err();
    assert_eq!(
        issues,
        "ERROR: <input>:1:1: undeclared reference to 'a' (in container '')\n | a ||\n | ^\n\
         ERROR: <input>:2:3: undeclared reference to 'b' (in container '')\n |   b\n | ..^"
    );
}

#[test]
fn types_are_inferred_through_everything() {
    let environment = Environment::new().typed("d", Type::Dyn).typed("q", Type::Abstract("kubernetes.Quantity".into()));
    for (source, expected) in [
        ("[1, 2].map(x, string(x))", "list(string)"),
        ("[]", "list(dyn)"),
        ("[] + [1]", "list(int)"),
        ("{'a': [1]}['a'][0]", "int"),
        ("d.a.b[0]", "dyn"),
        ("d + 1", "int"),
        ("d.size()", "int"),
        ("true ? d : 1", "dyn"),
        ("optional.of(1).optMap(x, [x])", "optional_type(list(int))"),
        ("{'a': 1}.?a.orValue(2)", "int"),
        ("q.add(1)", "kubernetes.Quantity"),
        ("type(1)", "type(int)"),
        ("{'a': 1}.transformMap(k, v, string(v))", "map(string, string)"),
        ("[d, d]", "list(dyn)"),
        ("[optional.of(1)].map(x, x.value()).max()", "int"),
        ("format.named('uri').value().validate('a').orValue([])", "list(string)"),
    ] {
        let program = environment.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        assert_eq!(program.output_type().to_string(), expected, "{source}");
    }
}

#[test]
fn a_program_can_be_shared_between_threads() {
    fn shared(_: &(impl Send + Sync)) {}
    shared(&compile("1 + 1").unwrap());
}

proptest! {
    /// Whatever people write, they get an answer.
    #[test]
    fn no_text_is_too_strange(words in prop::collection::vec(prop::sample::select(WORDS), 0..20)) {
        let environment = Environment::new().typed("d", Type::Dyn).with_bindings();
        if let Ok(program) = environment.compile(&words.join(" ")) {
            let object = json!({ "a": [1, 2.5, "x", null, true, { "b": "2026-01-02T03:04:05Z" }] });
            let variables = Variables::new().json("d", &object);
            let value = program.evaluate(&variables, &mut Budget::default().per_call(10_000));
            prop_assert!(value.is_ok() || value.is_err());
            prop_assert!(program.estimate().min <= program.estimate().max);
        }
    }
}

/// Expressions about anything at all: types are found out at run time only, so everything meets everything.
fn anything() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(LEAVES).prop_map(|leaf| format!("dyn({leaf})"));
    leaf.prop_recursive(5, 40, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        let operators = &["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "in", "&&", "||"];
        prop_oneof![
            (pair.clone(), prop::sample::select(operators)).prop_map(|((a, b), op)| format!("dyn({a} {op} {b})")),
            (inner.clone(), prop::sample::select(FUNCTIONS))
                .prop_map(|(a, call)| format!("dyn({})", call.replace('_', &a))),
            (pair.clone(), prop::sample::select(MEMBERS))
                .prop_map(|((a, b), call)| format!("dyn({a}{})", call.replace('_', &b))),
            pair.prop_map(|(a, b)| format!("dyn([{a}, {b}])")),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("dyn({a} ? {b} : {{{b}: {c}}})")),
        ]
    })
}

const LEAVES: &[&str] = &[
    "1",
    "-9223372036854775808",
    "0u",
    "18446744073709551615u",
    "1.5",
    "0.0 / 0.0",
    "1e300",
    "'a,b'",
    "''",
    "b'\\xff'",
    "true",
    "null",
    "[]",
    "{}",
    "duration('2562047h')",
    "timestamp('9999-12-31T23:59:59Z')",
    "optional.none()",
    "d",
    "d.a",
    "type(1)",
    "ip('::1')",
    "quantity('1Ei')",
    "'%s%d%e%x'",
    "'(a|b)+'",
    "9223372036854775807",
    "optional.of([1])",
];

/// With the place for an argument.
const FUNCTIONS: &[&str] = &[
    "!_",
    "-_",
    "size(_)",
    "int(_)",
    "uint(_)",
    "double(_)",
    "string(_)",
    "bytes(_)",
    "bool(_)",
    "duration(_)",
    "timestamp(_)",
    "type(_)",
    "lists.range(_)",
    "quantity(_)",
    "semver(_, true)",
    "url(_)",
    "ip(_)",
    "cidr(_)",
    "strings.quote(_)",
    "optional.of(_)",
    "optional.ofNonZeroValue(_)",
    "has(_.a)",
    "format.named(_)",
    "isURL(_)",
    "cel.bind(x, _, [x, x])",
];

const MEMBERS: &[&str] = &[
    "[_]",
    ".a",
    ".?a",
    "[?_]",
    ".orValue(_)",
    ".or(_)",
    ".map(x, x)",
    ".filter(x, x == _)",
    ".all(x, x < _)",
    ".exists(i, x, x == _)",
    ".transformMap(k, v, _)",
    ".optMap(x, _)",
    ".sortBy(x, _)",
    ".sort()",
    ".sum()",
    ".max()",
    ".distinct()",
    ".flatten(_)",
    ".reverse()",
    ".slice(0, _)",
    ".indexOf(_)",
    ".lastIndexOf(_, 1)",
    ".charAt(_)",
    ".substring(1, _)",
    ".split(_, 2)",
    ".join(_)",
    ".replace(_, 'xx')",
    ".format([_, _])",
    ".matches(_)",
    ".findAll(_)",
    ".getHours(_)",
    ".getDayOfYear()",
    ".containsIP(_)",
    ".add(_)",
    ".compareTo(_)",
    ".value()",
    ".validate(_)",
    ".startsWith(_)",
    ".first()",
];

proptest! {
    #[test]
    fn values_of_all_kinds_meet_without_harm(source in anything()) {
        let environment = Environment::new().typed("d", Type::Dyn).with_bindings();
        let program = match environment.compile(&source) {
            Ok(program) => program,
            Err(issues) => {
                prop_assert!(issues.to_string().contains("invalid"), "{}", issues);
                return Ok(());
            }
        };
        let object = json!({ "a": [1, 2.5, "x", null, true, { "b": "2026-01-02T03:04:05Z" }] });
        let variables = Variables::new().json("d", &object);
        let evaluate = || shown(program.evaluate(&variables, &mut Budget::default().per_call(100_000)));
        prop_assert_eq!(evaluate(), evaluate());
        let estimate = program.estimate();
        prop_assert!(estimate.min <= estimate.max);
    }
}

#[test]
fn expressions_do_not_grow_without_bound() {
    let issues = compile(&("optional.of(1)".to_owned() + &".optMap(x, x)".repeat(100))).unwrap_err();
    assert!(issues.contains("expression is too large with its macros expanded"), "{issues}");
    assert!(compile(&("optional.of(1)".to_owned() + &".optMap(x, x)".repeat(8))).is_ok());
}

#[test]
fn the_deepest_expressions_are_evaluated() {
    for (open, inner, close, depth) in [
        ("!(", "true", ")", 240),
        ("1 + (", "1", ")", 240),
        ("[", "1", "]", 240),
        ("true ? (", "1", ") : 0", 80),
        ("[1].all(x, ", "x == 1", ")", 240),
        ("[1].map(x, ", "x", ")", 240),
        ("cel.bind(x, ", "1", ", x)", 240),
        ("string(", "'a'", ")", 240),
    ] {
        let source = open.repeat(depth) + inner + &close.repeat(depth);
        let program = compile(&source).unwrap_or_else(|issues| panic!("{issues}"));
        let value = program.evaluate(&Variables::new(), &mut Budget::default());
        assert!(value.is_ok(), "{source}: {value:?}");
        assert!(program.estimate().min <= program.estimate().max, "{source}");
    }
}

const WORDS: &[&str] = &[
    "d",
    "d.a",
    "1",
    "-1",
    "0",
    "2u",
    "1.5",
    "'a'",
    "b'a'",
    "true",
    "null",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ",",
    ".",
    ":",
    "?",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "<",
    "&&",
    "||",
    "!",
    "in",
    ".map(x, x)",
    ".all(x, x == d)",
    "x",
    "[0]",
    ".?a",
    "[?0]",
    ".orValue(1)",
    ".size()",
    "size(",
    "string(",
    "int(",
    "duration('1s')",
    ".matches('a')",
    "[1, 2]",
    "{'a': 1}",
    ".a",
    ".sort()",
    "has(d.a)",
    "cel.bind(x, d, x)",
    ".join(',')",
    "type(",
    "dyn(",
    ".transformMap(k, v, v)",
];

#[test]
fn what_only_some_environments_have_is_unknown_to_others() {
    assert!(Environment::new().compile("cel.bind(x, 1, x)").is_err());
    assert!(Environment::new().compile("jsonpatch.escapeKey('a/b')").is_err());
    assert!(Environment::new().with_patches().compile("jsonpatch.escapeKey('a/b') == 'a~1b'").is_ok());
}
