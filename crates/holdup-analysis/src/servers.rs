//! Which threads belong to servers: at home these wait for their clients, and nobody holds them up.

use holdup_trace::tables::{Listener, Thread};
use holdup_trace::{Result, StringId, Table, ThreadIdx, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// Which of a trace's threads belong to servers.
#[derive(Debug, Clone)]
pub struct Servers(Vec<Option<bool>>);

impl Servers {
    /// A process is a server if it was seen to own a socket that listens, or if a server of the same name made it: what
    /// serves one client often keeps nothing but the connection. O(threads).
    ///
    /// # Errors
    /// If the table of listeners cannot be read.
    pub fn of(trace: &Trace) -> Result<Self> {
        let processes = Processes::of(trace);
        let mut seen: FxHashMap<ThreadIdx, Seen> = FxHashMap::default();
        for row in trace.listeners.iter() {
            let Listener { thread, parent, listens, .. } = row?;
            let before = seen.get(&thread).is_some_and(|seen| seen.listens);
            // Who no longer listens when it is looked at again was a server all the same.
            seen.insert(thread, Seen { listens: listens || before, parent });
        }
        processes.inherit(&mut seen);
        let programs = by_program(&processes, &seen);
        let serves = |thread| {
            let main = processes.main(thread)?;
            seen.get(&main).map_or_else(|| *programs.get(&processes.name(main))?, |seen| Some(seen.listens))
        };
        Ok(Servers((0..trace.threads.len()).map(|i| serves(ThreadIdx(i as u32))).collect()))
    }

    /// Whether the thread's process is a server. `None` where that is not known: for all threads of traces without that
    /// table (of perf, and of earlier versions), and for processes that came and went between two looks and are of a program of which
    /// none was looked at, or some are servers and others not.
    pub fn is_server(&self, thread: ThreadIdx) -> Option<bool> {
        self.0.get(thread.index()).copied().flatten()
    }
}

/// What all processes of a program are that were looked at; `None` where they differ. O(processes).
fn by_program(processes: &Processes, seen: &FxHashMap<ThreadIdx, Seen>) -> FxHashMap<StringId, Option<bool>> {
    let mut programs: FxHashMap<StringId, Option<bool>> = FxHashMap::default();
    for (&main, Seen { listens, .. }) in seen {
        let of_all = programs.entry(processes.name(main)).or_insert(Some(*listens));
        *of_all = of_all.filter(|of_others| of_others == listens);
    }
    programs
}

/// What the looks at a process told.
#[derive(Debug, Clone, Copy)]
struct Seen {
    listens: bool,
    /// Who made it, for processes that are older than the trace.
    parent: ThreadIdx,
}

/// Which threads are main threads, and of what.
pub(crate) struct Processes<'a> {
    trace: &'a Trace,
    /// By process id, in the order in which they began: ids are reused.
    mains: FxHashMap<u32, Vec<ThreadIdx>>,
}

impl<'a> Processes<'a> {
    pub(crate) fn of(trace: &'a Trace) -> Self {
        let mut mains: FxHashMap<u32, Vec<ThreadIdx>> = FxHashMap::default();
        for (i, thread) in (0..).zip(trace.threads.rows()) {
            if thread.tid == thread.pid {
                mains.entry(thread.pid).or_default().push(ThreadIdx(i));
            }
        }
        Processes { trace, mains }
    }

    /// The main thread of a thread's process: of those with its number, the last that began no later.
    pub(crate) fn main(&self, thread: ThreadIdx) -> Option<ThreadIdx> {
        let Thread { pid, start, .. } = self.trace.thread(thread)?;
        let mains = self.mains.get(&pid)?;
        let began = |&&main: &&ThreadIdx| self.trace.threads.start[main.index()] <= start;
        mains.iter().rev().find(began).or(mains.first()).copied()
    }

    /// Of each thread: which of `roots`, main threads, its process is or comes from, the nearest of them. O(threads).
    pub(crate) fn below(&self, roots: &FxHashSet<ThreadIdx>) -> Vec<Option<ThreadIdx>> {
        let mut of: Vec<Option<ThreadIdx>> = Vec::with_capacity(self.trace.threads.len());
        // Parents stand before those that they start.
        for (thread, row) in (0..).map(ThreadIdx).zip(self.trace.threads.rows()) {
            let main = self.main(thread).unwrap_or(thread);
            let above = if main == thread { self.main(row.parent) } else { Some(main) };
            let inherited = || above.and_then(|above| of.get(above.index()).copied().flatten());
            let root = if roots.contains(&thread) { Some(thread) } else { inherited() };
            of.push(root);
        }
        of
    }

    fn name(&self, thread: ThreadIdx) -> StringId {
        self.trace.threads.process[thread.index()]
    }

