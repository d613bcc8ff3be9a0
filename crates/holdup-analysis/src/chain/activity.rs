//! What each thread of a chain did before it readied the next: ran in which function, could run behind whom.

use holdup_trace::{Nanos, Result, StackId, Table, ThreadIdx, Timestamp};
use rustc_hash::FxHashMap;

use super::report::{Behind, Did, Edge, End, EndKind, Hop, Share, WaitFacts, Who};
use super::walk::{Link, Links, Parts, Stop};
use super::{Study, end};
use crate::intervals::State;
use crate::{findings, label, segments};

/// Threads named for having run in another one's place.
const BEHIND: usize = 3;

/// Hops that are described one by one: in a ping-pong of microseconds nobody reads on.
const MOST_DESCRIBED: usize = 1000;

/// The hops of a chain, its end, and what all of it adds up to. O(steps + samples + hops).
pub(super) fn describe(study: &Study, parts: &Parts, walked: &Links) -> Result<(Vec<Hop>, End, Vec<Share>)> {
    let links = &walked.links;
    let mut all = Activities::new(links);
    all.follow(study);
    all.behind(study);
    all.sample(study)?;
    let shares = shares(study, parts, walked, &all.of);
    let count = links.len();
    let hops: Vec<Hop> = links
        .iter()
        .zip(all.of)
        .enumerate()
        // The end speaks of the last.
        .filter(|(i, _)| *i + 1 < MOST_DESCRIBED || *i + 1 == count)
        .map(|(i, (link, activity))| {
            let inside = |t: Timestamp| t.clamp(walked.from, walked.to);
            let (from, until) = (inside(link.from), inside(link.until));
            let started = link.edge == Edge::Start;
            Hop {
                who: who(study, link.thread),
                by: link.edge,
                did: did(study, link, activity),
                wait: link.wait.map(|w| wait_facts(study, parts, w)),
                part_s: if started { 0.0 } else { until.since(from).seconds() },
                alone_s: if i + 1 < count { link.alone.seconds() } else { 0.0 },
                at: !started && walked.at.is_some_and(|t| (from..until).contains(&t)),
            }
        })
        .collect();
    let end = end::of(study, parts, walked, &hops);
    Ok((hops, end, shares))
}

/// What some hops come to.
#[derive(Default)]
struct Sum {
    part: Nanos,
    times: u64,
    samples: FxHashMap<StackId, f64>,
}

/// What the whole first wait was, by thread and by what it did.
fn shares(study: &Study, parts: &Parts, walked: &Links, activities: &[Activity]) -> Vec<Share> {
    let mut sums: FxHashMap<(ThreadIdx, EndKind), Sum> = FxHashMap::default();
    let mut add = |thread, what, part: Nanos, samples: Option<&FxHashMap<StackId, f64>>| {
        if part > Nanos::ZERO {
            let sum = sums.entry((thread, what)).or_default();
            (sum.part, sum.times) = (sum.part + part, sum.times + 1);
            samples.into_iter().flatten().for_each(|(s, n)| *sum.samples.entry(*s).or_default() += n);
        }
    };
    for (link, activity) in walked.links.iter().zip(activities) {
        if link.edge != Edge::Start {
            let Activity { ran, ready, .. } = *activity;
            add(link.thread, EndKind::Running, ran, Some(&activity.samples));
            add(link.thread, EndKind::Runnable, ready, None);
            let unknown = link.until.since(link.from).0.saturating_sub(ran.0 + ready.0);
            add(link.thread, EndKind::Unknown, Nanos(unknown), None);
        }
        if let Some(wait) = link.wait {
            add(link.thread, end::kind_of(study, parts, wait), link.alone, None);
        }
    }
    let rest = match walked.stop {
        Stop::Circle => EndKind::Circle,
        Stop::Cut => EndKind::Cut,
        Stop::Begin | Stop::Unknown => EndKind::Unknown,
    };
    add(ThreadIdx::NONE, rest, walked.rest, None);
    let whole = walked.to.since(walked.from).seconds().max(f64::MIN_POSITIVE);
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|((thread, what), sum)| (std::cmp::Reverse(sum.part), *thread, what.name()));
    let share = |((thread, what), sum): ((ThreadIdx, EndKind), Sum)| {
        let function = findings::covering(study.classifier, &sum.samples).or_else(|| leaf(study, &sum.samples));
        Share {
            who: who(study, thread),
            what,
            function: function.map_or(String::new(), |l| study.trace.text(l.function).to_owned()),
            part_s: sum.part.seconds(),
            share: sum.part.seconds() / whole,
            times: sum.times,
        }
    };
    sums.into_iter().map(share).collect()
}

