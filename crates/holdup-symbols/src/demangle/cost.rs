//! What it may cost to demangle a C++ name, found out in one pass.
//!
//! The parser of cpp_demangle tries its alternatives one after the other, and some of them read the same bytes again. Where
//! these are nested, and something inside fails, the work doubles with every level. This pass reads a name once, in the
//! grammar of the Itanium ABI, refuses what does not fit it, and adds up how often the parser could read each byte.

mod expressions;
mod names;
mod types;

/// How deep the grammar's rules may be nested in each other: unoptimised, the parser needs up to 16 kB of stack for each.
const LEVELS: u32 = 48;
/// How often bytes may be read, all together. Of half a million real names none needs an eighth of it, and what fails inside
/// of as many levels as it allows takes some milliseconds, optimised.
const READS: u64 = 1 << 15;

/// What is known of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// It can be demangled.
    Fair,
    /// It may be well-formed, but needs too much.
    High,
    /// It is none of C++.
    NoName,
}

/// What it may cost to demangle a name that begins with `_Z`.
pub(super) fn cost(name: &str) -> Cost {
    let name = name.trim_start_matches('_');
    let mut scan = Scan { text: name.as_bytes(), at: 0, level: 0, doublings: 0, reads: 0, high: false };
    match scan.skip(b'Z').and_then(|()| scan.encoding()) {
        Some(()) => Cost::Fair,
        None if scan.high => Cost::High,
        None => Cost::NoName,
    }
}

/// A place in a name. Each rule of the grammar is a method that moves behind what it reads, or returns `None`.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    /// Rules that are nested in each other here.
    level: u32,
    /// How many of them the parser may read twice.
    doublings: u32,
    /// How often bytes may be read until here.
    reads: u64,
    high: bool,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn begins(&self, with: &[u8]) -> bool {
        self.text[self.at..].starts_with(with)
    }

    /// Moves ahead, at the price of this place.
    fn go(&mut self, bytes: usize) -> Option<()> {
        if bytes > self.text.len() - self.at {
            return None;
        }
        self.at += bytes;
        // An identifier is copied, not read.
        self.reads += 1 << self.doublings.min(32);
        self.high |= self.reads > READS;
        (!self.high).then_some(())
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        if self.peek() == Some(byte) { self.go(1) } else { None }
    }

    fn skip_if(&mut self, bytes: &[u8]) -> Option<bool> {
        let there = self.begins(bytes);
        if there {
            self.go(bytes.len())?;
        }
        Some(there)
    }

    /// A rule inside of another; `doublings` is how often it doubles the work.
    fn inside(&mut self, doublings: u32, rule: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        if self.level >= LEVELS {
            self.high = true;
            return None;
        }
        self.level += 1;
        self.doublings += doublings;
        let fits = rule(self);
        self.doublings -= doublings;
        self.level -= 1;
        fits
    }

    /// A rule that needs as much of the stack as three others.
    fn deep_inside(&mut self, rule: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.level += 2;
        let fits = self.inside(0, rule);
        self.level -= 2;
        fits
    }

    /// A rule again and again, up to `end`, which is left behind, too.
    fn until(&mut self, end: u8, rule: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        while self.peek()? != end {
            rule(self)?;
        }
        self.go(1)
    }

    fn digits(&mut self) -> Option<usize> {
        let rest = &self.text[self.at..];
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok();
        if digits > 0 {
            self.go(digits)?;
        }
        number
    }

    /// `[n] <number>`
    fn number(&mut self) -> Option<()> {
        self.skip_if(b"n")?;
        self.digits().map(drop)
    }

    /// `[<number>] _`
    fn index(&mut self) -> Option<()> {
        let more = self.text[self.at..].iter().take_while(|b| b.is_ascii_digit() || b.is_ascii_uppercase()).count();
        self.go(more)?;
        self.skip(b'_')
    }
}

#[cfg(test)]
mod tests;
