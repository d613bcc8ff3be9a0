//! Whom a server waits for while it keeps a lock: its client, which forgets that others wait, too.

use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::doing::Doing;
use super::tally::{Group, Tally};
use crate::intervals::{Chunk, Wait};
use crate::report::Activity;

/// A client, and what it did for most of the time in which its server waited for it.
pub(super) struct Client {
    process: StringId,
    doing: Doing,
}

/// Less of the time than this share is known to be one client's: then nothing is said of it.
const MOSTLY: f64 = 0.5;

/// Who it is, if whoever keeps the lock mostly waits for one program that the trace shows. O(waits).
pub(super) fn of(context: &Context, group: &Group, tally: &Tally) -> Option<Client> {
    if !group.is_lock() || tally.activity() != Activity::Waited {
        return None;
    }
    let sites: FxHashSet<_> = tally.subjects().map(|key| (key.thread, key.site)).collect();
    let mut meanwhile = Meanwhile { context, sites, last: <_>::default(), open: <_>::default(), did: <_>::default() };
    let (mut reader, mut memory) = (context.timeline.reader(), None);
    for index in 0..context.timeline.len() {
        let chunk = reader.chunk(index, memory.take()).ok()?;
        meanwhile.follow(&chunk);
        memory = Some(chunk);
    }
    meanwhile.client()
}

impl Client {
    /// What is said of it after "waiting for its client".
    pub(super) fn words(&self, context: &Context) -> String {
        format!("{}, which {}", context.trace.text(self.process), self.doing.past(context))
    }

    /// What to do about it.
    pub(super) fn advice(&self, context: &Context) -> String {
        let (process, does) = (context.trace.text(self.process), self.doing.present(context));
        format!("End the transaction, or let the lock go, before {process} {does}, or give it a time-out.")
    }
}

/// What the clients do while one that keeps the lock waits for them.
struct Meanwhile<'a> {
    context: &'a Context<'a>,
    /// Who waits for clients, and where.
    sites: FxHashSet<(ThreadIdx, StackId)>,
    /// Each thread's wait that began last.
    last: FxHashMap<ThreadIdx, Wait>,
    /// Since when, and until when, each client is waited for.
    open: FxHashMap<ThreadIdx, (u64, u64)>,
    /// Nanoseconds by program.
    did: FxHashMap<StringId, FxHashMap<Doing, u64>>,
}

impl Meanwhile<'_> {
    /// Waits of one part, in the order in which they begin.
    fn follow(&mut self, chunk: &Chunk) {
        let mut waits: Vec<&Wait> = chunk.waits_begun().iter().collect();
        waits.sort_by_key(|wait| wait.start);
        for wait in waits {
            if let Some(&window) = self.open.get(&wait.thread) {
                self.add_wait(wait, window);
            }
            self.last.insert(wait.thread, *wait);
            let (client, window) = (wait.waker, (wait.start, wait.woken));
            let is_client = client.is_real() && self.context.program(client) != self.context.program(wait.thread);
            if is_client && self.sites.contains(&(wait.thread, wait.stack)) {
                self.add(client, Doing::Runs, wait.woken.saturating_sub(wait.start));
                if let Some(before) = self.last.get(&client).copied() {
                    self.add_wait(&before, window);
                }
                self.open.insert(client, window);
            }
        }
    }

    /// What of a client's wait lies within that time.
    fn add_wait(&mut self, wait: &Wait, (from, to): (u64, u64)) {
        let within = |a: u64, b: u64| b.min(to).saturating_sub(a.max(from));
        self.add(wait.thread, Doing::of(self.context, wait), within(wait.start, wait.woken));
        self.add(wait.thread, Doing::Ready, within(wait.woken, wait.resumed));
    }

    /// What a client does; while it does anything else it does not work.
    fn add(&mut self, client: ThreadIdx, doing: Doing, ns: u64) {
        let did = self.did.entry(self.context.program(client)).or_default();
        let sum = did.entry(doing).or_default();
        *sum = sum.saturating_add(ns);
        if doing != Doing::Runs {
            let ran = did.entry(Doing::Runs).or_default();
            *ran = ran.saturating_sub(ns);
        }
    }

    fn client(self) -> Option<Client> {
        let all = self.did.values().flat_map(FxHashMap::values).fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        let each = self.did.iter().flat_map(|(process, did)| did.iter().map(|(doing, ns)| (*ns, *process, *doing)));
        let (ns, process, doing) = each.max_by_key(|(ns, ..)| *ns)?;
        (ns as f64 > MOSTLY * all as f64).then_some(Client { process, doing })
    }
}
