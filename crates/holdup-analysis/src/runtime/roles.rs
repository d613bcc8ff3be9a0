//! What threads are there for, in processes of a runtime.

use holdup_trace::{ThreadIdx, Trace};
use rustc_hash::FxHashSet;

use super::ALL;
use super::row::{Role, Runtime};

/// The roles of a trace's threads.
#[derive(Debug, Default)]
pub(crate) struct Roles(Vec<Option<Role>>);

impl Roles {
    /// Looks at the names of all threads: a name tells where the process is one of the runtime. O(threads).
    pub(crate) fn of(trace: &Trace) -> Roles {
        let threads = &trace.threads;
        let named = || threads.name.iter().map(|name| trace.text(*name)).zip(&threads.pid);
        let marked = |runtime: &'static Runtime| {
            let pids = named().filter(|(name, _)| !name.is_empty() && *name == runtime.marker);
            (runtime, pids.map(|(_, pid)| *pid).collect::<FxHashSet<u32>>())
        };
        let processes: Vec<_> = ALL.iter().filter(|r| !r.marker.is_empty()).map(marked).collect();
        let role = |(name, pid): (&str, &u32)| {
            let (runtime, _) = processes.iter().find(|(_, pids)| pids.contains(pid))?;
            // Some are numbered in front: `1_aux`.
            let plain = name.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches('_');
            let begins = |names: &&[&str]| names.iter().any(|begin| plain.starts_with(begin));
            runtime.roles.iter().find(|(_, names)| begins(names)).map(|(role, _)| *role)
        };
        Roles(named().map(role).collect())
    }

    /// What the thread is there for; `None` for threads of the program.
    pub(crate) fn role(&self, thread: ThreadIdx) -> Option<Role> {
        self.0.get(thread.index()).copied().flatten()
    }
}
