//! The sentences about threads that take turns.

use holdup_trace::{Nanos, ThreadIdx};

use super::super::below::Below;
use super::super::context::Context;
use super::super::traced;
use super::{Pairs, Parts};
use crate::classify::is_kernel_module;
use crate::label::{self, duration};
use crate::report::Finding;

/// Fills in the sentences.
pub(super) fn describe(context: &Context, pairs: &Pairs, parts: &Parts, f: &mut Finding) {
    let [one, other] = names(context, pairs, parts.main);
    let each = duration(context.limits.once(Nanos(pairs.length).amount() / pairs.count.max(1) as f64));
    let at = if f.culprit.function.is_empty() { String::new() } else { format!(" (in `{}`)", f.culprit.function) };
    let what = if parts.is_mostly_waking() {
        format!("{:.0} % of each round trip of {each} goes by until the other runs", 100.0 * parts.waking)
    } else {
        format!("{:.0} % of each round trip of {each} is {one}'s{at}", 100.0 * parts.work[parts.main])
    };
    let who = match pairs.sides[0].len() {
        1 => format!("{one} and {other} take turns"),
        n => format!("{one} and {other} take turns, {n} pairs of them"),
    };
    let is_traced = pairs.stacks.iter().any(|stack| context.classifier.facts(*stack).traced);
    let traces = if is_traced { ", one of which traces the other" } else { "" };
    f.title = format!("{who}{traces}: {what}").into();
    f.evidence = evidence(context, pairs, parts, [&one, &other], &each);
    let function = if f.culprit.function.is_empty() { &one } else { &f.culprit.function };
    f.advice = if is_traced {
        traced::LESS.to_owned()
    } else if parts.is_mostly_waking() {
        "Send several requests before waiting for the answers (pipelining, batches), so that fewer hand-overs are paid, or look \
         for the answer a moment longer before sleeping (busy polling)."
            .to_owned()
    } else {
        // Within a process nobody sends anything.
        let pids = [0, 1].map(|side| context.pid(pairs.sides[side][0]));
        let both = match pids[0] == pids[1] {
            true => "Give the other one more to do before waiting for it (a queue, two buffers in turn)",
            false => {
                "Send several requests before waiting for the answers (pipelining, batches) or use more connections"
            }
        };
        format!("{both}, so that both work at once; else only a shorter {function} helps.")
    };
    let samples = context.samples_of(pairs.sides.iter().flatten().copied());
    if let Some(of_kernel) = Below::of(context, samples.iter()).known(function) {
        f.advice = format!("{of_kernel} {}", f.advice);
    }
}

/// What either side is called, the culprit's first: by program, by thread where the programs have one name.
fn names(context: &Context, pairs: &Pairs, main: usize) -> [String; 2] {
    let name = |of: fn(&Context, ThreadIdx) -> String| [main, 1 - main].map(|side| of(context, pairs.sides[side][0]));
    let processes = name(|context, t| format!("`{}`", label::process_name(context.trace, t)));
    if processes[0] != processes[1] {
        return processes;
    }
    let threads = name(|context, t| format!("`{}`", context.thread_name(t)));
    if threads[0] != threads[1] {
        return threads;
    }
    name(|context, t| {
        let tid = context.trace.threads.tid.get(t.index()).copied().unwrap_or(0);
        format!("`{}` ({tid})", context.thread_name(t))
    })
}

fn evidence(context: &Context, pairs: &Pairs, parts: &Parts, [one, other]: [&String; 2], each: &str) -> Vec<String> {
    let trips = &pairs.trips;
    let share = |ns: f64| format!("{:.0} %", 100.0 * ns);
    let mut lines = vec![
        format!("{} round trips of {each} on average", label::count(pairs.count)),
        format!(
            "of each, {} is {one}'s work, {} is {other}'s, and {} goes by until the other runs",
            share(parts.work[parts.main]),
            share(parts.work[1 - parts.main]),
            share(parts.waking)
        ),
        format!("both worked at once for {} of the time", share(trips.both as f64 / trips.length().max(1) as f64)),
    ];
    for (side, name) in [(parts.main, one), (1 - parts.main, other)] {
        if let Some(part) = in_message_code(context, &pairs.sides[side]) {
            lines.push(format!(
                "{} of the samples of {name} are in the kernel's code for networks and pipes",
                share(part)
            ));
        }
    }
    lines
}

/// The share of the samples that lie in the kernel's code for sockets and pipes; `None` for too few samples.
fn in_message_code(context: &Context, side: &[ThreadIdx]) -> Option<f64> {
    const FEWEST: f64 = 20.0;
    let samples = context.samples_of(side.iter().copied());
    let all: f64 = samples.values().sum();
    let carries = |stack| {
        let frames = context.trace.stacks.frames(stack).flat_map(|f| context.trace.names.locations(f));
        let mut kernel = frames.filter(|l| is_kernel_module(context.trace.text(l.module)));
        kernel.any(|l| MESSAGES.iter().any(|p| context.trace.text(l.function).starts_with(p)))
    };
    let inside: f64 = samples.iter().filter(|(stack, _)| carries(**stack)).map(|(_, ns)| ns).sum();
    (all >= FEWEST * context.period() && inside > 0.0).then(|| inside / all)
}

/// How the kernel's functions for sockets and pipes are called.
const MESSAGES: &[&str] = &[
    "tcp_",
    "__tcp_",
    "udp_",
    "inet_",
    "ip_",
    "__ip_",
    "sock_",
    "__sock_",
    "unix_",
    "pipe_",
    "anon_pipe_",
    "net_rx_",
    "__netif_",
    "__dev_",
    "dev_",
    "skb_",
    "__sys_send",
    "__sys_recv",
    "eventfd_",
];
