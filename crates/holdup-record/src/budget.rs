//! What recording costs, measured where it is spent, and what is left of the budget for stacks.
//!
//! Switches, wake-ups and samples are recorded whatever they cost. Stacks get what is left: an allowance for each CPU that
//! the programs in the kernel draw on (`bpf/site.h`), told anew as the load changes.

use holdup_trace::{Nanos, RecorderCost};

use crate::layout::word;

/// What a program's call costs beside what it measures itself: the way into it and its first look at the clock. By the
/// pinned pipe of `perf bench` with empty programs, which take 0.31 µs of each switch, with 2.5 calls.
const ENTRY_NS: f64 = 120.0;
/// How much of the budget spans may cost before they are sampled.
const SPANS: f64 = 0.5;
/// Least share of spans that is recorded, as a power of two.
const MOST_SHIFT: u32 = 10;
/// How much of the budget stacks get even where the rest costs all of it: without any, nothing can be explained.
const LEAST: f64 = 0.1;
/// How much of the budget the copies of samples' stacks get, which cost the reader more than the kernel, whatever the rest costs.
const SAMPLES: f64 = 0.25;
/// While all of it costs less than this part of the budget, and no wait goes without its stack, samples get more,
const ROOM: f64 = 0.8;
/// so many times as much at each reckoning, and as much less where there is no room.
const GROWTH: f64 = 1.25;
/// Where the allowance's unit ends: 2^20 ns.
const UNIT: f64 = (1 << 20) as f64;
/// How far the allowance goes to meet the latest measurement.
const STEP: f64 = 0.3;

/// Counters of the kernel's programs and of this process, all since recording began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    /// ns of switches and wake-ups.
    pub base: u64,
    /// ns of stacks.
    pub stacks: u64,
    /// ns of samples.
    pub samples: u64,
    /// Calls of all programs.
    pub calls: u64,
    /// Stacks that were put together.
    pub looks: u64,
    /// Stacks that were known by their site.
    pub sights: u64,
    /// Stacks that were left out.
    pub skipped: u64,
    /// Samples whose stacks were left out.
    pub bare: u64,
    /// ns of the waits with a stack.
    pub seen: u64,
    /// ns of the waits whose stack was left out.
    pub unseen: u64,
    /// ns of spans' begins and ends.
    pub spans: u64,
    /// Begins and ends of spans.
    pub edges: u64,
    /// ns of the breakpoints that lead to them.
    pub breakpoints: u64,
    /// Records of spans.
    pub span_records: u64,
    /// All records.
    pub records: u64,
    /// CPU seconds of this process.
    pub reader_s: f64,
}

impl Reading {
    /// `sum` adds a word of all CPUs' headers; `interruption` is what a sample costs beside its program, `breakpoint` what one
    /// does.
    pub(crate) fn of(sum: impl Fn(usize) -> u64, reader_s: f64, interruption: Nanos, breakpoint: Nanos) -> Reading {
        Reading {
            base: sum(word::BASE_NS),
            stacks: sum(word::STACK_NS),
            samples: sum(word::SAMPLE_NS) + sum(word::SAMPLES) * interruption.0,
            calls: sum(word::CALLS),
            looks: sum(word::LOOKS),
            sights: sum(word::SIGHTS),
            skipped: sum(word::SKIPPED),
            bare: sum(word::BARE_SAMPLES),
            seen: sum(word::SEEN_NS),
            unseen: sum(word::SKIPPED_NS),
            spans: sum(word::SPAN_NS),
            edges: sum(word::SPAN_EDGES),
            breakpoints: sum(word::SPAN_EDGES) * breakpoint.0,
            span_records: sum(word::SPAN_RECORDS),
            records: sum(word::HEAD) + sum(word::SIDE_HEAD),
            reader_s,
        }
    }

    /// What was counted after `before`.
    pub(crate) fn since(&self, before: &Reading) -> Reading {
        Reading {
            base: self.base.saturating_sub(before.base),
            stacks: self.stacks.saturating_sub(before.stacks),
            samples: self.samples.saturating_sub(before.samples),
            calls: self.calls.saturating_sub(before.calls),
            looks: self.looks.saturating_sub(before.looks),
            sights: self.sights.saturating_sub(before.sights),
            skipped: self.skipped.saturating_sub(before.skipped),
            bare: self.bare.saturating_sub(before.bare),
            seen: self.seen.saturating_sub(before.seen),
            unseen: self.unseen.saturating_sub(before.unseen),
            spans: self.spans.saturating_sub(before.spans),
            edges: self.edges.saturating_sub(before.edges),
            breakpoints: self.breakpoints.saturating_sub(before.breakpoints),
            span_records: self.span_records.saturating_sub(before.span_records),
            records: self.records.saturating_sub(before.records),
            reader_s: (self.reader_s - before.reader_s).max(0.0),
        }
    }

