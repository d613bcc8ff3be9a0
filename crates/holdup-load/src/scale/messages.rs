//! What the law says, in words.

use holdup_base::numbers::figure;

use super::{Axis, FEWEST, Fitted, Point, Scaling};

/// From this efficiency at the largest count on there is nothing to win.
const GOOD: f64 = 0.9;
/// A serial share that differs by more than this between counts has a trend.
const TREND: f64 = 0.05;

/// One sentence for each parameter, and for the peak; without a law, for the efficiency.
pub(super) fn findings(scaling: &Scaling) -> Vec<String> {
    let largest = scaling.in_law().last();
    if let (true, Some(p)) = (scaling.set_time, largest) {
        return vec![format!(
            "all runs take {:.2} s and {} take {:.1} CPUs: the command runs for a set time, and nothing tells how much it did; or \
             all its threads but one spin",
            p.elapsed_s, p.n, p.busy_cpus
        )];
    }
    match (&scaling.usl, largest) {
        (Some(usl), Some(largest)) => of_law(scaling, usl, largest),
        (None, Some(largest)) if largest.karp_flatt.is_some() => without_law(scaling, largest),
        _ => Vec::new(),
    }
}

fn of_law(scaling: &Scaling, usl: &Fitted, largest: &Point) -> Vec<String> {
    let n = largest.n as f64;
    let one = one(scaling);
    let sigma = match usl.sigma {
        0.0 => format!("{}: no sign of work that only one {one} can do at a time", parameter("σ", 0.0, usl.sigma_ci95)),
        s => format!(
            "{}: {} of the work is done by one {one} at a time, while the others wait",
            parameter("σ", s, usl.sigma_ci95),
            percent(s)
        ),
    };
    let kappa = match usl.kappa {
        0.0 => format!("{}: no sign that {}s slow each other", parameter("κ", 0.0, usl.kappa_ci95), one),
        k => format!(
            "{}: each further {one} slows all others; at {n} that adds {} to the cost of a unit of work",
            parameter("κ", k, usl.kappa_ci95),
            percent(k * n * (n - 1.0))
        ),
    };
    let mut found = vec![sigma, kappa, end(scaling, usl, largest)];
    found.push(format!("the law explains {} of the variance (r² = {:.3})", percent(usl.r2), usl.r2));
    if let Some(amdahl) = &scaling.amdahl {
        let limit = amdahl.limit.map_or("no limit".to_owned(), |l| format!("at most {:.1}×", l / amdahl.lambda));
        let sigma = parameter("σ", amdahl.sigma, amdahl.sigma_ci95);
        found.push(format!("Amdahl's law beside it (κ = 0): {sigma}, {limit}, r² = {:.3}", amdahl.r2));
    }
    found
}

/// Where throughput ends.
fn end(scaling: &Scaling, usl: &Fitted, largest: &Point) -> String {
    let axis = scaling.axis;
    match (usl.peak_n, usl.limit) {
        (Some(peak), Some(limit)) => {
            let far = peak as f64 > 2.0 * largest.n as f64;
            let caution = if far { ", far beyond what was measured" } else { "" };
            let between = match usl.peak_ci95 {
                Some([Some(low), Some(high)]) => format!(" ({low:.0} to {high:.0})"),
                Some([Some(low), None]) => format!(" (at least {low:.0})"),
                _ => String::new(),
            };
            format!("peak at {peak} {axis}{between} with {} per second{caution}", figure(limit))
        }
        (None, Some(limit)) => {
            format!(
                "no peak; no number of {axis} gives more than {} per second ({:.1}×)",
                figure(limit),
                limit / usl.lambda
            )
        }
        _ => "no peak and no limit in sight".to_owned(),
    }
}

fn without_law(scaling: &Scaling, largest: &Point) -> Vec<String> {
    let mut found = vec![format!(
        "with {} {} the speed-up is {:.2}×: {} of what {}-fold would be",
        largest.n,
        scaling.axis,
        largest.speedup,
        percent(largest.efficiency),
        (largest.speedup / largest.efficiency).round()
    )];
    let shares: Vec<f64> = scaling.in_law().filter_map(|p| p.karp_flatt).collect();
    if let (Some(first), Some(last)) = (shares.first(), shares.last()) {
        found.push(serial(*first, *last, shares.len()));
    }
    found
}

/// What Karp and Flatt's metric says, as long as it is a share: below 0 the speed-up is more than linear, above 1 it is none.
fn serial(first: f64, last: f64, counts: usize) -> String {
    let trend = match counts {
        1 => "",
        _ if last - first > TREND => ", and it rises with the count: overhead grows, as with coherence (κ)",
        _ if first - last > TREND => ", and it falls with the count: the smallest counts pay for something once",
        _ => ", and it stays: a serial part, as with contention (σ)",
    };
    match last {
        e if e > 1.0 => {
            "more make it slower than the smallest count: even if all of the work were serial it would be as \
                         fast, so there is a cost that grows with them, as with coherence (κ)"
                .to_owned()
        }
        e if e < 0.0 => {
            "that is more than so many times: no sign of serial work (Karp–Flatt); the smallest count pays for \
                         something, as with data that fit the caches of many and not of few"
                .to_owned()
        }
        e => format!("that is as if {} of the work were serial (Karp–Flatt){trend}", percent(e)),
    }
}

