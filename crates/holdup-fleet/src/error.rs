//! Why there is no answer.

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked, or the data set, is not as it has to be. A sentence.
    #[error("{0}")]
    Input(String),
    /// The store does not give or take something.
    #[error("{0}")]
    Store(#[from] object_store::Error),
    /// The engine could not answer.
    #[error("{0}")]
    Engine(#[from] datafusion::error::DataFusionError),
    /// This machine does not give what is needed.
    #[error(transparent)]
    Machine(#[from] std::io::Error),
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
