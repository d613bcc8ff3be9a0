//! What each CPU runs, by buckets of time.

use holdup_trace::ThreadIdx;

/// Nobody, or nobody known.
pub(crate) const NOBODY: u32 = u32::MAX;

/// What a CPU did in equal buckets, up to the next of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuRun {
    pub(crate) bucket: u32,
    /// Who ran longest; [`NOBODY`] if none did.
    pub(crate) who: u32,
    /// In which share of the time somebody ran, of 255.
    pub(crate) busy: u8,
    /// In which share of it its records are lost, of 255.
    pub(crate) lost: u8,
}

/// Who ran how long in one bucket or pixel, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Who {
    ran: Vec<(u32, f32)>,
    pub(crate) lost: f32,
}

impl Who {
    pub(crate) fn add(&mut self, thread: ThreadIdx, ns: f32) {
        match self.ran.iter_mut().find(|(t, _)| *t == thread.0) {
            Some((_, sum)) => *sum += ns,
            None => self.ran.push((thread.0, ns)),
        }
    }

    /// How long anybody ran.
    pub(crate) fn busy(&self) -> f32 {
        self.ran.iter().map(|(_, ns)| ns).sum()
    }

    /// Who ran longest.
    pub(crate) fn most(&self) -> u32 {
        self.ran.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(NOBODY, |(t, _)| *t)
    }

    pub(crate) fn clear(&mut self) {
        self.ran.clear();
        self.lost = 0.0;
    }
}

/// The runs of a CPU while they are made, from stretches in the order of time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Maker {
    pub(crate) runs: Vec<CpuRun>,
    who: Who,
    bucket: usize,
}

impl Maker {
    /// From `from` to `to` `thread` ran, or with none the records are lost. Buckets are `width` nanoseconds wide.
    pub(crate) fn add(&mut self, from: u64, to: u64, thread: Option<ThreadIdx>, width: u64) {
        for bucket in (from / width) as usize..=((to - 1) / width) as usize {
            if bucket != self.bucket {
                self.flush(width);
                if bucket > self.bucket + 1 {
                    self.push(CpuRun { bucket: self.bucket as u32 + 1, who: NOBODY, busy: 0, lost: 0 });
                }
                self.bucket = bucket;
            }
            let begin = bucket as u64 * width;
            let ns = (to.min(begin + width) - from.max(begin)) as f32;
            match thread {
                Some(thread) => self.who.add(thread, ns),
                None => self.who.lost += ns,
            }
        }
    }

    fn flush(&mut self, width: u64) {
        let of = |ns: f32| (ns / width as f32 * 255.0).ceil().min(255.0) as u8;
        let (busy, lost) = (of(self.who.busy()), of(self.who.lost));
        self.push(CpuRun { bucket: self.bucket as u32, who: self.who.most(), busy, lost });
        self.who.clear();
    }

    fn push(&mut self, run: CpuRun) {
        if self.runs.last().is_none_or(|last| CpuRun { bucket: run.bucket, ..*last } != run) {
            self.runs.push(run);
        }
    }

    pub(crate) fn finish(mut self, width: u64) -> Vec<CpuRun> {
        self.flush(width);
        self.push(CpuRun { bucket: self.bucket as u32 + 1, who: NOBODY, busy: 0, lost: 0 });
        self.runs.shrink_to_fit();
        self.runs
    }
}
