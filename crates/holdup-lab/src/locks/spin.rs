//! Locks that only spin.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use holdup_sync::Padded;

use super::Lock;

/// Test-and-set: each try writes, so that waiters take the line from the owner.
#[derive(Default)]
pub struct Tas(AtomicBool);

impl Lock for Tas {
    #[inline]
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        while self.0.swap(true, Ordering::Acquire) {
            spin_loop();
        }
        let result = section();
        self.0.store(false, Ordering::Release);
        result
    }
}

/// Test, then test-and-set: waiters only read until the lock looks free.
#[derive(Default)]
pub struct Ttas(AtomicBool);

impl Lock for Ttas {
    #[inline]
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        while self.0.swap(true, Ordering::Acquire) {
            while self.0.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
        let result = section();
        self.0.store(false, Ordering::Release);
        result
    }
}

/// Pauses for each thread that is ahead in the queue.
const PAUSES_AHEAD: u32 = 20;

/// First come, first served, with a back-off proportional to the place in the queue (Mellor-Crummey and Scott 1991).
#[derive(Default)]
pub struct Ticket {
    next: Padded<AtomicU32>,
    serving: Padded<AtomicU32>,
}

impl Ticket {
    /// As [`Lock::with`], but gives up, without the lock, once `stop` says so. A ticket can't be given back: the lock
    /// is of no use afterwards.
    #[inline]
    pub fn with_until<R>(&self, stop: impl Fn() -> bool, section: impl FnOnce() -> R) -> Option<R> {
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        loop {
            match mine.wrapping_sub(self.serving.load(Ordering::Acquire)) {
                0 => break,
                _ if stop() => return None,
                ahead => (0..ahead.min(64) * PAUSES_AHEAD).for_each(|_| spin_loop()),
            }
        }
        let result = section();
        self.serving.store(mine.wrapping_add(1), Ordering::Release);
        Some(result)
    }
}

impl Lock for Ticket {
    #[inline]
    fn with<R>(&self, _who: usize, section: impl FnOnce() -> R) -> R {
        self.with_until(|| false, section).expect("nothing stops it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_ticket_gives_up() {
        let lock = Ticket::default();
        assert_eq!(lock.with_until(|| true, || 1), Some(1));
        let inner = lock.with_until(|| true, || lock.with_until(|| true, || 2));
        assert_eq!(inner, Some(None));
    }
}