/// The thread's names and numbers.
pub(super) fn who(study: &Study, thread: ThreadIdx) -> Who {
    let trace = study.trace;
    let Some(row) = trace.thread(thread) else { return Who::default() };
    let (process, name) = (trace.text(row.process).to_owned(), trace.text(row.name).to_owned());
    Who { process, pid: row.pid, thread: name, tid: row.tid }
}

/// What a thread did in its part of a chain.
#[derive(Default, Clone)]
struct Activity {
    ran: Nanos,
    ready: Nanos,
    waited: Nanos,
    behind: FxHashMap<ThreadIdx, Nanos>,
    samples: FxHashMap<StackId, f64>,
}

/// A span in which the thread of link `link` could run, and had `cpu` before it.
struct Ready {
    from: u64,
    to: u64,
    link: usize,
}

struct Activities<'a> {
    links: &'a [Link],
    of: Vec<Activity>,
    of_thread: FxHashMap<ThreadIdx, Vec<usize>>,
    /// By CPU.
    ready: FxHashMap<u16, Vec<Ready>>,
}

impl<'a> Activities<'a> {
    fn new(links: &'a [Link]) -> Self {
        let mut of_thread: FxHashMap<ThreadIdx, Vec<usize>> = FxHashMap::default();
        for (i, link) in links.iter().enumerate() {
            of_thread.entry(link.thread).or_default().push(i);
        }
        Activities { links, of: vec![Activity::default(); links.len()], of_thread, ready: FxHashMap::default() }
    }

    /// Adds up the states of the chain's threads.
    fn follow(&mut self, study: &Study) {
        let waits = &study.intervals.waits;
        let mut awaited: Vec<(u32, Ready)> = Vec::new();
        segments::each(study.trace, study.intervals, |s| {
            for &i in of_span(self.of_thread.get(&s.thread), self.links, s.from, s.to) {
                let (link, activity) = (&self.links[i], &mut self.of[i]);
                let (from, until) = (link.from.nanos(), link.until.nanos());
                let time = Nanos(s.within(from, until));
                let ready = Ready { from: s.from.max(from), to: s.to.min(until), link: i };
                match s.state {
                    _ if time == Nanos::ZERO => {}
                    State::Running(_) => activity.ran += time,
                    State::Waiting(_) => activity.waited += time,
                    State::Runnable(cpu) | State::Yields(cpu) => {
                        activity.ready += time;
                        self.ready.entry(cpu.0).or_default().push(ready);
                    }
                    State::Woken(w) => {
                        activity.ready += time;
                        awaited.push((w, ready));
                    }
                    State::Unknown | State::Gone => {}
                }
            }
        });
        // On which CPU a woken thread waited shows where it ran then.
        let mut then: FxHashMap<(ThreadIdx, u64), Vec<Ready>> = FxHashMap::default();
        for (w, ready) in awaited {
            let wait = &waits[w as usize];
            then.entry((wait.thread, wait.resumed)).or_default().push(ready);
        }
        segments::each(study.trace, study.intervals, |s| {
            if let State::Running(cpu) = s.state
                && let Some(ready) = then.remove(&(s.thread, s.from))
            {
                self.ready.entry(cpu.0).or_default().extend(ready);
            }
        });
    }

