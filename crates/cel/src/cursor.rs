//! Going through tokens one by one.

use crate::issue::{Issue, Position};
use crate::lexer::{Lexeme, Token};

/// What was read, or why it could not be.
pub(crate) type Parsed<T> = Result<T, Issue>;

pub(crate) struct Cursor {
    /// The last is the end.
    lexemes: Vec<Lexeme>,
    next: usize,
}

impl Cursor {
    pub(crate) fn new(lexemes: Vec<Lexeme>) -> Cursor {
        Cursor { lexemes, next: 0 }
    }

    pub(crate) fn peek(&self) -> &Token {
        &self.lexemes[self.next].token
    }

    /// What comes next, and all that follows.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &Token> {
        self.lexemes[self.next..].iter().map(|lexeme| &lexeme.token)
    }

    pub(crate) fn position(&self) -> Position {
        self.lexemes[self.next].position
    }

    pub(crate) fn advance(&mut self) -> Lexeme {
        let lexeme = self.lexemes[self.next].clone();
        self.next = (self.next + 1).min(self.lexemes.len() - 1);
        lexeme
    }

    /// Takes the symbol if it comes next.
    pub(crate) fn accept(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(next) if *next == symbol);
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.accept(symbol) {
            return Ok(());
        }
        Err(self.unexpected("mismatched", &format!("'{symbol}'")))
    }

    /// Whether there is one token before the end.
    pub(crate) fn is_last(&self) -> bool {
        self.next + 2 == self.lexemes.len()
    }

    pub(crate) fn no_alternative(&self, before: &str) -> Issue {
        let Lexeme { token, position, text } = &self.lexemes[self.next];
        let text = if *token == Token::End { "" } else { text };
        let message = format!("Syntax error: no viable alternative at input '{before}{text}'");
        Issue { position: *position, message }
    }

    pub(crate) fn unexpected(&self, how: &str, expected: &str) -> Issue {
        let text = &self.lexemes[self.next].text;
        let message = format!("Syntax error: {how} input '{text}' expecting {expected}");
        Issue { position: self.position(), message }
    }
}
