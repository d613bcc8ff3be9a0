//! The sentence of a finding, which may be added to while it is made.

use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

/// What somebody did and, behind a semicolon, who stood still meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Title {
    text: String,
    /// Where what was done ends, in bytes.
    did: usize,
}

impl Title {
    /// `did` and `stood` are halves of one sentence.
    pub(crate) fn new(did: &str, stood: &str) -> Self {
        Self { did: did.len(), text: format!("{did}; {stood}") }
    }

    /// The whole sentence.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Adds `words` to what was done.
    pub(crate) fn add(&mut self, words: &str) {
        self.text.insert_str(self.did, words);
        self.did += words.len();
    }

    /// Says `stood` of those who stood still, if anything is said of them.
    pub(crate) fn say_of_others(&mut self, stood: &str) {
        if self.did < self.text.len() {
            self.text.replace_range(self.did.., &format!("; {stood}"));
        }
    }

    /// Puts `words` first.
    pub(crate) fn begin_with(&mut self, words: &str) {
        self.text.insert_str(0, words);
        self.did += words.len();
    }
}

/// A sentence of one part.
impl<T: Into<String>> From<T> for Title {
    fn from(text: T) -> Self {
        let text = text.into();
        Self { did: text.len(), text }
    }
}

impl Deref for Title {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Title {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl PartialEq<str> for Title {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for Title {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl Serialize for Title {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_stands_before_those_who_stood_still() {
        let mut title = Title::new("nginx waited; or slept", "3 threads stood still");
        title.add(", as memory was short");
        title.begin_with("perhaps ");
        assert_eq!(title, "perhaps nginx waited; or slept, as memory was short; 3 threads stood still");
        title.say_of_others("nobody did");
        assert_eq!(title, "perhaps nginx waited; or slept, as memory was short; nobody did");
    }

    #[test]
    fn who_is_not_spoken_of_is_not_told() {
        let mut title = Title::from("nginx was idle");
        title.say_of_others("nobody did");
        title.add(" for 3 s");
        assert_eq!(title, "nginx was idle for 3 s");
        assert_eq!(serde_json::to_value(&title).unwrap(), "nginx was idle for 3 s");
    }
}
