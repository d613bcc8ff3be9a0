//! The kernel's records as what happens to threads, in the order of time: for whoever watches a recording while it goes on.

use rustc_hash::FxHashMap;

use crate::linux;
use crate::records::{Record, TID_MASK, bit, kind};
use holdup_trace::SwitchState;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// When, in nanoseconds of the recording's clock.
    pub t: u64,
    /// What.
    pub what: What,
}

/// What happens to threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A CPU goes from one thread to another.
    Switch {
        /// The CPU.
        cpu: u16,
        /// The thread that leaves it; 0 if nothing ran.
        from: u32,
        /// Its process.
        pid: u32,
        /// Why it leaves.
        left: Left,
        /// The thread that comes; 0 if nothing is to run.
        to: u32,
    },
    /// A thread that waited is ready.
    Ready {
        /// The thread.
        tid: u32,
    },
    /// A thread begins.
    Fork {
        /// The thread that made it.
        parent: u32,
        /// That one's process.
        parent_pid: u32,
        /// Its process.
        pid: u32,
        /// The new thread.
        tid: u32,
    },
    /// A thread gives itself a name.
    Name {
        /// Its process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The name.
        name: String,
    },
    /// A thread has ended.
    Exit {
        /// The thread.
        tid: u32,
    },
}

/// Why a thread leaves its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It could go on, but another one's turn has come.
    Ready,
    /// It waits in `futex`, for other threads.
    Futex,
    /// It waits uninterruptibly: for a disk, a page or a lock of the kernel.
    Uninterruptibly,
    /// It waits in another way.
    Asleep,
    /// It has ended, is stopped, or is one of the kernel's that is idle.
    Away,
}

/// Decodes blocks of records and puts what they tell in order.
#[derive(Debug, Default)]
pub struct Happenings {
    prefixes: FxHashMap<u16, Prefix>,
    /// What is not handed on yet.
    held: Vec<Happening>,
}

/// Records of a CPU that belong to the next one.
#[derive(Debug, Default, Clone, Copy)]
struct Prefix {
    futex: Option<Record>,
    name: Option<Record>,
}

impl Happenings {
    /// Takes what the kernel left for a CPU.
    pub fn add(&mut self, cpu: u16, records: &[u8]) {
        let prefix = self.prefixes.entry(cpu).or_default();
        for record in Record::all(records) {
            self.held.extend(happening(cpu, record, prefix));
        }
    }

    /// What happened up to `t`, in order. If a CPU's records are added after those of a time that was asked for, they come
    /// late: ask for the begin of the round before.
    pub fn until(&mut self, t: u64) -> impl Iterator<Item = Happening> {
        self.held.sort_by_key(|h| h.t);
        let n = self.held.partition_point(|h| h.t <= t);
        let rest = self.held.split_off(n);
        // What came late at once leaves no room behind.
        std::mem::replace(&mut self.held, rest).into_iter()
    }

    /// Forgets what is held: records were lost.
    pub fn clear(&mut self) {
        self.held.clear();
        self.prefixes.clear();
    }
}

fn happening(cpu: u16, r: Record, prefix: &mut Prefix) -> Option<Happening> {
    let part = |word: u64, shift: u32| (word >> shift) as u32 & TID_MASK;
    let what = match r.kind {
        kind::FUTEX => {
            prefix.futex = Some(r);
            return None;
        }
        kind::SWITCH | kind::MISSED_SWITCH => {
            let waits =
                prefix.futex.take().is_some_and(|f| f.t == r.t && linux::is_futex_wait((f.a >> bit::OPERATION) as u8));
            let (from, to) = (part(r.a, 0), part(r.a, bit::SECOND));
            What::Switch { cpu, from, pid: part(r.b, bit::PID), left: left(linux::task_state(r.b as u16), waits), to }
        }
        kind::WAKE => What::Ready { tid: part(r.a, bit::SECOND) },
        kind::FORK => {
            let half = |word: u64| (word as u32, (word >> bit::PROCESS) as u32);
            let ((parent, parent_pid), (tid, pid)) = (half(r.a), half(r.b));
            What::Fork { parent, parent_pid, pid, tid }
        }
        kind::EXIT => What::Exit { tid: r.a as u32 },
        kind::NAME => {
            prefix.name = Some(r);
            return None;
        }
        kind::MORE => {
            let first = prefix.name.take()?;
            let name = name(first.b, r.a);
            let (tid, pid) = (first.a as u32, (first.a >> bit::PROCESS) as u32);
            return Some(Happening { t: first.t, what: What::Name { pid, tid, name } });
        }
        // Its second half is no name's.
        kind::SAMPLE => {
            prefix.name = None;
            return None;
        }
        _ => return None,
    };
    Some(Happening { t: r.t, what })
}

