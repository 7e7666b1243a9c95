//! What evaluations cost, and what happens to those that cost too much.

use crate::compile;
use cel::{Budget, Environment, Error, Type, Variables};
use object::json;

#[test]
fn what_is_done_is_what_is_paid_for() {
    let input = json!({
        "list": [1, 2], "map": { "a": { "n": 1 } }, "text": "x".repeat(500), "key": "a", "flag": true, "i": 0,
    });
    let environment = Environment::new().typed("input", Type::Dyn).with_bindings();
    for (source, expected) in [
        ("'constant'", 0),
        ("input", 1),
        ("input.list", 2),
        ("input.list[0]", 3),
        ("input.map[input.key]", 4),
        ("input.list[1 - 1]", 4),
        ("has(input.map.a)", 2),
        ("has(input.map.b)", 2),
        ("1 + 1", 1),
        ("[1, 2, 3]", 0),
        ("[input.i, input.i]", 14),
        ("{'a': input.i}", 32),
        ("2 in [1, 2, 3]", 0),
        ("2 in input.list", 4),
        ("[1, 2, 3].all(x, true)", 10),
        ("input.map.all(k, input.map[k].n > 0)", 2 + 2 + (1 + 4 + 1) + 1),
        ("[1, 2, 3, 4, 5].filter(x, x % 2 == 0)", 42),
        ("input.text.matches('[0-9]')", 2 + 51 * 2),
        ("'123'.matches('[0-9]')", 2),
        ("input.text.contains('abc')", 2 + 50),
        ("input.text.startsWith('x')", 2 + 50),
        ("input.text == input.text", 4 + 50),
        ("input.text + 'y'", 2 + 51),
        ("size(input.text)", 3),
        ("input.flag ? input.i : 1 / 0", 2 + 1),
        ("(input.flag ? input : input).i", 2 + 1),
        ("input.flag || input.i > 0", 2),
        ("!input.flag || input.i > 0", 3 + 2 + 1),
        ("cel.bind(x, input.text, true)", 0),
        ("input.list.map(x, x)", 2 + 2 * (1 + 1 + 10 + 1) + 1),
        ("duration('1s') < duration('2s')", 1),
        ("quantity('100Mi').isLessThan(quantity('1Gi'))", 3),
        ("sets.contains(input.list, [1, 2])", 2 + 1 + 4),
        ("input.list.sort()", 2 + 1 + 10 + 8),
    ] {
        let program = environment.compile(source).unwrap_or_else(|issues| panic!("{issues}"));
        let mut budget = Budget::new(1000);
        let value = program.evaluate(&Variables::new().json("input", &input), &mut budget);
        assert!(value.is_ok(), "{source}: {value:?}");
        assert_eq!(1000 - budget.remaining(), expected, "{source}");
    }
}

#[test]
fn an_evaluation_that_goes_on_for_too_long_is_ended_and_cannot_be_absorbed() {
    let program = compile("lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0)) || true").unwrap();
    let mut budget = Budget::default();
    let error = program.evaluate(&Variables::new(), &mut budget).unwrap_err();
    assert_eq!(error, Error::CallCostExceeded);
    assert_eq!(error.to_string(), "operation cancelled: actual cost limit exceeded");
    assert!((8_990_000..9_000_000).contains(&budget.remaining()), "{}", budget.remaining());
}

#[test]
fn what_would_cost_too_much_is_not_begun() {
    let program = compile("cel.bind(l, lists.range(900000), sets.contains(l, l.reverse()))").unwrap();
    let error = program.evaluate(&Variables::new(), &mut Budget::new(u64::MAX).per_call(3_000_000)).unwrap_err();
    assert_eq!(error, Error::CallCostExceeded);
}

#[test]
fn only_so_many_regular_expressions_are_compiled() {
    let with = |pattern: &str| {
        let program = compile(&format!("lists.range(2000).all(x, 'a1'.matches({pattern}))")).unwrap();
        program.evaluate(&Variables::new(), &mut Budget::default()).map(|value| value.as_bool())
    };
    assert_eq!(with("'a|' + string(x % 10)"), Ok(Some(true)));
    assert_eq!(with("'a|' + string(x)"), Err(Error::CallCostExceeded));
}

#[test]
fn a_budget_is_shared_by_evaluations() {
    let program = compile("lists.range(100).all(x, x >= 0)").unwrap();
    let mut budget = Budget::new(1000);
    let evaluate = |budget: &mut Budget| program.evaluate(&Variables::new(), budget).map(|value| value.as_bool());
    assert_eq!(evaluate(&mut budget), Ok(Some(true)));
    assert_eq!(evaluate(&mut budget), Err(Error::OutOfBudget));
    assert_eq!(budget.remaining(), 0);
}

#[test]
fn neither_text_nor_lists_grow_without_bound() {
    let source = "cel.bind(s, '%s'.format([lists.range(9000)]), s.replace('', s))";
    let error = compile(source).unwrap().evaluate(&Variables::new(), &mut Budget::default()).unwrap_err();
    assert_eq!(error.to_string(), "text is longer than 16777216 bytes");
    let doubled = ".map(x, x + x)".repeat(40);
    let source = format!("[lists.range(1000)]{doubled}.size() == 1");
    let error = compile(&source).unwrap().evaluate(&Variables::new(), &mut Budget::default()).unwrap_err();
    assert_eq!(error, Error::CallCostExceeded);
}
