//! From tokens to a tree, by precedence climbing.
//!
//! Depth is bounded while parsing, since everything that follows recurses over the tree.

use crate::ast::{Ast, Entry, Expr, Field, Item, Kind, Literal, operator};
use crate::cursor::{Cursor, Parsed};
use crate::issue::{Issue, Issues, Position};
use crate::lexer::{self, Token};
use std::sync::Arc;

/// The bound on nesting, which is upstream's too.
const MAX_DEPTH: usize = 250;
/// The bound on the length of an expression, in characters.
const MAX_CHARACTERS: usize = 100_000;

/// What may be the name of a field, but not of a variable.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

const PRIMARY: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, \
                       BYTES, IDENTIFIER}";

pub(crate) fn parse(source: &str) -> Result<Ast, Issues> {
    let fail = |issues| Err(Issues::new(source, issues));
    if source.chars().count() > MAX_CHARACTERS {
        let message = format!(
            "expression code point size exceeds limit: size: {}, limit {MAX_CHARACTERS}",
            source.chars().count()
        );
        return fail(vec![Issue { position: Position::default(), message }]);
    }
    let (lexemes, issues) = lexer::tokens(source);
    let mut parser =
        Parser { tokens: Cursor::new(lexemes), positions: Vec::new(), heights: Vec::new(), depth: 0, issues };
    match parser.everything() {
        Ok(root) if parser.issues.is_empty() => Ok(Ast { root, positions: parser.positions }),
        Ok(_) => fail(parser.issues),
        Err(issue) => fail(parser.issues.into_iter().chain([issue]).collect()),
    }
}

fn too_deep(position: Position) -> Issue {
    Issue { position, message: format!("expression recursion limit exceeded: {MAX_DEPTH}") }
}

struct Parser {
    tokens: Cursor,
    positions: Vec<Position>,
    /// Of each node, by its id.
    heights: Vec<usize>,
    /// How many expressions we are within.
    depth: usize,
    /// Mistakes that do not keep us from reading on.
    issues: Vec<Issue>,
}

impl Parser {
    /// A node; if it is too high a tree, it is a mistake.
    fn node(&mut self, position: Position, kind: Kind) -> Parsed<Expr> {
        let expr = Expr { id: self.positions.len(), kind };
        let height = 1 + expr.parts().into_iter().map(|part| self.heights[part.id]).max().unwrap_or(0);
        if height > MAX_DEPTH {
            return Err(too_deep(position));
        }
        self.positions.push(position);
        self.heights.push(height);
        Ok(expr)
    }

    fn call(&mut self, position: Position, function: &str, args: Vec<Expr>) -> Parsed<Expr> {
        self.node(position, Kind::Call { target: None, function: function.into(), args })
    }

    /// An expression with nothing behind it.
    fn everything(&mut self) -> Parsed<Expr> {
        let root = self.expression()?;
        match self.tokens.peek() {
            Token::End => Ok(root),
            _ if self.tokens.is_last() => Err(self.tokens.unexpected("extraneous", "<EOF>")),
            _ => Err(self.tokens.unexpected("mismatched", "<EOF>")),
        }
    }

    fn expression(&mut self) -> Parsed<Expr> {
        if self.depth == MAX_DEPTH {
            return Err(too_deep(self.tokens.position()));
        }
        self.depth += 1;
        let expression = self.conditional();
        self.depth -= 1;
        expression
    }

    fn conditional(&mut self) -> Parsed<Expr> {
        let condition = self.binary(1)?;
        let position = self.tokens.position();
        if !self.tokens.accept("?") {
            return Ok(condition);
        }
        let positive = self.binary(1)?;
        self.tokens.expect(":")?;
        let negative = self.expression()?;
        self.call(position, operator::CONDITIONAL, vec![condition, positive, negative])
    }

    /// Operators that bind at least as strongly as this.
    fn binary(&mut self, strength: u8) -> Parsed<Expr> {
        let mut left = self.unary()?;
        loop {
            let Token::Symbol(symbol) = *self.tokens.peek() else { return Ok(left) };
            let found = operator::BINARY.iter().find(|(written, binds, _)| *written == symbol && *binds >= strength);
            let Some((_, binds, function)) = found else { return Ok(left) };
            if [operator::AND, operator::OR].contains(function) {
                left = self.chain(left, symbol, *binds, function)?;
                continue;
            }
            let position = self.tokens.position();
            self.tokens.advance();
            let right = self.binary(binds + 1)?;
            left = self.call(position, function, vec![left, right])?;
        }
    }

    /// Chains of `&&` and `||` may be grouped in any way. Long ones are common, so they become a flat tree.
    fn chain(&mut self, first: Expr, symbol: &str, binds: u8, function: &str) -> Parsed<Expr> {
        let (mut terms, mut positions) = (vec![first], Vec::new());
        loop {
            let position = self.tokens.position();
            if !self.tokens.accept(symbol) {
                return self.balanced(function, &mut terms.into_iter(), &positions);
            }
            positions.push(position);
            terms.push(self.binary(binds + 1)?);
        }
    }

