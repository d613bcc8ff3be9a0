//! A process that works beside a recorder and keeps out of everybody's way.

use rustix::fs::{Mode, OFlags};
use rustix::process::{setpriority_process, setsid};

/// How nice it is: a third of the share of a usual process where there is none to spare. At 19 a trace took minutes on a machine that
/// was never idle, and that is when one is wanted.
const NICE: i32 = 5;

/// From now on this process stands back behind others: a session of its own (with automatic groups of tasks nice
/// values count within a session alone, and Ctrl-C in the terminal is not meant for it), a low priority, long turns, and the first
/// place where memory runs out. What is refused is left as it is.
pub fn step_back() {
    let _ = setsid();
    let _ = setpriority_process(None, NICE);
    // SAFETY: `none` lives through the call, which changes the calling thread alone.
    unsafe {
        let none = libc::sched_param { sched_priority: 0 };
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const none);
    }
    for (file, value) in [("/proc/self/autogroup", NICE), ("/proc/self/oom_score_adj", 900)] {
        let open = rustix::fs::open(file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        let _ = open.map(|file| rustix::io::write(file, value.to_string().as_bytes()));
    }
}
