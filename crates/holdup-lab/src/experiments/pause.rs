//! The processor's pause, and what it makes of spin loops that count pauses.

use std::time::Duration;

use holdup_sync::Calibration;

use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::clock;
use crate::harness::cycles::core_ghz;
use crate::harness::stats::{self, Spread};
use crate::knobs::{Kind, Knob};
use crate::pause::{self, Pause};
use crate::policies::{Backoff, Budget, POLICIES, Policy, old_rounds};
use crate::result::{Point, Series, Verdict};

/// Above this a processor has the long pause; the short ones take 3 to 6 ns, the long ones about 40.
pub const LONG_PAUSE_NS: f64 = 15.0;

/// The pause of processors that have the long one.
const SKYLAKE_NS: f64 = 43.0;

/// The second story's calibration.
pub const EXPERIMENT: Experiment = Experiment {
    name: "pause",
    about: "how long the spin hint takes here, and what the spinning of named runtimes costs with it",
    axis: "CPUs of the machine",
    knobs: &[PAUSE_NS, CORES, BATCHES],
    run,
};

/// Simulates another processor.
pub const PAUSE_NS: Knob = Knob {
    name: "pause_ns",
    about: "simulated duration of a pause in nanoseconds; 0 is the real one",
    kind: Kind::Number { min: 0.0, max: 1000.0 },
    quick: "0",
    full: "0",
};
const CORES: Knob = Knob {
    name: "cores",
    about: "numbers of CPUs to compute spin budgets for",
    kind: Kind::Counts { min: 1.0, max: 4096.0 },
    quick: "2,8,24,96",
    full: "2,4,8,16,24,48,96,192",
};
const BATCHES: Knob = Knob {
    name: "batches",
    about: "batches of 200 pauses to time",
    kind: Kind::Number { min: 10.0, max: 1e6 },
    quick: "3000",
    full: "30000",
};

/// The pause that an experiment runs with, and its length.
pub fn chosen(session: &Session) -> (Pause, f64) {
    let real = session.machine.pause_ns;
    match session.values.number("pause_ns") {
        0.0 => (Pause::REAL, real),
        wanted => {
            // A shorter one than the real one can't be had.
            (Pause::simulated(wanted, real), wanted.max(real))
        }
    }
}

fn run(session: &mut Session) -> Result<Found> {
    let (pause, _) = chosen(session);
    let real = pause::batches_sorted(session.values.count("batches"));
    let batches: Vec<f64> = real.iter().map(|ns| pause.length_ns(*ns)).collect();
    (session.tick)(0.4);
    let length = pause::of_sorted(&batches);
    let here = session.machine.cpus.len() as u64;
    let skylake = Spread { median: SKYLAKE_NS, low: SKYLAKE_NS, high: SKYLAKE_NS };
    let cores = session.values.counts("cores");
    let old = &POLICIES[0];
    let mut series = vec![distribution(&batches), by_cores(old, "with this pause", &cores, length)];
    series.push(by_cores(old, "at 43 ns", &cores, skylake));
    series.extend(POLICIES.iter().map(|policy| Series {
        name: policy.name.to_owned(),
        unit: "µs".to_owned(),
        axis: Some(format!("on {here} CPUs: 1 computed, 2 measured, 3 computed at 43 ns")),
        points: vec![
            budget(policy, 1.0, here, length),
            measured(policy, here, pause, length.median),
            budget(policy, 3.0, here, skylake),
        ],
    }));
    series.push(blind_waits("with this pause", PUBLISHED_CPUS, length.median));
    series.push(blind_waits("at 43 ns", PUBLISHED_CPUS, SKYLAKE_NS));
    let unit = calibrated(pause);
    let notes = vec![
        published(length.median, core_ghz()),
        format!(
            "a unit of the calibrated spin-wait takes {:.1} ns here: {} pauses",
            unit.unit_ns(),
            unit.pauses_per_unit()
        ),
        histogram(&batches),
    ];
    Ok(Found { series, notes, verdict: verdict(length.median, here) })
}

/// CPUs of the machine of the published figures.
const PUBLISHED_CPUS: u64 = 24;
/// Cycles of a pause, as published for each processor.
const PUBLISHED: [(&str, f64); 5] =
    [("Sandy Bridge", 11.0), ("Ivy Bridge", 10.0), ("Haswell", 9.0), ("Broadwell", 9.0), ("Skylake-X", 141.0)];

/// The published cycles, and those of this processor beside them.
fn published(pause_ns: f64, ghz: Option<f64>) -> String {
    let known: Vec<String> = PUBLISHED.iter().map(|(name, cycles)| format!("{name} {cycles:.0}")).collect();
    let here = match ghz {
        Some(ghz) => format!("here {:.0} ({pause_ns:.1} ns at {ghz:.2} GHz)", pause_ns * ghz),
        None => format!("here {pause_ns:.1} ns; the rate of this core is not known"),
    };
    format!("cycles of a pause: published {}; {here}", known.join(", "))
}

/// The longest time between two looks at the lock in each round of the old back-off, computed.
pub fn blind_waits(what: &str, cpus: u64, pause_ns: f64) -> Series {
    let round = |(i, pauses): (usize, u64)| {
        let us = pauses as f64 * pause_ns / 1e3;
        Point { x: (i + 1) as f64, median: us, low: us, high: us, ..Point::default() }
    };
    Series {
        name: format!("longest blind wait, {what}"),
        unit: "µs".to_owned(),
        axis: Some(format!("round of the old back-off for {cpus} CPUs")),
        points: old_rounds(cpus).enumerate().map(round).collect(),
    }
}

