//! What a question is answered with.

use serde::Serialize;

use crate::framing::{self, Numbers, Section};
use crate::{Error, Result};

/// The answer's bytes, as [`framing`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer(pub Vec<u8>);

#[derive(Serialize)]
struct Failure {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cancelled: bool,
}

impl Answer {
    /// A document alone.
    pub(crate) fn document<T: Serialize>(document: &T) -> Self {
        Answer(framing::frame(document, &[]))
    }

    /// A document with numbers.
    pub(crate) fn with<T: Serialize>(document: &T, sections: Vec<(impl Into<String>, Numbers)>) -> Self {
        let section = |(name, numbers)| {
            let name: String = Into::into(name);
            Section { name, numbers }
        };
        let sections: Vec<Section> = sections.into_iter().map(section).collect();
        Answer(framing::frame(document, &sections))
    }

    /// The answer, or why there is none: `{"error":"…"}`, or `{"cancelled":true}`.
    pub fn of(result: Result<Answer>) -> Self {
        let failure = match result {
            Ok(answer) => return answer,
            Err(Error::Cancelled) => Failure { error: None, cancelled: true },
            Err(e) => Failure { error: Some(e.to_string()), cancelled: false },
        };
        Answer::document(&failure)
    }
}