    /// Of the terms around these operators, one more than there are of them.
    fn balanced(
        &mut self,
        function: &str,
        terms: &mut std::vec::IntoIter<Expr>,
        positions: &[Position],
    ) -> Parsed<Expr> {
        let middle = positions.len() / 2;
        let Some(position) = positions.get(middle) else {
            return Ok(terms.next().expect("there is a term more than operators"));
        };
        let left = self.balanced(function, terms, &positions[..middle])?;
        let right = self.balanced(function, terms, &positions[middle + 1..])?;
        self.call(*position, function, vec![left, right])
    }

    fn unary(&mut self) -> Parsed<Expr> {
        for (symbol, function) in [("!", operator::NOT), ("-", operator::NEGATE)] {
            let position = self.tokens.position();
            let mut times = 0;
            while self.tokens.accept(symbol) {
                times += 1;
                if symbol == "-" && times == 1 && self.starts_number() {
                    let number = self.negative_number(position)?;
                    return self.members(number);
                }
            }
            if times > 0 {
                let operand = self.member()?;
                return if times % 2 == 0 { Ok(operand) } else { self.call(position, function, vec![operand]) };
            }
        }
        self.member()
    }

    fn starts_number(&self) -> bool {
        matches!(self.tokens.peek(), Token::Literal(Literal::Int(_) | Literal::Double(_)))
    }

    fn negative_number(&mut self, position: Position) -> Parsed<Expr> {
        let literal = match self.tokens.advance().token {
            Token::Literal(Literal::Int(number)) => Literal::Int(number.wrapping_neg()),
            Token::Literal(Literal::Double(number)) => Literal::Double(-number),
            other => unreachable!("{other:?} is no number that can have a sign"),
        };
        self.node(position, Kind::Literal(literal))
    }

    fn member(&mut self) -> Parsed<Expr> {
        let primary = self.primary()?;
        self.members(primary)
    }

    /// What follows a value: `.field`, `.?field`, `.call()`, `[index]`, `[?index]`.
    fn members(&mut self, mut operand: Expr) -> Parsed<Expr> {
        loop {
            let position = self.tokens.position();
            operand = if self.tokens.accept(".") {
                self.selection(position, operand)?
            } else if self.tokens.accept("[") {
                self.index(position, operand)?
            } else {
                return Ok(operand);
            };
        }
    }

    fn selection(&mut self, position: Position, operand: Expr) -> Parsed<Expr> {
        let optional = self.tokens.accept("?");
        let field_position = self.tokens.position();
        let (name, escaped) = match self.tokens.peek().clone() {
            Token::Ident(name) => (name, false),
            Token::Escaped(name) => (name, true),
            _ => return Err(self.tokens.no_alternative(".")),
        };
        self.tokens.advance();
        let name: Arc<str> = name.into();
        if optional {
            let field = self.node(field_position, Kind::Literal(Literal::String(name)))?;
            return self.call(position, operator::OPTIONAL_SELECT, vec![operand, field]);
        }
        let open = self.tokens.position();
        if !escaped && self.tokens.accept("(") {
            let args = self.arguments(")")?;
            return self.node(open, Kind::Call { target: Some(Box::new(operand)), function: name, args });
        }
        self.node(position, Kind::Select { operand: Box::new(operand), field: name, test: false })
    }

    fn index(&mut self, position: Position, operand: Expr) -> Parsed<Expr> {
        let function = if self.tokens.accept("?") { operator::OPTIONAL_INDEX } else { operator::INDEX };
        let index = self.expression()?;
        self.tokens.expect("]")?;
        self.call(position, function, vec![operand, index])
    }

