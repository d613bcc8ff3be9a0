//! All interleavings of a few threads with up to three preemptions, by loom:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p holdup-sync --lib --target-dir target/loom models`.

use core::cell::Cell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

loom::thread_local! {
    /// The CPU that a thread says it is on.
    pub static CPU: Cell<usize> = Cell::new(0);
}

/// Few preemptions find nearly all bugs, and end in seconds.
#[cfg(test)]
fn model(threads: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(threads);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::Taken;
    use crate::{Gate, PerCpuArc, StripedCounter};

    #[test]
    fn striped_counter_loses_nothing_while_it_grows() {
        model(|| {
            let counter = Arc::new(StripedCounter::new());
            let other = Arc::clone(&counter);
            let worker = thread::spawn(move || (0..2).for_each(|_| other.add(1)));
            (0..2).for_each(|_| counter.add(1));
            let drained = counter.drain();
            worker.join().unwrap();
            assert_eq!(drained + counter.sum(), 4);
        });
    }

    /// Cells that only grow; their owners' adds are locked here, as loom knows no sections.
    #[test]
    fn each_add_is_taken_once_by_one_of_two() {
        model(|| {
            let shared = Arc::new((Taken::new(), [AtomicUsize::new(0), AtomicUsize::new(0)]));
            let total = |cells: &[AtomicUsize]| cells.iter().map(|cell| cell.load(Relaxed) as u64).sum();
            let writer = thread::spawn({
                let shared = Arc::clone(&shared);
                move || (0..3).for_each(|i| _ = shared.1[i % 2].fetch_add(1, Relaxed))
            });
            let taker = thread::spawn({
                let shared = Arc::clone(&shared);
                move || shared.0.take(|| total(&shared.1))
            });
            let here = shared.0.take(|| total(&shared.1));
            assert!(here <= 3 && shared.0.left(|| total(&shared.1)) <= 3, "nothing goes below 0");
            let there = taker.join().unwrap();
            writer.join().unwrap();
            assert_eq!(here + there + shared.0.take(|| total(&shared.1)), 3);
        });
    }

    #[test]
    fn gate_admits_its_permits_and_wakes_everybody() {
        model(|| {
            let shared = Arc::new((Gate::new(1), AtomicUsize::new(0)));
            let enter = |shared: &(Gate, AtomicUsize)| {
                let permit = shared.0.enter();
                assert_eq!(shared.1.fetch_add(1, Relaxed), 0);
                shared.1.fetch_sub(1, Relaxed);
                drop(permit);
            };
            let other = Arc::clone(&shared);
            let worker = thread::spawn(move || (0..2).for_each(|_| enter(&other)));
            (0..2).for_each(|_| enter(&shared));
            worker.join().unwrap();
        });
    }

    #[test]
    fn two_permits_freed_at_once_wake_two() {
        model(|| {
            let gate = Arc::new(Gate::new(2));
            let permits = [gate.enter(), gate.enter()];
            let workers: Vec<_> = (0..2)
                .map(|_| {
                    let gate = Arc::clone(&gate);
                    // Neither ends before both are inside.
                    thread::spawn(move || std::mem::forget(gate.enter()))
                })
                .collect();
            permits.into_iter().for_each(drop);
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        });
    }

    /// Says when the value is dropped: a use after that is one of freed memory, which loom's cell finds.
    struct Value(loom::cell::UnsafeCell<u32>);

    // SAFETY: the cell is written by `drop` alone.
    unsafe impl Sync for Value {}

    impl Drop for Value {
        fn drop(&mut self) {
            // SAFETY: loom checks that nobody reads meanwhile, and that all reads happened before.
            self.0.with_mut(|value| unsafe { *value = 0 });
        }
    }

    fn read(value: &Value) -> u32 {
        // SAFETY: loom checks that nobody writes meanwhile.
        value.0.with(|value| unsafe { *value })
    }

    #[test]
    fn percpu_arc_is_dropped_once_after_all_uses() {
        model(|| {
            let owner = PerCpuArc::new(Value(loom::cell::UnsafeCell::new(1)));
            let workers: Vec<_> = (0..2)
                .map(|cpu| {
                    let seen = owner.get();
                    thread::spawn(move || {
                        CPU.with(|own| own.set(cpu));
                        let second = seen.clone();
                        drop(seen);
                        assert_eq!(read(&second), 1);
                    })
                })
                .collect();
            assert_eq!(read(&owner), 1);
            drop(owner);
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        });
    }
}
