//! Tokens one by one, with the one that comes next in sight.

use super::super::lexer::{Lexer, Token};
use super::Fault;

/// Where reading is.
pub struct Tokens<'a> {
    lexer: Lexer<'a>,
    /// The token that comes next.
    pub token: Token<'a>,
    /// Braces that are open.
    braces: u32,
}

impl<'a> Tokens<'a> {
    /// At the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        let mut lexer = Lexer::new(text);
        let token = lexer.next();
        Tokens { lexer, token, braces: 0 }
    }

    /// The byte behind the token that comes next.
    pub fn at(&self) -> usize {
        self.lexer.at()
    }

    /// Whether all was read.
    pub fn is_at_end(&self) -> bool {
        self.token == Token::End
    }

    /// Takes the next token.
    pub fn next(&mut self) -> Token<'a> {
        match self.token {
            Token::Sign('{') => self.braces += 1,
            Token::Sign('}') => self.braces = self.braces.saturating_sub(1),
            _ => {}
        }
        std::mem::replace(&mut self.token, self.lexer.next())
    }

    /// Takes the next token if it is this one.
    pub fn accept(&mut self, token: &Token) -> bool {
        let is_it = self.token == *token;
        if is_it {
            self.next();
        }
        is_it
    }

    /// Takes the next token, which must be this one.
    pub fn expect(&mut self, token: &Token) -> Result<(), Fault> {
        if self.accept(token) { Ok(()) } else { Err(self.unexpected(&format!("{token:?}"))) }
    }

    /// What was wanted, and what is there.
    pub fn unexpected(&self, wanted: &str) -> Fault {
        format!("{wanted} expected, not {:?}", self.token)
    }

    /// A keyword or a name.
    pub fn word(&mut self) -> Result<&'a str, Fault> {
        match self.token {
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// `event.fields`, `clock.monotonic.value`, `stream.event.header.id`
    pub fn path(&mut self) -> Result<String, Fault> {
        let mut path = self.word()?.to_owned();
        while self.accept(&Token::Sign('.')) || self.accept(&Token::Sign('-')) {
            // `->` is an older way of writing the dot.
            self.accept(&Token::Sign('>'));
            path.push('.');
            path.push_str(self.word()?);
        }
        Ok(path)
    }

    /// An integer with its sign.
    pub fn number(&mut self) -> Result<i128, Fault> {
        let minus = self.accept(&Token::Sign('-'));
        if !minus {
            self.accept(&Token::Sign('+'));
        }
        match self.token {
            Token::Number(n) => {
                self.next();
                Ok(if minus { -i128::from(n) } else { n.into() })
            }
            _ => Err(self.unexpected("a number")),
        }
    }

    /// Skips what could not be read, up to the next `;` outside of all braces.
    pub fn recover(&mut self) {
        loop {
            match self.next() {
                Token::Sign(';') if self.braces == 0 => return,
                Token::End => return,
                _ => {}
            }
        }
    }
}
