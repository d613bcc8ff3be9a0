//! Why there is no export.

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The trace cannot be read, or the question about it makes no sense.
    #[error(transparent)]
    Trace(#[from] holdup_trace::Error),
    /// The output takes no more.
    #[error(transparent)]
    Write(#[from] std::io::Error),
}

/// JSON is only written: what fails is the output.
impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Error::Write(error.into())
    }
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
