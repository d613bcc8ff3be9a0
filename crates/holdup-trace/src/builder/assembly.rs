//! Applies events in time order: identities, address spaces, rows.

use rustc_hash::{FxHashMap, FxHashSet};

use super::clock::Clock;
use super::locks::LockTable;
use super::out::Maker;
use super::spaces::Spaces;
use super::spans::OpenSpans;
use super::stacks::CallStacks;
use super::threads::ThreadTable;
use super::waits::OpenWaits;
use crate::event::*;
use crate::event_tables::Fillers;
use crate::tables::*;
use crate::{
    ChainId, Cpu, Dictionary, Leaf, Location, LockId, LossKind, Meta, Result, SpaceId, StackId, StringId, ThreadIdx,
    Timestamp,
};

/// A trace that comes into being.
pub(super) struct Assembly {
    pub meta: Meta,
    pub strings: Dictionary,
    pub clock: Clock,
    pub threads: ThreadTable,
    pub spaces: Spaces,
    pub stacks: CallStacks,
    pub locks: LockTable,
    /// What the source calls addresses of processes.
    pub given: FxHashMap<(u32, u64), Vec<Location>>,
    pub waits: OpenWaits,
    /// Who waited when the trace began, and may be told to do so again at its end.
    pub stood: FxHashSet<ThreadIdx>,
    pub spans: OpenSpans,
    /// What processes work on that are known to, by their main thread.
    pub working: FxHashMap<ThreadIdx, StringId>,
    pub out: Fillers,
}

impl Assembly {
    pub fn new(tables: &Maker) -> Result<Self> {
        let (mut strings, mut threads) = (Dictionary::default(), ThreadTable::default());
        threads.add(0, 0, Timestamp::ZERO, ThreadIdx::NONE, strings.intern("idle"));
        Ok(Assembly {
            meta: Meta { version: crate::file::VERSION, ..Meta::default() },
            strings,
            clock: Clock::default(),
            threads,
            spaces: Spaces::default(),
            working: FxHashMap::default(),
            stacks: CallStacks::default(),
            locks: LockTable::default(),
            given: FxHashMap::default(),
            waits: OpenWaits::default(),
            stood: FxHashSet::default(),
            spans: OpenSpans::default(),
            out: Fillers::new(tables)?,
        })
    }

    /// Applies an event; `clock` is its time by the source's clock, in nanoseconds.
    pub fn apply(&mut self, clock: u64, event: Event) -> Result<()> {
        let t = self.clock.at(clock);
        match event {
            Event::Switch(e) => self.switch(t, &e),
            Event::Wake(e) => self.wake(t, &e),
            Event::Blocked(e) => self.blocked(e),
            Event::Standing(e) => self.standing(t, e),
            Event::Futex(e) => self.futex(t, &e),
            Event::KernelLock(e) => self.kernel_lock(t, &e),
            Event::Sample(e) => self.sample(t, &e),
            Event::BlockIo(e) => self.block_io(t, &e),
            Event::Listener(e) => self.listener(t, e),
            Event::Subject(e) => self.subject(t, e),
            Event::Lost(e) => self.lost(t, &e),
            Event::Map(e) => self.map(t, e),
            Event::Fork(e) => self.fork(t, e),
            Event::Name(e) => self.name(t, e),
            Event::Process(ProcessEvent { pid, name }) => {
                self.threads.name_process(pid, name);
                Ok(())
            }
            Event::Parent(ParentEvent { pid, parent }) => {
                let (thread, parent) = (self.thread(pid), self.thread(parent));
                self.threads.descend(thread, parent);
                Ok(())
            }
            Event::Placement(e) => self.placement(t, &e),
            Event::Quota(e) => self.quota(t, &e),
            Event::Span(e) => self.span(t, &e),
            Event::SpanEdge(e) => {
                let thread = self.thread(e.tid);
                let over = self.spans.edge(t, thread, e);
                self.put_spans(over)
            }
            Event::Exec(ExecEvent { pid }) => {
                self.spaces.exec(pid);
                self.exec(t, pid)
            }
            Event::Exit(ExitEvent { tid }) => {
                let thread = self.thread(tid);
                self.threads.end(thread, t);
                let over = self.spans.exit(t, thread);
                self.put_spans(over)
            }
        }
    }

    fn switch(&mut self, t: Timestamp, e: &SwitchEvent) -> Result<()> {
        let &SwitchEvent { cpu, state, io_wait, syscall, .. } = e;
        self.see_cpu(cpu);
        let (prev, next) = (self.thread(e.prev), self.thread(e.next));
        let stack = self.stack(e.chain, prev);
        let lock = if e.lock == LockId::NONE && state.is_blocked() { self.waits.contended(prev) } else { e.lock };
        let row = Switch { t, cpu, prev, state, next, io_wait, syscall, lock, stack };
        self.waits.begin(&row);
        self.waits.end(t, next);
        self.out.switches.push(row)
    }

