//! Flame graphs: stacks by what was charged to them, as a tree.

mod charged;
mod roles;
mod tree;
mod waited;

use holdup_analysis::intervals::Chunk;
use holdup_analysis::label;
use holdup_trace::{Amount, LockId, StackId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use charged::Charged;
use roles::{Role, Roles};
use tree::Tree;
use waited::Waited;

use crate::framing::Numbers;
use crate::memo::Memo;
use crate::parts::Parts;
use crate::request::{FlameOf, Of};
use crate::study::Study;
use crate::{Answer, Cancel, Error, Result};

/// Frames of one stack, at most.
const DEEPEST: usize = 512;

/// Whose stacks.
pub(crate) struct Among {
    pub(crate) threads: Option<FxHashSet<ThreadIdx>>,
    pub(crate) lock: Option<String>,
    pub(crate) function: Option<String>,
}

/// Paths with what they come to, the outermost name first.
#[derive(Default)]
pub(crate) struct Weights {
    pub(crate) paths: Vec<(Vec<String>, f64)>,
    /// Whether the numbers are samples, not nanoseconds.
    samples: bool,
}

#[derive(Serialize)]
struct Document {
    names: Vec<String>,
    unit: &'static str,
    total: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_before: Option<f64>,
    cut: String,
}

/// What flame graphs are drawn from.
pub(crate) struct Flames {
    roles: Roles,
    waited: Memo<Waited>,
    charged: Memo<Charged>,
}

impl Flames {
    pub(crate) fn new(study: &Study) -> Self {
        Flames { roles: Roles::new(study), waited: Memo::new(&study.timeline), charged: Memo::new(&study.timeline) }
    }

    /// Sums up all parts of the trace, for the questions to come. O(events): slow.
    ///
    /// # Errors
    /// If a table is damaged.
    pub(crate) fn fill(&self, study: &Study) -> Result<()> {
        let (timeline, roles) = (&study.timeline, &self.roles);
        let (mut reader, mut memory) = (timeline.reader(), None);
        for part in 0..timeline.len() {
            if !self.charged.has_room() && !self.waited.has_room() {
                return Ok(());
            }
            let chunk = reader.chunk(part, memory.take())?;
            self.charged.learn(timeline, part, &chunk, |chunk, window| Charged::of(study, roles, chunk, window));
            self.waited.learn(timeline, part, &chunk, |chunk, window| Waited::of(study, roles, chunk, window));
            memory = Some(chunk);
        }
        Ok(())
    }

    /// What is drawn, of one trace.
    ///
    /// # Errors
    /// If there is no such window, if a table is damaged, or if nobody wants to know any more.
    pub(crate) fn weights(
        &self,
        study: &Study,
        parts: &Parts,
        asked: &FlameOf,
        among: &Among,
        cancel: &Cancel,
    ) -> Result<Weights> {
        let window = match asked.window {
            Some(window) => window.within(study.timeline.end)?,
            None => (0, study.timeline.end.max(1)),
        };
        let mut found = match asked.of {
            Of::Cpu => of_samples(study, window, among, cancel)?,
            Of::Off | Of::Wakers => self.of_waits(study, parts, window, asked.of, among, cancel)?,
            Of::Blame => self.of_blame(study, parts, window, among, cancel)?,
        };
        cancel.check()?;
        if let Some(function) = &among.function {
            found.paths.retain(|(path, _)| path.iter().any(|name| name == function));
        }
        if asked.callers {
            found.paths.iter_mut().for_each(|(path, _)| path.reverse());
        }
        Ok(found)
    }

    fn of_waits(
        &self,
        study: &Study,
        parts: &Parts,
        window: (u64, u64),
        of: Of,
        among: &Among,
        cancel: &Cancel,
    ) -> Result<Weights> {
        let roles = &self.roles;
        let sum_up = |chunk: &Chunk, window| Waited::of(study, roles, chunk, window);
        let locks = among.lock.as_deref().map(|wanted| locks_called(study, wanted));
        // Where threads waited, or who let them go where.
        let mut all: FxHashMap<(Role, StackId), u64> = FxHashMap::default();
        self.waited.within(&study.timeline, parts, window, cancel, sum_up, |sum| {
            sum.each(among.threads.as_ref(), |alike, ns| {
                if locks.as_ref().is_none_or(|locks| locks.contains(&alike.lock)) {
                    let place =
                        if of == Of::Wakers { (alike.waker, alike.waker_stack) } else { (Role::NOBODY, alike.stack) };
                    *all.entry(place).or_default() += ns;
                }
            });
        })?;
        let path = |(role, stack)| {
            let waker = (of == Of::Wakers).then(|| roles.name(role).to_owned());
            waker.into_iter().chain(frames(study, stack)).collect()
        };
        Ok(Weights::of(all.into_iter().map(|(place, ns)| (path(place), ns as f64))))
    }

    fn of_blame(
        &self,
        study: &Study,
        parts: &Parts,
        window: (u64, u64),
        among: &Among,
        cancel: &Cancel,
    ) -> Result<Weights> {
        let roles = &self.roles;
        let sum_up = |chunk: &Chunk, window| Charged::of(study, roles, chunk, window);
        let mut all = FxHashMap::default();
        self.charged.within(&study.timeline, parts, window, cancel, sum_up, |sum| {
            sum.each(among.threads.as_ref(), |path, ns| *all.entry(*path).or_insert(0.0) += ns);
        })?;
        Ok(Weights::of(all.into_iter().map(|(path, ns)| (path.names(study, roles), ns))))
    }
}

impl Weights {
    /// Nanoseconds by path; those of equal paths are added up, in an order that is always the same.
    fn of(all: impl Iterator<Item = (Vec<String>, f64)>) -> Self {
        let mut paths: Vec<(Vec<String>, f64)> = all.collect();
        paths.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        paths.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0.0 };
            same
        });
        Weights { paths, samples: false }
    }
}

