//! `holdup schema`: what the documents of `--json` look like.

use std::process::ExitCode;

use holdup_base::near;

use super::Usage;
use crate::documents::{DOCUMENTS, Document};
use crate::text;
use crate::text::screen::show;

/// Prints the schema of a document, or the list of documents.
pub fn run(asked: Option<&str>) -> anyhow::Result<ExitCode> {
    let Some(asked) = asked else {
        for document in DOCUMENTS {
            show!("{:<14} {:<22} {}", document.name, document.id, document.of);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let is_meant = |d: &&Document| d.name == asked || d.id == asked;
    let Some(document) = DOCUMENTS.iter().find(is_meant) else {
        let names = || DOCUMENTS.iter().map(|d| d.name);
        let hint = near::hint(asked, names());
        let all = names().collect::<Vec<_>>().join(", ");
        return Err(Usage(format!("there is no document {asked}{hint}; there are {all}")).into());
    };
    text::print_json(&document.schema())?;
    Ok(ExitCode::SUCCESS)
}
