//! Applies events in time order: identities, address spaces, rows.

use std::sync::Arc;

use super::TraceBuilder;
use crate::tables::*;
use crate::{ChainId, Cpu, Event, LockId, Result, SpaceId, StackId, StringId, Table, ThreadIdx, Timestamp};

impl TraceBuilder {
    pub(super) fn apply(&mut self, clock: u64, event: Event) -> Result<()> {
        let first = *self.first.get_or_insert(clock);
        let mut since = clock.saturating_sub(first);
        if since < self.last || clock < first {
            // A row behind its table's end would break every reader's merge: keep the event, at the latest time.
            self.late += 1;
            since = self.last;
        }
        self.last = since;
        let t = Timestamp::from_nanos_since_start(since);
        match event {
            Event::Switch { .. } => self.apply_switch(t, event),
            Event::Wake { .. } => self.apply_wake(t, event),
            Event::Blocked { tid, chain, lock } => {
                let thread = self.thread(tid, t);
                let stack = self.stack(chain);
                self.wait_blocked(thread, stack, lock)
            }
            Event::Futex { tid, lock, owner, operation, timed } => {
                let thread = self.thread(tid, t);
                let owner = self.known_or_none(owner);
                self.out.futexes.push(Futex { t, thread, lock, owner, operation, timed })
            }
            Event::KernelLock { cpu, tid, lock, begin, owner } => {
                let thread = self.thread(tid, t);
                let owner = self.known_or_none(owner);
                self.wait_kernel_lock(thread, lock, begin);
                self.out.kernel_locks.push(KernelLock { t, cpu, thread, lock, begin, owner })
            }
            Event::Sample { cpu, tid, ip, chain } => {
                let thread = self.thread(tid, t);
                self.see_cpu(cpu);
                let stack = self.stack(chain);
                let stack = self.with_leaf(chain, stack, ip);
                self.out.samples.push(Sample { t, cpu, thread, ip, stack })
            }
            Event::BlockIo { device, sector, bytes, tid, issue } => {
                let thread = self.known_or_none(tid);
                self.out.block_ios.push(BlockIo { t, device, sector, bytes, thread, issue })
            }
            Event::Lost { kind, cpu, span, count, what } => {
                let from = t.before(span);
                self.out.losses.push(LossRow { kind, what, cpu, from, to: t, count: count.into() })
            }
            Event::Map { pid, image } => self.apply_map(t, pid, image),
            Event::Fork { parent_pid, parent, pid, tid } => {
                self.apply_fork(t, (parent_pid, parent), (pid, tid));
                Ok(())
            }
            Event::Name { pid, tid, name } => self.apply_name(t, pid, tid, name),
            Event::Exec { pid } => {
                self.new_space(pid, Vec::new());
                Ok(())
            }
            Event::Exit { tid } => {
                // The thread still switches out for the last time after its exit was traced.
                let thread = self.thread(tid, t);
                self.threads.end[thread.index()] = t;
                Ok(())
            }
        }
    }

    fn apply_switch(&mut self, t: Timestamp, event: Event) -> Result<()> {
        let Event::Switch { cpu, prev, next, state, io_wait, syscall, lock, chain } = event else { return Ok(()) };
        self.see_cpu(cpu);
        let (prev, next) = (self.thread(prev, t), self.thread(next, t));
        let stack = self.stack(chain);
        let lock = if lock == LockId::NONE && state.is_blocked() { self.contended(prev) } else { lock };
        let row = Switch { t, cpu, prev, state, next, io_wait, syscall, lock, stack };
        self.wait_begins(&row);
        self.wait_ends(t, next);
        self.out.switches.push(row)
    }

    fn apply_wake(&mut self, t: Timestamp, event: Event) -> Result<()> {
        let Event::Wake { cpu, waker, wakee, context, source, target, lock, chain } = event else { return Ok(()) };
        let (waker, wakee) = (self.thread(waker, t), self.thread(wakee, t));
        let stack = self.stack(chain);
        let row = Wake { t, cpu, waker, context, source, wakee, target, lock, stack };
        self.wait_woken(&row);
        self.out.wakes.push(row)
    }

