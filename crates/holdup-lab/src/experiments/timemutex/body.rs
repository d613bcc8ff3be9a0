//! What each thread does.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use holdup_sync::{Gate, Padded};

use crate::Result;
use crate::experiments::atomics::plain_add;
use crate::harness::case::{Case, Work};
use crate::harness::clock;
use crate::harness::random::Random;
use crate::locks::{self, Lock, Visitor};

/// The parameters of one case.
#[derive(Debug, Clone)]
pub struct Params {
    /// Kind of lock.
    pub lock: &'static str,
    /// How often the owner takes it: 0 is not at all, above 1 it takes again what it has.
    pub depth: usize,
    /// Take a second lock of the kind inside the first.
    pub nested: bool,
    /// Delay while holding, in nanoseconds.
    pub delay_ns: u64,
    /// The delay is evenly distributed from 0 to twice `delay_ns`.
    pub random: bool,
    /// Work after each release, in nanoseconds.
    pub outside_ns: u64,
    /// Memory that is allocated and freed while holding, in bytes.
    pub malloc: usize,
    /// Threads that use it.
    pub threads: usize,
    /// Calls of `sched_yield` after each release.
    pub yields: usize,
    /// The story's sleep points, one `sched_yield` each: bit 0 while holding, bit 1 after the release.
    pub points: usize,
    /// Threads allowed to be active at a time; 0 is all.
    pub active: usize,
    /// Let a thread be active for a whole loop of operations, not for one.
    pub around_loop: bool,
    /// Niceness of the threads that use the lock.
    pub nice: i32,
    /// Threads that only compute, at this niceness; they do not use the lock.
    pub company: Option<(usize, i32)>,
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
            nested: false,
            delay_ns: 0,
            random: false,
            outside_ns: 0,
            malloc: 0,
            threads: 1,
            yields: 0,
            points: 0,
            active: 0,
            around_loop: false,
            nice: 0,
            company: None,
            boost: false,
            sleep_us: 0,
            cpus: None,
            offset: 0,
        }
    }
}

/// Yields while holding.
pub const YIELD_INSIDE: usize = 1;
/// Yields after the release.
pub const YIELD_OUTSIDE: usize = 2;
/// A whole loop of operations takes about so long, in nanoseconds.
const LOOP_NS: u64 = 1_000_000;
/// What an operation without delays is reckoned to take there, in nanoseconds.
const OPERATION_NS: u64 = 50;

impl Params {
    fn has_nothing_inside(&self) -> bool {
        !self.boost && self.delay_ns == 0 && self.malloc == 0 && self.points & YIELD_INSIDE == 0 && self.sleep_us == 0
    }

    fn has_nothing_after(&self) -> bool {
        self.yields == 0 && self.points & YIELD_OUTSIDE == 0 && self.outside_ns == 0
    }

    /// Operations of one loop behind the gate.
    fn loop_length(&self) -> u64 {
        let each = OPERATION_NS + self.delay_ns + self.outside_ns + 1000 * self.sleep_us;
        if self.around_loop { (LOOP_NS / each).max(1) } else { 1 }
    }
}

/// Makes the case of these parameters.
///
/// # Errors
/// The kernel refuses the lock.
pub fn case(series: String, x: f64, params: &Params) -> Result<Case> {
    let company = params.company.map_or(0, |(count, _)| count);
    let mut case = locks::visit(params.lock, params.threads + company, Make { series, params })?.at(x);
    case.company = company;
    case.cpus = params.cpus;
    // A thread may make itself nicer, but only a privileged one can take that back.
    case.apart = params.nice != 0 || params.boost || company > 0;
    Ok(case.each(params.loop_length()))
}

/// A lock that its owner takes again: as its own kind does it, or as a monitor does, which compares the owner and counts.
struct Reentrant<L> {
    lock: L,
    owner: AtomicUsize,
    depth: AtomicUsize,
}

const NOBODY: usize = usize::MAX;

impl<L: Lock> Reentrant<L> {
    fn new(lock: L) -> Self {
        Reentrant { lock, owner: AtomicUsize::new(NOBODY), depth: AtomicUsize::new(0) }
    }

    /// Runs `section` with the lock taken `depth` times.
    #[inline]
    fn with(&self, who: usize, depth: usize, section: impl Fn()) {
        match depth {
            0 => section(),
            1 => self.lock.with(who, section),
            _ if self.lock.is_recursive() => self.take_again(who, depth, &section),
            _ => self.enter(who, depth, &section),
        }
    }

    // Not inlined: each level is a call of the lock's own, as in a program whose functions lock and call each other.
    #[inline(never)]
    fn take_again(&self, who: usize, depth: usize, section: &dyn Fn()) {
        self.lock.with(who, || if depth == 1 { section() } else { self.take_again(who, depth - 1, section) });
    }

