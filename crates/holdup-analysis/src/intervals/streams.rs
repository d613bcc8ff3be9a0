//! All event tables as one stream in time order.

use std::thread::Scope;

use holdup_trace::tables::{
    Futex, Futexes, KernelLock, KernelLocks, Sample, Samples, Switch, Switches, Wait as WaitRow, Waits, Wake, Wakes,
};
use holdup_trace::{Batches, Result, Trace};

use super::cursor::{Cursor, Place, Timed};

/// Who follows the events.
pub(super) trait Follower {
    fn loss(&mut self, index: usize);
    fn futex(&mut self, row: &Futex);
    fn kernel_lock(&mut self, row: &KernelLock);
    fn wake(&mut self, row: &Wake);
    fn switch(&mut self, row: &Switch);
    fn sample(&mut self, row: &Sample);
    fn wait(&mut self, row: &WaitRow);
}

/// The tables, opened.
pub(super) struct Tables<'a> {
    switches: Batches<'a, Switches>,
    wakes: Batches<'a, Wakes>,
    samples: Batches<'a, Samples>,
    waits: Batches<'a, Waits>,
    futexes: Batches<'a, Futexes>,
    kernel_locks: Batches<'a, KernelLocks>,
}

impl<'a> Tables<'a> {
    pub(super) fn open(trace: &'a Trace) -> Result<Self> {
        Ok(Tables {
            switches: trace.switches.batches()?,
            wakes: trace.wakes.batches()?,
            samples: trace.samples.batches()?,
            waits: trace.waits.batches()?,
            futexes: trace.futexes.batches()?,
            kernel_locks: trace.kernel_locks.batches()?,
        })
    }
}

impl Tables<'_> {
    /// How many rows there are in all.
    pub(super) fn rows(&self) -> u64 {
        let Tables { switches, wakes, samples, waits, futexes, kernel_locks } = self;
        let many = [switches.rows(), wakes.rows(), samples.rows(), waits.rows(), futexes.rows(), kernel_locks.rows()];
        many.iter().sum()
    }
}

/// A place in all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Places {
    losses: usize,
    switches: Place,
    wakes: Place,
    samples: Place,
    waits: Place,
    futexes: Place,
    kernel_locks: Place,
}

/// The tables merged by time; at one instant losses come first, then futexes, kernel locks, wake-ups, switches, samples
/// and waits.
pub(super) struct Streams<'a> {
    /// When each loss begins.
    losses: &'a [u64],
    next_loss: usize,
    futexes: Cursor<'a, Futexes>,
    kernel_locks: Cursor<'a, KernelLocks>,
    wakes: Cursor<'a, Wakes>,
    switches: Cursor<'a, Switches>,
    samples: Cursor<'a, Samples>,
    waits: Cursor<'a, Waits>,
    /// The first time of all but switches and wake-ups, which are nearly all there is.
    rare: u64,
}

impl<'a> Streams<'a> {
    /// From these places on.
    pub(super) fn at(tables: &'a Tables<'a>, losses: &'a [u64], places: &Places) -> Result<Self> {
        let streams = Streams {
            losses,
            next_loss: places.losses,
            futexes: Cursor::new(&tables.futexes, places.futexes)?,
            kernel_locks: Cursor::new(&tables.kernel_locks, places.kernel_locks)?,
            wakes: Cursor::new(&tables.wakes, places.wakes)?,
            switches: Cursor::new(&tables.switches, places.switches)?,
            samples: Cursor::new(&tables.samples, places.samples)?,
            waits: Cursor::new(&tables.waits, places.waits)?,
            rare: 0,
        };
        Ok(streams.ready())
    }

    /// Goes to these places.
    pub(super) fn seek(&mut self, places: &Places) -> Result<()> {
        self.next_loss = places.losses;
        self.futexes.seek(places.futexes)?;
        self.kernel_locks.seek(places.kernel_locks)?;
        self.wakes.seek(places.wakes)?;
        self.switches.seek(places.switches)?;
        self.samples.seek(places.samples)?;
        self.waits.seek(places.waits)?;
        self.rare = self.first_rare();
        Ok(())
    }

