//! What each thread does.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use holdup_sync::{Gate, Padded};

use crate::Result;
use crate::experiments::atomics::plain_add;
use crate::harness::case::{Case, Work};
use crate::harness::clock;
use crate::locks::{self, Lock, Visitor};

/// The parameters of one case.
#[derive(Debug, Clone)]
pub struct Params {
    /// Kind of lock.
    pub lock: &'static str,
    /// How often the owner takes it again.
    pub depth: usize,
    /// Delay while holding, in nanoseconds.
    pub delay_ns: u64,
    /// Threads that use it.
    pub threads: usize,
    /// Calls of `sched_yield` after each release.
    pub yields: usize,
    /// Threads allowed to be active at a time; 0 is all.
    pub active: usize,
    /// Threads that only compute, at this niceness; they do not use the lock.
    pub background: Option<(usize, i32)>,
    /// Raise the priority inside the section.
    pub boost: bool,
    /// Sleep inside the section, in microseconds; 0 is not at all.
    pub sleep_us: u64,
    /// How many CPUs all threads may use.
    pub cpus: Option<usize>,
    /// Distance of the lock from a cache line's start, in bytes; the data stand after it.
    pub offset: usize,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            lock: "std",
            depth: 1,
            delay_ns: 0,
            threads: 1,
            yields: 0,
            active: 0,
            background: None,
            boost: false,
            sleep_us: 0,
            cpus: None,
            offset: 0,
        }
    }
}

/// Makes the case of these parameters.
///
/// # Errors
/// The kernel refuses the lock.
pub fn case(series: String, x: f64, params: &Params) -> Result<Case> {
    let background = params.background.map_or(0, |(count, _)| count);
    let threads = params.threads + background;
    let mut case = locks::visit(params.lock, threads, Make { series, params })?.at(x);
    case.company = background;
    case.cpus = params.cpus;
    Ok(case)
}

/// A lock that its owner may take again.
struct Nested<L> {
    lock: L,
    owner: AtomicUsize,
}

const NOBODY: usize = usize::MAX;

impl<L: Lock> Nested<L> {
    fn with(&self, who: usize, depth: usize, section: &dyn Fn()) {
        match depth {
            0 => section(),
            // Only the owner itself can read its own number here.
            _ if self.owner.load(Ordering::Relaxed) == who => self.with(who, depth - 1, section),
            _ => self.lock.with(who, || {
                self.owner.store(who, Ordering::Relaxed);
                self.with(who, depth - 1, section);
                self.owner.store(NOBODY, Ordering::Relaxed);
            }),
        }
    }
}

struct Make<'a> {
    series: String,
    params: &'a Params,
}

impl Visitor for Make<'_> {
    type Out = Case;

    fn visit<L: Lock>(self, lock: L) -> Case {
        let params = self.params.clone();
        let company = params.threads;
        let all = company + params.background.map_or(0, |(count, _)| count);
        let gate = (params.active > 0).then(|| Gate::new(params.active as u32));
        let place = Placed::new(Nested { lock, owner: AtomicUsize::new(NOBODY) }, params.offset);
        let count = Padded::new(AtomicU64::new(0));
        Case::new(self.series, all, move |who, n| {
            if who >= company {
                return keep_busy(n, params.background.map_or(0, |(_, nice)| nice));
            }
            for _ in 0..n {
                let _permit = gate.as_ref().map(Gate::enter);
                place.get().with(who, params.depth, &|| inside(&params, &count));
                (0..params.yields).for_each(|_| std::thread::yield_now());
            }
        })
    }
}

#[inline]
fn inside(params: &Params, count: &AtomicU64) {
    if params.boost {
        set_nice(-5);
    }
    plain_add(count);
    if params.delay_ns > 0 {
        clock::work_ns(params.delay_ns);
    }
    if params.sleep_us > 0 {
        std::thread::sleep(Duration::from_micros(params.sleep_us));
    }
    if params.boost {
        set_nice(0);
    }
}

/// The load beside the threads that use the lock.
fn keep_busy(n: u64, nice: i32) {
    set_nice(nice);
    clock::work_ns(n.clamp(1, 1000) * 20);
    set_nice(0);
}

fn set_nice(nice: i32) {
    // SAFETY: the call takes three numbers; 0 is the calling thread. Without the privilege nothing changes.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
}

/// A value at a given distance from the start of a cache line.
struct Placed<T> {
    room: Vec<Padded<[u8; 128]>>,
    at: usize,
    value: std::marker::PhantomData<T>,
}

impl<T> Placed<T> {
    fn new(value: T, offset: usize) -> Self {
        let at = offset.next_multiple_of(align_of::<T>());
        let mut room: Vec<Padded<[u8; 128]>> = Vec::new();
        room.resize((at + size_of::<T>()).div_ceil(128) + 1, Padded::new([0; 128]));
        // SAFETY: the room is long enough from `at` on, and aligned: its start is to 128, more than any T here needs, and
        // `at` is a multiple of T's alignment.
        unsafe { room.as_mut_ptr().cast::<u8>().add(at).cast::<T>().write(value) };
        Placed { room, at, value: std::marker::PhantomData }
    }

    #[inline]
    fn get(&self) -> &T {
        // SAFETY: `new` has written a T there, and the room is not changed or moved in memory while `self` lives.
        unsafe { &*self.room.as_ptr().cast::<u8>().add(self.at).cast::<T>() }
    }
}

// SAFETY: it is a T, with room around it.
unsafe impl<T: Send> Send for Placed<T> {}
// SAFETY: as above; `get` gives shared references alone.
unsafe impl<T: Sync> Sync for Placed<T> {}

impl<T> Drop for Placed<T> {
    fn drop(&mut self) {
        // SAFETY: the T that `new` wrote is dropped once, here, and not used afterwards.
        unsafe { self.room.as_mut_ptr().cast::<u8>().add(self.at).cast::<T>().drop_in_place() };
    }
}

/// Nanoseconds from one operation to the next, by whichever thread.
pub fn ns_between(round: &[Work]) -> f64 {
    let elapsed = round.iter().map(|w| w.elapsed).max().unwrap_or(0);
    elapsed as f64 / round.iter().map(|w| w.ops).sum::<u64>().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn nesting_does_not_block_the_owner() {
        let lock = Nested { lock: locks::Std::default(), owner: AtomicUsize::new(NOBODY) };
        let entered = Cell::new(0);
        lock.with(0, 5, &|| entered.set(entered.get() + 1));
        assert_eq!(entered.get(), 1);
        assert_eq!(lock.owner.load(Ordering::Relaxed), NOBODY);
    }

    #[test]
    fn a_placed_value_stands_where_it_should_and_is_dropped() {
        let value = std::sync::Arc::new(7);
        for offset in [0, 8, 60, 120] {
            let placed = Placed::new(std::sync::Arc::clone(&value), offset);
            assert_eq!(&raw const *placed.get() as usize % 64, offset.next_multiple_of(8) % 64);
            assert_eq!(**placed.get(), 7);
        }
        assert_eq!(std::sync::Arc::strong_count(&value), 1);
    }
}
