//! Threads that spin: where, how long, and what the others of the process did meanwhile.

use std::collections::BTreeMap;

use holdup_trace::{Amount, StackId, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::meanwhile::Spun;
use super::spans::merged;
use super::{culprit, instruction, names, place};
use crate::blame::Span;
use crate::known::Known;
use crate::label::duration;
use crate::report::{Confidence, Culprit, Finding, FindingKind, Waiters};
use crate::spins;

/// Below this share of the CPU time spinning is a part of every lock.
const MINOR: f64 = 0.02;
/// Fewer samples tell nothing of who worked meanwhile.
const FEW: f64 = 30.0;
/// From this share of the spinning on it is known what the others did.
const MOST: f64 = 0.5;
/// From this share on it was one of them.
const ONE: f64 = 0.8;
/// Below this share what the others did is not said.
const PART: f64 = 0.05;
/// Threads named in the evidence.
const NAMED: usize = 3;

/// What was waited for: what the others of the process mostly did, or no thread at all.
enum Others {
    /// It is a device that works.
    Device,
    /// It is a lock of the kernel's, which one of those that spin for it has, or had just before; its name if people know it.
    Kernel(Option<&'static Known>),
    /// Some worked.
    Worked,
    /// Some were ready, and had no CPU.
    Ready,
    /// All that ran spun, too.
    Spun,
    /// None ran or was ready.
    Alone,
}

/// One finding for each function that spins.
pub(super) fn found(context: &Context) -> Vec<Finding> {
    let mut places: FxHashMap<(StringId, StringId), Spun> = FxHashMap::default();
    for (site, spun) in sorted(&context.learned.meanwhile.spun) {
        let process = spun.threads.keys().next().and_then(|t| context.trace.threads.process.get(t.index()));
        places.entry((process.copied().unwrap_or_default(), site.function)).or_default().add(spun);
    }
    for (thread, gave) in sorted(&context.learned.meanwhile.gave) {
        // Nothing tells where it gave way but where it spun, or others of its process.
        let pid = context.pid(*thread);
        let own = |(_, spun): &(&_, &mut Spun)| spun.threads.keys().any(|t| context.pid(*t) == pid);
        let by_thread = |spun: &Spun| spun.threads.get(thread).copied().unwrap_or(0.0);
        let most = places.iter_mut().filter(own).max_by(|a, b| {
            let greater = by_thread(a.1).total_cmp(&by_thread(b.1)).then(a.1.total().total_cmp(&b.1.total()));
            greater.then(b.0.cmp(a.0))
        });
        most.into_iter().for_each(|(_, spun)| spun.add(gave));
    }
    let least = (MINOR * context.blame.cpu.running).max(10.0 * context.period());
    let mut places: Vec<_> = places.into_iter().filter(|(_, spun)| spun.total() >= least).collect();
    places.sort_by_key(|(place, _)| *place);
    places.into_iter().map(|((_, function), spun)| finding(context, function, &spun)).collect()
}

fn sorted<K: Ord, V>(map: &FxHashMap<K, V>) -> Vec<(&K, &V)> {
    let mut all: Vec<_> = map.iter().collect();
    all.sort_by_key(|(key, _)| *key);
    all
}

fn finding(context: &Context, function: StringId, spun: &Spun) -> Finding {
    let mut waiters = waiters(context, spun);
    let others = others(context, function, spun);
    if let Others::Device = others {
        // Below it are the driver's own functions.
        waiters.function = context.trace.text(function).to_owned();
        waiters.source.clear();
    }
    let window = context.blame.window;
    let (spans, exact) =
        merged(spun.spans.iter().map(|&(from, to)| Span::whole(from, to)).collect(), (window.1 - window.0) / 200);
    let seconds = |ns: u64| holdup_trace::Nanos(ns).seconds();
    let mut finding = Finding {
        kind: FindingKind::Spin,
        culprit: culprit_of(context, spun, &others),
        wait_stack: context.stack_text(most(&spun.stacks)),
        blame_cpu_s: context.limits.of_cpus(Amount(spun.total())),
        lasted_s: context.limits.once(holdup_trace::Nanos(exact).amount()),
        windows: spans.into_iter().map(|(a, b)| [seconds(a), seconds(b)]).collect(),
        waiters,
        ..Finding::default()
    };
    finding.title = title(spun, &others, &finding).into();
    finding.evidence = evidence(context, spun, &others);
    finding.advice = advice(spun, &others, &finding);
    (finding.confidence, finding.doubts) = confidence(context, spun, &others);
    finding
}

fn others(context: &Context, function: StringId, spun: &Spun) -> Others {
    if context.spins.awaits_device(function) {
        return Others::Device;
    }
    let for_kernel = |stack: StackId| context.classifier.facts(stack).kernel_spin;
    let in_kernel: f64 = spun.stacks.iter().filter(|(stack, _)| for_kernel(**stack)).map(|(_, ns)| ns).sum();
    if in_kernel > MOST * spun.total() {
        return Others::Kernel(kernel_lock(context, spun));
    }
    let sums = [sum(&spun.worked), sum(&spun.ready), spun.others_spun, spun.alone];
    let [worked, ready, spinning, _] = sums;
    let greatest = sums.into_iter().fold(0.0, f64::max);
    if worked >= greatest {
        Others::Worked
    } else if ready >= greatest {
        Others::Ready
    } else if spinning >= greatest {
        Others::Spun
    } else {
        Others::Alone
    }
}

/// The lock of the kernel that most of them spin for.
fn kernel_lock(context: &Context, spun: &Spun) -> Option<&'static Known> {
    let mut locks: BTreeMap<&'static str, (f64, &'static Known)> = BTreeMap::new();
    for (stack, ns) in &spun.stacks {
        if let Some(known) = spins::kernel_lock_at(context.trace, *stack) {
            locks.entry(known.name).or_insert((0.0, known)).0 += ns;
        }
    }
    let (_, (ns, known)) = locks.into_iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    (ns > MOST * sum(&spun.stacks)).then_some(known)
}

