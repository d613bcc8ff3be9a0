//! Why there is no answer.

/// Why there is no answer.
#[derive(Debug)]
pub enum Error {
    /// The question makes no sense; the sentence says why, and what would.
    Question(String),
    /// The trace cannot be read.
    Trace(holdup_trace::Error),
    /// Nobody wants it any more.
    Cancelled,
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Question(what) => f.write_str(what),
            Error::Trace(e) => e.fmt(f),
            Error::Cancelled => f.write_str("cancelled by a newer question"),
        }
    }
}

impl std::error::Error for Error {}

impl From<holdup_trace::Error> for Error {
    fn from(e: holdup_trace::Error) -> Self {
        Error::Trace(e)
    }
}

impl From<holdup_analysis::explore::Error> for Error {
    fn from(e: holdup_analysis::explore::Error) -> Self {
        match e {
            holdup_analysis::explore::Error::Question(what) => Error::Question(what),
            holdup_analysis::explore::Error::Trace(e) => Error::Trace(e),
            holdup_analysis::explore::Error::Stopped => Error::Cancelled,
        }
    }
}
