//! At most N threads at once; the others sleep.

use core::fmt;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{PoisonError, TryLockError};

use crate::sync::{AtomicU64, Condvar, Mutex, MutexGuard, lock};

/// A counting semaphore to put around a contended lock or a work loop: it admits `permits` threads, the others sleep
/// (Hart's gate, 1998).
///
/// A lock that many threads fight for is handed on slower the more of them spin, and collapses when they outnumber the
/// CPUs: the next in line is then one that does not run. With few threads admitted, one works, another is ready to go
/// on, and the rest cost nothing.
///
/// *Cost:* entering and leaving are a locked instruction each while permits are left; a thread that must wait pays a
/// sleep and a wake-up. At most one wake-up is under way at a time.
///
/// *Not fair:* a running thread may take the permit that a woken one was woken for. That is what makes it fast, and
/// wrong where each thread must get its turn.
///
/// *When not:* around sections that sleep or do I/O (permits then idle with their holders), or where the lock is not
/// contended. Making the section shorter or splitting the data helps more.
///
/// ```
/// use holdup_sync::Gate;
///
/// let gate = Gate::new(2);
/// let permit = gate.enter();
/// assert!(gate.try_enter().is_some_and(|_also| gate.try_enter().is_none()));
/// drop(permit);
/// ```
pub struct Gate {
    /// Free permits below, waiting threads above [`WAITER`]: one word, so that a thread that leaves can't overlook one
    /// that is about to sleep.
    state: AtomicU64,
    /// Whether a thread was woken and has not yet looked. Threads start and end to wait under this lock alone.
    waking: Mutex<bool>,
    freed: Condvar,
}

const WAITER: u64 = 1 << 32;

/// Free permits of a state.
fn free(state: u64) -> u64 {
    state % WAITER
}

/// The right to be inside a [`Gate`], given back on drop.
#[must_use = "the permit is given back at once if it is not kept"]
pub struct Permit<'a>(&'a Gate);

impl Gate {
    /// A gate for `permits` threads at once.
    ///
    /// # Panics
    /// If `permits` is 0: nobody could ever enter.
    pub fn new(permits: u32) -> Self {
        assert!(permits > 0, "a gate needs at least one permit");
        Gate { state: AtomicU64::new(permits.into()), waking: Mutex::new(false), freed: Condvar::new() }
    }

    /// Waits for a permit.
    pub fn enter(&self) -> Permit<'_> {
        self.try_enter().unwrap_or_else(|| self.wait())
    }

    /// A permit, if one is free now.
    pub fn try_enter(&self) -> Option<Permit<'_>> {
        let mut state = self.state.load(Relaxed);
        while free(state) > 0 {
            match self.state.compare_exchange(state, state - 1, Acquire, Relaxed) {
                Ok(_) => return Some(Permit(self)),
                Err(now) => state = now,
            }
        }
        None
    }

    #[cold]
    fn wait(&self) -> Permit<'_> {
        let mut waking = lock(&self.waking);
        // Who leaves after this wakes us; who left before has freed a permit that the next line sees.
        self.state.fetch_add(WAITER, Relaxed);
        let permit = loop {
            if let Some(permit) = self.try_enter() {
                break permit;
            }
            waking = self.freed.wait(waking).unwrap_or_else(PoisonError::into_inner);
            *waking = false;
        };
        // Permits that were freed while a wake-up was under way woke nobody.
        if free(self.state.fetch_sub(WAITER, Relaxed)) > 0 {
            self.wake(&mut waking);
        }
        permit
    }

    fn leave(&self) {
        if self.state.fetch_add(1, Release) >= WAITER {
            self.wake(&mut lock(&self.waking));
        }
    }

    fn wake(&self, waking: &mut bool) {
        if !*waking && self.state.load(Relaxed) >= WAITER {
            *waking = true;
            self.freed.notify_one();
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Relaxed);
        f.debug_struct("Gate").field("free", &free(state)).field("waiting", &(state / WAITER)).finish()
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}

/// A mutex behind a [`Gate`]: only as many threads as the gate admits try to lock it.
///
/// ```
/// let jobs = holdup_sync::GatedMutex::new(2, vec![1, 2, 3]);
/// assert_eq!(jobs.lock().pop(), Some(3));
/// assert_eq!(jobs.into_inner(), [1, 2]);
/// ```
#[derive(Debug)]
pub struct GatedMutex<T> {
    gate: Gate,
    value: Mutex<T>,
}

/// The locked value of a [`GatedMutex`]: unlocked, then let out of the gate, on drop.
#[derive(Debug)]
pub struct GatedGuard<'a, T> {
    // Dropped in this order: the lock is free before the next thread is admitted.
    value: MutexGuard<'a, T>,
    _permit: Permit<'a>,
}

impl<T> GatedMutex<T> {
    /// A mutex that at most `permits` threads try to lock at once; 2 keep it busy.
    ///
    /// # Panics
    /// If `permits` is 0.
    pub fn new(permits: u32, value: T) -> Self {
        GatedMutex { gate: Gate::new(permits), value: Mutex::new(value) }
    }

    /// Waits for a permit, then for the lock. A holder that panicked does not poison it.
    pub fn lock(&self) -> GatedGuard<'_, T> {
        let permit = self.gate.enter();
        GatedGuard { value: lock(&self.value), _permit: permit }
    }

    /// The value, if no thread had to be waited for.
    pub fn try_lock(&self) -> Option<GatedGuard<'_, T>> {
        let permit = self.gate.try_enter()?;
        match self.value.try_lock() {
            Ok(value) => Some(GatedGuard { value, _permit: permit }),
            Err(TryLockError::Poisoned(held)) => Some(GatedGuard { value: held.into_inner(), _permit: permit }),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The value of a mutex that nobody else uses.
    pub fn into_inner(self) -> T {
        self.value.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for GatedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for GatedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    #[test]
    fn admits_no_more_than_its_permits() {
        let (gate, inside, most) = (Gate::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
        let (threads, rounds) = if cfg!(miri) { (3, 10) } else { (6, 2000) };
        // Threads that take turns by chance may never be inside together.
        drop([gate.enter(), gate.enter()]);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let _permit = gate.enter();
                        most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                    }
                });
            }
        });
        assert!((1..=2).contains(&most.into_inner()));
        assert_eq!(gate.state.into_inner(), 2, "all permits are back, nobody waits");
    }

    #[test]
    fn a_panic_gives_lock_and_permit_back() {
        let value = GatedMutex::new(1, 0);
        std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let mut guard = value.lock();
                *guard = 1;
                panic!("on purpose");
            });
            assert!(holder.join().is_err());
        });
        assert_eq!(value.try_lock().map(|value| *value), Some(1));
        let held = value.lock();
        assert!(value.try_lock().is_none());
        drop(held);
    }

    #[test]
    #[should_panic(expected = "at least one permit")]
    fn a_gate_for_nobody() {
        Gate::new(0);
    }
}
