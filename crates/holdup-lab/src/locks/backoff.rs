//! A lock that spins by a given back-off and then sleeps, as the monitors of managed runtimes do.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Lock;
use crate::pause::Pause;
use crate::policies::Backoff;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Taken, and somebody may sleep.
const AWAITED: u32 = 2;

/// A word for the kernel's futex.
#[derive(Default)]
pub struct Futex(pub AtomicU32);

impl Futex {
    /// Sleeps if the word is `expected`, until woken; may return without a reason.
    pub fn wait(&self, expected: u32) {
        let none = std::ptr::null::<libc::timespec>();
        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word is valid as long as `self`, and the kernel only reads it.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, expected, none) };
    }

    /// Wakes up to `count` sleepers.
    pub fn wake(&self, count: i32) {
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the kernel uses the address only as a key.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, count) };
    }
}

/// The lock.
pub struct Monitor {
    word: Futex,
    backoff: Backoff,
    pause: Pause,
    pause_ns: f64,
}

impl Monitor {
    /// A free one that spins by `backoff`, with a pause that takes `pause_ns`.
    pub fn new(backoff: Backoff, pause: Pause, pause_ns: f64) -> Self {
        Monitor { word: Futex::default(), backoff, pause, pause_ns }
    }

    fn try_lock(&self) -> bool {
        self.word.0.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Waits for the lock.
    pub fn lock(&self) {
        if !self.backoff.wait_until(self.pause, self.pause_ns, || self.try_lock()) {
            while self.word.0.swap(AWAITED, Ordering::Acquire) != FREE {
                self.word.wait(AWAITED);
            }
        }
    }

    /// Gives the lock back.
    pub fn unlock(&self) {
        if self.word.0.swap(FREE, Ordering::Release) == AWAITED {
            self.word.wake(1);
        }
    }
}

impl Lock for Monitor {
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        self.lock();
        let result = section();
        self.unlock();
        result
    }
}
