//! Names as their authors wrote them: without argument lists, hashes and the compiler's suffixes.
//!
//! A name is chosen by whoever built the program, and a few hundred bytes of it can stand for any length or cost any
//! time: both are bounded here, for every way of mangling.

use std::borrow::Cow;
use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Longest mangled name that is demangled, in bytes.
pub(crate) const MANGLED_LIMIT: usize = 8 << 10;
/// Longest name that is shown, in bytes. Nobody reads more, and each name is kept.
pub(crate) const NAME_LIMIT: usize = 4 << 10;
/// Ends a name that is cut.
const CUT: char = '…';
/// Deepest nesting of a C++ name, in the parser's terms: two or three of its levels for one of ours.
const DEPTH_LIMIT: u32 = 160;
/// Pieces of a C++ name that are shown. Real names need less than one for a byte.
const PIECES: u32 = 8 * NAME_LIMIT as u32;

/// What GCC and LLVM append to clones and parts of a function.
const SUFFIXES: [&str; 8] = [".cold", ".part", ".isra", ".constprop", ".lto_priv", ".llvm", ".clone", ".warm"];

/// A name, and whether all of it is there, demangled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Demangled {
    pub text: String,
    pub whole: bool,
}

/// The readable form of a symbol; the name itself where it is not mangled.
pub(crate) fn demangle(raw: &str) -> Demangled {
    let name = without_suffixes(raw.split_once('@').map_or(raw, |(name, _version)| name));
    if name.len() > MANGLED_LIMIT {
        return Demangled { text: clipped(name).into_owned(), whole: false };
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        let mut out = Clipped::default();
        // The only error is that of `out`, when it is full.
        let _ = write!(out, "{rust:#}");
        return out.demangled();
    }
    if name.starts_with("_Z") || name.starts_with("___Z") {
        return demangle_cpp(name);
    }
    plain(&languages::demangle(name).unwrap_or_else(|| name.to_owned()), true)
}

/// Whether a name, which a source gives as it is to be shown, is mangled all the same.
pub(crate) fn is_mangled(name: &str) -> bool {
    ["_Z", "_R", "___Z"].iter().any(|prefix| name.starts_with(prefix)) || languages::demangle(name).is_some()
}

/// A name that is shown as it is, or the beginning of it.
pub(crate) fn plain(name: &str, whole: bool) -> Demangled {
    Demangled { text: clipped(name).into_owned(), whole: whole && name.len() <= NAME_LIMIT }
}

fn demangle_cpp(name: &str) -> Demangled {
    match cost::cost(name) {
        cost::Cost::Fair => {}
        cost::Cost::High => return plain(name, false),
        // It only looks like one.
        cost::Cost::NoName => return plain(name, true),
    }
    let parse = ParseOptions::default().recursion_limit(DEPTH_LIMIT);
    let options = DemangleOptions::new().no_params().no_return_type().recursion_limit(DEPTH_LIMIT);
    let demangled = crate::guarded(|| {
        let symbol = match Symbol::new_with_options(name, &parse) {
            Ok(symbol) => symbol,
            Err(cpp_demangle::error::Error::TooMuchRecursion) => return plain(name, false),
            Err(_) => return plain(name, true),
        };
        let mut out = Clipped::default();
        match symbol.structured_demangle(&mut out, &options) {
            Err(_) if !out.full => plain(name, false),
            _ => out.demangled(),
        }
    });
    demangled.unwrap_or_else(|| plain(name, false))
}

/// At most `NAME_LIMIT` bytes of a name; what is cut ends with `…`.
pub(crate) fn clipped(name: &str) -> Cow<'_, str> {
    if name.len() <= NAME_LIMIT {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{}{CUT}", &name[..floor(name, NAME_LIMIT - CUT.len_utf8())]))
}

/// The last boundary of a character at or before `at`.
pub(crate) fn floor(s: &str, at: usize) -> usize {
    (0..=at.min(s.len())).rev().find(|&i| s.is_char_boundary(i)).unwrap_or(0)
}

/// Takes `NAME_LIMIT` bytes; the write that brings more fails, and with it the whole formatting.
#[derive(Default)]
struct Clipped {
    text: String,
    /// How often something was written, be it nothing.
    pieces: u32,
    full: bool,
}

impl Write for Clipped {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.pieces += 1;
        if self.full || self.pieces > PIECES {
            return Err(fmt::Error);
        }
        if self.text.len() + s.len() <= NAME_LIMIT {
            self.text.push_str(s);
            return Ok(());
        }
        self.full = true;
        self.text.push_str(&s[..floor(s, NAME_LIMIT - self.text.len())]);
        self.text.truncate(floor(&self.text, NAME_LIMIT - CUT.len_utf8()));
        self.text.push(CUT);
        Err(fmt::Error)
    }
}

impl Clipped {
    fn demangled(self) -> Demangled {
        Demangled { text: self.text, whole: !self.full }
    }
}

fn without_suffixes(mut name: &str) -> &str {
    while let Some(end) = suffix(name) {
        name = &name[..end];
    }
    name
}

/// Where a suffix like `.part.0` or `.cold` begins.
fn suffix(name: &str) -> Option<usize> {
    let without_number = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = if without_number.len() < name.len() { without_number.strip_suffix('.').unwrap_or(name) } else { name };
    let end = SUFFIXES.iter().find_map(|s| stem.strip_suffix(s))?.len();
    (end > 0).then_some(end)
}

mod cost;
mod languages;
#[cfg(test)]
mod tests;
