//! The lock benchmark with six parameters: which lock, nesting depth, delay while holding, threads, yield points,
//! threads allowed to be active.

mod body;
mod sweeps;

use std::collections::BTreeSet;

use crate::Result;
use crate::experiment::{Experiment, Found, Ladder, Session};
use crate::knobs::{CPUS, Kind, Knob, ROUND_US, ROUNDS};
use crate::locks;
use crate::result::{Outcome, Series, Verdict};

pub use body::Params;

/// The third story.
pub const EXPERIMENT: Experiment = Experiment {
    name: "timemutex",
    about: "a lock by kind, nesting depth, delay while holding, threads, yield points and threads allowed to be active",
    axis: "threads",
    knobs: &[LOCKS, DEPTH, DELAY, THREADS, YIELDS, ACTIVE, SWEEPS, CPUS, ROUNDS, ROUND_US],
    run,
};

const LOCKS: Knob = Knob {
    name: "locks",
    about: "which locks",
    kind: Kind::Words(locks::KINDS),
    quick: "std,ttas,posix_semaphore,event",
    full: "std,parking_lot,pthread,pthread_adaptive,pthread_recursive,ttas,posix_semaphore,event,eventfd",
};
const DEPTH: Knob = Knob {
    name: "depth",
    about: "nesting: how often the owner takes the lock again",
    kind: Kind::Number { min: 1.0, max: 64.0 },
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
    about: "threads; auto is the number of CPUs",
    kind: Kind::Counts { min: 1.0, max: 1024.0 },
    quick: "auto",
    full: "auto",
};
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
    quick: "all",
    full: "all",
};

fn run(session: &mut Session) -> Result<Found> {
    let values = &session.values;
    let threads = values.counts("threads").into_iter().max().unwrap_or(1);
    let base = Params {
        lock: "std",
        depth: values.count("depth"),
        delay_ns: values.number("delay_ns") as u64,
        threads,
        yields: values.count("yields"),
        active: values.count("active"),
        ..Params::default()
    };
    let (cases, mut notes) =
        sweeps::cases(&base, &values.words("locks"), &values.words("sweeps"), values.cpus().len())?;
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

/// Which of the parameters matter here: those whose sweep changes the time by half or more.
fn verdict(series: &[Series]) -> Verdict {
    let ratio = |s: &Series| {
        let medians = || s.points.iter().map(|p| p.median).filter(|m| *m > 0.0);
        medians().fold(0.0, f64::max) / medians().fold(f64::MAX, f64::min)
    };
    let (mut matters, mut not) = (Vec::new(), Vec::new());
    for series in series.iter().filter(|s| s.points.len() > 1) {
        let text = format!("{} {:.1}×", series.name, ratio(series));
        if ratio(series) >= 1.5 { matters.push(text) } else { not.push(text) }
    }
    let one_of = |list: &[String]| if list.is_empty() { "none".to_owned() } else { list.join(", ") };
    let active = series.iter().filter_map(|s| {
        let at = |x| Outcome::median_in(series, &s.name, x);
        let all = s.points.last()?.x;
        s.name.ends_with(", active").then_some((at(all)? / at(1.0)?, s.name.trim_end_matches(", active")))
    });
    let gain = active.max_by(|a, b| a.0.total_cmp(&b.0));
    let gain = gain
        .map_or(String::new(), |(g, lock)| format!(". Letting one thread be active makes {lock} {g:.1} times as fast"));
    Verdict {
        reproduced: !matters.is_empty(),
        because: format!(
            "between their least and largest time these parameters change it: {}; these hardly do here: {}{gain}",
            one_of(&matters),
            one_of(&not)
        ),
        advice: "hold the lock shorter, and let fewer threads compete for it (holdup_sync::GatedMutex); a parameter without \
                 effect here may have one on a machine with more CPUs or an older scheduler: `holdup lab compare`"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Point;

    #[test]
    fn the_verdict_tells_what_matters() {
        let series = |name: &str, medians: [f64; 2]| Series {
            name: name.to_owned(),
            points: [1.0, 2.0].into_iter().zip(medians).map(|(x, m)| Point::of(x, [m])).collect(),
            unit: String::new(),
            axis: None,
        };
        let verdict = verdict(&[series("std, threads", [10.0, 40.0]), series("std, active", [10.0, 12.0])]);
        assert!(verdict.reproduced);
        assert!(verdict.because.contains("change it: std, threads 4.0×;"), "{}", verdict.because);
        assert!(verdict.because.contains("makes std 1.2 times as fast"));
    }
}
