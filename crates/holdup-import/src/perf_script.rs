//! What `perf script` prints, with its default fields and most others: people paste it, and keep it instead of the perf.data.
//!
//! An event is a line, and its call chain is one line for each frame, up to an empty line. Frames bring their names along.
//! Times are printed in microseconds (or nanoseconds with `--ns`), in order. Without `-F +pid` only threads are named, not their
//! processes.

mod chain;
mod events;
mod line;

use std::io::{BufRead, BufReader, Read};

use holdup_trace::{Error, Note, NoteKind, Result, TraceBuilder};
use rustc_hash::FxHashMap;

use crate::input::Input;
use crate::linux::kernel::Kernel;
use chain::Chain;
use line::Head;

/// Longer lines are no lines of perf.
const MAX_LINE: u64 = 1 << 16;
/// Events of a round.
const ROUND: u32 = 1 << 15;

/// Whether a text that begins so is what `perf script` prints: all of its lines are of that shape, and there are several.
pub(crate) fn is_perf_script(head: &[u8]) -> bool {
    if head.starts_with(b"# ========\n# captured on") {
        return true;
    }
    // A line may be cut at the end of what is looked at, and a character with it.
    let whole = head.iter().rposition(|&b| b == b'\n').and_then(|end| head.get(..end)).unwrap_or(&[]);
    let Ok(text) = std::str::from_utf8(whole) else { return false };
    let (mut events, mut frames) = (0, 0);
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        if line::head(line).is_some() {
            events += 1;
        } else if events > 0 && line.starts_with([' ', '\t']) && line::frame(line).is_some() {
            frames += 1;
        } else {
            return false;
        }
    }
    events > 1 || (events == 1 && frames > 1)
}

/// An import under way.
struct Script<'b> {
    kernel: Kernel<'b>,
    chain: Chain,
    /// Processes of threads, as records tell them.
    processes: FxHashMap<u32, u32>,
    counts: FxHashMap<String, u64>,
    /// The event whose samples are CPU time, and its period in nanoseconds.
    cpu_time: Option<String>,
    period: u64,
    /// Whether the machine is none of x86-64.
    is_other_machine: bool,
    /// The latest time, and whether all came in order.
    latest: u64,
    is_sorted: bool,
    round: u32,
    /// Lines that are of no known shape, and events whose text is not what it should be.
    strange: u64,
    damaged: u64,
    with_process: bool,
}

pub(crate) fn import(input: Input, builder: &mut TraceBuilder) -> Result<()> {
    let path = input.path().to_owned();
    "perf-script".clone_into(&mut builder.meta_mut().format);
    let mut script = Script::new(builder);
    let mut lines = BufReader::with_capacity(1 << 17, input.into_stream()?);
    let (mut line, mut first) = (Vec::new(), String::new());
    loop {
        line.clear();
        let read = lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        let len = read.map_err(|e| Error::input(&path, format!("cannot be read: {e}")))?;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        let is_event = len > 0 && !text.starts_with('#') && line::head(text).is_some();
        // An event is complete when the next one begins: its frames come behind it.
        if (is_event || len == 0) && !first.is_empty() {
            script.complete(&first)?;
            first.clear();
        }
        match () {
            () if len == 0 => break,
            () if is_event => text.clone_into(&mut first),
            () => script.other(text, &first),
        }
    }
    script.finish();
    Ok(())
}

impl<'b> Script<'b> {
    fn new(builder: &'b mut TraceBuilder) -> Self {
        Script {
            kernel: Kernel::new(builder),
            chain: Chain::default(),
            processes: FxHashMap::default(),
            counts: FxHashMap::default(),
            cpu_time: None,
            period: 0,
            is_other_machine: false,
            latest: 0,
            is_sorted: true,
            round: 0,
            strange: 0,
            damaged: 0,
            with_process: false,
        }
    }

    /// The process whose addresses an event's frames are: the printed one, that of a record, or the thread itself.
    fn process(&self, h: &Head) -> u32 {
        h.pid.or_else(|| self.processes.get(&h.tid).copied()).unwrap_or(h.tid)
    }

