//! `holdup record --ship`: what was recorded goes where the fleet's traces are.

use std::path::{Path, PathBuf};

use super::{beside, export};
use crate::text::screen::say;
use crate::text::status;

/// Bytes of a queue from which on recordings stay where they are, and their rows alone wait there.
const MOST: u64 = 1 << 30;

/// Adds the recording in the file `trace` to the data set `to`. What goes to an address waits in a queue, a data set beside the recording, until the
/// store has it; nothing here waits for that.
///
/// # Errors
/// The trace can't be read, a folder can't be written, or the program that carries is not there: then it is in the queue.
pub fn ship(trace: &Path, to: &str) -> anyhow::Result<()> {
    if !to.contains("://") {
        export::dataset::add_recorded(trace, Path::new(to), true)?;
        say!("holdup: {} → {to}", trace.display());
        return Ok(());
    }
    let queue = queue_beside(trace);
    let has_room = size(&queue) < MOST;
    if !has_room {
        let full = status::bytes(MOST);
        say!(
            "note: {} holds {full} already: {} stays where it is, what was found in it is sent",
            queue.display(),
            trace.display()
        );
    }
    export::dataset::add_recorded(trace, &queue, has_room)?;
    beside::ship_on(&queue, to)
}

/// Carries what an earlier run has left in the queue.
///
/// # Errors
/// The program that carries is not there.
pub fn go_on(output: &Path, to: &str) -> anyhow::Result<()> {
    let queue = queue_beside(output);
    if to.contains("://") && queue.is_dir() { beside::ship_on(&queue, to) } else { Ok(()) }
}

fn queue_beside(trace: &Path) -> PathBuf {
    trace.with_file_name("holdup-queue")
}

/// Bytes of the files below a folder. What is a link is not followed.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(m) if m.is_dir() => size(&entry.path()),
        Ok(m) if m.is_file() => m.len(),
        _ => 0,
    };
    entries.flatten().map(of).sum()
}
