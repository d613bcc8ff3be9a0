//! Answers as bytes: a JSON document, and arrays of numbers behind it.
//!
//! ```text
//!   u32 (little endian): length of the JSON │ JSON │ padding │ section │ padding │ section …
//! ```
//!
//! The sections stand in the JSON as `"sections":[{"name":"state","type":"u8","length":1000}]`, in their order, and each
//! begins at a multiple of 8 bytes from the answer's start.

use std::io::{self, Write};

use holdup_base::text;
use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};

/// Numbers behind the JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// Bytes.
    U8(Vec<u8>),
    /// Whole numbers.
    U32(Vec<u32>),
    /// Small or rounded ones.
    F32(Vec<f32>),
    /// Others.
    F64(Vec<f64>),
}

impl Numbers {
    const fn word(&self) -> &'static str {
        match self {
            Numbers::U8(_) => "u8",
            Numbers::U32(_) => "u32",
            Numbers::F32(_) => "f32",
            Numbers::F64(_) => "f64",
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Numbers::U8(n) => n.len(),
            Numbers::U32(n) => n.len(),
            Numbers::F32(n) => n.len(),
            Numbers::F64(n) => n.len(),
        }
    }

    fn write(&self, to: &mut Vec<u8>) {
        match self {
            Numbers::U8(n) => to.extend_from_slice(n),
            Numbers::U32(n) => n.iter().for_each(|n| to.extend_from_slice(&n.to_le_bytes())),
            Numbers::F32(n) => n.iter().for_each(|n| to.extend_from_slice(&n.to_le_bytes())),
            Numbers::F64(n) => n.iter().for_each(|n| to.extend_from_slice(&n.to_le_bytes())),
        }
    }
}

/// One array of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// The numbers.
    pub numbers: Numbers,
}

#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    r#type: &'static str,
    length: usize,
}

#[derive(Serialize)]
struct Framed<'a, T> {
    #[serde(flatten)]
    document: &'a T,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sections: Vec<Listed<'a>>,
}

/// `document`, which must be a JSON object, and the sections as bytes.
pub fn frame<'s, T: Serialize>(document: &T, sections: &'s [Section]) -> Vec<u8> {
    let listed = |s: &'s Section| Listed { name: &s.name, r#type: s.numbers.word(), length: s.numbers.len() };
    let framed = Framed { document, sections: sections.iter().map(listed).collect() };
    let mut bytes = vec![0; 4];
    let written = framed.serialize(&mut Serializer::with_formatter(&mut bytes, Shown(CompactFormatter)));
    debug_assert!(written.is_ok(), "documents have names as keys, and memory takes what is written");
    let length = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    for section in sections {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        section.numbers.write(&mut bytes);
    }
    bytes
}

/// Writes strings so that nothing in them acts where they are shown ([`text`]): names come from outside.
struct Shown(CompactFormatter);

impl Formatter for Shown {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        to.write_all(text::clean(fragment).replace('\\', "\\\\").as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, to: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(byte) => write!(to, "\\\\x{byte:02x}"),
            CharEscape::Backspace => to.write_all(b"\\\\x08"),
            CharEscape::FormFeed => to.write_all(b"\\\\x0c"),
            CharEscape::CarriageReturn => to.write_all(b"\\\\r"),
            harmless => self.0.write_char_escape(to, harmless),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(bytes: &[u8]) -> (serde_json::Value, usize) {
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        (serde_json::from_slice(&bytes[4..4 + length]).unwrap(), (4 + length).next_multiple_of(8))
    }

    #[test]
    fn sections_are_aligned() {
        let of = |name: &str, numbers| Section { name: name.into(), numbers };
        let sections = [of("a", Numbers::U8(vec![1, 2, 3])), of("b", Numbers::F32(vec![0.5]))];
        let bytes = frame(&serde_json::json!({"x": 1}), &sections);
        let (value, at) = json(&bytes);
        assert_eq!(value["sections"][1], serde_json::json!({"name": "b", "type": "f32", "length": 1}));
        assert_eq!(bytes[at..at + 3], [1, 2, 3]);
        assert_eq!(bytes[at + 8..], 0.5f32.to_le_bytes());
    }

    #[test]
    fn nothing_in_a_name_acts() {
        let name = "a\u{1b}]0;x\u{7}\u{202e}\\ <script>\"\n\r\u{8}";
        let (value, _) = json(&frame(&serde_json::json!({ "name": name }), &[]));
        assert_eq!(value["name"], "a\\x1b]0;x\\x07\\u{202e}\\ <script>\"\n\\r\\x08");
    }
}
