//! Tells a running question that nobody wants its answer any more.

use holdup_analysis::explore::Stop;

use crate::{Error, Result};

/// Tells a running question that nobody wants its answer any more.
#[derive(Debug, Default)]
pub struct Cancel(Stop);

impl Cancel {
    /// Ends the question soon: within some milliseconds, where it looks.
    pub fn cancel(&self) {
        self.0.stop();
    }

    /// Fails if it was cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check(&self) -> Result<()> {
        if self.0.is_stopped() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// For the tables of the analysis.
    pub(crate) fn stop(&self) -> &Stop {
        &self.0
    }
}