    /// From the beginning; what comes next is decoded by threads of `scope`.
    pub(super) fn ahead<'s>(tables: &'a Tables<'a>, losses: &'a [u64], scope: &'s Scope<'s, '_>) -> Result<Self>
    where
        'a: 's,
    {
        fn cursor<'a: 's, 's, T: Timed + Sync>(
            batches: &'a Batches<'a, T>,
            scope: &'s Scope<'s, '_>,
        ) -> Result<Cursor<'a, T>> {
            // One chunk alone is not worth a thread.
            if batches.len() > 1 { Cursor::ahead(batches, scope) } else { Cursor::new(batches, Place::default()) }
        }
        let streams = Streams {
            losses,
            next_loss: 0,
            futexes: cursor(&tables.futexes, scope)?,
            kernel_locks: cursor(&tables.kernel_locks, scope)?,
            wakes: cursor(&tables.wakes, scope)?,
            switches: cursor(&tables.switches, scope)?,
            samples: cursor(&tables.samples, scope)?,
            waits: cursor(&tables.waits, scope)?,
            rare: 0,
        };
        Ok(streams.ready())
    }

    fn ready(mut self) -> Self {
        self.rare = self.first_rare();
        self
    }

    pub(super) fn places(&self) -> Places {
        Places {
            losses: self.next_loss,
            switches: self.switches.place(),
            wakes: self.wakes.place(),
            samples: self.samples.place(),
            waits: self.waits.place(),
            futexes: self.futexes.place(),
            kernel_locks: self.kernel_locks.place(),
        }
    }

    /// Whether the next switch is the first of a chunk: who begins to read here decodes nothing that others decode.
    pub(super) fn is_at_chunk(&self) -> bool {
        self.switches.is_at_chunk()
    }

    /// Shows `follower` all events until `stop`, which is asked with the time of the next one. Returns that time; none at
    /// the end.
    pub(super) fn feed(
        &mut self,
        follower: &mut impl Follower,
        mut stop: impl FnMut(&Self, u64) -> bool,
    ) -> Result<Option<u64>> {
        loop {
            let (switch, wake) = (self.switches.time(), self.wakes.time());
            let first = switch.min(wake).min(self.rare);
            if first == u64::MAX {
                return Ok(None);
            }
            if stop(self, first) {
                return Ok(Some(first));
            }
            if self.rare == first && self.feed_early(follower, first)? {
            } else if wake == first {
                self.wakes.take()?.iter().for_each(|row| follower.wake(row));
            } else if switch == first {
                self.switches.take()?.iter().for_each(|row| follower.switch(row));
            } else {
                self.feed_late(follower, first)?;
            }
        }
    }

    fn first_rare(&self) -> u64 {
        let loss = self.losses.get(self.next_loss).copied().unwrap_or(u64::MAX);
        let early = loss.min(self.futexes.time()).min(self.kernel_locks.time());
        early.min(self.samples.time()).min(self.waits.time())
    }

    /// What comes before switches and wake-ups of the same time; whether there was any.
    fn feed_early(&mut self, follower: &mut impl Follower, first: u64) -> Result<bool> {
        if self.losses.get(self.next_loss) == Some(&first) {
            follower.loss(self.next_loss);
            self.next_loss += 1;
        } else if self.futexes.time() == first {
            self.futexes.take()?.iter().for_each(|row| follower.futex(row));
        } else if self.kernel_locks.time() == first {
            self.kernel_locks.take()?.iter().for_each(|row| follower.kernel_lock(row));
        } else {
            return Ok(false);
        }
        self.rare = self.first_rare();
        Ok(true)
    }

    fn feed_late(&mut self, follower: &mut impl Follower, first: u64) -> Result<()> {
        if self.samples.time() == first {
            self.samples.take()?.iter().for_each(|row| follower.sample(row));
        } else {
            self.waits.take()?.iter().for_each(|row| follower.wait(row));
        }
        self.rare = self.first_rare();
        Ok(())
    }
}
