//! Steps that one process takes one after another: a script's commands, a package's build. What one of them works at alone, the next might do
//! meanwhile.

use holdup_trace::{Nanos, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::sequence::{Row, Started, started};
use crate::label::{self, duration};
use crate::servers::Processes;

/// What works for less of the time than this is not worth the question what may run beside it.
const LONG: f64 = 0.25;
/// A step with less of the steps' time than this is no help beside another.
const STEP: f64 = 0.1;
/// Processes are looked at so far up.
const HIGHEST: usize = 16;
/// Steps that are named.
const NAMED: usize = 4;

/// What to do about the steps of which the one that `thread` works for is one, if it worked for `lasted` seconds; none if there are none. O(threads).
pub(super) fn advice(context: &Context, thread: ThreadIdx, lasted: f64) -> Option<String> {
    let (from, to) = context.blame.window;
    if lasted < LONG * Nanos(to - from).seconds() {
        return None;
    }
    let processes = Processes::of(context.trace);
    let mut children: FxHashMap<ThreadIdx, Vec<Started>> = FxHashMap::default();
    for (starter, life) in started(context, &processes) {
        children.entry(starter).or_default().push(life);
    }
    let mut at = processes.main(thread)?;
    for _ in 0..HIGHEST {
        let starter = processes.main(context.trace.thread(at)?.parent)?;
        let row = Row::of(starter, children.remove(&starter).unwrap_or_default());
        let long = |life: &&Started| life.ns() as f64 >= STEP * row.covered as f64;
        let its = row.started.iter().find(|life| life.process == at).filter(long);
        // What feeds it, or is fed by it, runs beside it already.
        let is_step = |life: &&Started| long(life) && its.is_some_and(|its| !life.is_beside(its));
        let steps: Vec<&Started> = row.started.iter().filter(is_step).collect();
        if row.is_one_after_another(context) && steps.len() > 1 {
            return Some(words(context, &processes, starter, &steps));
        }
        at = starter;
    }
    None
}

fn words(context: &Context, processes: &Processes, starter: ThreadIdx, steps: &[&Started]) -> String {
    let names = named(context, processes, steps);
    let of = |(step, name): (&&Started, &String)| format!("{name} {}", duration(Nanos(step.ns()).seconds()));
    let mut told: Vec<String> = steps.iter().zip(&names).take(NAMED).map(of).collect();
    if steps.len() > NAMED {
        told.push(format!("{} more", steps.len() - NAMED));
    }
    let starter = label::process_name(context.trace, starter);
    format!(
        "{starter} does one thing after another ({}): let those run at once that do not need each other.",
        told.join(", ")
    )
}

/// What most of the CPU time of each step went into: a shell that starts one says less. O(threads).
fn named(context: &Context, processes: &Processes, steps: &[&Started]) -> Vec<String> {
    let of = processes.below(&steps.iter().map(|step| step.process).collect());
    let mut ran: FxHashMap<ThreadIdx, FxHashMap<(StringId, StringId), Nanos>> = FxHashMap::default();
    for (thread, step) in (0..).map(ThreadIdx).zip(of) {
        let Some(step) = step else { continue };
        let what = (context.program(thread), context.timeline.subject(thread).unwrap_or_default());
        let own = context.ran(thread);
        *ran.entry(step).or_default().entry(what).or_default() += own;
    }
    let name = |step: &&Started| {
        let most = ran.get(&step.process).and_then(|ran| ran.iter().max_by_key(|(what, ns)| (**ns, **what)));
        let (program, subject) = most.map_or((context.program(step.process), StringId::default()), |(what, _)| *what);
        let words = [program, subject].map(|word| context.trace.text(word));
        words.join(" ").trim_end().to_owned()
    };
    steps.iter().map(name).collect()
}
