//! From text to tokens.

use crate::ast::Literal;
use crate::issue::{Issue, Position};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Literal(Literal),
    Ident(String),
    /// A name in backticks, which may be that of a field only.
    Escaped(String),
    /// An operator, a bracket or the word `in`.
    Symbol(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) position: Position,
    /// As it was written, for messages.
    pub(crate) text: String,
}

/// Longer ones before those they start with.
const SYMBOLS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/", "%", "=",
];

/// All tokens, the last of which is [`Token::End`]; and what is no token.
pub(crate) fn tokens(source: &str) -> (Vec<Lexeme>, Vec<Issue>) {
    let mut lexer = Lexer { rest: source, position: Position::default(), issues: Vec::new() };
    let mut lexemes = Vec::new();
    loop {
        lexer.skip_blanks();
        let (start, position) = (lexer.rest, lexer.position);
        let Some(token) = lexer.next() else { continue };
        let end = token == Token::End;
        let text = if end { "<EOF>" } else { &start[..start.len() - lexer.rest.len()] };
        lexemes.push(Lexeme { token, position, text: text.to_owned() });
        if end {
            return (lexemes, lexer.issues);
        }
    }
}

struct Lexer<'s> {
    rest: &'s str,
    position: Position,
    issues: Vec<Issue>,
}

impl<'s> Lexer<'s> {
    fn take(&mut self, bytes: usize) -> &'s str {
        let (taken, rest) = self.rest.split_at(bytes);
        for character in taken.chars() {
            match character {
                '\n' => self.position = Position { line: self.position.line + 1, column: 0 },
                _ => self.position.column += 1,
            }
        }
        self.rest = rest;
        taken
    }

    fn skip_blanks(&mut self) {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']).len();
            self.take(blanks);
            if !self.rest.starts_with("//") {
                return;
            }
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    /// None if there was something that is no token; it has been passed over.
    fn next(&mut self) -> Option<Token> {
        let Some(first) = self.rest.chars().next() else { return Some(Token::End) };
        if let Some(prefix) = string_prefix(self.rest) {
            return self.string(&prefix);
        }
        if first.is_ascii_digit() || (first == '.' && self.rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Some(self.word());
        }
        if first == '`' {
            return self.escaped();
        }
        match SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol)) {
            Some(symbol) if *symbol != "=" => {
                self.take(symbol.len());
                Some(Token::Symbol(symbol))
            }
            _ => self.not_a_token(first.len_utf8()),
        }
    }

    fn not_a_token(&mut self, bytes: usize) -> Option<Token> {
        let position = self.position;
        let text = self.take(bytes);
        self.issues.push(Issue { position, message: format!("Syntax error: token recognition error at: '{text}'") });
        None
    }

    /// A literal that cannot be one. Something stands in its place, so that nothing else seems to be wrong.
    fn issue(&mut self, position: Position, message: &str) -> Option<Token> {
        self.issues.push(Issue { position, message: message.to_owned() });
        Some(Token::Literal(Literal::Null))
    }

    fn word(&mut self) -> Token {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        match self.take(end) {
            "true" => Token::Literal(Literal::Bool(true)),
            "false" => Token::Literal(Literal::Bool(false)),
            "null" => Token::Literal(Literal::Null),
            "in" => Token::Symbol("in"),
            word => Token::Ident(word.to_owned()),
        }
    }

    fn escaped(&mut self) -> Option<Token> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
        let length = self.rest[1..].find(|c: char| !allowed(c)).unwrap_or(self.rest.len() - 1);
        if length == 0 || !self.rest[1 + length..].starts_with('`') {
            return self.not_a_token(1);
        }
        let text = self.take(length + 2);
        Some(Token::Escaped(text[1..=length].to_owned()))
    }

    fn number(&mut self) -> Option<Token> {
        let position = self.position;
        let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if let Some(hex) = self.rest.strip_prefix("0x").filter(|hex| hex.starts_with(|c: char| c.is_ascii_hexdigit())) {
            let length = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
            let text = &self.take(2 + length)[2..];
            return self.integer(position, text, 16);
        }
        let mut length = digits(self.rest);
        let mut fractional = false;
        if let Some(fraction) = self.rest[length..].strip_prefix('.').map(digits).filter(|digits| *digits > 0) {
            (length, fractional) = (length + 1 + fraction, true);
        }
        if let Some(exponent) = self.rest[length..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let exponent = digits(&exponent[sign..]);
            if exponent > 0 {
                (length, fractional) = (length + 1 + sign + exponent, true);
            }
        }
        let text = self.take(length);
        if !fractional {
            return self.integer(position, text, 10);
        }
        match text.parse() {
            Ok(double) if f64::is_finite(double) => Some(Token::Literal(Literal::Double(double))),
            _ => self.issue(position, "invalid double literal"),
        }
    }

    /// Without its sign: the smallest one of all is put together by the parser.
    fn integer(&mut self, position: Position, digits: &str, radix: u32) -> Option<Token> {
        let number = u64::from_str_radix(digits, radix);
        if self.rest.starts_with(['u', 'U']) {
            self.take(1);
            return match number {
                Ok(number) => Some(Token::Literal(Literal::Uint(number))),
                Err(_) => self.issue(position, "invalid uint literal"),
            };
        }
        match number.ok().filter(|number| *number <= i64::MAX.unsigned_abs() + 1) {
            // Wraps for that one, which nobody but the parser can see.
            Some(number) => Some(Token::Literal(Literal::Int(number.cast_signed()))),
            None => self.issue(position, "invalid int literal"),
        }
    }

    fn string(&mut self, prefix: &Prefix) -> Option<Token> {
        let position = self.position;
        let body = &self.rest[prefix.length..];
        let Some(end) = closing(body, prefix.quote, prefix.raw) else {
            return self.not_a_token(self.rest.find('\n').unwrap_or(self.rest.len()));
        };
        let text = &self.take(prefix.length + end + prefix.quote.len())[prefix.length..];
        let text = &text[..end];
        let bytes = match prefix.raw {
            true => Ok(text.as_bytes().to_vec()),
            false => unescape(text, prefix.bytes),
        };
        match bytes {
            Err(message) => self.issue(position, message),
            Ok(bytes) if prefix.bytes => Some(Token::Literal(Literal::Bytes(bytes.into()))),
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Some(Token::Literal(Literal::String(text.replace("\r\n", "\n").into()))),
                Err(_) => self.issue(position, "invalid unicode code point"),
            },
        }
    }
}

