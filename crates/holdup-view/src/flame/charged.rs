//! Who held up whom: by parts of the trace.

use holdup_analysis::blame::{self, Key};
use holdup_analysis::classify::WaitKind;
use holdup_analysis::intervals::Chunk;
use holdup_analysis::label;
use holdup_trace::{LockId, StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::roles::{Role, Roles};
use crate::memo::Weighs;
use crate::study::Study;

/// From those that waited, by way of what they waited for, to whom they waited for and what that one did meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Path {
    waiter: Role,
    /// The function in which it waited; `None` while it was ready.
    begin: Option<StringId>,
    lock: LockId,
    kind: WaitKind,
    culprit: ThreadIdx,
    end: StringId,
}

/// The charges of one part.
pub(crate) struct Charged {
    paths: Box<[(Path, f64)]>,
    /// Which of the paths are charges of one kind, and the threads that have a part in them.
    parts: Box<[Part]>,
}

struct Part {
    first: u32,
    behind: u32,
    threads: Box<[ThreadIdx]>,
}

impl Weighs for Charged {
    fn bytes(&self) -> usize {
        let threads: usize = self.parts.iter().map(|p| size_of_val(&*p.threads)).sum();
        size_of_val(&*self.paths) + size_of_val(&*self.parts) + threads
    }
}

impl Charged {
    /// Of what lies between `from` and `to`.
    pub(super) fn of(study: &Study, roles: &Roles, chunk: &Chunk, (from, to): (u64, u64)) -> Self {
        let found = blame::blame_part(&study.swept(from, to), chunk);
        let (mut paths, mut parts) = (Vec::new(), Vec::new());
        for (key, cell) in found.cells.iter().filter(|(_, cell)| cell.rank_ns > 0.0) {
            let first = paths.len() as u32;
            add(study, roles, key, cell, &mut paths);
            let mut threads: Vec<ThreadIdx> = cell.threads.iter().copied().chain([key.thread]).collect();
            threads.sort_unstable();
            parts.push(Part { first, behind: paths.len() as u32, threads: threads.into() });
        }
        Charged { paths: paths.into(), parts: parts.into() }
    }

    /// Shows `see` the charges in which `threads` have a part; without them all.
    pub(super) fn each(&self, threads: Option<&FxHashSet<ThreadIdx>>, mut see: impl FnMut(&Path, f64)) {
        for part in &self.parts {
            if threads.is_none_or(|threads| part.threads.iter().any(|t| threads.contains(t))) {
                self.paths[part.first as usize..part.behind as usize].iter().for_each(|(path, ns)| see(path, *ns));
            }
        }
    }
}

/// Adds what one cell was charged, by where its waiters waited and what its culprit did.
fn add(study: &Study, roles: &Roles, key: &Key, cell: &blame::Cell, paths: &mut Vec<(Path, f64)>) {
    let application = |stack: StackId| study.classifier.facts(stack).application;
    let shares = |all: &mut dyn Iterator<Item = (StackId, f64)>| -> Vec<(StringId, f64)> {
        let mut sums: FxHashMap<StringId, f64> = FxHashMap::default();
        all.for_each(|(stack, weight)| *sums.entry(application(stack)).or_default() += weight);
        let whole: f64 = sums.values().sum();
        sums.into_iter().filter(|_| whole > 0.0).map(|(name, weight)| (name, weight / whole)).collect()
    };
    let begins = shares(&mut cell.wait_stacks.iter().map(|(stack, ns)| (*stack, *ns as f64)));
    let ends = shares(&mut cell.samples.iter().map(|(stack, ns)| (*stack, *ns)));
    let begins: Vec<(Option<StringId>, f64)> = match begins.is_empty() {
        true => vec![(None, 1.0)],
        false => begins.into_iter().map(|(name, share)| (Some(name), share)).collect(),
    };
    let ends = if ends.is_empty() { vec![(application(key.site), 1.0)] } else { ends };
    let waiter = roles.of(cell.threads.iter().min().copied().unwrap_or(key.thread));
    for (begin, share) in begins {
        for (end, part) in &ends {
            let path = Path { waiter, begin, lock: key.lock, kind: key.kind, culprit: key.thread, end: *end };
            paths.push((path, cell.rank_ns * share * part));
        }
    }
}

impl Path {
    /// Its names, from the waiter to the culprit's function.
    pub(super) fn names(&self, study: &Study, roles: &Roles) -> Vec<String> {
        let function = |name: StringId| match study.trace.text(name) {
            "" => "(no function)".to_owned(),
            name => name.to_owned(),
        };
        let lock = label::lock(study.trace, self.lock);
        let lock = lock.map(|l| if l.name.is_empty() { l.kind.name().to_owned() } else { l.name });
        vec![
            roles.name(self.waiter).to_owned(),
            self.begin.map_or_else(|| "(is ready)".to_owned(), function),
            lock.unwrap_or_else(|| format!("waits: {}", self.kind.name())),
            study.label(self.culprit),
            function(self.end),
        ]
    }
}
