//! Who is there: the threads of a trace, which of them have no name of their own, and what each did.

use std::collections::BTreeMap;

use holdup_trace::{Error, Nanos, Result, Table, ThreadIdx, Trace};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::classify::Classifier;
use crate::focus::Focus;
use crate::intervals::{Chunk, State, Timeline};
use crate::label;
pub use crate::runtime::Role;

/// The threads of a trace: `holdup.threads/1`.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct ThreadList {
    /// `holdup.threads/1`.
    pub schema: &'static str,
    /// The trace.
    pub trace: String,
    /// Its length in seconds.
    pub duration_s: f64,
    /// The process tree in focus; empty for the whole machine.
    pub focus: String,
    /// Threads outside the focus, which are not listed.
    pub outside: usize,
    /// Listed threads without a name of their own.
    pub unnamed: usize,
    /// The threads.
    pub threads: Vec<ThreadTimes>,
    /// How to name threads, if that is worth while; else empty.
    pub advice: String,
}

/// One thread.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct ThreadTimes {
    /// Thread id.
    pub tid: u32,
    /// Its name; empty if unknown.
    pub name: String,
    /// Process id.
    pub pid: u32,
    /// The name of its process.
    pub process: String,
    /// What its name tells.
    pub naming: Naming,
    /// For what its language's runtime keeps it; none for threads of the program.
    pub role: Option<Role>,
    /// On a CPU, in seconds.
    pub ran_s: f64,
    /// Could run and did not, in seconds.
    pub ready_s: f64,
    /// Waited, in seconds.
    pub waited_s: f64,
    /// Its waits.
    pub waits: u64,
    /// The seconds waited, by kind.
    pub waited_by_kind: BTreeMap<&'static str, f64>,
}

/// What a thread's name tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Naming {
    /// It has a name of its own.
    #[default]
    Own,
    /// It is its process's first thread: its name is the process's.
    Main,
    /// It is called like its process.
    Process,
    /// Others of its process are called the same.
    Shared,
    /// It has no name in the trace.
    None,
}

impl Naming {
    /// A word for a table; empty for a name of its own.
    pub const fn word(self) -> &'static str {
        match self {
            Naming::Own => "",
            Naming::Main => "main",
            Naming::Process => "unnamed",
            Naming::Shared => "shared name",
            Naming::None => "no name",
        }
    }

    /// Whether a profile cannot tell the thread from others by its name.
    pub const fn is_unnamed(self) -> bool {
        matches!(self, Naming::Process | Naming::None)
    }
}

/// How a program names its threads.
pub const HOW_TO_NAME: &str = "Threads begin with the name of their creator. Name them when they start, with at most \
    15 bytes: pthread_setname_np(pthread_self(), \"flusher\") in C and C++, std::thread::Builder::new().name(..) in \
    Rust, prctl(PR_SET_NAME, ..) anywhere.";

/// Says of each `(pid, tid, name, process)` what its name tells. O(threads).
pub fn naming(threads: &[(u32, u32, &str, &str)]) -> Vec<Naming> {
    let mut same: FxHashMap<(u32, &str), usize> = FxHashMap::default();
    for (pid, _, name, _) in threads {
        *same.entry((*pid, name)).or_default() += 1;
    }
    let of = |&(pid, tid, name, process): &(u32, u32, &str, &str)| match () {
        () if name.is_empty() => Naming::None,
        () if pid == tid => Naming::Main,
        // Where the first thread is not known, a process is called like any of its threads.
        () if same[&(pid, name)] < 2 => Naming::Own,
        () if name == process => Naming::Process,
        () => Naming::Shared,
    };
    threads.iter().map(of).collect()
}

