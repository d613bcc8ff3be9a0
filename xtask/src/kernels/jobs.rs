//! What is recorded in a guest, and what must come of it.

use std::path::Path;

use anyhow::{Context, Result};
use holdup_analysis::report::FindingKind;

use crate::truth::{Truth, Truths, read_truth};

/// What must come of a job.
pub enum Expected {
    /// Its first finding.
    Finding(Truth),
    /// An answer, whichever: what is planted does not come about at this speed.
    Answer,
    /// Exit code 4, and a sentence with these words.
    Refusal(&'static str),
}

/// In which guest a job is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guests {
    /// Of some CPUs.
    Common,
    /// Of more of them.
    Many,
    /// Locked down.
    Locked,
}

/// A line of the guest's script.
pub struct Job {
    pub name: &'static str,
    pub guests: Guests,
    pub expected: Expected,
    /// The shell's, with `SECONDS` for the time.
    command: &'static str,
    /// Of `scenarios`, which it runs.
    pub program: Option<&'static str>,
}

impl Job {
    /// Its line; the trace is called `NAME.holdup`.
    pub fn line(&self, seconds: f64) -> String {
        format!("{} {}\n", self.name, self.command.replace("SECONDS", &seconds.to_string()))
    }
}

/// Kernels without type information have no such folder.
const NO_TYPES: &str = "mount -t tmpfs none /sys/kernel/btf; holdup record -o no_types.holdup -- true; code=$?; \
                        umount /sys/kernel/btf; exit $code";

/// One CPU for four threads.
const QUOTA: &str = "cd /sys/fs/cgroup && echo +cpu >cgroup.subtree_control && mkdir limited && \
                     echo 100000 100000 >limited/cpu.max && holdup record -o /out/quota.holdup -- \
                     sh -c 'echo 0 >limited/cgroup.procs && exec /programs/hog 4 SECONDS'";

/// All that can be asked for.
pub fn all(root: &Path) -> Result<Vec<Job>> {
    let mut truths = read_truth::<Truths>(root)?.scenario;
    let mut planted = |name: &str| {
        let at = truths.iter().position(|truth| truth.name == name).context("no such scenario")?;
        Ok::<_, anyhow::Error>(Expected::Finding(truths.swap_remove(at)))
    };
    let truth = |name: &str, kind, function: &str, thread: &str| {
        let text = |text: &str| text.to_owned();
        let (name, function, thread) = (text(name), text(function), text(thread));
        Expected::Finding(Truth { name, beside: false, kind: vec![kind], function, thread, held_up_at_most: None })
    };
    let common = |name, command, program, expected| Job { name, guests: Guests::Common, expected, command, program };
    let many = |name, command, expected| Job { name, guests: Guests::Many, expected, command, program: Some(name) };
    let container = truth("container", FindingKind::LockHeld, "scan_free_bitmap", "^bitmap-janitor$");
    Ok(vec![
        common("demo", "holdup demo -o demo.holdup", None, Expected::Answer),
        common(
            "long_hold",
            "holdup record -o long_hold.holdup -- /programs/long_hold SECONDS",
            Some("long_hold"),
            planted("long_hold")?,
        ),
        common("chain", "holdup record -o chain.holdup -- /programs/chain SECONDS", Some("chain"), planted("chain")?),
        common(
            "sleep_poll",
            "holdup record -o sleep_poll.holdup -- /programs/sleep_poll SECONDS",
            Some("sleep_poll"),
            planted("sleep_poll")?,
        ),
        common("quota", QUOTA, Some("hog"), truth("quota", FindingKind::Throttled, "", "^hog$")),
        common(
            "container",
            "unshare -m -u -p -f --mount-proc holdup record -o container.holdup -- /programs/long_hold SECONDS",
            Some("long_hold"),
            container,
        ),
        common("no_types", NO_TYPES, None, Expected::Refusal("/sys/kernel/btf/vmlinux")),
        many("convoy", "holdup record -o convoy.holdup -- /programs/convoy SECONDS", planted("convoy")?),
        many("spin_lock", "holdup record -o spin_lock.holdup -- /programs/spin_lock SECONDS", planted("spin_lock")?),
        Job {
            name: "locked",
            guests: Guests::Locked,
            expected: Expected::Refusal("locked down"),
            command: "holdup record -o locked.holdup -- true",
            program: None,
        },
    ])
}
