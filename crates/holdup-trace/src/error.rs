//! One error type: a sentence that says what, where, and what to do.

use std::path::Path;

/// What can go wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input is not what it claims to be, or is damaged. Exit code 3.
    #[error("{0}")]
    Input(String),
    /// The platform or the privilege is missing. Exit code 4.
    #[error("{0}")]
    Unsupported(String),
    /// What holdup itself reckoned contradicts itself: nobody's input is to blame. Exit code 70.
    #[error("this is a mistake in holdup, please report it: {0}")]
    Bug(String),
}

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An input error that names the file.
    pub fn input(path: &Path, what: impl std::fmt::Display) -> Self {
        Error::Input(format!("{}: {what}", path.display()))
    }

    /// An input error that names the file and the byte offset where it was noticed.
    pub fn at(path: &Path, offset: u64, what: impl std::fmt::Display) -> Self {
        Error::Input(format!("{} at byte {offset}: {what}", path.display()))
    }
}
