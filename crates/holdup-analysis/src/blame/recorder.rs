//! Notes when the sweep charged what, for one part of the trace.

use holdup_trace::Cpu;

use super::clock::Clock;
use super::course::{Asked, Course, REST};
use super::forest::Mark;
use super::key::Key;

/// The integrals of one charged thread, and of one running thread for the places that it leaves free.
#[derive(Debug, Clone, Copy, Default)]
struct Integrals {
    held: f64,
    serial: f64,
}

/// Charges of one kind, by series.
#[derive(Debug)]
struct Charges {
    /// What lies in steps that a charge covers in part.
    parts: Vec<Vec<f64>>,
    /// How many are charged from a step on, compared with the one before.
    change: Vec<Vec<f64>>,
}

/// Notes charges, going backwards.
#[derive(Debug)]
pub(super) struct Recorder<'a> {
    asked: &'a Asked<'a>,
    /// Where the window ends, in nanoseconds since the trace's start.
    end: u64,
    /// The first step of this part, and how many there are.
    first: usize,
    course: Course,
    /// The integrals at the lower border of each step.
    at: Vec<Integrals>,
    held: Charges,
    serial: Charges,
    /// The present step, counted from `first`, and its lower border.
    step: usize,
    border: u64,
    /// The sums at its upper border.
    sums: super::CpuSeconds,
    /// When what runs on each CPU was last charged.
    serial_from: Vec<u64>,
    series: Vec<Option<usize>>,
}

impl<'a> Recorder<'a> {
    /// For the part of the window that lies between `from` and `to`; `None` if nothing does.
    pub(super) fn new(asked: &'a Asked<'a>, (from, to): (u64, u64), cpus: usize) -> Option<Self> {
        let end = asked.border(asked.steps);
        let (from, to) = (from.max(asked.from), to.min(end));
        if from >= to {
            return None;
        }
        let (first, last) = (asked.step_before(from + 1), asked.step_before(to));
        let steps = last - first + 1;
        let charges =
            || Charges { parts: vec![vec![0.0; steps]; asked.count], change: vec![vec![0.0; steps + 1]; asked.count] };
        Some(Recorder {
            asked,
            end,
            first,
            course: Course::new(steps, asked.count),
            at: vec![Integrals::default(); steps],
            held: charges(),
            serial: charges(),
            step: steps - 1,
            border: asked.border(last),
            sums: super::CpuSeconds::default(),
            serial_from: vec![to; cpus],
            series: Vec::new(),
        })
    }

    /// The border that comes next, if it lies behind `t`.
    #[inline]
    pub(super) fn border_behind(&self, t: u64) -> Option<u64> {
        (self.border > t && self.step > 0).then_some(self.border)
    }

    /// The clock is at the lower border of the present step.
    pub(super) fn cross(&mut self, clock: &Clock) {
        self.close(clock);
        self.step -= 1;
        self.border = self.asked.border(self.first + self.step);
    }

    fn close(&mut self, clock: &Clock) {
        let (now, then, k) = (&clock.sums, &self.sums, self.step);
        self.course.running[k] = (now.running - then.running) as f32;
        self.course.spin[k] = (now.spin - then.spin) as f32;
        self.course.other[k] = (now.other - then.other) as f32;
        self.course.runnable_idle[k] = (now.runnable_idle - then.runnable_idle) as f32;
        self.course.no_work[k] = (now.no_work - then.no_work) as f32;
        self.course.lost[k] = (now.lost - then.lost) as f32;
        self.at[k] = Integrals { held: clock.total.cpu, serial: clock.serial.cpu };
        self.sums = clock.sums;
    }

    fn series_of(&mut self, cell: u32, keys: &[Key]) -> usize {
        let i = cell as usize;
        if self.series.len() <= i {
            self.series.resize(keys.len(), None);
        }
        let of = |key: &Key| self.asked.series.get(&key.subject()).copied().unwrap_or(REST);
        *self.series[i].get_or_insert_with(|| of(&keys[i]))
    }

    /// `n` threads were charged to a cell since `mark`.
    #[inline]
    pub(super) fn charge(&mut self, cell: u32, keys: &[Key], mark: &Mark, now: &Mark, n: f64) {
        if now.cpu > mark.cpu {
            let series = self.series_of(cell, keys);
            let upper = self.end - mark.t;
            self.add(true, series, upper, mark.cpu, now.cpu, n);
        }
    }

    /// A thread was ready since `mark`, and has missed `cpu` for a reason that has this cell.
    pub(super) fn ready(&mut self, cell: u32, keys: &[Key], mark: &Mark, now: &Mark, cpu: f64) {
        let series = self.series_of(cell, keys);
        let all = now.cpu - mark.cpu;
        if series != REST && all > 0.0 && cpu > 0.0 {
            let upper = self.end - mark.t;
            self.add(true, series, upper, mark.cpu, now.cpu, cpu / all);
        }
    }

    /// What ran on a CPU was charged `passed` for the places that it left free, up to `now` of that integral.
    pub(super) fn serial(&mut self, cpu: Cpu, cell: Option<(u32, &[Key])>, t: u64, passed: f64, now: f64) {
        let Some(from) = self.serial_from.get_mut(cpu.index()) else { return };
        let upper = std::mem::replace(from, t);
        if let Some((cell, keys)) = cell.filter(|_| passed > 0.0) {
            let series = self.series_of(cell, keys);
            self.add(false, series, upper, now - passed, now, 1.0);
        }
    }

    /// Shares out what `n` threads were charged since the integral was `then`, at `upper`.
    fn add(&mut self, held: bool, series: usize, upper: u64, then: f64, now: f64, n: f64) {
        let high = self.asked.step_before(upper).saturating_sub(self.first).clamp(self.step, self.at.len() - 1);
        let at = |k: usize| if held { self.at[k].held } else { self.at[k].serial };
        let low = self.step;
        let (top, bottom) = if high > low { (at(high) - then, now - at(low + 1)) } else { (0.0, now - then) };
        let charges = if held { &mut self.held } else { &mut self.serial };
        charges.parts[series][low] += n * bottom;
        if high > low {
            charges.parts[series][high] += n * top;
            charges.change[series][low + 1] += n;
            charges.change[series][high] -= n;
        }
    }

    /// What was charged in this part, and its first step.
    pub(super) fn finish(mut self, clock: &Clock) -> (usize, Course) {
        self.close(clock);
        let steps = self.at.len();
        let passed = |k: usize, of: fn(&Integrals) -> f64| {
            let before = self.at.get(k + 1).map_or(0.0, of);
            of(&self.at[k]) - before
        };
        for series in 0..self.asked.count {
            let (mut held, mut serial) = (0.0, 0.0);
            for k in 0..steps {
                held += self.held.change[series][k];
                serial += self.serial.change[series][k];
                let whole = held * passed(k, |i| i.held) + serial * passed(k, |i| i.serial);
                let parts = self.held.parts[series][k] + self.serial.parts[series][k];
                self.course.charged[series][k] = (whole + parts) as f32;
            }
        }
        (self.first, self.course)
    }
}
