//! All event tables as one stream in time order.

use holdup_trace::tables::{Futex, Sample, Switch, Wait as WaitRow, Wake};
use holdup_trace::{Cpu, LockId, Result, ThreadIdx, Trace};

use crate::merge::Cursor;

pub(super) enum Row {
    Loss(usize),
    Futex(Futex),
    Owner(LockId, ThreadIdx, u64),
    Switch(Switch),
    Wake(Wake),
    Sample(Sample),
    Wait(WaitRow),
}

/// The tables merged by time; at one instant in the order of the fields.
pub(super) struct Streams<'a> {
    losses: Vec<(u64, usize)>,
    next_loss: usize,
    futexes: Cursor<'a, holdup_trace::tables::Futexes>,
    kernel_locks: Cursor<'a, holdup_trace::tables::KernelLocks>,
    wakes: Cursor<'a, holdup_trace::tables::Wakes>,
    switches: Cursor<'a, holdup_trace::tables::Switches>,
    samples: Cursor<'a, holdup_trace::tables::Samples>,
    waits: Cursor<'a, holdup_trace::tables::Waits>,
}

impl<'a> Streams<'a> {
    pub(super) fn new(trace: &'a Trace) -> Result<Self> {
        Ok(Streams {
            losses: spans_of_loss(trace)?.iter().enumerate().map(|(i, s)| (s.1, i)).collect(),
            next_loss: 0,
            futexes: Cursor::new(&trace.futexes, |c, i| c.t[i])?,
            kernel_locks: Cursor::new(&trace.kernel_locks, |c, i| c.t[i])?,
            wakes: Cursor::new(&trace.wakes, |c, i| c.t[i])?,
            switches: Cursor::new(&trace.switches, |c, i| c.t[i])?,
            samples: Cursor::new(&trace.samples, |c, i| c.t[i])?,
            waits: Cursor::new(&trace.waits, |c, i| c.t[i])?,
        })
    }

    pub(super) fn next(&mut self) -> Result<Option<Row>> {
        let (switch, wake) = (self.switches.time(), self.wakes.time());
        let loss = self.losses.get(self.next_loss).map_or(u64::MAX, |l| l.0);
        let early = loss.min(self.futexes.time()).min(self.kernel_locks.time());
        let late = self.samples.time().min(self.waits.time());
        let first = switch.min(wake).min(early).min(late);
        if first == u64::MAX {
            return Ok(None);
        }
        if early == first {
            return self.next_early(first, loss).map(Some);
        }
        let row = if wake == first {
            self.wakes.take()?.map(Row::Wake)
        } else if switch == first {
            self.switches.take()?.map(Row::Switch)
        } else if self.samples.time() == first {
            self.samples.take()?.map(Row::Sample)
        } else {
            self.waits.take()?.map(Row::Wait)
        };
        Ok(row)
    }

    fn next_early(&mut self, first: u64, loss: u64) -> Result<Row> {
        if loss == first {
            self.next_loss += 1;
            return Ok(Row::Loss(self.losses[self.next_loss - 1].1));
        }
        if self.futexes.time() == first
            && let Some(row) = self.futexes.take()?
        {
            return Ok(Row::Futex(row));
        }
        let row = self.kernel_locks.take()?;
        let seen = row.filter(|r| r.begin && r.owner.is_real());
        Ok(seen.map_or(Row::Owner(LockId::NONE, ThreadIdx::NONE, first), |r| Row::Owner(r.lock, r.owner, first)))
    }
}

/// Spans of lost events by CPU, merged where they overlap, sorted by start: (cpu, from, to). What else is lost says
/// nothing of what threads did.
pub(super) fn spans_of_loss(trace: &Trace) -> Result<Vec<(Cpu, u64, u64)>> {
    let mut spans = Vec::new();
    for row in trace.losses.iter() {
        let row = row?;
        if row.cpu != Cpu::NONE && row.kind.is_of_events() {
            spans.push((row.cpu, row.from.nanos(), row.to.nanos()));
        }
    }
    spans.sort_unstable();
    spans.dedup_by(|next, kept| {
        let overlap = next.0 == kept.0 && next.1 <= kept.2;
        if overlap {
            kept.2 = kept.2.max(next.2);
        }
        overlap
    });
    spans.sort_by_key(|s| s.1);
    Ok(spans)
}
