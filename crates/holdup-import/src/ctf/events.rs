//! What becomes of an event, by its role.

use holdup_trace::{BlockIoEvent, ChainId, ForkEvent, SampleEvent, SwitchState};

use super::plan::{Slot, UNUSED};
use super::roles::{Role, Use};
use super::stream::{Gap, Source};
use crate::linux::Instant;
use crate::linux::block::SECTOR;
use crate::linux::cpus::cpu;
use crate::linux::irq::{Interrupt, UNKNOWN_SOURCE};
use crate::linux::kernel::{Kernel, Switch, Wake, WakeKind};
use crate::linux::state::StateBits;
use crate::linux::syscalls::{Call, Futex};
use crate::linux::tracepoint::{At, Current};
use crate::perf_data::chain::Splitter;

/// The kernel keeps as many bytes of a program's name.
const COMM: usize = 15;
/// A process that is not known.
const NOBODY: u32 = u32::MAX;

/// Turns what was read into events.
pub struct Events<'b> {
    /// What the machine did.
    pub kernel: Kernel<'b>,
    /// What the bits of `prev_state` mean.
    pub states: StateBits,
    /// For perf's call chains.
    pub splitter: Splitter,
    /// The period of samples in nanoseconds; 0 for none.
    pub period: u64,
}

/// A role, and its fields in a source's values.
struct Fields<'a> {
    used: &'a Use,
    source: &'a Source<'a>,
}

impl Fields<'_> {
    fn number(&self, field: usize) -> u64 {
        self.used.fields.get(field).map_or(0, |&slot| self.source.values.number(slot))
    }

    fn low(&self, field: usize) -> u32 {
        self.number(field) as u32
    }

    fn text(&self, field: usize) -> &[u8] {
        self.used.fields.get(field).map_or(&[], |&slot| self.source.bytes(slot, 1))
    }

    fn slot(&self, slot: Slot) -> Option<u64> {
        (slot != UNUSED).then(|| self.source.values.number(slot))
    }

    /// The futex whose address is in the field `first`, and its operation in the next; in which process, if that is known.
    fn futex(&self, first: usize, current: Current) -> Option<(Futex, u32)> {
        let [address, operation] = [first, first + 1].map(|i| self.slot(*self.used.fields.get(i)?));
        let pid = if current.pid == NOBODY { 0 } else { current.pid };
        Some((Futex { address: address?, operation: operation? as u32 }, pid))
    }

    /// Who ran, as far as the event says it.
    fn current(&self) -> Current {
        let of = |slot| self.slot(slot).map_or(NOBODY, |number| number as u32);
        Current { pid: of(self.used.pid), tid: of(self.used.tid) }
    }
}

