//! How much could be gained: what each finding takes out of the run, and how long the run is without it.

use holdup_trace::tables::LocationRow;
use holdup_trace::{COMPILED, Nanos, Result, StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::crew::Crew;
use super::tally::{Group, Tally};
use super::{collecting, fault, flush, inside, lock, place, stuck, traced};
use crate::blame::{Key, Study, Window};
use crate::classify::{WaitKind, is_library};
use crate::known::{Place, Runs};
use crate::label;
use crate::replay::{AT_ONCE, Taken, Work, bound, replay};
use crate::report::{Finding, FindingKind};

/// More lost time, or a greater share of waits that nobody is known to have ended, than this: the trace cannot tell.
const MUCH_UNKNOWN: f64 = 0.1;

/// Where others take more of the CPU time than this, how long the rest takes is up to them, too.
const MUCH_OF_OTHERS: f64 = 0.2;

/// From this share of the time on collections cost more than they take.
const MUCH_GARBAGE: f64 = 0.4;

/// What mending a finding could save.
pub(super) fn taken(context: &Context, group: &Group, tally: &Tally, finding: &Finding) -> Option<Taken> {
    if !group.holds_up() || traced::is_it(context, tally) {
        return None;
    }
    let mut taken = Taken::default();
    let spans = &context.blame.spans;
    let mut add = |key: &Key| taken.add(key, spans.get(key).map_or(&[], |spans| spans));
    tally.subjects().for_each(&mut add);
    if let Some(lock) = group.lock() {
        // Its holder may wait for a disk meanwhile, which is a finding of its own, or with others.
        spans.keys().filter(|key| key.kind == WaitKind::Lock && key.lock == lock).for_each(&mut add);
    }
    let taken = by_kind(context, group, tally, finding, taken)?;
    let (spins, kernel) = (sampled(context, |stack| context.spins.has(stack)), of_waiting(context));
    // Who waits for a lock keeps others waiting, who ask again, look again and wait for each other: how much less of that there is nobody can
    // tell, so none of it counts as work that remains.
    let keeps_lock = group.is_lock() || !tally.locks.is_empty();
    let taken = taken.with_stacks(spins);
    Some(if keeps_lock { taken.with_stacks(kernel) } else { taken.with_overhead(kernel) })
}

/// What else goes with what is charged to a finding of this kind, and what becomes of the work; `None` if that can't be known.
fn by_kind(context: &Context, group: &Group, tally: &Tally, finding: &Finding, taken: Taken) -> Option<Taken> {
    Some(match finding.kind {
        // Who takes in what is sent works at it, too.
        _ if finding.about.carries => return None,
        // What comes before and behind it would be done by several at once, too.
        _ if finding.about.is_limited => return None,
        // What it costs to hand a lock on all the time, and to fetch its lines from another CPU's cache, goes with it. A trace does
        // not tell how much that is, of work and of waits alike.
        FindingKind::Convoy | FindingKind::WakeLatency => return None,
        // Nobody knows what would have come after it.
        FindingKind::LockHeld if stuck::is(group, tally) => return None,
        FindingKind::LockHeld if tally.is_handed_over() => return None,
        // Who begins the next one waits for whichever ends first: without the lock they would run in another order.
        FindingKind::LockHeld if begin_meanwhile(context, tally, finding) => return None,
        // How fast it is on a CPU that it needs not share, with caches of its own, nobody knows either.
        FindingKind::OwnerNotRunning | FindingKind::RunnableWhileIdle | FindingKind::CpuStarved => return None,
        // What a library or the kernel does under a lock of its own is done less if it is called less.
        FindingKind::LockHeld if is_of_library(context, tally) => taken.with_stacks(of_atomics(context)),
        // What runs the language has to be done, but may be by another process.
        FindingKind::LockHeld if lock::known(context, tally).is_some_and(|known| known.runs == Runs::One) => {
            taken.with_stacks(of_atomics(context)).moving(of_function(context, finding)).with_work(Work::Spread)
        }
        // Code that is compiled while it runs is compiled otherwise when it stands elsewhere.
        FindingKind::LockHeld if finding.culprit.module == COMPILED => return None,
        // What is done under the lock has to be done nevertheless, but the lock itself costs nothing any more.
        FindingKind::LockHeld => taken.with_stacks(of_atomics(context)).with_work(Work::Stays),
        FindingKind::Imbalance => taken.with_work(Work::Spread),
        FindingKind::Serial if inside::keeps_lock(context, group, tally, finding.culprit.pid) => {
            taken.with_work(Work::Free)
        }
        // Tasks go from thread to thread, and what they wait for is seen nowhere.
        FindingKind::Serial if inside::migrates(context, group, tally) => return None,
        // What works alone keeps others from working, by a lock that the trace does not show.
        FindingKind::Serial if Crew::of(context, tally).excludes_itself(context, tally) => {
            taken.moving(of_function(context, finding)).with_work(Work::Spread)
        }
        // The same, of tasks that wait for whichever waits for the disk.
        FindingKind::Disk if inside::migrates_at(context, tally) => return None,
        FindingKind::Disk if fault::is_swap(context, group, tally) || flush::is_it(context, tally) => return None,
        // What is done between two waits for a disk has to be done nevertheless, but for what the function itself does that waits there.
        FindingKind::Disk => taken.with_stacks(of_function(context, finding)).with_work(Work::Stays),
        // What it tries to get is in somebody's hands, and nobody knows whose, or what he did with it.
        FindingKind::SleepPolling if lock::is_at_lock(context, tally) || finding.about.looks => return None,
        FindingKind::SleepPolling => taken.with_stacks(of_function(context, finding)),
        // What so much of it does to caches, and to the room that is left for each thread in between, is no small part of what it costs.
        FindingKind::Gc if finding.lasted_s > MUCH_GARBAGE * context.duration().seconds() => return None,
        // All its threads collect, of which the program waits for one at a time.
        FindingKind::Gc => taken.with_stacks(collects(context)),
        // Nobody knows whose garbage it is.
        FindingKind::Serial => taken.with_stacks(of_function(context, finding)).with_stacks(collects(context)),
        _ => taken,
    })
}

/// How much of a finding's time has to be over before threads are begun one after another, and not all at the beginning.
const LATER: f64 = 0.1;

/// Whether threads that wait for it, or keep others waiting, are begun one after another while it lasts.
fn begin_meanwhile(context: &Context, tally: &Tally, finding: &Finding) -> bool {
    let (Some([from, _]), Some([_, to])) = (finding.windows.first(), finding.windows.last()) else { return false };
    let later = from + LATER * (to - from);
    let threads: FxHashSet<ThreadIdx> = tally.threads.iter().chain(tally.by_thread.keys()).copied().collect();
    let start = |thread: &ThreadIdx| context.trace.threads.start.get(thread.index()).map(|start| start.seconds());
    threads.iter().filter(|thread| start(thread).is_some_and(|start| start > later && start < *to)).count() > 1
}

/// Whether it is a lock that a library or the kernel takes for those that call it, and what is done under it is its own.
fn is_of_library(context: &Context, tally: &Tally) -> bool {
    lock::known(context, tally).is_some_and(|known| known.place != Place::Runtime && !known.is_for_callers)
}

/// Stacks at atomic instructions: what makes them slow is mostly that other CPUs use the same line.
fn of_atomics(context: &Context) -> Vec<StackId> {
    sampled(context, |stack| context.spins.is_atomic(stack))
}

/// Stacks of CPU time in the kernel: who waits for a disk, a lock, a CPU or another's work no longer also goes to sleep and wakes others
/// less often. What goes through a socket has to go there in any case.
fn of_waiting(context: &Context) -> Vec<StackId> {
    let remains = |stack| is_message(place::functions(context, stack).map(|name| context.trace.text(name)));
    sampled(context, |stack| !context.spins.has(stack) && context.classifier.facts(stack).in_kernel && !remains(stack))
}

/// Whether a stack of these functions, the innermost first, sends or receives, and neither wakes anybody nor goes to sleep for it.
fn is_message<'a>(functions: impl Iterator<Item = &'a str>) -> bool {
    const AROUND: [&str; 6] =
        ["schedule", "try_to_wake_up", "__wake_up", "ep_poll_callback", "sk_wait_data", "wait_for_more_packets"];
    const MESSAGE: [&str; 6] =
        ["sock_sendmsg", "sock_recvmsg", "sock_write_iter", "sock_read_iter", "__sys_sendto", "__sys_recvfrom"];
    let is_any = |name: &str, of: &[&str]| of.iter().any(|start| name.starts_with(start));
    let mut functions = functions.take_while(|name| !is_any(name, &AROUND) && *name != "__schedule");
    functions.any(|name| is_any(name, &MESSAGE))
}

