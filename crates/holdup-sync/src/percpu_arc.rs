//! Shared ownership without a shared count.

use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::Padded;
use crate::sync::{AtomicUsize, fence};

/// A shared value whose reference count is kept for each CPU.
///
/// Cloning and dropping an `Arc` writes its one count, whose cache line then travels from CPU to CPU: at many threads
/// that, not the work, sets the pace. Here the owner gives out [`PerCpuRef`]s, each counted on the CPU where it was made.
/// The value is dropped, exactly once, with the last of owner and references.
///
/// *Cost:* [`PerCpuRef::clone`] and drop a locked instruction each, on a line of the thread's own CPU as long as threads
/// stay where they are; a reference dropped on another CPU than it was made on costs what an `Arc` costs. *Memory:* 128
/// bytes for each possible CPU and value.
///
/// *When not:* for many small values; where a plain `&T` or one clone for each thread would do (that costs nothing at all);
/// to replace the value while it is read (that is `arc-swap`).
///
/// After the owner is dropped, references still clone, at worst like an `Arc`.
///
/// ```
/// use holdup_sync::PerCpuArc;
///
/// // Before: let config = Arc::new(String::from("8 MiB"));
/// let config = PerCpuArc::new(String::from("8 MiB"));
/// let seen = config.get();
/// let worker = std::thread::spawn(move || seen.clone().len());
/// drop(config);
/// assert_eq!(worker.join().unwrap(), 5);
/// ```
pub struct PerCpuArc<T> {
    shared: NonNull<Shared<T>>,
}

/// A reference to the value of a [`PerCpuArc`], counted on one CPU.
pub struct PerCpuRef<T> {
    shared: NonNull<Shared<T>>,
    cpu: usize,
}

/// The value, with for each CPU the number of references counted there, and one more as long as the owner lives.
///
/// A count can rise only while it is above 0, so a CPU whose count has come to 0 is done for ever, and the thread that
/// brings the last one there is the only one left to free it all.
struct Shared<T> {
    value: T,
    counts: Box<[Padded<AtomicUsize>]>,
    /// Counts that are not yet done.
    live: AtomicUsize,
}

// SAFETY: like `Arc`: references give out `&T` on any thread, and the last may drop the value on any thread.
unsafe impl<T: Send + Sync> Send for PerCpuArc<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for PerCpuArc<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for PerCpuRef<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for PerCpuRef<T> {}

impl<T> PerCpuArc<T> {
    /// Takes ownership of a value.
    pub fn new(value: T) -> Self {
        let cpus = if cfg!(loom) { 2 } else { crate::cpu::possible() };
        let counts = (0..cpus).map(|_| Padded(AtomicUsize::new(1))).collect();
        let shared = Box::new(Shared { value, counts, live: AtomicUsize::new(cpus) });
        PerCpuArc { shared: NonNull::from(Box::leak(shared)) }
    }

    /// A reference, counted on this CPU. One for each thread is enough, if it can keep it.
    pub fn get(&self) -> PerCpuRef<T> {
        let shared = self.shared();
        let cpu = this_cpu(shared.counts.len());
        // While the owner lives no count is 0.
        PerCpuRef::counted(self.shared, cpu, shared.counts[cpu].fetch_add(1, Relaxed))
    }

    fn shared(&self) -> &Shared<T> {
        // SAFETY: alive as long as the owner, which is in every count.
        unsafe { self.shared.as_ref() }
    }
}

impl<T> PerCpuRef<T> {
    /// A reference that has just been counted on top of `before`.
    fn counted(shared: NonNull<Shared<T>>, cpu: usize, before: usize) -> Self {
        // As in `Arc`: forgotten references can't be allowed to bring a count around to 0.
        if before > isize::MAX as usize {
            std::process::abort();
        }
        PerCpuRef { shared, cpu }
    }

    fn shared(&self) -> &Shared<T> {
        // SAFETY: alive as long as this reference, which is in one count.
        unsafe { self.shared.as_ref() }
    }
}

