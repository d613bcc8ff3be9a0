//! The whole trace as a row of parts, each of which can be made anew at any time.
//!
//! Waits are known when they are over, and blame is followed backwards. So the events are followed once from beginning to
//! end, which leaves, at every border, what is needed to begin there, and of the future only what reaches back: how the
//! waits ended that cross a border, and what was learned late. Then a [`Reader`] gives the steps of any part,
//! in any order and by several threads, in memory that does not grow with the trace.
//!
//! ```text
//!   events    ────────────┬────────────┬────────────┬──────────
//!   first pass  ────────▶ │ ─────────▶ │ ─────────▶ │ ───────▶     borders, crossing waits, facts
//!   chunk(1)              │ ─────────▶ │                           steps, waits, samples
//! ```

mod extras;
mod known;

use std::ops::Range;

use holdup_trace::tables::StandingWait;
use holdup_trace::{Result, StringId, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use super::borders::{Borders, open_set};
use super::crossing::Crossing;
use super::facts::{self, Facts};
use super::losses::{self, Loss};
use super::machine::Machine;
use super::made::Made;
use super::output::Output;
use super::part::{Chunk, Part, open_waits};
use super::prepare::{Dictionary, join_rewaits};
use super::releases::Releases;
use super::standing::{self, Standing};
use super::state::{State, Step};
use super::streams::{Streams, Tables};
use super::tally::Tally;
use super::{Health, OwnerSpan};
use crate::affinity::Affinity;
use crate::classify::Classifier;
use crate::focus::Focus;
use crate::quota::Quotas;
use crate::servers::Servers;
use crate::subjects::Subjects;

/// Events in a part, at least: its steps and waits take some 20 MB.
const PART: usize = 1 << 18;
/// Events in a part for each thread: borders cost 16 bytes a thread.
const PART_PER_THREAD: usize = 16;
/// The share of a part's events at one instant from which on it may end within that: logs whose clock went back have millions there.
const CROWDED: usize = 4;

/// A trace, ready to be followed part by part.
pub struct Timeline<'a> {
    dictionary: Dictionary<'a>,
    tables: Tables<'a>,
    losses: Vec<Loss>,
    loss_starts: Vec<u64>,
    parts: Vec<Part>,
    /// Events in a part, at least.
    part: usize,
    crossing: Crossing,
    facts: Facts,
    made: Made,
    servers: Servers,
    subjects: Subjects,
    standing: Standing,
    /// Of those, whichever are not over at the end.
    stood: Vec<StandingWait>,
    /// On which CPUs each thread may run.
    pub affinity: Affinity,
    /// How their control groups are limited.
    pub quotas: Quotas,
    /// Number of CPUs.
    pub cpus: usize,
    /// The trace's length in nanoseconds.
    pub end: u64,
    /// Nanoseconds during which n threads of the focus ran at once.
    pub parallelism: Vec<u64>,
    /// CPU nanoseconds of every thread.
    pub ran: Vec<u64>,
    /// How often each thread's state changed.
    pub changes: Vec<u32>,
    /// What was wrong.
    pub health: Health,
}

impl<'a> Timeline<'a> {
    /// Follows the events of `trace` for the first time. O(events) time; memory O(threads) for each part, and as many
    /// parts as 16 events for each thread, and at least a quarter of a million, allow.
    ///
    /// # Errors
    /// If a table is damaged.
    pub fn new(trace: &'a Trace, focus: &Focus, classifier: &'a Classifier<'a>) -> Result<Self> {
        let part = PART.max(PART_PER_THREAD * trace.threads.tid.len());
        Self::with_parts(trace, focus, classifier, part)
    }

    /// With parts of at least so many events.
    ///
    /// # Errors
    /// If a table is damaged.
    pub fn with_parts(trace: &'a Trace, focus: &Focus, classifier: &'a Classifier<'a>, part: usize) -> Result<Self> {
        let losses = losses::spans(trace)?;
        let mut timeline = Timeline {
            dictionary: Dictionary::new(trace, classifier),
            tables: Tables::open(trace)?,
            loss_starts: losses.iter().map(|l| l.from).collect(),
            losses,
            parts: vec![Part::default()],
            part,
            crossing: Crossing::default(),
            facts: Facts::new(trace.locks.pid.len(), trace.threads.tid.len()),
            made: Made::default(),
            affinity: Affinity::new(trace),
            quotas: Quotas::new(trace),
            servers: Servers::of(trace)?,
            subjects: Subjects::of(trace)?,
            standing: Standing::of(trace)?,
            stood: Vec::new(),
            cpus: usize::from(trace.meta.cpus),
            end: trace.meta.duration_ns,
            parallelism: Vec::new(),
            ran: Vec::new(),
            changes: Vec::new(),
            health: Health::default(),
        };
        timeline.follow(focus)?;
        Ok(timeline)
    }

    /// How many parts there are.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether there is no part; there always is one.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// How many waits there are.
    pub fn waits(&self) -> u64 {
        self.facts.waits
    }

