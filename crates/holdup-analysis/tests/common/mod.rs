//! Schedules as events. One tick is a millisecond.

#![allow(dead_code, missing_docs)]

pub mod traffic;

use holdup_analysis::NoDisassembler;
use holdup_analysis::blame::{Blame, Key, Study, Window, blame};
use holdup_analysis::classify::Classifier;
use holdup_analysis::focus::Focus;
use holdup_analysis::intervals::Timeline;
use holdup_analysis::spins::SpinSites;
use holdup_trace::{
    ChainId, Cpu, Destination, ExitEvent, FutexEvent, Image, Location, LockId, LockKey, LockKind, LossKind, LostEvent,
    NameEvent, SwitchEvent, SwitchState, Symbolizer, Trace, TraceBuilder, WakeContext, WakeEvent,
};

pub const MS: u64 = 1_000_000;

/// Writes a schedule as events.
pub struct Schedule {
    pub builder: TraceBuilder,
    pub end: f64,
}

pub fn ns(ms: f64) -> u64 {
    (ms * MS as f64).round() as u64
}

impl Schedule {
    pub fn new(cpus: u16, end: f64) -> Self {
        let mut builder = TraceBuilder::new(&Destination::Memory).unwrap();
        builder.meta_mut().cpus = cpus;
        builder.meta_mut().host.arch = "x86_64".into();
        Schedule { builder, end }
    }

    pub fn thread(mut self, tid: u32, name: &str) -> Self {
        let name = self.builder.string(name);
        self.builder.push(0, NameEvent { pid: 1, tid, name });
        self
    }

    /// All threads are one program, which is in focus.
    pub fn in_focus(mut self) -> Self {
        self.builder.meta_mut().focus_pids = vec![1];
        self
    }

    pub fn exits(mut self, t: f64, tid: u32) -> Self {
        self.builder.push(ns(t), ExitEvent { tid });
        self
    }

    pub fn switch(mut self, t: f64, cpu: u16, prev: u32, state: SwitchState, syscall: i16, next: u32) -> Self {
        let (lock, chain) = (LockId::NONE, ChainId::NONE);
        let event = SwitchEvent { cpu: Cpu(cpu), prev, next, state, io_wait: false, syscall, lock, chain };
        self.builder.push(ns(t), event);
        self
    }

    /// `tid` runs on `cpu` from `from` to `to`, then leaves in the system call `syscall` (negative: preempted).
    pub fn runs(self, tid: u32, cpu: u16, from: f64, to: f64, syscall: i16) -> Self {
        let state = if syscall < 0 { SwitchState::Runnable } else { SwitchState::Sleeping };
        let last = self.end;
        let schedule = self.switch(from, cpu, 0, SwitchState::Runnable, -1, tid);
        if to < last { schedule.switch(to, cpu, tid, state, syscall, 0) } else { schedule }
    }

    /// `tid` runs on `cpu` from `from` to `to`, then waits in the system call `syscall`, below `frames`, the innermost first.
    pub fn waits_at(mut self, tid: u32, cpu: u16, [from, to]: [f64; 2], syscall: i16, frames: &[u64]) -> Self {
        let chain = self.builder.chain(1, &[], frames);
        let (state, lock) = (SwitchState::Sleeping, LockId::NONE);
        let event = SwitchEvent { cpu: Cpu(cpu), prev: tid, next: 0, state, io_wait: false, syscall, lock, chain };
        let mut schedule = self.switch(from, cpu, 0, SwitchState::Runnable, -1, tid);
        schedule.builder.push(ns(to), event);
        schedule
    }

    pub fn wakes(mut self, t: f64, cpu: u16, waker: u32, wakee: u32, context: WakeContext, source: u16) -> Self {
        let (lock, chain, target) = (LockId::NONE, ChainId::NONE, Cpu::NONE);
        self.builder.push(ns(t), WakeEvent { cpu: Cpu(cpu), waker, wakee, context, source, target, lock, chain });
        self
    }

    pub fn by(self, t: f64, cpu: u16, waker: u32, wakee: u32) -> Self {
        self.wakes(t, cpu, waker, wakee, WakeContext::Task, 0)
    }

    /// Waits for a futex of which `owner` is known.
    pub fn futex(mut self, t: f64, tid: u32, owner: u32) -> Self {
        let lock = self.builder.lock(LockKey { kind: LockKind::Futex, pid: 1, address: 0x1000 });
        self.builder.push(ns(t), FutexEvent { tid, lock, owner, operation: 0, timed: true });
        self
    }

    pub fn finish(self) -> Trace {
        self.finish_as(None)
    }

    pub fn finish_with(self, names: &mut dyn Symbolizer) -> Trace {
        self.finish_as(Some(names))
    }

    fn finish_as(mut self, names: Option<&mut dyn Symbolizer>) -> Trace {
        // A last event fixes the trace's length.
        let what = self.builder.string("end");
        let lost = LostEvent { kind: LossKind::Events, cpu: Cpu::NONE, span: holdup_trace::Nanos(0), count: 0, what };
        self.builder.push(ns(self.end), lost);
        self.builder.finish(names).unwrap()
    }

    pub fn blame(self) -> (Trace, Blame) {
        blame_of(self.finish())
    }
}

/// Who is to blame for a trace, which adds up.
pub fn blame_of(trace: Trace) -> (Trace, Blame) {
    let focus = Focus::new(&trace, None);
    let classifier = Classifier::new(&trace);
    let window = Window { from: 0, to: trace.meta.duration_ns };
    let blame = {
        let timeline = Timeline::new(&trace, &focus, &classifier).unwrap();
        let spins = SpinSites::new(&trace, &classifier, &NoDisassembler);
        let study =
            Study { trace: &trace, timeline: &timeline, focus: &focus, classifier: &classifier, spins: &spins, window };
        blame(&study, |_| (), |()| ()).unwrap()
    };
    drop(classifier);
    let cpu = &blame.cpu;
    let sum = cpu.running + cpu.other + cpu.held_up + cpu.runnable_idle + cpu.no_work + cpu.lost;
    assert!((sum - cpu.total).abs() <= 1e-3 * cpu.total, "{cpu:?}");
    (trace, blame)
}

pub const SLEEP: i16 = 230;
pub const FUTEX: i16 = 202;
pub const READ: i16 = 0;
pub const WRITE: i16 = 1;
pub const POLL: i16 = 7;
pub const WAIT4: i16 = 61;
pub const EXIT: i16 = 60;
pub const NET_RX: u16 = 3;

pub fn ms(blame: &Blame, wanted: impl FnMut(&Key) -> bool) -> f64 {
    blame.thread_ns(wanted) as f64 / MS as f64
}

pub fn tid(trace: &Trace, key: &Key) -> u32 {
    trace.threads.tid[key.thread.index()]
}

pub fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 0.05, "found {found}, wanted {wanted}");
}

/// Functions of `/bin/app` by their addresses, in order.
pub struct Namer(pub &'static [(u64, &'static str)]);

impl Symbolizer for Namer {
    fn locate(&mut self, _: bool, _: &[std::sync::Arc<Image>], address: u64) -> Vec<Location> {
        let found = self.0.iter().rev().find(|(start, _)| address >= *start);
        let name = found.map_or("", |(_, name)| name).to_owned();
        let module = if address >> 63 == 1 { "[kernel]" } else { "/bin/app" };
        vec![Location { function: name, module: module.into(), ..Location::default() }]
    }

    fn code(&mut self, _: bool, _: &[std::sync::Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}
