//! A sender that spins for a lock which the worker holds while it works.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::pause::{PAUSE_NS, both_backoffs, chosen};
use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::usage::Usage;
use crate::harness::{affinity, clock};
use crate::knobs::{Kind, Knob};
use crate::locks::backoff::Monitor;
use crate::result::{Outcome, Point, Series, Verdict};

/// The second story's sender and worker.
pub const EXPERIMENT: Experiment = Experiment {
    name: "send-delay",
    about: "a sender that looks at its lock only between rounds of pauses: what it takes comes in steps",
    axis: "delay before each send, ms",
    knobs: &[SIMULATED, CORES, DELAYS, WORK_MS, MESSAGES],
    run,
};

const SIMULATED: Knob = Knob { quick: "43", full: "43", ..PAUSE_NS };
/// CPUs of the machine whose back-off is simulated.
pub const CORES: Knob = Knob {
    name: "cores",
    about: "CPUs that the old back-off reckons with",
    kind: Kind::Number { min: 2.0, max: 4096.0 },
    quick: "24",
    full: "24",
};
const DELAYS: Knob = Knob {
    name: "delays",
    about: "how long the sender sleeps before each message, in milliseconds",
    kind: Kind::Counts { min: 1.0, max: 100.0 },
    quick: "1,2,3,4,5,6,7,8,9",
    full: "1,2,3,4,5,6,7,8,9,10,12,14,16,18,20",
};
const WORK_MS: Knob = Knob {
    name: "work_ms",
    about: "how long the worker holds the lock for each message, in milliseconds",
    kind: Kind::Number { min: 0.0, max: 1000.0 },
    quick: "10",
    full: "10",
};
const MESSAGES: Knob = Knob {
    name: "messages",
    about: "messages for each delay; the story's seconds are for 100",
    kind: Kind::Number { min: 1.0, max: 10_000.0 },
    quick: "12",
    full: "100",
};

/// Messages of the story's test.
const STORY_MESSAGES: f64 = 100.0;
/// What the story's test took in all, in seconds, by its delay in milliseconds: a Skylake-X with 24 threads.
const STORY: [(f64, f64, f64); 9] = [
    (1.0, 2.2, 2.3),
    (2.0, 2.2, 2.3),
    (3.0, 1.2, 1.2),
    (4.0, 1.2, 1.2),
    (5.0, 1.2, 1.2),
    (6.0, 1.2, 1.2),
    (7.0, 1.2, 1.2),
    (8.0, 1.2, 1.2),
    (9.0, 1.2, 1.2),
];
const PUBLISHED: &str = "published, old back-off";

fn run(session: &mut Session) -> Result<Found> {
    let (pause, pause_ns) = chosen(session);
    let delays = session.values.counts("delays");
    let work = (session.values.number("work_ms") * 1e6) as u64;
    let messages = session.values.count("messages");
    let cores = session.values.count("cores") as u64;
    let mut series: Vec<Series> = Vec::new();
    for (i, (name, backoff)) in both_backoffs(cores).into_iter().enumerate() {
        let mut points = Vec::new();
        for (j, &delay) in delays.iter().enumerate() {
            let lock = Monitor::new(backoff, pause, pause_ns);
            let times = exchange(&lock, Duration::from_millis(delay as u64), work, messages);
            points.push(point(delay as f64, &times));
            (session.tick)((i * delays.len() + j + 1) as f64 / (2 * delays.len()) as f64);
        }
        series.push(Series { name: name.to_owned(), unit: UNIT.to_owned(), axis: None, points });
    }
    // The sender's next sleep runs while the worker works.
    let ideal = |&delay: &usize| (work as f64 / 1e6).max(delay as f64);
    let verdict = verdict(&series, &delays, ideal, pause_ns);
    if work == STORY_WORK_NS {
        series.push(story(&delays));
    }
    series.push(super::pause::blind_waits("with this pause", cores, pause_ns));
    let notes = vec![
        format!("simulated pause: {pause_ns:.1} ns; a real one takes {:.1} ns", session.machine.pause_ns),
        format!("medians of {RUNS} runs, for {STORY_MESSAGES} messages, as the story's test sent so many"),
    ];
    Ok(Found { series, notes, verdict })
}

const UNIT: &str = "s/100 messages";
/// The work for which the story has figures.
const STORY_WORK_NS: u64 = 10_000_000;

/// The story's figures, where these delays have some.
fn story(delays: &[usize]) -> Series {
    let known = STORY.iter().filter(|(x, ..)| delays.iter().any(|d| *d as f64 == *x));
    let point = |&(x, low, high): &(f64, f64, f64)| Point {
        x,
        median: f64::midpoint(low, high),
        low,
        high,
        ..Point::default()
    };
    Series { name: PUBLISHED.to_owned(), unit: UNIT.to_owned(), axis: None, points: known.map(point).collect() }
}

/// Messages that were sent and not yet taken, and whether there will be more.
#[derive(Default)]
struct Inbox {
    waiting: Mutex<(usize, bool)>,
    filled: Condvar,
}

impl Inbox {
    fn change(&self, change: impl FnOnce(&mut (usize, bool))) {
        change(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        self.filled.notify_one();
    }

    /// Waits for a message; false after the last one.
    fn take(&self) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiting = self.filled.wait_while(waiting, |w| w.0 == 0 && !w.1).unwrap_or_else(PoisonError::into_inner);
        let some = waiting.0 > 0;
        waiting.0 -= usize::from(some);
        some
    }
}

