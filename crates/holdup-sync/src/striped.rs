//! A counter that grows with its contention.

use core::cell::Cell;
use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::Padded;
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, thread_local};

type Stripe = Padded<AtomicU64>;

/// Set in `StripedCounter::state` while one thread makes a stripe or more room; below it the number of slots in use.
const BUSY: usize = 1 << (usize::BITS - 1);

/// A counter of three words that splits itself into cells once threads collide on it.
///
/// The algorithm is that of `Striped64` behind Java's `LongAdder`: one word until a compare-and-swap on it fails, then
/// cells of their own lines. A thread keeps its cell until it collides there; after two collisions in a row the number
/// of cells in use is doubled, up to the number of CPUs, else the thread moves on to another cell.
///
/// *Cost:* `add` is one locked instruction, on lines that few others touch; [`sum`](Self::sum) and
/// [`drain`](Self::drain) are O(cells). *Memory:* 24 bytes while cold; at most 136 for each CPU when hot.
///
/// *When not:* for a handful of very hot counters on Linux ([`PerCpuCounter`](crate::PerCpuCounter) adds without a locked
/// instruction); where each `add` needs the new total (`AtomicU64`).
///
/// ```
/// use holdup_sync::StripedCounter;
///
/// static MISSES: StripedCounter = StripedCounter::new();
/// MISSES.add(2);
/// assert_eq!(MISSES.sum(), 2);
/// ```
pub struct StripedCounter {
    base: AtomicU64,
    /// Room for as many stripes as there will ever be; null until the first collision. Stripes are made when first hit.
    slots: AtomicPtr<AtomicPtr<Stripe>>,
    state: AtomicUsize,
}

impl StripedCounter {
    /// A counter at 0. Allocates nothing.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        StripedCounter {
            base: AtomicU64::new(0),
            slots: AtomicPtr::new(core::ptr::null_mut()),
            state: AtomicUsize::new(0),
        }
    }

    /// A counter at 0, as a model.
    #[cfg(loom)]
    pub fn new() -> Self {
        StripedCounter {
            base: AtomicU64::new(0),
            slots: AtomicPtr::new(core::ptr::null_mut()),
            state: AtomicUsize::new(0),
        }
    }

    /// Adds `n`, wrapping at 2⁶⁴. Orders nothing.
    #[inline]
    pub fn add(&self, n: u64) {
        let slots = self.slots.load(Acquire);
        if slots.is_null() {
            if try_add(&self.base, n) {
                return;
            }
        } else if let Some(stripe) = self.stripe(slots, probe())
            && try_add(stripe, n)
        {
            return;
        }
        self.add_contended(n);
    }

    /// What has been added and not drained. Exact about every `add` that happened before.
    pub fn sum(&self) -> u64 {
        self.total(|word| word.load(Relaxed))
    }

    /// Takes the sum and leaves 0. Each `add` is in the result of exactly one `drain`.
    pub fn drain(&self) -> u64 {
        self.total(|word| word.swap(0, Relaxed))
    }

    fn total(&self, take: impl Fn(&AtomicU64) -> u64) -> u64 {
        let slots = self.slots.load(Acquire);
        let used = if slots.is_null() { 0 } else { self.state.load(Acquire) & !BUSY };
        (0..used).fold(take(&self.base), |sum, i| sum.wrapping_add(self.stripe(slots, i).map_or(0, &take)))
    }

    /// The stripe that a probe leads to, if it exists; `slots` is not null.
    #[inline]
    fn stripe(&self, slots: *mut AtomicPtr<Stripe>, probe: usize) -> Option<&AtomicU64> {
        let used = self.state.load(Acquire) & !BUSY;
        // SAFETY: `slots` has room for `limit()` slots and `used` is a power of two not above it. A stripe, once there,
        // stays until the counter is dropped.
        let stripe = unsafe { (*slots.add(probe & (used - 1))).load(Acquire).as_ref() };
        stripe.map(|stripe| &stripe.0)
    }

    /// The slow path: finds, makes or multiplies stripes until the addition succeeds.
    #[cold]
    fn add_contended(&self, n: u64) {
        let mut collided = false;
        loop {
            let slots = self.slots.load(Acquire);
            let stripe = if slots.is_null() { None } else { self.stripe(slots, probe()) };
            match stripe {
                Some(stripe) if try_add(stripe, n) => return,
                Some(_) => {
                    if collided {
                        self.double();
                    }
                    collided = !collided;
                    rehash();
                }
                // Another thread is making it: the base will do this once.
                None if !self.make(slots) && try_add(&self.base, n) => return,
                None => {}
            }
        }
    }

    /// Makes the slots, or the stripe of this thread. `false` if another thread is at work.
    fn make(&self, slots: *mut AtomicPtr<Stripe>) -> bool {
        self.exclusively(|used| {
            if self.slots.load(Relaxed).is_null() {
                let new: Box<[AtomicPtr<Stripe>]> = (0..limit()).map(|_| AtomicPtr::default()).collect();
                // Whoever sees the slots sees that two are in use.
                self.state.store(2 | BUSY, Relaxed);
                self.slots.store(Box::into_raw(new).cast(), Release);
                return 2;
            }
            // SAFETY: slots that were not null stay, and below `used` there are some.
            if let Some(slot) = unsafe { slots.as_ref() }.map(|_| unsafe { &*slots.add(probe() & (used - 1)) })
                && slot.load(Relaxed).is_null()
            {
                slot.store(Box::into_raw(Box::default()), Release);
            }
            used
        })
    }

    /// Doubles the slots in use, up to the number of CPUs.
    fn double(&self) {
        self.exclusively(|used| if used < limit() { used * 2 } else { used });
    }

    /// Runs a change that returns how many slots are in use after it, unless another thread is at one.
    fn exclusively(&self, change: impl FnOnce(usize) -> usize) -> bool {
        let used = self.state.load(Relaxed) & !BUSY;
        let free = self.state.compare_exchange(used, used | BUSY, Acquire, Relaxed).is_ok();
        if free {
            self.state.store(change(used), Release);
        }
        free
    }
}

