//! The one way into a trace: events in, tables out.
//!
//! Producers push events as they read them, CPU by CPU, and call [`TraceBuilder::finish_round`] where the source
//! promises that nothing older than the previous round will follow. The builder sorts by time, gives reused tids
//! their own identity, resolves call chains in the address space of that moment, and fills the tables.

mod apply;
mod hide;
mod waits;

use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::dict::{Chains, StackInterner};
use crate::store::Filler;
use crate::tables::*;
use crate::trace::Trace;
use crate::{ChainId, Dictionary, Event, Image, LockId, LockKey, LossKind, Meta, RawStack, Result, SpaceId, StackId};
use crate::{Store, StringId, Symbolizer, ThreadIdx, Timestamp, Unwinder};

/// Where the tables are collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// In memory: for sources that are known to be small.
    Memory,
    /// In unnamed files in this folder: memory stays bounded whatever the source's size.
    Folder(PathBuf),
}

/// Builds a [`Trace`] from events.
pub struct TraceBuilder {
    pub(crate) meta: Meta,
    strings: Dictionary,
    chains: Chains,
    raw: FxHashMap<u64, (ChainId, Option<RawStack>)>,
    raw_of_chain: FxHashMap<ChainId, u64>,
    raw_chains: u32,
    /// Which raw stack has the copy of a shared user part.
    copies: FxHashMap<u64, u64>,
    /// Frames of user parts that several raw stacks share.
    user_parts: FxHashMap<u64, (Vec<u64>, bool)>,
    stack_of_chain: FxHashMap<(ChainId, SpaceId), (StackId, bool)>,
    stacks: StackInterner,
    locks: Locks,
    lock_ids: FxHashMap<LockKey, LockId>,
    images: Vec<Arc<Image>>,
    spaces: Vec<Vec<Arc<Image>>>,
    processes: FxHashMap<u32, SpaceId>,
    threads: Threads,
    by_tid: FxHashMap<u32, ThreadIdx>,
    waits: Vec<waits::Pending>,
    unwinder: Option<Box<dyn Unwinder>>,
    pending: Vec<(u64, Event)>,
    round_max: u64,
    horizon: u64,
    first: Option<u64>,
    last: u64,
    late: u64,
    unresolved: u64,
    out: Out,
    destination: Destination,
}

/// The tables that are filled row by row.
struct Out {
    switches: Filler<Switches>,
    wakes: Filler<Wakes>,
    waits: Filler<Waits>,
    samples: Filler<Samples>,
    futexes: Filler<Futexes>,
    kernel_locks: Filler<KernelLocks>,
    block_ios: Filler<BlockIos>,
    names: Filler<ThreadNames>,
    images: Filler<Images>,
    losses: Filler<Losses>,
}

fn filler<T: crate::Table>(to: &Destination) -> Result<Filler<T>> {
    match to {
        Destination::Memory => Ok(Filler::in_memory()),
        Destination::Folder(dir) => Filler::in_file(dir),
    }
}

impl Out {
    fn new(to: &Destination) -> Result<Self> {
        Ok(Out {
            switches: filler(to)?,
            wakes: filler(to)?,
            waits: filler(to)?,
            samples: filler(to)?,
            futexes: filler(to)?,
            kernel_locks: filler(to)?,
            block_ios: filler(to)?,
            names: filler(to)?,
            images: filler(&Destination::Memory)?,
            losses: filler(&Destination::Memory)?,
        })
    }
}