    fn wake(&mut self, t: Timestamp, e: &WakeEvent) -> Result<()> {
        let &WakeEvent { cpu, context, source, target, lock, .. } = e;
        let (waker, wakee) = (self.thread(e.waker), self.thread(e.wakee));
        let stack = self.stack(e.chain, waker);
        let row = Wake { t, cpu, waker, context, source, wakee, target, lock, stack };
        self.waits.woken(&row);
        self.out.wakes.push(row)
    }

    fn blocked(&mut self, e: BlockedEvent) -> Result<()> {
        let thread = self.thread(e.tid);
        let stack = self.stack(e.chain, thread);
        match self.waits.blocked(thread, stack, e.lock) {
            Some(row) => self.out.waits.push(row),
            None => Ok(()),
        }
    }

    fn standing(&mut self, t: Timestamp, e: StandingEvent) -> Result<()> {
        let StandingEvent { tid, syscall, lock, owner, chain } = e;
        let (thread, owner) = (self.thread(tid), self.threads.known(owner));
        if self.waits.has_seen(thread) {
            return self.blocked(BlockedEvent { tid, chain, lock: LockId::NONE });
        }
        if !self.stood.insert(thread) {
            return Ok(());
        }
        let stack = self.stack(chain, thread);
        self.out.standing_waits.push(StandingWait { t, thread, syscall, lock, owner, stack })
    }

    fn futex(&mut self, t: Timestamp, e: &FutexEvent) -> Result<()> {
        let &FutexEvent { lock, operation, timed, .. } = e;
        let (thread, owner) = (self.thread(e.tid), self.threads.known(e.owner));
        self.out.futexes.push(Futex { t, thread, lock, owner, operation, timed })
    }

    fn kernel_lock(&mut self, t: Timestamp, e: &KernelLockEvent) -> Result<()> {
        let &KernelLockEvent { cpu, lock, begin, .. } = e;
        let (thread, owner) = (self.thread(e.tid), self.threads.known(e.owner));
        self.waits.contend(thread, lock, begin);
        self.out.kernel_locks.push(KernelLock { t, cpu, thread, lock, begin, owner })
    }

    fn sample(&mut self, t: Timestamp, e: &SampleEvent) -> Result<()> {
        let &SampleEvent { cpu, ip, bp, chain, .. } = e;
        let thread = self.thread(e.tid);
        self.see_cpu(cpu);
        let stack = self.stack(chain, thread);
        let pid = self.threads.pid(thread);
        let stack = self.stacks.with_leaf(chain, stack, Leaf { ip, bp }, pid, &mut self.spaces);
        self.out.samples.push(Sample { t, cpu, thread, ip, stack })
    }

    fn block_io(&mut self, t: Timestamp, e: &BlockIoEvent) -> Result<()> {
        let &BlockIoEvent { device, sector, bytes, issue, .. } = e;
        let thread = self.threads.known(e.tid);
        self.out.block_ios.push(BlockIo { t, device, sector, bytes, thread, issue })
    }

    fn lost(&mut self, t: Timestamp, e: &LostEvent) -> Result<()> {
        let &LostEvent { kind, cpu, span, what, .. } = e;
        self.out.losses.push(LossRow { kind, what, cpu, from: t.before(span), to: t, count: e.count.into() })
    }

    /// A process that ended before anything was known of it has no row.
    fn listener(&mut self, t: Timestamp, e: ListenerEvent) -> Result<()> {
        let (thread, parent) = (self.threads.known(e.pid), self.threads.known(e.parent));
        match thread {
            ThreadIdx::NONE => Ok(()),
            thread => self.out.listeners.push(Listener { t, thread, parent, listens: e.listens }),
        }
    }

    /// As of a listener.
    fn subject(&mut self, t: Timestamp, e: SubjectEvent) -> Result<()> {
        match self.threads.known(e.pid) {
            ThreadIdx::NONE => Ok(()),
            thread => {
                self.working.insert(thread, e.what);
                self.out.subjects.push(Subject { t, thread, what: e.what })
            }
        }
    }

    /// What another program works on is told anew, or not known.
    fn exec(&mut self, t: Timestamp, pid: u32) -> Result<()> {
        let thread = self.threads.known(pid);
        self.threads.exec(pid);
        match self.working.remove(&thread) {
            Some(_) => self.out.subjects.push(Subject { t, thread, what: StringId::default() }),
            None => Ok(()),
        }
    }

