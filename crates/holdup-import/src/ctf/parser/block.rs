//! The assignments of a block, and what they say of a type.

use std::rc::Rc;

use super::super::types::{Integer, Type};
use super::Fault;

/// What stands behind `=` or `:=` in a block.
#[derive(Debug, Clone)]
pub enum Value {
    /// A text, or names with dots between them.
    Text(String),
    /// An integer.
    Number(i128),
    /// A type.
    Type(Type),
}

/// The assignments of a block, by their left sides.
#[derive(Debug, Default)]
pub struct Block(Vec<(String, Value)>);

/// Largest alignment, in bits: what a window of a file is aligned to as well.
const MAX_ALIGN: i128 = 1 << 12;

/// An alignment that some type may have.
pub fn alignment(bits: i128) -> Result<u16, Fault> {
    match u16::try_from(bits) {
        Ok(align) if align.is_power_of_two() && i128::from(align) <= MAX_ALIGN => Ok(align),
        _ => Err(format!("an alignment of {bits} bits; a power of two up to {MAX_ALIGN} expected")),
    }
}

impl Block {
    /// One more assignment.
    pub fn push(&mut self, name: String, value: Value) {
        self.0.push((name, value));
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// The text of `name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number of `name`.
    pub fn number(&self, name: &str) -> Option<i128> {
        match self.get(name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The type of `name`.
    pub fn typed(&self, name: &str) -> Option<Type> {
        match self.get(name)? {
            Value::Type(of) => Some(of.clone()),
            _ => None,
        }
    }

    /// All names and values.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether the byte order is big-endian; `None` for the trace's own.
    pub fn big_endian(&self) -> Option<bool> {
        match self.text("byte_order")? {
            "be" | "network" => Some(true),
            "le" => Some(false),
            _ => None,
        }
    }

    fn align(&self, bits: u32) -> Result<u16, Fault> {
        self.number("align").map_or(Ok(if bits.is_multiple_of(8) { 8 } else { 1 }), alignment)
    }

    /// What an `integer` says of itself.
    pub fn integer(&self) -> Result<Integer, Fault> {
        let bits = self.number("size").ok_or("an integer without a size")?;
        let bits = match u8::try_from(bits) {
            Ok(bits @ 1..=64) => bits,
            _ => return Err(format!("an integer of {bits} bits; 1 to 64 expected")),
        };
        let is_yes = |value: &Value| match value {
            Value::Number(n) => *n != 0,
            Value::Text(text) => text.eq_ignore_ascii_case("true"),
            Value::Type(_) => false,
        };
        Ok(Integer {
            bits,
            align: self.align(bits.into())?,
            signed: self.get("signed").is_some_and(is_yes),
            big: self.big_endian(),
            clock: self.text("map").and_then(|map| map.strip_prefix("clock.")?.strip_suffix(".value")).map(Rc::from),
        })
    }

    /// What a `floating_point` says of itself.
    pub fn float(&self) -> Result<Type, Fault> {
        let digits = ["exp_dig", "mant_dig"].map(|part| self.number(part).and_then(|n| u16::try_from(n).ok()));
        let [Some(exponent), Some(mantissa)] = digits else {
            return Err("a floating_point without exp_dig and mant_dig".to_owned());
        };
        let bits = u32::from(exponent) + u32::from(mantissa);
        Ok(Type::Float(bits, self.align(bits)?))
    }
}
