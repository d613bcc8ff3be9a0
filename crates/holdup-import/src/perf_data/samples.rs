//! What becomes of a sample, by its event's role.

use holdup_trace::{ExecEvent, SampleEvent};

use super::chain::At;
use super::cpus::{MAX_CPUS, cpu};
use super::decoder::Decoder;
use super::events::Role;
use super::irq::UNKNOWN_SOURCE;
use super::plan::{Plan, Sample};

/// Decodes a sample and pushes what its role asks for. `None` if it is damaged.
#[inline]
pub fn decode(plan: &Plan, role: &Role, misc: u16, body: &[u8], decoder: &mut Decoder) -> Option<()> {
    let s = plan.sample(body)?;
    if !decoder.sink.is_plausible(s.time) || (plan.has_cpu() && s.cpu >= MAX_CPUS.into()) {
        return None;
    }
    decoder.losses.seen(s.cpu, s.time);
    match role {
        Role::Switch(fields) => decoder.switch(fields, plan, misc, &s),
        Role::Wake(fields) => decoder.wake(fields, plan, misc, &s),
        Role::CpuTime => decoder.cpu_time(plan, misc, &s),
        other => decoder.rarer(other, &s),
    }
}

impl Decoder<'_> {
    fn cpu_time(&mut self, plan: &Plan, misc: u16, s: &Sample) -> Option<()> {
        let chain = self.splitter.chain(plan, misc, s, At::Sample, self.sink.builder);
        // Outside of any process nobody can say whose time it was.
        if s.tid != u32::MAX {
            self.sink.timed(s.time, SampleEvent { cpu: cpu(s.cpu), tid: s.tid, ip: s.ip, chain });
        }
        Some(())
    }

    fn rarer(&mut self, role: &Role, s: &Sample) -> Option<()> {
        match role {
            Role::SysEnter(number) => self.calls.seen(s.time, s.tid, i16::try_from(number.low(s.raw)).unwrap_or(-1)),
            Role::SysExit => self.calls.seen(s.time, s.tid, -1),
            Role::LockBegin(fields) => return self.lock(fields, true, s),
            Role::LockEnd(fields) => return self.lock(fields, false, s),
            Role::Block(fields, issue) => return self.block(fields, *issue, s),
            Role::InterruptBegin(what, number) => {
                let source = number.and_then(|n| u16::try_from(n.low(s.raw)).ok()).unwrap_or(UNKNOWN_SOURCE);
                self.contexts.begin(s.cpu, *what, source);
            }
            Role::InterruptEnd(what) => self.contexts.end(s.cpu, *what),
            Role::Exec if s.pid != u32::MAX => self.sink.timed(s.time, ExecEvent { pid: s.pid }),
            _ => {}
        }
        Some(())
    }
}
