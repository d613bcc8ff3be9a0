//! Which lanes there are: CPUs, or threads in groups, those to blame first.

use std::cmp::Reverse;

use holdup_analysis::label;
use holdup_analysis::lanes::Doing;
use holdup_base::named;
use holdup_trace::{Amount, ThreadIdx};
use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::base::Base;
use crate::people::{People, Row};
use crate::request::{Kind, RowsOf};
use crate::spans::{SpanRow, row_levels};
use crate::study::Study;
use crate::{Answer, Result};

/// More rows at once than any screen shows.
const MOST_ROWS: usize = 2000;

/// What ranks threads.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    blame_s: f64,
    cpu_s: f64,
    held_s: f64,
}

/// A group by its place in the list, with what is in it.
type Ranked<T> = (usize, Weight, T);

/// All rows, in the order in which they are shown.
pub(crate) struct Rows {
    /// Of each thread.
    weights: Vec<Weight>,
    /// Programs, each with its groups, each with its threads.
    order: Vec<Ranked<Vec<Ranked<Vec<ThreadIdx>>>>>,
}

/// A line of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Row(Row),
    Spans(SpanRow),
}

named! {
    /// What a row is.
    enum RowKind {
        /// A CPU.
        Cpu = "cpu",
        /// All processes of one name.
        Program = "program",
        /// Threads of like names.
        Name = "name",
        /// A thread.
        Thread = "thread",
        /// Spans of the threads of the row above.
        Spans = "spans",
    }
}

#[derive(Serialize)]
struct Shown {
    id: String,
    depth: u8,
    kind: RowKind,
    label: String,
    detail: String,
    threads: usize,
    open: bool,
    blame_s: f64,
    cpu_s: f64,
    held_s: f64,
}

#[derive(Serialize)]
struct Listed {
    rows: Vec<Shown>,
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Option<usize>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    opened: Vec<String>,
}

impl Weight {
    fn add(&mut self, other: &Weight) {
        self.blame_s += other.blame_s;
        self.cpu_s += other.cpu_s;
        self.held_s += other.held_s;
    }

    /// The order of rows: who is to blame, who was held up, who ran.
    fn rank(&self) -> Reverse<(u64, u64, u64)> {
        let micros = |s: f64| (s.max(0.0) * 1e6) as u64;
        Reverse((micros(self.blame_s), micros(self.held_s), micros(self.cpu_s)))
    }
}

impl Rows {
    /// `blame` are the CPU nanoseconds charged to each thread; none while they are not known.
    pub(crate) fn new(people: &People, base: &Base, blame: Option<&[f64]>) -> Self {
        let seconds = |ns: f64| Amount(ns).seconds();
        let of = |(i, sums): (usize, &[f64; Doing::COUNT])| Weight {
            blame_s: seconds(blame.and_then(|b| b.get(i)).copied().unwrap_or(0.0)),
            cpu_s: seconds(sums[Doing::Runs as usize] + sums[Doing::Spins as usize]),
            held_s: seconds(Doing::ALL.iter().filter(|d| d.is_held()).map(|d| sums[*d as usize]).sum()),
        };
        let weights: Vec<Weight> = base.sums.iter().enumerate().map(of).collect();
        let sum = |threads: &[ThreadIdx]| {
            let mut sum = Weight::default();
            threads.iter().for_each(|t| sum.add(&weights[t.index()]));
            sum
        };
        let mut order: Vec<_> = (0..people.programs.len())
            .map(|p| {
                let mut whole = Weight::default();
                let mut names: Vec<_> = (people.programs[p].names.iter().enumerate())
                    .map(|(n, names)| {
                        let mut threads = names.threads.clone();
                        threads.sort_by_key(|t| weights[t.index()].rank());
                        (n, sum(&threads), threads)
                    })
                    .collect();
                names.sort_by_key(|(_, weight, _)| weight.rank());
                names.iter().for_each(|(_, weight, _)| whole.add(weight));
                (p, whole, names)
            })
            .collect();
        order.sort_by_key(|(_, weight, _)| weight.rank());
        Rows { weights, order }
    }

