//! Threads: a tid that is used again is another thread.

use rustc_hash::FxHashMap;

use super::tids::Tids;
use crate::tables::{Thread, Threads};
use crate::{Dictionary, StringId, Table, ThreadIdx, Timestamp};

/// All threads so far, and which of them has each tid now.
#[derive(Default)]
pub(super) struct ThreadTable {
    rows: Threads,
    by_tid: Tids,
    /// Processes that have a name of their own, now.
    processes: FxHashMap<u32, StringId>,
    /// The program's file of each process, now: that of the code that lies lowest, which is where the kernel puts it.
    programs: FxHashMap<u32, (u64, StringId)>,
}

/// Whether a name says no more than that a thread is its process's first, as Node's `MainThread` and `node-MainThread` do.
fn is_for_first(name: &str, program: &str) -> bool {
    let letters = |text: &str| -> String { text.chars().filter(char::is_ascii_alphabetic).collect() };
    let (name, program) = (letters(name).to_ascii_lowercase(), letters(program).to_ascii_lowercase());
    let rest = name.strip_prefix(&*program).unwrap_or(&name);
    matches!(rest, "main" | "mainthread")
}

/// The name of a program's file; none for a library, and for what is no file.
fn program(path: &str) -> Option<&str> {
    let base = path.starts_with('/').then(|| path.rsplit('/').next()).flatten()?;
    (!base.contains(".so")).then_some(base)
}

impl ThreadTable {
    /// The thread that has `tid` now; one that nobody announced existed before the trace.
    #[inline]
    pub fn of(&mut self, tid: u32, strings: &mut Dictionary) -> ThreadIdx {
        match self.by_tid.get(tid) {
            Some(thread) => thread,
            None => {
                let name = strings.intern(&format!("tid {tid}"));
                self.add(tid, tid, Timestamp::ZERO, ThreadIdx::NONE, name)
            }
        }
    }

    /// The thread that has `tid` now, if it is known; 0 means nobody.
    pub fn known(&self, tid: u32) -> ThreadIdx {
        if tid == 0 { ThreadIdx::NONE } else { self.by_tid.get(tid).unwrap_or(ThreadIdx::NONE) }
    }

    /// A new thread, which has `tid` from now on.
    pub fn add(&mut self, tid: u32, pid: u32, start: Timestamp, parent: ThreadIdx, name: StringId) -> ThreadIdx {
        let thread = ThreadIdx(self.rows.len() as u32);
        let process = self.processes.get(&pid).copied().unwrap_or_default();
        self.rows.push(Thread { tid, pid, start, end: Timestamp::MAX, parent, name, process });
        self.by_tid.set(tid, thread);
        thread
    }

    /// Its process.
    #[inline]
    pub fn pid(&self, thread: ThreadIdx) -> u32 {
        self.rows.pid[thread.index()]
    }

    /// Its name.
    pub fn name(&self, thread: ThreadIdx) -> StringId {
        self.rows.name[thread.index()]
    }

    /// Gives the thread its process and name; says whether the name is a new one.
    pub fn rename(&mut self, thread: ThreadIdx, pid: u32, name: StringId) -> bool {
        self.rows.pid[thread.index()] = pid;
        self.rows.process[thread.index()] = self.processes.get(&pid).copied().unwrap_or_default();
        std::mem::replace(&mut self.rows.name[thread.index()], name) != name
    }

    /// The process has a name of its own from now on: for threads that begin in it, or are named, from here on.
    pub fn name_process(&mut self, pid: u32, name: StringId) {
        self.processes.insert(pid, name);
    }

    /// The process maps code of a file.
    pub fn maps(&mut self, pid: u32, start: u64, path: &str, strings: &mut Dictionary) {
        if self.programs.get(&pid).is_none_or(|(lowest, _)| start < *lowest)
            && let Some(program) = program(path)
        {
            self.programs.insert(pid, (start, strings.intern(program)));
        }
    }

    /// The process starts another program.
    pub fn exec(&mut self, pid: u32) {
        self.programs.remove(&pid);
    }

