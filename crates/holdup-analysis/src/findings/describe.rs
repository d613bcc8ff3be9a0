//! Title, evidence and advice of a finding, in words that need no manual.

use holdup_trace::{Amount, Nanos, is_made_at_run_time};

mod evidence;

use super::at_once::{self, Limit};
use super::awaited::Awaited;
use super::below::Below;
use super::context::Context;
use super::crew::Crew;
use super::doing::Doing;
use super::preempt::Antagonist;
use super::stories::median;
use super::tally::{Group, Tally};
use super::words::{at_disk, kept, lasted, lock_words, stood};
use super::{
    collection, confidence, fault, flush, herd, idle, inside, lock, lock_names, preempt, room, sched, siblings, sleep,
    steps, storm, stuck, traced, work, works_on,
};
use crate::classify;
use crate::known::{Place, Runs};
use crate::label::{duration, threads};
use crate::report::{Activity, Finding, FindingKind, Title};
use crate::runtime;

/// Who sets the pace besides those that a finding names.
struct Who<'a> {
    limit: Option<Limit>,
    awaited: Option<&'a Awaited>,
    /// Who asks one that works for one thing at a time.
    alone: Option<Limit>,
    /// What another one does while these try to get a lock.
    holder: Option<Doing>,
}

/// Where who has the lock that others try to get waits for the disk.
const AT_DISK: &str =
    " Whoever has it mostly waits for the disk: write more in each transaction, so that it does so less often.";

/// Fills in the sentences, where `awaited` is what the one that keeps a lock waits for.
pub(super) fn describe(
    context: &Context,
    (group, tally): (&Group, &Tally),
    crew: &Crew,
    awaited: Option<&Awaited>,
    finding: &mut Finding,
) {
    let who = Who {
        limit: at_once::limit(context, group, tally),
        awaited,
        alone: at_once::asked_alone(context, group, tally),
        holder: sleep::holder(context, group, tally),
    };
    finding.about.is_limited = who.limit.is_some();
    finding.about.carries = group.holds_up() && work::carries(context, &tally.samples);
    finding.title = title(context, (group, tally), crew, &who, finding);
    finding.evidence = evidence::lines(context, group, tally, finding);
    finding.advice = advice(context, (group, tally), &who, finding);
    inside::add(context, group, tally, finding);
    let naming = match confidence::nameless_language(context, group, tally) {
        Some(language) => runtime::naming(runtime::nameless(language)),
        None if is_made_at_run_time(&finding.culprit.module)
            || finding.culprit.function.is_empty() && confidence::is_in_nameless_code(context, group, tally) =>
        {
            runtime::naming_of_compiled(&finding.culprit.process)
        }
        None => runtime::naming(&finding.culprit.function),
    };
    if !naming.is_empty() {
        finding.advice = format!("{naming} {}", finding.advice);
    }
    herd::add(context, group, tally, finding);
    if matches!(group, Group::Timer(..) | Group::Outside(..)) && storm::connects_anew(context, tally) {
        finding.advice += &format!(" {}", storm::REUSE);
    }
    traced::add(context, tally, finding);
    fault::add(context, group, tally, finding);
    // Whoever else does it pays the same.
    if group.holds_up()
        && let Some(of_kernel) = Below::of(context, tally.samples.iter()).known(&finding.culprit.function)
    {
        finding.advice = format!("{of_kernel} {}", finding.advice);
    }
    if group.holds_up()
        && let Some(of_query) = work::advice(context, &tally.samples)
    {
        // To spread a query's work is for the database.
        let others = if matches!(group, Group::Serial(_)) { String::new() } else { format!(" {}", finding.advice) };
        finding.advice = of_query + &others;
    }
    if let Some(asker) = who.alone.and_then(|limit| limit.asker()) {
        finding.advice += &format!(
            " {} asks for one at a time: let it ask for more at once, if it has more to ask (connections, a pool, threads).",
            context.trace.text(asker)
        );
    }
    // Where they wait for a lock, one after another is the lock's doing.
    if finding.kind == FindingKind::Serial
        && !lock::is_kept_meanwhile(context, group, tally)
        && let Some(steps) = crew.threads.first().and_then(|thread| steps::advice(context, *thread, finding.lasted_s))
    {
        finding.advice = format!("{steps} {}", finding.advice);
    }
    if finding.kind == FindingKind::Serial
        && finding.culprit.processes == 1
        && let Some(shared_out) = crew.threads.first().and_then(|t| siblings::advice(context, &finding.culprit, *t))
    {
        finding.advice = format!("{shared_out} {}", finding.advice);
    }
}