fn calibrated(pause: Pause) -> Calibration {
    Calibration::measure(|| pause.spin(1), || Duration::from_nanos(clock::now_ns()))
}

/// The pause at some quantiles of the batches: a histogram whose points can be compared.
fn distribution(batches: &[f64]) -> Series {
    let at = |q: f64| stats::quantile_of_sorted(batches, q);
    let point = |percent: f64| {
        let q = percent / 100.0;
        Point {
            x: percent,
            median: at(q),
            low: at(q - 0.05).min(at(q) * (1.0 - stats::FLOOR)),
            high: at(q + 0.05).max(at(q) * (1.0 + stats::FLOOR)),
            n: batches.len(),
            clean: batches.len(),
            ..Point::default()
        }
    };
    Series {
        name: "pause".to_owned(),
        unit: "ns".to_owned(),
        axis: Some("quantile, %".to_owned()),
        points: [5.0, 25.0, 50.0, 90.0].map(point).to_vec(),
    }
}

/// Batches by length, as a line of text.
fn histogram(batches: &[f64]) -> String {
    let (from, to) = (stats::quantile_of_sorted(batches, 0.0), stats::quantile_of_sorted(batches, 0.95) * 1.1);
    let width = ((to - from) / 12.0).max(0.01);
    let bin = |i: usize| {
        let (low, high) = (from + i as f64 * width, from + (i + 1) as f64 * width);
        let count = batches.iter().filter(|ns| (low..high).contains(*ns)).count();
        format!("{low:.1}: {count}")
    };
    format!("batches by nanoseconds for each pause: {}", (0..12).map(bin).collect::<Vec<_>>().join(", "))
}

fn by_cores(policy: &Policy, what: &str, cores: &[usize], pause_ns: Spread) -> Series {
    let points = cores.iter().map(|&cpus| budget(policy, cpus as f64, cpus as u64, pause_ns)).collect();
    Series { name: format!("old .NET back-off, {what}"), unit: "µs".to_owned(), axis: None, points }
}

/// What a policy spins at most, computed.
fn budget(policy: &Policy, x: f64, cpus: u64, pause_ns: Spread) -> Point {
    let [low, median, high] = [pause_ns.low, pause_ns.median, pause_ns.high].map(|ns| policy.spin_ns(cpus, ns) / 1e3);
    let floor = median * stats::FLOOR;
    Point { x, median, low: low.min(median - floor), high: high.max(median + floor), ..Point::default() }
}

/// What it spins on this machine, measured.
fn measured(policy: &Policy, cpus: u64, pause: Pause, pause_ns: f64) -> Point {
    let expected = policy.spin_ns(cpus, pause_ns).max(1.0);
    let times = (3e7 / expected).clamp(3.0, 25.0) as usize;
    // Short ones several times in a row: reading the thread's CPU time takes longer than they do.
    let repeat = (50_000.0 / expected).ceil().max(1.0);
    let spin = |_| {
        let start = clock::thread_cpu_ns();
        (0..repeat as usize).for_each(|_| policy.spin(cpus, pause, pause_ns));
        (clock::thread_cpu_ns() - start) as f64 / 1e3 / repeat
    };
    Point::of(2.0, (0..times).map(spin))
}

fn verdict(pause_ns: f64, cpus: u64) -> Verdict {
    let counting = POLICIES.iter().filter(|p| matches!(p.budget, Budget::Pauses(_)));
    let names: Vec<&str> = counting.map(|p| p.name).collect();
    let old = POLICIES[0].spin_ns(24, pause_ns) / 1e6;
    if pause_ns > LONG_PAUSE_NS {
        return Verdict {
            reproduced: true,
            because: format!(
                "problem detected: a pause takes {pause_ns:.1} ns, so that the old .NET back-off spins {old:.0} ms on 24 \
                 CPUs before it sleeps. Affected are {}",
                names.join("; ")
            ),
            advice: "update to .NET Core 2.1, .NET Framework 4.8 or newer; elsewhere lower the spin counts \
                     (innodb_spin_wait_pause_multiplier, GOMP_SPINCOUNT), or wait by measured time (holdup_sync::SpinWait)"
                .to_owned(),
        };
    }
    let there = POLICIES[0].spin_ns(24, SKYLAKE_NS) / 1e6;
    Verdict {
        reproduced: false,
        because: format!(
            "no problem detected: a pause takes {pause_ns:.1} ns on these {cpus} CPUs. The old .NET back-off (.NET \
             Framework before 4.8, .NET Core before 2.1) would spin {old:.0} ms on 24 CPUs with it, and {there:.0} ms at 43 ns"
        ),
        advice: format!(
            "count time, not pauses, when spinning (holdup_sync::SpinWait): where a pause takes 43 ns these spin {:.0} \
             times longer: {}",
            SKYLAKE_NS / pause_ns,
            names.join("; ")
        ),
    }
}

/// The old and the present back-off, with the names that experiments give them.
pub fn both_backoffs(cpus: u64) -> [(&'static str, Backoff); 2] {
    [("old back-off", Backoff::Old { cpus }), ("present back-off", Backoff::Present)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_depends_on_the_pause() {
        assert!(verdict(43.0, 2).because.starts_with("problem detected"));
        assert!(verdict(4.4, 2).because.starts_with("no problem detected"));
    }

    #[test]
    fn the_histogram_counts_most_batches() {
        let batches: Vec<f64> = (0..100).map(|i| 4.0 + f64::from(i) / 100.0).collect();
        let counts = histogram(&batches);
        let total: usize =
            counts.split(": ").skip(2).map(|p| p.split(',').next().and_then(|n| n.parse().ok()).unwrap_or(0)).sum();
        assert_eq!(total, 100, "{counts}");
    }
}
