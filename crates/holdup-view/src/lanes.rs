//! What lanes look like: for each pixel what was done mostly, in which share of it, and how much of it a CPU was used.

use holdup_analysis::lanes::Doing;
use holdup_trace::ThreadIdx;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::base::Base;
use crate::cpus::{NOBODY, Who};
use crate::crowds::{Crowds, shares};
use crate::framing::Numbers;
use crate::lane::{Lane, Sums, cpu, dominant};
use crate::parts::Parts;
use crate::people::{People, Row};
use crate::request::LanesOf;
use crate::study::Study;
use crate::window::Grid;
use crate::{Answer, Cancel, Error, Result};

/// Rows in one question.
const MOST_ROWS: usize = 200;

#[derive(Serialize)]
struct Painted<'a> {
    window: [u64; 2],
    px: usize,
    ids: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
}

/// What is painted.
struct Canvas {
    state: Vec<u8>,
    share: Vec<u8>,
    run: Vec<u8>,
    /// Of CPUs: who ran.
    who: Vec<u32>,
}

/// Answers `lanes`.
///
/// # Errors
/// If there is no such row or window, if a table is damaged, or if nobody wants to know any more.
pub(crate) fn answer(
    study: &Study,
    people: &People,
    base: &Base,
    crowds: &Crowds,
    parts: &Parts,
    asked: &LanesOf,
    cancel: &Cancel,
) -> Result<Answer> {
    if asked.ids.len() > MOST_ROWS {
        return Err(Error::Question(format!("{} rows are more than {MOST_ROWS}", asked.ids.len())));
    }
    let grid = Grid::new(asked.window, asked.px, study.timeline.end)?;
    let rows = asked.ids.iter().map(|id| people.row(id, study)).collect::<Result<Vec<Row>>>()?;
    let of_cpus = !rows.is_empty() && rows.iter().all(|row| matches!(row, Row::Cpu(_)));
    let cells = rows.len() * grid.px;
    let mut canvas = Canvas {
        state: Vec::with_capacity(cells),
        share: Vec::with_capacity(cells),
        run: Vec::with_capacity(cells),
        who: Vec::new(),
    };
    if of_cpus {
        let cpus: Vec<u16> = rows.iter().filter_map(|r| if let Row::Cpu(c) = r { Some(*c) } else { None }).collect();
        paint_cpus(study, base, parts, &cpus, grid, cancel, &mut canvas)?;
    } else {
        paint_threads(study, people, base, crowds, parts, &rows, grid, cancel, &mut canvas)?;
    }
    let names = name(study, &mut canvas.who);
    let mut sections = vec![("state", Numbers::U8(canvas.state)), ("share", Numbers::U8(canvas.share))];
    sections.push(("run", Numbers::U8(canvas.run)));
    if of_cpus {
        sections.push(("who", Numbers::U32(canvas.who)));
    }
    let document = Painted { window: [grid.from, grid.to], px: grid.px, ids: &asked.ids, names };
    Ok(Answer::with(&document, sections))
}

/// Puts places in a list of names where threads were.
fn name(study: &Study, who: &mut [u32]) -> Vec<String> {
    let (mut names, mut known) = (Vec::new(), FxHashMap::default());
    for who in who.iter_mut().filter(|who| **who != NOBODY) {
        *who = *known.entry(*who).or_insert_with(|| {
            names.push(study.label(ThreadIdx(*who)));
            names.len() as u32 - 1
        });
    }
    names
}

#[allow(clippy::too_many_arguments)]
fn paint_threads(
    study: &Study,
    people: &People,
    base: &Base,
    crowds: &Crowds,
    parts: &Parts,
    rows: &[Row],
    grid: Grid,
    cancel: &Cancel,
    canvas: &mut Canvas,
) -> Result<()> {
    let members: Vec<Vec<ThreadIdx>> = rows.iter().map(|&row| people.threads(row)).collect();
    let exact = grid.width() < base.width as f64;
    let mut did = vec![Vec::new(); if exact { rows.len() } else { 0 }];
    if exact {
        let mut wanted: FxHashMap<ThreadIdx, Vec<usize>> = FxHashMap::default();
        for (row, threads) in members.iter().enumerate() {
            threads.iter().for_each(|&t| wanted.entry(t).or_default().push(row));
        }
        let look = study.look();
        parts.each(&study.timeline, (grid.from, grid.to), cancel, |chunk| {
            look.follow(chunk, |d| {
                if d.to > grid.from && d.from < grid.to && d.doing != Doing::Nothing {
                    let rows = wanted.get(&d.thread).into_iter().flatten();
                    rows.for_each(|&row| did[row].push((d.from, d.to, d.doing)));
                }
            });
        })?;
    }
    let mut pixels: Vec<Sums> = vec![[0.0; Doing::COUNT]; grid.px];
    for (row, threads) in members.iter().enumerate() {
        cancel.check()?;
        pixels.fill([0.0; Doing::COUNT]);
        if exact {
            for &(from, to, doing) in &did[row] {
                grid.each(from, to, |px, ns| pixels[px][doing as usize] += ns);
            }
        } else if !crowds.add(rows[row], grid, &mut pixels) {
            let lanes = threads.iter().filter_map(|t| base.lanes.get(t.index()));
            lanes.for_each(|lane| add_lane(lane, base.width, grid, &mut pixels));
        }
        canvas.add(&pixels, grid.width() as f32, threads.len());
    }
    Ok(())
}

