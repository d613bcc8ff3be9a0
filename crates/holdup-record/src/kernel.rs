//! What the running kernel offers, from its BTF.

use std::fs::File;
use std::io::{BufRead, BufReader};

use libbpf_rs::btf::types::{DataSec, Func, FuncProto, Ptr, Struct, Typedef, Var};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType};

use crate::caps::Raised;

/// Functions of the kernel that programs are attached to.
const FUNCTIONS: [&str; 1] = ["schedule"];
/// What the timer calls by which TCP sends an acknowledgement that it has held back.
const LATE_ACK: &str = " tcp_delack_timer";

/// What the running kernel offers to the recorder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kernel {
    pub tracepoints: Vec<String>,
    /// Those of [`FUNCTIONS`] that it has.
    pub functions: Vec<String>,
    /// Its version, as uname tells it.
    pub release: String,
    /// Whether `sched_switch` tells the state in which a thread leaves.
    pub has_state_argument: bool,
    /// Distance of `__preempt_count` from `runqueues` in a CPU's memory.
    pub preempt_delta: Option<i64>,
    /// Where [`LATE_ACK`] lies; 0 for unknown.
    pub late_ack: u64,
    /// A real-time kernel that takes a sleeping lock to write a stack, where it must not sleep.
    pub stacks_would_sleep: bool,
    /// The same to begin a task's storage.
    pub storage_would_sleep: bool,
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
        kernel.late_ack = address(LATE_ACK).unwrap_or(0);
        kernel.release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
        let has = |name: &&str| btf.type_by_name::<Func<'_>>(name).is_some();
        kernel.functions = FUNCTIONS.iter().filter(|name| has(name)).map(|&name| name.to_owned()).collect();
        let is_real_time = member(&btf, "spinlock", "lock").is_some();
        kernel.stacks_would_sleep =
            is_real_time && member(&btf, "bpf_ringbuf", "spinlock").is_some_and(|name| name == "spinlock_t");
        kernel.storage_would_sleep = is_real_time && kernel.is_before((6, 4));
        Some(kernel)
    }

    /// Whether it is older than a version. Not if its own cannot be read.
    pub(crate) fn is_before(&self, wanted: (u32, u32)) -> bool {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < wanted)
    }

    /// Whether it has one of [`FUNCTIONS`].
    pub(crate) fn has_function(&self, name: &str) -> bool {
        self.functions.iter().any(|function| function == name)
    }

    /// Whether a raw tracepoint can be attached to.
    pub(crate) fn has(&self, tracepoint: &str) -> bool {
        self.tracepoints.iter().any(|t| t == tracepoint)
    }
}

/// Where a function of the kernel lies, whose name stands behind a space, for who may know.
fn address(name: &str) -> Option<u64> {
    let _raised = Raised::all();
    let mut lines = BufReader::new(File::open("/proc/kallsyms").ok()?).lines().map_while(Result::ok);
    let line = lines.find(|line| line.ends_with(name))?;
    u64::from_str_radix(line.split(' ').next()?, 16).ok()
}

/// The name of the type of a structure's member; empty for one without.
fn member(btf: &Btf<'_>, structure: &str, wanted: &str) -> Option<String> {
    let structure: Struct<'_> = btf.type_by_name(structure)?;
    let member = structure.iter().find(|member| member.name.is_some_and(|name| name == wanted))?;
    let of: BtfType<'_> = btf.type_by_id(member.ty)?;
    Some(of.name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let kernel = |release: &str| Kernel { release: release.into(), ..Kernel::default() };
        assert!(kernel("6.1.0-56-rt-amd64").is_before((6, 4)) && kernel("5.19.0").is_before((6, 4)));
        assert!(!kernel("6.12.117+deb12-rt-amd64").is_before((6, 4)) && !kernel("6.4.0-rc1").is_before((6, 4)));
        assert!(!kernel("").is_before((6, 4)) && !kernel("next-7").is_before((6, 4)));
    }
}
