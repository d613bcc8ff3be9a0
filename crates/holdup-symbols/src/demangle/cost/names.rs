//! Encodings and names.

use super::Scan;

impl Scan<'_> {
    /// `<encoding>`: a special name, or a name with the types of its parameters.
    pub(super) fn encoding(&mut self) -> Option<()> {
        self.inside(0, |s| match s.peek()? {
            b'T' | b'G' => s.special_name(),
            _ => {
                s.name()?;
                while s.peek().is_some_and(|b| b.is_ascii_alphanumeric() && b != b'E') {
                    s.a_type()?;
                }
                Some(())
            }
        })
    }

    fn special_name(&mut self) -> Option<()> {
        let kind = [self.peek()?, *self.text.get(self.at + 1)?];
        self.go(2)?;
        match &kind {
            b"TV" | b"TT" | b"TI" | b"TS" | b"TF" => self.a_type(),
            b"TH" | b"TW" | b"GV" => self.name(),
            b"Tc" => {
                self.call_offset()?;
                self.call_offset()?;
                self.encoding()
            }
            b"Th" | b"Tv" => {
                self.at -= 1;
                self.call_offset()?;
                self.encoding()
            }
            b"TC" => {
                self.a_type()?;
                self.digits()?;
                self.skip(b'_')?;
                self.a_type()
            }
            b"GR" => {
                self.name()?;
                self.index()
            }
            b"GT" => {
                self.go(1)?;
                self.encoding()
            }
            _ => None,
        }
    }

    fn call_offset(&mut self) -> Option<()> {
        if self.skip_if(b"v")? {
            self.number()?;
        } else {
            self.skip(b'h')?;
            return self.number().and_then(|()| self.skip(b'_'));
        }
        self.skip(b'_')?;
        self.number()?;
        self.skip(b'_')
    }

    pub(super) fn name(&mut self) -> Option<()> {
        match self.peek()? {
            b'N' => self.nested_name(),
            b'Z' => self.local_name(),
            b'S' if !self.begins(b"St") => {
                self.substitution()?;
                self.template_args(1)
            }
            _ => {
                let std = self.skip_if(b"St")?;
                // Such a name is tried as one without and as one with arguments.
                self.inside(1, Self::unqualified_name)?;
                self.template_args_if(u32::from(std))
            }
        }
    }

    fn nested_name(&mut self) -> Option<()> {
        self.skip(b'N')?;
        while matches!(self.peek()?, b'r' | b'V' | b'K' | b'R' | b'O' | b'H') {
            // An operator, like that of `>>`, begins like a qualifier.
            if self.peek() == Some(b'r') && self.text.get(self.at + 1).is_some_and(u8::is_ascii_lowercase) {
                break;
            }
            self.go(1)?;
        }
        self.until(b'E', |s| match s.peek()? {
            b'S' => s.substitution(),
            b'T' => s.template_param(),
            b'D' if s.begins(b"Dt") || s.begins(b"DT") => s.decltype(),
            b'I' => s.template_args(0),
            b'M' => s.go(1),
            _ => s.unqualified_name(),
        })
    }

    /// `Z <encoding> E`, and what is local there.
    fn local_name(&mut self) -> Option<()> {
        self.skip(b'Z')?;
        self.encoding()?;
        self.skip(b'E')?;
        if self.skip_if(b"s")? {
            return self.discriminator();
        }
        // There is an operator that begins with a `d`, too.
        if self.begins(b"d_") || self.begins(b"d") && self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) {
            self.go(1)?;
            self.index()?;
        }
        self.name()?;
        self.discriminator()
    }

    /// `_ <digit>`, `__ <number> _`, or nothing.
    fn discriminator(&mut self) -> Option<()> {
        if self.skip_if(b"__")? {
            self.digits()?;
            self.skip(b'_')
        } else if self.peek() == Some(b'_') && self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) {
            self.go(2)
        } else {
            Some(())
        }
    }

    pub(super) fn unqualified_name(&mut self) -> Option<()> {
        match self.peek()? {
            b'0'..=b'9' => self.source_name(),
            b'L' => {
                self.go(1)?;
                self.source_name()?;
                self.discriminator()
            }
            b'C' => self.constructor(),
            b'D' if self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) => self.go(2),
            b'U' if self.begins(b"Ut") => {
                self.go(2)?;
                self.index()
            }
            b'U' if self.begins(b"Ul") => {
                self.go(2)?;
                self.until(b'E', Self::a_type)?;
                self.index()
            }
            b'a'..=b'z' => {
                self.skip_if(b"on")?;
                self.operator_name()
            }
            _ => None,
        }?;
        while self.skip_if(b"B")? {
            self.source_name()?;
        }
        Some(())
    }

    fn constructor(&mut self) -> Option<()> {
        self.skip(b'C')?;
        let inherits = self.skip_if(b"I")?;
        if !self.peek()?.is_ascii_digit() {
            return None;
        }
        self.go(1)?;
        if inherits { self.a_type() } else { Some(()) }
    }

    pub(super) fn operator_name(&mut self) -> Option<()> {
        let kind = [self.peek()?, *self.text.get(self.at + 1)?];
        if kind[0] == b'v' && kind[1].is_ascii_digit() {
            self.go(2)?;
            return self.source_name();
        }
        if !kind[0].is_ascii_lowercase() || !kind[1].is_ascii_alphabetic() {
            return None;
        }
        self.go(2)?;
        match &kind {
            b"li" => self.source_name(),
            b"cv" => self.conversion(),
            _ => Some(()),
        }
    }

    /// The type that an operator converts to. Arguments after a parameter of a template may be those of the operator.
    fn conversion(&mut self) -> Option<()> {
        self.inside(1, Self::a_type)
    }

    pub(super) fn source_name(&mut self) -> Option<()> {
        let length = self.digits()?;
        if length == 0 {
            return None;
        }
        self.go(length)
    }
}