fn title(
    context: &Context,
    (group, tally): (&Group, &Tally),
    crew: &Crew,
    &Who { limit, awaited, alone: asked_alone, holder }: &Who,
    f: &Finding,
) -> Title {
    let who = crew.words(context);
    let (was, it) = if crew.is_many() { ("were", "them") } else { ("was", "it") };
    let alone = if crew.is_many() || works_beside_others(context, f) { "" } else { " alone" };
    let lasted = lasted(f);
    let without_cpu = || preempt::without_cpu(context, tally);
    let starved = || starved(context, tally, was, f);
    let did = match group {
        Group::Lock(id) if f.kind == FindingKind::Convoy => {
            // How long it is kept is not known: between two hand-overs others may have taken it, and given it back, unseen.
            let handoff = context.learned.locks.get(id).map_or(Nanos::ZERO, |story| median(&story.handoffs));
            let handoff = duration(context.limits.once(handoff.amount()));
            let every = duration(f.lasted_s / f.waiters.waits.max(1) as f64);
            let queue = format!("{} stood in a queue for {}", threads(f.waiters.threads), lock_words(f, tally));
            return format!("{queue}: one is woken for it every {every}, and takes {handoff} to run").into();
        }
        Group::Lock(_) if stuck::is(group, tally) => {
            return stuck::title(context, tally, crew, &lock_words(f, tally), &lasted, &stood(f));
        }
        Group::Lock(_) if tally.starved => format!("{who} kept {} and {}", lock_words(f, tally), starved()),
        Group::Lock(_) if lock::known(context, tally).is_some_and(|known| known.runs == Runs::None) => {
            format!("{who} ran on for {} while all threads were to stop", kept(context, tally, crew))
        }
        Group::Lock(_) => {
            let (lock, kept) = (lock_words(f, tally), kept(context, tally, crew));
            format!("{who} kept {lock} for {kept}{}{}", without_cpu(), meanwhile(context, group, tally, awaited))
        }
        Group::Serial(_) if f.kind == FindingKind::Gc => collection::title(context, f),
        Group::Serial(_) if tally.is_stopped() && tally.starved => format!("{who} {}", starved()),
        Group::Serial(_) if tally.starved => format!("{who} {was} ready and {}", starved()),
        Group::Serial(_) if f.kind == FindingKind::Imbalance => format!("{who} {was} the last to finish"),
        Group::Serial(_) if crew.excludes_itself(context, tally) => {
            format!("{who} worked one at a time, for {lasted}{}", without_cpu())
        }
        Group::Serial(_) if lock::is_kept_meanwhile(context, group, tally) => {
            format!("{who} worked for {lasted}{} while {} for {it}", without_cpu(), lock::was_kept(context, tally))
        }
        Group::Serial(_) => {
            let asked = at_once::words(context, asked_alone);
            format!("{who} worked{alone} for {lasted}{}{}", without_cpu(), asked.trim_end_matches(','))
        }
        Group::Disk(..) => {
            let was_kept = || format!(" while {}", lock::was_kept(context, tally));
            let kept = if lock::is_kept_meanwhile(context, group, tally) { was_kept() } else { String::new() };
            format!("{who} waited for the disk for {}{kept}", at_disk(context, tally))
        }
        Group::Timer(..) if sleep::is_in_its_work(context, tally) => {
            return sleep::in_its_work(context, crew, tally, limit, &lasted).into();
        }
        Group::Timer(..) => sleep::title(context, (group, tally), crew, (limit, holder), &lasted),
        Group::Ready(program, why) => return sched::title(context, *program, *why, tally, f).into(),
        Group::Outside(..) => match (room::wanted(context, tally), awaited) {
            (Some(room), _) => format!("{who} {}", room.words(&lasted)),
            (None, Some(awaited)) => {
                let own = if crew.is_many() { "their" } else { "its" };
                format!("{who} waited for {lasted} for {}", awaited.words(context, own))
            }
            (None, None) => {
                let at_once = at_once::words(context, limit);
                let what = lock::tried(context, tally).map_or("input from outside", |known| known.name);
                format!("{who} waited for {what} for {lasted}{}", at_once.trim_end_matches(','))
            }
        },
        Group::Idle(program, _) => return idle::title(context, *program, tally, f).into(),
    };
    Title::new(&did, &stood(f))
}

