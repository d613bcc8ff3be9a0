//! The values that pass between a script and a server.

/// A value without the types of any server. A driver binds it to the type that the statement asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// Any integer type, if it fits.
    Int(i64),
    /// Any floating-point type.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
    /// A UUID, big-endian.
    Uuid([u8; 16]),
    /// A list, a set or a tuple.
    List(Vec<Value>),
    /// A map or a structure: pairs in their order.
    Map(Vec<(Value, Value)>),
}

#[cfg(any(feature = "cql", feature = "postgres", feature = "http", feature = "redis"))]
impl Value {
    /// For messages: its kind with an article.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Text(_) => "a text",
            Value::Blob(_) => "a blob",
            Value::Uuid(_) => "a UUID",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

/// The 32 digits of a UUID, with or without hyphens at their usual places.
#[cfg(any(feature = "cql", feature = "postgres"))]
pub(super) fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    uuid::Uuid::try_parse(text).ok().map(uuid::Uuid::into_bytes)
}

/// A UUID with hyphens.
#[cfg(any(feature = "http", feature = "redis"))]
pub(super) fn show_uuid(bytes: &[u8; 16]) -> String {
    uuid::Uuid::from_bytes(*bytes).hyphenated().to_string()
}

#[cfg(all(test, feature = "cql"))]
mod tests {
    use super::parse_uuid;

    #[test]
    fn a_uuid_is_read_with_and_without_hyphens() {
        let bytes = [0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x00];
        assert_eq!(parse_uuid("123e4567-e89b-12d3-a456-426614174000"), Some(bytes));
        assert_eq!(parse_uuid("123E4567E89B12D3A456426614174000"), Some(bytes));
        for wrong in ["", "123e4567", "123e4567-e89b-12d3-a456-42661417400g", "123e4567e-89b-12d3-a456-426614174000"] {
            assert_eq!(parse_uuid(wrong), None, "{wrong}");
        }
    }
}

/// A value that doesn't fit where the statement has it: a sentence.
#[cfg(any(feature = "cql", feature = "postgres"))]
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Misfit(pub(super) String);
