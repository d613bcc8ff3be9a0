//! What one row of the timeline does, by buckets of time, in four bytes for each change.
//!
//! A bucket has the state that took most of it, the share of that, and the share in which a CPU was used. Equal buckets that
//! follow each other are one run, so that a thread that sleeps costs nothing, and one that switches more often than there
//! are buckets costs four bytes for each of them.

use holdup_analysis::lanes::Doing;

/// Time by what was done, in nanoseconds.
pub(crate) type Sums = [f32; Doing::COUNT];

const SHARE_BITS: u32 = 5;
const RUN_BITS: u32 = 6;
const STATE_BITS: u32 = 4;
/// The most buckets that a run's number can name.
pub(crate) const MOST_BUCKETS: usize = 1 << (32 - SHARE_BITS - RUN_BITS - STATE_BITS);

const SHARE_MAX: f32 = ((1u32 << SHARE_BITS) - 1) as f32;
const RUN_MAX: f32 = ((1u32 << RUN_BITS) - 1) as f32;
const PAYLOAD_BITS: u32 = SHARE_BITS + RUN_BITS + STATE_BITS;

/// Equal buckets: from the one that it names up to the next run's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run(u32);

impl Run {
    fn new(bucket: usize, sums: &Sums, width: f32) -> Self {
        let (state, most) = dominant(sums);
        let share = (most / width * SHARE_MAX).round().min(SHARE_MAX) as u32;
        // What ran at all is seen.
        let run = (cpu(sums) / width * RUN_MAX).ceil().min(RUN_MAX) as u32;
        let payload = (state as u32) << (SHARE_BITS + RUN_BITS) | share << RUN_BITS | run;
        Run((bucket as u32) << PAYLOAD_BITS | payload)
    }

    pub(crate) const fn bucket(self) -> usize {
        (self.0 >> PAYLOAD_BITS) as usize
    }

    const fn payload(self) -> u32 {
        self.0 & ((1 << PAYLOAD_BITS) - 1)
    }

    pub(crate) const fn state(self) -> usize {
        (self.payload() >> (SHARE_BITS + RUN_BITS)) as usize
    }

    /// The share of the state, 0 to 1.
    pub(crate) fn share(self) -> f32 {
        (self.0 >> RUN_BITS & ((1 << SHARE_BITS) - 1)) as f32 / SHARE_MAX
    }

    /// The share in which a CPU was used, 0 to 1.
    pub(crate) fn run(self) -> f32 {
        (self.0 & ((1 << RUN_BITS) - 1)) as f32 / RUN_MAX
    }
}

/// The state that took most, and how long. Having a CPU is one state here, whatever it was used for.
pub(crate) fn dominant(sums: &Sums) -> (usize, f32) {
    let mut best = (0, sums[0]);
    for (state, &sum) in sums.iter().enumerate().skip(1) {
        if sum > best.1 {
            best = (state, sum);
        }
    }
    best
}

/// A bucket of which nothing is known.
fn nothing(width: u64) -> Sums {
    let mut sums = [0.0; Doing::COUNT];
    sums[0] = width as f32;
    sums
}

/// How long a CPU was used.
pub(crate) fn cpu(sums: &Sums) -> f32 {
    sums[Doing::Runs as usize] + sums[Doing::Spins as usize]
}

/// All runs of a row, in the order of time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lane {
    runs: Vec<Run>,
}

impl Lane {
    /// The runs that the buckets `from..to` touch, each with its first bucket there and the first behind it.
    pub(crate) fn within(&self, from: usize, to: usize) -> impl Iterator<Item = (Run, usize, usize)> + '_ {
        let first = self.runs.partition_point(|r| r.bucket() <= from).saturating_sub(1);
        let runs = &self.runs[first..];
        let touching = runs.iter().enumerate().take_while(move |(_, r)| r.bucket() < to);
        touching.map(move |(i, &run)| {
            let behind = runs.get(i + 1).map_or(to, |next| next.bucket().min(to));
            (run, run.bucket().max(from), behind)
        })
    }

    /// How many runs it has.
    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.runs.len() * size_of::<Run>()
    }

    fn push(&mut self, run: Run) {
        if self.runs.last().is_none_or(|last| last.payload() != run.payload()) {
            self.runs.push(run);
        }
    }
}

