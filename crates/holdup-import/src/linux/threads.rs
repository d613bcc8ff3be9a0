//! Which threads are known by name and by process, and the names inside scheduler events.

use holdup_trace::NameEvent;

use super::sink::Sink;
use crate::bytes::text;

/// Linux gives no larger tid.
const MAX_TID: u32 = 1 << 22;

/// A set of tids, one bit each.
#[derive(Debug, Default)]
struct TidSet(Vec<u64>);

impl TidSet {
    /// Tids that no Linux can have count as present.
    #[inline]
    fn has(&self, tid: u32) -> bool {
        self.0.get(tid as usize / 64).map_or(tid >= MAX_TID, |word| word >> (tid % 64) & 1 == 1)
    }

    fn insert(&mut self, tid: u32) {
        let at = tid as usize / 64;
        if tid < MAX_TID {
            if at >= self.0.len() {
                self.0.resize(at + 1, 0);
            }
            self.0[at] |= 1 << (tid % 64);
        }
    }
}

/// Which threads the builder knows by name and by process.
#[derive(Debug)]
pub struct Threads {
    named: TidSet,
    placed: TidSet,
}

impl Threads {
    /// Only the idle task is known.
    pub fn new() -> Self {
        let mut threads = Threads { named: TidSet::default(), placed: TidSet::default() };
        threads.named.insert(0);
        threads.placed.insert(0);
        threads
    }

    /// Something better than a scheduler event has told, or is about to tell, its name and its process.
    pub fn knows(&mut self, tid: u32) {
        self.named.insert(tid);
        self.placed.insert(tid);
    }

    /// A scheduler event names a thread; told on only if nothing better did so before.
    #[inline]
    pub fn seen_name(&mut self, t: u64, tid: u32, name: &[u8], sink: &mut Sink) {
        if !self.named.has(tid) {
            self.tell(t, (tid, tid), name, sink);
        }
    }

    /// The thread of a record, with its process; told on only if nothing better did so before.
    #[inline]
    pub fn seen_current(&mut self, t: u64, (pid, tid): (u32, u32), name: &[u8], sink: &mut Sink) {
        if !self.placed.has(tid) {
            self.placed.insert(tid);
            self.tell(t, (pid, tid), name, sink);
        }
    }

    fn tell(&mut self, t: u64, (pid, tid): (u32, u32), name: &[u8], sink: &mut Sink) {
        self.named.insert(tid);
        let name = sink.builder.string(&text(name));
        sink.timed(t, NameEvent { pid, tid, name });
    }
}
