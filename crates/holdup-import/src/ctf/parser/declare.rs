//! Declarations of types: `typealias`, `typedef`, and structs, variants and enums with a name.

use super::super::lexer::Token;
use super::{Block, Fault, Parser};

impl<'a> Parser<'a> {
    /// One declaration and its `;`: the kind and the assignments of a block, or a type. Behind one that cannot be read, the
    /// next begins.
    pub fn top_level(&mut self) -> Result<Option<(&'a str, Block)>, Fault> {
        let declared = self.declaration();
        match declared {
            Ok(_) if self.accept(&Token::Sign(';')) || self.is_at_end() => declared,
            _ => {
                let fault = declared.err().unwrap_or_else(|| self.unexpected("';'"));
                self.recover();
                Err(fault)
            }
        }
    }

    fn declaration(&mut self) -> Result<Option<(&'a str, Block)>, Fault> {
        if self.declares_type()? || self.token == Token::Sign(';') {
            return Ok(None);
        }
        let kind = self.word()?;
        Ok(Some((kind, self.block()?)))
    }

    /// A declaration of a type without its `;`, if the next word begins one.
    pub(super) fn declares_type(&mut self) -> Result<bool, Fault> {
        if self.declares_alias()? {
            return Ok(true);
        }
        match self.token {
            Token::Word("struct" | "variant" | "enum") => self.keyword_type().map(|_| true),
            _ => Ok(false),
        }
    }

    /// `typealias` or `typedef` without its `;`, if the next word is one.
    pub(super) fn declares_alias(&mut self) -> Result<bool, Fault> {
        match self.token {
            Token::Word("typealias") => self.alias()?,
            Token::Word("typedef") => self.definition()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `typealias integer { … } := unsigned long`
    fn alias(&mut self) -> Result<(), Fault> {
        self.next();
        let of = self.plain_type()?;
        self.expect(&Token::Assign)?;
        let name = self.words()?.join(" ");
        self.types.insert(name, of);
        Ok(())
    }

    /// `typedef integer { … } name`
    fn definition(&mut self) -> Result<(), Fault> {
        self.next();
        let (of, name) = self.type_and_name()?;
        let name = name.ok_or_else(|| self.unexpected("a name"))?;
        let of = self.dimensions(of)?;
        self.types.insert(name.to_owned(), of);
        Ok(())
    }
}
