//! Expressions.

use super::Scan;

impl Scan<'_> {
    pub(super) fn expression(&mut self) -> Option<()> {
        self.deep_inside(|s| match s.peek()? {
            b'L' => s.literal(),
            b'T' => s.template_param(),
            b'0'..=b'9' => s.simple_id(),
            b'f' if s.begins(b"fp") || s.begins(b"fL") && s.text.get(s.at + 2)?.is_ascii_digit() => s.function_param(),
            _ => s.operation(),
        })
    }

    /// Two letters, and what belongs to them.
    fn operation(&mut self) -> Option<()> {
        let kind = [self.peek()?, *self.text.get(self.at + 1)?];
        self.go(2)?;
        match &kind {
            b"gs" => self.inside(2, Self::expression),
            b"sr" => self.inside(1, Self::unresolved_name),
            b"on" => self.operator_name().and_then(|()| self.template_args_if(1)),
            b"dn" => self.inside(1, Self::destructor),
            b"cv" => self.conversion_to(),
            b"cl" | b"il" => self.until(b'E', Self::expression),
            b"tl" => {
                self.a_type()?;
                self.until(b'E', Self::expression)
            }
            b"dc" | b"sc" | b"cc" | b"rc" => {
                self.a_type()?;
                self.expression()
            }
            b"ti" | b"st" | b"at" => self.a_type(),
            b"dt" | b"pt" => {
                self.expression()?;
                self.member()
            }
            b"sP" => self.until(b'E', Self::template_arg),
            b"tr" => Some(()),
            b"nw" | b"na" => self.inside(1, Self::allocation),
            b"dl" | b"da" => self.inside(1, Self::expression),
            b"fl" | b"fr" => {
                self.operator_name()?;
                self.expression()
            }
            b"fL" | b"fR" => {
                self.operator_name()?;
                self.operands(2)
            }
            b"pp" | b"mm" => {
                self.skip_if(b"_")?;
                self.expression()
            }
            b"te" | b"sz" | b"az" | b"nx" | b"sZ" | b"sp" | b"tw" | b"ps" | b"ng" | b"ad" | b"de" | b"co" | b"nt" => {
                self.expression()
            }
            b"qu" => self.operands(3),
            [b'a'..=b'z', second] if second.is_ascii_alphabetic() => self.operands(2),
            _ => None,
        }
    }

    fn operands(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.expression())
    }

    fn conversion_to(&mut self) -> Option<()> {
        self.a_type()?;
        if self.skip_if(b"_")? { self.until(b'E', Self::expression) } else { self.expression() }
    }

    /// What follows `new`.
    fn allocation(&mut self) -> Option<()> {
        self.until(b'_', Self::expression)?;
        self.a_type()?;
        if self.skip_if(b"pi")? { self.until(b'E', Self::expression) } else { self.skip(b'E') }
    }

    /// `fp [<number>] _`, `fL <number> p [<number>] _`, or `this`.
    fn function_param(&mut self) -> Option<()> {
        self.go(2)?;
        if self.digits().is_some() && self.peek() == Some(b'p') {
            self.go(1)?;
        }
        while matches!(self.peek()?, b'r' | b'V' | b'K') {
            self.go(1)?;
        }
        if self.skip_if(b"T")? { Some(()) } else { self.index() }
    }

    fn member(&mut self) -> Option<()> {
        if self.begins(b"dn") || self.begins(b"on") || self.begins(b"sr") {
            return self.operation();
        }
        self.unqualified_name()?;
        self.template_args_if(1)
    }

    fn simple_id(&mut self) -> Option<()> {
        self.source_name()?;
        self.template_args_if(1)
    }

    /// What follows `sr`.
    fn unresolved_name(&mut self) -> Option<()> {
        if self.skip_if(b"N")? {
            self.unresolved_type()?;
            self.until(b'E', Self::simple_id)?;
        } else if self.peek()?.is_ascii_digit() {
            self.until(b'E', Self::simple_id)?;
        } else {
            self.unresolved_type()?;
        }
        match self.peek()? {
            b'0'..=b'9' => self.simple_id(),
            b'o' | b'd' => self.operation(),
            _ => None,
        }
    }

    fn unresolved_type(&mut self) -> Option<()> {
        match self.peek()? {
            b'T' => {
                self.template_param()?;
                self.template_args_if(1)
            }
            b'D' => self.decltype(),
            _ => self.substitution(),
        }
    }

    fn destructor(&mut self) -> Option<()> {
        if self.peek()?.is_ascii_digit() { self.simple_id() } else { self.unresolved_type() }
    }
}
