//! What becomes of a sample, by its event's role.

use holdup_trace::SampleEvent;

use super::decoder::Decoder;
use super::events::Role;
use super::plan::{Plan, Sample};
use crate::linux::Instant;
use crate::linux::cpus::{MAX_CPUS, cpu};
use crate::linux::tracepoint::{At, Current, Tracepoint};

/// Decodes a sample and pushes what its role asks for. `None` if it is damaged.
#[inline]
pub fn decode(plan: &Plan, role: &Role, misc: u16, body: &[u8], decoder: &mut Decoder) -> Option<()> {
    let s = plan.sample(body)?;
    if !decoder.kernel.sink.is_plausible(s.time) || (plan.has_cpu() && s.cpu >= MAX_CPUS.into()) {
        return None;
    }
    decoder.losses.seen(s.cpu, s.time);
    match role {
        Role::Tracepoint(point) => decoder.tracepoint(point, plan, misc, &s),
        Role::CpuTime => decoder.cpu_time(plan, misc, &s),
        Role::Counted | Role::Unformatted => Some(()),
    }
}

impl Decoder<'_> {
    #[inline]
    fn tracepoint(&mut self, point: &Tracepoint, plan: &Plan, misc: u16, s: &Sample) -> Option<()> {
        let Decoder { kernel, splitter, other_namespace, .. } = self;
        if let Tracepoint::Switch(fields) = point {
            *other_namespace |= s.tid != u32::MAX && fields.is_complete(s.raw) && s.tid != fields.prev.low(s.raw);
        }
        let (at, current) = (Instant { time: s.time, cpu: s.cpu }, Current { pid: s.pid, tid: s.tid });
        kernel.tracepoint(point, (at, current), s.raw, |at, builder| splitter.chain(plan, misc, s, at, builder))
    }

    fn cpu_time(&mut self, plan: &Plan, misc: u16, s: &Sample) -> Option<()> {
        let sink = &mut self.kernel.sink;
        let chain = self.splitter.chain(plan, misc, s, At::Sample, sink.builder);
        // Outside of any process nobody can say whose time it was.
        if s.tid != u32::MAX {
            sink.timed(s.time, SampleEvent { cpu: cpu(s.cpu), tid: s.tid, ip: s.ip, bp: 0, chain });
        }
        Some(())
    }
}
