//! Time going backwards: who does what at present, and what that adds up to.

use rustc_hash::FxHashMap;

use super::forest::Mark;
use super::{CpuSeconds, Window};

/// How many threads and CPUs do what, at an instant.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Present {
    /// CPUs that run threads of the focus.
    pub(super) running_focus: usize,
    /// CPUs that run others.
    pub(super) running_other: usize,
    /// CPUs of which nothing is known.
    pub(super) lost: usize,
    /// Threads that are held up.
    pub(super) held: usize,
    /// Of those, the ones that wait for a thread's work.
    pub(super) held_by_work: usize,
    /// Threads that could run, and nobody waits for them.
    pub(super) queued: usize,
    /// Threads that are idle by design.
    pub(super) idle: usize,
    /// Threads of the focus that could run, whoever waits for them.
    pub(super) runnable: usize,
    /// Threads of the focus that wait for input, room, a time or a signal, and hold nobody up.
    pub(super) outside: usize,
}

impl Present {
    /// So many threads come to be held up, perhaps by work, and idle, or are so no longer.
    #[inline]
    pub(super) fn change(&mut self, held: u32, by_work: bool, idle: u32, outside: u32, come: bool) {
        let change = |n: &mut usize, by: u32| *n = if come { *n + by as usize } else { *n - by as usize };
        change(&mut self.held, held);
        change(&mut self.held_by_work, if by_work { held } else { 0 });
        change(&mut self.idle, idle);
        change(&mut self.outside, outside);
    }

    /// How many threads of the focus have something to do, or wait for what no thread's work can give them.
    pub(super) fn at_work(&self) -> usize {
        self.running_focus + self.runnable + self.held - self.held_by_work + self.outside
    }
}

/// The instant, and the integrals up to it.
#[derive(Debug)]
pub(super) struct Clock {
    window: Window,
    cpus: usize,
    /// The greatest number of the focus's threads that ran at once.
    peak: usize,
    /// Whether the focus is a program, which has places at work, and not the whole machine.
    is_program: bool,
    now: u64,
    pub(super) present: Present,
    /// What one thread that is charged has come to.
    pub(super) total: Mark,
    /// What one running thread of the focus is charged for the CPUs that are idle because of what runs.
    pub(super) serial: Serial,
    pub(super) sums: CpuSeconds,
    /// For each CPU that others use: what threads of the focus that could have run there have missed, in nanoseconds.
    pub(super) starved: f64,
    waiting: FxHashMap<(usize, usize), f64>,
    /// The last entry of that, which is mostly the next one too.
    run: ((usize, usize), f64),
    shares: Shares,
}

/// Integrals of the places at work that nobody fills while some thread works, for each that works.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Serial {
    /// While there were any, in nanoseconds.
    pub(super) t: u64,
    /// CPU nanoseconds of the sum.
    pub(super) cpu: f64,
    /// CPU nanoseconds for the ranking.
    pub(super) rank: f64,
}

impl Serial {
    pub(super) fn since(&self, earlier: &Serial) -> Serial {
        Serial { t: self.t - earlier.t, cpu: self.cpu - earlier.cpu, rank: self.rank - earlier.rank }
    }
}

/// 1 / n, looked up: a division takes longer than all else that is done for an instant.
#[derive(Debug)]
struct Shares(Box<[f64]>);

impl Shares {
    fn new() -> Self {
        Shares((0..1024).map(|n| 1.0 / f64::from(n)).collect())
    }

    #[inline]
    fn of(&self, n: usize) -> f64 {
        self.0.get(n).copied().unwrap_or_else(|| 1.0 / n as f64)
    }
}

impl Clock {
    /// At `now`, with the cpus of the machine.
    pub(super) fn new(window: Window, cpus: usize, peak: usize, is_program: bool, now: u64) -> Self {
        let t = window.to.saturating_sub(now.clamp(window.from, window.to));
        Clock {
            window,
            cpus,
            peak,
            is_program,
            now,
            present: Present::default(),
            total: Mark { t, ..Mark::default() },
            serial: Serial::default(),
            sums: CpuSeconds::default(),
            starved: 0.0,
            waiting: FxHashMap::default(),
            run: ((0, 0), 0.0),
            shares: Shares::new(),
        }
    }