    /// Answers `rows`; with `only`, threads that have a part in what is selected.
    pub(crate) fn answer(
        &self,
        study: &Study,
        people: &People,
        asked: &RowsOf,
        only: Option<&FxHashSet<ThreadIdx>>,
    ) -> Result<Answer> {
        let mut open: FxHashSet<Row> = asked.open.iter().filter_map(|id| people.row(id, study).ok()).collect();
        let revealed = asked.reveal.as_deref().map(|id| people.row(id, study)).transpose()?;
        let opened = revealed.map_or_else(Vec::new, |row| self.open_for(row, study, people, &mut open));
        let search = asked.search.to_lowercase();
        let visible = match asked.lanes {
            Kind::Cpu => (0..study.timeline.cpus as u16).map(|c| (Row::Cpu(c), 0, true)).collect(),
            Kind::Thread => self.visible(study, people, &open, &search, only),
        };
        let lines: Vec<(Line, u8, bool)> = visible
            .into_iter()
            .flat_map(|(row, depth, open)| lines(study, people, asked.spans, row, depth, open))
            .collect();
        let at = revealed.map(|wanted| lines.iter().position(|(line, ..)| *line == Line::Row(wanted)));
        let page = lines.iter().skip(asked.offset).take(asked.limit.min(MOST_ROWS));
        let shown = |&(line, depth, open): &(Line, u8, bool)| match line {
            Line::Row(row) => self.shown(study, people, row, depth, open),
            Line::Spans(row) => shown_spans(study, people, row, depth),
        };
        let rows = page.map(shown).collect();
        let opened = opened.into_iter().map(|row| people.id(row)).collect();
        Ok(Answer::document(&Listed { rows, total: lines.len(), at, opened }))
    }

    /// Opens the groups above a row.
    fn open_for(&self, row: Row, study: &Study, people: &People, open: &mut FxHashSet<Row>) -> Vec<Row> {
        let above = match row {
            Row::Thread(thread) => match people.groups(thread, study) {
                Some((p, n)) => vec![Row::Program(p), Row::Names(p, n)],
                None => Vec::new(),
            },
            Row::Names(p, _) => vec![Row::Program(p)],
            Row::Cpu(_) | Row::Program(_) => Vec::new(),
        };
        above.into_iter().filter(|&row| self.is_group(row, people) && open.insert(row)).collect()
    }

    fn is_group(&self, row: Row, people: &People) -> bool {
        match row {
            Row::Program(p) => people.programs[p].threads > 1,
            Row::Names(p, n) => people.programs[p].names[n].threads.len() > 1,
            Row::Cpu(_) | Row::Thread(_) => false,
        }
    }

    /// All rows that are shown, with their depth and whether they are open. While something is searched for, all groups are.
    fn visible(
        &self,
        study: &Study,
        people: &People,
        open: &FxHashSet<Row>,
        search: &str,
        only: Option<&FxHashSet<ThreadIdx>>,
    ) -> Vec<(Row, u8, bool)> {
        let searching = !search.is_empty();
        let fits = |t: &ThreadIdx, above: bool| {
            only.is_none_or(|only| only.contains(t)) && (above || !searching || matches(study, *t, search))
        };
        let mut visible = Vec::new();
        for (p, _, names) in &self.order {
            let program = &people.programs[*p];
            let named = searching && study.trace.text(program.id).to_lowercase().contains(search);
            let groups: Vec<(usize, Vec<ThreadIdx>)> = names
                .iter()
                .map(|(n, _, threads)| (*n, threads.iter().copied().filter(|t| fits(t, named)).collect::<Vec<_>>()))
                .filter(|(_, threads)| !threads.is_empty())
                .collect();
            match groups.as_slice() {
                [] => continue,
                [(_, threads)] if program.threads == 1 => {
                    visible.push((Row::Thread(threads[0]), 0, false));
                    continue;
                }
                _ => {}
            }
            let is_open = open.contains(&Row::Program(*p)) || searching && !named;
            visible.push((Row::Program(*p), 0, is_open));
            if !is_open {
                continue;
            }
            for (n, threads) in groups {
                let row = Row::Names(*p, n);
                let single = program.names[n].threads.len() == 1;
                // A program of one kind of threads needs no group of them.
                let flat = single || program.names.len() == 1;
                let is_open = flat || open.contains(&row) || searching;
                if !flat {
                    visible.push((row, 1, is_open));
                }
                if is_open {
                    let depth = if flat { 1 } else { 2 };
                    visible.extend(threads.into_iter().map(|t| (Row::Thread(t), depth, false)));
                }
            }
        }
        visible
    }