fn sampled(context: &Context, wanted: impl Fn(StackId) -> bool) -> Vec<StackId> {
    context.blame.profile.iter().map(|((_, stack), _)| *stack).filter(|stack| wanted(*stack)).collect()
}

/// Stacks of collecting garbage, on whatever thread.
fn collects(context: &Context) -> Vec<StackId> {
    let own = context.profile().filter(|(thread, stack, _)| collecting::is_at(context, *thread, *stack));
    own.map(|(_, stack, _)| stack).collect()
}

/// Stacks of the culprit's function: in processes of its name, and, if it is a library's, in all that use this, as both ends of a connection do.
fn of_function(context: &Context, finding: &Finding) -> Vec<StackId> {
    let c = &finding.culprit;
    if c.function.is_empty() {
        return Vec::new();
    }
    let trace = context.trace;
    let process_of = |thread: ThreadIdx| trace.threads.process.get(thread.index()).map(|name| trace.text(*name));
    let shared = is_library(&c.module);
    let own = context.blame.profile.iter().filter(|((t, _), _)| shared || process_of(*t) == Some(c.process.as_str()));
    let mut stacks: Vec<StackId> = own.map(|((_, stack), _)| *stack).collect();
    stacks.sort_unstable();
    stacks.dedup();
    // Each file of a script has its `<module>`, and its functions without a name.
    let file = c.source.rsplit_once(':').map_or(c.source.as_str(), |(file, _line)| file);
    let is_there = |l: &LocationRow| file.is_empty() || label::file_line(trace.text(l.file), 0) == file;
    let is_of_it = |l: &LocationRow| !shared || trace.text(l.module) == c.module;
    let is_it = |l: LocationRow| trace.text(l.function) == c.function && is_of_it(&l) && is_there(&l);
    stacks.retain(|stack| {
        let mut frames = trace.stacks.frames(*stack);
        frames.any(|frame| trace.names.locations(frame).any(is_it))
    });
    stacks
}

