//! A trace that is made here: a thread that spins with a lock in its hands, and one that waits for it.

use std::path::Path;
use std::sync::Arc;

use holdup_trace::{
    ChainId, Cpu, Destination, FutexEvent, Image, Location, LockId, LockKey, LockKind, MapEvent, NameEvent, Nanos,
    SampleEvent, SourceLine, SpanEvent, SpanOutcome, SwitchEvent, SwitchState, Symbolizer, Trace, TraceBuilder,
    WakeContext, WakeEvent,
};

/// `1: pause; mov (%rdi),%eax; test %eax,%eax; je 1b; ret`
const SPIN: [u8; 9] = [0xf3, 0x90, 0x8b, 0x07, 0x85, 0xc0, 0x74, 0xf8, 0xc3];
const CODE: u64 = 0x40_0000;
const MS: u64 = 1_000_000;

struct Namer;

impl Symbolizer for Namer {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], address: u64) -> Vec<Location> {
        let (function, offset) = ("app::wait_for_flag".to_owned(), address - CODE);
        vec![Location { function, module: "/bin/app".into(), file: file!().into(), line: 1, offset }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        Some((CODE, SPIN.to_vec()))
    }

    fn lines(&mut self, _: &[Arc<Image>], _: u64, _: usize) -> Vec<SourceLine> {
        // The integration test runs in its crate's folder.
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inspect.rs").display().to_string();
        vec![SourceLine { offset: 0, inlined: String::new(), file, line: 1 }]
    }
}

/// `holder` runs with a lock from 0 to 60 ms; `waiter`, who comes at 10 ms, has read from the lock who has it.
#[allow(dead_code, reason = "not every test that uses this module reproduces locks")]
pub fn locked() -> Trace {
    let mut b = TraceBuilder::new(&Destination::Memory).expect("builder");
    b.meta_mut().cpus = 2;
    for (tid, name) in [(11, "holder"), (12, "waiter")] {
        let name = b.string(name);
        b.push(0, NameEvent { pid: 10, tid, name });
    }
    let lock = b.lock(LockKey { kind: LockKind::Futex, pid: 10, address: 0x1000 });
    b.push(0, switch(0, 0, SwitchState::Runnable, 11, LockId::NONE));
    b.push(0, switch(1, 0, SwitchState::Runnable, 12, LockId::NONE));
    b.push(10 * MS, FutexEvent { tid: 12, lock, owner: 11, operation: 0, timed: false });
    b.push(10 * MS, switch(1, 12, SwitchState::Sleeping, 0, lock));
    let (context, chain, target) = (WakeContext::Task, ChainId::NONE, Cpu(1));
    b.push(60 * MS, WakeEvent { cpu: Cpu(0), waker: 11, wakee: 12, context, source: 0, target, lock, chain });
    b.push(61 * MS, switch(1, 0, SwitchState::Runnable, 12, LockId::NONE));
    b.push(100 * MS, switch(1, 12, SwitchState::Dead, 0, LockId::NONE));
    b.finish(None).expect("trace")
}

fn switch(cpu: u16, prev: u32, state: SwitchState, next: u32, lock: LockId) -> SwitchEvent {
    let (syscall, chain) = (if state == SwitchState::Sleeping { 202 } else { -1 }, ChainId::NONE);
    SwitchEvent { cpu: Cpu(cpu), prev, next, state, io_wait: false, syscall, lock, chain }
}

/// `holder` spins with a lock from 10 to 60 ms, while `waiter` waits for it in the last of its four requests.
pub fn convoy(with_samples: bool) -> Trace {
    convoy_of(with_samples, ["app", "holder", "waiter"])
}

/// The same, where process, holder and waiter are called so.
pub fn convoy_of(with_samples: bool, [app, holder, waiter]: [&str; 3]) -> Trace {
    let mut b = TraceBuilder::new(&Destination::Memory).expect("builder");
    b.meta_mut().cpus = 2;
    b.meta_mut().host.arch = "x86_64".into();
    for (tid, name) in [(10, app), (11, holder), (12, waiter), (13, app)] {
        let name = b.string(name);
        b.push(0, NameEvent { pid: 10, tid, name });
    }
    let image = Image { start: CODE, end: CODE + 4096, path: "/bin/app".into(), pid: 10, ..Image::default() };
    let image = b.image(image);
    b.push(0, MapEvent { pid: 10, image });
    let lock = b.lock(LockKey { kind: LockKind::Futex, pid: 10, address: 0x1000 });
    b.push(1, switch(0, 0, SwitchState::Runnable, 11, LockId::NONE));
    b.push(1, switch(1, 0, SwitchState::Runnable, 12, LockId::NONE));
    b.push(10 * MS, switch(1, 12, SwitchState::Sleeping, 0, lock));
    for i in 0..if with_samples { 40 } else { 0 } {
        let ip = CODE + 2;
        let chain = b.chain(10, &[], &[ip]);
        b.push((12 + i) * MS, SampleEvent { cpu: Cpu(0), tid: 11, ip, bp: 0, chain });
    }
    let (context, chain, target) = (WakeContext::Task, ChainId::NONE, Cpu(1));
    b.push(60 * MS, WakeEvent { cpu: Cpu(0), waker: 11, wakee: 12, context, source: 0, target, lock, chain });
    b.push(61 * MS, switch(1, 0, SwitchState::Runnable, 12, LockId::NONE));
    let (name, argument) = (b.string("request"), b.string("/page"));
    for (end, length) in [(3, 1), (5, 1), (7, 1), (70, 62)] {
        let (length, outcome) = (Nanos(length * MS), SpanOutcome::Complete);
        b.push(
            end * MS,
            SpanEvent { tid: 12, end_tid: 12, length, queued: Nanos(0), name, argument, key: 0, outcome, weight: 1 },
        );
    }
    b.push(100 * MS, switch(0, 11, SwitchState::Dead, 0, LockId::NONE));
    b.finish(Some(&mut Namer)).expect("trace")
}
