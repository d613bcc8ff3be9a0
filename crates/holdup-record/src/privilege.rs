//! What recording needs, and sentences for where it is missing.

use holdup_base::PERF;
use holdup_trace::Error;

use crate::caps::may_record;
use crate::kernel::Kernel;

/// An error that says what is missing and what to do instead.
pub(crate) fn unsupported(what: &str) -> Error {
    Error::Unsupported(format!(
        "{}. holdup explain also reads what perf records, where perf may:\n    {PERF}",
        what.trim_end_matches('.')
    ))
}

/// Fails with a sentence if this process cannot record.
pub(crate) fn check() -> Result<Kernel, Error> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
        return Err(unsupported("Recording is supported on Linux on x86-64 only"));
    }
    if !may_record() {
        return Err(unsupported(
            "Recording needs root, or the capabilities CAP_BPF and CAP_PERFMON: run it with sudo. Where others shall record without sudo, give a copy to a group of \
             people who may see the stack memory of every process, root's too: `sudo install -m 750 -g GROUP $(which \
             holdup) /usr/local/bin/holdup-rec && sudo setcap cap_bpf,cap_perfmon,cap_syslog=ep \
             /usr/local/bin/holdup-rec` (Linux 5.8 or later; SECURITY.md says what these allow)",
        ));
    }
    Kernel::probe().ok_or_else(|| {
        unsupported(
            "The kernel has no type information at /sys/kernel/btf/vmlinux: recording needs a kernel built with \
             CONFIG_DEBUG_INFO_BTF=y, as the distributions' kernels since about 2021 are",
        )
    })
}

/// A page that says what recording needs and what of it this machine and this user have.
pub fn capabilities() -> String {
    let yes_no = |yes: bool| if yes { "yes" } else { "NO " };
    let kernel = Kernel::probe();
    let has = |tracepoint: &str| kernel.as_ref().is_some_and(|k| k.has(tracepoint));
    let mut page = String::from("Recording with BPF needs\n");
    let mut line = |yes: bool, what: &str| page.push_str(&format!("  {}  {what}\n", yes_no(yes)));
    line(cfg!(all(target_os = "linux", target_arch = "x86_64")), "Linux on x86-64");
    line(may_record(), "root, or CAP_BPF and CAP_PERFMON");
    line(kernel.is_some(), "kernel type information, /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)");
    line(has("sched_switch") && has("sched_waking"), "tracepoints sched_switch and sched_waking");
    page.push_str("and is better with\n");
    let mut line = |yes: bool, what: &str| page.push_str(&format!("  {}  {what}\n", yes_no(yes)));
    line(has("sched_exit_tp"), "tracepoint sched_exit_tp (else stacks of waits only in system calls, at a cost)");
    line(kernel.as_ref().is_some_and(|k| k.preempt_delta.is_some()), "the CPU's preemption count (who really woke)");
    line(has("contention_begin"), "tracepoints contention_begin and _end (kernel locks, Linux 5.19)");
    line(has("block_rq_issue"), "tracepoints block_rq_issue and _complete (disks)");
    line(crate::perf::has_cycles(), "a hardware cycle counter (else samples by the CPU clock)");
    page.push_str(&format!("\nWithout them, record with perf; holdup explain reads that too:\n    {PERF}\n"));
    page
}