/// What kept whoever was ready, or stopped, from running, and for how much of the time.
fn starved(context: &Context, tally: &Tally, was: &str, f: &Finding) -> String {
    let share = |part: Amount| 100.0 * (part / tally.rank.max(Amount(1.0)));
    let lasted = duration(f.lasted_s);
    if tally.is_stopped() {
        return format!("{was} stopped, or frozen, for {:.0} % of {lasted}", share(tally.stopped));
    }
    let mask = sched::mask(context, tally).map(|cpus| format!(" (it may run on CPU {cpus} alone)"));
    let quota =
        || sched::is_throttled(context, tally).then(|| " (the quota of its control group was used up)".to_owned());
    let other = || match preempt::antagonist(context, tally)? {
        Antagonist::Siblings => Some(" (mostly others of its program had it)".to_owned()),
        Antagonist::Program(name) => Some(format!(" (mostly {name} had it)")),
    };
    let why = mask.or_else(quota).or_else(other).unwrap_or_default();
    format!("got no CPU for {:.0} % of {lasted}{why}", share(tally.not_running))
}

/// How much longer than no two threads worked at once something may be said to have worked alone: what is between two switches.
const ROUNDING: f64 = 1.1;

/// Whether it worked for longer than no two threads did at once.
fn works_beside_others(context: &Context, f: &Finding) -> bool {
    let whole = context.blame.window == (0, context.timeline.end);
    let at_most_one: u64 = context.timeline.parallelism.iter().take(2).sum();
    whole && f.lasted_s > ROUNDING * Nanos(at_most_one).seconds()
}

/// What whoever kept the lock did with it for most of the time, if that was no work.
fn meanwhile(context: &Context, group: &Group, tally: &Tally, awaited: Option<&Awaited>) -> String {
    let what = match (tally.activity(), awaited) {
        _ if lock::waits_for_another(context, group, tally) => ", waiting for another lock until a time-out",
        (_, Some(awaited)) => return format!(", waiting for {}", awaited.words(context, "its")),
        (Activity::Waited, None) => ", waiting for its client or other input",
        (Activity::Slept, None) => ", asleep",
        (Activity::Ran, None) => "",
    };
    what.to_owned()
}

/// Whether a module is no part of what the user can change.
fn is_foreign(module: &str) -> bool {
    classify::is_kernel_module(module) || classify::is_runtime_module(module)
}

/// Whether the culprits lose their CPUs to others of their program.
fn is_crowded(context: &Context, tally: &Tally) -> bool {
    matches!(preempt::antagonist(context, tally), Some(Antagonist::Siblings))
}