    /// Lets the processes that a server made be servers, too, as long as they have its name.
    fn inherit(&self, seen: &mut FxHashMap<ThreadIdx, Seen>) {
        let mut made: FxHashMap<ThreadIdx, Vec<ThreadIdx>> = FxHashMap::default();
        for &main in self.mains.values().flatten() {
            let known = self.trace.threads.parent[main.index()];
            let parent = if known.is_real() { Some(known) } else { seen.get(&main).map(|seen| seen.parent) };
            let parent = parent.and_then(|parent| self.main(parent)).filter(|&p| self.name(p) == self.name(main));
            made.entry(parent.unwrap_or(ThreadIdx::NONE)).or_default().push(main);
        }
        let mut servers: Vec<ThreadIdx> = seen.iter().filter(|(_, seen)| seen.listens).map(|(&main, _)| main).collect();
        while let Some(server) = servers.pop() {
            // Each is taken out once, so that parents in a circle, as a damaged file may have, end.
            for worker in made.remove(&server).into_iter().flatten() {
                let parent = server;
                if !seen.insert(worker, Seen { listens: true, parent }).is_some_and(|seen| seen.listens) {
                    servers.push(worker);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use holdup_trace::{Destination, ExitEvent, ForkEvent, ListenerEvent, NameEvent, TraceBuilder};

    use super::*;

    struct Machine(TraceBuilder);

    impl Machine {
        fn new() -> Self {
            Machine(TraceBuilder::new(&Destination::Memory).expect("builder"))
        }

        /// A process or thread that was there before.
        fn name(mut self, pid: u32, tid: u32, name: &str) -> Self {
            let name = self.0.string(name);
            self.0.push(0, NameEvent { pid, tid, name });
            self
        }

        fn fork(mut self, t: u64, parent_pid: u32, parent: u32, pid: u32, tid: u32) -> Self {
            self.0.push(t, ForkEvent { parent_pid, parent, pid, tid });
            self
        }

        fn rename(mut self, t: u64, pid: u32, name: &str) -> Self {
            let name = self.0.string(name);
            self.0.push(t, NameEvent { pid, tid: pid, name });
            self
        }

        fn exit(mut self, t: u64, tid: u32) -> Self {
            self.0.push(t, ExitEvent { tid });
            self
        }

        fn seen(mut self, t: u64, pid: u32, parent: u32, listens: bool) -> Self {
            self.0.push(t, ListenerEvent { pid, parent, listens });
            self
        }

        /// For each thread in the order in which they began: tid, and whether it is a server's.
        fn servers(self) -> Vec<(u32, Option<bool>)> {
            let trace = self.0.finish(None).expect("trace");
            let servers = Servers::of(&trace).expect("servers");
            let threads = trace.threads.rows().zip(0..).skip(1);
            threads.map(|(thread, i)| (thread.tid, servers.is_server(ThreadIdx(i)))).collect()
        }
    }

    #[test]
    fn all_threads_of_a_process_that_listens_are_a_servers() {
        let machine = Machine::new().name(5, 6, "worker").name(5, 5, "server").name(7, 7, "client");
        let machine = machine.seen(1, 5, 1, true).seen(1, 7, 1, false).fork(2, 5, 6, 5, 8);
        assert_eq!(machine.servers(), [(6, Some(true)), (5, Some(true)), (7, Some(false)), (8, Some(true))]);
    }

    #[test]
    fn what_nobody_looked_at_is_not_known() {
        let machine = Machine::new().name(5, 5, "server").name(7, 7, "client");
        assert_eq!(machine.servers(), [(5, None), (7, None)]);
        let machine = Machine::new().name(5, 5, "server").name(7, 7, "client").seen(1, 5, 0, true);
        assert_eq!(machine.servers(), [(5, Some(true)), (7, None)]);
    }

    #[test]
    fn a_server_that_closes_its_socket_was_one() {
        let machine = Machine::new().name(5, 5, "server").seen(1, 5, 0, true).seen(9, 5, 0, false);
        assert_eq!(machine.servers(), [(5, Some(true))]);
    }

    #[test]
    fn workers_are_servers_and_what_a_server_starts_is_none() {
        // Older than the trace: the worker's number is below that of who made it.
        let machine = Machine::new().name(4, 4, "postgres").name(5, 5, "postgres").seen(0, 5, 1, true);
        let machine = machine.seen(0, 4, 5, false);
        // A worker's worker, from within the trace, that nobody looked at; a command that one of them runs.
        let machine = machine.fork(1, 4, 4, 8, 8).fork(2, 8, 8, 9, 9).rename(3, 9, "gzip").seen(4, 9, 8, false);
        let servers = machine.servers();
        assert_eq!(servers, [(4, Some(true)), (5, Some(true)), (8, Some(true)), (9, Some(false))]);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let machine = Machine::new().name(5, 5, "server").seen(0, 5, 1, true).name(2, 2, "sh").exit(1, 5);
        let machine = machine.fork(2, 2, 2, 5, 5).fork(3, 5, 5, 5, 6).seen(4, 5, 2, false);
        assert_eq!(machine.servers(), [(5, Some(true)), (2, None), (5, Some(false)), (6, Some(false))]);
    }

    #[test]
    fn parents_in_a_circle_end() {
        let machine = Machine::new().name(5, 5, "x").name(6, 6, "x").seen(0, 5, 6, false).seen(0, 6, 5, true);
        assert_eq!(machine.servers(), [(5, Some(true)), (6, Some(true))]);
    }

    #[test]
    fn who_came_and_went_between_two_looks_is_what_all_others_of_its_program_are() {
        let machine = Machine::new().name(5, 5, "bash").name(9, 9, "server").seen(1, 9, 1, true);
        let begins = |machine: Machine, pid, name| machine.fork(2, 5, 5, pid, pid).rename(2, pid, name);
        let machine = begins(begins(machine, 10, "curl").seen(3, 10, 5, false), 11, "curl");
        let machine = begins(begins(machine, 12, "nc").seen(3, 12, 5, false), 13, "nc").seen(3, 13, 5, true);
        let machine = begins(begins(machine, 14, "nc"), 15, "sed");
        let of = machine.servers();
        let is = |tid: u32| of.iter().find(|(t, _)| *t == tid).and_then(|(_, serves)| *serves);
        assert_eq!([10, 11].map(is), [Some(false); 2]);
        assert_eq!([14, 15].map(is), [None; 2], "some listen and some do not; none was looked at");
    }
}
