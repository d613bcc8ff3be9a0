//! All streams in the order of time: each is sorted in itself, so the earliest of their next events comes next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use holdup_trace::{Error, Result};
use rustc_hash::FxHashMap;

use super::events::Events;
use super::schema::{Instance, Schema};
use super::stream::{Head, Next, Packet, Source};
use crate::folder::Member;
use crate::linux::Instant;

/// Events of a round: nothing older follows, so the builder need not hold more.
const ROUND: u32 = 1 << 15;

/// What came of a stream.
#[derive(Debug)]
pub struct Outcome {
    /// The file.
    pub name: String,
    /// What was wrong first.
    pub damage: Option<String>,
    /// Bytes that were left out for that.
    pub left_out: u64,
}

/// Streams under way.
pub struct Merge<'s, 'e, 'b> {
    schema: &'s Schema,
    members: &'s [Member],
    open: Vec<Option<(Source<'s>, Head)>>,
    next: BinaryHeap<Reverse<(u64, usize)>>,
    events: &'e mut Events<'b>,
    round: u32,
    /// The last packet of streams whose file came to its end: another file may go on with them.
    ended: FxHashMap<Instance, Packet>,
    /// Events of each kind.
    pub counts: Vec<u64>,
    /// Events whose fields or times cannot be.
    pub damaged: u64,
    /// What came of the streams in which something was wrong.
    pub outcomes: Vec<Outcome>,
}

impl<'s, 'e, 'b> Merge<'s, 'e, 'b> {
    /// The streams in `members`, none of them read yet.
    pub fn new(schema: &'s Schema, members: &'s [Member], events: &'e mut Events<'b>) -> Self {
        Merge {
            schema,
            members,
            open: Vec::new(),
            next: BinaryHeap::new(),
            events,
            round: 0,
            ended: FxHashMap::default(),
            counts: vec![0; schema.kinds],
            damaged: 0,
            outcomes: Vec::new(),
        }
    }

    /// Reads all streams to their ends. A file is open only from its beginning to its end: there may be thousands.
    pub fn run(&mut self) -> Result<()> {
        self.open.resize_with(self.members.len(), || None);
        for (at, member) in self.members.iter().enumerate() {
            let begin = self.source(member)?.begin().map_err(|e| Error::input(member.path(), e))?;
            self.next.push(Reverse((begin, at)));
        }
        while let Some(Reverse((_, at))) = self.next.pop() {
            match self.open.get_mut(at).and_then(Option::take) {
                Some((source, head)) => self.drain(at, source, head)?,
                None => {
                    let mut source = self.source(&self.members[at])?;
                    source.begin().map_err(|e| Error::input(self.members[at].path(), e))?;
                    source.before = source.instance.and_then(|instance| self.ended.get(&instance).copied());
                    match self.step(at, &mut source)? {
                        Some(head) => self.wait(at, source, head),
                        None => self.close(at, &mut source),
                    }
                }
            }
        }
        Ok(())
    }

    fn source(&self, member: &'s Member) -> Result<Source<'s>> {
        Ok(Source::new(self.schema, member.open()?, member.size))
    }

    /// Takes events of a stream as long as they are the earliest of all.
    fn drain(&mut self, at: usize, mut source: Source<'s>, mut head: Head) -> Result<()> {
        let limit = self.next.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
        loop {
            self.event(at, &mut source, &head)?;
            match self.step(at, &mut source)? {
                Some(next) if next.time <= limit => head = next,
                Some(next) => {
                    self.wait(at, source, next);
                    return Ok(());
                }
                None => {
                    self.close(at, &mut source);
                    return Ok(());
                }
            }
        }
    }

    fn event(&mut self, at: usize, source: &mut Source<'s>, head: &Head) -> Result<()> {
        let read = source.body(head).map_err(|e| Error::input(self.members[at].path(), e))?;
        let Some(event) = read else { return Ok(()) };
        if let Some(count) = self.counts.get_mut(event.kind as usize) {
            *count += 1;
        }
        let now = Instant { time: head.time, cpu: source.packet.cpu };
        if self.events.take(now, &event.used, source).is_none() {
            self.damaged += 1;
        }
        self.round += 1;
        if self.round == ROUND {
            self.round = 0;
            self.events.kernel.sink.finish_round()?;
        }
        Ok(())
    }

    /// The stream's next event; what packets say of losses is told on the way.
    fn step(&mut self, at: usize, source: &mut Source<'s>) -> Result<Option<Head>> {
        loop {
            match source.next().map_err(|e| Error::input(self.members[at].path(), e))? {
                Next::Event(head) => return Ok(Some(head)),
                Next::Gap(gap) => self.events.gap(&gap),
                Next::End => return Ok(None),
            }
        }
    }

    fn wait(&mut self, at: usize, source: Source<'s>, head: Head) {
        self.next.push(Reverse((head.time, at)));
        if let Some(place) = self.open.get_mut(at) {
            *place = Some((source, head));
        }
    }

    fn close(&mut self, at: usize, source: &mut Source<'s>) {
        if let (Some(instance), Some(last)) = (source.instance, source.before) {
            self.ended.insert(instance, last);
        }
        if source.damage.is_none() && source.left_out == 0 {
            return;
        }
        let lost = source.events_left_out();
        self.events.kernel.sink.lost_anywhere(lost, "events in damaged packets (estimated)");
        let (damage, left_out) = (source.damage.take(), source.left_out);
        self.outcomes.push(Outcome { name: self.members[at].name.clone(), damage, left_out });
    }
}
