//! What wide windows are answered from: the lanes of all threads and CPUs, and the use of the CPUs, by buckets of time.
//!
//! The width of a bucket is chosen so that all lanes together take at most [`MOST_RUNS`] runs of four bytes: a thread has no
//! more runs than buckets, and no more than it changes what it does.

use holdup_analysis::intervals::Chunk;
use holdup_analysis::lanes::{Did, Doing};
use holdup_trace::{Cpu, ThreadIdx};

use crate::lane::{self, Lane, MOST_BUCKETS};
use crate::study::Study;
use crate::{Result, cpus};

/// Runs of all threads together.
const MOST_RUNS: usize = 1 << 25;
/// Buckets, however many threads there are.
const LEAST_BUCKETS: usize = 1024;
/// Buckets of CPUs, whose runs take twelve bytes.
const MOST_CPU_BUCKETS: u64 = 1 << 17;
/// Runs of all CPUs together.
const MOST_CPU_RUNS: u64 = 1 << 22;

/// CPU time by bucket, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Use {
    /// Threads of the focus ran, and did not spin.
    pub(crate) busy: Vec<f32>,
    /// They spun.
    pub(crate) spin: Vec<f32>,
    /// Others ran.
    pub(crate) other: Vec<f32>,
    /// The records are lost.
    pub(crate) lost: Vec<f32>,
}

/// What wide windows are answered from.
pub(crate) struct Base {
    /// Nanoseconds in a bucket of a thread's lane, and of the use.
    pub(crate) width: u64,
    /// Nanoseconds in a bucket of a CPU's lane.
    pub(crate) cpu_width: u64,
    /// By thread.
    pub(crate) lanes: Vec<Lane>,
    /// By CPU.
    pub(crate) cpus: Vec<Vec<cpus::CpuRun>>,
    /// By thread: nanoseconds of what it did.
    pub(crate) sums: Vec<[f64; Doing::COUNT]>,
    pub(crate) usage: Use,
}

impl Base {
    /// Follows all parts of the trace. O(events).
    ///
    /// # Errors
    /// If a table is damaged.
    pub(crate) fn new(study: &Study) -> Result<Self> {
        let mut maker = Maker::new(study);
        let first = |chunk: &Chunk| Seen::of(chunk, study);
        study.timeline.each(0..study.timeline.len(), first, |seen| maker.add(&seen, study))?;
        Ok(maker.finish())
    }

    /// Bytes that the lanes take.
    pub(crate) fn bytes(&self) -> usize {
        let cpus: usize = self.cpus.iter().map(|c| c.len() * size_of::<cpus::CpuRun>()).sum();
        self.lanes.iter().map(Lane::bytes).sum::<usize>() + cpus + 16 * self.usage.busy.len()
    }
}

/// What one part tells.
struct Seen {
    did: Vec<Did>,
    lost: Vec<(Cpu, u64, u64)>,
}

impl Seen {
    fn of(chunk: &Chunk, study: &Study) -> Self {
        let mut did = Vec::with_capacity(chunk.steps().len());
        study.look().follow(chunk, |d| {
            if d.doing != Doing::Nothing {
                did.push(d);
            }
        });
        Seen { did, lost: chunk.lost() }
    }
}

struct Maker {
    width: u64,
    cpu_width: u64,
    lanes: Vec<lane::Maker>,
    cpus: Vec<cpus::Maker>,
    sums: Vec<[f64; Doing::COUNT]>,
    usage: Use,
}

impl Maker {
    fn new(study: &Study) -> Self {
        let (threads, end) = (study.trace.threads.tid.len(), study.timeline.end.max(1));
        let width = end.div_ceil(buckets(&study.timeline.changes) as u64).max(1);
        let most = MOST_CPU_RUNS / (study.timeline.cpus as u64).max(1);
        let cpu_width = end.div_ceil(most.clamp(1, MOST_CPU_BUCKETS)).max(1);
        let series = || vec![0.0; end.div_ceil(width) as usize];
        Maker {
            width,
            cpu_width,
            lanes: vec![lane::Maker::new(); threads],
            cpus: vec![cpus::Maker::default(); study.timeline.cpus],
            sums: vec![[0.0; Doing::COUNT]; threads],
            usage: Use { busy: series(), spin: series(), other: series(), lost: series() },
        }
    }

    fn add(&mut self, seen: &Seen, study: &Study) {
        for did in &seen.did {
            let i = did.thread.index();
            let Some(lane) = self.lanes.get_mut(i) else { continue };
            lane.add(did.from, did.to, did.doing, self.width);
            self.sums[i][did.doing as usize] += (did.to - did.from) as f64;
            if did.doing.has_cpu() {
                self.add_run(did, study.focus.contains(did.thread));
            }
        }
        for &(cpu, from, to) in &seen.lost {
            add_span(&mut self.usage.lost, from, to, self.width);
            self.add_cpu(cpu, from, to, None);
        }
    }

    fn add_run(&mut self, did: &Did, in_focus: bool) {
        let series = match did.doing {
            _ if !in_focus => &mut self.usage.other,
            Doing::Spins => &mut self.usage.spin,
            _ => &mut self.usage.busy,
        };
        add_span(series, did.from, did.to, self.width);
        self.add_cpu(did.cpu, did.from, did.to, Some(did.thread));
    }

    fn add_cpu(&mut self, cpu: Cpu, from: u64, to: u64, thread: Option<ThreadIdx>) {
        if let Some(maker) = self.cpus.get_mut(cpu.index()) {
            maker.add(from, to, thread, self.cpu_width);
        }
    }

    fn finish(self) -> Base {
        let (width, cpu_width) = (self.width, self.cpu_width);
        Base {
            width,
            cpu_width,
            lanes: self.lanes.into_iter().map(|lane| lane.finish(width)).collect(),
            cpus: self.cpus.into_iter().map(|cpu| cpu.finish(cpu_width)).collect(),
            sums: self.sums,
            usage: self.usage,
        }
    }
}

/// As many buckets as let the lanes of threads that change so often take no more than [`MOST_RUNS`].
fn buckets(changes: &[u32]) -> usize {
    let runs = |buckets: usize| changes.iter().map(|n| buckets.min(*n as usize)).sum::<usize>();
    let mut buckets = MOST_BUCKETS;
    while buckets > LEAST_BUCKETS && runs(buckets) > MOST_RUNS {
        buckets = LEAST_BUCKETS.max(buckets - buckets / 8);
    }
    buckets
}

/// Adds the time from `from` to `to` to its buckets.
fn add_span(series: &mut [f32], from: u64, to: u64, width: u64) {
    let last = ((to - 1) / width) as usize;
    for bucket in (from / width) as usize..=last.min(series.len().saturating_sub(1)) {
        let begin = bucket as u64 * width;
        series[bucket] += (to.min(begin + width) - from.max(begin)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_rest_leave_room_for_those_that_work() {
        assert_eq!(buckets(&[10; 1000]), MOST_BUCKETS);
        let mut changes = vec![1_000_000; 400];
        let fine = buckets(&changes);
        assert!(fine <= MOST_RUNS / 400 && fine > MOST_RUNS / 500, "{fine}");
        changes.extend([5; 9000]);
        assert!(buckets(&changes) > MOST_RUNS / 500);
        assert_eq!(buckets(&[u32::MAX; 100_000]), LEAST_BUCKETS);
    }
}