struct Prefix {
    length: usize,
    quote: &'static str,
    raw: bool,
    bytes: bool,
}

/// How a string starts: `"`, `'''`, `r"`, `b'` and so on.
fn string_prefix(text: &str) -> Option<Prefix> {
    let letters = text.bytes().take(3).position(|byte| b"\"'".contains(&byte))?;
    let (raw, bytes) = match text[..letters].to_ascii_lowercase().as_str() {
        "" => (false, false),
        "r" => (true, false),
        "b" => (false, true),
        "br" => (true, true),
        _ => return None,
    };
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| text[letters..].starts_with(quote))?;
    Some(Prefix { length: letters + quote.len(), quote, raw, bytes })
}

/// Where the string ends that starts here.
fn closing(body: &str, quote: &str, raw: bool) -> Option<usize> {
    let mut position = 0;
    while !body[position..].starts_with(quote) {
        let character = body[position..].chars().next()?;
        let length = match character {
            '\n' | '\r' if quote.len() == 1 => return None,
            '\\' if !raw => 1 + body[position + 1..].chars().next()?.len_utf8(),
            _ => character.len_utf8(),
        };
        position += length;
    }
    Some(position)
}

const BAD_ESCAPE: &str = "unable to unescape string";

fn unescape(text: &str, bytes: bool) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..start]);
        let mut characters = rest[start + 1..].chars();
        let escape = characters.next().ok_or(BAD_ESCAPE)?;
        let plain = |byte: u8| (u32::from(byte), 0, 10);
        let (mut value, digits, radix) = match escape {
            'a' => plain(7),
            'b' => plain(8),
            'f' => plain(12),
            'n' => plain(b'\n'),
            'r' => plain(b'\r'),
            't' => plain(b'\t'),
            'v' => plain(11),
            '\\' | '\'' | '"' | '`' | '?' => plain(escape as u8),
            'x' | 'X' => (0, 2, 16),
            'u' if !bytes => (0, 4, 16),
            'U' if !bytes => (0, 8, 16),
            '0'..='3' => (escape as u32 - u32::from(b'0'), 2, 8),
            _ => return Err(BAD_ESCAPE),
        };
        for _ in 0..digits {
            let digit = characters.next().and_then(|c| c.to_digit(radix)).ok_or(BAD_ESCAPE)?;
            value = value.checked_mul(radix).ok_or(BAD_ESCAPE)? + digit;
        }
        match u8::try_from(value) {
            Ok(byte) if bytes => out.push(byte),
            _ => {
                let character = char::from_u32(value).ok_or("invalid unicode code point")?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        rest = characters.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(source: &str) -> Literal {
        let (lexemes, issues) = tokens(source);
        match (&lexemes[0].token, issues.as_slice()) {
            (Token::Literal(literal), []) => literal.clone(),
            other => panic!("{source}: {other:?}"),
        }
    }

    #[test]
    fn strings_are_quoted_and_escaped_in_every_way() {
        for (source, text) in [
            (r#""a'b""#, "a'b"),
            (r#"'a"b'"#, "a\"b"),
            (r"'\n\t\\\'\x41\101\u00e4\U0001F600'", "\n\t\\'AA\u{e4}\u{1f600}"),
            (r"r'\n'", r"\n"),
            (r#"R"\""#, "\\"),
            ("'''a\n'b'\n'''", "a\n'b'\n"),
            ("\"\"\"\"a\\\"\"\"\"", "\"a\""),
            ("''", ""),
        ] {
            assert_eq!(literal(source), Literal::String(text.into()), "{source}");
        }
        for (source, bytes) in
            [(r"b'\xff\377a'", vec![255, 255, b'a']), ("b'ä'", "ä".into()), (r"br'\x'", r"\x".into())]
        {
            assert_eq!(literal(source), Literal::Bytes(bytes.into()), "{source}");
        }
    }

    #[test]
    fn numbers_are_read_in_every_form() {
        assert_eq!(literal("0x1F"), Literal::Int(31));
        assert_eq!(literal("0xFFu"), Literal::Uint(255));
        assert_eq!(literal("18446744073709551615U"), Literal::Uint(u64::MAX));
        for (source, double) in [("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0), ("1.5E-1", 0.15)] {
            assert_eq!(literal(source), Literal::Double(double));
        }
    }

    #[test]
    fn what_is_no_token_is_said_where_it_stands() {
        for (source, column, message) in [
            ("a = b", 2, "Syntax error: token recognition error at: '='"),
            ("a + 'b", 4, "Syntax error: token recognition error at: ''b'"),
            (r"'\q'", 0, "unable to unescape string"),
            (r"'\ud800'", 0, "invalid unicode code point"),
            ("9223372036854775809", 0, "invalid int literal"),
            ("1e999", 0, "invalid double literal"),
        ] {
            let issues = tokens(source).1;
            assert_eq!((issues[0].position.column, issues[0].message.as_str()), (column, message));
        }
    }

    #[test]
    fn comments_end_with_their_line() {
        let texts: Vec<_> = tokens("a // b\n+ c").0.into_iter().map(|lexeme| lexeme.text).collect();
        assert_eq!(texts, ["a", "+", "c", "<EOF>"]);
    }
}