impl TraceBuilder {
    /// An empty builder. Fails if the folder of `to` cannot take temporary files.
    pub fn new(to: &Destination) -> Result<Self> {
        let mut builder = TraceBuilder {
            meta: Meta { version: crate::file::VERSION, ..Meta::default() },
            strings: Dictionary::default(),
            chains: Chains::default(),
            raw: FxHashMap::default(),
            raw_of_chain: FxHashMap::default(),
            raw_chains: 0,
            copies: FxHashMap::default(),
            user_parts: FxHashMap::default(),
            stack_of_chain: FxHashMap::default(),
            stacks: StackInterner::default(),
            locks: Locks::default(),
            lock_ids: FxHashMap::default(),
            images: Vec::new(),
            spaces: vec![Vec::new()],
            processes: FxHashMap::from_iter([(0, SpaceId::KERNEL)]),
            threads: Threads::default(),
            by_tid: FxHashMap::default(),
            waits: Vec::new(),
            unwinder: None,
            pending: Vec::new(),
            round_max: 0,
            horizon: 0,
            first: None,
            last: 0,
            late: 0,
            unresolved: 0,
            out: Out::new(to)?,
            destination: to.clone(),
        };
        let idle = builder.strings.intern("idle");
        builder.add_thread(0, 0, Timestamp::ZERO, ThreadIdx::NONE, idle);
        // Lock 0 is "no lock".
        builder.lock(LockKey { kind: crate::LockKind::Unknown, pid: 0, address: 0 });
        Ok(builder)
    }

    /// Uses `unwinder` for stacks given by [`define_raw_stack`](Self::define_raw_stack).
    pub fn set_unwinder(&mut self, unwinder: Box<dyn Unwinder>) {
        self.unwinder = Some(unwinder);
    }