#[inline]
fn try_add(word: &AtomicU64, n: u64) -> bool {
    let old = word.load(Relaxed);
    word.compare_exchange(old, old.wrapping_add(n), Relaxed, Relaxed).is_ok()
}

/// Slots that a counter has room for: a power of two, at least 2.
fn limit() -> usize {
    if cfg!(loom) { 2 } else { crate::cpu::possible().next_power_of_two().max(2) }
}

thread_local! {
    static PROBE: Cell<u32> = Cell::new(first_probe());
}

/// Spreads threads over the slots; a model must start each run alike.
fn first_probe() -> u32 {
    use core::sync::atomic::AtomicU32;
    static NEXT: AtomicU32 = AtomicU32::new(1);
    if cfg!(loom) { 1 } else { NEXT.fetch_add(1, Relaxed).wrapping_mul(0x9e37_79b9) | 1 }
}

/// Where this thread adds. A thread whose locals are gone is ending, and adds anywhere.
#[inline]
fn probe() -> usize {
    PROBE.try_with(|probe| probe.get() as usize).unwrap_or(0)
}

/// Moves this thread to another slot: xorshift with 13, 17 and 5 (Marsaglia 2003), which visits all numbers but 0.
fn rehash() {
    // Without thread locals there is nothing to move.
    let _ = PROBE.try_with(|probe| {
        let mut x = probe.get();
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        probe.set(x);
    });
}

impl Default for StripedCounter {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for StripedCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripedCounter").field("sum", &self.sum()).finish()
    }
}

impl Drop for StripedCounter {
    fn drop(&mut self) {
        let slots = self.slots.load(Acquire);
        if slots.is_null() {
            return;
        }
        // SAFETY: allocated in `make` as a boxed slice of this length, and nobody else is left to use it.
        let slots = unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(slots, limit())) };
        for slot in &slots {
            let stripe = slot.load(Relaxed);
            if !stripe.is_null() {
                // SAFETY: a box turned into a pointer in `make`, once.
                drop(unsafe { Box::from_raw(stripe) });
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_while_it_grows() {
        let counter = StripedCounter::new();
        let (threads, adds) = if cfg!(miri) { (3, 20) } else { (8, 50_000) };
        let drained: u64 = std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..adds).for_each(|_| counter.add(3)));
            }
            (0..50).map(|_| counter.drain()).fold(0, u64::wrapping_add)
        });
        assert_eq!(drained + counter.sum(), threads * adds * 3);
    }

    #[test]
    fn every_way_of_growing_keeps_the_sum() {
        let counter = StripedCounter::new();
        counter.add(1);
        assert!(counter.make(counter.slots.load(Relaxed)), "slots");
        counter.add(2);
        assert!(!counter.slots.load(Relaxed).is_null());
        (0..4).for_each(|_| {
            counter.double();
            rehash();
            counter.add(4);
        });
        assert_eq!(counter.state.load(Relaxed), limit());
        assert_eq!(counter.sum(), 19);
        assert_eq!(counter.drain(), 19);
        assert_eq!(counter.sum(), 0);
    }
}
