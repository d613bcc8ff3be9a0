//! The one way into a trace: events in, tables out.
//!
//! Producers push events as they read them, CPU by CPU, and call [`TraceBuilder::finish_round`] where the source
//! promises that nothing older than the previous round will follow. The builder sorts by time, gives reused tids
//! their own identity, resolves call chains in the address space of that moment, and fills the tables.

mod assembly;
mod clock;
mod hide;
mod interpreted;
mod locks;
mod out;
mod raw;
mod sorter;
mod spaces;
mod spans;
mod stacks;
mod threads;
mod tids;
mod waits;

use crate::naming::Given;
use crate::trace::Trace;
use crate::{ChainId, Event, Image, Location, LockId, LockKey, Meta, RawStack};
use crate::{Result, Store, StringId, Symbolizer, Unwinder};
use assembly::Assembly;
pub use out::Destination;
use out::Maker;
use sorter::Sorter;

/// Builds a [`Trace`] from events.
pub struct TraceBuilder {
    sorter: Sorter,
    trace: Assembly,
    tables: Maker,
}

impl TraceBuilder {
    /// An empty builder. Fails if the folder of `to` cannot take temporary files.
    pub fn new(to: &Destination) -> Result<Self> {
        let tables = Maker::new(to);
        Ok(TraceBuilder { sorter: Sorter::default(), trace: Assembly::new(&tables)?, tables })
    }

    /// Uses `unwinder` for stacks given by [`define_raw_stack`](Self::define_raw_stack).
    pub fn set_unwinder(&mut self, unwinder: Box<dyn Unwinder>) {
        self.trace.stacks.unwinder = Some(unwinder);
    }

    /// The facts about the trace; times, counts and CPUs are completed by [`finish`](Self::finish).
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.trace.meta
    }

    /// Leaves the addresses of kernel code and data, and the kernel's code, out of the trace: for a file whose owner may
    /// not see them. Names stay, and so do distances from the start of a function.
    pub fn hide_kernel_addresses(&mut self) {
        self.trace.meta.kernel_addresses_hidden = true;
    }

    /// Interns a string.
    pub fn string(&mut self, text: &str) -> StringId {
        self.trace.strings.intern(text)
    }

    /// Counts one of the source's own records under its own name.
    pub fn count_native(&mut self, name: &str, by: u64) {
        let counts = &mut self.trace.meta.native_events;
        match counts.get_mut(name) {
            Some(n) => *n += by,
            None => drop(counts.insert(name.to_owned(), by)),
        }
    }

    /// Interns a lock.
    pub fn lock(&mut self, key: LockKey) -> LockId {
        self.trace.locks.intern(key)
    }

    /// Interns a complete call chain: kernel part and user part, each leaf first, callers as return addresses.
    pub fn chain(&mut self, pid: u32, kernel: &[u64], user: &[u64]) -> ChainId {
        self.trace.stacks.chain(pid, kernel, user)
    }

    /// The chain of a raw stack that the source names by `hash`; its bytes may be defined before or after.
    pub fn raw_chain(&mut self, hash: u64) -> ChainId {
        self.trace.stacks.raw.chain(hash)
    }

    /// Gives the raw stack of `hash`. The first definition stays.
    pub fn define_raw_stack(&mut self, hash: u64, stack: RawStack) {
        self.trace.stacks.raw.define(hash, stack);
    }

    /// Registers an image; [`MapEvent`](crate::MapEvent) says when a process maps it.
    pub fn image(&mut self, image: Image) -> u32 {
        self.trace.spaces.announce(image)
    }

    /// The text of an interned string.
    pub fn text(&self, id: StringId) -> &str {
        self.trace.strings.get(id)
    }

    /// What the source itself calls the code at `address` in process `pid` (0: the kernel), the innermost inlined function first.
    /// The address is that of a frame: a caller's lies inside its call. It holds before what a symbolizer knows; the first
    /// word stays.
    pub fn name(&mut self, pid: u32, address: u64, locations: Vec<Location>) {
        self.trace.given.entry((pid, address)).or_insert(locations);
    }

    /// What a function of an interpreter is, by the number in [`InterpretedFrame`](crate::InterpretedFrame)s, before or after
    /// stacks with it. The first word stays.
    pub fn interpreted(&mut self, function: u32, location: Location) {
        self.name(0, crate::run_time::interpreted_address(function), vec![location]);
    }

    /// The events that are held because older ones may still come, in no order: a source that tells late what belongs to them
    /// completes them here before it finishes their round. O(events held).
    pub fn held_mut(&mut self) -> impl Iterator<Item = (u64, &mut Event)> {
        self.sorter.held_mut()
    }

    /// Pushes an event with the source's clock in nanoseconds.
    #[inline]
    pub fn push(&mut self, t: u64, event: impl Into<Event>) {
        self.sorter.push(t, event.into());
    }

    /// Tells that no later event will be older than the previous round's newest.
    pub fn finish_round(&mut self) -> Result<()> {
        let TraceBuilder { sorter, trace, .. } = self;
        sorter.finish_round(|t, event| trace.apply(t, event))
    }

    /// Completes the trace. `symbolizer` names its frames; without one the frames stay addresses.
    pub fn finish(self, symbolizer: Option<&mut dyn Symbolizer>) -> Result<Trace> {
        let TraceBuilder { mut sorter, mut trace, tables } = self;
        sorter.finish(|t, event| trace.apply(t, event))?;
        trace.close()?;
        trace.meta.notes.extend(trace.stacks.unwinder.iter().flat_map(|u| u.notes()));
        // Names come after all strings of the events.
        let with_kernel = !trace.meta.kernel_addresses_hidden;
        let (stacks, spaces) = (&trace.stacks.interner.stacks, trace.spaces.all());
        let given = Given { names: std::mem::take(&mut trace.given), processes: trace.spaces.processes() };
        let names = crate::naming::name_frames(stacks, spaces, &given, &mut trace.strings, symbolizer, with_kernel);
        if trace.meta.kernel_addresses_hidden {
            hide::hide(&mut trace, &names, &tables)?;
        }
        let threads = trace.threads.finish(&trace.strings);
        Ok(Trace {
            meta: trace.meta,
            strings: trace.strings,
            stacks: trace.stacks.interner.stacks,
            names,
            threads,
            locks: trace.locks.rows,
            events: trace.out.finish()?,
        })
    }
}

impl<T: crate::Table> From<T> for Store<T> {
    fn from(table: T) -> Self {
        Store::from_table(table)
    }
}