impl<T> Clone for PerCpuRef<T> {
    fn clone(&self) -> Self {
        let shared = self.shared();
        let here = this_cpu(shared.counts.len());
        let mut count = shared.counts[here].load(Relaxed);
        while count > 0 {
            match shared.counts[here].compare_exchange_weak(count, count + 1, Relaxed, Relaxed) {
                Ok(before) => return Self::counted(self.shared, here, before),
                Err(now) => count = now,
            }
        }
        // The owner is gone and this CPU done; the count that holds `self` is not.
        Self::counted(self.shared, self.cpu, shared.counts[self.cpu].fetch_add(1, Relaxed))
    }
}

/// Takes one off a CPU's count, and frees everything if that was the last of the last count.
///
/// # Safety
/// The caller is in that count, and uses `shared` no more.
unsafe fn release<T>(shared: NonNull<Shared<T>>, cpu: usize) {
    {
        // SAFETY: the caller's part of the count keeps it alive up to here.
        let shared = unsafe { shared.as_ref() };
        if shared.counts[cpu].fetch_sub(1, Release) != 1 {
            return;
        }
        // What others did with the value before they left this count happens before what follows.
        fence(Acquire);
        if shared.live.fetch_sub(1, Release) != 1 {
            return;
        }
        fence(Acquire);
    }
    // SAFETY: all counts are done, so nobody is left; made by `Box::leak` in `new`.
    drop(unsafe { Box::from_raw(shared.as_ptr()) });
}

impl<T> Drop for PerCpuArc<T> {
    fn drop(&mut self) {
        let cpus = self.shared().counts.len();
        // SAFETY: the owner is in every count once; what is freed is freed by the last of these at the earliest.
        (0..cpus).for_each(|cpu| unsafe { release(self.shared, cpu) });
    }
}

impl<T> Drop for PerCpuRef<T> {
    fn drop(&mut self) {
        // SAFETY: this reference is in the count of `cpu`, and ends here.
        unsafe { release(self.shared, self.cpu) };
    }
}

#[cfg(not(loom))]
fn this_cpu(cpus: usize) -> usize {
    crate::cpu::hint(cpus)
}

/// In a model each thread chooses its CPU.
#[cfg(loom)]
fn this_cpu(cpus: usize) -> usize {
    crate::models::CPU.with(core::cell::Cell::get) % cpus
}

impl<T> Deref for PerCpuArc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.shared().value
    }
}

impl<T> Deref for PerCpuRef<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.shared().value
    }
}

impl<T: fmt::Debug> fmt::Debug for PerCpuArc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PerCpuArc").field(&**self).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for PerCpuRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PerCpuRef").field(&**self).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::*;

    struct Dropped(Arc<AtomicU64>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn dropped_once_with_the_last_reference() {
        let drops = Arc::new(AtomicU64::new(0));
        let (threads, clones) = if cfg!(miri) { (2, 10) } else { (8, 5000) };
        let owner = PerCpuArc::new(Dropped(Arc::clone(&drops)));
        let kept = owner.get();
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let seen = owner.get();
                std::thread::spawn(move || {
                    (0..clones).fold(seen, |seen, _| {
                        let next = seen.clone();
                        assert_eq!(next.0.load(Relaxed), 0, "dropped while it is held");
                        next
                    })
                })
            })
            .collect();
        drop(owner);
        workers.into_iter().for_each(|worker| drop(worker.join()));
        assert_eq!(drops.load(Relaxed), 0);
        let last = kept.clone();
        drop(kept);
        assert_eq!(drops.load(Relaxed), 0);
        drop(last);
        assert_eq!(drops.load(Relaxed), 1);
    }

    #[test]
    fn dropped_with_an_owner_that_gave_out_none() {
        let drops = Arc::new(AtomicU64::new(0));
        drop(PerCpuArc::new(Dropped(Arc::clone(&drops))));
        assert_eq!(drops.load(Relaxed), 1);
    }
}
