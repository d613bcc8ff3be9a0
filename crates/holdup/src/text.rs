//! Printing for people.

pub mod annotate;
pub mod answer;
pub mod chain;
pub mod check;
pub mod diff;
pub mod lab;
pub mod load;
pub mod page;
pub mod progress;
pub mod roster;
pub mod scale;
pub mod screen;
pub mod status;
pub mod wrap;

use std::io::Write;

/// Prints one JSON document on standard output.
pub fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut out = screen::json(std::io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, value).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(())
}
