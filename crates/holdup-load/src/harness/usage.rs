//! What a thread of the generator used itself.

use std::time::Duration;

use nix::sys::resource::{Usage as Rusage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// CPU time and waits of a thread, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// In user mode.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
    /// Ready to run, but without a CPU.
    pub ready: Duration,
    /// Switches that the thread did not ask for.
    pub preemptions: u64,
}

impl Usage {
    /// Of the calling thread, since it began.
    pub(super) fn of_this_thread() -> Usage {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return Usage::default() };
        let of = |time: nix::sys::time::TimeVal| Duration::from_micros(time.num_microseconds().unsigned_abs());
        Usage {
            user: of(Rusage::user_time(&usage)),
            system: of(usage.system_time()),
            ready: ready(),
            preemptions: usage.involuntary_context_switches().unsigned_abs(),
        }
    }

    /// What was added since `before`.
    pub(super) fn since(self, before: Usage) -> Usage {
        Usage {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            ready: self.ready.saturating_sub(before.ready),
            preemptions: self.preemptions.saturating_sub(before.preemptions),
        }
    }

    /// Adds another thread's.
    pub(super) fn add(&mut self, other: Usage) {
        self.user += other.user;
        self.system += other.system;
        self.ready += other.ready;
        self.preemptions += other.preemptions;
    }

    /// User and system time.
    pub fn cpu(self) -> Duration {
        self.user + self.system
    }
}

/// Time on a run queue: the second number of `schedstat`, in nanoseconds. Zero where the kernel does not tell.
fn ready() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_charged_to_the_thread_that_did_it() {
        let before = Usage::of_this_thread();
        let mut sum = 0_u64;
        while Usage::of_this_thread().since(before).cpu() < Duration::from_millis(20) {
            sum = std::hint::black_box(sum + 1);
        }
        let other = std::thread::spawn(Usage::of_this_thread).join().unwrap();
        assert!(other.cpu() < Duration::from_millis(20));
        let mut both = Usage::of_this_thread().since(before);
        both.add(other);
        assert!(both.cpu() >= Duration::from_millis(20));
    }
}
