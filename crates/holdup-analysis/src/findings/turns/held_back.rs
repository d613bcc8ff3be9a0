//! Messages that the network of this machine held back.

use std::collections::{BTreeMap, BTreeSet};

use holdup_trace::{Amount, Nanos, StringId, ThreadIdx};

use super::super::context::Context;
use super::super::{culprit, place};
use super::could_run;
use crate::label::{self, duration};
use crate::report::{Confidence, Finding, FindingKind, Waiters};
use crate::turns::Delays;

/// Less of the time than this is not worth a finding.
const SMALLEST_SHARE: f64 = 0.02;

/// Once or twice may be anything.
const FEWEST: u64 = 3;

/// Messages between threads of two programs.
#[derive(Default)]
struct Between {
    /// The threads on either side; first those that receive.
    sides: [BTreeSet<ThreadIdx>; 2],
    delays: Delays,
    /// How long those waited that waited longest, and who they are: who receives, and who sends.
    most: (u64, [ThreadIdx; 2]),
}

/// A finding for each two programs whose messages are held back: the threads of which it tells, how long they waited in nanoseconds, and
/// what could have run meanwhile.
pub(super) fn findings(context: &Context) -> Vec<(Vec<ThreadIdx>, u64, Amount, Finding)> {
    let process = |t: ThreadIdx| context.trace.threads.process.get(t.index()).copied().unwrap_or_default();
    let mut programs: BTreeMap<[StringId; 2], Between> = BTreeMap::default();
    let held_back = context.learned.turns.held_back();
    for (receiver, sender, delays) in held_back.pairs() {
        let mut seen = [receiver, sender].into_iter().chain(held_back.behind(receiver, FEWEST));
        if seen.any(|thread| context.focus.contains(thread)) {
            programs.entry([receiver, sender].map(process)).or_default().add([receiver, sender], &delays);
        }
    }
    let matters = |delays: &Delays| delays.count >= FEWEST && delays.ns as f64 >= SMALLEST_SHARE * context.duration().0;
    let told = programs.into_values().filter(|between| matters(&between.delays));
    let told = told.map(|between| {
        let could_run = could_run(context, between.delays.ns);
        let threads = between.sides.iter().flatten().copied().collect();
        (threads, between.delays.ns, could_run, finding(context, &between, could_run))
    });
    told.collect()
}

impl Between {
    fn add(&mut self, pair: [ThreadIdx; 2], delays: &Delays) {
        for (side, thread) in self.sides.iter_mut().zip(pair) {
            side.insert(thread);
        }
        self.delays.absorb(delays);
        self.most = self.most.max((delays.ns, pair));
    }

    fn threads(&self) -> usize {
        self.sides.iter().map(BTreeSet::len).sum()
    }
}

fn finding(context: &Context, between: &Between, could_run: Amount) -> Finding {
    let (delays, (_, [receiver, sender])) = (&between.delays, between.most);
    let name = |thread| label::process_name(context.trace, thread);
    let mean = context.limits.once(Nanos(delays.ns).amount() / delays.count.max(1) as f64);
    let total = context.limits.once(Nanos(delays.ns).amount());
    let longest = context.limits.once(Nanos(delays.longest).amount());
    let mut who = culprit::of_thread(context, sender);
    if let Some(at) = place::place(context, delays.sender_stack) {
        who.function = context.trace.text(at.function).to_owned();
        who.module = context.trace.text(at.module).to_owned();
        who.source = context.source(&at);
    }
    let waited = place::place(context, delays.stack);
    let (sends, receives) = (name(sender), name(receiver));
    let times = label::count(delays.count);
    Finding {
        kind: FindingKind::Network,
        title: format!(
            "`{sends}` and `{receives}` both stood still {times} times for {}: the network held a message of `{sends}` back (Nagle \
             and delayed acknowledgement)",
            duration(mean)
        ),
        culprit: who,
        wait_stack: context.stack_text(delays.stack),
        waiters: Waiters {
            threads: between.threads(),
            waits: delays.count,
            total_s: total,
            mean_s: mean,
            max_s: longest,
            names: vec![sends.to_owned(), receives.to_owned()],
            function: waited.map_or(String::new(), |l| context.trace.text(l.function).to_owned()),
            source: waited.map_or(String::new(), |l| context.source(&l)),
        },
        blame_cpu_s: context.limits.of_cpus(could_run),
        lasted_s: total,
        windows: vec![[delays.from, delays.to].map(|t| Nanos(t).seconds())],
        confidence: Confidence::Medium,
        doubts: vec!["an answer of another machine that takes 40 ms each time would look the same".to_owned()],
        evidence: vec![
            format!(
                "{times} times `{receives}` waited for bytes while `{sends}` waited for its answer, {} on average, {} at most",
                duration(mean),
                duration(longest)
            ),
            "no thread ended these waits: packets that came from the kernel itself did".to_owned(),
            "Linux holds an acknowledgement back for 40 ms, and the next small message waits for it".to_owned(),
        ],
        advice: format!(
            "Nagle + delayed ACK: set TCP_NODELAY on the sockets of {sends}, or write each message whole: one send, or writev."
        ),
        ..Finding::default()
    }
}
