//! Types, and the arguments of templates.

use super::Scan;

impl Scan<'_> {
    pub(super) fn a_type(&mut self) -> Option<()> {
        self.inside(0, |s| match s.peek()? {
            b'u' => {
                s.go(1)?;
                s.source_name()?;
                s.template_args_if(1)
            }
            b'r' | b'V' | b'K' | b'P' | b'R' | b'O' | b'G' => {
                s.go(1)?;
                s.a_type()
            }
            // The parser takes what is no builtin type for the name of an operator.
            b'k' | b'p' | b'q' => None,
            b'a'..=b'z' => s.go(1),
            b'C' if s.begins(b"CI") || s.text.get(s.at + 1).is_some_and(u8::is_ascii_digit) => {
                s.inside(2, Self::unqualified_name)
            }
            b'C' => {
                s.go(1)?;
                s.a_type()
            }
            b'U' if !s.begins(b"Ul") && !s.begins(b"Ut") => {
                s.go(1)?;
                s.source_name()?;
                s.template_args_if(1)?;
                s.a_type()
            }
            b'F' => s.function_type(),
            b'A' => {
                s.go(1)?;
                s.dimension()?;
                s.a_type()
            }
            b'M' => {
                s.go(1)?;
                s.a_type()?;
                s.a_type()
            }
            b'D' => s.type_of_two_letters(),
            b'T' if s.begins(b"Ts") || s.begins(b"Tu") || s.begins(b"Te") => {
                s.go(2)?;
                s.name()
            }
            b'T' => {
                s.template_param()?;
                s.template_args_if(1)
            }
            b'S' if !s.begins(b"St") => {
                s.substitution()?;
                s.template_args_if(1)
            }
            _ => s.name(),
        })
    }

    fn type_of_two_letters(&mut self) -> Option<()> {
        match *self.text.get(self.at + 1)? {
            b't' | b'T' => self.decltype(),
            b'p' => {
                self.go(2)?;
                self.a_type()
            }
            b'v' => {
                self.go(2)?;
                self.dimension()?;
                self.a_type()
            }
            b'o' | b'x' => {
                self.go(2)?;
                self.a_type()
            }
            b'O' => {
                self.go(2)?;
                self.expression()?;
                self.skip(b'E')?;
                self.a_type()
            }
            b'w' => {
                self.go(2)?;
                self.until(b'E', Self::a_type)?;
                self.a_type()
            }
            b'F' => {
                self.go(2)?;
                self.digits()?;
                if self.skip_if(b"x")? || self.skip_if(b"b")? { Some(()) } else { self.skip(b'_') }
            }
            b'd' | b'e' | b'f' | b'h' | b'i' | b'u' | b's' | b'a' | b'c' | b'n' => self.go(2),
            _ => None,
        }
    }

    fn function_type(&mut self) -> Option<()> {
        self.skip(b'F')?;
        self.skip_if(b"Y")?;
        self.until(b'E', |s| {
            // A qualifier of the function, and no reference.
            if s.begins(b"RE") || s.begins(b"OE") { s.go(1) } else { s.a_type() }
        })
    }

    /// `[<number> | <expression>] _`
    fn dimension(&mut self) -> Option<()> {
        match self.peek()? {
            b'_' => {}
            b'0'..=b'9' => drop(self.digits()?),
            _ => self.expression()?,
        }
        self.skip(b'_')
    }

    pub(super) fn decltype(&mut self) -> Option<()> {
        self.go(2)?;
        self.expression()?;
        self.skip(b'E')
    }

    /// One of the well-known, or one that was there before.
    pub(super) fn substitution(&mut self) -> Option<()> {
        self.skip(b'S')?;
        if self.peek()?.is_ascii_lowercase() { self.go(1) } else { self.index() }
    }

    pub(super) fn template_param(&mut self) -> Option<()> {
        self.skip(b'T')?;
        self.index()
    }

    pub(super) fn template_args_if(&mut self, doublings: u32) -> Option<()> {
        if self.peek() == Some(b'I') { self.template_args(doublings) } else { Some(()) }
    }

    pub(super) fn template_args(&mut self, doublings: u32) -> Option<()> {
        self.skip(b'I')?;
        self.inside(doublings, |s| s.until(b'E', Self::template_arg))
    }

    pub(super) fn template_arg(&mut self) -> Option<()> {
        match self.peek()? {
            b'X' => {
                self.go(1)?;
                self.expression()?;
                self.skip(b'E')
            }
            b'L' => self.literal(),
            b'J' | b'I' => {
                self.go(1)?;
                self.inside(0, |s| s.until(b'E', Self::template_arg))
            }
            _ => self.a_type(),
        }
    }

    /// `L <type> <value> E`, or `L <mangled name> E`. Where it is not the one, it is tried as the other.
    pub(super) fn literal(&mut self) -> Option<()> {
        self.skip(b'L')?;
        self.inside(1, |s| {
            if s.skip_if(b"_Z")? {
                s.encoding()?;
            } else {
                s.a_type()?;
                let value = s.text[s.at..].iter().take_while(|b| **b != b'E').count();
                s.go(value)?;
            }
            s.skip(b'E')
        })
    }
}
