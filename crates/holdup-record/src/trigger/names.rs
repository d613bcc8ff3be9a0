//! Which threads a condition is about: by name, or those of the target.

use rustc_hash::FxHashSet;

/// The kernel keeps this many bytes of a name.
const NAME_BYTES: usize = 15;

/// The threads that have a name, and those of processes that have it.
#[derive(Debug)]
pub(crate) struct Named {
    name: Vec<u8>,
    threads: FxHashSet<u32>,
    processes: FxHashSet<u32>,
}

impl Named {
    pub(crate) fn new(name: &str) -> Named {
        let name = name.as_bytes()[..name.len().min(NAME_BYTES)].to_vec();
        Named { name, threads: FxHashSet::default(), processes: FxHashSet::default() }
    }

    /// A thread has a name; a process has that of its first thread.
    pub(crate) fn name(&mut self, pid: u32, tid: u32, name: &str) {
        let is_it = name.as_bytes() == self.name;
        set(&mut self.threads, tid, is_it);
        if pid == tid {
            set(&mut self.processes, pid, is_it);
        }
    }

    /// A new thread is called as the one that made it.
    pub(crate) fn fork(&mut self, parent: u32, pid: u32, tid: u32) {
        let is_it = self.threads.contains(&parent);
        set(&mut self.threads, tid, is_it);
        if pid == tid {
            set(&mut self.processes, pid, is_it);
        }
    }

    pub(crate) fn exit(&mut self, tid: u32) {
        self.threads.remove(&tid);
        self.processes.remove(&tid);
    }

    pub(crate) fn has(&self, pid: u32, tid: u32) -> bool {
        self.threads.contains(&tid) || self.processes.contains(&pid)
    }
}

fn set(all: &mut FxHashSet<u32>, number: u32, is_in: bool) {
    if is_in {
        all.insert(number);
    } else {
        all.remove(&number);
    }
}

/// The target's processes; and the recorder with what it has started, which counts for no condition.
#[derive(Debug)]
pub(crate) struct Whose {
    /// The target's; all processes if there are none at the beginning.
    focus: FxHashSet<u32>,
    everyone: bool,
    ours: FxHashSet<u32>,
}

impl Whose {
    pub(crate) fn new(focus: &[u32], recorder: u32) -> Whose {
        let ours = FxHashSet::from_iter([recorder]);
        Whose { focus: focus.iter().copied().collect(), everyone: focus.is_empty(), ours }
    }

    pub(crate) fn fork(&mut self, parent_pid: u32, pid: u32) {
        // What is recorded is started by the recorder, too.
        if self.focus.contains(&parent_pid) {
            self.focus.insert(pid);
        } else if self.ours.contains(&parent_pid) && !self.focus.contains(&pid) {
            self.ours.insert(pid);
        }
    }

    pub(crate) fn exit(&mut self, tid: u32) {
        self.focus.remove(&tid);
        self.ours.remove(&tid);
    }

    pub(crate) fn is_target(&self, pid: u32) -> bool {
        (self.everyone || self.focus.contains(&pid)) && !self.is_ours(pid)
    }

    pub(crate) fn is_ours(&self, pid: u32) -> bool {
        self.ours.contains(&pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_from_thread_to_thread_and_end_with_it() {
        let mut named = Named::new("a-name-of-twenty-bytes");
        named.name(7, 7, "a-name-of-twent");
        named.name(7, 8, "other");
        assert!(named.has(7, 8) && named.has(7, 7) && !named.has(9, 9));
        named.fork(7, 9, 9);
        assert!(named.has(9, 9));
        named.name(9, 9, "another program");
        assert!(!named.has(9, 9));
        named.name(3, 4, "a-name-of-twent");
        assert!(named.has(3, 4) && !named.has(3, 3));
        named.exit(4);
        named.exit(7);
        assert!(!named.has(3, 4) && !named.has(7, 8));
        assert!(named.threads.is_empty() && named.processes.is_empty());
    }

    #[test]
    fn the_recorder_counts_for_nothing_and_its_command_does() {
        let mut whose = Whose::new(&[20], 10);
        whose.fork(10, 11);
        whose.fork(10, 20);
        whose.fork(20, 21);
        assert!(whose.is_target(21) && whose.is_target(20) && !whose.is_target(11) && !whose.is_target(30));
        assert!(whose.is_ours(11) && !whose.is_ours(20));
        whose.exit(21);
        whose.exit(11);
        assert_eq!((whose.focus.len(), whose.ours.len()), (1, 1));
        assert!(Whose::new(&[], 10).is_target(30));
    }
}
