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
    now: u64,
    pub(super) present: Present,
    /// What one thread that is charged has come to.
    pub(super) total: Mark,
    pub(super) sums: CpuSeconds,
    waiting: FxHashMap<(usize, usize), f64>,
    /// The last entry of that, which is mostly the next one too.
    run: ((usize, usize), f64),
    shares: Shares,
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
    pub(super) fn new(window: Window, cpus: usize, peak: usize, now: u64) -> Self {
        let t = window.to.saturating_sub(now.clamp(window.from, window.to));
        Clock {
            window,
            cpus,
            peak,
            now,
            present: Present::default(),
            total: Mark { t, ..Mark::default() },
            sums: CpuSeconds::default(),
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
        let p = &self.present;
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
            self.total.rank += rank_used as f64 * per_member;
            foreign -= rank_used;
        }
        if p.idle > 0 {
            let wanted = self.peak.saturating_sub(p.running_focus + members.min(self.peak));
            self.total.idle += wanted.min(foreign) as f64 * self.shares.of(p.idle) * dt;
        }
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