fn sum<K>(of: &FxHashMap<K, f64>) -> f64 {
    of.values().sum()
}

fn most<K: Copy + Ord + Default>(of: &FxHashMap<K, f64>) -> K {
    of.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0))).map_or(K::default(), |(k, _)| *k)
}

/// Who worked meanwhile, how long, and with which stack mostly; the greatest first.
fn workers(spun: &Spun) -> Vec<(ThreadIdx, f64, StackId)> {
    let mut threads: FxHashMap<ThreadIdx, FxHashMap<StackId, f64>> = FxHashMap::default();
    spun.worked.iter().for_each(|((t, stack), ns)| *threads.entry(*t).or_default().entry(*stack).or_default() += ns);
    let mut threads: Vec<_> = threads.into_iter().map(|(t, stacks)| (t, sum(&stacks), most(&stacks))).collect();
    threads.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    threads
}

/// Who worked or should have worked meanwhile; where nobody did, who spun.
fn culprit_of(context: &Context, spun: &Spun, others: &Others) -> Culprit {
    let (thread, samples) = match others {
        Others::Worked => {
            let mut samples: FxHashMap<StackId, f64> = FxHashMap::default();
            let known = spun.worked.iter().filter(|((_, stack), _)| *stack != StackId::NONE);
            known.for_each(|((_, stack), ns)| *samples.entry(*stack).or_default() += ns);
            (workers(spun).first().map_or(ThreadIdx::NONE, |w| w.0), samples)
        }
        Others::Ready => {
            let thread = most(&spun.ready);
            let own = context.blame.samples_of(thread).filter(|(stack, _)| !context.spins.has(*stack));
            (thread, own.collect())
        }
        Others::Spun | Others::Alone | Others::Device | Others::Kernel(_) => (most(&spun.threads), spun.stacks.clone()),
    };
    let mut found = culprit::of_thread(context, thread);
    let location = culprit::specific(context, &samples).or_else(|| place::place(context, most(&samples)));
    if let Some(location) = location {
        culprit::tell_function(context, &mut found, &[&samples], &location);
        found.instruction = instruction::hottest(context.trace, context.disassembler, &samples, location.function);
    }
    found
}

fn waiters(context: &Context, spun: &Spun) -> Waiters {
    let mut threads: Vec<ThreadIdx> = spun.threads.keys().copied().collect();
    threads.sort_unstable();
    let total = context.limits.of_threads(Amount(spun.total()), threads.len());
    let mut waiters = Waiters {
        threads: threads.len(),
        total_s: total,
        names: names::grouped(threads.into_iter().map(|t| context.thread_name(t))),
        ..Waiters::default()
    };
    let own = |stack| {
        let leaf = context.trace.stacks.frames(stack).next()?;
        context.trace.names.locations(leaf).last()
    };
    let stack = most(&spun.stacks);
    if let Some(at) = place::place(context, stack).or_else(|| own(stack)) {
        waiters.function = context.trace.text(at.function).to_owned();
        waiters.source = context.source(&at);
    }
    waiters
}