    /// The number of the first wait that begins in part `index`: they are numbered in the order of their starts. O(parts).
    pub fn first_wait(&self, index: usize) -> u64 {
        self.parts[..index].iter().map(|part| part.begun).sum()
    }

    /// The part in which wait `number` begins, if there is one. O(parts).
    pub fn part_of_wait(&self, number: u64) -> Option<usize> {
        let mut behind = 0;
        self.parts.iter().position(|part| {
            behind += part.begun;
            number < behind
        })
    }

    /// The part in which an instant lies, in nanoseconds since the trace's start. O(log parts).
    pub fn part_at(&self, t: u64) -> usize {
        self.parts.partition_point(|part| part.from <= t).saturating_sub(1)
    }

    /// Part `last` and those before it that have some `events` with it; all parts, if they have no more.
    pub fn up_to(&self, last: usize, events: usize) -> Range<usize> {
        let most = (events / self.part).max(1);
        if self.len() <= most { 0..self.len() } else { (last + 1).saturating_sub(most)..last + 1 }
    }

    /// The span of a part in nanoseconds.
    pub fn span(&self, index: usize) -> (u64, u64) {
        (self.parts[index].from, self.parts.get(index + 1).map_or(self.end, |p| p.from))
    }

    /// The greatest number of the focus's threads that ran at once for at least 1 % of the time that any ran.
    pub fn peak_parallelism(&self) -> usize {
        super::peak(&self.parallelism)
    }

    fn follow(&mut self, focus: &Focus) -> Result<()> {
        let (trace, part) = (self.dictionary.trace, self.part);
        let (tables, losses, starts) = (&self.tables, &self.losses, &self.loss_starts);
        // What is but one part is made here, too.
        let whole = tables.rows() + (losses.len() as u64) < part as u64;
        let mut machine = Machine::new(trace, losses, Output::new(0, self.end, whole));
        self.standing.begin(&mut machine);
        machine.tally = Some(Tally::new(focus, trace.threads.tid.len(), self.cpus));
        let mut borders = Borders {
            dictionary: &self.dictionary,
            crossing: &mut self.crossing,
            facts: &mut self.facts,
            parts: &mut self.parts,
            releases: Releases::new(trace.locks.pid.len()),
        };
        let several = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
        std::thread::scope(|scope| {
            let mut streams = match several {
                true => Streams::ahead(tables, starts, scope)?,
                false => Streams::at(tables, starts, &Default::default())?,
            };
            loop {
                let (mut seen, mut together, mut last) = (0, 0, u64::MAX);
                let border = streams.feed(&mut machine, |streams, t| {
                    together = if t == last { together + 1 } else { 0 };
                    // Events of one instant stay together, as long as memory allows.
                    let full = (streams.is_at_chunk() || seen >= 2 * part) && t > last;
                    let stop = seen >= part && (full || together > part / CROWDED);
                    (seen, last) = (seen + 1, t);
                    stop
                })?;
                match border {
                    Some(t) => borders.cross(&mut machine, t, streams.places()),
                    None => break,
                }
            }
            Ok::<_, holdup_trace::Error>(())
        })?;
        let owners = whole.then(|| machine.owners.clone());
        borders.finish(&mut machine);
        let mut tally = machine.tally.take().expect("was put there");
        for (now, ran) in machine.threads.iter().zip(&mut tally.ran) {
            let runs = matches!(now.state, State::Running(_));
            *ran += if runs { self.end.saturating_sub(now.since) } else { 0 };
        }
        tally.advance(self.end);
        self.stood = self.standing.open(&machine);
        self.facts.hangs = standing::hangs(&tally.parallelism);
        self.facts.settle(std::mem::take(&mut tally.samples), &self.servers, &self.dictionary);
        (self.ran, self.changes) = (tally.ran, tally.changes);
        (self.parallelism, self.health) = (tally.parallelism, tally.health);
        super::count_losses(trace, &mut self.health);
        // A damaged file may have more rows than it says.
        if let Some(owners) = owners.filter(|_| self.parts.len() == 1) {
            machine.owners = owners;
            self.made.put(0, self.complete(0, machine));
        }
        Ok(())
    }

    /// The threads of a focus that goes on which waited all the time, and where; none of one that hangs, which these waits hold up.
    pub(crate) fn standing(&self) -> &[StandingWait] {
        if self.facts.hangs { &[] } else { &self.stood }
    }

    /// Keeps a part for who wants it next, if there is room.
    pub(crate) fn keep(&self, index: usize, chunk: Chunk) {
        self.made.put(index, chunk);
    }

    /// No part is wanted any more.
    pub(crate) fn forget(&self) {
        self.made.clear();
    }

    /// For making parts one after the other.
    pub fn reader(&self) -> Reader<'_, 'a> {
        Reader { timeline: self, streams: None }
    }