fn left(state: SwitchState, in_futex: bool) -> Left {
    match state {
        SwitchState::Runnable => Left::Ready,
        SwitchState::Sleeping if in_futex => Left::Futex,
        SwitchState::Sleeping => Left::Asleep,
        SwitchState::Uninterruptible => Left::Uninterruptibly,
        _ => Left::Away,
    }
}

/// A thread's name in two words, up to the first zero.
pub(crate) fn name(first: u64, second: u64) -> String {
    let bytes = [first.to_le_bytes(), second.to_le_bytes()].concat();
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(records: &[Record]) -> Vec<u8> {
        records.iter().flat_map(Record::encode).collect()
    }

    fn switch(t: u64, from: u64, to: u64, state: u64) -> Record {
        Record { t, kind: kind::SWITCH, a: from | to << bit::SECOND, b: state | 7 << bit::PID }
    }

    #[test]
    fn cpus_are_put_in_order_and_the_newest_is_held_back() {
        let mut all = Happenings::default();
        let wake = Record { t: 15, kind: kind::WAKE, a: 1 | 5 << bit::SECOND, b: 0 };
        all.add(1, &bytes(&[switch(20, 0, 5, 0), switch(40, 5, 0, 0)]));
        all.add(0, &bytes(&[switch(10, 5, 0, 1), wake, Record { t: 16, kind: kind::EXIT, a: 9, b: 0 }]));
        let times: Vec<u64> = all.until(30).map(|h| h.t).collect();
        assert_eq!(times, [10, 15, 16, 20]);
        let last: Vec<Happening> = all.until(40).collect();
        let what = What::Switch { cpu: 1, from: 5, pid: 7, left: Left::Ready, to: 0 };
        assert_eq!(last, [Happening { t: 40, what }]);
    }

    #[test]
    fn prefixes_and_halves_are_put_together() {
        let mut all = Happenings::default();
        let futex = |operation: u64| Record { t: 9, kind: kind::FUTEX, a: operation << bit::OPERATION, b: 0 };
        let name = u64::from_le_bytes(*b"checkpoi");
        let records = [
            futex(0),
            switch(9, 5, 0, 1),
            futex(1),
            switch(9, 5, 0, 1),
            switch(9, 5, 0, 2),
            Record { t: 8, kind: kind::NAME, a: 5 | 4 << bit::PROCESS, b: name },
            Record { t: 8, kind: kind::MORE, a: u64::from(b'n'), b: 0 },
            Record { t: 8, kind: kind::SAMPLE, a: 5, b: 0 },
            Record { t: 8, kind: kind::MORE, a: u64::from(b'n'), b: 0 },
            Record { t: 10, kind: kind::FORK, a: 5 | 4 << 32, b: 6 | 6 << 32 },
        ];
        all.add(0, &bytes(&records[..6]));
        all.add(0, &bytes(&records[6..]));
        let all: Vec<What> = all.until(99).map(|h| h.what).collect();
        let left = |what: &What| match what {
            What::Switch { left, .. } => Some(*left),
            _ => None,
        };
        assert_eq!(all[0], What::Name { pid: 4, tid: 5, name: "checkpoin".into() });
        assert_eq!(
            all[1..4].iter().filter_map(left).collect::<Vec<_>>(),
            [Left::Futex, Left::Asleep, Left::Uninterruptibly]
        );
        assert_eq!(all[4..], [What::Fork { parent: 5, parent_pid: 4, pid: 6, tid: 6 }]);
    }
}
