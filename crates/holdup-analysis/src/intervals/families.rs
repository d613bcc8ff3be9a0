//! Which processes are one program.

use holdup_trace::{Table, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

/// Forks of forks are followed so far: parents in a circle, as a damaged file may have, end.
const DEEPEST: usize = 64;

/// Which processes are one program: those of one name that come from one of them. Two services in one language have the same name, and
/// nothing else in common.
#[derive(Debug, Default)]
pub(super) struct Families {
    /// The process of which all come, by thread; `None` where a parent is not known.
    of: Vec<Option<u32>>,
}

impl Families {
    /// `mains` are the first threads of the processes. O(threads × how deep they were forked).
    pub(super) fn new(trace: &Trace, mains: &FxHashMap<u32, ThreadIdx>) -> Self {
        let threads = &trace.threads;
        let main = |thread: usize| mains.get(&threads.pid[thread]).map_or(thread, |main| main.index());
        let first = |thread: usize| {
            let mut at = main(thread);
            for _ in 0..DEEPEST {
                let parent = threads.parent[at];
                if !parent.is_real() || parent.index() >= threads.len() {
                    return None;
                }
                let parent = main(parent.index());
                if threads.process[parent] != threads.process[at] {
                    return Some(threads.pid[at]);
                }
                at = parent;
            }
            None
        };
        Families { of: (0..threads.len()).map(first).collect() }
    }

    /// Whether two threads are of one program; if their parents are not known, the name tells.
    pub(super) fn are_one(&self, trace: &Trace, a: ThreadIdx, b: ThreadIdx) -> bool {
        let threads = &trace.threads;
        if threads.pid.get(a.index()) == threads.pid.get(b.index()) {
            return true;
        }
        let family = |thread: ThreadIdx| self.of.get(thread.index()).copied().flatten();
        let apart = family(a).is_some_and(|first| family(b).is_some_and(|other| other != first));
        !apart && threads.process.get(a.index()) == threads.process.get(b.index())
    }
}

/// The thread of another process that began that of `thread`.
pub(crate) fn starter(trace: &Trace, thread: ThreadIdx) -> Option<ThreadIdx> {
    let parent = |thread| trace.thread(thread).map(|row| row.parent).filter(|parent| parent.is_real());
    let pid = |thread| trace.thread(thread).map(|row| row.pid);
    std::iter::successors(parent(thread), |of| parent(*of)).take(DEEPEST).find(|of| pid(*of) != pid(thread))
}

/// Whether a thread's process comes from one that `is` picks by its id, and is none of them itself.
pub(crate) fn descends(trace: &Trace, thread: ThreadIdx, is: impl Fn(u32) -> bool) -> bool {
    let row = |thread: ThreadIdx| trace.thread(thread).filter(|_| thread.is_real());
    let Some(own) = row(thread) else { return false };
    let above = std::iter::successors(row(own.parent), |of| row(of.parent)).take(DEEPEST);
    !is(own.pid) && above.map(|of| of.pid).any(is)
}

/// Whether a thread's process comes from that of another thread.
pub(crate) fn is_child(trace: &Trace, thread: ThreadIdx, of: ThreadIdx) -> bool {
    let parent = trace.threads.pid.get(of.index()).copied();
    descends(trace, thread, |pid| Some(pid) == parent)
}

#[cfg(test)]
mod tests {
    use holdup_trace::{Destination, ForkEvent, NameEvent, TraceBuilder};

    use super::*;

    #[test]
    fn what_one_process_has_forked_is_one_program_and_a_name_alone_is_none() {
        let mut builder = TraceBuilder::new(&Destination::Memory).expect("builder");
        let name = |builder: &mut TraceBuilder, t, pid, name| {
            let name = builder.string(name);
            builder.push(t, NameEvent { pid, tid: pid, name });
        };
        let fork = |builder: &mut TraceBuilder, t, parent, pid| {
            builder.push(t, ForkEvent { parent_pid: parent, parent, pid, tid: pid });
        };
        name(&mut builder, 0, 2, "sh");
        name(&mut builder, 0, 9, "python3");
        for (t, pid) in [(1, 5), (2, 7)] {
            fork(&mut builder, t, 2, pid);
            name(&mut builder, t, pid, "python3");
        }
        // A worker of the first one, and another one's helper.
        fork(&mut builder, 3, 5, 6);
        fork(&mut builder, 4, 7, 8);
        name(&mut builder, 4, 8, "gzip");
        let trace = builder.finish(None).expect("trace");
        let thread = |pid: u32| ThreadIdx(trace.threads.pid.iter().position(|p| *p == pid).expect("a thread") as u32);
        let mains = [2, 5, 6, 7, 8, 9].into_iter().map(|pid| (pid, thread(pid))).collect();
        let families = Families::new(&trace, &mains);
        let are_one = |a, b| families.are_one(&trace, thread(a), thread(b));
        assert!(are_one(5, 6) && are_one(6, 6), "a worker");
        assert!(!are_one(5, 7) && !are_one(6, 7), "two services in one language");
        assert!(!are_one(7, 8), "another program");
        assert!(are_one(5, 9), "who started it is not known: the name tells");
    }
}
