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
    let mut notes = ladder.notes();
    notes.extend(shared_core(&series, "fetch_add, own"));
    Ok(Found { series, notes, verdict })
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

/// An atomic add on a thread's own word, so many times slower beside another thread, tells that both share a core.
const SHARED_CORE: f64 = 1.5;

/// Says so if the CPUs behave like siblings of one core: a guest sees no other sign of where its host runs them.
/// `own` is the series of atomic adds on each thread's own line.
pub fn shared_core(series: &[Series], own: &str) -> Option<String> {
    let points = &series.iter().find(|s| s.name == own)?.points;
    let (alone, beside) = (points.iter().find(|p| p.x == 1.0)?.median, points.iter().find(|p| p.x == 2.0)?.median);
    (beside > SHARED_CORE * alone).then(|| {
        format!(
            "an atomic add on a thread's own line took {alone:.1} ns alone and {beside:.1} ns beside a second thread: the \
             first two CPUs were siblings of one core, or the host ran them so. Figures of a run with a core for each differ"
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Point;

    #[test]
    fn siblings_of_a_core_are_told() {
        let series = |beside: f64| {
            let points = vec![Point::of(1.0, [6.4]), Point::of(2.0, [beside])];
            vec![Series { name: "own".to_owned(), unit: String::new(), axis: None, points }]
        };
        assert_eq!(shared_core(&series(7.0), "own"), None);
        assert!(shared_core(&series(13.0), "own").is_some_and(|note| note.contains("13.0 ns")));
        assert_eq!(shared_core(&series(13.0), "other"), None);
    }
}
