//! Reads TSDL: the types of a trace's fields, and what it says of itself.

mod block;
mod declare;

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::lexer::{Lexer, Token};
use super::types::{Enum, Length, MAX_DEPTH, Type};
use block::alignment;
pub use block::{Block, Value};

/// What is wrong, as a sentence.
pub type Fault = String;

/// Reads the text from one end to the other.
pub struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    /// Named types: `uint8_t`, `struct packet_context`.
    types: FxHashMap<String, Type>,
    depth: u8,
    /// Braces that are open.
    braces: u32,
}

impl<'a> Parser<'a> {
    /// At the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        let mut lexer = Lexer::new(text);
        let token = lexer.next();
        Parser { lexer, token, types: FxHashMap::default(), depth: 0, braces: 0 }
    }

    /// The byte behind the token that comes next.
    pub fn at(&self) -> usize {
        self.lexer.at()
    }

    /// Whether all was read.
    pub fn is_at_end(&self) -> bool {
        self.token == Token::End
    }

    fn next(&mut self) -> Token<'a> {
        match self.token {
            Token::Sign('{') => self.braces += 1,
            Token::Sign('}') => self.braces = self.braces.saturating_sub(1),
            _ => {}
        }
        std::mem::replace(&mut self.token, self.lexer.next())
    }

    fn accept(&mut self, token: &Token) -> bool {
        let is_it = self.token == *token;
        if is_it {
            self.next();
        }
        is_it
    }

    fn expect(&mut self, token: &Token) -> Result<(), Fault> {
        if self.accept(token) { Ok(()) } else { Err(self.unexpected(&format!("{token:?}"))) }
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        format!("{wanted} expected, not {:?}", self.token)
    }

    fn word(&mut self) -> Result<&'a str, Fault> {
        match self.token {
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// `event.fields`, `clock.monotonic.value`, `stream.event.header.id`
    fn path(&mut self) -> Result<String, Fault> {
        let mut path = self.word()?.to_owned();
        while self.accept(&Token::Sign('.')) || self.accept(&Token::Sign('-')) {
            // `->` is an older way of writing the dot.
            self.accept(&Token::Sign('>'));
            path.push('.');
            path.push_str(self.word()?);
        }
        Ok(path)
    }

    fn number(&mut self) -> Result<i128, Fault> {
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
    fn recover(&mut self) {
        self.depth = 0;
        loop {
            match self.next() {
                Token::Sign(';') if self.braces == 0 => return,
                Token::End => return,
                _ => {}
            }
        }
    }

    /// `{ size = 8; event.header := struct …; typealias …; }`
    pub fn block(&mut self) -> Result<Block, Fault> {
        let mut block = Block::default();
        self.expect(&Token::Sign('{'))?;
        while !self.accept(&Token::Sign('}')) {
            if !self.declares_type()? {
                let path = self.path()?;
                let value = self.value()?;
                block.push(path, value);
            }
            self.expect(&Token::Sign(';'))?;
        }
        Ok(block)
    }

    fn value(&mut self) -> Result<Value, Fault> {
        if self.accept(&Token::Assign) {
            return Ok(Value::Type(self.plain_type()?));
        }
        self.expect(&Token::Sign('='))?;
        match self.next_is() {
            Next::Text => match self.next() {
                Token::Text(text) => Ok(Value::Text(text)),
                _ => Err(self.unexpected("a text")),
            },
            Next::Word => Ok(Value::Text(self.path()?)),
            Next::Other => Ok(Value::Number(self.number()?)),
        }
    }

    fn next_is(&self) -> Next {
        match self.token {
            Token::Text(_) => Next::Text,
            Token::Word(_) => Next::Word,
            _ => Next::Other,
        }
    }

    /// A type without a name behind it.
    fn plain_type(&mut self) -> Result<Type, Fault> {
        match self.keyword_type()? {
            Some(found) => Ok(found),
            None => {
                let words = self.words()?;
                self.named(&words.join(" "))
            }
        }
    }

    /// `unsigned long`, `const char *`: all names in a row.
    fn words(&mut self) -> Result<Vec<&'a str>, Fault> {
        let mut words = vec![self.word()?];
        loop {
            match self.token {
                Token::Word(_) => words.push(self.word()?),
                Token::Sign('*') => drop(self.next()),
                _ => return Ok(words),
            }
        }
    }

    fn named(&self, name: &str) -> Result<Type, Fault> {
        self.types.get(name).cloned().ok_or_else(|| format!("the type {name:?} is not declared"))
    }

    /// A type that begins with a keyword; `None` if the next word is none.
    fn keyword_type(&mut self) -> Result<Option<Type>, Fault> {
        let Token::Word(word) = self.token else { return Err(self.unexpected("a type")) };
        let read: fn(&mut Self) -> Result<Type, Fault> = match word {
            "integer" => |p| Ok(Type::Integer(p.block()?.integer()?)),
            "floating_point" => |p| p.block()?.float(),
            "string" => Self::text_type,
            "enum" => Self::enum_type,
            "struct" => Self::struct_type,
            "variant" => Self::variant_type,
            _ => return Ok(None),
        };
        self.next();
        if self.depth > MAX_DEPTH {
            return Err(format!("types nest deeper than {MAX_DEPTH}"));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found.map(Some)
    }

    fn text_type(&mut self) -> Result<Type, Fault> {
        if self.token == Token::Sign('{') {
            self.block()?;
        }
        Ok(Type::Text)
    }

    /// Registers a type that was declared with a name.
    fn register(&mut self, kind: &str, name: Option<&str>, made: &Type) {
        if let Some(name) = name {
            self.types.insert(format!("{kind} {name}"), made.clone());
        }
    }

    fn optional_word(&mut self) -> Result<Option<&'a str>, Fault> {
        if matches!(self.token, Token::Word(_)) { self.word().map(Some) } else { Ok(None) }
    }

    fn struct_type(&mut self) -> Result<Type, Fault> {
        let name = self.optional_word()?;
        let has_body = self.token == Token::Sign('{');
        let fields = if has_body { self.fields()? } else { Vec::new() };
        let mut align = 1;
        if self.token == Token::Word("align") {
            self.next();
            self.expect(&Token::Sign('('))?;
            align = alignment(self.number()?)?;
            self.expect(&Token::Sign(')'))?;
        }
        match name {
            Some(name) if !has_body => self.named(&format!("struct {name}")),
            _ => {
                let made = Type::structure(fields, align).ok_or("a struct is too large")?;
                self.register("struct", name, &made);
                Ok(made)
            }
        }
    }

    fn variant_type(&mut self) -> Result<Type, Fault> {
        let name = self.optional_word()?;
        let tag: Rc<str> = if self.accept(&Token::Sign('<')) {
            let tag = self.path()?;
            self.expect(&Token::Sign('>'))?;
            tag.into()
        } else {
            "".into()
        };
        if self.token == Token::Sign('{') {
            let made = Type::variant(tag, self.fields()?.into()).ok_or("a variant is too large")?;
            self.register("variant", name, &made);
            return Ok(made);
        }
        let name = name.ok_or_else(|| self.unexpected("a variant's name"))?;
        match self.named(&format!("variant {name}"))? {
            Type::Variant(v) => Ok(Type::variant(tag, Rc::clone(&v.options)).ok_or("a variant is too large")?),
            _ => Err(format!("{name:?} is not a variant")),
        }
    }

    fn enum_type(&mut self) -> Result<Type, Fault> {
        let name = self.optional_word()?;
        let base = if self.accept(&Token::Sign(':')) { Some(self.plain_type()?) } else { None };
        if self.token != Token::Sign('{') {
            let name = name.ok_or_else(|| self.unexpected("an enum's name"))?;
            return self.named(&format!("enum {name}"));
        }
        let integer = match base.map_or_else(|| self.named("int"), Ok)? {
            Type::Integer(integer) => integer,
            _ => return Err("an enum is not made of integers".to_owned()),
        };
        let ranges = self.ranges()?;
        let made = Type::Enum(Rc::new(Enum { integer, ranges }));
        self.register("enum", name, &made);
        Ok(made)
    }

    /// `{ compact = 0 ... 30, extended = 31, next }`
    fn ranges(&mut self) -> Result<Vec<(Rc<str>, i128, i128)>, Fault> {
        let mut ranges: Vec<(Rc<str>, i128, i128)> = Vec::new();
        self.expect(&Token::Sign('{'))?;
        while !self.accept(&Token::Sign('}')) {
            let name: Rc<str> = match self.next() {
                Token::Word(word) => word.into(),
                Token::Text(text) => text.into(),
                _ => return Err(self.unexpected("a value's name before")),
            };
            let (mut from, mut to) = ranges.last().map_or((0, 0), |&(_, _, last)| (last + 1, last + 1));
            if self.accept(&Token::Sign('=')) {
                from = self.number()?;
                to = if self.accept(&Token::Dots) { self.number()? } else { from };
            }
            ranges.push((name, from, to));
            if !self.accept(&Token::Sign(',')) {
                self.expect(&Token::Sign('}'))?;
                return Ok(ranges);
            }
        }
        Ok(ranges)
    }

    /// The members of a struct or variant, in braces.
    fn fields(&mut self) -> Result<Vec<(Rc<str>, Type)>, Fault> {
        let mut fields = Vec::new();
        self.expect(&Token::Sign('{'))?;
        while !self.accept(&Token::Sign('}')) {
            if !self.declares_alias()? {
                let (of, name) = self.type_and_name()?;
                // A named type that is declared here and used by nobody yet.
                if let Some(name) = name {
                    let of = self.dimensions(of)?;
                    fields.push((Rc::from(name), of));
                }
            }
            self.expect(&Token::Sign(';'))?;
        }
        Ok(fields)
    }

    fn type_and_name(&mut self) -> Result<(Type, Option<&'a str>), Fault> {
        if let Some(found) = self.keyword_type()? {
            return Ok((found, self.optional_word()?));
        }
        let mut words = self.words()?;
        let name = words.pop();
        Ok((self.named(&words.join(" "))?, name))
    }

    /// `[16]`, `[ __vtids_length ]`, or nothing.
    fn dimensions(&mut self, mut element: Type) -> Result<Type, Fault> {
        while self.accept(&Token::Sign('[')) {
            let length = match self.token {
                Token::Word(_) => Length::Field(self.path()?.into()),
                _ => Length::Fixed(u64::try_from(self.number()?).map_err(|_| "a length below 0")?),
            };
            self.expect(&Token::Sign(']'))?;
            element = Type::array(element, length).ok_or("an array is too large")?;
        }
        Ok(element)
    }
}

enum Next {
    Text,
    Word,
    Other,
}