/// Runs on one CPU of its own: both spin, and on one they would take it from each other.
fn pin_to(which: usize) {
    let cpus = affinity::allowed();
    // Where that fails, the kernel's choice is the next best; rounds in which they met do not count.
    let _ = affinity::pin(&[cpus[which % cpus.len()]]);
}

/// Seconds from one send to the next, as the sender's clock shows them, and whether both threads kept their CPUs.
fn exchange(lock: &Monitor, delay: Duration, work_ns: u64, messages: usize) -> Vec<(f64, bool)> {
    let inbox = Inbox::default();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            pin_to(1);
            work(lock, &inbox, work_ns)
        });
        let sender = scope.spawn(|| {
            pin_to(0);
            send(lock, &inbox, delay, messages)
        });
        let (holds, times) = (worker.join().unwrap_or_default(), sender.join().unwrap_or_default());
        let clean = |((time, clean), hold): (&(f64, bool), &bool)| (*time, *clean && *hold);
        // The first send finds nobody at work; the time up to send i + 1 is that of hold i.
        times.iter().skip(1).zip(&holds).map(clean).collect()
    })
}

/// Takes all messages. For each, whether the worker kept its CPU while it held the lock.
fn work(lock: &Monitor, inbox: &Inbox, work_ns: u64) -> Vec<bool> {
    let mut holds = Vec::new();
    while inbox.take() {
        lock.lock();
        let before = Usage::of_thread();
        clock::work_ns(work_ns);
        holds.push(Usage::of_thread().since(before).undisturbed(DISTURBED_NS));
        lock.unlock();
    }
    holds
}

/// Sends one more than `messages`. For each, the seconds since the one before and whether the sender kept its CPU.
fn send(lock: &Monitor, inbox: &Inbox, delay: Duration, messages: usize) -> Vec<(f64, bool)> {
    let mut sent = clock::now_ns();
    let one = |_| {
        std::thread::sleep(delay);
        let before = Usage::of_thread();
        lock.lock();
        lock.unlock();
        inbox.change(|waiting| waiting.0 += 1);
        let last = std::mem::replace(&mut sent, clock::now_ns());
        ((sent - last) as f64 / 1e9, Usage::of_thread().since(before).undisturbed(DISTURBED_NS))
    };
    let times = (0..=messages).map(one).collect();
    inbox.change(|waiting| waiting.1 = true);
    times
}

/// Time without a CPU that a message may have seen and count.
const DISTURBED_NS: u64 = 200_000;

/// Runs of messages that a point is the median of: a worker that is late leaves the sender two short waits and a long one,
/// and the story's clock ran over all.
const RUNS: usize = 5;

fn point(x: f64, times: &[(f64, bool)]) -> Point {
    let run = |run: &[(f64, bool)]| {
        let mean = run.iter().map(|t| t.0).sum::<f64>() / run.len() as f64;
        (mean * STORY_MESSAGES, run.iter().all(|t| t.1))
    };
    let runs: Vec<(f64, bool)> = times.chunks(times.len().div_ceil(RUNS).max(1)).map(run).collect();
    let clean = runs.iter().filter(|r| r.1).count();
    // Where another program kept taking the CPU all runs count; `clean` tells.
    let counted = runs.iter().filter(|r| r.1 || clean == 0).map(|r| r.0);
    Point { n: runs.len(), clean, ..Point::of(x, counted) }
}

fn verdict(series: &[Series], delays: &[usize], ideal: impl Fn(&usize) -> f64, pause_ns: f64) -> Verdict {
    let factor = |name: &str| {
        let at = |delay: &usize| {
            let seconds = Outcome::median_in(series, name, *delay as f64).unwrap_or(0.0);
            (seconds * 1e3 / STORY_MESSAGES / ideal(delay).max(0.001), seconds, *delay)
        };
        delays.iter().map(at).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0.0, 0))
    };
    let ((old, seconds, worst), (present, ..)) = (factor("old back-off"), factor("present back-off"));
    Verdict {
        reproduced: old >= 1.5,
        because: format!(
            "with a pause of {pause_ns:.0} ns the sender takes up to {old:.2} times as long as the worker with the old back-off \
             ({seconds:.2} s for 100 messages at a delay of {worst} ms; published: 2.2 to 2.3 s at 1 and 2 ms, else 1.2 s): it \
             looks at the lock only between rounds, which grow threefold. The present one, which looks every 272 ns and \
             then sleeps, takes at most {present:.2} times"
        ),
        advice: "bound the time between two looks at the condition, not the number of pauses, and sleep soon after"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pause::Pause;
    use crate::policies::Backoff;

    #[test]
    fn a_point_is_of_runs_that_were_not_disturbed() {
        let times: Vec<(f64, bool)> = (0..10).map(|i| (if i == 4 { 9.0 } else { 0.01 }, i != 4)).collect();
        let point = point(1.0, &times);
        assert_eq!((point.n, point.clean), (5, 4));
        assert!((point.median - 1.0).abs() < 1e-9);
    }

    #[test]
    fn each_message_is_taken_and_timed() {
        let lock = Monitor::new(Backoff::Present, Pause::REAL, 4.0);
        let times = exchange(&lock, Duration::from_millis(1), 3_000_000, 5);
        // How long each takes is the machine's matter, but for the sleep before it.
        assert!(times.len() == 5 && times.iter().all(|t| t.0 >= 0.001), "{times:?}");
    }
}