/// Adds what a lane of buckets of `width` nanoseconds tells of its thread.
pub(crate) fn add_lane(lane: &Lane, width: u64, grid: Grid, pixels: &mut [Sums]) {
    let (first, behind) = ((grid.from / width) as usize, grid.to.div_ceil(width) as usize);
    for (run, from, to) in lane.within(first, behind) {
        let (state, share, besides) = shares(run);
        grid.each(from as u64 * width, to as u64 * width, |px, ns| {
            pixels[px][state] += ns * share;
            pixels[px][Doing::Runs as usize] += ns * besides;
        });
    }
}

impl Canvas {
    /// One more row.
    fn add(&mut self, pixels: &[Sums], width: f32, threads: usize) {
        let whole = width * threads.max(1) as f32;
        for sums in pixels {
            let (state, most) = if threads > 1 { telling(sums) } else { most_of(sums, whole) };
            let byte = |ns: f32| (ns / whole * 255.0).round().clamp(0.0, 255.0) as u8;
            self.state.push(state as u8);
            self.share.push(byte(most).max(u8::from(state != 0)));
            self.run.push(byte(cpu(sums)).max(u8::from(cpu(sums) > 0.0)));
        }
    }
}

/// What took most of a pixel, with what is not known.
fn most_of(sums: &Sums, whole: f32) -> (usize, f32) {
    let known: f32 = sums.iter().sum();
    let (state, most) = dominant(sums);
    if whole - known > most { (0, whole - known) } else { (state, most) }
}

/// Of many threads most have nothing to do most of the time: what those do that have.
fn telling(sums: &Sums) -> (usize, f32) {
    let mut working = *sums;
    for quiet in [Doing::Nothing, Doing::Home, Doing::Sleeps, Doing::Child] {
        working[quiet as usize] = 0.0;
    }
    let (state, most) = dominant(&working);
    if most > 0.0 { (state, most) } else { dominant(sums) }
}

fn paint_cpus(
    study: &Study,
    base: &Base,
    parts: &Parts,
    cpus: &[u16],
    grid: Grid,
    cancel: &Cancel,
    canvas: &mut Canvas,
) -> Result<()> {
    let mut pixels = vec![vec![Who::default(); grid.px]; cpus.len()];
    if grid.width() < base.cpu_width as f64 {
        let row: FxHashMap<u16, usize> = cpus.iter().enumerate().map(|(i, &cpu)| (cpu, i)).collect();
        let look = study.look();
        parts.each(&study.timeline, (grid.from, grid.to), cancel, |chunk| {
            look.follow(chunk, |d| {
                if let Some(&row) = row.get(&d.cpu.0).filter(|_| d.doing.has_cpu()) {
                    grid.each(d.from, d.to, |px, ns| pixels[row][px].add(d.thread, ns));
                }
            });
            for (cpu, from, to) in chunk.lost() {
                if let Some(&row) = row.get(&cpu.0) {
                    grid.each(from, to, |px, ns| pixels[row][px].lost += ns);
                }
            }
        })?;
    } else {
        for (row, &cpu) in cpus.iter().enumerate() {
            let runs = &base.cpus[usize::from(cpu)];
            let first = runs.partition_point(|r| u64::from(r.bucket) * base.cpu_width <= grid.from).saturating_sub(1);
            for (i, run) in runs.iter().enumerate().skip(first) {
                let from = u64::from(run.bucket) * base.cpu_width;
                if from >= grid.to {
                    break;
                }
                let to = runs.get(i + 1).map_or(study.timeline.end, |next| u64::from(next.bucket) * base.cpu_width);
                let (busy, lost) = (f32::from(run.busy) / 255.0, f32::from(run.lost) / 255.0);
                grid.each(from, to, |px, ns| {
                    if run.who != NOBODY {
                        pixels[row][px].add(ThreadIdx(run.who), ns * busy);
                    }
                    pixels[row][px].lost += ns * lost;
                });
            }
        }
    }
    let width = grid.width() as f32;
    for who in pixels.iter().flatten() {
        let busy = who.busy();
        let byte = |ns: f32| (ns / width * 255.0).ceil().clamp(0.0, 255.0) as u8;
        let (state, share) = match () {
            () if who.lost > busy => (Doing::Lost, who.lost),
            () if busy > 0.0 => (Doing::Runs, busy),
            () => (Doing::Nothing, width),
        };
        canvas.state.push(state.code());
        canvas.share.push(byte(share));
        canvas.run.push(byte(busy));
        canvas.who.push(who.most());
    }
    Ok(())
}
