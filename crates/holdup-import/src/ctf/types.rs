//! The types of TSDL. Those that hold others are shared, so a name that stands for a large one costs nothing.

use std::rc::Rc;

/// Types nest no deeper than this.
pub const MAX_DEPTH: u8 = 24;
/// A type has no more members than this, those of its members included.
pub const MAX_MEMBERS: u32 = 1 << 14;

/// How a field is laid out.
#[derive(Debug, Clone)]
pub enum Type {
    /// An integer, of as many bits as it says.
    Integer(Integer),
    /// A floating-point number: its bits and its alignment. Nothing here asks for its value.
    Float(u32, u16),
    /// Bytes up to a NUL.
    Text,
    /// An integer whose ranges have names.
    Enum(Rc<Enum>),
    /// One after the other.
    Struct(Rc<Struct>),
    /// One of several, as a tag says.
    Variant(Rc<Variant>),
    /// Many of one kind.
    Array(Rc<Array>),
}

/// An integer.
#[derive(Debug, Clone)]
pub struct Integer {
    /// Its length in bits, 1 to 64.
    pub bits: u8,
    /// It begins at a multiple of as many bits.
    pub align: u16,
    /// Whether its highest bit is its sign.
    pub signed: bool,
    /// Its byte order, where it is not the trace's.
    pub big: Option<bool>,
    /// The clock that it is a reading of.
    pub clock: Option<Rc<str>>,
}

/// An integer whose ranges have names.
#[derive(Debug)]
pub struct Enum {
    /// The integer.
    pub integer: Integer,
    /// Names, and the first and last value of each.
    pub ranges: Vec<(Rc<str>, i128, i128)>,
}

/// Members, one after the other.
#[derive(Debug)]
pub struct Struct {
    /// Names and types.
    pub fields: Vec<(Rc<str>, Type)>,
    /// It begins at a multiple of as many bits, and of what its members ask for.
    pub align: u16,
    size: Size,
}

/// One of several.
#[derive(Debug)]
pub struct Variant {
    /// The enumeration that says which; empty where that is said later.
    pub tag: Rc<str>,
    /// Names and types.
    pub options: Rc<[(Rc<str>, Type)]>,
    size: Size,
}

/// Many of one kind.
#[derive(Debug)]
pub struct Array {
    /// Of what.
    pub element: Type,
    /// How many.
    pub length: Length,
    size: Size,
}

/// How many elements an array has.
#[derive(Debug, Clone)]
pub enum Length {
    /// Always as many.
    Fixed(u64),
    /// As the field of this name says.
    Field(Rc<str>),
}

/// What keeps types from growing without end.
#[derive(Debug, Clone, Copy)]
struct Size {
    depth: u8,
    members: u32,
}

impl Size {
    /// Of what holds these. `None` if that is too much.
    fn around<'t>(inner: impl Iterator<Item = &'t Type>) -> Option<Size> {
        let mut size = Size { depth: 1, members: 1 };
        for part in inner.map(Type::size) {
            size.depth = size.depth.max(part.depth.saturating_add(1));
            size.members = size.members.saturating_add(part.members);
        }
        (size.depth <= MAX_DEPTH && size.members <= MAX_MEMBERS).then_some(size)
    }
}

impl Type {
    /// `None` if it is too large.
    pub fn structure(fields: Vec<(Rc<str>, Type)>, align: u16) -> Option<Type> {
        let size = Size::around(fields.iter().map(|(_, t)| t))?;
        Some(Type::Struct(Rc::new(Struct { fields, align, size })))
    }

    /// `None` if it is too large.
    pub fn variant(tag: Rc<str>, options: Rc<[(Rc<str>, Type)]>) -> Option<Type> {
        let size = Size::around(options.iter().map(|(_, t)| t))?;
        Some(Type::Variant(Rc::new(Variant { tag, options, size })))
    }

    /// `None` if it is too large.
    pub fn array(element: Type, length: Length) -> Option<Type> {
        let size = Size::around(std::iter::once(&element))?;
        Some(Type::Array(Rc::new(Array { element, length, size })))
    }

    fn size(&self) -> Size {
        match self {
            Type::Struct(s) => s.size,
            Type::Variant(v) => v.size,
            Type::Array(a) => a.size,
            Type::Integer(_) | Type::Float(..) | Type::Text | Type::Enum(_) => Size { depth: 1, members: 1 },
        }
    }

    /// It begins at a multiple of as many bits.
    pub fn align(&self) -> u16 {
        match self {
            Type::Integer(i) => i.align,
            Type::Enum(e) => e.integer.align,
            Type::Float(_, align) => *align,
            Type::Text => 8,
            Type::Struct(s) => s.fields.iter().map(|(_, t)| t.align()).fold(s.align, u16::max),
            // What a variant holds is aligned when it is known what it is.
            Type::Variant(_) => 1,
            Type::Array(a) => a.element.align(),
        }
    }

    /// Its length in bits, if that is always the same and elements of it lie side by side.
    pub fn packed_bits(&self) -> Option<u32> {
        let (bits, align) = match self {
            Type::Integer(i) => (u32::from(i.bits), i.align),
            Type::Enum(e) => (u32::from(e.integer.bits), e.integer.align),
            Type::Float(bits, align) => (*bits, *align),
            _ => return None,
        };
        bits.is_multiple_of(align.into()).then_some(bits)
    }
}