    /// The thread was created by that one, unless it is known by whom.
    pub fn descend(&mut self, thread: ThreadIdx, parent: ThreadIdx) {
        let known = &mut self.rows.parent[thread.index()];
        if *known == ThreadIdx::NONE && thread != parent {
            *known = parent;
        }
    }

    /// The thread ends. Its tid stays its own: it still switches out for the last time after its exit was traced.
    pub fn end(&mut self, thread: ThreadIdx, t: Timestamp) {
        self.rows.end[thread.index()] = t;
    }

    /// The table. A process without a name of its own is named after its main thread; where that name only says that it is the
    /// first, both have that of the program.
    pub fn finish(mut self, strings: &Dictionary) -> Threads {
        let rows = &mut self.rows;
        for i in 0..rows.len() {
            if rows.tid[i] == rows.pid[i]
                && let Some((_, program)) = self.programs.get(&rows.pid[i])
                && is_for_first(strings.get(rows.name[i]), strings.get(*program))
            {
                rows.name[i] = *program;
            }
        }
        let main: FxHashMap<u32, StringId> =
            rows.rows().filter(|thread| thread.tid == thread.pid).map(|thread| (thread.pid, thread.name)).collect();
        for i in 0..rows.len() {
            if rows.process[i] == StringId::default() {
                rows.process[i] = main.get(&rows.pid[i]).copied().unwrap_or(rows.name[i]);
            }
        }
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tid_that_is_used_again_is_another_thread() {
        let (mut threads, mut strings) = (ThreadTable::default(), Dictionary::default());
        let first = threads.of(7, &mut strings);
        assert_eq!((threads.of(7, &mut strings), threads.known(7), threads.known(8)), (first, first, ThreadIdx::NONE));
        let name = strings.intern("worker");
        let second = threads.add(7, 5, Timestamp::from_nanos_since_start(9), ThreadIdx::NONE, name);
        assert_ne!(first, second);
        assert_eq!(threads.of(7, &mut strings), second);
    }

    #[test]
    fn what_descends_from_whom_is_told_once() {
        let (mut threads, mut strings) = (ThreadTable::default(), Dictionary::default());
        let all = [3, 4, 5].map(|tid| threads.of(tid, &mut strings));
        threads.descend(all[0], all[2]);
        threads.descend(all[0], all[1]);
        threads.descend(all[1], all[1]);
        assert_eq!(threads.finish(&strings).parent, [all[2], ThreadIdx::NONE, ThreadIdx::NONE]);
    }

    #[test]
    fn a_process_is_named_after_its_main_thread() {
        let (mut threads, mut strings) = (ThreadTable::default(), Dictionary::default());
        let (server, worker) = (strings.intern("server"), strings.intern("worker"));
        let (one, two) = (threads.of(5, &mut strings), threads.of(6, &mut strings));
        assert!(threads.rename(one, 5, server) && threads.rename(two, 5, worker));
        assert!(!threads.rename(two, 5, worker), "the same name is no new one");
        let (program, late) = (strings.intern("program"), threads.of(7, &mut strings));
        threads.name_process(6, program);
        assert!(threads.rename(late, 6, worker));
        let third = threads.add(8, 6, Timestamp::ZERO, late, worker);
        assert_eq!(threads.finish(&strings).process, [server, server, program, program], "{third:?} too");
    }

    #[test]
    fn a_first_thread_that_is_only_called_so_does_not_name_its_process() {
        let (mut threads, mut strings) = (ThreadTable::default(), Dictionary::default());
        for (pid, name) in [(5, "MainThread"), (6, "node-MainThread"), (7, "domain"), (8, "main")] {
            let (thread, name) = (threads.of(pid, &mut strings), strings.intern(name));
            threads.rename(thread, pid, name);
        }
        threads.maps(5, 0x7000, "/usr/lib/libc.so.6", &mut strings);
        threads.maps(5, 0x5000, "/usr/lib/jit/addon.node", &mut strings);
        for pid in 5..8 {
            threads.maps(pid, 0x1000, "/usr/bin/node", &mut strings);
        }
        let names = threads.finish(&strings).process.into_iter().map(|name| strings.get(name));
        assert_eq!(
            names.collect::<Vec<_>>(),
            ["node", "node", "domain", "main"],
            "of the last the program is not known"
        );
    }
}
