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