/// A lane while it is made, from stretches in the order of time.
#[derive(Debug, Clone)]
pub(crate) struct Maker {
    lane: Lane,
    /// Of the bucket that is not yet complete.
    sums: Sums,
    bucket: usize,
}

impl Maker {
    pub(crate) const fn new() -> Self {
        Maker { lane: Lane { runs: Vec::new() }, sums: [0.0; Doing::COUNT], bucket: 0 }
    }

    /// It did `doing` from `from` to `to`; buckets are `width` nanoseconds wide.
    #[inline]
    pub(crate) fn add(&mut self, from: u64, to: u64, doing: Doing, width: u64) {
        let (first, last) = ((from / width) as usize, ((to - 1) / width) as usize);
        if first != self.bucket {
            self.go_on(first, width);
        }
        if first == last {
            self.sums[doing as usize] += (to - from) as f32;
            return;
        }
        self.sums[doing as usize] += ((first as u64 + 1) * width - from) as f32;
        self.flush(width);
        if last > first + 1 {
            let mut whole = [0.0; Doing::COUNT];
            whole[doing as usize] = width as f32;
            self.lane.push(Run::new(first + 1, &whole, width as f32));
        }
        self.bucket = last;
        self.sums[doing as usize] = (to - last as u64 * width) as f32;
    }

    /// Nothing is known up to this bucket.
    fn go_on(&mut self, bucket: usize, width: u64) {
        self.flush(width);
        if bucket > self.bucket + 1 {
            self.lane.push(Run::new(self.bucket + 1, &nothing(width), width as f32));
        }
        self.bucket = bucket;
    }

    /// Completes the present bucket.
    fn flush(&mut self, width: u64) {
        let known: f32 = self.sums.iter().sum();
        self.sums[0] += (width as f32 - known).max(0.0);
        self.lane.push(Run::new(self.bucket, &self.sums, width as f32));
        self.sums = [0.0; Doing::COUNT];
    }

    pub(crate) fn finish(mut self, width: u64) -> Lane {
        self.flush(width);
        if self.bucket + 1 < MOST_BUCKETS {
            // Nothing is known of what comes behind: it has ended, or the trace has.
            self.lane.push(Run::new(self.bucket + 1, &nothing(width), width as f32));
        }
        self.lane.runs.shrink_to_fit();
        self.lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_tell_what_took_most() {
        let mut maker = Maker::new();
        maker.add(4, 18, Doing::Lock, 10);
        maker.add(18, 20, Doing::Runs, 10);
        maker.add(20, 1000, Doing::Home, 10);
        let lane = maker.finish(10);
        let found: Vec<_> = lane.within(0, 100).map(|(r, a, b)| (r.state(), a, b)).collect();
        assert_eq!(found, [(4, 0, 1), (4, 1, 2), (8, 2, 100)]);
        let (second, ..) = lane.within(1, 2).next().unwrap();
        assert!((second.share() - 0.8).abs() < 0.04 && (second.run() - 0.2).abs() < 0.02);
        assert_eq!(lane.within(50, 60).map(|(r, a, b)| (r.state(), a, b)).collect::<Vec<_>>(), [(8, 50, 60)]);
    }

    #[test]
    fn what_is_not_known_is_nothing() {
        let mut maker = Maker::new();
        maker.add(50, 60, Doing::Runs, 10);
        let lane = maker.finish(10);
        let found: Vec<_> = lane.within(0, 6).map(|(r, a, b)| (r.state(), a, b)).collect();
        assert_eq!(found, [(0, 0, 5), (1, 5, 6)]);
        assert_eq!(lane.within(6, 99).map(|(r, a, b)| (r.state(), a, b)).collect::<Vec<_>>(), [(0, 6, 99)]);
    }
}
