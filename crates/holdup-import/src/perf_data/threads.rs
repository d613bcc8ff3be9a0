//! Threads and their names: COMM, FORK, EXIT, and the names inside scheduler events.

use holdup_trace::{ExecEvent, ExitEvent, ForkEvent, NameEvent};

use super::bytes::{text, u32_at, u64_at};
use super::plan::Stamp;
use super::sink::Sink;

/// Linux gives no larger tid.
const MAX_TID: u32 = 1 << 22;
/// `PERF_RECORD_MISC_COMM_EXEC`.
const COMM_EXEC: u16 = 1 << 13;

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

    /// `PERF_RECORD_COMM`.
    pub fn comm(&mut self, body: &[u8], misc: u16, stamp: Stamp, sink: &mut Sink) -> Option<()> {
        let (pid, tid) = (u32_at(body, 0)?, u32_at(body, 4)?);
        let name = sink.builder.string(&text(body.get(8..)?));
        if misc & COMM_EXEC != 0 {
            sink.maybe_timed(stamp.time, ExecEvent { pid });
        }
        if tid != 0 {
            sink.maybe_timed(stamp.time, NameEvent { pid, tid, name });
        }
        self.named.insert(tid);
        self.placed.insert(tid);
        Some(())
    }

    /// `PERF_RECORD_FORK`.
    pub fn fork(&mut self, body: &[u8], stamp: Stamp, sink: &mut Sink) -> Option<()> {
        let [pid, parent_pid, tid, parent] = [0, 4, 8, 12].map(|at| u32_at(body, at));
        let event = ForkEvent { parent_pid: parent_pid?, parent: parent?, pid: pid?, tid: tid? };
        let time = if stamp.time != 0 { stamp.time } else { u64_at(body, 16)? };
        self.named.insert(tid?);
        self.placed.insert(tid?);
        // Without a time it only tells of a thread that existed before, and whose name follows.
        if sink.is_plausible(time) {
            sink.timed(time, event);
        }
        Some(())
    }

    /// `PERF_RECORD_EXIT`.
    pub fn exit(&mut self, body: &[u8], stamp: Stamp, sink: &mut Sink) -> Option<()> {
        let tid = u32_at(body, 8)?;
        let time = if stamp.time != 0 { stamp.time } else { u64_at(body, 16)? };
        if tid != 0 && sink.is_plausible(time) {
            sink.timed(time, ExitEvent { tid });
        }
        Some(())
    }

    /// A scheduler event names a thread; told on only if nothing better did so before.
    #[inline]
    pub fn seen_name<'n>(&mut self, t: u64, tid: u32, name: impl FnOnce() -> &'n [u8], sink: &mut Sink) {
        if !self.named.has(tid) {
            self.tell(t, (tid, tid), name(), sink);
        }
    }

    /// The thread of a sample, with its process; told on only if nothing better did so before.
    #[inline]
    pub fn seen_current<'n>(
        &mut self,
        t: u64,
        (pid, tid): (u32, u32),
        name: impl FnOnce() -> &'n [u8],
        sink: &mut Sink,
    ) {
        if !self.placed.has(tid) && pid != u32::MAX {
            self.placed.insert(tid);
            self.tell(t, (pid, tid), name(), sink);
        }
    }

    fn tell(&mut self, t: u64, (pid, tid): (u32, u32), name: &[u8], sink: &mut Sink) {
        self.named.insert(tid);
        let name = sink.builder.string(&text(name));
        sink.timed(t, NameEvent { pid, tid, name });
    }
}
