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
    /// As [`Lock::with`], but gives up, without the lock, once `stop` is set. A ticket can't be given back: the lock
    /// is of no use afterwards.
    pub fn with_until<R>(&self, stop: &AtomicBool, section: impl FnOnce() -> R) -> Option<R> {
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        loop {
            match mine.wrapping_sub(self.serving.load(Ordering::Acquire)) {
                0 => break,
                _ if stop.load(Ordering::Relaxed) => return None,
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
        static NEVER: AtomicBool = AtomicBool::new(false);
        self.with_until(&NEVER, section).expect("nothing stops it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_ticket_gives_up() {
        let lock = Ticket::default();
        let stop = AtomicBool::new(true);
        assert_eq!(lock.with_until(&stop, || 1), Some(1));
        let inner = lock.with_until(&stop, || lock.with_until(&stop, || 2));
        assert_eq!(inner, Some(None));
    }
}
