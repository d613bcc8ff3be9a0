//! Takes records one by one and turns them into events.

use holdup_trace::{ExecEvent, LockId, Result, SampleEvent, TraceBuilder};
use rustc_hash::FxHashMap;

use super::attr::Attr;
use super::bytes::{u32_at, u64_at};
use super::chain::Splitter;
use super::compressed::Unpacker;
use super::events::{Events, Role, Source};
use super::features::{Features, updated_name};
use super::irq::{Contexts, UNKNOWN_SOURCE};
use super::kinds::{self, Counts};
use super::lost::{self, Losses, cpu};
use super::plan::{Plan, Sample};
use super::reader::Record;
use super::sink::Sink;
use super::syscalls::Calls;
use super::threads::Threads;
use super::{finish, mmap};

/// What is known while records are read: everything but the events' descriptions.
pub struct State<'b> {
    /// Where events go.
    pub sink: Sink<'b>,
    /// Which threads are known.
    pub threads: Threads,
    /// What was lost.
    pub losses: Losses,
    /// Which handlers run.
    pub contexts: Contexts,
    /// Which system calls run.
    pub calls: Calls,
    /// For call chains.
    pub splitter: Splitter,
    /// The kernel lock that each thread contends for.
    pub contended: FxHashMap<u32, (u64, LockId)>,
    /// Whether perf and the scheduler call the same thread by different numbers.
    pub other_namespace: bool,
}

/// An import under way.
pub struct Session<'b> {
    /// The trace's events.
    pub events: Events,
    /// What the feature sections say.
    pub features: Features,
    /// What is known while records are read.
    pub state: State<'b>,
    /// How many records of each kind.
    pub counts: Counts,
    /// Records that are too short, or whose event, time or CPU cannot be.
    pub damaged: u64,
    /// Samples of events without a time.
    pub timeless: u64,
    /// Whether events were recognised by their shape.
    pub guessed: bool,
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
        let state = State {
            sink: Sink::new(builder),
            threads: Threads::new(),
            losses: Losses::default(),
            contexts: Contexts::default(),
            calls: Calls::default(),
            splitter: Splitter::default(),
            contended: FxHashMap::default(),
            other_namespace: false,
        };
        Session {
            events: Events::default(),
            features: Features::default(),
            state,
            counts: Counts::default(),
            damaged: 0,
            timeless: 0,
            guessed: false,
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
            kinds::FINISHED_ROUND => self.state.sink.finish_round()?,
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
        self.features.add(number, section, self.state.sink.builder.meta_mut());
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
        self.state.calls.with_exits = self.events.any(|r| matches!(r, Role::SysExit));
        self.has_switches = self.events.any(|r| matches!(r, Role::Switch(_)));
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
        let unpacked = unpacker.unpack(packed, |record| {
            let nested = matches!(record.kind, kinds::COMPRESSED | kinds::COMPRESSED2);
            if failed.is_ok() && !nested {
                failed = self.record(record).map(drop);
            }
        });
        self.unpacker = Some(unpacker);
        failed?;
        Ok(unpacked.map(|()| Then::Record))
    }

    /// Records about threads, mappings and losses. `None` if it is damaged.
    fn side_band(&mut self, r: Record) -> Option<()> {
        let Record { kind, misc, body } = r;
        let stamp = self.events.stamp(body);
        let State { sink, threads, losses, .. } = &mut self.state;
        match kind {
            kinds::COMM => threads.comm(body, misc, stamp, sink),
            kinds::FORK => threads.fork(body, stamp, sink),
            kinds::EXIT => threads.exit(body, stamp, sink),
            kinds::MMAP => mmap::mmap(body, misc, stamp, &self.features.build_ids, sink),
            kinds::MMAP2 => mmap::mmap2(body, misc, stamp, &self.features.build_ids, sink),
            kinds::LOST => losses.lost(body, stamp, sink),
            kinds::LOST_SAMPLES => losses.lost_samples(body, misc, stamp, sink),
            kinds::SWITCH_CPU_WIDE if !self.has_switches => {
                let thread = self.events.plan_of_other(body)?.stamp_thread(body)?;
                self.state.switch_record(body, misc, stamp, thread)
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
        if decode(plan, role, misc, body, &mut self.state).is_none() {
            self.damaged += 1;
        }
    }

    /// Completes the import: counts, losses, notes.
    pub fn finish(self) -> Result<()> {
        finish::finish(self)
    }

    /// What lies behind could not be read.
    pub fn lose_rest(&mut self, count: u64) {
        lost::behind(count, "records behind damage (estimated)", &mut self.state.sink);
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

/// Decodes a sample and pushes what its role asks for. `None` if it is damaged.
#[inline]
fn decode(plan: &Plan, role: &Role, misc: u16, body: &[u8], state: &mut State) -> Option<()> {
    let s = plan.sample(body)?;
    if !state.sink.is_plausible(s.time) || (plan.has_cpu() && s.cpu >= super::MAX_CPUS.into()) {
        return None;
    }
    state.losses.seen(s.cpu, s.time);
    match role {
        Role::Switch(fields) => state.switch(fields, plan, misc, &s),
        Role::Wake(fields) => state.wake(fields, plan, misc, &s),
        Role::CpuTime => state.cpu_time(plan, misc, &s),
        other => state.rarer(other, &s),
    }
}

impl State<'_> {
    fn cpu_time(&mut self, plan: &Plan, misc: u16, s: &Sample) -> Option<()> {
        let chain = self.splitter.chain(plan, misc, s, true, self.sink.builder);
        // Outside of any process nobody can say whose time it was.
        if s.tid != u32::MAX {
            self.sink.timed(s.time, SampleEvent { cpu: cpu(s.cpu), tid: s.tid, ip: s.ip, chain });
        }
        Some(())
    }

    fn rarer(&mut self, role: &Role, s: &Sample) -> Option<()> {
        match role {
            Role::SysEnter(number) => self.calls.seen(s.time, s.tid, i16::try_from(number.low(s.raw)).unwrap_or(-1)),
            Role::SysExit => self.calls.seen(s.time, s.tid, -1),
            Role::LockBegin(fields) => return self.lock(fields, true, s),
            Role::LockEnd(fields) => return self.lock(fields, false, s),
            Role::Block(fields, issue) => return self.block(fields, *issue, s),
            Role::InterruptBegin(what, number) => {
                let source = number.and_then(|n| u16::try_from(n.low(s.raw)).ok()).unwrap_or(UNKNOWN_SOURCE);
                self.contexts.begin(s.cpu, *what, source);
            }
            Role::InterruptEnd(what) => self.contexts.end(s.cpu, *what),
            Role::Exec if s.pid != u32::MAX => self.sink.timed(s.time, ExecEvent { pid: s.pid }),
            _ => {}
        }
        Some(())
    }
}