/// Says of each finding how much faster the run could be without it.
pub(super) fn fill(context: &Context, findings: &mut [(Finding, Option<Taken>)]) -> Result<()> {
    if context.focus.is_everything()
        || is_unknown(context)
        || strangers(context) > MUCH_OF_OTHERS * context.timeline.end as f64 * context.timeline.cpus as f64
    {
        return Ok(());
    }
    let (from, to) = context.blame.window;
    let Context { trace, timeline, focus, classifier, blame, spins, .. } = *context;
    let study = Study { trace, timeline, focus, classifier, spins, window: Window { from, to } };
    let mut wanted: Vec<(&mut Finding, Taken)> =
        findings.iter_mut().filter_map(|(finding, taken)| Some((finding, taken.take()?))).collect();
    for some in wanted.chunks_mut(AT_ONCE) {
        let taken: Vec<Taken> = some.iter_mut().map(|(_, taken)| std::mem::take(taken)).collect();
        let lengths = replay(&study, blame, &taken)?;
        some.iter_mut().enumerate().for_each(|(n, (finding, _))| finding.gain_at_most = bound(&lengths, n));
    }
    Ok(())
}

/// What programs ran that neither ask the focus for anything nor give it work, in nanoseconds. O(threads).
fn strangers(context: &Context) -> f64 {
    let threads = || context.threads().filter(|t| t.is_real());
    let (own, others): (Vec<ThreadIdx>, Vec<ThreadIdx>) = threads().partition(|t| context.focus.contains(*t));
    let own: FxHashSet<StringId> = own.into_iter().map(|thread| context.program(thread)).collect();
    let mut partners: FxHashMap<StringId, bool> = FxHashMap::default();
    let mut is_stranger = |thread: &ThreadIdx| {
        let program = context.program(*thread);
        let is_partner = |own: &StringId| context.learned.fed.is_partner(*own, program);
        // The kernel's own threads work for whoever asked.
        !context.focus.is_kernel(*thread) && !*partners.entry(program).or_insert_with(|| own.iter().any(is_partner))
    };
    others.into_iter().filter(&mut is_stranger).map(|thread| context.ran(thread)).sum::<Nanos>().amount().0
}

fn is_unknown(context: &Context) -> bool {
    let (cpu, health) = (&context.blame.cpu, &context.timeline.health);
    let waits = context.timeline.waits() as f64;
    cpu.lost > MUCH_UNKNOWN * cpu.total || health.unknown_wakers as f64 > MUCH_UNKNOWN * waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_to_go_and_to_wake_somebody_for_it_has_not() {
        let of = |functions: &[&str]| is_message(functions.iter().copied());
        assert!(of(&["tcp_rcv_established", "tcp_sendmsg", "sock_write_iter", "ksys_write", "send_reply"]));
        assert!(!of(&["try_to_wake_up", "ep_poll_callback", "sock_def_readable", "tcp_sendmsg", "sock_write_iter"]));
        assert!(!of(&["schedule_timeout", "wait_woken", "sk_wait_data", "tcp_recvmsg", "sock_recvmsg"]));
        assert!(!of(&["ext4_sync_file", "__x64_sys_fdatasync", "flush"]));
    }
}
