//! What the running kernel offers, from its BTF.

use libbpf_rs::btf::types::{DataSec, FuncProto, Ptr, Typedef, Var};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType};

/// What the running kernel offers to the recorder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kernel {
    tracepoints: Vec<String>,
    /// Whether `sched_switch` tells the state in which a thread leaves.
    pub has_state_argument: bool,
    /// Distance of `__preempt_count` from `runqueues` in a CPU's memory.
    pub preempt_delta: Option<i64>,
}

impl Kernel {
    /// Reads the kernel's BTF; `None` if there is none.
    pub(crate) fn probe() -> Option<Kernel> {
        let btf = Btf::from_vmlinux().ok()?;
        let mut kernel = Kernel::default();
        for typedef in btf.type_by_kind::<Typedef<'_>>() {
            let Some(name) = typedef.name().and_then(|n| n.to_str()).and_then(|n| n.strip_prefix("btf_trace_")) else {
                continue;
            };
            kernel.tracepoints.push(name.to_owned());
            if name == "sched_switch" {
                kernel.has_state_argument = arguments(&typedef) >= 5;
            }
        }
        kernel.preempt_delta = preempt_delta(&btf);
        Some(kernel)
    }

    /// Whether a raw tracepoint can be attached to.
    pub(crate) fn has(&self, tracepoint: &str) -> bool {
        self.tracepoints.iter().any(|t| t == tracepoint)
    }
}

/// Arguments of the function that a tracepoint's typedef points to.
fn arguments(typedef: &Typedef<'_>) -> usize {
    let pointer: Option<Ptr<'_>> = typedef.referenced_type().try_into().ok();
    let function: Option<FuncProto<'_>> = pointer.and_then(|p| p.referenced_type().try_into().ok());
    function.map_or(0, |f| f.iter().count())
}

fn preempt_delta(btf: &Btf<'_>) -> Option<i64> {
    let section = btf.type_by_kind::<DataSec<'_>>().find(|s| s.name().is_some_and(|n| n == ".data..percpu"))?;
    let offset = |wanted: &str| {
        section.iter().find_map(|variable| {
            let var: Var<'_> = btf.type_by_id::<BtfType<'_>>(variable.ty)?.try_into().ok()?;
            (var.name()? == wanted).then_some(i64::from(variable.offset))
        })
    };
    // From 6.2 to 6.13 it was the second word of pcpu_hot.
    let count = offset("__preempt_count").or_else(|| Some(offset("pcpu_hot")? + 8))?;
    Some(count - offset("runqueues")?)
}