    fn map(&mut self, t: Timestamp, e: MapEvent) -> Result<()> {
        let Some((space, image)) = self.spaces.map(e.pid, e.image) else { return Ok(()) };
        self.threads.maps(e.pid, image.start, &image.path, &mut self.strings);
        let path = self.strings.intern(&image.path);
        let hex = image.build_id.iter().flatten().map(|b| format!("{b:02x}")).collect::<String>();
        let build_id = self.strings.intern(&hex);
        if space == SpaceId::KERNEL && self.meta.kernel_addresses_hidden {
            return Ok(());
        }
        let (start, end, file_offset) = (image.start, image.end, image.file_offset);
        self.out.images.push(ImageRow { t, space, start, end, file_offset, path, build_id })
    }

    fn placement(&mut self, t: Timestamp, e: &PlacementEvent) -> Result<()> {
        let &PlacementEvent { tid, cpus, nice, policy, group, span } = e;
        let thread = self.thread(tid);
        self.out.placements.push(Placement { t, from: t.before(span), thread, cpus, nice, policy, group })
    }

    fn quota(&mut self, t: Timestamp, e: &QuotaEvent) -> Result<()> {
        let &QuotaEvent { group, quota_us, period_us, periods, throttled, throttled_us } = e;
        self.out.quotas.push(Quota { t, group, quota_us, period_us, periods, throttled, throttled_us })
    }

    fn span(&mut self, t: Timestamp, e: &SpanEvent) -> Result<()> {
        let &SpanEvent { tid, end_tid, length, queued, name, argument, key, outcome, weight } = e;
        let (thread, end_thread) = (self.thread(tid), self.threads.known(end_tid));
        let start = t.before(length);
        self.out.spans.push(Span { t, thread, start, end_thread, name, argument, key, outcome, weight, queued })
    }

    fn put_spans(&mut self, spans: Vec<Span>) -> Result<()> {
        spans.into_iter().try_for_each(|span| self.out.spans.push(span))
    }

    /// A process goes on with what its parent works on, until it runs another program.
    fn fork(&mut self, t: Timestamp, e: ForkEvent) -> Result<()> {
        let parent = self.thread(e.parent);
        if e.pid != e.parent_pid {
            self.spaces.fork(e.parent_pid, e.pid);
        }
        let name = self.threads.name(parent);
        let thread = self.threads.add(e.tid, e.pid, t, parent, name);
        let what = self.working.get(&self.threads.known(e.parent_pid)).copied();
        match what.filter(|_| e.pid != e.parent_pid) {
            Some(what) => {
                self.working.insert(thread, what);
                self.out.subjects.push(Subject { t, thread, what })
            }
            None => Ok(()),
        }
    }

    fn name(&mut self, t: Timestamp, e: NameEvent) -> Result<()> {
        let NameEvent { pid, tid, name } = e;
        let thread = self.thread(tid);
        match self.threads.rename(thread, pid, name) {
            true => self.out.thread_names.push(ThreadName { t, thread, name }),
            false => Ok(()),
        }
    }

    #[inline]
    fn thread(&mut self, tid: u32) -> ThreadIdx {
        self.threads.of(tid, &mut self.strings)
    }

    /// The stack that a chain is in the process of `thread`.
    fn stack(&mut self, chain: ChainId, thread: ThreadIdx) -> StackId {
        self.stacks.resolve(chain, self.threads.pid(thread), &mut self.spaces)
    }

    fn see_cpu(&mut self, cpu: Cpu) {
        if cpu != Cpu::NONE {
            self.meta.cpus = self.meta.cpus.max(cpu.0 + 1);
        }
    }

    /// What is known only when all events have been applied: open waits, and what came too late or not at all.
    pub fn close(&mut self) -> Result<()> {
        let end = self.clock.now();
        for row in self.waits.close(end) {
            self.out.waits.push(row)?;
        }
        let open = self.spans.finish(end);
        self.put_spans(open)?;
        let losses = [
            (LossKind::Spans, "ends of spans whose begins were not seen", self.spans.unmatched),
            (LossKind::Spans, "spans (too many were open)", self.spans.left_out),
            (LossKind::Events, "events out of order", self.clock.late),
            (LossKind::LimitedStacks, "stacks (limited rate, or full buffer)", self.stacks.unresolved),
        ];
        for (kind, what, count) in losses.into_iter().filter(|&(_, _, count)| count > 0) {
            let what = self.strings.intern(what);
            self.out.losses.push(LossRow { kind, what, cpu: Cpu::NONE, from: Timestamp::ZERO, to: end, count })?;
        }
        self.meta.start_ns = self.clock.start();
        self.meta.duration_ns = end.nanos().max(self.meta.duration_ns);
        self.meta.user_stacks.0 += self.stacks.counts.0;
        self.meta.user_stacks.1 += self.stacks.counts.1;
        Ok(())
    }
}