/// Whether several spin, and it is not one that works meanwhile.
fn takes_turns(spun: &Spun, f: &Finding) -> bool {
    f.waiters.threads > 1 && workers(spun).first().is_none_or(|w| w.1 < ONE * sum(&spun.worked))
}

fn title(spun: &Spun, others: &Others, f: &Finding) -> String {
    let n = f.waiters.threads;
    let who = if n == 1 { "1 thread".to_owned() } else { format!("{n} threads") };
    let place = match f.waiters.function.as_str() {
        "" => "a loop",
        name => name.rsplit_once("+0x").map_or(name, |(file, _)| file),
    };
    let spent = duration(f.blame_cpu_s);
    let told = if spun.gave > MOST * spun.total() {
        format!("{who} gave way to other programs for {spent} of CPU time in {place}")
    } else {
        format!("{who} spent {spent} of CPU time waiting in {place}")
    };
    let name = match f.culprit.thread.as_str() {
        "" => "another one",
        name => name,
    };
    match others {
        Others::Kernel(known) => {
            let lock = known.map_or("a lock of the kernel", |k| k.name);
            format!("{who} spent {spent} of CPU time waiting for {lock} in {place}")
        }
        Others::Device => format!("{told} until a device was done"),
        Others::Worked if takes_turns(spun, f) => {
            format!("{told} in turns, each while another one worked")
        }
        Others::Worked => format!("{told} while {name} worked"),
        Others::Ready => format!("{told} while {name} was ready and had no CPU"),
        Others::Spun => format!("{told}, mostly all of them at once"),
        Others::Alone => format!("{told} for what no other thread of the process did meanwhile"),
    }
}

fn evidence(context: &Context, spun: &Spun, others: &Others) -> Vec<String> {
    let total = spun.total();
    let samples = (total - spun.gave) / context.period().max(1.0);
    let mut lines = vec![format!("{samples:.0} samples are in loops that only wait")];
    if spun.gave >= PART * total {
        let gave = duration(context.limits.of_cpus(Amount(spun.gave)));
        lines.push(format!("{gave} of it other programs ran, for which it gave way again and again (sched_yield)"));
    }
    let at = most(&spun.stacks);
    let function = context.trace.stacks.frames(at).next().and_then(|f| context.trace.names.locations(f).next());
    let hot =
        function.and_then(|l| instruction::hottest(context.trace, context.disassembler, &spun.stacks, l.function));
    if let Some(i) = hot.filter(|i| !i.text.is_empty()) {
        let inside = i.around.iter().filter(|n| n.in_loop).count();
        let inside = if inside > 0 { format!(", in a loop of {inside} instructions") } else { String::new() };
        lines.push(format!("{:.0} % of them are at {} `{}`{inside}", 100.0 * i.share, i.address, i.text));
    }
    if let Others::Device | Others::Kernel(_) = others {
        return lines;
    }
    lines.extend(workers(spun).into_iter().take(NAMED).map(|(thread, ns, stack)| {
        let ran = place::place(context, stack).map(|l| context.trace.text(l.function).to_owned());
        let ran = ran.map_or(String::new(), |f| format!(", mostly in {f}"));
        format!("for {:.0} % of it {} worked{ran}", 100.0 * ns / total, context.thread_name(thread))
    }));
    let ready = sum(&spun.ready);
    if ready >= PART * total {
        let threads: Vec<_> = spun.ready.keys().map(|t| context.thread_name(*t)).collect();
        let who = names::grouped(threads.into_iter()).join(", ");
        lines.push(format!(
            "for {:.0} % of it {who} had no CPU, and nobody else of the process worked",
            100.0 * ready / total
        ));
    }
    for (ns, what) in [(spun.others_spun, "all others that ran spun, too"), (spun.alone, "no other thread ran")] {
        if ns >= PART * total {
            lines.push(format!("for {:.0} % of it {what}", 100.0 * ns / total));
        }
    }
    lines
}

