//! `holdup disasm`: a function, instruction by instruction.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use holdup_analysis::annotate::{Annotated, annotate};

use crate::cli::Disasm;
use crate::{open, text};
use holdup_view::Machine;

/// Longest source file that is read, in bytes.
const SOURCE_LIMIT: u64 = 16 << 20;

/// Runs the command.
pub fn run(args: &Disasm) -> anyhow::Result<ExitCode> {
    let trace = open::open(&args.trace)?;
    let mut found = annotate(&trace, &args.trace.display().to_string(), &args.function, &Machine)?;
    add_sources(&mut found);
    if args.json {
        text::print_json(&found)?;
    } else {
        text::annotate::print(&found, args.all)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds the text of source lines whose files are on this machine.
fn add_sources(found: &mut Annotated) {
    let mut files: HashMap<String, Option<Vec<String>>> = HashMap::new();
    for row in &mut found.instructions {
        let lines = files.entry(row.file.clone()).or_insert_with_key(|path| read_lines(Path::new(path)));
        let line = lines.as_ref().and_then(|l| l.get((row.line as usize).checked_sub(1)?));
        row.source_text = line.map_or(String::new(), |l| l.trim().to_owned());
    }
}

/// The lines of a regular file; `None` if there is none, or a device, or one that is too long to be source.
fn read_lines(path: &Path) -> Option<Vec<String>> {
    std::fs::metadata(path).ok().filter(|m| m.is_file() && m.len() <= SOURCE_LIMIT)?;
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::read_lines;
    use std::path::Path;

    #[test]
    fn only_regular_files_are_source() {
        assert_eq!(read_lines(Path::new("/dev/zero")), None);
        assert_eq!(read_lines(Path::new("/")), None);
        assert_eq!(read_lines(Path::new("")), None);
        assert!(read_lines(Path::new(file!())).is_none_or(|l| l[0].starts_with("//!")));
    }
}