    /// A line that begins no event; `first` is the first line of the one at hand.
    fn other(&mut self, text: &str, first: &str) {
        if let Some(described) = text.strip_prefix('#') {
            self.describe(described);
        } else if let (Some(h), Some(frame)) = (line::head(first), line::frame(text)) {
            let pid = self.process(&h);
            self.chain.push(&frame, pid, self.kernel.sink.builder);
        } else if !text.trim().is_empty() {
            self.strange += 1;
        }
    }

    /// `# hostname : vm`
    fn describe(&mut self, text: &str) {
        let Some((name, value)) = text.split_once(" : ") else { return };
        let value = value.trim();
        let meta = self.kernel.sink.builder.meta_mut();
        match name.trim() {
            "hostname" => value.clone_into(&mut meta.host.name),
            "os release" => value.clone_into(&mut meta.host.os),
            "cpudesc" => value.clone_into(&mut meta.host.cpu),
            "nrcpus online" => meta.cpus = value.parse().unwrap_or(0).min(crate::linux::cpus::MAX_CPUS),
            "arch" => {
                self.is_other_machine = value != "x86_64";
                value.clone_into(&mut meta.host.arch);
            }
            _ => {}
        }
    }

    /// The event that began with the line `first` has all of its frames.
    fn complete(&mut self, first: &str) -> Result<()> {
        let Some(h) = line::head(first) else { return Ok(()) };
        self.count(&h);
        let pid = self.process(&h);
        self.with_process |= h.pid.is_some();
        // Without call chains (-G) the instruction stands behind the event.
        if let Some(frame) = line::frame(h.text).filter(|_| !h.event.contains(':')) {
            self.chain.push(&frame, pid, self.kernel.sink.builder);
        }
        if self.event(&h, pid).is_none() {
            self.damaged += 1;
        }
        self.chain.clear();
        self.is_sorted &= h.time >= self.latest;
        self.latest = self.latest.max(h.time);
        self.round += 1;
        if self.round == ROUND && self.is_sorted {
            self.round = 0;
            self.kernel.sink.finish_round()?;
        }
        Ok(())
    }

    /// Records are counted by their kind, as perf names them.
    fn count(&mut self, h: &Head) {
        let name = h.event.strip_prefix("PERF_RECORD_");
        let name =
            name.map_or(h.event, |r| r.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or(r));
        match self.counts.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(name.to_owned(), 1)),
        }
    }

    fn finish(mut self) {
        if self.damaged > 0 {
            self.kernel.sink.lost_anywhere(self.damaged, "events of another form");
        }
        self.kernel.finish();
        let builder = self.kernel.sink.builder;
        for (name, &count) in &self.counts {
            builder.count_native(name, count);
        }
        let meta = builder.meta_mut();
        meta.sample_period_ns = self.period;
        meta.hooks = self.counts.keys().cloned().collect();
        meta.hooks.sort();
        let has = |names: &[&str]| names.iter().any(|&name| self.counts.contains_key(name));
        if self.damaged > 0 {
            meta.notes.push(
                format!("{} events have a text that they should not have, and were left out", self.damaged).into(),
            );
        }
        if self.strange > 0 {
            meta.notes
                .push(format!("{} lines are none that perf script prints, and were left out", self.strange).into());
        }
        if !self.with_process {
            meta.notes.push(
                "only threads are named, not their processes; print with perf script -F +pid,+ip,+sym,+dso".into(),
            );
        }
        if !has(&["sched:sched_switch"]) {
            let what =
                format!("no sched_switch in this trace, so waits are unknown; record with {}", holdup_base::PERF);
            meta.notes.push(Note::new(NoteKind::MissingEvents, what));
        } else if !has(&["sched:sched_waking", "sched:sched_wakeup"]) {
            let what = "no sched_waking in this trace, so wakers are unknown; record with -e sched:sched_waking too";
            meta.notes.push(Note::new(NoteKind::MissingEvents, what));
        }
    }
}
