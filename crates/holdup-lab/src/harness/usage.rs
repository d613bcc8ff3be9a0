//! What the kernel counts about a thread: CPU time in user and kernel mode, switches it asked for or not.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Counters of one thread, or a difference of two readings. Times in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode; by the kernel's ticks where it accounts by ticks.
    pub user: u64,
    /// CPU time in kernel mode, likewise.
    pub system: u64,
    /// Switches because the thread blocked.
    pub voluntary: u64,
    /// Switches because another thread took the CPU: the round is preempted.
    pub involuntary: u64,
    /// Time ready to run without a CPU; 0 where the kernel does not tell (/proc/thread-self/schedstat).
    pub delayed: u64,
}

thread_local! {
    /// The calling thread's own counters, kept open: reading them again costs a microsecond.
    static SCHEDSTAT: Option<File> = File::open("/proc/thread-self/schedstat").ok();
}

fn delayed() -> u64 {
    SCHEDSTAT
        .with(|file| {
            let mut text = [0; 64];
            let length = file.as_ref()?.read_at(&mut text, 0).ok()?;
            std::str::from_utf8(&text[..length]).ok()?.split(' ').nth(1)?.parse().ok()
        })
        .unwrap_or(0)
}

impl Usage {
    /// The calling thread's counters.
    pub fn of_thread() -> Usage {
        Usage { delayed: delayed(), ..Usage::read(libc::RUSAGE_THREAD) }
    }

    /// The counters of all threads of the process.
    pub fn of_process() -> Usage {
        Usage::read(libc::RUSAGE_SELF)
    }

    fn read(who: libc::c_int) -> Usage {
        // SAFETY: a rusage of zero bits is a valid value of this plain struct.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is a valid place for the answer.
        unsafe { libc::getrusage(who, &raw mut usage) };
        let nanos = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
        Usage {
            user: nanos(usage.ru_utime),
            system: nanos(usage.ru_stime),
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
            delayed: 0,
        }
    }

    /// Whether the thread had a CPU whenever it wanted one, but for `tolerated` nanoseconds after its own waits.
    pub fn undisturbed(self, tolerated: u64) -> bool {
        self.involuntary == 0 && self.delayed <= tolerated
    }

    /// What was added since `earlier`.
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            voluntary: self.voluntary - earlier.voluntary,
            involuntary: self.involuntary - earlier.involuntary,
            delayed: self.delayed.saturating_sub(earlier.delayed),
        }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.user += other.user;
        self.system += other.system;
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
        self.delayed += other.delayed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_a_voluntary_switch() {
        let before = Usage::of_thread();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(Usage::of_thread().since(before).voluntary >= 1);
    }
}