    fn chunk(&self, index: usize, streams: &mut Streams, memory: Option<Chunk>) -> Result<Chunk> {
        let part = &self.parts[index];
        let (from, to) = self.span(index);
        let last = index + 1 == self.parts.len();
        let mut out = memory.map_or_else(|| Output::new(from, self.end, true), Chunk::into_output);
        out.restart(from, true);
        let mut machine = part.resume(self.dictionary.trace, &self.losses, &self.standing, out);
        let next = self.parts.get(index + 1).map(|part| part.places);
        streams
            .feed(&mut machine, |streams, t| t >= to && next.is_some_and(|next| t > to || streams.places() == next))?;
        if last {
            machine.forget_early_wakes();
        }
        self.prepare_waits(index, &mut machine);
        Ok(self.complete(index, machine))
    }

    /// What `machine` has made of part `index`, all of whose waits are prepared.
    fn complete(&self, index: usize, mut machine: Machine) -> Chunk {
        let (from, to) = self.span(index);
        let last = index + 1 == self.parts.len();
        machine.out.waits.iter_mut().for_each(|wait| self.facts.complete(wait, &self.dictionary));
        let mut chunk = Chunk::new(&self.parts[index], to);
        chunk.leaving = open_waits(&machine.threads).collect();
        chunk.last = machine.threads.iter().map(|t| t.state).collect();
        self.add_late(index, &mut machine.out, &mut chunk.last);
        let known = |s: &OwnerSpan| facts::is_known(s, &self.dictionary);
        chunk.owners = machine.owners.take_ended();
        chunk.owners.retain(known);
        chunk.owners_at_end = machine.owners.present(to);
        chunk.owners_at_end.retain(known);
        chunk.releasers = self.releasers(index, &machine.out, &chunk.last);
        chunk.lost_at_end = if last { vec![false; self.cpus] } else { losses::at(&self.losses, self.cpus, to) };
        chunk.extras = self.extras(from, if last { u64::MAX } else { to }, &chunk);
        chunk.out = machine.out;
        chunk
    }

    /// What can be said of the waits of part `index` without the rest of the trace; those that end in a later one are taken from there.
    fn prepare_waits(&self, index: usize, machine: &mut Machine) {
        let open = open_set(machine);
        let waits = &mut machine.out.waits;
        let leaving = self.parts.get(index + 1).map_or(&[][..], |p| &p.carried);
        let mut may_go_on = false;
        for (i, wait) in waits.iter_mut().enumerate() {
            if leaving.is_empty() || !open[i] {
                self.dictionary.prepare(wait);
            }
            may_go_on |= wait.may_go_on();
        }
        for (i, (_, number)) in open_waits(&machine.threads).zip(leaving) {
            waits[i as usize] = *self.crossing.get(*number);
        }
        if may_go_on {
            let beyond = self.parts[index].beyond.iter().map(|(thread, n)| (*thread, *self.crossing.get(*n)));
            let all = 0..waits.len();
            join_rewaits(waits, all, &beyond.collect());
        }
    }

    /// Puts in what later parts have told of this one.
    fn add_late(&self, index: usize, out: &mut Output, last: &mut [State]) {
        let late = &self.parts[index].late;
        if !late.is_empty() {
            let leaving = self.parts.get(index + 1).map_or(&[][..], |p| &p.carried);
            let here = last.iter().filter_map(|state| state.wait());
            let here: FxHashMap<u32, u32> = leaving.iter().map(|(_, number)| *number).zip(here).collect();
            let index_of = |number: u32| here.get(&number).copied().unwrap_or(0);
            for change in late {
                let (before, after) = (change.before.with_wait(index_of), change.after.with_wait(index_of));
                last[change.thread.index()] = after;
                if change.t >= out.from {
                    out.inserted.push(Step::new(change.t, change.thread, before));
                }
            }
        }
        out.inserted.sort_by_key(|s| s.t);
    }

    /// Whether the thread belongs to a server; `None` where that is not known.
    pub(crate) fn is_server(&self, thread: ThreadIdx) -> Option<bool> {
        self.servers.is_server(thread)
    }

    /// What the thread's process works on; `None` where that is not known.
    pub(crate) fn subject(&self, thread: ThreadIdx) -> Option<StringId> {
        self.subjects.of_thread(thread)
    }
}

/// Makes parts of a timeline, each with the memory of the one before.
pub struct Reader<'t, 'a> {
    timeline: &'t Timeline<'a>,
    streams: Option<Streams<'t>>,
}

impl Reader<'_, '_> {
    /// Part `index`, in the memory of an older one if there is any. O(its events + threads).
    ///
    /// # Errors
    /// If a table is damaged.
    pub fn chunk(&mut self, index: usize, memory: Option<Chunk>) -> Result<Chunk> {
        if let Some(made) = self.timeline.made.take(index) {
            return Ok(made);
        }
        let Timeline { tables, loss_starts, parts, .. } = self.timeline;
        let places = &parts[index].places;
        let streams = match self.streams.take() {
            Some(mut streams) => {
                streams.seek(places)?;
                streams
            }
            None => Streams::at(tables, loss_starts, places)?,
        };
        self.timeline.chunk(index, self.streams.insert(streams), memory)
    }
}
