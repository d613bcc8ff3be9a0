//! Reads TSDL: the types of a trace's fields, and what it says of itself.

mod block;
mod tokens;

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::lexer::Token;
use super::types::{Enum, Length, MAX_DEPTH, Type};
use block::alignment;
pub use block::{Block, Value};
use tokens::Tokens;

/// What is wrong, as a sentence.
pub type Fault = String;

/// Reads the text from one end to the other.
pub struct Parser<'a> {
    tokens: Tokens<'a>,
    /// Named types: `uint8_t`, `struct packet_context`.
    types: FxHashMap<String, Type>,
    depth: u8,
}

impl<'a> Parser<'a> {
    /// At the beginning of `text`.
    pub fn new(text: &'a str) -> Self {
        Parser { tokens: Tokens::new(text), types: FxHashMap::default(), depth: 0 }
    }

    /// The byte behind the token that comes next.
    pub fn at(&self) -> usize {
        self.tokens.at()
    }

    /// Whether all was read.
    pub fn is_at_end(&self) -> bool {
        self.tokens.is_at_end()
    }

    /// One declaration and its `;`: the kind and the assignments of a block, or a type. Behind one that cannot be read, the
    /// next begins.
    pub fn top_level(&mut self) -> Result<Option<(&'a str, Block)>, Fault> {
        let declared = self.declaration();
        match declared {
            Ok(_) if self.tokens.accept(&Token::Sign(';')) || self.tokens.is_at_end() => declared,
            _ => {
                let fault = declared.err().unwrap_or_else(|| self.tokens.unexpected("';'"));
                self.depth = 0;
                self.tokens.recover();
                Err(fault)
            }
        }
    }

    fn declaration(&mut self) -> Result<Option<(&'a str, Block)>, Fault> {
        if self.declares_type()? || self.tokens.token == Token::Sign(';') {
            return Ok(None);
        }
        let kind = self.tokens.word()?;
        Ok(Some((kind, self.block()?)))
    }

    /// A declaration of a type without its `;`, if the next word begins one.
    fn declares_type(&mut self) -> Result<bool, Fault> {
        if self.declares_alias()? {
            return Ok(true);
        }
        match self.tokens.token {
            Token::Word("struct" | "variant" | "enum") => self.keyword_type().map(|_| true),
            _ => Ok(false),
        }
    }

