//! Messages that the network of this machine held back.

use holdup_trace::{Nanos, ThreadIdx};

use super::super::context::Context;
use super::super::{culprit, place};
use super::could_run;
use crate::label::{self, duration};
use crate::report::{Confidence, Finding, FindingKind, Waiters};
use crate::turns::Delays;

/// Less of the time than this is not worth a finding.
const SMALLEST_SHARE: f64 = 0.02;

/// A finding for each pair whose messages are held back, the threads of which it tells, and how long they waited.
pub(super) fn findings(context: &Context) -> Vec<([ThreadIdx; 2], u64, Finding)> {
    let mut found = Vec::new();
    for (receiver, sender, delays) in context.learned.turns.held_back().pairs() {
        let seen = context.focus.contains(receiver) || context.focus.contains(sender);
        if seen && delays.ns as f64 >= SMALLEST_SHARE * context.duration().0 {
            found.push(([receiver, sender], delays.ns, finding(context, receiver, sender, &delays)));
        }
    }
    found
}

fn finding(context: &Context, receiver: ThreadIdx, sender: ThreadIdx, delays: &Delays) -> Finding {
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
            threads: 2,
            waits: delays.count,
            total_s: total,
            mean_s: mean,
            max_s: longest,
            names: vec![sends.to_owned(), receives.to_owned()],
            function: waited.map_or(String::new(), |l| context.trace.text(l.function).to_owned()),
            source: waited.map_or(String::new(), |l| context.source(&l)),
        },
        blame_cpu_s: context.limits.of_cpus(could_run(context, delays.ns)),
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
