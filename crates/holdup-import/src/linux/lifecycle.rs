//! How threads come, are called and go, by tracepoints alone: for sources that write no other records of it.

use holdup_trace::ForkEvent;
use rustc_hash::FxHashMap;

use super::Instant;
use super::format::{Field, Format};
use super::kernel::Kernel;

/// `CLONE_THREAD`: the new thread belongs to its maker's process.
const CLONE_THREAD: u64 = 0x1_0000;

/// What a tracepoint tells of a thread.
#[derive(Debug, Clone, Copy)]
pub enum Lifecycle {
    /// `task_newtask`: a thread was made.
    New { tid: Field, name: Field, flags: Field },
    /// `sched_process_fork`: who made it.
    Fork { parent: Field, child: Field, name: Field },
    /// `sched_process_exec`: a process runs another program.
    Exec { tid: Field },
    /// `task_rename`: a thread is called something else.
    Rename { tid: Field, name: Field },
    /// `sched_process_exit`: a thread ends.
    Exit { tid: Field },
}

/// To which process each thread belongs, where that was seen.
#[derive(Debug, Default)]
pub struct Processes(FxHashMap<u32, u32>);

impl Processes {
    /// The process of `tid`, if it was seen how that was made.
    pub fn of(&self, tid: u32) -> Option<u32> {
        self.0.get(&tid).copied()
    }
}

impl Lifecycle {
    /// What the tracepoint of this format tells; `None` if it is about something else.
    pub fn of(format: &Format) -> Option<Self> {
        let field = |name: &str| format.field(name);
        match (format.system.as_str(), format.name.as_str()) {
            ("task", "task_newtask") => {
                Some(Lifecycle::New { tid: field("pid")?, name: field("comm")?, flags: field("clone_flags")? })
            }
            ("sched", "sched_process_fork") => {
                let (parent, child) = (field("parent_pid")?, field("child_pid")?);
                Some(Lifecycle::Fork { parent, child, name: field("child_comm")? })
            }
            ("sched", "sched_process_exec") => Some(Lifecycle::Exec { tid: field("pid")? }),
            ("task", "task_rename") => Some(Lifecycle::Rename { tid: field("pid")?, name: field("newcomm")? }),
            ("sched", "sched_process_exit") => Some(Lifecycle::Exit { tid: field("pid")? }),
            _ => None,
        }
    }
}

impl Kernel<'_> {
    /// Such a tracepoint was hit; `current` is the thread that ran there.
    pub fn lifecycle(&mut self, what: Lifecycle, at: Instant, current: u32, raw: &[u8], processes: &mut Processes) {
        let process = |of: &Processes, tid: u32| of.of(tid).unwrap_or(tid);
        match what {
            Lifecycle::New { tid, name, flags } => {
                let tid = tid.low(raw);
                let pid = if flags.value(raw) & CLONE_THREAD != 0 { process(processes, current) } else { tid };
                processes.0.insert(tid, pid);
                self.made(at, (current, tid), name.all(raw), processes);
            }
            Lifecycle::Fork { parent, child, name } => {
                // Told by `task_newtask` before, where that is recorded.
                if processes.of(child.low(raw)).is_none() {
                    processes.0.insert(child.low(raw), child.low(raw));
                    self.made(at, (parent.low(raw), child.low(raw)), name.all(raw), processes);
                }
            }
            Lifecycle::Exec { tid } => {
                let tid = tid.low(raw);
                processes.0.insert(tid, tid);
                self.exec(at.time, tid);
            }
            Lifecycle::Rename { tid, name } => {
                self.named(at.time, process(processes, tid.low(raw)), tid.low(raw), name.all(raw));
            }
            Lifecycle::Exit { tid } => {
                processes.0.remove(&tid.low(raw));
                self.exit(at.time, tid.low(raw));
            }
        }
    }

    fn made(&mut self, at: Instant, (parent, tid): (u32, u32), name: &[u8], processes: &Processes) {
        let pid = processes.of(tid).unwrap_or(tid);
        let parent_pid = processes.of(parent).unwrap_or(parent);
        self.fork(at.time, ForkEvent { parent_pid, parent, pid, tid });
        self.named(at.time, pid, tid, name);
    }
}
