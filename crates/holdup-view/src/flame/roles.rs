//! What threads are called without their numbers.

use holdup_analysis::label;
use holdup_trace::ThreadIdx;
use rustc_hash::FxHashMap;

use crate::people::alike;
use crate::study::Study;

/// What a thread is called, with `*` for each number: those of one pool are one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Role(u32);

impl Role {
    /// That of nobody.
    pub(super) const NOBODY: Role = Role(0);
}

/// The roles of all threads.
pub(crate) struct Roles {
    of: Vec<Role>,
    names: Vec<String>,
}

impl Roles {
    pub(super) fn new(study: &Study) -> Self {
        let mut known: FxHashMap<String, Role> = FxHashMap::default();
        let mut names = vec!["(no thread)".to_owned()];
        let mut role = |thread: ThreadIdx| {
            let name = alike(label::thread_name(study.trace, thread));
            *known.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                Role(names.len() as u32 - 1)
            })
        };
        let of = (0..study.trace.threads.tid.len() as u32).map(|i| role(ThreadIdx(i))).collect();
        Roles { of, names }
    }

    pub(super) fn of(&self, thread: ThreadIdx) -> Role {
        if thread.is_real() { self.of.get(thread.index()).copied().unwrap_or(Role::NOBODY) } else { Role::NOBODY }
    }

    pub(super) fn name(&self, role: Role) -> &str {
        &self.names[role.0 as usize]
    }
}
