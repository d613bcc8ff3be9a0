//! As much of C as the header of the kernel's programs has.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use regex::Regex;

use super::Numbers;

/// What a header declares.
pub(super) struct Header {
    /// Numbers that `#define` names.
    pub(super) defines: Numbers,
    enums: BTreeMap<String, Numbers>,
    structs: BTreeMap<String, Vec<Field>>,
}

/// A field of a struct.
struct Field {
    name: String,
    kind: String,
    /// Bytes of one, and of all.
    width: u64,
    size: u64,
    offset: u64,
}

impl Header {
    pub(super) fn parse(text: &str) -> Result<Header> {
        let text = Regex::new(r"(?s)/\*.*?\*/")?.replace_all(text, "");
        let mut header = Header { defines: Numbers::new(), enums: BTreeMap::new(), structs: BTreeMap::new() };
        for define in Regex::new(r"(?m)^#define (\w+) (\w+)[ \t]*$")?.captures_iter(&text) {
            header.defines.extend(number(&define[2]).map(|value| (define[1].to_owned(), value)));
        }
        let value = Regex::new(r"(\w+) = (\w+)")?;
        for found in Regex::new(r"(?s)\benum (\w+) \{(.*?)\};")?.captures_iter(&text) {
            let values = value.captures_iter(found.get(2).map_or("", |body| body.as_str()));
            let values = values.filter_map(|v| Some((v[1].to_owned(), number(&v[2])?)));
            header.enums.insert(found[1].to_owned(), values.collect());
        }
        for found in Regex::new(r"(?s)\nstruct (\w+) \{(.*?)\n\};")?.captures_iter(&text) {
            let fields = header.lay_out(&found[2]).with_context(|| format!("struct {}", &found[1]))?;
            header.structs.insert(found[1].to_owned(), fields);
        }
        Ok(header)
    }

    /// Gives the fields that `body` declares their places.
    fn lay_out(&self, body: &str) -> Result<Vec<Field>> {
        let mut fields: Vec<Field> = Vec::new();
        let mut end = 0_u64;
        for declaration in body.split(';').map(str::trim).filter(|d| !d.is_empty()) {
            let (kind, names) = split(declaration).with_context(|| format!("`{declaration}` is no field"))?;
            let (width, align) = self.width(kind)?;
            for name in names.split(',').map(str::trim) {
                let (name, times) = match name.split_once('[') {
                    Some((name, length)) => (name, self.product(length.trim_end_matches(']'))?),
                    None => (name, 1),
                };
                let offset = end.next_multiple_of(align);
                let size = width * times;
                end = offset + size;
                fields.push(Field { name: name.to_owned(), kind: kind.to_owned(), width, size, offset });
            }
        }
        Ok(fields)
    }

    /// Size and alignment of a type.
    fn width(&self, kind: &str) -> Result<(u64, u64)> {
        Ok(match kind {
            "u64" | "s64" => (8, 8),
            "u32" | "s32" => (4, 4),
            "u16" => (2, 2),
            "u8" => (1, 1),
            _ => {
                let inner = kind.strip_prefix("struct ").and_then(|name| self.structs.get(name));
                let last = inner.and_then(|fields| fields.last()).with_context(|| format!("the type {kind}"))?;
                ((last.offset + last.size).next_multiple_of(8), 8)
            }
        })
    }

    /// `A * B / 8` from left to right.
    fn product(&self, text: &str) -> Result<u64> {
        let mut words = text.split_whitespace();
        let value = |word: Option<&str>| {
            let word = word.context("an array's length")?;
            number(word).or_else(|| self.defines.get(word).copied()).with_context(|| format!("{word} in a length"))
        };
        let mut all = value(words.next())?;
        while let Some(sign) = words.next() {
            let next = value(words.next())?;
            match sign {
                "*" => all *= next,
                "/" if next > 0 => all /= next,
                _ => bail!("`{sign}` in an array's length"),
            }
        }
        Ok(all)
    }

    /// The values of an enum, without the prefix of their names.
    pub(super) fn constants(&self, of: &str, prefix: &str) -> Result<Numbers> {
        let all = self.enums.get(of).with_context(|| format!("{} has no enum {of}", super::HEADER))?;
        Ok(all.iter().map(|(name, value)| (name.trim_start_matches(prefix).to_owned(), *value)).collect())
    }

    /// The offsets of a struct's fields by their names in capitals; of those alone that are `width` bytes wide.
    pub(super) fn fields(&self, of: &str, width: Option<u64>) -> Result<Numbers> {
        let wanted = self.fields_of(of)?.iter().filter(|f| width.is_none_or(|width| f.width == width));
        Ok(wanted.map(|f| (f.name.to_uppercase(), f.offset)).collect())
    }

    /// A struct's fields with their types in Rust's words, in order.
    pub(super) fn declared(&self, of: &str) -> Result<Vec<(String, String)>> {
        let fields = self.fields_of(of)?;
        Ok(fields.iter().map(|f| (f.name.clone(), f.kind.replace('s', "i"))).collect())
    }

    fn fields_of(&self, of: &str) -> Result<&[Field]> {
        let fields = self.structs.get(of).with_context(|| format!("{} has no struct {of}", super::HEADER))?;
        Ok(fields)
    }
}

/// `u64 a, b` and `struct x y` as type and names.
fn split(declaration: &str) -> Option<(&str, &str)> {
    let behind = if declaration.starts_with("struct ") { "struct ".len() } else { 0 };
    let end = behind + declaration[behind..].find(' ')?;
    Some((&declaration[..end], declaration[end..].trim()))
}

/// A number as C writes it.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(['U', 'L']);
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