/// What to do.
pub(super) fn advice(scaling: &Scaling) -> String {
    let Some(largest) = scaling.in_law().last().filter(|p| p.karp_flatt.is_some()) else {
        return format!("Measure more than one number of {}: a single one says nothing of scaling.", scaling.axis);
    };
    if scaling.set_time {
        return "Have the command print how much it did, and say where (--work, --rate), or let each run do the same work.".to_owned();
    }
    if largest.efficiency >= GOOD {
        return format!(
            "It scales: {} efficiency at {} {}. There is nothing to win here.",
            percent(largest.efficiency),
            largest.n,
            scaling.axis
        );
    }
    let why = "holdup scale --trace names the functions, locks and lines behind it";
    let Some(usl) = &scaling.usl else { return format!("{}.", why[..1].to_uppercase() + &why[1..]) };
    let n = largest.n as f64;
    let (contention, coherence) = (usl.sigma * (n - 1.0), usl.kappa * n * (n - 1.0));
    let most = usl.peak_n.filter(|p| *p < largest.n as u64);
    let stop =
        most.map_or(String::new(), |p| format!("Use no more than {p} {}: beyond, it gets slower. ", scaling.axis));
    let what = if coherence > contention {
        "Most of the loss is coherence: look for data that all write (counters, reference counts, one cache line) and \
         share less of it"
    } else {
        "Most of the loss is contention: look for a lock that is held long, or a part that one thread does for all, and \
         make it shorter or split it"
    };
    format!("{stop}{what}; {why}.")
}

/// How far it can be trusted.
pub(super) fn notes(scaling: &Scaling) -> Vec<String> {
    let mut notes = Vec::new();
    let crowded = scaling.points.iter().filter(|p| p.crowded).count();
    if crowded > 0 {
        notes.push(format!(
            "{crowded} of {} points have more {} than the {} CPUs, and keep them busy: what they lose is CPUs, so they are \
             no part of the law; --beyond-cpus makes them",
            scaling.points.len(),
            scaling.axis,
            scaling.cpus
        ));
    }
    let counts = scaling.in_law().count();
    if counts < FEWEST {
        notes.push(format!(
            "{counts} different counts cannot tell σ from κ: the law has three parameters and takes four counts or more"
        ));
    } else if scaling.usl.is_none() && !scaling.set_time {
        notes.push("no law could be fitted to these throughputs".to_owned());
    }
    if let Some(first) = scaling.points.first().filter(|p| p.n > 1) {
        notes.push(format!(
            "speed-up and efficiency are relative to {} {}, as 1 was not measured",
            first.n, scaling.axis
        ));
    }
    if scaling.points.iter().any(|p| p.runs < 3) {
        notes.push("with three or more runs at each count the noise is measured".to_owned());
    }
    let short = scaling.points.iter().map(|p| p.elapsed_s).fold(f64::MAX, f64::min);
    if short < 0.1 {
        notes.push(format!("the shortest runs take {:.0} ms: starting the command is part of that", 1e3 * short));
    }
    let wide = |p: &&Point| (p.high - p.low) / p.throughput > 0.2;
    if let Some(p) = scaling.points.iter().find(wide) {
        let spread = percent((p.high - p.low) / p.throughput);
        notes.push(format!("runs differ by up to {spread} at {}: a busy machine, or work that differs", p.n));
    }
    notes
}

fn one(scaling: &Scaling) -> &'static str {
    match scaling.axis {
        Axis::Cpus => "CPU",
        Axis::Threads => "thread",
    }
}

/// `σ = 0.12 (0.10 to 0.14)`.
fn parameter(name: &str, value: f64, [low, high]: [f64; 2]) -> String {
    format!("{name} = {} ({} to {})", figure(value), figure(low), figure(high))
}

fn percent(share: f64) -> String {
    let hundred = 100.0 * share;
    if hundred.abs() < 9.95 { format!("{hundred:.1} %") } else { format!("{hundred:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_serial_work_is_one_between_nothing_and_all() {
        assert!(
            serial(0.25, 0.25, 2).starts_with("that is as if 25 % of the work were serial (Karp–Flatt), and it stays")
        );
        assert!(serial(0.02, 0.9, 3).contains("90 %") && serial(0.02, 0.9, 3).contains("rises"));
        // Four threads at 0.146 of one's speed: 635 %.
        for impossible in [6.35, 1.01, -0.2, -0.001] {
            let text = serial(0.3, impossible, 3);
            assert!(!text.contains(" %") && !text.contains("as if"), "{text}");
        }
        assert!(serial(0.3, 1.0, 2).contains("100 %"));
    }
}
