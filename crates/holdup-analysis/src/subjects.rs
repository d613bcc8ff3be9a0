//! What processes work on, of programs that do different things by their command line.

use holdup_trace::tables::Subject;
use holdup_trace::{Result, StringId, Table, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use crate::servers::Processes;

/// By thread: the script, source file or class that its process works on.
#[derive(Debug, Clone)]
pub struct Subjects(Vec<StringId>);

impl Subjects {
    /// The last that was seen of each process. O(threads).
    ///
    /// # Errors
    /// If the table of subjects cannot be read.
    pub fn of(trace: &Trace) -> Result<Self> {
        let mut seen: FxHashMap<ThreadIdx, StringId> = FxHashMap::default();
        for row in trace.subjects.iter() {
            let Subject { thread, what, .. } = row?;
            seen.insert(thread, what);
        }
        if seen.is_empty() {
            return Ok(Subjects(Vec::new()));
        }
        let processes = Processes::of(trace);
        let of = |thread| processes.main(thread).and_then(|main| seen.get(&main).copied()).unwrap_or_default();
        Ok(Subjects((0..trace.threads.len()).map(|i| of(ThreadIdx(i as u32))).collect()))
    }

    /// What the thread's process works on; `None` where that is not known, or the program is none of those.
    pub fn of_thread(&self, thread: ThreadIdx) -> Option<StringId> {
        self.0.get(thread.index()).copied().filter(|what| *what != StringId::default())
    }
}