    /// Who ran on the CPUs that the chain's threads waited for.
    fn behind(&mut self, study: &Study) {
        if self.ready.is_empty() {
            return;
        }
        self.ready.values_mut().for_each(|spans| spans.sort_by_key(|r| r.from));
        segments::each(study.trace, study.intervals, |s| {
            let State::Running(cpu) = s.state else { return };
            let Some(spans) = self.ready.get(&cpu.0) else { return };
            let before = spans.partition_point(|r| r.from < s.to);
            for r in spans[..before].iter().filter(|r| self.links[r.link].thread != s.thread) {
                let time = Nanos(s.within(r.from, r.to));
                if time > Nanos::ZERO {
                    *self.of[r.link].behind.entry(s.thread).or_default() += time;
                }
            }
        });
    }

    fn sample(&mut self, study: &Study) -> Result<()> {
        for chunk in study.trace.samples.chunks() {
            let chunk = chunk?;
            for i in 0..chunk.len() {
                let t = chunk.t[i];
                let links = of_span(self.of_thread.get(&chunk.thread[i]), self.links, t.nanos(), t.nanos() + 1);
                for &l in links {
                    *self.of[l].samples.entry(chunk.stack[i]).or_default() += 1.0;
                }
            }
        }
        Ok(())
    }
}

/// Those links of a thread that answer for a part of `from..to`: they follow each other backwards in time.
fn of_span<'l>(own: Option<&'l Vec<usize>>, links: &[Link], from: u64, to: u64) -> &'l [usize] {
    let Some(own) = own else { return &[] };
    let begin = own.partition_point(|&i| links[i].from.nanos() >= to);
    let rest = &own[begin..];
    &rest[..rest.partition_point(|&i| links[i].until.nanos() > from)]
}

fn did(study: &Study, link: &Link, activity: Activity) -> Did {
    let mut behind: Vec<(ThreadIdx, Nanos)> = activity.behind.into_iter().collect();
    behind.sort_by_key(|(thread, time)| (std::cmp::Reverse(*time), *thread));
    behind.truncate(BEHIND);
    let mut found = Did {
        from_s: link.from.seconds(),
        to_s: link.until.seconds(),
        ran_s: activity.ran.seconds(),
        ready_s: activity.ready.seconds(),
        waited_s: activity.waited.seconds(),
        samples: activity.samples.values().sum::<f64>() as u64,
        behind: behind.into_iter().map(|(t, time)| Behind { who: who(study, t), ran_s: time.seconds() }).collect(),
        ..Did::default()
    };
    let application = findings::covering(study.classifier, &activity.samples);
    if let Some(l) = application.or_else(|| leaf(study, &activity.samples)) {
        found.function = study.trace.text(l.function).to_owned();
        found.source = label::source(study.trace, &l);
        found.instruction = findings::hottest(study.trace, study.disassembler, &activity.samples, l.function);
    }
    found
}

/// Where nothing belongs to the application: the function that has most samples itself.
fn leaf(study: &Study, samples: &FxHashMap<StackId, f64>) -> Option<holdup_trace::tables::LocationRow> {
    let most = samples.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)))?;
    let frame = study.trace.stacks.frames(*most.0).next()?;
    study.trace.names.locations(frame).next()
}

fn wait_facts(study: &Study, parts: &Parts, i: usize) -> WaitFacts {
    let wait = parts.wait(i);
    let application = study.classifier.application_frames(wait.stack);
    let function = application.first().map_or("", |(_, l)| study.trace.text(l.function));
    WaitFacts {
        id: study.intervals.number(i),
        kind: wait.kind,
        lock: label::lock(study.trace, wait.lock),
        start_s: parts.start(i).seconds(),
        woken_s: parts.woken(i).seconds(),
        waited_s: parts.waited(i).seconds(),
        ready_s: parts.ready(i).seconds(),
        open: wait.open,
        ended_by: end::ended_by(wait),
        function: function.to_owned(),
        stack: label::stack_lines(study.trace, wait.stack),
        waker_stack: label::stack_lines(study.trace, wait.waker_stack),
    }
}
