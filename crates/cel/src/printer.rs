//! Trees as text again: for messages, and to show that nothing is lost in reading.

use crate::ast::{Expr, Kind, Literal, operator};
use std::fmt::{self, Display, Formatter, Write};

/// What stands as an operand of something: of which strength, operators within need no parentheses.
const MEMBER: u8 = 7;
const UNARY: u8 = 6;

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_expr(f, self, 0)
    }
}

fn write_expr(f: &mut Formatter<'_>, expr: &Expr, strength: u8) -> fmt::Result {
    let parentheses = own_strength(expr) < strength;
    if parentheses {
        f.write_char('(')?;
    }
    match &expr.kind {
        Kind::Literal(literal) => write_literal(f, literal)?,
        Kind::Ident(name) => f.write_str(name)?,
        Kind::Select { operand, field, test } => {
            f.write_str(if *test { "has(" } else { "" })?;
            write_expr(f, operand, MEMBER)?;
            f.write_char('.')?;
            write_field(f, field)?;
            f.write_str(if *test { ")" } else { "" })?;
        }
        Kind::Call { target: Some(target), function, args } => {
            write_expr(f, target, MEMBER)?;
            write!(f, ".{function}")?;
            write_list(f, "(", args, ")", |f, arg| write_expr(f, arg, 0))?;
        }
        Kind::Call { target: None, function, args } => write_call(f, function, args)?,
        Kind::List(items) => write_list(f, "[", items, "]", |f, item| {
            f.write_str(if item.optional { "?" } else { "" })?;
            write_expr(f, &item.value, 0)
        })?,
        Kind::Map(entries) => write_list(f, "{", entries, "}", |f, entry| {
            f.write_str(if entry.optional { "?" } else { "" })?;
            write_expr(f, &entry.key, 0)?;
            f.write_str(": ")?;
            write_expr(f, &entry.value, 0)
        })?,
        Kind::Struct { name, fields } => {
            f.write_str(name)?;
            write_list(f, "{", fields, "}", |f, field| {
                f.write_str(if field.optional { "?" } else { "" })?;
                write_field(f, &field.name)?;
                f.write_str(": ")?;
                write_expr(f, &field.value, 0)
            })?;
        }
        Kind::Comprehension(loops) => write!(f, "{}.@fold({}, {})", loops.range, loops.variable, loops.step)?,
    }
    f.write_str(if parentheses { ")" } else { "" })
}

fn own_strength(expr: &Expr) -> u8 {
    match &expr.kind {
        Kind::Call { target: None, function, .. } => match &**function {
            operator::CONDITIONAL => 0,
            operator::NOT | operator::NEGATE => UNARY,
            function => {
                operator::BINARY.iter().find(|(_, _, known)| *known == function).map_or(MEMBER, |(_, binds, _)| *binds)
            }
        },
        // A sign would be taken for an operator.
        Kind::Literal(Literal::Int(i64::MIN..0)) => UNARY,
        Kind::Literal(Literal::Double(double)) if double.is_sign_negative() => UNARY,
        _ => MEMBER,
    }
}

fn write_call(f: &mut Formatter<'_>, function: &str, args: &[Expr]) -> fmt::Result {
    if let (Some((written, binds, _)), [left, right]) =
        (operator::BINARY.iter().find(|(_, _, known)| *known == function), args)
    {
        // Chains of these two are regrouped in reading, so each group is told.
        let regrouped = [operator::AND, operator::OR].contains(&function);
        write_expr(f, left, binds + u8::from(regrouped))?;
        write!(f, " {written} ")?;
        return write_expr(f, right, binds + 1);
    }
    match (function, args) {
        (operator::CONDITIONAL, [condition, positive, negative]) => {
            write_expr(f, condition, 1)?;
            f.write_str(" ? ")?;
            write_expr(f, positive, 1)?;
            f.write_str(" : ")?;
            write_expr(f, negative, 0)
        }
        (operator::NOT | operator::NEGATE, [operand]) => {
            f.write_str(&function[..1])?;
            // Before a number a minus sign would be part of it.
            let number = function == operator::NEGATE && starts_with_literal(operand);
            write_expr(f, operand, if number { u8::MAX } else { MEMBER })
        }
        (operator::INDEX | operator::OPTIONAL_INDEX, [operand, index]) => {
            write_expr(f, operand, MEMBER)?;
            f.write_str(if function == operator::INDEX { "[" } else { "[?" })?;
            write_expr(f, index, 0)?;
            f.write_char(']')
        }
        (operator::OPTIONAL_SELECT, [operand, Expr { kind: Kind::Literal(Literal::String(field)), .. }]) => {
            write_expr(f, operand, MEMBER)?;
            f.write_str(".?")?;
            write_field(f, field)
        }
        _ => {
            f.write_str(function)?;
            write_list(f, "(", args, ")", |f, arg| write_expr(f, arg, 0))
        }
    }
}

fn starts_with_literal(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_) => true,
        Kind::Select { operand, .. } => starts_with_literal(operand),
        Kind::Call { target: Some(target), .. } => starts_with_literal(target),
        Kind::Call { target: None, args, .. } => args.first().is_some_and(starts_with_literal),
        _ => false,
    }
}

