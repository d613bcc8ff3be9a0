//! Thrift's compact protocol, as far as Parquet's metadata needs it.

/// Types of fields, as the protocol numbers them.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I8: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// What the elements of a list are.
#[derive(Clone, Copy)]
pub enum Element {
    /// Numbers.
    I32,
    /// Texts.
    Binary,
    /// Structs: each between [`Writer::open`] and [`Writer::close`].
    Struct,
}

/// A struct that is being written.
#[derive(Default)]
pub struct Writer {
    out: Vec<u8>,
    /// The last field of the open struct, then those of the structs around it.
    last: i16,
    around: Vec<i16>,
}

impl Writer {
    /// The bytes of the outermost struct.
    pub fn finish(mut self) -> Vec<u8> {
        self.out.push(0);
        self.out
    }

    pub fn i8(&mut self, field: i16, value: i8) {
        self.field(field, I8);
        self.out.push(value.cast_unsigned());
    }

    pub fn i16(&mut self, field: i16, value: i16) {
        self.field(field, I16);
        zigzag(&mut self.out, value.into());
    }

    pub fn i32(&mut self, field: i16, value: i32) {
        self.field(field, I32);
        zigzag(&mut self.out, value.into());
    }

    pub fn i64(&mut self, field: i16, value: i64) {
        self.field(field, I64);
        zigzag(&mut self.out, value);
    }

    pub fn bool(&mut self, field: i16, value: bool) {
        self.field(field, if value { TRUE } else { FALSE });
    }

    pub fn binary(&mut self, field: i16, value: &[u8]) {
        self.field(field, BINARY);
        self.bytes(value);
    }

    /// Begins a struct in a field.
    pub fn begin(&mut self, field: i16) {
        self.field(field, STRUCT);
        self.open();
    }

    /// Begins a list, whose elements follow.
    pub fn list(&mut self, field: i16, of: Element, length: usize) {
        self.field(field, LIST);
        let code = match of {
            Element::I32 => I32,
            Element::Binary => BINARY,
            Element::Struct => STRUCT,
        };
        match u8::try_from(length) {
            Ok(short) if short < 15 => self.out.push(short << 4 | code),
            _ => {
                self.out.push(0xf0 | code);
                varint(&mut self.out, length as u64);
            }
        }
    }

    /// Begins a struct in a list.
    pub fn open(&mut self) {
        self.around.push(std::mem::take(&mut self.last));
    }

    /// Ends a struct.
    pub fn close(&mut self) {
        self.out.push(0);
        self.last = self.around.pop().unwrap_or_default();
    }

    /// A number in a list.
    pub fn number(&mut self, value: i32) {
        zigzag(&mut self.out, value.into());
    }

    /// A text in a list.
    pub fn bytes(&mut self, value: &[u8]) {
        varint(&mut self.out, value.len() as u64);
        self.out.extend_from_slice(value);
    }

    /// Fields come in the order of their numbers, none more than 15 behind the one before.
    fn field(&mut self, field: i16, code: u8) {
        let distance = (field - self.last) as u8;
        self.out.push(distance << 4 | code);
        self.last = field;
    }
}

/// Seven bits in each byte, the lowest first.
pub fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Small numbers are short, whatever their sign.
pub fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}