    /// Seconds of switches and wake-ups, and of all programs' entries.
    fn switches_s(&self) -> f64 {
        (self.base as f64 + self.calls as f64 * ENTRY_NS) / 1e9
    }

    fn samples_s(&self) -> f64 {
        self.samples as f64 / 1e9
    }

    /// Seconds of spans: mostly those of the breakpoints.
    pub(crate) fn spans_s(&self) -> f64 {
        (self.spans as f64 + self.breakpoints as f64) / 1e9
    }

    /// What there is to say if breakpoints alone cost more than `share` of `cpu_s`: sampling leaves them as they are.
    pub(crate) fn dear_breakpoints(&self, share: f64, cpu_s: f64) -> Option<String> {
        let cost = self.breakpoints as f64 / 1e9 / cpu_s;
        (cost > share).then(|| {
            let each = self.breakpoints as f64 / 1e3 / self.edges.max(1) as f64;
            let (cost, share) = (100.0 * cost, 100.0 * share);
            format!(
                "the spans' breakpoints alone took {cost:.0} % of the machine, of a budget of {share:.0} %: {} of them, {each:.1} µs each; probe \
                 what is called less often",
                self.edges
            )
        })
    }

    /// Seconds of this process for the records of spans: their share of all records.
    fn span_reader_s(&self) -> f64 {
        self.reader_s * self.span_records as f64 / self.records.max(self.span_records).max(1) as f64
    }

    /// Seconds of all but stacks.
    fn fixed_s(&self) -> f64 {
        self.switches_s() + self.samples_s() + self.spans_s() + self.reader_s
    }
}

/// What copies of samples' stacks get of a budget of `share`, whatever the rest costs.
fn least_for_samples(share: f64) -> f64 {
    share.min(1.0) * SAMPLES
}

/// Keeps recording to a share of the machine.
#[derive(Debug)]
pub(crate) struct Budget {
    /// The share; 1 and more is no limit.
    share: f64,
    cpus: f64,
    /// What was read last, and when, in seconds.
    last: (Reading, f64),
    /// CPU seconds of this process until the first reckoning.
    to_begin_s: f64,
    /// The share of a CPU that stacks may cost.
    allowed: f64,
    /// The same for copies of samples' stacks.
    samples: f64,
    /// Of two to this power spans one is recorded.
    span_shift: u32,
}

impl Budget {
    /// Half of the budget is for stacks until the load is known.
    pub(crate) fn new(share: f64, cpus: usize) -> Budget {
        Budget {
            share,
            cpus: cpus as f64,
            last: (Reading::default(), 0.0),
            to_begin_s: 0.0,
            allowed: share / 2.0,
            samples: least_for_samples(share),
            span_shift: 0,
        }
    }