    /// `typealias` or `typedef` without its `;`, if the next word is one.
    fn declares_alias(&mut self) -> Result<bool, Fault> {
        match self.tokens.token {
            Token::Word("typealias") => self.alias()?,
            Token::Word("typedef") => self.definition()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `typealias integer { … } := unsigned long`
    fn alias(&mut self) -> Result<(), Fault> {
        self.tokens.next();
        let of = self.plain_type()?;
        self.tokens.expect(&Token::Assign)?;
        let name = self.words()?.join(" ");
        self.types.insert(name, of);
        Ok(())
    }

    /// `typedef integer { … } name`
    fn definition(&mut self) -> Result<(), Fault> {
        self.tokens.next();
        let (of, name) = self.type_and_name()?;
        let name = name.ok_or_else(|| self.tokens.unexpected("a name"))?;
        let of = self.dimensions(of)?;
        self.types.insert(name.to_owned(), of);
        Ok(())
    }

    /// `{ size = 8; event.header := struct …; typealias …; }`
    pub fn block(&mut self) -> Result<Block, Fault> {
        let mut block = Block::default();
        self.tokens.expect(&Token::Sign('{'))?;
        while !self.tokens.accept(&Token::Sign('}')) {
            if !self.declares_type()? {
                let path = self.tokens.path()?;
                let value = self.value()?;
                block.push(path, value);
            }
            self.tokens.expect(&Token::Sign(';'))?;
        }
        Ok(block)
    }

    fn value(&mut self) -> Result<Value, Fault> {
        if self.tokens.accept(&Token::Assign) {
            return Ok(Value::Type(self.plain_type()?));
        }
        self.tokens.expect(&Token::Sign('='))?;
        match self.next_is() {
            Next::Text => match self.tokens.next() {
                Token::Text(text) => Ok(Value::Text(text)),
                _ => Err(self.tokens.unexpected("a text")),
            },
            Next::Word => Ok(Value::Text(self.tokens.path()?)),
            Next::Other => Ok(Value::Number(self.tokens.number()?)),
        }
    }

    fn next_is(&self) -> Next {
        match self.tokens.token {
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
        let mut words = vec![self.tokens.word()?];
        loop {
            match self.tokens.token {
                Token::Word(_) => words.push(self.tokens.word()?),
                Token::Sign('*') => drop(self.tokens.next()),
                _ => return Ok(words),
            }
        }
    }

    fn named(&self, name: &str) -> Result<Type, Fault> {
        self.types.get(name).cloned().ok_or_else(|| format!("the type {name:?} is not declared"))
    }

    /// A type that begins with a keyword; `None` if the next word is none.
    fn keyword_type(&mut self) -> Result<Option<Type>, Fault> {
        let Token::Word(word) = self.tokens.token else { return Err(self.tokens.unexpected("a type")) };
        let read: fn(&mut Self) -> Result<Type, Fault> = match word {
            "integer" => |p| Ok(Type::Integer(p.block()?.integer()?)),
            "floating_point" => |p| p.block()?.float(),
            "string" => Self::text_type,
            "enum" => Self::enum_type,
            "struct" => Self::struct_type,
            "variant" => Self::variant_type,
            _ => return Ok(None),
        };
        self.tokens.next();
        if self.depth > MAX_DEPTH {
            return Err(format!("types nest deeper than {MAX_DEPTH}"));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found.map(Some)
    }

    fn text_type(&mut self) -> Result<Type, Fault> {
        if self.tokens.token == Token::Sign('{') {
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
        if matches!(self.tokens.token, Token::Word(_)) { self.tokens.word().map(Some) } else { Ok(None) }
    }

    fn struct_type(&mut self) -> Result<Type, Fault> {
        let name = self.optional_word()?;
        let has_body = self.tokens.token == Token::Sign('{');
        let fields = if has_body { self.fields()? } else { Vec::new() };
        let mut align = 1;
        if self.tokens.token == Token::Word("align") {
            self.tokens.next();
            self.tokens.expect(&Token::Sign('('))?;
            align = alignment(self.tokens.number()?)?;
            self.tokens.expect(&Token::Sign(')'))?;
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
        let tag: Rc<str> = if self.tokens.accept(&Token::Sign('<')) {
            let tag = self.tokens.path()?;
            self.tokens.expect(&Token::Sign('>'))?;
            tag.into()
        } else {
            "".into()
        };
        if self.tokens.token == Token::Sign('{') {
            let made = Type::variant(tag, self.fields()?.into()).ok_or("a variant is too large")?;
            self.register("variant", name, &made);
            return Ok(made);
        }
        let name = name.ok_or_else(|| self.tokens.unexpected("a variant's name"))?;
        match self.named(&format!("variant {name}"))? {
            Type::Variant(v) => Ok(Type::variant(tag, Rc::clone(&v.options)).ok_or("a variant is too large")?),
            _ => Err(format!("{name:?} is not a variant")),
        }
    }

    fn enum_type(&mut self) -> Result<Type, Fault> {
        let name = self.optional_word()?;
        let base = if self.tokens.accept(&Token::Sign(':')) { Some(self.plain_type()?) } else { None };
        if self.tokens.token != Token::Sign('{') {
            let name = name.ok_or_else(|| self.tokens.unexpected("an enum's name"))?;
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
        self.tokens.expect(&Token::Sign('{'))?;
        while !self.tokens.accept(&Token::Sign('}')) {
            let name: Rc<str> = match self.tokens.next() {
                Token::Word(word) => word.into(),
                Token::Text(text) => text.into(),
                _ => return Err(self.tokens.unexpected("a value's name before")),
            };
            let (mut from, mut to) = ranges.last().map_or((0, 0), |&(_, _, last)| (last + 1, last + 1));
            if self.tokens.accept(&Token::Sign('=')) {
                from = self.tokens.number()?;
                to = if self.tokens.accept(&Token::Dots) { self.tokens.number()? } else { from };
            }
            ranges.push((name, from, to));
            if !self.tokens.accept(&Token::Sign(',')) {
                self.tokens.expect(&Token::Sign('}'))?;
                return Ok(ranges);
            }
        }
        Ok(ranges)
    }

    /// The members of a struct or variant, in braces.
    fn fields(&mut self) -> Result<Vec<(Rc<str>, Type)>, Fault> {
        let mut fields = Vec::new();
        self.tokens.expect(&Token::Sign('{'))?;
        while !self.tokens.accept(&Token::Sign('}')) {
            if !self.declares_alias()? {
                let (of, name) = self.type_and_name()?;
                // A named type that is declared here and used by nobody yet.
                if let Some(name) = name {
                    let of = self.dimensions(of)?;
                    fields.push((Rc::from(name), of));
                }
            }
            self.tokens.expect(&Token::Sign(';'))?;
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
        while self.tokens.accept(&Token::Sign('[')) {
            let length = match self.tokens.token {
                Token::Word(_) => Length::Field(self.tokens.path()?.into()),
                _ => Length::Fixed(u64::try_from(self.tokens.number()?).map_err(|_| "a length below 0")?),
            };
            self.tokens.expect(&Token::Sign(']'))?;
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
