//! What events are used for, by their names: those of LTTng, and those that perf gives what it converts.

use super::compile::Compiler;
use super::metadata::Metadata;
use super::plan::{Slot, UNUSED};
use crate::linux::irq::Interrupt;
use crate::linux::kernel::WakeKind;
use crate::linux::state::StateBits;
use crate::linux::x86_64;

/// What an event is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Counted only.
    Counted,
    /// A thread leaves its CPU.
    Switch,
    /// A thread becomes runnable.
    Wake(WakeKind),
    /// A thread is made.
    Fork,
    /// A process starts another program.
    Exec,
    /// A thread ends.
    Exit,
    /// A thread that was there before.
    Named,
    /// A handler begins.
    InterruptBegin(Interrupt),
    /// It ends.
    InterruptEnd(Interrupt),
    /// The system call of this number begins; of `futex` with its address and operation.
    Call(i16),
    /// A system call begins, whose number is a field; of `futex` with its address and operation.
    CallOfField,
    /// It ends.
    CallEnd,
    /// A request to a disk is issued (true) or done.
    Block(bool),
    /// Contention for a kernel lock begins (true) or ends.
    Lock(bool),
    /// A sample of what a CPU does.
    Sample,
}

/// An event's role, and where the fields are that it needs.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    /// The role.
    pub role: Role,
    /// The role's own fields.
    pub fields: [Slot; 5],
    /// The thread that ran, where the event says it.
    pub tid: Slot,
    /// Its process.
    pub pid: Slot,
    /// The tracepoint's `common_flags`.
    pub flags: Slot,
    /// perf's call chain.
    pub chain: Slot,
}

/// Event names, their role, and its fields; `a|b` is the first of the two that is there, and `?` one that may be missing.
type Row = (&'static [&'static str], Role, &'static [&'static str]);

const SCHEDULER: &[Row] = &[
    (
        &["sched_switch"],
        Role::Switch,
        &["prev_tid|prev_pid", "prev_comm", "prev_state", "next_tid|next_pid", "next_comm"],
    ),
    (&["sched_waking"], Role::Wake(WakeKind::Waking), WAKE),
    (&["sched_wakeup"], Role::Wake(WakeKind::Woken), WAKE),
    (&["sched_wakeup_new"], Role::Wake(WakeKind::New), WAKE),
    (&["sched_process_exec"], Role::Exec, &["tid|pid", "filename|?"]),
    (&["block_rq_issue"], Role::Block(true), REQUEST),
    (&["block_rq_complete"], Role::Block(false), REQUEST),
    (&["irq_handler_entry"], Role::InterruptBegin(Interrupt::Hard), &["irq"]),
    (&["irq_handler_exit"], Role::InterruptEnd(Interrupt::Hard), &[]),
    (&["irq_softirq_entry", "softirq_entry"], Role::InterruptBegin(Interrupt::Soft), &["vec"]),
    (&["irq_softirq_exit", "softirq_exit"], Role::InterruptEnd(Interrupt::Soft), &[]),
    (&["timer_hrtimer_expire_entry", "hrtimer_expire_entry"], Role::InterruptBegin(Interrupt::Timer), &[]),
    (&["timer_hrtimer_expire_exit", "hrtimer_expire_exit"], Role::InterruptEnd(Interrupt::Timer), &[]),
    (&["timer_expire_entry"], Role::InterruptBegin(Interrupt::Timer), &[]),
    (&["timer_expire_exit"], Role::InterruptEnd(Interrupt::Timer), &[]),
    (
        &[
            "x86_irq_vectors_reschedule_entry",
            "reschedule_entry",
            "x86_irq_vectors_call_function_entry",
            "call_function_entry",
        ],
        Role::InterruptBegin(Interrupt::Ipi),
        &["vector|?"],
    ),
    (
        &[
            "x86_irq_vectors_reschedule_exit",
            "reschedule_exit",
            "x86_irq_vectors_call_function_exit",
            "call_function_exit",
        ],
        Role::InterruptEnd(Interrupt::Ipi),
        &[],
    ),
    (
        &["x86_irq_vectors_call_function_single_entry", "call_function_single_entry"],
        Role::InterruptBegin(Interrupt::Ipi),
        &["vector|?"],
    ),
    (
        &["x86_irq_vectors_call_function_single_exit", "call_function_single_exit"],
        Role::InterruptEnd(Interrupt::Ipi),
        &[],
    ),
];
const WAKE: &[&str] = &["tid|pid", "comm", "target_cpu|cpu"];
const REQUEST: &[&str] = &["dev", "sector", "nr_sector", "tid|?"];

const LTTNG: &[Row] = &[
    (&["sched_process_fork"], Role::Fork, &["parent_pid", "parent_tid", "child_pid", "child_tid"]),
    (&["sched_process_exit"], Role::Exit, &["tid"]),
    (&["lttng_statedump_process_state"], Role::Named, &["pid", "tid", "name"]),
    (&["exit_syscall"], Role::CallEnd, &[]),
];

