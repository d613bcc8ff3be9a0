//! Processes that run the same, of which one has most of the work.

use holdup_trace::{Nanos, ThreadIdx};
use rustc_hash::FxHashMap;

use super::context::Context;
use crate::intervals::is_child;
use crate::label;
use crate::report::Culprit;

/// So many times as long as any other of them it runs.
const MOST: f64 = 2.0;
/// What ran for less than this share of the time is not worth dividing.
const MATTERS: f64 = 0.25;

/// What to do where the culprit's process, of which `thread` is one, runs the same script as others in focus that it neither made nor was made by,
/// and has most of the work. O(threads × how deep they were forked).
pub(super) fn advice(context: &Context, c: &Culprit, thread: ThreadIdx) -> Option<String> {
    let (pid, subject) = (context.pid(thread), context.timeline.subject(thread)?);
    let program = context.program(thread);
    let mut ran: FxHashMap<u32, Nanos> = FxHashMap::default();
    let is_like = |t: &ThreadIdx| {
        context.focus.contains(*t) && context.program(*t) == program && context.timeline.subject(*t) == Some(subject)
    };
    let made = |t: ThreadIdx, by: ThreadIdx| is_child(context.trace, t, by);
    for other in context.threads().filter(is_like).filter(|t| !made(*t, thread) && !made(thread, *t)) {
        *ran.entry(context.pid(other)).or_default() += context.ran(other);
    }
    let own = ran.remove(&pid)?;
    let next = ran.values().copied().max()?;
    let has_most = own.0 as f64 >= MOST * next.0 as f64 && own.0 as f64 >= MATTERS * context.duration().0;
    has_most.then(|| {
        let (all, own, next) = (ran.len() + 1, label::duration(own.seconds()), label::duration(next.seconds()));
        let (name, script) = (&c.process, context.trace.text(subject));
        format!(
            "Of {all} {name} processes that run {script}, this one ran for {own}, and none of the others for more than {next}: divide what it \
             has among them."
        )
    })
}
