//! What was so when a window begins.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::tables::{Futex, KernelLock, Switch, Wake};
use crate::{Cpu, LockId, Result, StackId, SwitchState, Table, ThreadIdx, Timestamp, Trace};

/// What a thread does.
#[derive(Debug, Clone, Copy)]
enum Now {
    /// It was in no event yet.
    Unseen,
    /// It runs, or nothing is known of it.
    Unknown,
    /// It waits for a CPU, and ran on this one last.
    Ready(Cpu),
    /// It waits, since this switch.
    Waits(Switch),
}

/// What was so at an instant.
pub(super) struct Before {
    threads: Vec<Now>,
    /// Who runs on each CPU; none if that is not known.
    cpus: Vec<Option<ThreadIdx>>,
    futexes: FxHashMap<ThreadIdx, Futex>,
    kernel_locks: BTreeMap<ThreadIdx, KernelLock>,
}

impl Before {
    /// What the events up to `at` tell; nothing at the trace's start.
    pub(super) fn new(trace: &Trace, at: Timestamp) -> Result<Self> {
        let mut before = Before {
            threads: vec![Now::Unseen; trace.threads.len()],
            cpus: vec![None; usize::from(trace.meta.cpus)],
            futexes: FxHashMap::default(),
            kernel_locks: BTreeMap::new(),
        };
        if at > Timestamp::ZERO {
            before.follow(trace, at)?;
        }
        Ok(before)
    }

    fn follow(&mut self, trace: &Trace, at: Timestamp) -> Result<()> {
        let mut losses: Vec<(Timestamp, Cpu)> = Vec::new();
        for loss in trace.losses.iter() {
            let loss = loss?;
            losses.extend(loss.kind.is_of_events().then_some((loss.from, loss.cpu)));
        }
        losses.sort_unstable();
        let mut losses = losses.into_iter().peekable();
        let mut wakes = trace.wakes.iter().peekable();
        for switch in trace.switches.iter() {
            let switch = switch?;
            if switch.t > at {
                break;
            }
            while let Some(row) = wakes.next_if(|w| w.as_ref().map_or(true, |w| w.t <= switch.t)) {
                self.wake(&row?);
            }
            while let Some((_, cpu)) = losses.next_if(|(t, _)| *t <= switch.t) {
                self.lose(cpu);
            }
            self.switch(&switch);
        }
        while let Some(row) = wakes.next_if(|w| w.as_ref().map_or(true, |w| w.t <= at)) {
            self.wake(&row?);
        }
        while let Some((_, cpu)) = losses.next_if(|(t, _)| *t <= at) {
            self.lose(cpu);
        }
        for row in trace.futexes.iter() {
            let row = row?;
            if row.t > at {
                break;
            }
            self.futexes.insert(row.thread, row);
        }
        for row in trace.kernel_locks.iter() {
            let row = row?;
            if row.t > at {
                break;
            }
            match row.begin {
                true => drop(self.kernel_locks.insert(row.thread, row)),
                false => drop(self.kernel_locks.remove(&row.thread)),
            }
        }
        Ok(())
    }

    fn set(&mut self, thread: ThreadIdx, now: Now) {
        if let Some(known) = self.threads.get_mut(thread.index()).filter(|_| thread.is_real()) {
            *known = now;
        }
    }

    fn switch(&mut self, row: &Switch) {
        let left = match row.state {
            SwitchState::Runnable => Now::Ready(row.cpu),
            SwitchState::Dead => Now::Unknown,
            _ => Now::Waits(*row),
        };
        self.set(row.prev, left);
        self.set(row.next, Now::Unknown);
        if let Some(running) = self.cpus.get_mut(row.cpu.index()) {
            *running = Some(row.next);
        }
    }

    fn wake(&mut self, row: &Wake) {
        if let Some(Now::Waits(wait)) = self.threads.get(row.wakee.index()) {
            let cpu = if row.target == Cpu::NONE { wait.cpu } else { row.target };
            self.set(row.wakee, Now::Ready(cpu));
        } else if self.is_unseen(row.wakee) {
            self.set(row.wakee, Now::Unknown);
        }
    }

    /// Whether nothing has happened to a thread, so that a wait from before the trace goes on.
    pub(super) fn is_unseen(&self, thread: ThreadIdx) -> bool {
        matches!(self.threads.get(thread.index()), Some(Now::Unseen))
    }

    /// What happened on `cpu` from now on is not known.
    fn lose(&mut self, cpu: Cpu) {
        let all = cpu == Cpu::NONE;
        for now in &mut self.threads {
            let there = match now {
                Now::Ready(on) => *on,
                Now::Waits(row) => row.cpu,
                Now::Unknown | Now::Unseen => continue,
            };
            if all || there == cpu {
                *now = Now::Unknown;
            }
        }
        for (i, running) in self.cpus.iter_mut().enumerate() {
            if all || i == cpu.index() {
                *running = None;
            }
        }
    }

    /// Switches at the window's first instant after which all is as it was: on each CPU its threads leave it one after the other,
    /// and who ran there comes last.
    pub(super) fn switches(&self) -> Vec<Switch> {
        let mut rows = Vec::new();
        for (i, running) in self.cpus.iter().enumerate() {
            let Some(running) = *running else { continue };
            let cpu = Cpu(i as u16);
            let mut left: Vec<Switch> = self.left(cpu).collect();
            if left.is_empty() {
                let state = SwitchState::Runnable;
                left.push(empty(cpu, ThreadIdx::IDLE, state));
            }
            for k in 0..left.len() {
                left[k].next = left.get(k + 1).map_or(running, |next| next.prev);
            }
            rows.extend(left);
        }
        rows
    }

    /// The threads that left `cpu` last, and how.
    fn left(&self, cpu: Cpu) -> impl Iterator<Item = Switch> + '_ {
        self.threads.iter().enumerate().filter_map(move |(i, now)| {
            let thread = ThreadIdx(i as u32);
            match now {
                Now::Ready(on) if *on == cpu => Some(empty(cpu, thread, SwitchState::Runnable)),
                Now::Waits(row) if row.cpu == cpu => {
                    let futex = self.futexes.get(&thread).filter(|f| f.t == row.t).map_or(LockId::NONE, |f| f.lock);
                    let lock = if row.lock == LockId::NONE { futex } else { row.lock };
                    Some(Switch { t: Timestamp::ZERO, lock, ..*row })
                }
                _ => None,
            }
        })
    }

    /// The futex waits that go on, with the owners as they were read.
    pub(super) fn futexes(&self) -> Vec<Futex> {
        let waits = self.threads.iter().enumerate().filter_map(|(i, now)| match now {
            Now::Waits(row) => self
                .futexes
                .get(&ThreadIdx(i as u32))
                .filter(|f| f.t == row.t)
                .map(|f| Futex { t: Timestamp::ZERO, ..*f }),
            _ => None,
        });
        waits.collect()
    }

    /// Contention that goes on.
    pub(super) fn kernel_locks(&self) -> Vec<KernelLock> {
        self.kernel_locks.values().map(|row| KernelLock { t: Timestamp::ZERO, ..*row }).collect()
    }
}

fn empty(cpu: Cpu, prev: ThreadIdx, state: SwitchState) -> Switch {
    Switch {
        t: Timestamp::ZERO,
        cpu,
        prev,
        state,
        next: ThreadIdx::IDLE,
        io_wait: false,
        syscall: -1,
        lock: LockId::NONE,
        stack: StackId::NONE,
    }
}
