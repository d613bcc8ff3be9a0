//! Folded stacks: one line for each, with what it took, as `flamegraph.pl` and inferno read them.
//!
//! Frames are separated by `;`, the weight stands behind the last space. Weights are microseconds, or samples where the trace does not
//! say for how long a sample stands; a stack below half a microsecond has no line.

use std::io::Write;

use holdup_base::text::clean;

use crate::stacks::{Choice, Kind, Unit, weigh};
use crate::study::studied;
use crate::{Result, Source};

/// What there is if nobody chooses: more than one kind in one graph has to be asked for.
const USUAL: [Kind; 1] = [Kind::OnCpu];

/// Writes the lines; of several kinds, each begins with its kind.
///
/// # Errors
/// If the trace is damaged, if the focus names no process, or if `out` takes no more.
pub fn write(source: &Source, choice: &Choice, out: &mut dyn Write) -> Result<()> {
    let kinds = if choice.kinds.is_empty() { &USUAL } else { choice.kinds.as_slice() };
    let found = studied(source, |study| weigh(study, kinds, choice.per_thread))?;
    let names: Vec<String> = found.names.iter().map(|n| framed(&n.name)).collect();
    let mut lines = Vec::new();
    for group in &found.groups {
        for (path, weight) in &group.paths {
            let frames: Vec<&str> = path.iter().filter_map(|&id| names.get(id as usize)).map(String::as_str).collect();
            let weight = match group.unit {
                Unit::Nanoseconds => weight.saturating_add(500) / 1000,
                Unit::None => *weight,
            };
            let kind = if kinds.len() > 1 { format!("{};", group.kind) } else { String::new() };
            if weight > 0 {
                lines.push(format!("{kind}{} {weight}\n", frames.join(";")));
            }
        }
    }
    lines.sort_unstable();
    Ok(lines.iter().try_for_each(|line| out.write_all(line.as_bytes()))?)
}

/// A name as one frame: without what ends a frame or a line, and without spaces at its ends, which readers trim.
fn framed(name: &str) -> String {
    let name = clean(name.trim()).replace(';', ":");
    if name.is_empty() { "?".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::framed;

    #[test]
    fn a_name_is_one_frame() {
        assert_eq!(framed("[u8; 8]"), "[u8: 8]");
        assert_eq!(framed(" f 12\n"), "f 12");
        assert_eq!(framed("a\nb;c 1\n"), "a\\nb:c 1");
        assert_eq!(framed("\x1b[2J"), "\\x1b[2J");
        assert_eq!(framed(" \t"), "?");
    }
}