/// The frames of a stack, the outermost first, with what is inlined.
fn frames(study: &Study, stack: StackId) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for frame in study.trace.stacks.frames(stack).take(DEEPEST) {
        let before = names.len();
        names.extend(study.trace.names.locations(frame).map(|l| study.trace.text(l.function).to_owned()));
        if names.len() == before {
            names.push(format!("{:#x}", study.trace.stacks.frame(frame).map_or(0, |f| f.address)));
        }
    }
    if names.is_empty() {
        names.push("(no stack)".to_owned());
    }
    names.reverse();
    names
}

fn of_samples(study: &Study, (from, to): (u64, u64), among: &Among, cancel: &Cancel) -> Result<Weights> {
    let mut sums: FxHashMap<StackId, u64> = FxHashMap::default();
    for chunk in study.trace.samples.chunks() {
        cancel.check()?;
        let chunk = chunk?;
        for i in 0..chunk.t.len() {
            let inside = (from..to).contains(&chunk.t[i].nanos());
            let wanted = || match &among.threads {
                Some(threads) => threads.contains(&chunk.thread[i]),
                None => study.focus.contains(chunk.thread[i]),
            };
            if inside && wanted() {
                *sums.entry(chunk.stack[i]).or_default() += 1;
            }
        }
    }
    let period = study.trace.meta.sample_period_ns;
    let weight = |n: u64| if period > 0 { (n * period) as f64 } else { n as f64 };
    let mut paths: Vec<_> = sums.into_iter().map(|(stack, n)| (frames(study, stack), weight(n))).collect();
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Weights { paths, samples: period == 0 })
}

fn locks_called(study: &Study, wanted: &str) -> FxHashSet<LockId> {
    let is = |i: &u32| {
        let facts = label::lock(study.trace, LockId(*i));
        facts.is_some_and(|f| f.name == wanted || format!("{} {}", f.kind.name(), f.address) == wanted)
    };
    (1..study.trace.locks.pid.len() as u32).filter(is).map(LockId).collect()
}

/// Answers `flame`; with `before`, differential.
///
/// # Errors
/// If `min_share` is no share.
pub(crate) fn answer(asked: &FlameOf, now: &Weights, before: Option<&Weights>) -> Result<Answer> {
    if !(0.0..=1.0).contains(&asked.min_share) {
        return Err(Error::Question(format!("min_share is {}; it must lie between 0 and 1", asked.min_share)));
    }
    let scale = |w: &Weights, value: f64| if w.samples { value } else { Amount(value).seconds() };
    let mut tree = Tree::default();
    now.paths.iter().for_each(|(path, value)| tree.add(path, scale(now, *value), 0.0));
    if let Some(before) = before {
        before.paths.iter().for_each(|(path, value)| tree.add(path, 0.0, scale(before, *value)));
    }
    let sum = |w: &Weights| w.paths.iter().map(|(_, value)| scale(w, *value)).sum::<f64>();
    let total = sum(now);
    let total_before = before.map(sum);
    let (nodes, cut) = tree.ordered(asked.min_share * total.max(total_before.unwrap_or(0.0)), asked.left_heavy);
    let cut = match cut {
        0 => String::new(),
        1 => "1 frame is too small to be drawn".to_owned(),
        n => format!("{n} frames are too small to be drawn"),
    };
    let mut used: FxHashMap<u32, u32> = FxHashMap::default();
    let mut names = Vec::new();
    let name = nodes.iter().map(|n| {
        *used.entry(n.name).or_insert_with(|| {
            names.push(tree.names[n.name as usize].clone());
            names.len() as u32 - 1
        })
    });
    let name: Vec<u32> = name.collect();
    let mut sections = vec![
        ("name", Numbers::U32(name)),
        ("parent", Numbers::U32(nodes.iter().map(|n| n.parent).collect())),
        ("value", Numbers::F64(nodes.iter().map(|n| n.value).collect())),
        ("self", Numbers::F64(nodes.iter().map(|n| n.own).collect())),
    ];
    if before.is_some() {
        sections.push(("before", Numbers::F64(nodes.iter().map(|n| n.before).collect())));
    }
    let unit = if now.samples { "samples" } else { "s" };
    Ok(Answer::with(&Document { names, unit, total, total_before, cut }, sections))
}
