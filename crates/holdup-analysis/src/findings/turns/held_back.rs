//! Messages that the network of this machine held back.

use std::collections::{BTreeMap, BTreeSet};

use holdup_trace::{Nanos, StringId, ThreadIdx};

use super::super::context::Context;
use super::super::{culprit, place};
use crate::label::{self, duration};
use crate::report::{Confidence, Finding, FindingKind, Waiters};
use crate::turns::Delays;

/// Less of the time than this is not worth a finding.
const SMALLEST_SHARE: f64 = 0.02;

/// Once or twice may be anything.
const FEWEST: u64 = 3;

/// Of so many the sender has to be known.
const KNOWN: f64 = 0.75;

/// Messages to threads of one program.
#[derive(Default)]
struct Received {
    receivers: BTreeSet<ThreadIdx>,
    /// By program. Of several that woke the receiver at the time of the first part it may be any.
    senders: BTreeMap<StringId, Sent>,
    delays: Delays,
}

/// Those from threads of one program.
#[derive(Default)]
struct Sent {
    senders: BTreeSet<ThreadIdx>,
    delays: Delays,
    /// How long those waited that waited longest, and who they are: who receives, and who sends.
    most: (u64, [ThreadIdx; 2]),
}

/// A finding for each program to which messages are held back: the threads of which it tells, and how long they waited in nanoseconds.
pub(super) fn findings(context: &Context) -> Vec<(Vec<ThreadIdx>, u64, Finding)> {
    let process = |t: ThreadIdx| context.trace.threads.process.get(t.index()).copied().unwrap_or_default();
    let mut programs: BTreeMap<StringId, Received> = BTreeMap::default();
    let held_back = context.learned.turns.held_back();
    for (receiver, sender, delays) in held_back.pairs() {
        let mut seen = [receiver, sender].into_iter().chain(held_back.behind(receiver, FEWEST));
        if seen.any(|thread| context.focus.contains(thread)) {
            programs.entry(process(receiver)).or_default().add(receiver, sender, process(sender), &delays);
        }
    }
    let matters = |delays: &Delays| delays.count >= FEWEST && delays.ns as f64 >= SMALLEST_SHARE * context.duration().0;
    let told = programs.into_values().filter(|received| matters(&received.delays));
    told.map(|received| (received.threads(), received.delays.lasted(), finding(context, &received))).collect()
}

impl Received {
    fn add(&mut self, receiver: ThreadIdx, sender: ThreadIdx, program: StringId, delays: &Delays) {
        self.receivers.insert(receiver);
        self.delays.absorb(delays);
        let sent = self.senders.entry(program).or_default();
        sent.senders.insert(sender);
        sent.delays.absorb(delays);
        sent.most = sent.most.max((delays.ns, [receiver, sender]));
    }

    fn threads(&self) -> Vec<ThreadIdx> {
        self.receivers.iter().chain(self.senders.values().flat_map(|sent| &sent.senders)).copied().collect()
    }

    /// By how long they waited, the longest first.
    fn senders(&self) -> Vec<&Sent> {
        let mut senders: Vec<&Sent> = self.senders.values().collect();
        senders.sort_by_key(|sent| std::cmp::Reverse(sent.delays.ns));
        senders
    }
}

fn finding(context: &Context, received: &Received) -> Finding {
    let senders = received.senders();
    let (delays, [receiver, sender]) = (&received.delays, senders[0].most.1);
    let name = |thread| label::process_name(context.trace, thread);
    let mean = context.limits.once(Nanos(delays.ns).amount() / delays.count.max(1) as f64);
    let total = context.limits.of_threads(Nanos(delays.ns).amount(), received.threads().len());
    let lasted = context.limits.once(Nanos(delays.lasted()).amount());
    let longest = context.limits.once(Nanos(delays.longest).amount());
    let mut who = culprit::of_thread(context, sender);
    if let Some(at) = place::place(context, senders[0].delays.sender_stack) {
        who.function = context.trace.text(at.function).to_owned();
        who.module = context.trace.text(at.module).to_owned();
        who.source = context.source(&at);
    }
    let waited = place::place(context, delays.stack);
    let (sends, receives) = (name(sender), name(receiver));
    let times = label::count(delays.count);
    let or_of = senders[1..].iter().map(|other| {
        format!("{} of these messages may be of `{}`", label::count(other.delays.count), name(other.most.1[1]))
    });
    // The recorder saw all of them, or none.
    let is_seen = delays.seen > 0;
    let elsewhere = "an answer of another machine that takes 40 ms each time would look the same".to_owned();
    let elsewhere = (!is_seen).then_some(elsewhere);
    let is_known = is_seen && delays.known as f64 >= KNOWN * delays.count as f64;
    let guessed = (is_seen && !is_known).then(|| {
        format!("whoever woke `{receives}` last before that is taken for the sender: it was not woken when the acknowledgement began to wait")
    });
    Finding {
        kind: FindingKind::Network,
        title: match is_seen {
            true => format!(
                "the network held {times} messages of `{sends}` to `{receives}` back, each for {} (Nagle and delayed acknowledgement)",
                duration(mean)
            ),
            false => format!(
                "`{sends}` and `{receives}` both stood still {times} times for {}: the network held a message of `{sends}` back (Nagle \
                 and delayed acknowledgement)",
                duration(mean)
            ),
        }
        .into(),
        culprit: who,
        wait_stack: context.stack_text(delays.stack),
        waiters: Waiters {
            threads: received.threads().len(),
            waits: delays.count,
            total_s: total,
            mean_s: mean,
            max_s: longest,
            names: vec![sends.to_owned(), receives.to_owned()],
            function: waited.map_or(String::new(), |l| context.trace.text(l.function).to_owned()),
            source: waited.map_or(String::new(), |l| context.source(&l)),
        },
        lasted_s: lasted,
        windows: vec![[delays.from, delays.to].map(|t| Nanos(t).seconds())],
        confidence: if is_known && senders.len() == 1 { Confidence::High } else { Confidence::Medium },
        doubts: elsewhere.into_iter().chain(guessed).chain(or_of).collect(),
        evidence: vec![
            match is_seen {
                true => format!(
                    "{times} times `{receives}` got something at the moment when an acknowledgement was sent that had been held back"
                ),
                false => format!(
                    "{times} times `{receives}` waited for bytes while `{sends}` waited for its answer, {} on average, {} at most",
                    duration(mean),
                    duration(longest)
                ),
            },
            "no thread ended these waits: packets that came from the kernel itself did".to_owned(),
            "Linux holds an acknowledgement back for 40 ms, and the next small message waits for it".to_owned(),
        ],
        advice: no_delay(sends),
        ..Finding::default()
    }
}

/// What to do where the messages of a program are held back.
pub(in crate::findings) fn no_delay(sends: &str) -> String {
    format!(
        "Nagle + delayed ACK: set TCP_NODELAY on the sockets of {sends}, or write each message whole: one send, or writev."
    )
}
