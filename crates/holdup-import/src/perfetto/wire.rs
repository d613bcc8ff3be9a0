//! The wire format of protocol buffers: fields of a message, one after the other.
//!
//! Follows the published encoding. A message is no more than a row of (number, value): what it does not know, a reader
//! passes over.

/// A field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A varint, or a number of four or eight bytes.
    Number(u64),
    /// A text, a message, or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The number; 0 for bytes.
    #[inline]
    pub fn number(self) -> u64 {
        match self {
            Value::Number(n) => n,
            Value::Bytes(_) => 0,
        }
    }

    /// The number as an `int32` or `uint32`: negative ones are written with 64 bits.
    #[inline]
    pub fn low(self) -> u32 {
        self.number() as u32
    }

    /// The bytes; none for a number.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            Value::Number(_) => &[],
        }
    }

    /// The numbers of a repeated field, packed or one by one.
    pub fn numbers(self) -> Numbers<'a> {
        match self {
            Value::Number(one) => Numbers { one: Some(one), packed: &[] },
            Value::Bytes(packed) => Numbers { one: None, packed },
        }
    }
}

/// Numbers of a repeated field; ends early at damage.
#[derive(Debug, Clone, Default)]
pub struct Numbers<'a> {
    one: Option<u64>,
    packed: &'a [u8],
}

impl Iterator for Numbers<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if let Some(one) = self.one.take() {
            return Some(one);
        }
        let (number, rest) = varint(self.packed)?;
        self.packed = rest;
        Some(number)
    }
}

/// A varint and what follows it; `None` if the bytes end inside it or it has more than 64 bits.
#[inline]
pub fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        return Some((first.into(), rest));
    }
    let mut number = u64::from(first & 0x7f);
    for (at, &byte) in rest.iter().take(9).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * (at + 1));
        if byte < 0x80 {
            return Some((number, rest.get(at + 1..)?));
        }
    }
    None
}

/// The fields of a message: number and value. Ends at the message's end or at damage.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Those of `message`.
    #[inline]
    pub fn new(message: &'a [u8]) -> Self {
        Fields { rest: message }
    }

    /// What was not read: nothing, unless the message is damaged or cut.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Value<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (tag, rest) = varint(self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|&n| n != 0)?;
        let (value, rest) = match tag & 7 {
            0 => varint(rest).map(|(n, rest)| (Value::Number(n), rest))?,
            1 => rest.split_first_chunk().map(|(n, rest)| (Value::Number(u64::from_le_bytes(*n)), rest))?,
            2 => {
                let (len, rest) = varint(rest)?;
                let (bytes, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
                (Value::Bytes(bytes), rest)
            }
            5 => rest.split_first_chunk().map(|(n, rest)| (Value::Number(u32::from_le_bytes(*n).into()), rest))?,
            // Groups were given up before this format was made.
            _ => return None,
        };
        self.rest = rest;
        Some((number, value))
    }
}

/// The value of the first field of that number.
pub fn field(message: &[u8], number: u32) -> Option<Value<'_>> {
    Fields::new(message).find(|&(n, _)| n == number).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_the_encoding_has_them() {
        // 150 of the format's own description; the same with bytes to spare; the greatest.
        assert_eq!(varint(&[0x96, 0x01, 9]), Some((150, &[9][..])));
        assert_eq!(varint(&[0x96, 0x81, 0x80, 0x00]), Some((150, &[][..])));
        assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), Some((u64::MAX, &[][..])));
        assert_eq!([varint(&[]), varint(&[0x80]), varint(&[0x80; 11])], [None; 3]);
    }

    #[test]
    fn fields_of_all_kinds() {
        let message = [0x08, 0x05, 0x12, 0x02, b'h', b'i', 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0];
        let fields: Vec<_> = Fields::new(&message).collect();
        let wanted = [(1, Value::Number(5)), (2, Value::Bytes(b"hi")), (3, Value::Number(1)), (4, Value::Number(2))];
        assert_eq!(fields, wanted);
        assert_eq!(field(&message, 2).map(Value::bytes), Some(&b"hi"[..]));
        assert_eq!(Value::Bytes(&[1, 0x96, 1]).numbers().collect::<Vec<_>>(), [1, 150]);
    }

    #[test]
    fn a_message_that_is_cut_ends_before_the_cut() {
        let message = [0x08, 0x05, 0x12, 0x03, b'h', b'i'];
        let mut fields = Fields::new(&message);
        assert_eq!(fields.by_ref().count(), 1);
        assert_eq!(fields.rest().len(), 4);
    }
}
