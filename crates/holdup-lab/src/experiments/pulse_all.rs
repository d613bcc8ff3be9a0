//! Many waiters, all woken at once, each of which has to take the lock again.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::pause::{PAUSE_NS, both_backoffs, chosen};
use super::send_delay::CORES;
use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::clock;
use crate::knobs::{Kind, Knob};
use crate::locks::Lock;
use crate::locks::backoff::{Futex, Monitor};
use crate::result::{Outcome, Point, Series, Verdict};

/// The second story's test with many waiters.
pub const EXPERIMENT: Experiment = Experiment {
    name: "pulse-all",
    about: "all waiters of a monitor woken at once: what they burn while they spin for its lock",
    axis: "waiters",
    knobs: &[SIMULATED, CORES, WAITERS, HOLD_US, PULSES],
    run,
};

const SIMULATED: Knob = Knob { quick: "43", full: "43", ..PAUSE_NS };
const WAITERS: Knob = Knob {
    name: "waiters",
    about: "numbers of waiting threads",
    kind: Kind::Counts { min: 1.0, max: 1024.0 },
    quick: "1,2,4,8",
    full: "1,2,4,8,16,32",
};
const HOLD_US: Knob = Knob {
    name: "hold_us",
    about: "how long each holds the lock, in microseconds",
    kind: Kind::Number { min: 0.0, max: 1e5 },
    quick: "100",
    full: "100",
};
const PULSES: Knob = Knob {
    name: "pulses",
    about: "pulses for each number of waiters",
    kind: Kind::Number { min: 1.0, max: 10_000.0 },
    quick: "12",
    full: "40",
};

fn run(session: &mut Session) -> Result<Found> {
    let (pause, pause_ns) = chosen(session);
    let hold = (session.values.number("hold_us") * 1e3) as u64;
    let pulses = session.values.count("pulses");
    let waiters = session.values.counts("waiters");
    let (mut cpu, mut elapsed) = (Vec::new(), Vec::new());
    for (i, (name, backoff)) in both_backoffs(session.values.count("cores") as u64).into_iter().enumerate() {
        let (mut cpu_points, mut elapsed_points) = (Vec::new(), Vec::new());
        for (j, &n) in waiters.iter().enumerate() {
            let room = Room::new(Monitor::new(backoff, pause, pause_ns), hold);
            let costs = room.pulse(n, pulses);
            let crowded = n > session.machine.cpus.len();
            let point =
                |figure: fn(&(f64, f64)) -> f64| Point { crowded, ..Point::of(n as f64, costs.iter().map(figure)) };
            cpu_points.push(point(|c| c.0));
            elapsed_points.push(point(|c| c.1));
            (session.tick)((i * waiters.len() + j + 1) as f64 / (2 * waiters.len()) as f64);
        }
        let series = |what: &str, points| Series {
            name: format!("{name}, {what}"),
            unit: "ms/pulse".to_owned(),
            axis: None,
            points,
        };
        cpu.push(series("CPU time", cpu_points));
        elapsed.push(series("elapsed", elapsed_points));
    }
    let series: Vec<Series> = cpu.into_iter().chain(elapsed).collect();
    let most = waiters.into_iter().max().unwrap_or(1);
    let verdict = verdict(&series, most, pause_ns);
    let notes = vec![format!("simulated pause: {pause_ns:.1} ns; a real one takes {:.1} ns", session.machine.pause_ns)];
    Ok(Found { series, notes, verdict })
}

/// A monitor with waiters in it.
struct Room {
    lock: Monitor,
    hold_ns: u64,
    /// Counts the pulses; waiters sleep on it.
    pulse: Futex,
    asleep: AtomicUsize,
    through: AtomicUsize,
    last_through: AtomicU64,
}

impl Room {
    fn new(lock: Monitor, hold_ns: u64) -> Self {
        let (asleep, through) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Room { lock, hold_ns, pulse: Futex(AtomicU32::new(0)), asleep, through, last_through: AtomicU64::new(0) }
    }

    /// Milliseconds of CPU time and of elapsed time, from each pulse until the last of `waiters` was through the lock.
    fn pulse(&self, waiters: usize, pulses: usize) -> Vec<(f64, f64)> {
        std::thread::scope(|scope| {
            for _ in 0..waiters {
                scope.spawn(|| (0..pulses as u32).for_each(|turn| self.wait(turn)));
            }
            (0..pulses).map(|_| self.pulse_once(waiters)).collect()
        })
    }

    fn wait(&self, turn: u32) {
        self.asleep.fetch_add(1, Ordering::AcqRel);
        while self.pulse.0.load(Ordering::Acquire) == turn {
            self.pulse.wait(turn);
        }
        self.lock.with(0, || clock::work_ns(self.hold_ns));
        self.last_through.fetch_max(clock::now_ns(), Ordering::AcqRel);
        self.through.fetch_add(1, Ordering::AcqRel);
    }

    fn pulse_once(&self, waiters: usize) -> (f64, f64) {
        let nap = || std::thread::sleep(Duration::from_micros(200));
        while self.asleep.load(Ordering::Acquire) < waiters {
            nap();
        }
        nap();
        self.asleep.store(0, Ordering::Release);
        let (cpu, start) = (clock::process_cpu_ns(), clock::now_ns());
        self.lock.with(0, || {
            self.pulse.0.fetch_add(1, Ordering::AcqRel);
            self.pulse.wake(i32::MAX);
        });
        while self.through.load(Ordering::Acquire) < waiters {
            nap();
        }
        self.through.store(0, Ordering::Release);
        let ms = |ns: u64| ns as f64 / 1e6;
        let elapsed = self.last_through.load(Ordering::Acquire).saturating_sub(start);
        (ms(clock::process_cpu_ns() - cpu), ms(elapsed))
    }
}

fn verdict(series: &[Series], most: usize, pause_ns: f64) -> Verdict {
    let at = |name: &str| Outcome::median_in(series, name, most as f64).unwrap_or(0.0);
    let (old, present) = (at("old back-off, CPU time"), at("present back-off, CPU time"));
    let (slow, fast) = (at("old back-off, elapsed"), at("present back-off, elapsed"));
    Verdict {
        reproduced: old > 1.5 * present,
        because: format!(
            "with a pause of {pause_ns:.0} ns a pulse to {most} waiters costs {old:.1} ms of CPU and {slow:.1} ms with the old \
             back-off, {present:.1} ms of CPU and {fast:.1} ms with the present one"
        ),
        advice: "wake one waiter at a time, and let waiters sleep after a few microseconds of spinning".to_owned(),
    }
}
