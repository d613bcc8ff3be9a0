//! A consumer that spins for a lock which its producer holds while it prepares a message.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::pause::{PAUSE_NS, both_backoffs, chosen};
use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::clock;
use crate::harness::usage::Usage;
use crate::knobs::{Kind, Knob};
use crate::locks::backoff::Monitor;
use crate::result::{Outcome, Point, Series, Verdict};

/// The second story's producer and consumer.
pub const EXPERIMENT: Experiment = Experiment {
    name: "send-delay",
    about: "a consumer that looks at its lock only between rounds of pauses: its delays come in steps",
    axis: "delay of the send, ms",
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
    about: "how long the producer prepares a message, in milliseconds",
    kind: Kind::Counts { min: 1.0, max: 100.0 },
    quick: "1,2,3,4,5,6,7,8,9",
    full: "1,2,3,4,5,6,7,8,9,10,12,14,16,18,20",
};
const WORK_MS: Knob = Knob {
    name: "work_ms",
    about: "work of the consumer on each message, in milliseconds",
    kind: Kind::Number { min: 0.0, max: 1000.0 },
    quick: "10",
    full: "10",
};
const MESSAGES: Knob = Knob {
    name: "messages",
    about: "messages for each delay",
    kind: Kind::Number { min: 1.0, max: 10_000.0 },
    quick: "6",
    full: "40",
};

fn run(session: &mut Session) -> Result<Found> {
    let (pause, pause_ns) = chosen(session);
    let delays = session.values.counts("delays");
    let work = (session.values.number("work_ms") * 1e6) as u64;
    let messages = session.values.count("messages");
    let mut series: Vec<Series> = Vec::new();
    for (i, (name, backoff)) in both_backoffs(session.values.count("cores") as u64).into_iter().enumerate() {
        let mut points = Vec::new();
        for (j, &delay) in delays.iter().enumerate() {
            let lock = Monitor::new(backoff, pause, pause_ns);
            let times = exchange(&lock, Duration::from_millis(delay as u64), work, messages);
            points.push(point(delay as f64, &times));
            (session.tick)((i * delays.len() + j + 1) as f64 / (2 * delays.len()) as f64);
        }
        series.push(Series { name: name.to_owned(), unit: "ms/message".to_owned(), axis: None, points });
    }
    let ideal = |&delay: &usize| delay as f64 + work as f64 / 1e6;
    let verdict = verdict(&series, &delays, ideal, pause_ns);
    let notes = vec![format!("simulated pause: {pause_ns:.1} ns; a real one takes {:.1} ns", session.machine.pause_ns)];
    Ok(Found { series, notes, verdict })
}

/// Milliseconds from the end of a message's work to the end of the next one's, and whether the consumer kept its CPU.
fn exchange(lock: &Monitor, delay: Duration, work_ns: u64, messages: usize) -> Vec<(f64, bool)> {
    // When the producer took the lock; 0 while it has not.
    let preparing = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let producer = scope.spawn(|| {
            for _ in 0..messages {
                std::thread::park();
                lock.lock();
                preparing.store(clock::now_ns(), Ordering::Release);
                std::thread::sleep(delay);
                lock.unlock();
            }
        });
        let receive = |_| {
            producer.thread().unpark();
            let usage = Usage::of_thread();
            let start = loop {
                match preparing.swap(0, Ordering::AcqRel) {
                    0 => std::hint::spin_loop(),
                    start => break start,
                }
            };
            lock.lock();
            lock.unlock();
            let clean = Usage::of_thread().since(usage).undisturbed(200_000);
            let waited = clock::now_ns() - start;
            let begin = clock::thread_cpu_ns();
            while clock::thread_cpu_ns() - begin < work_ns {
                std::hint::spin_loop();
            }
            ((waited + clock::thread_cpu_ns() - begin) as f64 / 1e6, clean)
        };
        (0..messages).map(receive).collect()
    })
}

fn point(x: f64, times: &[(f64, bool)]) -> Point {
    let clean = times.iter().filter(|t| t.1).count();
    // Where another program kept taking the CPU all messages count; `clean` tells.
    let counted = times.iter().filter(|t| t.1 || clean == 0).map(|t| t.0);
    Point { n: times.len(), clean, ..Point::of(x, counted) }
}

fn verdict(series: &[Series], delays: &[usize], ideal: impl Fn(&usize) -> f64, pause_ns: f64) -> Verdict {
    let factor = |name: &str| {
        let at = |delay: &usize| {
            let median = Outcome::median_in(series, name, *delay as f64).unwrap_or(0.0);
            (median / ideal(delay), *delay)
        };
        delays.iter().map(at).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0))
    };
    let ((old, worst), (present, _)) = (factor("old back-off"), factor("present back-off"));
    Verdict {
        reproduced: old >= 1.5,
        because: format!(
            "with a pause of {pause_ns:.0} ns the old back-off takes up to {old:.2} times the time of delay and work (at a \
             delay of {worst} ms): it looks at the lock only between rounds, which grow threefold. The present one, which looks \
             every 272 ns and then sleeps, takes at most {present:.2} times"
        ),
        advice: "bound the time between two looks at the condition, not the number of pauses, and sleep soon after"
            .to_owned(),
    }
}