    /// The facts about the trace; times, counts and CPUs are completed by [`finish`](Self::finish).
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.meta
    }

    /// Leaves the addresses of kernel code and data, and the kernel's code, out of the trace: for a file whose owner may
    /// not see them. Names stay, and so do distances from the start of a function.
    pub fn hide_kernel_addresses(&mut self) {
        self.meta.kernel_addresses_hidden = true;
    }

    /// Interns a string.
    pub fn string(&mut self, text: &str) -> StringId {
        self.strings.intern(text)
    }

    /// Counts one of the source's own records under its own name.
    pub fn count_native(&mut self, name: &str, by: u64) {
        match self.meta.native_events.get_mut(name) {
            Some(n) => *n += by,
            None => drop(self.meta.native_events.insert(name.to_owned(), by)),
        }
    }

    /// Interns a lock.
    pub fn lock(&mut self, key: LockKey) -> LockId {
        let locks = &mut self.locks;
        *self.lock_ids.entry(key).or_insert_with(|| {
            let LockKey { kind, pid, address } = key;
            crate::Table::push(locks, Lock { kind, pid, address, name: StringId::default() });
            LockId(locks.kind.len() as u32 - 1)
        })
    }

    /// Interns a complete call chain: kernel part and user part, each leaf first, callers as return addresses.
    pub fn chain(&mut self, pid: u32, kernel: &[u64], user: &[u64]) -> ChainId {
        self.chains.intern(pid, kernel, user)
    }

    /// The chain of a raw stack that the source names by `hash`; its bytes may be defined before or after.
    pub fn raw_chain(&mut self, hash: u64) -> ChainId {
        if hash == 0 {
            return ChainId::NONE;
        }
        if let Some(&(chain, _)) = self.raw.get(&hash) {
            return chain;
        }
        // Raw chains count down from the top, so that they never meet interned ones.
        self.raw_chains += 1;
        let chain = ChainId(u32::MAX - self.raw_chains);
        self.raw.insert(hash, (chain, None));
        self.raw_of_chain.insert(chain, hash);
        chain
    }

    /// Gives the raw stack of `hash`. The first definition stays.
    pub fn define_raw_stack(&mut self, hash: u64, stack: RawStack) {
        self.raw_chain(hash);
        if stack.user != 0 && !stack.bytes.is_empty() {
            self.copies.insert(stack.user, hash);
        }
        if let Some((_, slot)) = self.raw.get_mut(&hash) {
            slot.get_or_insert(stack);
        }
    }

    /// Registers an image; [`Event::Map`] says when a process maps it.
    pub fn image(&mut self, image: Image) -> u32 {
        self.images.push(Arc::new(image));
        self.images.len() as u32 - 1
    }

    /// Pushes an event with the source's clock in nanoseconds.
    pub fn push(&mut self, t: u64, event: Event) {
        self.round_max = self.round_max.max(t);
        self.pending.push((t, event));
    }

    /// Tells that no later event will be older than the previous round's newest.
    pub fn finish_round(&mut self) -> Result<()> {
        let horizon = std::mem::replace(&mut self.horizon, self.round_max);
        self.flush(horizon)
    }

    fn flush(&mut self, until: u64) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        // Stable, and fast on the few sorted runs that the CPUs' buffers are.
        self.pending.sort_by_key(|&(t, _)| t);
        let ready = self.pending.partition_point(|&(t, _)| t <= until);
        let mut pending = std::mem::take(&mut self.pending);
        for (t, event) in pending.drain(..ready) {
            self.apply(t, event)?;
        }
        self.pending = pending;
        Ok(())
    }

    /// Completes the trace. `symbolizer` names its frames; without one the frames stay addresses.
    pub fn finish(mut self, symbolizer: Option<&mut dyn Symbolizer>) -> Result<Trace> {
        self.flush(u64::MAX)?;
        let end = Timestamp::from_nanos_since_start(self.last);
        self.close_waits(end)?;
        if self.late > 0 {
            self.lose(LossKind::Events, "events out of order", end, self.late)?;
        }
        if self.unresolved > 0 {
            let what = "stacks (limited rate, or full buffer)";
            self.lose(LossKind::LimitedStacks, what, end, self.unresolved)?;
        }
        self.meta.start_ns = self.first.unwrap_or(0);
        self.meta.duration_ns = self.last.max(self.meta.duration_ns);
        self.name_processes();
        self.meta.notes.extend(self.unwinder.iter().flat_map(|u| u.notes()));
        let names = match symbolizer {
            Some(symbolizer) => {
                let with_kernel = !self.meta.kernel_addresses_hidden;
                crate::naming::name_frames(
                    &self.stacks.stacks,
                    &self.spaces,
                    &mut self.strings,
                    symbolizer,
                    with_kernel,
                )
            }
            None => crate::Names::default(),
        };
        if self.meta.kernel_addresses_hidden {
            hide::hide(&mut self, &names)?;
        }
        let out = self.out;
        Ok(Trace {
            meta: self.meta,
            strings: self.strings,
            stacks: self.stacks.stacks,
            names,
            threads: self.threads,
            locks: self.locks,
            switches: out.switches.finish()?,
            wakes: out.wakes.finish()?,
            waits: out.waits.finish()?,
            samples: out.samples.finish()?,
            futexes: out.futexes.finish()?,
            kernel_locks: out.kernel_locks.finish()?,
            block_ios: out.block_ios.finish()?,
            thread_names: out.names.finish()?,
            images: out.images.finish()?,
            losses: out.losses.finish()?,
        })
    }

    /// A process is named after its main thread.
    fn name_processes(&mut self) {
        let main: FxHashMap<u32, StringId> = (0..self.threads.tid.len())
            .filter(|&i| self.threads.tid[i] == self.threads.pid[i])
            .map(|i| (self.threads.pid[i], self.threads.name[i]))
            .collect();
        for i in 0..self.threads.tid.len() {
            let own = self.threads.name[i];
            self.threads.process[i] = main.get(&self.threads.pid[i]).copied().unwrap_or(own);
        }
    }

    /// Something is missing, somewhere before `to`.
    fn lose(&mut self, kind: LossKind, what: &str, to: Timestamp, count: u64) -> Result<()> {
        let what = self.strings.intern(what);
        self.out.losses.push(LossRow { kind, what, cpu: crate::Cpu::NONE, from: Timestamp::ZERO, to, count })
    }
}

impl<T: crate::Table> From<T> for Store<T> {
    fn from(table: T) -> Self {
        Store::from_table(table)
    }
}
