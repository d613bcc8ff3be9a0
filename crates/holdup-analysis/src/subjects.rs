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

#[cfg(test)]
mod tests {
    use holdup_trace::{Destination, ExecEvent, ForkEvent, NameEvent, SubjectEvent, TraceBuilder};

    use super::*;

    #[test]
    fn workers_work_on_what_their_parent_does_until_they_run_something_else() {
        let mut builder = TraceBuilder::new(&Destination::Memory).expect("builder");
        let (python, script) = (builder.string("python3"), builder.string("render.py"));
        builder.push(1, NameEvent { pid: 10, tid: 10, name: python });
        builder.push(2, SubjectEvent { pid: 10, what: script });
        for pid in [11, 12] {
            builder.push(3, ForkEvent { parent_pid: 10, parent: 10, pid, tid: pid });
        }
        builder.push(3, ForkEvent { parent_pid: 10, parent: 10, pid: 10, tid: 13 });
        builder.push(4, ExecEvent { pid: 12 });
        let trace = builder.finish(None).expect("trace");
        let subjects = Subjects::of(&trace).expect("subjects");
        let of = |tid: u32| {
            let at = trace.threads.tid.iter().position(|t| *t == tid).expect("a thread");
            subjects.of_thread(ThreadIdx(at as u32)).map(|what| trace.text(what))
        };
        assert_eq!([10, 11, 12, 13].map(of), [Some("render.py"), Some("render.py"), None, Some("render.py")]);
    }
}