    fn apply_map(&mut self, t: Timestamp, pid: u32, image: u32) -> Result<()> {
        let Some(image) = self.images.get(image as usize).cloned() else { return Ok(()) };
        let space = self.space(pid);
        let path = self.strings.intern(&image.path);
        let hex = image.build_id.iter().flatten().map(|b| format!("{b:02x}")).collect::<String>();
        let build_id = self.strings.intern(&hex);
        let (start, end, file_offset) = (image.start, image.end, image.file_offset);
        let images = &mut self.spaces[space.index()];
        // A new mapping replaces what it covers.
        images.retain(|i| i.end <= start || i.start >= end);
        let at = images.partition_point(|i| i.start < start);
        images.insert(at, image);
        if space == SpaceId::KERNEL && self.meta.kernel_addresses_hidden {
            return Ok(());
        }
        self.out.images.push(ImageRow { t, space, start, end, file_offset, path, build_id })
    }

    fn apply_fork(&mut self, t: Timestamp, (parent_pid, parent): (u32, u32), (pid, tid): (u32, u32)) {
        let parent_thread = self.thread(parent, t);
        let name = self.threads.name[parent_thread.index()];
        if pid != parent_pid {
            let parent_space = self.space(parent_pid);
            let inherited = self.spaces[parent_space.index()].clone();
            self.new_space(pid, inherited);
        }
        self.add_thread(tid, pid, t, parent_thread, name);
    }

    fn apply_name(&mut self, t: Timestamp, pid: u32, tid: u32, name: StringId) -> Result<()> {
        let thread = self.thread(tid, t);
        self.threads.pid[thread.index()] = pid;
        if self.threads.name[thread.index()] != name {
            self.threads.name[thread.index()] = name;
            self.out.names.push(ThreadName { t, thread, name })?;
        }
        Ok(())
    }

    /// The thread that has `tid` now; one that nobody announced existed before the trace.
    fn thread(&mut self, tid: u32, _t: Timestamp) -> ThreadIdx {
        match self.by_tid.get(&tid) {
            Some(&thread) => thread,
            None => {
                let name = self.strings.intern(&format!("tid {tid}"));
                self.add_thread(tid, tid, Timestamp::ZERO, ThreadIdx::NONE, name)
            }
        }
    }

    fn known_or_none(&self, tid: u32) -> ThreadIdx {
        if tid == 0 { ThreadIdx::NONE } else { self.by_tid.get(&tid).copied().unwrap_or(ThreadIdx::NONE) }
    }

    pub(super) fn add_thread(
        &mut self,
        tid: u32,
        pid: u32,
        start: Timestamp,
        parent: ThreadIdx,
        name: StringId,
    ) -> ThreadIdx {
        let thread = ThreadIdx(self.threads.len() as u32);
        self.threads.push(Thread { tid, pid, start, end: Timestamp::MAX, parent, name, process: name });
        self.by_tid.insert(tid, thread);
        thread
    }

    fn space(&mut self, pid: u32) -> SpaceId {
        match self.processes.get(&pid) {
            Some(&space) => space,
            None => self.new_space(pid, Vec::new()),
        }
    }

    fn new_space(&mut self, pid: u32, images: Vec<Arc<crate::Image>>) -> SpaceId {
        if pid == 0 {
            return SpaceId::KERNEL;
        }
        let space = SpaceId(self.spaces.len() as u32);
        self.spaces.push(images);
        self.processes.insert(pid, space);
        space
    }

    fn see_cpu(&mut self, cpu: Cpu) {
        if cpu != Cpu::NONE {
            self.meta.cpus = self.meta.cpus.max(cpu.0 + 1);
        }
    }

