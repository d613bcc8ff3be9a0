//! A process that works beside a recorder and keeps out of everybody's way.

use rustix::fs::{Mode, OFlags};
use rustix::process::{setpriority_process, setsid};

/// From now on this process gets what CPU time others leave: a session of its own (with automatic groups of tasks nice
/// values count within a session alone, and Ctrl-C in the terminal is not meant for it), the lowest priority, long turns, and the
/// first place where memory runs out. What is refused is left as it is.
pub fn step_back() {
    let _ = setsid();
    let _ = setpriority_process(None, 19);
    // SAFETY: `none` lives through the call, which changes the calling thread alone.
    unsafe {
        let none = libc::sched_param { sched_priority: 0 };
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const none);
    }
    for (file, value) in [("/proc/self/autogroup", "19"), ("/proc/self/oom_score_adj", "900")] {
        let open = rustix::fs::open(file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        let _ = open.map(|file| rustix::io::write(file, value.as_bytes()));
    }
}
