//! Printing for people.

pub mod annotate;
pub mod answer;
pub mod chain;
pub mod check;
pub mod detail;
pub mod diff;
#[cfg(feature = "fleet")]
pub mod fleet;
pub mod lab;
pub mod live;
pub mod load;
pub mod page;
pub mod progress;
pub mod reproduce;
pub mod scale;
pub mod screen;
pub mod spans;
pub mod status;
pub mod threads;
pub mod wrap;

use std::io::{BufWriter, Write};

use anyhow::Context;
use holdup_base::Output;

/// Prints one JSON document on standard output.
pub fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(json(value, screen::bytes())?)
}

/// Writes one JSON document as the whole of a file.
pub fn write_json(mut file: Output, value: &impl serde::Serialize) -> anyhow::Result<()> {
    json(value, &mut file).with_context(|| format!("{} cannot be written", file.path().display()))?;
    Ok(file.commit()?)
}

/// Written at once: of a document by hand, each bracket would be a system call.
fn json(value: &impl serde::Serialize, out: impl Write) -> std::io::Result<()> {
    let mut out = BufWriter::new(out);
    let mut text = screen::json(&mut out);
    serde_json::to_writer_pretty(&mut text, value)?;
    writeln!(text)?;
    out.flush()
}
