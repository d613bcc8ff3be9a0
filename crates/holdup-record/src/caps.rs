//! Capabilities of this process: it may hold some that its user has not, if they were given to its file.
//!
//! Such a program acts for a user who must not gain anything by it but recordings. So nothing is done with a capability
//! but what is written between [`Raised::all`] and its end: files are opened, written and read with none, as that user. What
//! recording has no use for is given up at once, whatever the file was given.
//!
//! What root has is root's own: it stays until the conversion of a recording, which reads files that anybody may have made.

use holdup_trace::{Error, Result};
use rustix::thread::{
    CapabilitySet as Set, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
};

/// All that recording can use: for the programs in the kernel and for samples; to see which sockets other users' processes
/// own, and which files they have mapped (for these PERFMON is enough from Linux 6.15 on); for the names of the kernel's
/// functions.
const RECORDING: Set = Set::BPF.union(Set::PERFMON).union(Set::SYS_PTRACE).union(Set::SYSLOG);

/// What root needs to convert: to write for who called sudo, and to read files and memory that names come from.
const CONVERTING_AS_ROOT: Set = Set::CHOWN
    .union(Set::DAC_OVERRIDE)
    .union(Set::DAC_READ_SEARCH)
    .union(Set::FOWNER)
    .union(Set::KILL)
    .union(Set::SYSLOG)
    .union(Set::SYS_PTRACE)
    .union(Set::SYS_RAWIO);

const NONE: CapabilitySets =
    CapabilitySets { effective: Set::empty(), permitted: Set::empty(), inheritable: Set::empty() };

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

fn held() -> CapabilitySets {
    capabilities(None).unwrap_or(NONE)
}

/// Lays all capabilities down, and gives up those that recording has no use for. Must come before anything else in a
/// program that can record, while it has one thread.
///
/// # Errors
/// [`Error::Unsupported`] if the program is set-user-ID or set-group-ID: no part of it is meant for that.
pub fn lower() -> Result<()> {
    use rustix::process::{getegid, geteuid, getgid, getuid};
    if getuid() != geteuid() || getgid() != getegid() {
        let what = "holdup does not run set-user-ID or set-group-ID: take these bits off (chmod ug-s), and use sudo";
        return Err(Error::Unsupported(what.into()));
    }
    if !is_root() {
        set(held().permitted & RECORDING, Set::empty());
    }
    Ok(())
}

/// Gives up all capabilities for good: for all that records nothing (any more). Root keeps its own.
pub fn give_up() {
    if !is_root() {
        let had = held().permitted;
        set(Set::empty(), Set::empty());
        if !had.is_empty() {
            // Without anything that others must not see it is a process like any other of its user.
            use rustix::process::{DumpableBehavior, set_dumpable_behavior};
            let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
        }
    }
}

/// Gives up for good all capabilities, root's too.
pub fn give_up_all() {
    set(Set::empty(), Set::empty());
}

/// Gives up for good all but what the conversion of a recording needs.
pub fn give_up_recording() {
    let held = held();
    if is_root() {
        let left = held.permitted & CONVERTING_AS_ROOT;
        set(left, left);
    } else {
        set(held.permitted & Set::SYSLOG, Set::empty());
    }
}

/// For the command that is recorded, between fork and exec, and for a thread that acts for the user alone: they run with what the
/// user has. Calls nothing but the system.
pub(crate) fn give_up_in_child() {
    if !is_root() {
        set(Set::empty(), Set::empty());
    }
}

/// Capabilities that work while this lives. For root they always do.
#[derive(Debug)]
#[must_use]
pub struct Raised(());

impl Raised {
    /// All that recording can use.
    pub(crate) fn all() -> Raised {
        Raised::these(RECORDING)
    }

    /// Those that give the kernel's functions their names.
    pub fn for_names() -> Raised {
        Raised::these(Set::SYSLOG)
    }

    fn these(wanted: Set) -> Raised {
        if !is_root() {
            let permitted = held().permitted;
            set(permitted, permitted & wanted);
        }
        Raised(())
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        if !is_root() {
            set(held().permitted, Set::empty());
        }
    }
}

/// None is inherited by what this process starts, by whatever way.
fn set(permitted: Set, effective: Set) {
    let _ = clear_ambient_capability_set();
    // To have fewer is never refused.
    let _ = set_capabilities(None, CapabilitySets { effective, permitted, inheritable: Set::empty() });
}

/// Whether this process may load programs into the kernel and take samples.
pub(crate) fn may_record() -> bool {
    let permitted = held().permitted;
    permitted.contains(Set::SYS_ADMIN) || permitted.contains(Set::BPF.union(Set::PERFMON))
}

/// Whether the user who will own what is written may see addresses of the kernel; the rule of /proc/kallsyms.
pub fn owner_sees_kernel_addresses() -> bool {
    let number = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        text.trim().parse::<i32>().ok()
    };
    may_see(holdup_base::output::owner() == 0, number("kptr_restrict"), number("perf_event_paranoid"))
}

fn may_see(root: bool, kptr_restrict: Option<i32>, perf_event_paranoid: Option<i32>) -> bool {
    match kptr_restrict {
        Some(0) => root || perf_event_paranoid.is_some_and(|level| level <= 1),
        Some(1) => root,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_addresses_are_for_those_who_may_read_kallsyms() {
        assert!(may_see(true, Some(0), Some(4)) && may_see(true, Some(1), None));
        assert!(may_see(false, Some(0), Some(1)) && may_see(false, Some(0), Some(-1)));
        assert!(!may_see(false, Some(0), Some(2)) && !may_see(false, Some(0), None));
        assert!(!may_see(false, Some(1), Some(-1)));
        assert!(!may_see(true, Some(2), Some(-1)) && !may_see(true, None, None));
    }
}