fn advice(spun: &Spun, others: &Others, f: &Finding) -> String {
    let is_in = |names: &[&str]| f.wait_stack.iter().any(|line| names.iter().any(|name| line.contains(name)));
    let sleep = if is_in(&["gomp", "kmp"]) {
        "let the runtime's threads sleep (OMP_WAIT_POLICY=passive)"
    } else if is_in(&["flavors::array", "flavors::list", "flavors::zero"]) {
        "give the channel room for more, and send several things at a time through it"
    } else if is_in(&["ObjectMonitor::"]) {
        "let fewer threads come to that monitor at a time (Java spins for it a little before they sleep)"
    } else {
        "let the waiting ones sleep after a short while (a mutex, a futex, a condition variable)"
    };
    let named = !f.culprit.function.is_empty() && !f.culprit.function.contains("+0x");
    match others {
        Others::Worked if takes_turns(spun, f) && is_in(&["gomp", "kmp"]) => format!(
            "If that is a critical section (omp critical, omp_set_lock), do less in it: keep a copy for each thread, and put these together at the \
             end (reduction). If it is a barrier, or the end of a loop, give each thread as much to do (schedule(dynamic)). And {sleep}: their CPUs \
             would be free."
        ),
        Others::Worked | Others::Ready if is_in(&["inner_thread", "exec_blas", "blas_thread_server"]) => {
            "Let BLAS have no threads of its own where several of the program call it (OPENBLAS_NUM_THREADS=1, threadpoolctl): they wait for each \
             other in loops, and take CPUs from those that work."
                .to_owned()
        }
        Others::Worked if named => format!(
            "Make what {} does while others wait shorter, or spread it; and {sleep}: their CPUs would be free.",
            f.culprit.function
        ),
        Others::Kernel(Some(known)) => known.advice(&f.waiters.function),
        Others::Kernel(None) => {
            format!("Call less of the kernel at the same time in {}: the stack above tells what.", f.waiters.function)
        }
        Others::Device => "What the device does is not in this recording: its own profiler shows it. Give the CPU something to do \
                           meanwhile, and ask later; or let the thread sleep (for CUDA cudaDeviceScheduleBlockingSync): its \
                           CPU would be free."
            .to_owned(),
        Others::Spun => format!("They wait for each other: look more often at what they wait for, or {sleep}."),
        Others::Worked | Others::Alone => {
            format!("Find out what they wait for, make it shorter, and {sleep}: their CPUs would be free.")
        }
        Others::Ready if spun.crowded > MOST * sum(&spun.ready) => {
            format!(
                "Other programs had the CPUs that its threads need at the same time: give it CPUs of its own, or {sleep}."
            )
        }
        Others::Ready => {
            format!(
                "Whoever spins keeps the one it waits for from running: use fewer threads, of all processes together, than CPUs \
                 (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, a pool's size), or {sleep}."
            )
        }
    }
}

fn confidence(context: &Context, spun: &Spun, others: &Others) -> (Confidence, Vec<String>) {
    let mut doubts = Vec::new();
    let total = spun.total();
    let samples = total / context.period().max(1.0);
    if samples < FEW {
        doubts.push(format!("{samples:.0} samples are few"));
    }
    if let Others::Device | Others::Kernel(_) = others {
        return (if doubts.is_empty() { Confidence::High } else { Confidence::Medium }, doubts);
    }
    let greatest = |of: &FxHashMap<ThreadIdx, f64>| of.values().fold(0.0, |a: f64, b| a.max(*b));
    let (known, first) = match others {
        Others::Worked => (sum(&spun.worked), workers(spun).first().map_or(0.0, |w| w.1)),
        Others::Ready => (sum(&spun.ready), greatest(&spun.ready)),
        Others::Spun | Others::Alone | Others::Device | Others::Kernel(_) => (0.0, 0.0),
    };
    if known < MOST * total {
        doubts.push("whom they waited for is not known: most of the time none of the others worked".to_owned());
        return (Confidence::Low, doubts);
    }
    let worker = match others {
        Others::Ready => most(&spun.ready),
        _ => workers(spun).first().map_or(ThreadIdx::NONE, |w| w.0),
    };
    if context.pid(worker) != context.pid(most(&spun.threads)) {
        doubts.push("that they share memory is told by their name alone: they are processes of one program".to_owned());
    }
    if first < ONE * known {
        doubts.push("which of the others was waited for is a guess: several worked or were ready".to_owned());
    }
    (if doubts.is_empty() { Confidence::High } else { Confidence::Medium }, doubts)
}