impl Events<'_> {
    /// Takes the event that was read last. `None` if it is damaged.
    #[inline]
    pub fn take(&mut self, at: Instant, used: &Use, source: &Source) -> Option<()> {
        let f = Fields { used, source };
        match used.role {
            Role::Counted => return Some(()),
            // What existed before the recording has no time.
            Role::Named => {
                self.kernel.named(at.time, f.low(0), f.low(1), f.text(2));
                return Some(());
            }
            Role::Fork if at.time == 0 => return Some(()),
            _ if !self.kernel.sink.is_plausible(at.time) => return None,
            Role::Switch => self.switch(at, &f),
            Role::Wake(kind) => self.wake(at, kind, &f),
            role => self.rarer(at, role, &f),
        }
        Some(())
    }

    fn switch(&mut self, at: Instant, f: &Fields) {
        let (prev, current) = (f.low(0), f.current());
        let state = if prev == 0 { SwitchState::Runnable } else { self.states.state(f.number(2)) };
        // The idle task always leaves from the same place.
        let chain = if prev == 0 { ChainId::NONE } else { self.chain(At::Switch, current, f) };
        let pid = (current.pid != NOBODY).then_some(current.pid);
        // No handler goes on in another thread; one that seems to had its end lost.
        self.kernel.contexts.leave(at.cpu);
        let (prev_name, next, next_name) = (f.text(1), f.low(3), f.text(4));
        self.kernel.switch(at, &Switch { prev, prev_name, pid, state, next, next_name, chain });
    }

    fn wake(&mut self, at: Instant, kind: WakeKind, f: &Fields) {
        let current = f.current();
        let chain = self.chain(At::Wake, current, f);
        let flags = f.slot(f.used.flags).map(|flags| flags as u8);
        let waker = self.runner(at, current);
        let wake = Wake {
            kind,
            waker: waker.unwrap_or(0),
            wakee: f.low(0),
            wakee_name: f.text(1),
            target: f.low(2),
            flags,
            chain,
        };
        self.kernel.wake(at, &wake);
    }

    /// Who ran: as the event says, or by the CPU's last switch.
    fn runner(&self, at: Instant, current: Current) -> Option<u32> {
        if current.tid == NOBODY { self.kernel.running(at.cpu) } else { Some(current.tid) }
    }

    fn chain(&mut self, at: At, current: Current, f: &Fields) -> ChainId {
        if f.used.chain == UNUSED {
            return ChainId::NONE;
        }
        let entries = f.source.bytes(f.used.chain, 8);
        self.splitter.entries(current, entries, at, self.kernel.sink.builder)
    }

    fn rarer(&mut self, at: Instant, role: Role, f: &Fields) {
        let current = f.current();
        let runner = self.runner(at, current);
        match role {
            Role::Fork => {
                let [parent_pid, parent, pid, tid] = [0, 1, 2, 3].map(|field| f.low(field));
                self.kernel.fork(at.time, ForkEvent { parent_pid, parent, pid, tid });
            }
            Role::Exec => self.exec(at, f),
            Role::Exit => self.kernel.exit(at.time, f.low(0)),
            Role::Call(number) => {
                self.call(at, runner, Some(Call { futex: f.futex(0, current), ..Call::of(number.into()) }));
            }
            Role::CallOfField => {
                self.call(at, runner, Some(Call { futex: f.futex(1, current), ..Call::of(f.number(0) as i64) }));
            }
            Role::CallEnd => self.call(at, runner, None),
            Role::InterruptBegin(what) => {
                let source =
                    if what == Interrupt::Timer { 0 } else { u16::try_from(f.low(0)).unwrap_or(UNKNOWN_SOURCE) };
                self.kernel.interrupt_begin(at.cpu, what, source);
            }
            Role::InterruptEnd(what) => self.kernel.interrupt_end(at.cpu, what),
            Role::Block(issue) => self.block(at, issue, runner, f),
            Role::Lock(begin) => {
                let lock = (f.number(0), f.slot(f.used.fields[1]));
                self.kernel.contention(at, runner.unwrap_or(0), lock, begin);
            }
            Role::Sample => self.sample(at, current, f),
            Role::Counted | Role::Switch | Role::Wake(_) | Role::Named => {}
        }
    }

    fn call(&mut self, at: Instant, runner: Option<u32>, call: Option<Call>) {
        if let Some(tid) = runner {
            self.kernel.system_call(at.time, tid, call);
        }
    }

    /// A process starts another program, and from then on has its name.
    fn exec(&mut self, at: Instant, f: &Fields) {
        let (pid, path) = (f.low(0), f.text(1));
        self.kernel.exec(at.time, pid);
        let name = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
        if !name.is_empty() {
            self.kernel.named(at.time, pid, pid, name.get(..COMM).unwrap_or(name));
        }
    }

    fn block(&mut self, at: Instant, issue: bool, runner: Option<u32>, f: &Fields) {
        let tid = f.slot(f.used.fields[3]).map(|tid| tid as u32).or(runner);
        let event = BlockIoEvent {
            device: f.low(0),
            sector: f.number(1),
            bytes: f.low(2).saturating_mul(SECTOR),
            tid: if issue { tid.unwrap_or(0) } else { 0 },
            issue,
        };
        self.kernel.block(at.time, event);
    }

    fn sample(&mut self, at: Instant, current: Current, f: &Fields) {
        let chain = self.chain(At::Sample, current, f);
        self.period = self.period.max(f.number(1));
        if current.tid != NOBODY {
            self.kernel
                .sink
                .timed(at.time, SampleEvent { cpu: cpu(at.cpu), tid: current.tid, ip: f.number(0), bp: 0, chain });
        }
    }

    /// What the tracer had no room for.
    pub fn gap(&mut self, gap: &Gap) {
        let at = Instant { time: gap.time, cpu: gap.cpu };
        if gap.events > 0 {
            self.kernel.lost(at, gap.span, gap.events, "events that the tracer discarded (buffers full)");
        }
        if gap.packets > 0 {
            self.kernel.lost(at, gap.span, gap.packets, "packets of events that the tracer overwrote");
        }
    }
}
