//! What frames, stacks and threads are called in tables and findings.

pub use holdup_base::numbers::{count, duration};
use holdup_trace::tables::LocationRow;
use holdup_trace::{FrameId, LockId, StackId, Table, ThreadIdx, Trace};

use crate::report::LockFacts;

/// Kernel functions through which the recorder itself was called.
const RECORDER_FRAMES: &[&str] = &["__traceiter_", "bpf_prog_", "bpf_trace_run", "__bpf_trace", "bpf_trampoline_"];

/// `file.c:12`, the file without its folders; empty if unknown.
pub fn source(trace: &Trace, l: &LocationRow) -> String {
    // Where a Python module begins, which is all that some recordings tell, says nothing of where in it that is.
    let begins = l.line == 1 && trace.text(l.function) == "<module>";
    let line = if begins { 0 } else { l.line };
    file_line(trace.text(l.file), line)
}

/// The same for a path and a line; 0 is no line.
pub fn file_line(file: &str, line: u32) -> String {
    let base = named_file(file);
    match (base, line) {
        ("", _) => String::new(),
        (base, 0) => base.to_owned(),
        (base, line) => format!("{base}:{line}"),
    }
}

/// Files that are all called so: their folder says which one it is.
const NAMELESS_FILES: &[&str] = &["__init__.py", "__main__.py", "mod.rs", "index.js", "index.mjs", "index.ts"];

/// Below this folder are packages of others, each in a folder of its name.
const PACKAGES: &str = "/node_modules/";

/// The end of a path that tells the file from others: its name, with the folder where all are called so, and from its package on where what a
/// package consists of is often put into one file.
fn named_file(path: &str) -> &str {
    if let Some((_, of_package)) = path.rsplit_once(PACKAGES).filter(|(_, inside)| inside.contains('/')) {
        return of_package;
    }
    let Some((folders, base)) = path.rsplit_once('/') else { return path };
    match folders.rsplit('/').next() {
        Some(folder) if !folder.is_empty() && NAMELESS_FILES.contains(&base) => {
            &path[path.len() - base.len() - folder.len() - 1..]
        }
        _ => base,
    }
}

/// The frames of a stack as lines, the innermost first, inlined functions included.
pub fn stack_lines(trace: &Trace, stack: StackId) -> Vec<String> {
    let mut lines: Vec<String> = trace.stacks.frames(stack).flat_map(|f| frame_lines(trace, f)).collect();
    let own = lines.iter().take_while(|l| is_recorder(l)).count();
    lines.split_off(own)
}

/// Whether a kernel function only called the recorder.
pub fn is_recorder(function: &str) -> bool {
    RECORDER_FRAMES.iter().any(|p| function.starts_with(p))
}

/// `function (file.c:12)` for each function inlined at a frame; the bare address where nothing is known.
fn frame_lines(trace: &Trace, frame: FrameId) -> Vec<String> {
    let lines: Vec<String> = trace.names.locations(frame).map(|l| location(trace, &l)).collect();
    if !lines.is_empty() {
        return lines;
    }
    vec![format!("{:#x}", trace.stacks.frame(frame).map_or(0, |f| f.address))]
}

/// `function (file.c:12)`, or the function alone.
pub(crate) fn location(trace: &Trace, l: &LocationRow) -> String {
    let function = trace.text(l.function);
    match source(trace, l) {
        source if source.is_empty() => function.to_owned(),
        source => format!("{function} ({source})"),
    }
}

/// The thread's last name; empty if unknown.
pub fn thread_name(trace: &Trace, thread: ThreadIdx) -> &str {
    trace.threads.name.get(thread.index()).map_or("", |n| trace.text(*n))
}

/// The name of the thread's process; empty if unknown.
pub fn process_name(trace: &Trace, thread: ThreadIdx) -> &str {
    trace.threads.process.get(thread.index()).map_or("", |n| trace.text(*n))
}

/// The lock as reports name it; `None` for no lock, and for one of which the source has no address.
pub fn lock(trace: &Trace, lock: LockId) -> Option<LockFacts> {
    if lock == LockId::NONE || lock.index() >= trace.locks.len() {
        return None;
    }
    let row = trace.locks.row(lock.index());
    Some(LockFacts { kind: row.kind, address: format!("{:#x}", row.address), name: trace.text(row.name).to_owned() })
}
/// So many threads, in words.
pub(crate) fn threads(n: usize) -> String {
    if n == 1 { "1 thread".to_owned() } else { format!("{n} threads") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_so_that_it_is_told_from_others() {
        assert_eq!(file_line("/srv/app/jobs.py", 7), "jobs.py:7");
        assert_eq!(file_line("/srv/app/jobs/__init__.py", 7), "jobs/__init__.py:7");
        assert_eq!(file_line("/srv/node_modules/terser/dist/bundle.min.js", 1), "terser/dist/bundle.min.js:1");
        assert_eq!(file_line("/srv/node_modules/a/node_modules/@b/c/index.js", 0), "@b/c/index.js");
        assert_eq!(file_line("/srv/node_modules/loose.js", 0), "loose.js");
    }
}