    /// Resolves a chain in the address space that its process has now.
    fn stack(&mut self, chain: ChainId) -> StackId {
        if chain == ChainId::NONE {
            return StackId::NONE;
        }
        let raw = self.raw_of_chain.get(&chain).and_then(|hash| self.raw.get(hash));
        let pid = match raw {
            Some((_, Some(raw))) => raw.pid,
            Some((_, None)) => {
                self.unresolved += 1;
                return StackId::NONE;
            }
            None => self.chains.get(chain).map_or(0, |(pid, _, _)| pid),
        };
        let space = self.space(pid);
        let known = self.stack_of_chain.get(&(chain, space)).copied();
        let (stack, complete) = match known {
            Some(known) => known,
            None => {
                let new = self.resolve(chain, space);
                self.stack_of_chain.insert((chain, space), new);
                self.drop_raw_bytes(chain);
                new
            }
        };
        self.meta.user_stacks.0 += 1;
        self.meta.user_stacks.1 += u64::from(complete);
        stack
    }

    /// Copied stacks are kilobytes each, and asked for again only by their chain, which is resolved now.
    fn drop_raw_bytes(&mut self, chain: ChainId) {
        let raw = self.raw_of_chain.get(&chain).and_then(|hash| self.raw.get_mut(hash));
        if let Some((_, Some(raw))) = raw {
            raw.bytes = Vec::new();
        }
    }

    /// A copied stack serves all samples with the same callers: the leaf is the sample's own.
    fn with_leaf(&mut self, chain: ChainId, stack: StackId, ip: u64) -> StackId {
        if stack == StackId::NONE || !self.raw_of_chain.contains_key(&chain) {
            return stack;
        }
        self.stacks.replace_leaf(stack, ip)
    }

    fn resolve(&mut self, chain: ChainId, space: SpaceId) -> (StackId, bool) {
        let raw = self.raw_of_chain.get(&chain).and_then(|hash| self.raw.get(hash)).and_then(|(_, raw)| raw.as_ref());
        if let Some(raw) = raw {
            // The copy of a shared user part may belong to an event that comes later.
            let copy = match self.copies.get(&raw.user).and_then(|hash| self.raw.get(hash)) {
                Some((_, Some(other))) if raw.bytes.is_empty() => other,
                _ => raw,
            };
            let (user, complete) = match (&mut self.unwinder, self.user_parts.get(&raw.user)) {
                (_, Some((frames, complete))) => (with_first(frames, raw.ip), *complete),
                (Some(unwinder), None) if raw.ip != 0 => {
                    let images = &self.spaces[space.index()];
                    believed(images, unwinder.unwind(images, copy))
                }
                _ => (Vec::new(), raw.ip == 0),
            };
            if raw.user != 0 && !copy.bytes.is_empty() {
                self.user_parts.insert(raw.user, (user.clone(), complete));
            }
            return (self.stacks.intern(space, &raw.kernel, &user), complete);
        }
        match self.chains.get(chain) {
            Some((_, kernel, user)) => (self.stacks.intern(space, kernel, user), true),
            None => (StackId::NONE, false),
        }
    }
}

/// The frames up to the first caller that is no code: a word that was taken for an address may be anything that lay on
/// the stack, and the stack's content has no place in a trace.
fn believed(images: &[Arc<crate::Image>], (mut frames, complete): (Vec<u64>, bool)) -> (Vec<u64>, bool) {
    let is_code = |address: u64| {
        let after = images.partition_point(|i| i.start <= address);
        after > 0 && address < images[after - 1].end
    };
    match frames.iter().skip(1).position(|&address| !is_code(address.saturating_sub(1))) {
        None => (frames, complete),
        Some(good) => {
            frames.truncate(good + 1);
            (frames, false)
        }
    }
}

/// The frames with `ip` as the innermost.
fn with_first(frames: &[u64], ip: u64) -> Vec<u64> {
    let mut frames = frames.to_vec();
    if let Some(first) = frames.first_mut() {
        *first = ip;
    }
    frames
}
