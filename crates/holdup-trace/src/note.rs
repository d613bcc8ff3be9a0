//! What the user should know of a trace beyond its tables.

use std::fmt;

use holdup_base::named;
use serde::{Deserialize, Serialize};

named! {
    /// What kind of thing a note tells.
    #[derive(Default)]
    pub enum NoteKind {
        /// Anything else.
        #[default]
        Plain = "plain",
        /// Events that were not recorded: whole tables are empty.
        MissingEvents = "missing-events",
        /// A file whose functions have no names.
        NoNames = "no-names",
    }
}

/// A sentence about a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "Stored")]
pub struct Note {
    /// What kind of thing it tells.
    pub kind: NoteKind,
    /// The sentence.
    pub text: String,
}

/// A note in a file: of version 1 it is the sentence alone.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Stored {
    Sentence(String),
    Note { kind: NoteKind, text: String },
}

impl Note {
    /// A note of that kind.
    pub fn new(kind: NoteKind, text: impl Into<String>) -> Note {
        Note { kind, text: text.into() }
    }
}

impl From<Stored> for Note {
    fn from(stored: Stored) -> Note {
        match stored {
            Stored::Sentence(text) => Note::from(text),
            Stored::Note { kind, text } => Note { kind, text },
        }
    }
}

impl From<String> for Note {
    fn from(text: String) -> Note {
        Note { kind: NoteKind::Plain, text }
    }
}

impl From<&str> for Note {
    fn from(text: &str) -> Note {
        text.to_owned().into()
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_of_older_files_are_plain_notes() {
        let stored = r#"["no names for /bin/x: gone", {"kind": "no-names", "text": "no names for /bin/y: gone"}]"#;
        let notes: Vec<Note> = serde_json::from_str(stored).expect("notes");
        let wanted =
            [Note::from("no names for /bin/x: gone"), Note::new(NoteKind::NoNames, "no names for /bin/y: gone")];
        assert_eq!(notes, wanted);
        let again = serde_json::to_string(&notes).expect("json");
        assert_eq!(serde_json::from_str::<Vec<Note>>(&again).expect("notes"), wanted);
    }
}