    fn arguments(&mut self, close: &str) -> Parsed<Vec<Expr>> {
        let mut arguments = Vec::new();
        if self.tokens.accept(close) {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if !self.tokens.accept(",") {
                self.tokens.expect(close)?;
                return Ok(arguments);
            }
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let position = self.tokens.position();
        match self.tokens.peek().clone() {
            Token::Literal(Literal::Int(i64::MIN)) => {
                Err(Issue { position, message: "invalid int literal".to_owned() })
            }
            Token::Literal(literal) => {
                self.tokens.advance();
                self.node(position, Kind::Literal(literal))
            }
            Token::Symbol("(") => {
                self.tokens.advance();
                let inner = self.expression()?;
                self.tokens.expect(")")?;
                Ok(inner)
            }
            Token::Symbol("[") => {
                self.tokens.advance();
                let items = self.items("]", |parser| {
                    let optional = parser.tokens.accept("?");
                    Ok(Item { value: parser.expression()?, optional })
                })?;
                self.node(position, Kind::List(items))
            }
            Token::Symbol("{") => {
                self.tokens.advance();
                let entries = self.items("}", |parser| {
                    let optional = parser.tokens.accept("?");
                    let key = parser.expression()?;
                    parser.tokens.expect(":")?;
                    Ok(Entry { key, value: parser.expression()?, optional })
                })?;
                self.node(position, Kind::Map(entries))
            }
            Token::Symbol(".") | Token::Ident(_) => self.named(),
            _ => Err(self.tokens.unexpected("mismatched", PRIMARY)),
        }
    }

    /// Separated by commas, one of which may be the last.
    fn items<T>(&mut self, close: &str, item: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.tokens.accept(close) {
            items.push(item(self)?);
            if !self.tokens.accept(",") {
                self.tokens.expect(close)?;
                break;
            }
        }
        Ok(items)
    }

    /// A variable, a call of a function, or an object that is put together: `Name.of.type{field: value}`.
    fn named(&mut self) -> Parsed<Expr> {
        let position = self.tokens.position();
        let dot = if self.tokens.accept(".") { "." } else { "" };
        if let Some(dots) = self.struct_name() {
            let mut name = dot.to_owned();
            for _ in 0..=2 * dots {
                name.push_str(&self.tokens.advance().text);
            }
            let open = self.tokens.position();
            self.tokens.advance();
            let fields = self.items("}", Self::field)?;
            return self.node(open, Kind::Struct { name: name.into(), fields });
        }
        let Token::Ident(name) = self.tokens.peek().clone() else {
            return Err(self.tokens.unexpected("mismatched", "IDENTIFIER"));
        };
        self.tokens.advance();
        if RESERVED.contains(&name.as_str()) {
            self.issues.push(Issue { position, message: format!("reserved identifier: {name}") });
        }
        let name: Arc<str> = format!("{dot}{name}").into();
        let open = self.tokens.position();
        if self.tokens.accept("(") {
            let args = self.arguments(")")?;
            return self.node(open, Kind::Call { target: None, function: name, args });
        }
        self.node(position, Kind::Ident(name))
    }

    fn field(&mut self) -> Parsed<Field> {
        let optional = self.tokens.accept("?");
        let name = match self.tokens.peek() {
            Token::Ident(name) | Token::Escaped(name) => name.clone(),
            _ => return Err(self.tokens.unexpected("mismatched", "IDENTIFIER")),
        };
        self.tokens.advance();
        let position = self.tokens.position();
        self.tokens.expect(":")?;
        let value = self.expression()?;
        let id = self.positions.len();
        self.positions.push(position);
        self.heights.push(0);
        Ok(Field { id, name: name.into(), value, optional })
    }

    /// How many dots the name has, if what follows is a name and an opening brace.
    fn struct_name(&self) -> Option<usize> {
        let mut rest = self.tokens.rest();
        for dots in 0.. {
            if !matches!(rest.next(), Some(Token::Ident(_))) {
                return None;
            }
            match rest.next() {
                Some(Token::Symbol("{")) => return Some(dots),
                Some(Token::Symbol(".")) => {}
                _ => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named_and_pointed_at() {
        for (source, message) in [
            ("1 +", "1:4: Syntax error: mismatched input '<EOF>' expecting {'['"),
            ("(1", "1:3: Syntax error: mismatched input '<EOF>' expecting ')'"),
            ("1 2", "1:3: Syntax error: extraneous input '2' expecting <EOF>"),
            ("a.1", "1:2: Syntax error: extraneous input '.1' expecting <EOF>"),
            ("a.'b'", "1:3: Syntax error: no viable alternative at input '.'b''"),
            ("a.", "1:3: Syntax error: no viable alternative at input '.'"),
            ("a b c", "1:3: Syntax error: mismatched input 'b' expecting <EOF>"),
            ("1 + $", "1:5: Syntax error: token recognition error at: '$'"),
            ("namespace == 'a'", "1:1: reserved identifier: namespace"),
            ("9223372036854775808", "1:1: invalid int literal"),
        ] {
            let issues = parse(source).expect_err(source).to_string();
            assert!(issues.starts_with(&format!("ERROR: <input>:{message}")), "{issues}");
        }
    }

    #[test]
    fn one_mistake_does_not_hide_the_others() {
        let issues = parse("1 + $").expect_err("there are two mistakes");
        assert_eq!(issues.iter().map(|issue| issue.position.column).collect::<Vec<_>>(), [4, 5]);
        assert!(parse("1 $ + 2").is_err());
        assert_eq!(parse("[9223372036854775809]").expect_err("the number is too large").iter().count(), 1);
    }

    #[test]
    fn depth_is_bounded_whatever_it_is_made_of() {
        let deep = [
            format!("{}1{}", "(".repeat(300), ")".repeat(300)),
            "1+".repeat(300) + "1",
            "a".to_owned() + &".b".repeat(300),
            "[".repeat(20_000),
            "a ? b : ".repeat(300) + "c",
        ];
        for source in deep {
            let issues = parse(&source).expect_err(&source).to_string();
            assert!(issues.contains("expression recursion limit exceeded: 250"), "{issues}");
        }
        assert!(parse(&("a && ".repeat(5000) + "b")).is_ok());
        assert!(parse(&"1".repeat(100_001)).is_err());
    }

    #[test]
    fn the_smallest_integer_can_be_written() {
        let smallest = parse("-9223372036854775808").unwrap().root.kind;
        assert_eq!(smallest, Kind::Literal(Literal::Int(i64::MIN)));
    }
}
