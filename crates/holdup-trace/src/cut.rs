//! A window of a trace as a trace of its own, in which every thread begins as it was.
//!
//! What a thread did when the window begins is told by the events before it. So a thread that waited then leaves its CPU once
//! more at the window's first instant, with the same call, lock and stack: whoever follows the events needs no other rule.

mod before;

use std::collections::BTreeMap;

use crate::filler::Filler;
use crate::tables::*;
use crate::{Error, EventTables, Nanos, Part, Result, SpanOutcome, Store, Table, ThreadIdx, Timestamp, Trace};
use before::Before;

/// A window's rows, in memory.
struct Cut<'a> {
    trace: &'a Trace,
    from: Timestamp,
    to: Timestamp,
}

/// The part of `trace` from `from` to `to`, whose time begins at `from`. Memory grows with the window; O(events of the trace).
///
/// # Errors
/// If the window holds no time of the trace, or if a table is damaged.
pub fn window(trace: &Trace, from: Timestamp, to: Timestamp) -> Result<Trace> {
    let end = Timestamp::from_nanos_since_start(trace.meta.duration_ns);
    let to = to.min(end);
    if from >= to {
        let (from, to, end) = (from.seconds(), to.seconds(), end.seconds());
        return Err(Error::Input(format!("the window {from}..{to} s holds nothing of a trace of {end} s")));
    }
    let cut = Cut { trace, from, to };
    let before = Before::new(trace, from)?;
    Ok(Trace {
        meta: cut.meta(),
        strings: trace.strings.clone(),
        stacks: trace.stacks.clone(),
        names: trace.names.clone(),
        threads: cut.threads(),
        locks: trace.locks.clone(),
        events: cut.events(&before)?,
    })
}