fn advice(
    context: &Context,
    (group, tally): (&Group, &Tally),
    &Who { limit, awaited, holder, .. }: &Who,
    f: &Finding,
) -> String {
    // An address is no name to work with, and nobody changes the C library.
    let c = &f.culprit;
    let is_foreign = is_foreign(&c.module) || is_made_at_run_time(&c.module);
    let named = !c.module.is_empty() && !c.function.is_empty() && !c.function.contains("+0x") && !is_foreign;
    let function = if named { c.function.as_str() } else { "this code" };
    let works = !tally.starved && tally.activity() != Activity::Waited;
    if stuck::is(group, tally) {
        return stuck::advice(context, tally).to_owned();
    }
    if lock::waits_for_another(context, group, tally) {
        return lock::DEADLOCK.to_owned();
    }
    if let Some(awaited) = awaited {
        return awaited.advice(context);
    }
    let known = match group {
        Group::Timer(..) | Group::Outside(..) => lock::tried(context, tally),
        _ if group.is_lock() && works => lock::known(context, tally),
        _ => None,
    };
    if let Some(known) = known {
        let of_disk = if holder == Some(Doing::Writes) { AT_DISK } else { "" };
        return lock::advice(context, tally, known, function) + of_disk;
    }
    match group {
        Group::Serial(_) if f.kind == FindingKind::Gc => collection::advice(context, tally),
        Group::Lock(_) if f.kind == FindingKind::Convoy => format!(
            "Take this lock less often, and keep it for less: batch the work in {function}, do there what needs no lock before or after it, \
             partition what it protects, or admit fewer threads at a time."
        ),
        Group::Lock(_) | Group::Serial(_) if tally.starved && sched::is_throttled(context, tally) => sched::QUOTA.to_owned(),
        Group::Lock(_) if tally.starved && is_crowded(context, tally) => format!(
            "Let no more threads at a time come to {function} than there are CPUs, or keep the lock for less: whoever has it loses \
             its CPU to another of the program's threads."
        ),
        Group::Lock(_) | Group::Serial(_) if tally.starved => preempt::advice(context, group, tally),
        Group::Lock(_) if preempt::lacks_cpu(tally) => format!(
            "Let whoever has the lock run: give it the priority of those that wait for it (no nice, PTHREAD_PRIO_INHERIT), or let it go before \
             {function} has to wait for a CPU."
        ),
        Group::Lock(_) if tally.activity() == Activity::Slept => {
            format!("Let the lock go before {function} sleeps, or wait there for the event instead of for a time.")
        }
        Group::Lock(_) if tally.activity() == Activity::Waited => {
            format!(
                "Let the lock go before {function} waits for the outside: end the transaction, or give it a time-out."
            )
        }
        Group::Lock(_) => {
            format!("Do the work of {function} before taking the lock, or let the lock go between parts of it.")
        }
        Group::Serial(_) if storm::is_storm(f.culprit.processes, f.lasted_s) => {
            storm::fewer(context, tally.ends().keys().copied()).to_owned()
        }
        Group::Serial(_) if storm::is_storm(f.culprit.threads, f.lasted_s) => storm::POOL.to_owned(),
        Group::Serial(_) if f.kind == FindingKind::Imbalance => {
            format!("Cut the work of {function} into smaller pieces, so that no thread is left with a long one.")
        }
        Group::Serial(_) if lock::is_kept_meanwhile(context, group, tally) => {
            format!("Do the work of {function} outside of the lock that is kept for it, or make it shorter.")
        }
        Group::Serial(_) if works_on::is_import(c) => {
            "Import less, or only where it is needed (python3 -X importtime tells what each module takes), or start the program less \
             often."
                .to_owned()
        }
        Group::Serial(_) => {
            if let Some(known) = lock::asked(context, tally) {
                return known.advice(&f.waiters.function);
            }
            if let Some(first) = works_on::begin_with(c).filter(|_| context.timeline.peak_parallelism() > 1) {
                return first;
            }
            let others = runtime::spread_over(&c.module, &c.function);
            match Below::of(context, tally.samples.iter()).of_any(context, function) {
                Some(less) => format!("{less} Or spread it over {others}, or overlap it with the next phase."),
                None => format!("Spread {function} over {others}, overlap it with the next phase, or make it shorter."),
            }
        }
        Group::Disk(..) => at_disk_advice(context, group, tally, f, function),
        Group::Timer(..) => sleep::advice(context, (group, tally), limit, f, function),
        Group::Ready(program, why) => sched::advice(context, *program, *why, tally, f),
        Group::Outside(..) => match (room::wanted(context, tally), limit) {
            (Some(room), _) => room.advice().to_owned(),
            (None, Some(limit)) => {
                at_once::advice(context, limit, function, &format!("see what {function} waits for"))
            }
            (None, None) => format!(
                "See what {function} waits for: a client that keeps it waiting with a lock or a transaction open, or another host."
            ),
        },
        Group::Idle(program, _) => idle::advice(context, *program, tally, f),
    }
}

/// What to do about waiting for the disk in `function`.
fn at_disk_advice(context: &Context, group: &Group, tally: &Tally, f: &Finding, function: &str) -> String {
    let any = || format!("Ask the disk less often in {function}: in batches, ahead of time.");
    let less = flush::advice(context, tally, function).unwrap_or_else(any);
    if !lock::is_kept_meanwhile(context, group, tally) {
        let lock = if lock::may_be_kept(context, tally) { " Or do it without a lock." } else { "" };
        return less + lock;
    }
    let site = tally.common_stack(context.classifier);
    match lock_names::at(context.trace, context.classifier, site).filter(|known| known.place == Place::Runtime) {
        // Who lets it go, and when, is for the database.
        Some(known) => format!("{less} {}", known.advice(&f.waiters.function)),
        None => {
            let lock =
                if f.waiters.function.is_empty() { String::new() } else { format!(" of {}", f.waiters.function) };
            format!("Let the lock{lock} go before waiting for the disk in {function}. {less}")
        }
    }
}
