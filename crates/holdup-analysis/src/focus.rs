//! Whose waits count: the focus, and which threads are the kernel's own.

use holdup_trace::tables::Thread;
use holdup_trace::{Table, ThreadIdx, Trace};

/// Which threads can be held up. Anyone can be the culprit.
#[derive(Debug, Clone)]
pub struct Focus {
    member: Vec<bool>,
    kernel: Vec<bool>,
    everything: bool,
    name: String,
}

impl Focus {
    /// The process trees of `meta.focus_pids`, or of all processes named or numbered `process`; without either,
    /// every thread. O(threads).
    pub fn new(trace: &Trace, process: Option<&str>) -> Self {
        let threads = &trace.threads;
        let roots: Vec<u32> = match process {
            Some(wanted) => threads.rows().filter(|t| is_named(trace, t, wanted)).map(|t| t.pid).collect(),
            None => trace.meta.focus_pids.clone(),
        };
        let everything = roots.is_empty() && process.is_none();
        let mut focus = Focus {
            member: vec![everything; threads.len()],
            kernel: vec![false; threads.len()],
            everything,
            name: String::new(),
        };
        for (i, t) in threads.rows().enumerate() {
            let parent = t.parent.index();
            // Parents come before their children in the table.
            let inherited = parent < i && focus.member[parent];
            let name = trace.text(t.name);
            focus.kernel[i] = is_kernel_name(name) || (parent < i && threads.tid[parent] == 2);
            focus.member[i] = i > 0 && (everything || inherited || roots.contains(&t.pid));
        }
        let main = threads.rows().find(|t| roots.contains(&t.pid) && t.tid == t.pid);
        focus.name = main.map_or(String::new(), |t| format!("{} ({})", trace.text(t.name), t.pid));
        focus
    }

    /// Whether the thread can be held up.
    pub fn contains(&self, thread: ThreadIdx) -> bool {
        self.member.get(thread.index()).copied().unwrap_or(false)
    }

    /// Whether it is a thread of the kernel: a proxy for those it works for.
    pub fn is_kernel(&self, thread: ThreadIdx) -> bool {
        self.kernel.get(thread.index()).copied().unwrap_or(false)
    }

    /// Whether all threads are in focus.
    pub fn is_everything(&self) -> bool {
        self.everything
    }

    /// Whether no thread at all is in focus.
    pub fn is_empty(&self) -> bool {
        !self.member.contains(&true)
    }

    /// The focus in words; empty for the whole machine.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn is_named(trace: &Trace, t: &Thread, wanted: &str) -> bool {
    trace.text(t.process) == wanted || wanted.parse() == Ok(t.pid)
}

/// Names that the kernel gives to its own threads.
fn is_kernel_name(name: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "kworker",
        "ksoftirqd/",
        "migration/",
        "rcu_",
        "rcuo",
        "rcub",
        "jbd2/",
        "irq/",
        "kswapd",
        "kcompactd",
        "khugepaged",
        "kthreadd",
        "cpuhp/",
        "idle_inject",
        "kblockd",
        "xfsaild",
        "xfs-",
        "btrfs-",
        "nvme-",
        "scsi_",
        "kauditd",
        "watchdogd",
        "oom_reaper",
        "kdevtmpfs",
        "writeback",
        "txg_sync",
        "z_wr",
        "loop",
        "md",
    ];
    const SHORT: &[&str] = &["loop", "md"];
    PREFIXES.iter().any(|p| {
        name.strip_prefix(p).is_some_and(|rest| !SHORT.contains(p) || rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}
