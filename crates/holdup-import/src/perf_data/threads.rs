//! COMM, FORK and EXIT: threads and their names.

use holdup_trace::ForkEvent;

use crate::bytes::{u32_at, u64_at};
use crate::linux::Instant;
use crate::linux::kernel::Kernel;

/// `PERF_RECORD_MISC_COMM_EXEC`.
const COMM_EXEC: u16 = 1 << 13;

/// `PERF_RECORD_COMM`.
pub fn comm(body: &[u8], misc: u16, at: Instant, kernel: &mut Kernel) -> Option<()> {
    let (pid, tid, name) = (u32_at(body, 0)?, u32_at(body, 4)?, body.get(8..)?);
    if misc & COMM_EXEC != 0 {
        kernel.exec(at.time, pid);
    }
    kernel.named(at.time, pid, tid, name);
    Some(())
}

/// The process, if a `PERF_RECORD_COMM` tells of one called perf that was there before the recording: perf looks at them all by their numbers, and
/// is itself mostly the last of that name.
pub fn recorder(body: &[u8], at: Instant) -> Option<u32> {
    let (pid, name) = (u32_at(body, 0)?, body.get(8..)?);
    (at.time == 0 && name.starts_with(b"perf\0")).then_some(pid)
}

/// `PERF_RECORD_FORK`.
pub fn fork(body: &[u8], at: Instant, kernel: &mut Kernel) -> Option<()> {
    let [pid, parent_pid, tid, parent] = [0, 4, 8, 12].map(|at| u32_at(body, at));
    let event = ForkEvent { parent_pid: parent_pid?, parent: parent?, pid: pid?, tid: tid? };
    let time = if at.time != 0 { at.time } else { u64_at(body, 16)? };
    // Without a time it only tells of a thread that existed before, and whose name follows.
    if kernel.sink.is_plausible(time) {
        kernel.fork(time, event);
    } else {
        kernel.threads.knows(event.tid);
    }
    Some(())
}

/// `PERF_RECORD_EXIT`.
pub fn exit(body: &[u8], at: Instant, kernel: &mut Kernel) -> Option<()> {
    let tid = u32_at(body, 8)?;
    let time = if at.time != 0 { at.time } else { u64_at(body, 16)? };
    if kernel.sink.is_plausible(time) {
        kernel.exit(time, tid);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_itself_was_there_before_it_recorded() {
        let body = |name: &[u8]| [&7u32.to_le_bytes()[..], &7u32.to_le_bytes(), name].concat();
        let at = |time| Instant { time, ..Instant::NONE };
        assert_eq!(recorder(&body(b"perf\0\0\0\0"), at(0)), Some(7));
        assert_eq!(recorder(&body(b"perf\0\0\0\0"), at(9)), None, "another one that is started");
        assert_eq!(recorder(&body(b"perf-exec\0"), at(0)), None, "what it records");
        assert_eq!(recorder(&7u32.to_le_bytes(), at(0)), None);
    }
}