    fn shown(&self, study: &Study, people: &People, row: Row, depth: u8, open: bool) -> Shown {
        let trace = study.trace;
        let mut weight = Weight::default();
        people.threads(row).iter().for_each(|t| weight.add(&self.weights[t.index()]));
        let (kind, label, detail, threads) = match row {
            Row::Cpu(cpu) => (RowKind::Cpu, format!("CPU {cpu}"), String::new(), 0),
            Row::Program(p) => {
                let program = &people.programs[p];
                let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
                let threads = count(program.threads, "thread", "threads");
                let detail = match program.processes {
                    1 => threads,
                    n => format!("{}, {threads}", count(n, "process", "processes")),
                };
                (RowKind::Program, named(trace.text(program.id)), detail, program.threads)
            }
            Row::Names(p, n) => {
                let names = &people.programs[p].names[n];
                (RowKind::Name, named(&names.label), format!("{} threads", names.threads.len()), names.threads.len())
            }
            Row::Thread(thread) => {
                let tid = trace.threads.tid.get(thread.index()).copied().unwrap_or(0);
                let process = if depth == 0 { label::process_name(trace, thread) } else { "" };
                let detail = if process.is_empty() { format!("{tid}") } else { format!("{tid} of {process}") };
                (RowKind::Thread, named(label::thread_name(trace, thread)), detail, 1)
            }
        };
        let Weight { blame_s, cpu_s, held_s } = weight;
        Shown { id: people.id(row), depth, kind, label, detail, threads, open, blame_s, cpu_s, held_s }
    }
}

/// A row, with those of its spans below it; of an open group, below its threads.
fn lines(
    study: &Study,
    people: &People,
    spans: bool,
    row: Row,
    depth: u8,
    open: bool,
) -> impl Iterator<Item = (Line, u8, bool)> {
    let levels = if spans && !open { row_levels(study, people, row) } else { 0 };
    let below = (0..levels).map(move |level| (Line::Spans(SpanRow { of: row, level }), depth + 1, false));
    std::iter::once((Line::Row(row), depth, open)).chain(below)
}

fn shown_spans(study: &Study, people: &People, row: SpanRow, depth: u8) -> Shown {
    let levels = row.levels(study, people);
    let count: usize = levels.iter().map(|(_, level)| level.spans().len()).sum();
    let label = match row.level + 1 {
        1 => "spans".to_owned(),
        n if levels.iter().any(|(_, level)| level.is_crowded()) => format!("spans, level {n} and deeper"),
        n => format!("spans, level {n}"),
    };
    let (kind, threads) = (RowKind::Spans, people.threads(row.of).len());
    let Weight { blame_s, cpu_s, held_s } = Weight::default();
    let detail = count.to_string();
    Shown { id: row.id(people), depth, kind, label, detail, threads, open: false, blame_s, cpu_s, held_s }
}

fn named(name: &str) -> String {
    if name.is_empty() { "(no name)".to_owned() } else { name.to_owned() }
}

/// Whether the thread is called so, or has this number.
pub(crate) fn matches(study: &Study, thread: ThreadIdx, search: &str) -> bool {
    let Some(row) = study.trace.thread(thread) else { return false };
    let number = |n: u32| n.to_string() == search;
    study.trace.text(row.name).to_lowercase().contains(search) || number(row.tid) || number(row.pid)
}
