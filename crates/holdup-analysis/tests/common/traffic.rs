//! Programs that serve each other, as events: threads of several processes, samples in named functions.

use holdup_analysis::report::Explanation;
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{
    ChainId, Cpu, ExitEvent, Image, LockId, MapEvent, NameEvent, SampleEvent, SwitchEvent, SwitchState, Trace,
    WakeContext,
};

use super::{MS, Namer, Schedule, ns};

pub const EPOLL: i16 = 232;
pub const FSYNC: i16 = 74;

/// Functions by address, a page each; all below `serve`.
const NAMES: [(u64, &str); 4] = [(0x1000, "serve"), (0x2000, "answer"), (0x3000, "scan_all"), (0x4000, "rewrite")];
pub const ANSWER: u64 = 0x2000;
pub const SCAN: u64 = 0x3000;
pub const REWRITE: u64 = 0x4000;

/// Each thread on a CPU of its own, at one time after the other.
pub struct Traffic {
    schedule: Schedule,
    /// The present, in milliseconds.
    pub t: f64,
}

impl Traffic {
    pub fn new(cpus: u16, end: f64) -> Self {
        let mut schedule = Schedule::new(cpus, end);
        schedule.builder.meta_mut().sample_period_ns = MS;
        Traffic { schedule, t: 0.0 }
    }

    /// A process with one thread, or another thread of it.
    pub fn thread(mut self, pid: u32, tid: u32, name: &str) -> Self {
        let builder = &mut self.schedule.builder;
        let name = builder.string(name);
        builder.push(0, NameEvent { pid, tid, name });
        let image = Image { start: 0, end: 0x10000, path: "/bin/app".into(), pid, ..Image::default() };
        let image = builder.image(image);
        builder.push(0, MapEvent { pid, image });
        self
    }

    /// `tid` leaves CPU `cpu` at `t` for a call, or for the disk.
    pub fn leaves(&mut self, t: f64, cpu: u16, tid: u32, syscall: i16) {
        let (lock, chain, state) = (LockId::NONE, ChainId::NONE, SwitchState::Sleeping);
        let io_wait = syscall == FSYNC;
        let event = SwitchEvent { cpu: Cpu(cpu), prev: tid, next: 0, state, io_wait, syscall, lock, chain };
        self.schedule.builder.push(ns(t), event);
    }

    pub fn ends(&mut self, t: f64, tid: u32) {
        self.schedule.builder.push(ns(t), ExitEvent { tid });
    }

    pub fn comes(&mut self, t: f64, cpu: u16, tid: u32) {
        let (lock, chain, state) = (LockId::NONE, ChainId::NONE, SwitchState::Runnable);
        let event = SwitchEvent { cpu: Cpu(cpu), prev: 0, next: tid, state, io_wait: false, syscall: -1, lock, chain };
        self.schedule.builder.push(ns(t), event);
    }

    /// `next` takes the CPU from `prev`, which could go on.
    pub fn takes_over(&mut self, t: f64, cpu: u16, prev: u32, next: u32) {
        let (lock, chain, state) = (LockId::NONE, ChainId::NONE, SwitchState::Runnable);
        let event = SwitchEvent { cpu: Cpu(cpu), prev, next, state, io_wait: false, syscall: -1, lock, chain };
        self.schedule.builder.push(ns(t), event);
    }

    pub fn wakes(&mut self, t: f64, cpu: u16, waker: u32, wakee: u32) {
        self.wakes_in(t, cpu, waker, wakee, WakeContext::Task, 0);
    }

    pub fn wakes_in(&mut self, t: f64, cpu: u16, waker: u32, wakee: u32, context: WakeContext, source: u16) {
        let (lock, chain, target) = (LockId::NONE, ChainId::NONE, Cpu::NONE);
        let event = holdup_trace::WakeEvent { cpu: Cpu(cpu), waker, wakee, context, source, target, lock, chain };
        self.schedule.builder.push(ns(t), event);
    }

    /// Samples of `tid` in `function`, one each millisecond.
    pub fn samples(&mut self, from: f64, to: f64, cpu: u16, pid: u32, tid: u32, function: u64) {
        let builder = &mut self.schedule.builder;
        let chain = builder.chain(pid, &[], &[function + 4, 0x1004]);
        let mut t = from + 0.5;
        while t < to {
            builder.push(ns(t), SampleEvent { cpu: Cpu(cpu), tid, ip: function + 4, bp: 0, chain });
            t += 1.0;
        }
    }

    /// `client` on CPU 0 asks `server` on CPU 1, both awaiting events in `call`, and gets its answer after `work`.
    pub fn round_trip(&mut self, client: u32, server: u32, work: f64, call: i16) {
        let t = self.t;
        self.wakes(t, 0, client, server);
        self.comes(t, 1, server);
        self.leaves(t, 0, client, call);
        self.wakes(t + work, 1, server, client);
        self.leaves(t + work, 1, server, call);
        self.comes(t + work, 0, client);
        self.t = t + work + 0.05;
    }

    pub fn finish(self) -> Trace {
        self.schedule.finish_with(&mut Namer(&NAMES))
    }
}

pub fn explained(trace: &Trace, focus: Option<&str>) -> Explanation {
    let options = Options { focus: focus.map(str::to_owned), ..Options::default() };
    explain(trace, "x", &options, &NoDisassembler).unwrap()
}
