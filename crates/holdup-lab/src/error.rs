//! What can go wrong before anything is measured.

/// Why an experiment or a comparison was not made; each is one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The caller asked for something that makes no sense: a knob out of range, an experiment that does not exist.
    Usage(String),
    /// This machine can't do it.
    Platform(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Usage(text) | Error::Platform(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// What functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;