    #[inline(never)]
    fn enter(&self, who: usize, depth: usize, section: &dyn Fn()) {
        let inside = || if depth == 1 { section() } else { self.enter(who, depth - 1, section) };
        // Only the owner itself can read its own number here.
        if self.owner.load(Ordering::Relaxed) == who {
            self.depth.store(self.depth.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            inside();
            return self.depth.store(self.depth.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
        self.lock.with(who, || {
            self.owner.store(who, Ordering::Relaxed);
            inside();
            self.owner.store(NOBODY, Ordering::Relaxed);
        });
    }
}

struct Make<'a> {
    series: String,
    params: &'a Params,
}

impl Visitor for Make<'_> {
    type Out = Case;

    fn wants_two(&self) -> bool {
        self.params.nested
    }

    fn visit<L: Lock>(self, lock: L, inner: Option<L>) -> Case {
        let params = self.params.clone();
        let users = params.threads;
        let all = users + params.company.map_or(0, |(count, _)| count);
        let gate = (params.active > 0).then(|| Gate::new(params.active as u32));
        let place = Placed::new(Reentrant::new(lock), params.offset);
        let inner = inner.map(|lock| Padded::new(Reentrant::new(lock)));
        let count = Padded::new(AtomicU64::new(0));
        let length = params.loop_length();
        let (quick_inside, quick_after) = (params.has_nothing_inside(), params.has_nothing_after());
        // What is asked once for each operation is only whether there is anything to ask: a lock takes a few nanoseconds.
        let section = move || {
            plain_add(&count);
            if !quick_inside {
                inside(&params);
            }
        };
        let (depth, params) = (self.params.depth, self.params.clone());
        let once = move |who: usize| {
            place.get().with(who, depth, || match &inner {
                Some(inner) => inner.with(who, 1, &section),
                None => section(),
            });
            if !quick_after {
                after(&params);
            }
        };
        let (own, beside) = (self.params.nice, self.params.company.map_or(0, |(_, nice)| nice));
        Case::new(self.series, all, move |who, n| {
            be_nice(if who < users { own } else { beside });
            if who >= users {
                return clock::work_ns(n.clamp(1, 1000) * 20);
            }
            match &gate {
                None => (0..n * length).for_each(|_| once(who)),
                Some(gate) => (0..n).for_each(|_| {
                    let _permit = gate.enter();
                    (0..length).for_each(|_| once(who));
                }),
            }
        })
    }
}

#[cold]
fn inside(params: &Params) {
    if params.boost {
        set_nice(-5);
    }
    if params.delay_ns > 0 {
        clock::work_ns(if params.random { random_up_to(2 * params.delay_ns) } else { params.delay_ns });
    }
    if params.malloc > 0 {
        // The function itself: Rust's way to it is 5 ns longer.
        // SAFETY: what it returns, which may be null, is freed and not used.
        unsafe { libc::free(std::hint::black_box(libc::malloc(params.malloc))) };
    }
    if params.points & YIELD_INSIDE != 0 {
        std::thread::yield_now();
    }
    if params.sleep_us > 0 {
        std::thread::sleep(Duration::from_micros(params.sleep_us));
    }
    if params.boost {
        set_nice(0);
    }
}

#[cold]
fn after(params: &Params) {
    let yields = params.yields + usize::from(params.points & YIELD_OUTSIDE != 0);
    (0..yields).for_each(|_| std::thread::yield_now());
    if params.outside_ns > 0 {
        clock::work_ns(params.outside_ns);
    }
}

thread_local! {
    /// One for each thread, and the thread's niceness.
    static RANDOM: Cell<Random> = const { Cell::new(Random::new(0)) };
    static NICE: Cell<i32> = const { Cell::new(0) };
}

fn random_up_to(end: u64) -> u64 {
    RANDOM.with(|state| {
        let mut random = state.get();
        let x = random.number();
        state.set(random);
        x % (end + 1)
    })
}

/// Makes this thread as nice as that, once.
fn be_nice(nice: i32) {
    NICE.with(|now| {
        if now.replace(nice) != nice {
            set_nice(nice);
        }
    });
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

    /// Runs a section of a lock that is taken so often; how often it ran, and how often the lock was taken.
    fn taken(recursive: bool, depth: usize) -> (u64, u64) {
        struct Counted(AtomicU64, bool);
        impl Lock for Counted {
            fn with<R>(&self, _: usize, section: impl FnOnce() -> R) -> R {
                plain_add(&self.0);
                section()
            }

            fn is_recursive(&self) -> bool {
                self.1
            }
        }
        let (lock, ran) = (Reentrant::new(Counted(AtomicU64::new(0), recursive)), AtomicU64::new(0));
        lock.with(0, depth, || plain_add(&ran));
        assert!(lock.owner.load(Ordering::Relaxed) == NOBODY && lock.depth.load(Ordering::Relaxed) == 0);
        (ran.into_inner(), lock.lock.0.into_inner())
    }

    #[test]
    fn a_recursive_lock_is_taken_as_often_as_it_is_nested() {
        assert_eq!([0, 1, 2, 8].map(|depth| taken(true, depth)), [(1, 0), (1, 1), (1, 2), (1, 8)]);
        assert_eq!([0, 1, 2, 8].map(|depth| taken(false, depth)), [(1, 0), (1, 1), (1, 1), (1, 1)]);
    }

    #[test]
    fn random_delays_have_their_mean() {
        let sum: u64 = (0..10_000).map(|_| random_up_to(2000)).sum();
        assert!((9_500_000..10_500_000).contains(&sum), "{sum}");
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