fn write_list<T>(
    f: &mut Formatter<'_>,
    open: &str,
    items: &[T],
    close: &str,
    write: impl Fn(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    f.write_str(open)?;
    for (index, item) in items.iter().enumerate() {
        f.write_str(if index > 0 { ", " } else { "" })?;
        write(f, item)?;
    }
    f.write_str(close)
}

fn write_field(f: &mut Formatter<'_>, field: &str) -> fmt::Result {
    let plain = field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !field.starts_with(|c: char| c.is_ascii_digit())
        && !["true", "false", "null", "in"].contains(&field);
    if plain { f.write_str(field) } else { write!(f, "`{field}`") }
}

fn write_literal(f: &mut Formatter<'_>, literal: &Literal) -> fmt::Result {
    match literal {
        Literal::Null => f.write_str("null"),
        Literal::Bool(value) => write!(f, "{value}"),
        Literal::Int(value) => write!(f, "{value}"),
        Literal::Uint(value) => write!(f, "{value}u"),
        Literal::Double(value) => write!(f, "{value:?}"),
        Literal::String(text) => f.write_str(&quoted(text)),
        Literal::Bytes(bytes) => {
            f.write_str("b\"")?;
            bytes.iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
            f.write_char('"')
        }
    }
}

/// Text between quotation marks, with escapes for what cannot stand there.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            character => out.push(character),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::{Entry, Item};
    use crate::parser;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn expr(kind: Kind) -> Expr {
        Expr { id: 0, kind }
    }

    fn call(function: &str, args: Vec<Expr>) -> Expr {
        expr(Kind::Call { target: None, function: function.into(), args })
    }

    fn literal() -> impl Strategy<Value = Expr> {
        prop_oneof![
            any::<bool>().prop_map(Literal::Bool),
            any::<i64>().prop_map(Literal::Int),
            any::<u64>().prop_map(Literal::Uint),
            (-1e300..1e300).prop_map(Literal::Double),
            any::<String>().prop_map(|text| Literal::String(text.replace("\r\n", "").into())),
            any::<Vec<u8>>().prop_map(|bytes| Literal::Bytes(bytes.into())),
            Just(Literal::Null),
        ]
        .prop_map(|literal| expr(Kind::Literal(literal)))
    }

    fn name() -> impl Strategy<Value = Arc<str>> {
        "[a-z]{1,3}_".prop_map(Into::into)
    }

    fn tree() -> impl Strategy<Value = Expr> {
        let leaf = prop_oneof![literal(), name().prop_map(|name| expr(Kind::Ident(name)))];
        leaf.prop_recursive(6, 60, 3, |inner| {
            let pair = (inner.clone(), inner.clone());
            prop_oneof![
                (0..operator::BINARY.len(), pair.clone())
                    .prop_map(|(row, (left, right))| call(operator::BINARY[row].2, vec![left, right])),
                (prop_oneof![Just(operator::NOT), Just(operator::NEGATE)], inner.clone())
                    .prop_map(|(function, operand)| call(function, vec![operand])),
                (inner.clone(), pair.clone())
                    .prop_map(|(condition, (yes, no))| call(operator::CONDITIONAL, vec![condition, yes, no])),
                (prop_oneof![Just(operator::INDEX), Just(operator::OPTIONAL_INDEX)], pair)
                    .prop_map(|(function, (operand, index))| call(function, vec![operand, index])),
                (inner.clone(), "[a-z/.]{1,4}").prop_map(|(operand, field)| {
                    expr(Kind::Select { operand: Box::new(operand), field: field.into(), test: false })
                }),
                (inner.clone(), "[a-z]{1,4}").prop_map(|(operand, field)| {
                    let field = expr(Kind::Literal(Literal::String(field.into())));
                    call(operator::OPTIONAL_SELECT, vec![operand, field])
                }),
                (proptest::option::of(inner.clone()), name(), prop::collection::vec(inner.clone(), 0..3)).prop_map(
                    |(target, function, args)| expr(Kind::Call { target: target.map(Box::new), function, args })
                ),
                prop::collection::vec((inner.clone(), any::<bool>()), 0..3).prop_map(|items| {
                    let items = items.into_iter().map(|(value, optional)| Item { value, optional });
                    expr(Kind::List(items.collect()))
                }),
                prop::collection::vec((inner.clone(), inner, any::<bool>()), 0..3).prop_map(|entries| {
                    let entries = entries.into_iter().map(|(key, value, optional)| Entry { key, value, optional });
                    expr(Kind::Map(entries.collect()))
                }),
            ]
        })
    }

    /// The numbers of nodes tell where they stand, and nothing else.
    fn without_ids(expr: &Expr) -> String {
        let text = format!("{expr:?}");
        let mut parts = text.split("id: ");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + part.trim_start_matches(|c: char| c.is_ascii_digit()))
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_as_the_same_tree(tree in tree()) {
            let printed = tree.to_string();
            let read = parser::parse(&printed).map_err(|issues| TestCaseError::fail(issues.to_string()))?;
            prop_assert_eq!(without_ids(&read.root), without_ids(&tree), "{}", printed);
        }
    }

    #[test]
    fn operators_get_the_parentheses_they_need() {
        for source in [
            "1 + 2 * 3",
            "(1 + 2) * 3",
            "a - (b - c)",
            "!a.b && -c < 4",
            "-(4)",
            "(a ? b : c) ? d : e ? f : g",
            "a.?b[?0].orValue({?\"x\": [?y]}).`k8s.io/name`",
            "Object.spec{a: 1, ?b: c}",
            "(a && b) && (c || d)",
            ".a.b(\"\\n\\\"\")",
        ] {
            assert_eq!(parser::parse(source).unwrap().root.to_string(), source);
        }
    }
}
