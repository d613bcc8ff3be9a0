//! The lock benchmark of the third story: which lock, how deep, how long held and what inside, what after it, threads, sleep
//! points, threads allowed to be active, in the fore- and the background.

mod body;
mod sweeps;

use std::collections::BTreeSet;

use crate::Result;
use crate::experiment::{Experiment, Found, Ladder, Session};
use crate::knobs::{CPUS, Kind, Knob, ROUND_US, ROUNDS};
use crate::locks;
use crate::result::{Point, Series, Verdict};

pub use body::Params;
use sweeps::Base;

/// The third story.
pub const EXPERIMENT: Experiment = Experiment {
    name: "timemutex",
    about: "a lock by kind, nesting depth, delay while holding, threads, yield points and threads allowed to be active",
    axis: "threads",
    knobs: &[
        LOCKS, DEPTH, NESTED, DELAY, RANDOM, OUTSIDE, MALLOC, THREADS, YIELDS, POINTS, ACTIVE, LOOP, NICE, SWEEPS,
        CPUS, ROUNDS, ROUND_US,
    ],
    run,
};

const LOCKS: Knob = Knob {
    name: "locks",
    about: "which locks",
    kind: Kind::Words(locks::KINDS),
    quick: "std,pthread_recursive,ttas,posix_semaphore,event",
    full: "std,pthread_recursive,parking_lot,pthread,pthread_adaptive,ttas,posix_semaphore,event,eventfd",
};
const DEPTH: Knob = Knob {
    name: "depth",
    about: "nesting: how often the owner takes the lock; 0 is never",
    kind: Kind::Number { min: 0.0, max: 64.0 },
    quick: "1",
    full: "1",
};
const DELAY: Knob = Knob {
    name: "delay_ns",
    about: "delay while holding, in nanoseconds",
    kind: Kind::Number { min: 0.0, max: 1e7 },
    quick: "0",
    full: "0",
};
const THREADS: Knob = Knob {
    name: "threads",
    about: "threads, the most for all other sweeps; auto: up to 20 for the sweep, the CPUs for others",
    kind: Kind::Counts { min: 1.0, max: 1024.0 },
    quick: "auto",
    full: "auto",
};
const NESTED: Knob = yes_or_no("nested", "1: a second lock of the kind is taken inside the first");
const RANDOM: Knob = yes_or_no("random", "1: the delay is random, evenly from 0 to twice delay_ns");
const LOOP: Knob = yes_or_no("loop", "1: the gate of `active` is around a thread's whole loop, not each operation");
const OUTSIDE: Knob = Knob {
    name: "outside_ns",
    about: "work after each release, in nanoseconds",
    kind: Kind::Number { min: 0.0, max: 1e7 },
    quick: "0",
    full: "0",
};
const MALLOC: Knob = Knob {
    name: "malloc_bytes",
    about: "memory allocated and freed while holding, in bytes",
    kind: Kind::Number { min: 0.0, max: 1e6 },
    quick: "0",
    full: "0",
};
const POINTS: Knob = Knob {
    name: "points",
    about: "where a thread yields: 0 nowhere, 1 while holding, 2 after the release, 3 both",
    kind: Kind::Number { min: 0.0, max: 3.0 },
    quick: "0",
    full: "0",
};
const NICE: Knob = Knob {
    name: "nice",
    about: "niceness of the tested threads",
    kind: Kind::Number { min: 0.0, max: 19.0 },
    quick: "0",
    full: "0",
};

const fn yes_or_no(name: &'static str, about: &'static str) -> Knob {
    Knob { name, about, kind: Kind::Number { min: 0.0, max: 1.0 }, quick: "0", full: "0" }
}

const YIELDS: Knob = Knob {
    name: "yields",
    about: "yield points after each release",
    kind: Kind::Number { min: 0.0, max: 100.0 },
    quick: "0",
    full: "0",
};
const ACTIVE: Knob = Knob {
    name: "active",
    about: "threads allowed to be active at a time; 0 is all",
    kind: Kind::Number { min: 0.0, max: 1024.0 },
    quick: "0",
    full: "0",
};
const SWEEPS: Knob = Knob {
    name: "sweeps",
    about: "which parameters to vary, the others as set",
    kind: Kind::Words(sweeps::NAMES),
    quick: "depth,nested,delay,threads,points,active,loop,background",
    full: "all",
};