    /// Whether all stacks are taken, whatever they cost.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.share >= 1.0
    }

    /// ns of stacks per CPU and 2^20 ns.
    pub(crate) fn allowance(&self) -> u64 {
        if self.is_unlimited() { UNIT as u64 } else { (self.allowed * UNIT) as u64 }
    }

    /// ns of copies of samples' stacks per CPU and 2^20 ns.
    pub(crate) fn sample_allowance(&self) -> u64 {
        (self.samples * UNIT) as u64
    }

    /// Reckons anew at `t` seconds. What was spent before the first time is the beginning's, and no measure of what follows.
    pub(crate) fn adjust(&mut self, reading: Reading, t: f64) {
        let (before, then) = std::mem::replace(&mut self.last, (reading, t));
        if then == 0.0 {
            self.to_begin_s = reading.reader_s;
            return;
        }
        let span = (t - then) * self.cpus;
        if span <= 0.0 {
            return;
        }
        let fixed = (reading.fixed_s() - before.fixed_s()) / span;
        let left = (self.share - fixed).max(self.share * LEAST);
        self.allowed += (left - self.allowed) * STEP;
        let latest = reading.since(&before);
        self.share_with_samples(&latest, span);
        self.sample_spans(&latest, span);
    }

    /// One busy thread may need on its CPU what the others have no use for: what is left of the machine's budget is any CPU's.
    fn share_with_samples(&mut self, latest: &Reading, span: f64) {
        let spent = (latest.fixed_s() + latest.stacks as f64 / 1e9) / span;
        let has_room = spent < self.share * ROOM && latest.skipped == 0;
        if has_room && latest.bare > 0 {
            self.samples = (self.samples * GROWTH).min(1.0);
        } else if !has_room {
            self.samples = (self.samples / GROWTH).max(least_for_samples(self.share));
        }
    }

    /// What the records of spans cost, in the kernel and in this process, is halved by recording every other one; their breakpoints stay.
    fn sample_spans(&mut self, latest: &Reading, span: f64) {
        let share = (latest.spans as f64 / 1e9 + latest.span_reader_s()) / span;
        if latest.edges == 0 || self.is_unlimited() {
            return;
        }
        if share > self.share * SPANS {
            self.span_shift = (self.span_shift + 1).min(MOST_SHIFT);
        } else if share < self.share * SPANS / 4.0 {
            self.span_shift = self.span_shift.saturating_sub(1);
        }
    }

    /// What there is to say if breakpoints alone cost more than the budget, in `seconds` of all CPUs.
    pub(crate) fn dear_breakpoints(&self, reading: &Reading, seconds: f64) -> Option<String> {
        reading.dear_breakpoints(self.share, seconds * self.cpus)
    }

    /// See [`Control`](crate::layout::Control).
    pub(crate) fn span_shift(&self) -> u32 {
        self.span_shift
    }

    /// What was spent in all.
    pub(crate) fn cost(&self, reading: Reading) -> RecorderCost {
        RecorderCost {
            budget: self.share,
            reader_s: reading.reader_s,
            ends_s: self.to_begin_s + reading.reader_s - self.last.0.reader_s,
            switches_s: reading.switches_s() + reading.spans_s(),
            samples_s: reading.samples_s(),
            stacks_s: reading.stacks as f64 / 1e9,
            looks: reading.looks,
            sights: reading.sights,
            left_out: reading.skipped,
            bare_samples: reading.bare,
            seen_s: reading.seen as f64 / 1e9,
            unseen_s: reading.unseen as f64 / 1e9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_get_what_is_left() {
        let mut budget = Budget::new(0.03, 4);
        let mut reading = Reading::default();
        for i in 1..50 {
            // One percent of four CPUs for the reader, as much for 80 million ns of switches.
            reading.reader_s += 0.04;
            reading.base += 40_000_000;
            budget.adjust(reading, f64::from(i));
        }
        assert!((budget.allowed - 0.01).abs() < 1e-4, "{}", budget.allowed);
        assert_eq!(budget.allowance(), (budget.allowed * 1_048_576.0) as u64);
    }

    #[test]
    fn samples_get_what_nobody_else_needs() {
        let mut budget = Budget::new(0.03, 2);
        let mut reading = Reading::default();
        let mut go_on = |budget: &mut Budget, steps: u32, reader_s: f64, skipped: u64| {
            for _ in 0..steps {
                reading.bare += 10;
                reading.skipped += skipped;
                reading.reader_s += reader_s;
                let t = budget.last.1 + 1.0;
                budget.adjust(reading, t);
            }
            budget.samples
        };
        let least = 0.03 * SAMPLES;
        // A hundredth of two CPUs is spent, of three.
        let grown = go_on(&mut budget, 11, 0.02, 0);
        assert!((grown - least * GROWTH.powi(10)).abs() < 1e-9, "{grown}");
        // So it stays where no more than the room for it is left, and shrinks where waits went without their stacks, or all is spent.
        assert!(go_on(&mut budget, 1, 0.02, 1) < grown);
        assert!((go_on(&mut budget, 50, 0.08, 0) - least).abs() < 1e-9);
        assert!(go_on(&mut budget, 100, 0.0, 0) <= 1.0);
    }

    #[test]
    fn the_beginning_says_nothing_of_what_follows() {
        let mut budget = Budget::new(0.03, 2);
        let mut reading = Reading { reader_s: 5.0, ..Reading::default() };
        budget.adjust(reading, 0.1);
        assert!((budget.allowed - 0.015).abs() < 1e-9, "{}", budget.allowed);
        reading.reader_s += 0.0004;
        budget.adjust(reading, 0.2);
        assert!(budget.allowed > 0.015, "{}", budget.allowed);
        let end = Reading { reader_s: reading.reader_s + 1.0, ..reading };
        assert!((budget.cost(end).ends_s - 6.0).abs() < 1e-9, "{:?}", budget.cost(end));
    }

    #[test]
    fn stacks_keep_a_little_where_all_is_spent() {
        let mut budget = Budget::new(0.01, 1);
        let mut reading = Reading::default();
        for i in 1..50 {
            reading.calls += 10_000_000;
            budget.adjust(reading, f64::from(i));
        }
        assert!((budget.allowed - 0.001).abs() < 1e-4, "{}", budget.allowed);
        assert!(budget.cost(reading).cpu_s() > 20.0);
        assert!(Budget::new(1.0, 1).is_unlimited());
    }
}
