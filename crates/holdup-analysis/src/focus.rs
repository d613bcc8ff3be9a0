//! Whose waits count: the focus, and which threads are the kernel's own.

use std::collections::{BTreeMap, BTreeSet};

use holdup_base::near;
use holdup_trace::tables::Thread;
use holdup_trace::{StringId, Table, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

/// What is asked for in place of a process for every thread, whatever the trace is about.
pub const EVERYBODY: &str = "*";

/// The parent of the kernel's own threads.
const KTHREADD: u32 = 2;

/// Which threads can be held up. Anyone can be the culprit.
#[derive(Debug, Clone)]
pub struct Focus {
    member: Vec<bool>,
    kernel: Vec<bool>,
    everything: bool,
    name: String,
}

impl Focus {
    /// The process trees of `meta.focus_pids` (or of the command that perf recorded), or of all processes named or
    /// numbered `process`, or if there are none, those called so with a version (`php-fpm` for `php-fpm8.2`); without any of
    /// these, and for [`EVERYBODY`], every thread. O(threads).
    pub fn new(trace: &Trace, process: Option<&str>) -> Self {
        let threads = &trace.threads;
        let roots: Vec<u32> = match process {
            Some(EVERYBODY) => Vec::new(),
            Some(wanted) => {
                let pids = |is: fn(&Trace, &Thread, &str) -> bool| {
                    threads.rows().filter(|t| is(trace, t, wanted)).map(|t| t.pid).collect()
                };
                let named: Vec<u32> = pids(is_named);
                if named.is_empty() { pids(is_version) } else { named }
            }
            None if trace.meta.focus_pids.is_empty() => workload(trace),
            None => trace.meta.focus_pids.clone(),
        };
        let everything = roots.is_empty() && process.is_none_or(|wanted| wanted == EVERYBODY);
        let mut focus = Focus {
            member: vec![everything; threads.len()],
            kernel: vec![false; threads.len()],
            everything,
            name: String::new(),
        };
        for (i, t) in threads.rows().enumerate() {
            let parent = threads.tid.get(t.parent.index());
            focus.kernel[i] = is_kernel_name(trace.text(t.name)) || parent == Some(&KTHREADD);
            // Nobody asks what holds up the recorder.
            focus.member[i] = i > 0 && (everything && !is_recorder(trace, t.pid) || roots.contains(&t.pid));
        }
        if !everything {
            focus.add_descendants(trace);
        }
        focus.name = name(trace, &roots);
        focus
    }

    /// Adds what descends from members. Parents mostly come before their children in the table; of processes that were there
    /// before the trace, any may come first. Their threads have no parent of their own, but one process.
    fn add_descendants(&mut self, trace: &Trace) {
        let threads = &trace.threads;
        let main = |t: &Thread| t.start.nanos() == 0 && t.tid == t.pid;
        let mains: FxHashMap<u32, usize> =
            threads.rows().enumerate().filter(|(_, t)| main(t)).map(|(i, t)| (t.pid, i)).collect();
        let above = |i: usize, t: &Thread| match t.parent.index() {
            parent if parent < threads.len() => Some(parent),
            _ => mains.get(&t.pid).copied().filter(|&main| main != i),
        };
        let mut decided = vec![false; threads.len()];
        let mut path = Vec::new();
        for first in 1..threads.len() {
            let mut next = Some(first);
            let mut member = false;
            // Upwards, as far as nothing is known.
            while let Some(i) = next.filter(|_| !member) {
                member = self.member[i];
                if std::mem::replace(&mut decided[i], true) {
                    break;
                }
                path.push(i);
                next = above(i, &threads.row(i));
            }
            path.drain(..).for_each(|i| self.member[i] |= member);
        }
    }

    /// The focus on `process`, or on what the trace is about.
    ///
    /// # Errors
    /// If no process has this name or number: a sentence that names those that there are, the nearest first.
    pub fn find(trace: &Trace, process: Option<&str>) -> Result<Self, String> {
        let focus = Focus::new(trace, process);
        match process.filter(|_| focus.is_empty()) {
            None => Ok(focus),
            Some(wanted) => Err(nobody(trace, &focus, wanted)),
        }
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

/// The first of the processes `roots` by name and number, and how many there are besides.
fn name(trace: &Trace, roots: &[u32]) -> String {
    let mains = || trace.threads.rows().filter(|t| t.tid == t.pid && roots.contains(&t.pid));
    let first = roots.iter().find_map(|&root| mains().find(|t| t.pid == root));
    let others = mains().count().saturating_sub(1);
    match (first, others) {
        (None, _) => String::new(),
        (Some(t), 0) => format!("{} (pid {})", trace.text(t.name), t.pid),
        (Some(t), n) => format!("{} (pid {}) and {n} more", trace.text(t.name), t.pid),
    }
}

/// How many processes a sentence names.
const NAMED: usize = 10;

/// The sentence about a process that is not in the trace.
fn nobody(trace: &Trace, focus: &Focus, wanted: &str) -> String {
    // By name, the kernel's own apart: nobody means them, but who does shall find them.
    let mut found: BTreeMap<(bool, &str), BTreeSet<u32>> = BTreeMap::new();
    for (i, t) in trace.threads.rows().enumerate().filter(|(_, t)| t.pid != 0) {
        found.entry((focus.kernel[i], trace.text(t.process))).or_default().insert(t.pid);
    }
    if found.is_empty() {
        return format!("no process is called or numbered {wanted}: the trace names none at all");
    }
    let distance = |kernel: bool, name: &str, pids: &BTreeSet<u32>| {
        let numbers = pids.iter().take(1000).map(|pid| near::rank(wanted, &pid.to_string()));
        // A number that lies within a longer one tells nothing.
        let number = numbers.map(|(_, edits)| (true, edits)).min();
        (kernel, number.into_iter().chain([near::rank(wanted, name)]).min())
    };
    let mut names: Vec<_> = found.into_iter().collect();
    names.sort_by_cached_key(|((kernel, name), pids)| distance(*kernel, name, pids));
    let hint = near::hint(wanted, names.iter().filter(|((kernel, _), _)| !kernel).map(|((_, name), _)| *name));
    let list: Vec<String> = names.iter().take(NAMED).map(|((_, name), pids)| shown(name, pids)).collect();
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("no process is called or numbered {wanted}{hint}; there are {}{more}", list.join(", "))
}

fn shown(name: &str, pids: &BTreeSet<u32>) -> String {
    match (pids.len(), pids.first()) {
        (1, Some(pid)) => format!("{name} ({pid})"),
        (n, _) => format!("{name} ({n} processes)"),
    }
}

/// What `perf record -a -- sleep 5` runs: it measures the time, and nobody asks about it.
pub(crate) const CLOCK: &str = "sleep";

/// The command that perf was asked to record: a main thread that got the command's name within the trace.
fn workload(trace: &Trace) -> Vec<u32> {
    let meta = &trace.meta;
    if meta.format != "perf.data" || !meta.command.first().is_some_and(|c| c.ends_with("perf")) {
        return Vec::new();
    }
    let after = meta.command.iter().position(|a| a == "--").map_or(2, |i| i + 1);
    let mut renamed: Vec<(StringId, u32)> = Vec::new();
    for row in trace.thread_names.iter().flatten() {
        let known = row.thread.index() < trace.threads.len();
        if let Some(t) =
            known.then(|| trace.threads.row(row.thread.index())).filter(|t| t.tid == t.pid && row.t.nanos() > 0)
        {
            renamed.push((row.name, t.pid));
        }
    }
    let named = |argument: &String| {
        let base = argument.rsplit('/').next().unwrap_or(argument);
        // The kernel keeps 15 bytes of a name.
        let end = base.char_indices().map(|(i, c)| i + c.len_utf8()).take_while(|&n| n <= 15).last().unwrap_or(0);
        let pid = renamed.iter().find(|(name, _)| end > 0 && trace.text(*name) == &base[..end]).map(|(_, pid)| *pid);
        pid.map(|pid| if base == CLOCK { Vec::new() } else { vec![pid] })
    };
    meta.command.iter().skip(after).find_map(named).unwrap_or_default()
}

fn is_named(trace: &Trace, t: &Thread, wanted: &str) -> bool {
    let process = trace.text(t.process);
    // A title goes on behind the name: `tmux: server`, `starman master`.
    let begins = || process.strip_prefix(wanted).is_some_and(|rest| rest.starts_with([':', ' ']));
    process == wanted || wanted.parse() == Ok(t.pid) || !wanted.is_empty() && begins()
}

fn is_version(trace: &Trace, t: &Thread, wanted: &str) -> bool {
    let version = trace.text(t.process).strip_prefix(wanted).filter(|_| !wanted.is_empty());
    version.is_some_and(|v| !v.is_empty() && v.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// Whether a process is what made the recording.
pub(crate) fn is_recorder(trace: &Trace, pid: u32) -> bool {
    pid != 0 && pid == trace.meta.recorder_pid
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
