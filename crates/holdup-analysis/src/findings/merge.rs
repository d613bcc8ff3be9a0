//! Many like culprits are one: threads and processes of one program that do the same, locks of one kind.

use holdup_trace::{StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::names::stem;
use super::tally::{Group, Tally};
use super::{collection, culprit, lock, several, stuck};
use crate::known::Place;

/// Samples from which on a thread shows by itself what it does.
const TELLING: f64 = 5.0;
/// How far up the callers of a lock tell its kind: far enough to see through functions that only wrap a lock.
const CALLERS: usize = 3;

/// What groups have in common that are one finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind<'a> {
    /// Only with itself.
    Own(Group),
    /// Threads of a program that run this function.
    Function(StringId, StringId),
    /// First threads of processes of a program that run code without names: which of it they run most says nothing of what they are for.
    Process(StringId),
    /// Threads of a program, by name but for a number: too short for a sample to show what they run.
    Threads(StringId, &'a str),
    /// Threads of a program that collect garbage.
    Collection(StringId),
    /// Locks of a program that nobody lets go.
    Stuck(StringId),
    /// Places at which one thread sleeps in its turn.
    Sleeper(StringId, ThreadIdx),
    /// Locks of a program, by what they are called or else of what kind they are, that are taken on this way.
    Lock(StringId, &'static str, Vec<StringId>),
}

/// The groups, like ones together, the greatest first.
pub(super) fn merged(context: &Context, groups: FxHashMap<Group, Tally>) -> Vec<(Group, Tally)> {
    let mut groups: Vec<(Group, Tally)> = groups.into_iter().collect();
    groups.sort_by(|a, b| b.1.blame().0.total_cmp(&a.1.blame().0).then(a.0.cmp(&b.0)));
    let mut merged: Vec<(Group, Tally)> = Vec::new();
    let mut places: FxHashMap<Kind, usize> = FxHashMap::default();
    // Those that show what they do come first: the others go to the greatest of their name.
    let sleepers = several::sleepers(&groups);
    let kind_of = |(group, tally): &(Group, Tally)| match (group, several::alone(tally)) {
        (Group::Timer(program, _), Some(thread)) if sleepers.contains(&thread) => Kind::Sleeper(*program, thread),
        _ => kind(context, group, tally),
    };
    let mut kinds: Vec<(Kind, (Group, Tally))> = groups.into_iter().map(|g| (kind_of(&g), g)).collect();
    kinds.sort_by_key(|(kind, _)| matches!(kind, Kind::Threads(..)));
    for (mut kind, (group, tally)) in kinds {
        // Most of its kind are let go: this one would have been, too, had the recording not ended.
        if stuck::is(&group, &tally) && !places.contains_key(&kind) {
            kind = Kind::Stuck(context.program(tally.threads.iter().min().copied().unwrap_or(ThreadIdx::NONE)));
        }
        if let Some(&at) = places.get(&kind) {
            merged[at].1.absorb(tally);
            continue;
        }
        if let (Kind::Function(..) | Kind::Process(_), Group::Serial(thread)) = (&kind, &group) {
            places.entry(named(context, *thread)).or_insert(merged.len());
        }
        places.insert(kind, merged.len());
        merged.push((group, tally));
    }
    merged
}

fn kind<'a>(context: &Context<'a>, group: &Group, tally: &Tally) -> Kind<'a> {
    match group {
        Group::Serial(thread) if collection::is(context, group, tally) => Kind::Collection(context.program(*thread)),
        Group::Serial(thread) => {
            let samples: f64 = context.blame.samples_of(*thread).map(|(_, ns)| ns).sum();
            let shows = samples >= TELLING * context.period() && samples > 0.0;
            // Workers of a library are alike, wherever in it each was.
            let of_library = || culprit::of_library(context.classifier, &context.samples_of([*thread]));
            let function_of = || of_library().or_else(|| culprit::function_of(context, group, tally));
            let program = context.program(*thread);
            match if shows { function_of() } else { None } {
                Some(l) if is_main(context, *thread) && context.trace.text(l.function).contains("+0x") => {
                    Kind::Process(program)
                }
                Some(l) => Kind::Function(program, l.function),
                None => named(context, *thread),
            }
        }
        Group::Lock(id) => {
            let waiter = tally.threads.iter().min().copied().unwrap_or(ThreadIdx::NONE);
            let program = context.program(waiter);
            let known = lock::known(context, tally);
            if let Some(known) = known.filter(|known| known.is_single) {
                return Kind::Lock(program, known.name, Vec::new());
            }
            let frames = context.classifier.application_frames(tally.common_stack(context.classifier));
            let way: Vec<StringId> = frames.iter().take(CALLERS).map(|(_, l)| l.function).collect();
            let kind = context.trace.locks.kind.get(id.index()).map(|kind| kind.name());
            let tells = known.is_some_and(|known| known.place == Place::Runtime);
            match known.map(|known| known.name).or(kind) {
                Some(name) if tells || !way.is_empty() => Kind::Lock(program, name, way),
                _ => Kind::Own(*group),
            }
        }
        _ => Kind::Own(*group),
    }
}

/// Whether it is its process's first thread.
fn is_main(context: &Context, thread: ThreadIdx) -> bool {
    context.trace.threads.tid.get(thread.index()) == Some(&context.pid(thread))
}

fn named<'a>(context: &Context<'a>, thread: ThreadIdx) -> Kind<'a> {
    Kind::Threads(context.program(thread), stem(crate::label::thread_name(context.trace, thread)))
}
