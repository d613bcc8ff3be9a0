//! What the arguments of probes are.

/// What an argument of a probe is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Argument {
    /// Not asked for.
    #[default]
    None,
    /// A number that tells what the span is about.
    Integer,
    /// A text that does.
    Text,
    /// A number that ties the span's begin to its end.
    Key,
}

impl Argument {
    pub(crate) fn code(self) -> u8 {
        match self {
            Argument::None => 0,
            Argument::Integer => 1,
            Argument::Text => 2,
            Argument::Key => 3,
        }
    }

    pub(crate) fn from_code(code: u8) -> Argument {
        match code {
            1 => Argument::Integer,
            2 => Argument::Text,
            3 => Argument::Key,
            _ => Argument::None,
        }
    }
}
