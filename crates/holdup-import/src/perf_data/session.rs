//! Takes records one by one and turns them into events.

use holdup_trace::{Result, TraceBuilder};

use super::attr::Attr;
use super::compressed::Unpacker;
use super::decoder::Decoder;
use super::events::{Events, Role, Source};
use super::features::{Features, updated_name};
use super::kinds::{self, Counts};
use super::reader::Record;
use super::{mmap, samples, threads};
use crate::bytes::{u32_at, u64_at};
use crate::linux::tracepoint::Tracepoint;

/// An import under way.
pub struct Session<'b> {
    /// The trace's events.
    pub events: Events,
    /// What the feature sections say.
    pub features: Features,
    /// What is known while records are read.
    pub decoder: Decoder<'b>,
    /// How many records of each kind.
    pub counts: Counts,
    /// Records that are too short, or whose event, time or CPU cannot be.
    pub damaged: u64,
    /// Samples of events without a time.
    pub timeless: u64,
    /// Whether events were recognised by their shape.
    pub guessed: bool,
    /// The process that is likely perf itself.
    pub recorder: Option<u32>,
    /// Whether events became known that are not prepared yet.
    stale: bool,
    has_switches: bool,
    unpacker: Option<Unpacker>,
}

/// What follows a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The next record.
    Record,
    /// This many bytes that are no records.
    Skip(u64),
    /// This many bytes of formats.
    Formats(u64),
}

impl<'b> Session<'b> {
    /// An import into `builder`.
    pub fn new(builder: &'b mut TraceBuilder) -> Self {
        Session {
            events: Events::default(),
            features: Features::default(),
            decoder: Decoder::new(builder),
            counts: Counts::default(),
            damaged: 0,
            timeless: 0,
            guessed: false,
            recorder: None,
            stale: true,
            has_switches: false,
            unpacker: None,
        }
    }

    /// Takes one record, and says what follows it. The inner error is a sentence: what comes behind cannot be read.
    pub fn record(&mut self, r: Record) -> Result<Result<Then, String>> {
        self.counts.add(r.kind);
        if r.kind == kinds::SAMPLE {
            self.sample(r.misc, r.body);
            return Ok(Ok(Then::Record));
        }
        match r.kind {
            // Where events come late, no round is finished before the end.
            kinds::FINISHED_ROUND if Unpacker::IS_LATE && self.unpacker.is_some() => {}
            kinds::FINISHED_ROUND => self.decoder.kernel.sink.finish_round()?,
            kinds::COMPRESSED => return self.compressed(r.body),
            kinds::COMPRESSED2 => {
                let size = u64_at(r.body, 0).and_then(|n| usize::try_from(n).ok());
                match size.and_then(|n| r.body.get(8..)?.get(..n)) {
                    Some(packed) => return self.compressed(packed),
                    None => self.damaged += 1,
                }
            }
            kinds::AUXTRACE => return Ok(Ok(Then::Skip(u64_at(r.body, 0).unwrap_or(0)))),
            kinds::HEADER_TRACING_DATA => {
                return Ok(Ok(Then::Formats(u32_at(r.body, 0).unwrap_or(0).into())));
            }
            kinds::HEADER_ATTR | kinds::HEADER_FEATURE | kinds::HEADER_BUILD_ID | kinds::EVENT_UPDATE => {
                self.describe(r);
            }
            _ => {
                if self.side_band(r).is_none() {
                    self.damaged += 1;
                }
            }
        }
        Ok(Ok(Then::Record))
    }

    /// Formats of tracepoints, or any other feature.
    pub fn add_feature(&mut self, number: u64, section: &[u8]) {
        self.features.add(number, section, self.decoder.kernel.sink.builder.meta_mut());
        self.stale = true;
    }

    fn describe(&mut self, r: Record) {
        match r.kind {
            kinds::HEADER_ATTR => {
                let size = u32_at(r.body, 4).unwrap_or(0).max(super::attr::MIN_SIZE as u32) as usize;
                let ids = r.body.get(size..).unwrap_or(&[]).chunks_exact(8);
                if let Some(attr) = Attr::parse(r.body) {
                    self.events.add(attr, ids.filter_map(|id| u64_at(id, 0)).collect());
                }
            }
            kinds::HEADER_BUILD_ID => self.features.add_build_id(r.body, r.misc),
            kinds::HEADER_FEATURE => {
                if let (Some(number), Some(section)) = (u64_at(r.body, 0), r.body.get(8..)) {
                    self.add_feature(number, section);
                }
            }
            _ => {
                if let Some((id, name)) = updated_name(r.body) {
                    self.events.rename(id, name);
                }
            }
        }
        self.stale = true;
    }

