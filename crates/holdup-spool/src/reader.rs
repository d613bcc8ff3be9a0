//! Reads a spool, complete or not, into a builder.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use crate::convert::Converter;
use crate::format::{Block, Footer, HEADER, Header, Kind, LONGEST, MAGIC, Packing, checksum};
use crate::pack::{unpack, unpack_words};
use crate::segments::segments;
use crate::side::Side;
use crate::stack::decode_stack;
use holdup_trace::{
    Cpu, Error, ExecEvent, ListenerEvent, Location, LossKind, LostEvent, MapEvent, NameEvent, Nanos, Note, ParentEvent,
    PlacementEvent, QuotaEvent, Result, SubjectEvent, TraceBuilder,
};

/// Records of a round that are held back until its end, so that threads are known before their first event.
const HELD_BYTES: usize = 64 << 20;

/// Whether a file that begins with `head` is a spool.
pub fn is_spool(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// Reads the spool at `path` into `builder`. What follows a damaged or incomplete block is left out and counted as a
/// loss; only a file that is no spool, or cannot be read, is an error.
pub fn read(path: &Path, builder: &mut TraceBuilder) -> Result<()> {
    let file = File::open(path).map_err(|e| Error::input(path, format_args!("cannot be opened: {e}")))?;
    read_opened(file, path, builder)
}

/// As [`read`], of a file that is open and may still be written by its recorder; `path` is its name in messages.
pub fn read_opened(file: File, path: &Path, builder: &mut TraceBuilder) -> Result<()> {
    let is_held = holdup_base::claim::is_held(&file);
    read_all(file, path, builder, is_held)
}

/// As [`read`], of a recording in several files, the segments of a flight recorder in their order; `path` is its name in
/// messages.
pub fn read_parts(parts: Vec<File>, path: &Path, builder: &mut TraceBuilder) -> Result<()> {
    let mut reader = Reader::default();
    for part in parts {
        reader.part(part, path, builder)?;
    }
    reader.finish(builder, false)
}

/// As [`read`], from anything that gives the spool's bytes, a pipe too.
pub fn read_from(from: impl Read, path: &Path, builder: &mut TraceBuilder) -> Result<()> {
    read_all(from, path, builder, false)
}

/// `is_held`: a recorder is still at work on the file.
fn read_all(from: impl Read, path: &Path, builder: &mut TraceBuilder, is_held: bool) -> Result<()> {
    let mut reader = Reader::default();
    reader.part(from, path, builder)?;
    if let Some(mark) = reader.ring.take() {
        let mut found = 0;
        for segment in segments(path, mark) {
            // The recorder may have removed it just now.
            if let Ok(part) = File::open(&segment) {
                reader.part(part, &segment, builder)?;
                found += 1;
            }
        }
        if found == 0 {
            return Err(Error::input(
                path,
                format_args!("is a flight recorder's, and its segments are gone: files of the mark {mark:016x}"),
            ));
        }
    }
    reader.finish(builder, is_held)
}

/// The blocks of a file.
struct Blocks<R> {
    input: R,
    /// Where the next block begins.
    offset: u64,
    stored: Vec<u8>,
}

impl<R: Read> Blocks<R> {
    /// The next block with its unpacked bytes, none at the end, or what is wrong.
    fn next(&mut self) -> Result<Option<(Block, Vec<u8>)>, String> {
        let mut header = [0; HEADER];
        match self.fill(&mut header)? {
            0 => return Ok(None),
            n if n < HEADER => return Err("a block's header is incomplete".into()),
            _ => {}
        }
        let block = Block::decode(&header).ok_or("there is no block")?;
        let mut stored = std::mem::take(&mut self.stored);
        stored.clear();
        stored.resize(block.stored, 0);
        let read = self.fill(&mut stored)?;
        self.stored = stored;
        if read < block.stored {
            return Err(format!("a block of {} bytes ends after {read}", block.stored));
        }
        if checksum(&header[..16], &self.stored) != block.crc {
            return Err("a block's checksum is wrong".into());
        }
        let payload = self.unpack(&block)?;
        self.offset += (HEADER + block.stored) as u64;
        Ok(Some((block, payload)))
    }

    fn unpack(&self, block: &Block) -> Result<Vec<u8>, String> {
        let length = block.raw.min(LONGEST);
        match block.packing {
            Packing::None => Ok(self.stored.clone()),
            Packing::Records => {
                unpack(&self.stored, length).ok_or_else(|| "a block of records cannot be unpacked".into())
            }
            Packing::Words => {
                unpack_words(&self.stored, length).ok_or_else(|| "a block of stacks cannot be unpacked".into())
            }
            Packing::Lz4 => lz4_flex::block::decompress(&self.stored, length)
                .map_err(|e| format!("a block cannot be unpacked: {e}")),
        }
    }

    /// Reads until `into` is full or the file ends.
    fn fill(&mut self, into: &mut [u8]) -> Result<usize, String> {
        let mut n = 0;
        while n < into.len() {
            match self.input.read(&mut into[n..]) {
                Ok(0) => break,
                Ok(read) => n += read,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(format!("cannot be read: {e}")),
            }
        }
        Ok(n)
    }
}

/// What is kept between blocks.
#[derive(Default)]
struct Reader {
    converter: Converter,
    held: Vec<(u16, Vec<u8>)>,
    held_bytes: usize,
    header: Option<Header>,
    footer: Option<Footer>,
    /// The mark of the segments, where the recording is elsewhere.
    ring: Option<u64>,
    damaged: bool,
    mappings: u64,
    stacks: u64,
}

impl Reader {
    /// Reads a spool, or a segment of one: each stands for itself, whatever became of the one before.
    fn part(&mut self, from: impl Read, path: &Path, builder: &mut TraceBuilder) -> Result<()> {
        let mut input = BufReader::with_capacity(1 << 20, from);
        let mut magic = [0; MAGIC.len()];
        if input.read_exact(&mut magic).is_err() || !is_spool(&magic) {
            return Err(Error::input(path, "is no spool of holdup"));
        }
        let mut blocks = Blocks { input, offset: MAGIC.len() as u64, stored: Vec::new() };
        loop {
            match blocks.next() {
                Ok(Some((block, payload))) => self.block(builder, block, payload)?,
                Ok(None) => return Ok(()),
                Err(what) => {
                    self.cut(builder, blocks.offset, &what);
                    return Ok(());
                }
            }
        }
    }

    fn block(&mut self, builder: &mut TraceBuilder, block: Block, payload: Vec<u8>) -> Result<()> {
        match block.kind {
            Kind::Header => {
                // What a footer said of a segment's end is not that of the recording's.
                self.footer = None;
                self.begin(builder, serde_json::from_slice(&payload).unwrap_or_default());
            }
            Kind::Ring => self.ring = payload.first_chunk::<8>().map(|mark| u64::from_le_bytes(*mark)),
            Kind::Footer => self.footer = serde_json::from_slice(&payload).ok(),
            Kind::Records => {
                self.converter.learn_forks(&payload);
                self.held_bytes += payload.len();
                self.held.push((block.cpu, payload));
                if self.held_bytes > HELD_BYTES {
                    self.convert_held(builder);
                }
            }
            Kind::Stacks => {
                let mut rest = &payload[..];
                while let Some((hash, stack)) = decode_stack(&mut rest) {
                    self.stacks += 1;
                    builder.define_raw_stack(hash, stack);
                }
            }
            Kind::Side => {
                let mut rest = &payload[..];
                while let Some(item) = Side::decode(&mut rest) {
                    self.side(builder, item);
                }
            }
            Kind::Round => {
                self.convert_held(builder);
                builder.finish_round()?;
            }
        }
        Ok(())
    }

    /// A spool has one header; one that was put together from segments has several, and the first counts.
    fn begin(&mut self, builder: &mut TraceBuilder, header: Header) {
        if self.header.is_some() {
            return;
        }
        let meta = builder.meta_mut();
        meta.format = "holdup".into();
        meta.host = header.host.clone();
        meta.cpus = header.cpus;
        meta.hooks = header.hooks.clone();
        meta.min_wait_ns = header.min_wait_ns;
        meta.time_of_day_ns = header.time_of_day_ns;
        meta.sample_period_ns = header.sample_period_ns;
        meta.command = header.command.clone();
        meta.focus_pids = header.focus_pids.clone();
        meta.recorder_pid = header.recorder_pid;
        self.header = Some(header);
    }

    fn side(&mut self, builder: &mut TraceBuilder, item: Side) {
        match item {
            Side::Name { t, pid, tid, name } => {
                self.converter.learn(tid, pid);
                let name = builder.string(&name);
                builder.push(self.converter.when(tid, t), NameEvent { pid, tid, name });
            }
            Side::Map { t, image } => {
                self.mappings += 1;
                let pid = image.pid;
                let image = builder.image(image);
                builder.push(self.converter.when(pid, t), MapEvent { pid, image });
            }
            Side::Exec { t, pid } => builder.push(t, ExecEvent { pid }),
            Side::Listener { t, pid, parent, listens } => {
                builder.push(self.converter.when(pid, t), ListenerEvent { pid, parent, listens });
            }
            Side::Subject { t, pid, what } => {
                let what = builder.string(&what);
                builder.push(self.converter.when(pid, t), SubjectEvent { pid, what });
            }
            Side::Parent { t, pid, parent } => {
                builder.push(self.converter.when(pid, t), ParentEvent { pid, parent });
            }
            Side::Inner { t: _, pid, tid, inner } => self.converter.learn_inner(tid, pid, inner),
            Side::Placement { t, tid, cpus, nice, policy, group, span } => {
                let (cpus, group, span) = (builder.string(&cpus), builder.string(&group), Nanos(span));
                builder.push(self.converter.when(tid, t), PlacementEvent { tid, cpus, nice, policy, group, span });
            }
            Side::Quota { t, group, limit: [quota_us, period_us], counts: [periods, throttled, throttled_us] } => {
                let group = builder.string(&group);
                builder.push(t, QuotaEvent { group, quota_us, period_us, periods, throttled, throttled_us });
            }
            Side::Probe { .. } => self.converter.probes.learn(builder, &item),
            Side::Function { t: _, number, name, file, line } => {
                let location = Location { function: name, module: file.clone(), file, line, offset: 0 };
                builder.interpreted(number, location);
            }
            Side::Lost { kind, t, cpu, span, count, what } => {
                let what = builder.string(&what);
                builder.push(t, LostEvent { kind, cpu: Cpu(cpu), span: Nanos(span), count, what });
            }
        }
    }

    fn convert_held(&mut self, builder: &mut TraceBuilder) {
        self.held_bytes = 0;
        for (cpu, records) in std::mem::take(&mut self.held) {
            self.converter.convert(builder, cpu, &records);
        }
    }

    fn cut(&mut self, builder: &mut TraceBuilder, offset: u64, what: &str) {
        self.damaged = true;
        let text = format!("the spool is cut at byte {offset}: {what}; what was recorded before is used");
        builder.meta_mut().notes.push(text.into());
    }

    fn finish(mut self, builder: &mut TraceBuilder, is_held: bool) -> Result<()> {
        self.convert_held(builder);
        let last = self.converter.last;
        if self.damaged {
            let what = builder.string("end of the recording (spool cut)");
            builder.push(last, LostEvent { kind: LossKind::Events, cpu: Cpu::NONE, span: Nanos(0), count: 1, what });
        } else if self.footer.is_none() {
            let note = match is_held {
                true => "the recording goes on: this is what was there when it was read",
                false => "the recording was ended from outside; at most its last 20 ms are missing",
            };
            builder.meta_mut().notes.push(note.into());
        }
        self.converter.count(builder);
        let probes = &self.converter.probes;
        let lost = [
            (probes.others, "arguments of spans (too many different ones)"),
            (probes.unknown, "spans of unknown probes"),
        ];
        for (count, what) in lost.into_iter().filter(|(count, _)| *count > 0) {
            let (kind, count) = (LossKind::Spans, u32::try_from(count).unwrap_or(u32::MAX));
            let what = builder.string(what);
            builder.push(last, LostEvent { kind, cpu: Cpu::NONE, span: Nanos(0), count, what });
        }
        for (name, n) in [("mmap", self.mappings), ("stack", self.stacks)] {
            builder.count_native(name, n);
        }
        let start = self.header.map_or(0, |h| h.start_ns);
        let footer = self.footer.unwrap_or_default();
        let meta = builder.meta_mut();
        meta.exit_code = footer.exit_code;
        meta.recorder_cpu_s = footer.recorder.cpu_s();
        meta.recorder = footer.recorder;
        meta.stolen_cpu_s = footer.stolen_cpu_s;
        meta.notes.extend(footer.notes.into_iter().map(Note::from));
        if start > 0 && footer.end_ns > start {
            meta.duration_ns = footer.end_ns - start;
        }
        builder.finish_round()
    }
}
