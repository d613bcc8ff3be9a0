//! All kinds of locks around a tiny section.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use holdup_sync::Padded;

use super::atomics::plain_add;
use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::case::Case;
use crate::knobs::{CPUS, Kind, Knob, ROUND_US, ROUNDS, THREADS};
use crate::locks::{self, Lock, Visitor, is_kernel_object};
use crate::result::{Outcome, Series, Verdict};

/// Which lock is fastest on this machine.
pub const EXPERIMENT: Experiment = Experiment {
    name: "locks",
    about: "std, parking_lot, pthread, spinning and queueing locks, and kernel objects, around a tiny section",
    axis: "threads",
    knobs: &[LOCKS, THREADS, CPUS, ROUNDS, ROUND_US],
    run,
};

const LOCKS: Knob =
    Knob { name: "locks", about: "kinds of locks", kind: Kind::Words(locks::KINDS), quick: "all", full: "all" };

/// What the lock protects.
#[derive(Default)]
struct Protected {
    count: AtomicU64,
    owner: AtomicUsize,
    hand_offs: AtomicU64,
}

impl Protected {
    /// The section: counts, and counts changes of the owner.
    #[inline]
    fn visit(&self, who: usize) {
        plain_add(&self.count);
        if self.owner.load(Ordering::Relaxed) != who {
            self.owner.store(who, Ordering::Relaxed);
            plain_add(&self.hand_offs);
        }
    }
}

struct MakeCase<'a> {
    name: &'a str,
    threads: usize,
    protected: Arc<Padded<Protected>>,
}

impl Visitor for MakeCase<'_> {
    type Out = Case;

    fn visit<L: Lock>(self, lock: L, _: Option<L>) -> Case {
        let lock = Padded::new(lock);
        let (data, read) = (Arc::clone(&self.protected), self.protected);
        let body = move |who, n| (0..n).for_each(|_| lock.with(who, || data.visit(who)));
        let case = Case::new(self.name, self.threads, body).sampled();
        case.counting(move || read.count.load(Ordering::Relaxed))
    }
}

fn run(session: &mut Session) -> Result<Found> {
    let counts = session.values.counts("threads");
    let most = counts.iter().copied().max().unwrap_or(1);
    let (mut cases, mut data, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for kind in session.values.words("locks") {
        for &threads in &counts {
            let protected = Arc::new(Padded::new(Protected::default()));
            let make = MakeCase { name: kind, threads, protected: Arc::clone(&protected) };
            match locks::visit(kind, threads, make) {
                Ok(case) if threads == most => cases.push(case.split()),
                Ok(case) => cases.push(case),
                Err(refused) => {
                    notes.push(refused.to_string());
                    continue;
                }
            }
            data.push(protected);
        }
    }
    let ladder = session.measure(cases);
    let mut series = ladder.time_per_op();
    series.extend(ladder.series("% lost", ", lost updates", |m, x| m.lost_point(x).filter(|p| p.high > 0.0)));
    notes.extend(ladder.notes());
    notes.push(hand_offs(&ladder.rungs.iter().map(|(case, _)| case).collect::<Vec<_>>(), &data, most));
    let verdict = verdict(&series, most);
    Ok(Found { series, notes, verdict })
}

/// How many acquisitions of a hundred changed the owner.
fn hand_offs(cases: &[&Case], data: &[Arc<Padded<Protected>>], threads: usize) -> String {
    let share = |(case, protected): (&&Case, &Arc<Padded<Protected>>)| {
        let count = protected.count.load(Ordering::Relaxed).max(1);
        let changes = protected.hand_offs.load(Ordering::Relaxed);
        (case.threads == threads).then(|| format!("{} {:.1}", case.series, 100.0 * changes as f64 / count as f64))
    };
    let shares: Vec<String> = cases.iter().zip(data).filter_map(share).collect();
    format!("hand-offs to another thread in 100 acquisitions with {threads} threads: {}", shares.join(", "))
}

fn verdict(series: &[Series], most: usize) -> Verdict {
    let user = series.iter().filter(|s| !s.name.contains(',') && !is_kernel_object(&s.name));
    let mut times: Vec<(f64, &str)> =
        user.filter_map(|s| Outcome::median_in(series, &s.name, most as f64).map(|m| (m, s.name.as_str()))).collect();
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some((best, fastest)), Some((worst, slowest))) = (times.first(), times.last()) else {
        return Verdict::without_clean_rounds();
    };
    let std = Outcome::median_in(series, "std", most as f64).unwrap_or(0.0);
    let parking_lot = Outcome::median_in(series, "parking_lot", most as f64).unwrap_or(0.0);
    Verdict {
        reproduced: most > 1 && *worst > 1.5 * best,
        because: format!(
            "with {most} threads {fastest} is the fastest ({best:.0} ns) and {slowest} the slowest ({worst:.0} ns) for a tiny \
             section; std takes {std:.0} ns, parking_lot {parking_lot:.0} ns. A lock that keeps its owner is fast and unfair: \
             see the hand-offs and the longest waits"
        ),
        advice: "do not swap locks, remove the sharing: the ranking changes with the machine and with the length of the \
                 section, and a partitioned lock of any kind is several times faster. Never use a plain queueing spinlock in \
                 user space (`holdup lab run preempt`)"
            .to_owned(),
    }
}
