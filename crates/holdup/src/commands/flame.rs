//! Flame graphs as files.

use std::io::Write;

use anyhow::Context;
use holdup_base::output::Output;

/// Draws `lines`, each a stack and its weight (or two, one for each side), as SVG.
pub fn draw(mut file: Output, lines: &[String], title: &str, unit: &str) -> anyhow::Result<()> {
    let mut options = inferno::flamegraph::Options::default();
    options.title = title.to_owned();
    options.count_name = unit.to_owned();
    let mut svg = Vec::new();
    inferno::flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)?;
    file.write_all(&svg).with_context(|| format!("{} cannot be written", file.path().display()))?;
    Ok(file.commit()?)
}
