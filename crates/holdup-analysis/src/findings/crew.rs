//! Who is behind a finding: the threads of one program that have a part in it.

use holdup_trace::{StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::names;
use super::tally::Tally;

/// The greatest that have this share of the blame together have a part in it,
const MOST: f64 = 0.9;
/// and so has who has this share of what the last of these has.
const ALMOST: f64 = 0.5;

/// The threads of the program that has the most blame, those with a part in it, the greatest first; and how many of
/// other programs have one.
#[derive(Debug, Clone, Default)]
pub(super) struct Crew {
    pub(super) threads: Vec<ThreadIdx>,
    pub(super) processes: usize,
    pub(super) strangers: usize,
}

impl Crew {
    pub(super) fn of(context: &Context, tally: &Tally) -> Crew {
        let mut ends: Vec<(ThreadIdx, f64)> = tally.ends().iter().map(|(t, blame)| (*t, *blame)).collect();
        ends.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut programs: FxHashMap<StringId, f64> = FxHashMap::default();
        ends.iter().for_each(|(thread, blame)| *programs.entry(context.program(*thread)).or_default() += blame);
        let most = programs.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let Some((program, _)) = most else { return Crew::default() };
        let least = least_part(&ends);
        let part = ends.into_iter().filter(|(_, blame)| *blame >= least).map(|(thread, _)| thread);
        let (threads, others): (Vec<_>, Vec<_>) = part.partition(|t| context.program(*t) == program);
        let processes = context.processes(threads.iter().copied());
        Crew { threads, processes, strangers: others.len() }
    }

    /// Whether it is more than one.
    pub(super) fn is_many(&self) -> bool {
        self.threads.len() + self.strangers > 1
    }

    /// Whether its threads wait for each other, so that never two of them work at once.
    pub(super) fn excludes_itself(&self, context: &Context, tally: &Tally) -> bool {
        let waits = |thread: &ThreadIdx| tally.threads.contains(thread);
        self.is_many() && context.timeline.peak_parallelism() == 1 && self.threads.iter().all(waits)
    }

    /// `janitor`, `worker-1 … worker-4 of app`, `8 postgres processes`.
    pub(super) fn words(&self, context: &Context) -> String {
        let Some(&main) = self.threads.first() else { return "somebody".to_owned() };
        let (thread, process) = (context.thread_name(main), context.trace.text(context.program(main)));
        let in_focus = context.focus.name().split(" (pid").next() == Some(process);
        let of = |threads: String| match process {
            "" => threads,
            _ if in_focus || thread == process => threads,
            _ => format!("{threads} of {process}"),
        };
        let who = match (thread, process, self.threads.len()) {
            ("", "", _) => "somebody".to_owned(),
            _ if self.processes > 1 => format!("{} {process} processes", self.processes),
            ("", process, _) => process.to_owned(),
            (thread, _, 1) => of(thread.to_owned()),
            _ => {
                let mut groups = names::grouped(self.threads.iter().map(|t| context.thread_name(*t)));
                if groups.len() == 1 {
                    of(groups.remove(0))
                } else {
                    of(format!("{thread}{}", others(self.threads.len() - 1)))
                }
            }
        };
        if self.strangers > 0 { who + &others(self.strangers) } else { who }
    }
}

/// The smallest blame that is a part. `ends` are sorted, the greatest first.
fn least_part(ends: &[(ThreadIdx, f64)]) -> f64 {
    let all: f64 = ends.iter().map(|(_, blame)| blame).sum();
    let mut sum = 0.0;
    let last = ends.iter().find(|(_, blame)| {
        sum += blame;
        sum >= MOST * all
    });
    last.map_or(0.0, |(_, blame)| ALMOST * blame)
}

fn others(n: usize) -> String {
    if n == 1 { " and another".to_owned() } else { format!(" and {n} others") }
}
