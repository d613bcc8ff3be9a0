//! Flame graphs: stacks by what was charged to them, as a tree.

use std::cmp::Reverse;

use holdup_analysis::blame;
use holdup_analysis::classify::WaitKind;
use holdup_analysis::intervals::Chunk;
use holdup_analysis::label;
use holdup_analysis::lanes::Doing;
use holdup_trace::{Amount, LockId, StackId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::framing::Numbers;
use crate::parts::touched;
use crate::people::alike;
use crate::request::{FlameOf, Of};
use crate::study::Study;
use crate::{Answer, Cancel, Error, Result};

/// Nodes of an answer, at most.
const MOST_NODES: usize = 20_000;
/// Frames of one stack, at most.
const DEEPEST: usize = 512;
/// No parent.
const ROOT: u32 = u32::MAX;

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

#[derive(Debug, Clone, Copy, Default)]
struct Node {
    name: u32,
    parent: u32,
    value: f64,
    own: f64,
    before: f64,
}

#[derive(Default)]
struct Tree {
    names: Vec<String>,
    known: FxHashMap<String, u32>,
    nodes: Vec<Node>,
    children: FxHashMap<(u32, u32), u32>,
}

/// What is drawn, of one trace.
///
/// # Errors
/// If there is no such window, if a table is damaged, or if nobody wants to know any more.
pub(crate) fn weights(study: &Study, asked: &FlameOf, among: &Among, cancel: &Cancel) -> Result<Weights> {
    let (from, to) = match asked.window {
        Some(window) => window.within(study.timeline.end)?,
        None => (0, study.timeline.end.max(1)),
    };
    let mut found = match asked.of {
        Of::Cpu => of_samples(study, (from, to), among, cancel)?,
        Of::Off | Of::Wakers => of_waits(study, (from, to), asked.of, among, cancel)?,
        Of::Blame => of_blame(study, (from, to), among)?,
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

/// Who waited where, who let it go where, and for how long.
type Waited = FxHashMap<(StackId, ThreadIdx, StackId), f64>;

fn of_waits(study: &Study, (from, to): (u64, u64), of: Of, among: &Among, cancel: &Cancel) -> Result<Weights> {
    let look = study.look();
    let locks = among.lock.as_deref().map(|wanted| locks_called(study, wanted));
    let collect = |chunk: &Chunk| {
        let mut sums = Waited::default();
        if cancel.check().is_err() {
            return sums;
        }
        // What crosses the window's or the part's border counts with what lies inside.
        let (begin, end) = (from.max(chunk.from), to.min(chunk.to));
        for wait in chunk.waits() {
            let ns = wait.woken.min(end).saturating_sub(wait.start.max(begin));
            let wanted = || match &among.threads {
                Some(threads) => threads.contains(&wait.thread),
                None => study.focus.contains(wait.thread),
            };
            let held = || locks.as_ref().is_none_or(|locks| locks.contains(&wait.lock));
            if ns == 0 || !wanted() || !held() || wait.kind == WaitKind::KernelIdle {
                continue;
            }
            if look.at_wait(wait) != Doing::Home || among.threads.is_some() {
                *sums.entry((wait.stack, wait.waker, wait.waker_stack)).or_default() += ns as f64;
            }
        }
        sums
    };
    let mut all = Waited::default();
    study.timeline.each(touched(&study.timeline, from, to), collect, |sums| {
        sums.into_iter().for_each(|(key, ns)| *all.entry(key).or_default() += ns);
    })?;
    cancel.check()?;
    let mut paths: FxHashMap<Vec<String>, f64> = FxHashMap::default();
    for ((stack, waker, waker_stack), ns) in all {
        let path = match of {
            Of::Wakers => {
                let name =
                    if waker.is_real() { alike(label::thread_name(study.trace, waker)) } else { "(no thread)".into() };
                let mut path = vec![name];
                path.extend(frames(study, waker_stack));
                path
            }
            _ => frames(study, stack),
        };
        *paths.entry(path).or_default() += ns;
    }
    let mut paths: Vec<_> = paths.into_iter().collect();
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Weights { paths, samples: false })
}

fn locks_called(study: &Study, wanted: &str) -> FxHashSet<LockId> {
    let is = |i: &u32| {
        let facts = label::lock(study.trace, LockId(*i));
        facts.is_some_and(|f| f.name == wanted || format!("{} {}", f.kind.name(), f.address) == wanted)
    };
    (1..study.trace.locks.pid.len() as u32).filter(is).map(LockId).collect()
}

/// From those that waited, by way of what they waited for, to whom they waited for and what that one did meanwhile.
fn of_blame(study: &Study, (from, to): (u64, u64), among: &Among) -> Result<Weights> {
    let found = blame::blame(&study.swept(from, to), |_| (), |()| ())?;
    let trace = study.trace;
    let mut paths: FxHashMap<Vec<String>, f64> = FxHashMap::default();
    let application = |stack: StackId| match trace.text(study.classifier.facts(stack).application) {
        "" => "(no function)".to_owned(),
        name => name.to_owned(),
    };
    for (key, cell) in found.cells.iter().filter(|(_, cell)| cell.rank_ns > 0.0) {
        let has_part = |threads: &FxHashSet<ThreadIdx>| {
            threads.contains(&key.thread) || cell.threads.iter().any(|t| threads.contains(t))
        };
        if among.threads.as_ref().is_some_and(|threads| !has_part(threads)) {
            continue;
        }
        let waiter = cell.threads.iter().min().copied().unwrap_or(key.thread);
        let who = alike(label::thread_name(trace, waiter));
        let lock =
            label::lock(trace, key.lock).map(|l| if l.name.is_empty() { l.kind.name().to_owned() } else { l.name });
        let what = lock.unwrap_or_else(|| format!("waits: {}", key.kind.name()));
        let culprit = study.label(key.thread);
        let waited: f64 = cell.wait_stacks.values().map(|&ns| ns as f64).sum();
        let ran: f64 = cell.samples.values().sum();
        let ends: Vec<(String, f64)> = match ran > 0.0 {
            true => cell.samples.iter().map(|(stack, w)| (application(*stack), w / ran)).collect(),
            false => vec![(application(key.site), 1.0)],
        };
        let begins: Vec<(String, f64)> = match waited > 0.0 {
            true => cell.wait_stacks.iter().map(|(stack, ns)| (application(*stack), *ns as f64 / waited)).collect(),
            false => vec![("(is ready)".to_owned(), 1.0)],
        };
        for (begin, share) in &begins {
            for (end, part) in &ends {
                let path = vec![who.clone(), begin.clone(), what.clone(), culprit.clone(), end.clone()];
                *paths.entry(path).or_default() += cell.rank_ns * share * part;
            }
        }
    }
    let mut paths: Vec<_> = paths.into_iter().collect();
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Weights { paths, samples: false })
}

impl Tree {
    fn add(&mut self, path: &[String], value: f64, before: f64) {
        let mut parent = ROOT;
        for name in path {
            let name = match self.known.get(name) {
                Some(&name) => name,
                None => {
                    self.names.push(name.clone());
                    let id = self.names.len() as u32 - 1;
                    self.known.insert(name.clone(), id);
                    id
                }
            };
            let nodes = &mut self.nodes;
            let node = *self.children.entry((parent, name)).or_insert_with(|| {
                nodes.push(Node { name, parent, ..Node::default() });
                nodes.len() as u32 - 1
            });
            let here = &mut self.nodes[node as usize];
            here.value += value;
            here.before += before;
            parent = node;
        }
        if parent != ROOT {
            self.nodes[parent as usize].own += value;
        }
    }

    /// The largest nodes in the order in which they are drawn, parents before children.
    fn ordered(&self, least: f64, left_heavy: bool) -> (Vec<Node>, usize) {
        let weight = |n: &Node| n.value.max(n.before);
        let mut floor = least;
        if self.nodes.len() > MOST_NODES {
            let mut all: Vec<f64> = self.nodes.iter().map(weight).collect();
            all.sort_by(f64::total_cmp);
            floor = floor.max(all[all.len() - MOST_NODES]);
        }
        let mut below: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (i, node) in self.nodes.iter().enumerate() {
            below.entry(node.parent).or_default().push(i as u32);
        }
        for children in below.values_mut() {
            if left_heavy {
                let by = |&i: &u32| Reverse((weight(&self.nodes[i as usize])) as u64);
                children.sort_by_key(by);
            } else {
                children.sort_by_key(|&i| &self.names[self.nodes[i as usize].name as usize]);
            }
        }
        let mut out: Vec<Node> = Vec::new();
        let mut open: Vec<(u32, u32)> = vec![(ROOT, ROOT)];
        while let Some((node, place)) = open.pop() {
            let mut place = place;
            if node != ROOT {
                let here = &self.nodes[node as usize];
                // A child is no heavier than its parent: what is below is left out with it.
                if weight(here) < floor || out.len() >= MOST_NODES {
                    continue;
                }
                out.push(Node { parent: place, ..*here });
                place = out.len() as u32 - 1;
            }
            let children = below.get(&node).into_iter().flatten().rev();
            open.extend(children.map(|&child| (child, place)));
        }
        let cut = self.nodes.len() - out.len();
        (out, cut)
    }
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
