//! What single operations on memory cost, alone and shared.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use holdup_sync::Padded;

use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::case::Case;
use crate::knobs::{CPUS, ROUND_US, ROUNDS, THREADS};
use crate::result::{Outcome, Series, Verdict};

/// Atomic operations, each on a word of the thread's own and on one that all share.
pub const EXPERIMENT: Experiment = Experiment {
    name: "atomics",
    about: "what loads, stores and atomic operations cost, on an own and on a shared word",
    axis: "threads",
    knobs: &[THREADS, CPUS, ROUNDS, ROUND_US],
    run,
};

/// A group of words, one for each thread, and which of them a thread uses.
type Words = Arc<Vec<Padded<AtomicU64>>>;

fn run(session: &mut Session) -> Result<Found> {
    let most = session.values.counts("threads").into_iter().max().unwrap_or(1);
    let mut cases = Vec::new();
    for shared in [false, true] {
        let whose = if shared { "shared" } else { "own" };
        let words: Words = Arc::new((0..most).map(|_| Padded::default()).collect());
        // Each call is a loop of its own in the binary.
        let mut operation = |name: &str, case: &dyn Fn(String, usize, Words, bool) -> Case| {
            let make = |threads| case(format!("{name}, {whose}"), threads, Arc::clone(&words), shared);
            cases.extend(session.for_threads(make));
        };
        operation("load", &|s, n, w, all| looped(s, n, w, all, |word| _ = word.load(Ordering::Acquire)));
        operation("store", &|s, n, w, all| looped(s, n, w, all, |word| word.store(1, Ordering::Release)));
        operation("plain add", &|s, n, w, all| looped(s, n, w, all, plain_add));
        operation("fetch_add", &|s, n, w, all| looped(s, n, w, all, |word| _ = word.fetch_add(1, Ordering::Relaxed)));
        operation("CAS loop", &|s, n, w, all| looped(s, n, w, all, cas_add));
        operation("swap", &|s, n, w, all| looped(s, n, w, all, |word| _ = word.swap(1, Ordering::AcqRel)));
        operation("store + fence", &|s, n, w, all| looped(s, n, w, all, store_and_fence));
    }
    let ladder = session.measure(cases);
    let series = ladder.time_per_op();
    let verdict = verdict(&series, most);
    Ok(Found { series, notes: ladder.notes(), verdict })
}

fn looped(
    name: String,
    threads: usize,
    words: Words,
    shared: bool,
    op: impl Fn(&AtomicU64) + Send + Sync + 'static,
) -> Case {
    Case::new(name, threads, move |who, n| {
        let word = &words[if shared { 0 } else { who }];
        for _ in 0..n {
            op(word);
        }
    })
}

/// An add as a program without synchronisation would make it: a load, an addition, a store.
pub fn plain_add(word: &AtomicU64) {
    word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

fn cas_add(word: &AtomicU64) {
    let mut seen = word.load(Ordering::Relaxed);
    while let Err(now) = word.compare_exchange_weak(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed) {
        seen = now;
    }
}

fn store_and_fence(word: &AtomicU64) {
    word.store(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
}

fn verdict(series: &[Series], most: usize) -> Verdict {
    let at = |name: &str| Outcome::median_in(series, name, most as f64);
    let (Some(own), Some(shared)) = (at("fetch_add, own"), at("fetch_add, shared")) else {
        return Verdict::without_clean_rounds();
    };
    Verdict {
        reproduced: most > 1 && shared > 2.0 * own,
        because: format!(
            "an atomic add takes {own:.1} ns on a word of the thread's own and {shared:.1} ns on one that {most} threads share"
        ),
        advice:
            "it is not the atomic operation that costs, it is the sharing of its cache line: give each thread or CPU \
                 its own word (holdup_sync::PerCpuCounter)"
                .to_owned(),
    }
}
