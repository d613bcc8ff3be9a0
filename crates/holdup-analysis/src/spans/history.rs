//! What each thread and each CPU did, to be asked for any stretch of time.

use holdup_trace::{Cpu, Result, StackId, Table, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use crate::classify::Classifier;
use crate::findings::{Callers, count_callers};
use crate::intervals::{Intervals, State};
use crate::segments::{self, Segment};

/// Stretches by thread and by CPU, and samples by thread, each in time order.
pub(super) struct History {
    by_thread: Vec<Vec<Segment>>,
    by_cpu: FxHashMap<u16, Vec<Segment>>,
    samples: Vec<Vec<(u64, StackId)>>,
    /// Who calls each function, in all samples.
    pub(super) callers: Callers,
}

impl History {
    /// O(steps + samples) time; only samples of the time from `window.0` to `window.1` are kept.
    pub(super) fn new(
        trace: &Trace,
        intervals: &Intervals,
        classifier: &Classifier,
        window: (u64, u64),
    ) -> Result<Self> {
        let count = intervals.last.len();
        let mut history = History {
            by_thread: vec![Vec::new(); count],
            by_cpu: FxHashMap::default(),
            samples: vec![Vec::new(); count],
            callers: Callers::default(),
        };
        segments::each(trace, intervals, |s| {
            if let Some(own) = history.by_thread.get_mut(s.thread.index()) {
                own.push(s);
            }
            if let State::Running(cpu) = s.state {
                history.by_cpu.entry(cpu.0).or_default().push(s);
            }
        });
        history.by_cpu.values_mut().for_each(|runs| runs.sort_by_key(|s| s.from));
        let mut stacks: FxHashMap<StackId, f64> = FxHashMap::default();
        for chunk in trace.samples.chunks() {
            let chunk = chunk?;
            for i in 0..chunk.len() {
                *stacks.entry(chunk.stack[i]).or_default() += 1.0;
                let t = chunk.t[i].nanos();
                if let Some(own) =
                    history.samples.get_mut(chunk.thread[i].index()).filter(|_| t >= window.0 && t < window.1)
                {
                    own.push((t, chunk.stack[i]));
                }
            }
        }
        for (stack, weight) in stacks {
            count_callers(classifier, stack, weight, &mut history.callers);
        }
        Ok(history)
    }

    /// What `thread` did from `from` to `to`, in nanoseconds, cut to that time. O(log stretches + answer).
    pub(super) fn of(&self, thread: ThreadIdx, from: u64, to: u64) -> impl Iterator<Item = Segment> + '_ {
        let own = self.by_thread.get(thread.index()).map_or(&[][..], Vec::as_slice);
        within(own, from, to)
    }

    /// Who ran longest on `cpu` from `from` to `to`; `None` if it was idle all the time.
    pub(super) fn longest_on(&self, cpu: Cpu, from: u64, to: u64) -> Option<ThreadIdx> {
        let runs = self.by_cpu.get(&cpu.0)?;
        let mut times: FxHashMap<ThreadIdx, u64> = FxHashMap::default();
        within(runs, from, to)
            .filter(|s| s.thread.is_real())
            .for_each(|s| *times.entry(s.thread).or_default() += s.to - s.from);
        times.into_iter().max_by_key(|&(thread, time)| (time, std::cmp::Reverse(thread))).map(|(thread, _)| thread)
    }

    /// Its samples of that time.
    pub(super) fn samples(&self, thread: ThreadIdx, from: u64, to: u64) -> impl Iterator<Item = StackId> + '_ {
        let own = self.samples.get(thread.index()).map_or(&[][..], Vec::as_slice);
        let begin = own.partition_point(|(t, _)| *t < from);
        own[begin..].iter().take_while(move |(t, _)| *t < to).map(|(_, stack)| *stack)
    }
}

/// Those of some stretches, in time order, that lie in `from..to`, cut to it.
fn within(all: &[Segment], from: u64, to: u64) -> impl Iterator<Item = Segment> + '_ {
    let begin = all.partition_point(|s| s.to <= from);
    let cut = move |s: &Segment| Segment { from: s.from.max(from), to: s.to.min(to), ..*s };
    all[begin..].iter().take_while(move |s| s.from < to).map(cut)
}
