//! Many short-lived processes, or threads: what each does is less than what it takes to start it.

use holdup_trace::{StringId, ThreadIdx};

use super::context::Context;
use super::tally::Tally;
use crate::label;

/// What to do about processes that cost more to start than they do.
const FEWER: &str =
    "Start fewer processes: let one do the work of many, or use what the shell or the library has built in.";

/// The same of those that a server starts for its clients.
const CONNECTED: &str = "Where each connection is given a process of its own, keep connections open and use them again (a pool, a proxy that \
                         holds them): a new one costs more than what it is asked.";

/// The same of these threads, which are the processes'.
pub(super) fn fewer(context: &Context, mut of: impl Iterator<Item = ThreadIdx>) -> &'static str {
    if of.all(|thread| context.is_server(thread)) { CONNECTED } else { FEWER }
}

/// The same of threads.
pub(super) const POOL: &str =
    "Start fewer threads: keep them in a pool, and hand each more work than it takes to start one.";

/// What to do about connections that are asked next to nothing.
pub(super) const REUSE: &str = "It begins a thread for each connection, and next to nothing is asked over one: keep connections open and use them again (a \
                                session, keep-alive, a pool).";
/// Over one that is kept open more is asked than this.
const ASKED: u64 = 3;

/// Whether those who are waited for are threads that a server begins for connections, of which each is soon over.
pub(super) fn connects_anew(context: &Context, tally: &Tally) -> bool {
    let ends = tally.ends();
    let began = |thread: &ThreadIdx| context.trace.threads.start[thread.index()].nanos() > context.blame.window.0;
    let is_new = |thread: &ThreadIdx| context.is_server(*thread) && began(thread);
    ends.len() >= MANY && tally.waits <= ASKED * ends.len() as u64 && ends.keys().all(is_new)
}

/// Many short-lived processes of one program: what each does is less than what it takes to start it.
pub(super) struct Storm {
    processes: usize,
    each_s: f64,
    all_s: f64,
    /// What to do about them.
    pub(super) advice: &'static str,
}

/// As many processes as no program starts for their work alone,
const MANY: usize = 50;
/// each with so little CPU time, in seconds.
const SHORT: f64 = 0.05;

/// Whether what so many processes do in `seconds` of CPU time is less than what it takes to start them.
pub(super) fn is_storm(processes: usize, seconds: f64) -> bool {
    processes >= MANY && seconds < SHORT * processes as f64
}

impl Storm {
    pub(super) fn of(context: &Context, program: StringId, seconds: f64) -> Option<Storm> {
        let own = context.threads().filter(|t| context.program(*t) == program && context.focus.contains(*t));
        let processes = context.processes(own.clone());
        let each_s = seconds / processes.max(1) as f64;
        is_storm(processes, seconds).then(|| Storm { processes, each_s, all_s: seconds, advice: fewer(context, own) })
    }

    pub(super) fn words(&self, name: &str) -> String {
        let (n, each) = (label::count(self.processes as u64), label::duration(self.each_s));
        format!("{} of CPU time went into {n} {name} processes of {each} each", label::duration(self.all_s))
    }
}