/// Lists the threads of the focus, or of all processes. `path` is only repeated in the answer. O(events).
///
/// Fails if the trace is damaged or has no threads, or if the focus names no process.
pub fn list(trace: &Trace, path: &str, process: Option<&str>, everybody: bool) -> Result<ThreadList> {
    let refuse = |what: String| Error::Input(format!("{path}: {what}"));
    let focus = Focus::find(trace, process).map_err(refuse)?;
    if trace.threads.len() < 2 {
        return Err(refuse("the trace names no threads".into()));
    }
    let classifier = Classifier::new(trace);
    let timeline = Timeline::new(trace, &focus, &classifier)?;
    let mut rows = rows(trace);
    for (row, thread) in rows.iter_mut().zip((1..).map(ThreadIdx)) {
        row.role = classifier.role(thread);
    }
    add_times(&timeline, &mut rows)?;
    let all = rows.len();
    let numbered = rows.into_iter().zip((1..).map(ThreadIdx));
    let threads: Vec<ThreadTimes> =
        numbered.filter(|(_, t)| everybody || focus.contains(*t)).map(|(row, _)| row).collect();
    let unnamed = threads.iter().filter(|t| t.naming.is_unnamed()).count();
    Ok(ThreadList {
        schema: "holdup.threads/1",
        trace: path.to_owned(),
        duration_s: Nanos(timeline.end).seconds(),
        focus: if everybody { String::new() } else { focus.name().to_owned() },
        outside: all - threads.len(),
        unnamed,
        advice: if unnamed > 0 { HOW_TO_NAME.to_owned() } else { String::new() },
        threads,
    })
}

/// All threads but the idle task, in the table's order.
fn rows(trace: &Trace) -> Vec<ThreadTimes> {
    let real = trace.threads.rows().enumerate().skip(1);
    let names: Vec<_> = real
        .map(|(i, t)| {
            let thread = ThreadIdx(i as u32);
            (t.pid, t.tid, label::thread_name(trace, thread), label::process_name(trace, thread))
        })
        .collect();
    let naming = naming(&names);
    let row = |(&(pid, tid, name, process), naming): (&(u32, u32, &str, &str), Naming)| ThreadTimes {
        tid,
        name: name.to_owned(),
        pid,
        process: process.to_owned(),
        naming,
        ..ThreadTimes::default()
    };
    names.iter().zip(naming).map(row).collect()
}

/// What a thread did.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Did {
    Ran,
    Ready,
    Waited(&'static str),
}

/// What the threads did in a part of the trace.
#[derive(Default)]
struct Seen {
    /// In nanoseconds.
    times: FxHashMap<(ThreadIdx, Did), u64>,
    waits: FxHashMap<ThreadIdx, u64>,
}

impl Seen {
    fn of(chunk: &Chunk) -> Self {
        let mut seen = Seen::default();
        chunk.stretches(|s| {
            let did = match s.state {
                State::Running(_) => Did::Ran,
                State::Runnable(_) | State::Yields(_) | State::Woken(_) => Did::Ready,
                State::Waiting(w) => Did::Waited(chunk.waits()[w as usize].kind.name()),
                State::Unknown | State::Gone => return,
            };
            *seen.times.entry((s.thread, did)).or_default() += s.to - s.from;
        });
        for wait in chunk.waits_begun().iter().filter(|w| w.goes_on == 0) {
            *seen.waits.entry(wait.thread).or_default() += 1;
        }
        seen
    }

    fn absorb(&mut self, later: &Seen) {
        later.times.iter().for_each(|(who, ns)| *self.times.entry(*who).or_default() += ns);
        later.waits.iter().for_each(|(who, count)| *self.waits.entry(*who).or_default() += count);
    }
}

fn add_times(timeline: &Timeline, rows: &mut [ThreadTimes]) -> Result<()> {
    let mut all = Seen::default();
    timeline.each(0..timeline.len(), Seen::of, |seen| all.absorb(&seen))?;
    let at = |thread: ThreadIdx| thread.index().checked_sub(1);
    for ((thread, did), ns) in all.times {
        let Some(row) = at(thread).and_then(|i| rows.get_mut(i)) else { continue };
        let seconds = Nanos(ns).seconds();
        match did {
            Did::Ran => row.ran_s = seconds,
            Did::Ready => row.ready_s = seconds,
            Did::Waited(kind) => drop(row.waited_by_kind.insert(kind, seconds)),
        }
    }
    for row in rows.iter_mut() {
        row.waited_s = row.waited_by_kind.values().sum();
    }
    for (thread, count) in all.waits {
        if let Some(row) = at(thread).and_then(|i| rows.get_mut(i)) {
            row.waits = count;
        }
    }
    Ok(())
}