fn run(session: &mut Session) -> Result<Found> {
    let values = &session.values;
    let (counts, cpus) = (values.counts("threads"), values.cpus().len());
    let params = Params {
        lock: "std",
        depth: values.count("depth"),
        nested: values.count("nested") == 1,
        delay_ns: values.number("delay_ns") as u64,
        random: values.count("random") == 1,
        outside_ns: values.number("outside_ns") as u64,
        malloc: values.count("malloc_bytes"),
        threads: counts.iter().copied().max().unwrap_or(1),
        yields: values.count("yields"),
        points: values.count("points"),
        active: values.count("active"),
        around_loop: values.count("loop") == 1,
        nice: values.number("nice") as i32,
        ..Params::default()
    };
    let threads = if values.is_auto("threads") { sweeps::counts(cpus, session.quick) } else { counts };
    let (cases, mut notes) =
        sweeps::cases(&Base { params, threads, cpus }, &values.words("locks"), &values.words("sweeps"))?;
    notes.push(
        "a lock that is not recursive is taken again as a monitor does it: its owner is compared, its depth counted"
            .to_owned(),
    );
    let axes: Vec<String> = cases.iter().map(|(axis, _)| axis.clone()).collect();
    let ladder = session.measure(cases.into_iter().map(|(_, case)| case).collect());
    // All threads share the lock: the time from one operation to the next, by whomever, is what the story's clock showed.
    let mut series = ladder.series("ns/op", "", |m, x| m.point_of(x, body::ns_between));
    let by_name: BTreeSet<(&str, &str)> =
        ladder.rungs.iter().zip(&axes).map(|((case, _), axis)| (case.series.as_str(), axis.as_str())).collect();
    for series in &mut series {
        series.axis = by_name.iter().find(|(name, _)| *name == series.name).map(|(_, axis)| (*axis).to_owned());
    }
    notes.extend(ladder.notes());
    let verdict = verdict(&series);
    series.extend(split_by_threads(&ladder));
    Ok(Found { series, notes, verdict })
}

/// The story's other two times, user and kernel, where the number of threads varies; for the other sweeps the table of
/// costs has them.
fn split_by_threads(ladder: &Ladder) -> Vec<Series> {
    let mode = |suffix, in_kernel| ladder.series("CPU ns", suffix, move |m, x| m.split_point(x, in_kernel));
    let both = mode(", user", false).into_iter().chain(mode(", kernel", true));
    let threads = both.filter(|s| s.name.contains(", threads,"));
    threads.map(|s| Series { axis: Some(sweeps::axis("threads").to_owned()), ..s }).collect()
}

/// The least and the greatest of a sweep: how many times they lie apart, and whether their spreads do.
fn reach(points: &[Point]) -> Option<(f64, bool)> {
    let positive = || points.iter().filter(|p| p.median > 0.0);
    let least = positive().min_by(|a, b| a.median.total_cmp(&b.median))?;
    let most = positive().max_by(|a, b| a.median.total_cmp(&b.median))?;
    Some((most.median / least.median, most.low > least.high))
}

/// Which of the parameters matter here: those whose sweep changes the time by half or more, and by more than the spread.
fn verdict(series: &[Series]) -> Verdict {
    let (mut matters, mut unsure, mut not) = (Vec::new(), Vec::new(), Vec::new());
    for series in series.iter().filter(|s| s.points.len() > 1) {
        let Some((ratio, apart)) = reach(&series.points) else { continue };
        let list = match (ratio >= 1.5, apart) {
            (true, true) => &mut matters,
            (true, false) => &mut unsure,
            _ => &mut not,
        };
        list.push(format!("{} {ratio:.1}×", series.name));
    }
    let one_of = |list: &[String]| if list.is_empty() { "none".to_owned() } else { list.join(", ") };
    Verdict {
        reproduced: !matters.is_empty(),
        because: format!(
            "between their least and largest time these parameters change it: {}; within the spread of the rounds: {}; these hardly \
             do here: {}{}",
            one_of(&matters),
            one_of(&unsure),
            one_of(&not),
            gate_gain(series)
        ),
        advice: "hold the lock shorter, and let fewer threads compete for it (holdup_sync::GatedMutex); a parameter without \
                 effect here may have one on a machine with more CPUs or an older scheduler: `holdup lab compare`"
            .to_owned(),
    }
}

/// The lock that gains most where one thread is active at a time, if all of its spread says so.
fn gate_gain(series: &[Series]) -> String {
    let gain = |s: &Series| {
        let (around, lock) = match s.name.split_once(", ")? {
            (lock, "active") => ("for each operation", lock),
            (lock, "loop") => ("for its whole loop", lock),
            _ => return None,
        };
        let (one, all) = (s.points.iter().find(|p| p.x == 1.0)?, s.points.last()?);
        let sure = all.low > one.high && one.median > 0.0;
        sure.then(|| {
            (all.median / one.median, format!("{lock} {:.1} times as fast ({around})", all.median / one.median))
        })
    };
    let best = series.iter().filter_map(gain).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(String::new(), |(_, text)| format!(". Letting one thread be active makes {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_tells_what_matters() {
        let series = |name: &str, medians: [f64; 2]| Series {
            name: name.to_owned(),
            points: [1.0, 2.0].into_iter().zip(medians).map(|(x, m)| Point::of(x, [m])).collect(),
            unit: String::new(),
            axis: None,
        };
        let told = verdict(&[series("std, threads", [10.0, 40.0]), series("std, active", [10.0, 12.0])]);
        assert!(told.reproduced);
        assert!(told.because.contains("change it: std, threads 4.0×;"), "{}", told.because);
        assert!(told.because.contains("makes std 1.2 times as fast (for each operation)"));
    }

    #[test]
    fn what_the_spread_covers_is_not_said() {
        let wide = |x, median: f64| Point { x, median, low: 0.02 * median, high: 1.98 * median, ..Point::default() };
        let points = vec![wide(1.0, 10.0), wide(2.0, 27.0)];
        let told = verdict(&[Series { name: "std, active".to_owned(), unit: String::new(), axis: None, points }]);
        assert!(!told.reproduced && !told.because.contains("times as fast"), "{}", told.because);
        assert!(told.because.contains("within the spread of the rounds: std, active 2.7×"), "{}", told.because);
    }
}