impl Cut<'_> {
    fn meta(&self) -> crate::Meta {
        let old = &self.trace.meta;
        let length = self.to.since(self.from);
        let share = length.seconds() / old.duration().seconds();
        let part = Part {
            from_ns: self.from.nanos() + old.part.as_ref().map_or(0, |p| p.from_ns),
            of_ns: old.part.as_ref().map_or(old.duration_ns, |p| p.of_ns),
        };
        crate::Meta {
            start_ns: old.start_ns + self.from.nanos(),
            duration_ns: length.0,
            recorder_cpu_s: old.recorder_cpu_s * share,
            recorder: old.recorder.share(share),
            stolen_cpu_s: old.stolen_cpu_s.map(|s| s * share),
            part: Some(part),
            ..old.clone()
        }
    }

    /// A time within the window, from its beginning; times before are its beginning.
    fn shift(&self, t: Timestamp) -> Timestamp {
        Timestamp::from_nanos_since_start(t.since(self.from).0)
    }

    fn end(&self) -> Timestamp {
        self.shift(self.to)
    }

    /// What is before the window is told by [`Before`], its first instant included; a window from the trace's start has nothing before.
    fn holds(&self, t: Timestamp) -> bool {
        (t > self.from || self.from == Timestamp::ZERO) && t <= self.to
    }

    fn threads(&self) -> Threads {
        let mut threads = Threads::default();
        for row in self.trace.threads.rows() {
            let end = if row.end == Timestamp::MAX { row.end } else { self.shift(row.end) };
            threads.push(Thread { start: self.shift(row.start), end, ..row });
        }
        threads
    }

    fn events(&self, before: &Before) -> Result<EventTables> {
        let old = &self.trace.events;
        // Each table has a rule of its own: a new one has to be thought of.
        let EventTables {
            switches,
            wakes,
            waits,
            samples,
            futexes,
            kernel_locks,
            block_ios,
            thread_names,
            listeners,
            subjects,
            standing_waits,
            placements,
            spans,
            quotas,
            images,
            losses,
        } = old;
        let at = |t| self.holds(t).then(|| self.shift(t));
        Ok(EventTables {
            switches: rows(switches, before.switches(), |r| Some(Switch { t: at(r.t)?, ..r }))?,
            wakes: rows(wakes, [], |r| Some(Wake { t: at(r.t)?, ..r }))?,
            waits: self.waits(waits)?,
            samples: rows(samples, [], |r| Some(Sample { t: at(r.t)?, ..r }))?,
            futexes: rows(futexes, before.futexes(), |r| Some(Futex { t: at(r.t)?, ..r }))?,
            kernel_locks: rows(kernel_locks, before.kernel_locks(), |r| Some(KernelLock { t: at(r.t)?, ..r }))?,
            block_ios: rows(block_ios, [], |r| Some(BlockIo { t: at(r.t)?, ..r }))?,
            thread_names: {
                let last = self.last_before(thread_names, |r| r.t, |r| r.thread)?;
                rows(thread_names, last.map(|r| ThreadName { t: Timestamp::ZERO, ..r }), |r| {
                    Some(ThreadName { t: at(r.t)?, ..r })
                })?
            },
            // Whoever was looked at once is known for the whole of the trace.
            listeners: rows(listeners, [], |r| Some(Listener { t: self.shift(r.t).min(self.end()), ..r }))?,
            subjects: rows(subjects, [], |r| Some(Subject { t: self.shift(r.t).min(self.end()), ..r }))?,
            standing_waits: rows(standing_waits, [], |r| {
                before.is_unseen(r.thread).then(|| StandingWait { t: self.shift(r.t).min(self.end()), ..r })
            })?,
            placements: {
                let last = self.last_before(placements, |r| r.t, |r| r.thread)?;
                rows(placements, last.map(|r| Placement { t: Timestamp::ZERO, from: Timestamp::ZERO, ..r }), |r| {
                    Some(Placement { t: at(r.t)?, from: self.shift(r.from), ..r })
                })?
            },
            spans: self.spans(spans)?,
            quotas: self.quotas(quotas)?,
            images: rows(images, [], |r| (r.t <= self.to).then(|| ImageRow { t: self.shift(r.t), ..r }))?,
            losses: rows(losses, [], |r| {
                let inside = r.from <= self.to && r.to >= self.from;
                inside.then(|| LossRow { from: self.shift(r.from), to: self.shift(r.to).min(self.end()), ..r })
            })?,
        })
    }

    /// A wait that began before the window begins with it, and one that is not over at its end is open there.
    fn waits(&self, waits: &Store<Waits>) -> Result<Store<Waits>> {
        let mut open = Vec::new();
        let inside = rows(waits, [], |r| {
            let begun = r.start <= self.to && (r.woken > self.from || self.from == Timestamp::ZERO);
            let row = Wait { t: self.shift(r.t), start: self.shift(r.start), woken: self.shift(r.woken), ..r };
            if begun && r.t > self.to {
                open.push(Wait { t: self.end(), woken: row.woken.min(self.end()), ..row });
            }
            (begun && r.t <= self.to).then_some(row)
        })?;
        open.sort_by_key(|r| (r.start, r.thread));
        let inside: Vec<Wait> = inside.iter().collect::<Result<_>>()?;
        collect(inside.into_iter().chain(open))
    }

    /// A span that lies in part outside is cut, and says so: it had begun before, or is open where its end is.
    fn spans(&self, spans: &Store<Spans>) -> Result<Store<Spans>> {
        let mut open = Vec::new();
        let inside = rows(spans, [], |r| {
            let outcome = if r.start < self.from { SpanOutcome::Begun } else { r.outcome };
            let before = self.from.since(r.start);
            let queued = Nanos(r.queued.0.saturating_sub(before.0));
            let row = Span { t: self.shift(r.t), start: self.shift(r.start), outcome, queued, ..r };
            if r.start <= self.to && r.t > self.to {
                open.push(Span { t: self.end(), end_thread: ThreadIdx::NONE, outcome: SpanOutcome::Open, ..row });
            }
            (r.t >= self.from && r.t <= self.to).then_some(row)
        })?;
        open.sort_by_key(|r| (r.start, r.thread));
        let inside: Vec<Span> = inside.iter().collect::<Result<_>>()?;
        collect(inside.into_iter().chain(open))
    }

    /// The counts of a group are those since the recording began; only the last row of each before the window counts.
    fn quotas(&self, quotas: &Store<Quotas>) -> Result<Store<Quotas>> {
        let last = self.last_before(quotas, |r| r.t, |r| r.group)?;
        rows(quotas, last.map(|r| Quota { t: Timestamp::ZERO, ..r }), |r| {
            self.holds(r.t).then(|| Quota { t: self.shift(r.t), ..r })
        })
    }

    /// The last row of each key that is not in the window but before it, in the order of the keys.
    fn last_before<T: Table, K: Ord>(
        &self,
        table: &Store<T>,
        time: impl Fn(&T::Row) -> Timestamp,
        key: impl Fn(&T::Row) -> K,
    ) -> Result<impl Iterator<Item = T::Row>> {
        let mut last: BTreeMap<K, T::Row> = BTreeMap::new();
        for row in table.iter() {
            let row = row?;
            if time(&row) <= self.from && !self.holds(time(&row)) {
                last.insert(key(&row), row);
            }
        }
        Ok(last.into_values())
    }
}

/// `first`, then what `pick` makes of the rows of `table`.
fn rows<T: Table>(
    table: &Store<T>,
    first: impl IntoIterator<Item = T::Row>,
    mut pick: impl FnMut(T::Row) -> Option<T::Row>,
) -> Result<Store<T>> {
    let mut filler = Filler::in_memory();
    first.into_iter().try_for_each(|row| filler.push(row))?;
    for row in table.iter() {
        if let Some(row) = pick(row?) {
            filler.push(row)?;
        }
    }
    filler.finish()
}

fn collect<T: Table>(rows: impl IntoIterator<Item = T::Row>) -> Result<Store<T>> {
    let mut filler = Filler::in_memory();
    rows.into_iter().try_for_each(|row| filler.push(row))?;
    filler.finish()
}