const PERF: &[Row] = &[
    (&["perf_fork"], Role::Fork, &["ppid", "ptid", "pid", "tid"]),
    (&["perf_exit"], Role::Exit, &["tid"]),
    (&["perf_comm"], Role::Named, &["pid", "tid", "comm"]),
    (&["raw_syscalls:sys_enter"], Role::CallOfField, &["id"]),
    (&["raw_syscalls:sys_exit"], Role::CallEnd, &[]),
    (&["lock:contention_begin"], Role::Lock(true), &["lock_addr", "flags|?"]),
    (&["lock:contention_end"], Role::Lock(false), &["lock_addr"]),
];

/// The subsystems of [`SCHEDULER`], as perf puts them before the names.
const SYSTEMS: [&str; 5] = ["sched", "block", "irq", "timer", "irq_vectors"];
/// perf's events whose samples are CPU time, by what their names begin with.
const CPU_TIME: [&str; 2] = ["cpu-clock", "task-clock"];

/// Who wrote the trace, and of which kernel.
#[derive(Debug)]
pub struct Dialect {
    is_kernel: bool,
    is_perf: bool,
}

impl Dialect {
    /// By what the trace's `env` says.
    pub fn of(m: &Metadata) -> Dialect {
        Dialect { is_kernel: m.env("domain") == Some("kernel"), is_perf: m.env("tracer_name") == Some("perf") }
    }

    /// What the event of this name is used for, whose fields `c` has just seen.
    pub fn used(&self, name: &str, c: &mut Compiler) -> Use {
        let none =
            Use { role: Role::Counted, fields: [UNUSED; 5], tid: UNUSED, pid: UNUSED, flags: UNUSED, chain: UNUSED };
        let Some((role, fields)) = self.role(name).and_then(|(role, names)| Some((role, fields(names, c)?))) else {
            return none;
        };
        let mut slot =
            |places: &[(&str, &str)]| places.iter().find_map(|(path, name)| c.wanted(path, name)).unwrap_or(UNUSED);
        let mut current = |perf: &str, lttng: &str| match self.is_perf {
            true => slot(&[(FIELDS, perf)]),
            false => slot(&[("stream.event.context", lttng), ("event.context", lttng)]),
        };
        let (tid, pid) = (current("perf_tid", "tid"), current("perf_pid", "pid"));
        let [flags, chain] = match self.is_perf {
            true => ["common_flags", "perf_callchain"].map(|name| slot(&[(FIELDS, name)])),
            false => [UNUSED; 2],
        };
        Use { role, fields, tid, pid, flags, chain }
    }

    fn role(&self, name: &str) -> Option<(Role, &'static [&'static str])> {
        let find = |rows: &'static [Row], name: &str| {
            let row = rows.iter().find(|(names, ..)| names.contains(&name))?;
            Some((row.1, row.2))
        };
        if !self.is_kernel {
            return None;
        }
        if !self.is_perf {
            return find(SCHEDULER, name).or_else(|| find(LTTNG, name)).or_else(|| lttng_call(name));
        }
        match name.split_once(':') {
            Some((system, name)) if SYSTEMS.contains(&system) => find(SCHEDULER, name),
            Some(("syscalls", "sys_enter_futex")) => Some((Role::CallOfField, &["_syscall_nr|nr", "uaddr|?", "op|?"])),
            Some(("syscalls", call)) if call.starts_with("sys_enter_") => {
                Some((Role::CallOfField, &["_syscall_nr|nr"]))
            }
            Some(("syscalls", call)) if call.starts_with("sys_exit_") => Some((Role::CallEnd, &[])),
            _ if CPU_TIME.iter().any(|begin| name.starts_with(begin)) => {
                Some((Role::Sample, &["perf_ip", "perf_period|?"]))
            }
            _ => find(PERF, name),
        }
    }

    /// What the bits of a `prev_state` mean.
    pub fn states(m: &Metadata) -> StateBits {
        // Before 4.14 the kernel's internal numbers were written, in which 2048 stands for "preempted".
        const OLD: &str = r#"{ 1, "S" }, { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 512, "P" }, { 1024, "N" }, "+""#;
        let release = m.env("kernel_release").or_else(|| m.env("release")).unwrap_or("");
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().unwrap_or(0));
        match (numbers.next(), numbers.next()) {
            (Some(major @ 1..), Some(minor)) if (major, minor) < (4, 14) => StateBits::from_print_format(OLD),
            _ => StateBits::current(),
        }
    }
}

const FIELDS: &str = "event.fields";

/// The slots of these fields; `None` if one is missing.
fn fields(names: &[&str], c: &mut Compiler) -> Option<[Slot; 5]> {
    let mut slots = [UNUSED; 5];
    for (slot, names) in slots.iter_mut().zip(names) {
        let found = names.split('|').find_map(|name| if name == "?" { Some(UNUSED) } else { c.wanted(FIELDS, name) });
        *slot = found?;
    }
    Some(slots)
}

/// `syscall_entry_futex`, `compat_syscall_exit_read`, and `sys_futex` of LTTng before 2.6.
fn lttng_call(name: &str) -> Option<(Role, &'static [&'static str])> {
    let name = name.strip_prefix("compat_").unwrap_or(name);
    if name.starts_with("syscall_exit_") {
        return Some((Role::CallEnd, &[]));
    }
    let call = name.strip_prefix("syscall_entry_").or_else(|| name.strip_prefix("sys_"))?;
    let fields: &[&str] = if call == "futex" { &["uaddr|?", "op|?"] } else { &[] };
    Some((Role::Call(x86_64::number(call)), fields))
}