    /// The instant within the window, in nanoseconds since the trace's start.
    #[inline]
    pub(super) fn time(&self) -> u64 {
        self.window.to - self.total.t
    }

    /// Whether `t` lies in the window.
    pub(super) fn is_inside(&self, t: u64) -> bool {
        t >= self.window.from && t <= self.window.to
    }

    /// Integrates from now back to `t`.
    #[inline]
    pub(super) fn advance(&mut self, t: u64) {
        if t < self.now {
            let (from, to) = (t.max(self.window.from), self.now.min(self.window.to));
            self.now = t;
            if from < to {
                self.integrate(to - from);
            }
        }
    }

    fn integrate(&mut self, ns: u64) {
        let dt = ns as f64;
        let (p, free) = (self.present, self.free_places());
        self.total.t += ns;
        let waiting = p.held - p.held_by_work;
        if waiting > 0 {
            let key = (p.running_focus + p.runnable, waiting);
            if self.run.0 != key {
                *self.waiting.entry(self.run.0).or_default() += self.run.1;
                self.run = (key, 0.0);
            }
            self.run.1 += dt;
        }
        let idle = self.cpus.saturating_sub(p.running_focus + p.running_other + p.lost);
        let members = p.held + p.queued;
        let used = idle.min(members);
        let sums = &mut self.sums;
        sums.total += self.cpus as f64 * dt;
        sums.running += p.running_focus as f64 * dt;
        sums.other += p.running_other as f64 * dt;
        sums.lost += p.lost as f64 * dt;
        sums.no_work += (idle - used) as f64 * dt;
        let mut foreign = idle + p.running_other;
        if members > 0 {
            let per_member = dt * self.shares.of(members);
            let weight = used as f64 * per_member;
            sums.held_up += weight * p.held as f64;
            sums.runnable_idle += weight * p.queued as f64;
            self.total.cpu += weight;
            let rank_used = foreign.min(members);
            let rank = rank_used as f64 * per_member;
            self.total.rank += rank;
            self.starved += (rank - weight) * p.queued as f64 * self.shares.of(p.running_other.max(1));
            foreign -= rank_used;
        }
        if free > 0 {
            let (cpu, rank) = (free.min(idle - used) as f64 * dt, free.min(foreign) as f64 * dt);
            foreign -= free.min(foreign);
            let share = self.shares.of(p.running_focus);
            self.serial.t += ns;
            self.serial.cpu += cpu * share;
            self.serial.rank += rank * share;
            sums.held_up += cpu;
            sums.no_work -= cpu;
        }
        if p.idle > 0 {
            let wanted = self.peak.saturating_sub(p.running_focus + members.min(self.peak));
            self.total.idle += wanted.min(foreign) as f64 * self.shares.of(p.idle) * dt;
        }
    }

    /// Places at work that nobody fills while some thread works: up to the program's peak, and not while it waits for the
    /// world outside, which would fill them.
    fn free_places(&self) -> usize {
        let p = &self.present;
        let filled = p.running_focus + p.held + p.queued + p.outside;
        if p.running_focus == 0 || !self.is_program { 0 } else { self.peak.saturating_sub(filled) }
    }

    /// Weight of one running thread of the focus at this instant for the places that it leaves free.
    pub(super) fn serial_weight(&self) -> f64 {
        self.free_places() as f64 * self.shares.of(self.present.running_focus)
    }

    /// Weight of one held-up thread at this instant, in the ranking.
    pub(super) fn rank_weight(&self) -> f64 {
        let members = self.present.held + self.present.queued;
        let idle = self.cpus.saturating_sub(self.present.running_focus + self.present.lost);
        if members == 0 { 0.0 } else { idle.min(members) as f64 / members as f64 }
    }

    /// How long so many threads of the focus ran or could run while so many waited for a lock, a disk or a time.
    pub(super) fn take_waiting(&mut self) -> FxHashMap<(usize, usize), f64> {
        if self.run.1 > 0.0 {
            *self.waiting.entry(self.run.0).or_default() += self.run.1;
            self.run.1 = 0.0;
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain(|_, ns| *ns > 0.0);
        waiting
    }
}