    /// Names the events and decides what they are used for, if more became known about them.
    pub fn prepare(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        self.events.prepare(&self.features);
        self.decoder.kernel.calls.with_exits = self.events.any(|r| matches!(r, Role::Tracepoint(Tracepoint::SysExit)));
        self.has_switches = self.events.any(Role::is_switch);
    }

    fn compressed(&mut self, packed: &[u8]) -> Result<Result<Then, String>> {
        let mut unpacker = match self.unpacker.take() {
            Some(unpacker) => unpacker,
            None => match Unpacker::new() {
                Ok(unpacker) => unpacker,
                Err(e) => return Ok(Err(format!("zstd cannot be set up: {e}"))),
            },
        };
        let mut failed = Ok(());
        let unpacked = unpacker.unpack(packed, self.unpacked(&mut failed));
        self.unpacker = Some(unpacker);
        failed?;
        Ok(unpacked.map(|()| Then::Record))
    }

    /// Takes what was still in the compressed stream at its end. The inner error is a sentence.
    pub fn finish_compressed(&mut self) -> Result<Result<(), String>> {
        let Some(mut unpacker) = self.unpacker.take() else { return Ok(Ok(())) };
        let mut failed = Ok(());
        let unpacked = unpacker.finish(self.unpacked(&mut failed));
        failed.map(|()| unpacked)
    }

    fn unpacked(&mut self, failed: &mut Result<()>) -> impl FnMut(Record) {
        |record| {
            let nested = matches!(record.kind, kinds::COMPRESSED | kinds::COMPRESSED2);
            if failed.is_ok() && !nested {
                *failed = self.record(record).map(drop);
            }
        }
    }

    /// Records about threads, mappings and losses. `None` if it is damaged.
    fn side_band(&mut self, r: Record) -> Option<()> {
        let Record { kind, misc, body } = r;
        let stamp = self.events.stamp(body);
        let Decoder { kernel, losses, .. } = &mut self.decoder;
        match kind {
            kinds::COMM => {
                self.recorder = threads::recorder(body, stamp).or(self.recorder);
                threads::comm(body, misc, stamp, kernel)
            }
            kinds::FORK => threads::fork(body, stamp, kernel),
            kinds::EXIT => threads::exit(body, stamp, kernel),
            kinds::MMAP => mmap::mmap(body, misc, stamp, &self.features.build_ids, &mut kernel.sink),
            kinds::MMAP2 => mmap::mmap2(body, misc, stamp, &self.features.build_ids, &mut kernel.sink),
            kinds::LOST => losses.lost(body, stamp, &mut kernel.sink),
            kinds::LOST_SAMPLES => losses.lost_samples(body, misc, stamp, &mut kernel.sink),
            kinds::SWITCH_CPU_WIDE if !self.has_switches => {
                let thread = self.events.plan_of_other(body)?.stamp_thread(body)?;
                self.decoder.switch_record(body, misc, stamp, thread)
            }
            _ => Some(()),
        }
    }

    #[inline]
    fn sample(&mut self, misc: u16, body: &[u8]) {
        if self.stale {
            self.prepare();
        }
        let source = self.events.of_sample(body).and_then(|at| self.events.list.get_mut(at));
        let Some(source) = source else {
            self.damaged += 1;
            return;
        };
        source.count += 1;
        if matches!(source.role, Role::Unformatted) {
            self.guessed |= recognise(source, body);
        }
        let Source { plan, role, .. } = source;
        if matches!(role, Role::Counted) {
            return;
        }
        if !plan.has_time() {
            self.timeless += 1;
            return;
        }
        if samples::decode(plan, role, misc, body, &mut self.decoder).is_none() {
            self.damaged += 1;
        }
    }

    /// What lies behind could not be read.
    pub fn lose_rest(&mut self, count: u64) {
        self.decoder.kernel.sink.lost_behind(count, "records behind damage (estimated)");
    }
}

/// Finds out what an event without a format is used for, from a sample of it.
fn recognise(source: &mut Source, body: &[u8]) -> bool {
    let guess = source.plan.sample(body).and_then(|s| super::guess::guess(s.raw));
    let known = guess.is_some();
    let (name, role) = guess.unwrap_or(("", Role::Counted));
    source.role = role;
    if known {
        name.clone_into(&mut source.name);
    }
    known
}
