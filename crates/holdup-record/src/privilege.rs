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
    crate::said::keep();
    Kernel::probe().ok_or_else(|| {
        unsupported(
            "The kernel has no type information at /sys/kernel/btf/vmlinux: recording needs a kernel built with \
             CONFIG_DEBUG_INFO_BTF=y, as the distributions' kernels since about 2021 are",
        )
    })
}

/// The sentence for a kernel that lets nobody read its memory, which is what the programs do.
pub(crate) fn locked_down() -> Option<Error> {
    let state = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    is_confidential(&state).then(|| {
        unsupported(
            "The kernel is locked down (confidentiality), so that nobody may read its memory, which recording does: boot it without \
             lockdown=confidentiality (lockdown=integrity, as with secure boot, does not hinder it)",
        )
    })
}

/// From `none integrity [confidentiality]`.
fn is_confidential(state: &str) -> bool {
    state.contains("[confidentiality]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_mode_in_brackets_is_in_force() {
        assert!(is_confidential("none integrity [confidentiality]\n"));
        assert!(!is_confidential("none [integrity] confidentiality\n") && !is_confidential(""));
    }
}
