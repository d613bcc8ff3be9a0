//! The rows of one function: its instructions where the code is kept, else the addresses with samples.

use std::collections::BTreeMap;

use holdup_trace::tables::{Code, LineRow, LocationRow};
use holdup_trace::{FrameId, SpaceId, StringId, Trace, decode_build_id};
use rustc_hash::FxHashMap;

use super::find::Function;
use super::loops::{self, operation};
use super::report::{Annotated, InstructionRow};
use crate::code::{Decoded, Decoding, Disassembler, Disassembly};
use crate::label;

/// An instruction with this share of the samples is worth a sentence.
const HOT: f64 = 0.05;

/// Where samples of the function lie.
struct Place {
    samples: u64,
    /// The innermost function there.
    inner: LocationRow,
    is_inlined: bool,
}

/// Annotates `function`. Processes that run it at different addresses are added up.
pub(super) fn annotate(
    trace: &Trace,
    leaves: &FxHashMap<FrameId, u64>,
    function: &Function,
    disassembler: &dyn Disassembler,
) -> Annotated {
    let places = places(trace, leaves, function);
    let samples = places.values().map(|p| p.samples).sum();
    let mut found = Annotated {
        schema: "holdup.disasm/1",
        function: trace.text(function.name).to_owned(),
        module: trace.text(function.module).to_owned(),
        arch: trace.meta.host.arch.clone(),
        samples,
        ..Annotated::default()
    };
    let hottest = hottest(trace, leaves, function);
    match hottest.and_then(|frame| code_at(trace, function, frame)) {
        Some((code, start)) => with_code(trace, &code, start, &places, disassembler, &mut found),
        None => without_code(trace, hottest, &places, &mut found),
    }
    if found.instructions.is_empty() {
        without_code(trace, hottest, &places, &mut found);
    }
    found
}

/// Samples by distance from the function's start.
fn places(trace: &Trace, leaves: &FxHashMap<FrameId, u64>, function: &Function) -> BTreeMap<u64, Place> {
    let mut places: BTreeMap<u64, Place> = BTreeMap::new();
    for (&frame, &n) in leaves {
        let locations: Vec<LocationRow> = trace.names.locations(frame).collect();
        if let (Some(&inner), Some(outer)) = (locations.first(), locations.last())
            && is_of(outer, function)
        {
            let is_inlined = locations.len() > 1;
            let place = places.entry(outer.offset).or_insert(Place { samples: 0, inner, is_inlined });
            place.samples += n;
        }
    }
    places
}

fn is_of(outer: &LocationRow, function: &Function) -> bool {
    outer.function == function.name && outer.module == function.module
}

/// The function's frame with most samples; without any, one of the function at all.
fn hottest(trace: &Trace, leaves: &FxHashMap<FrameId, u64>, function: &Function) -> Option<FrameId> {
    let of = |frame: &FrameId| trace.names.locations(*frame).last().is_some_and(|l| is_of(&l, function));
    let most = leaves.iter().filter(|(f, _)| of(f)).max_by_key(|(f, n)| (**n, std::cmp::Reverse(**f)));
    most.map(|(f, _)| *f).or_else(|| (0..trace.stacks.frame_count()).map(|i| FrameId(i as u32)).find(of))
}

/// The kept code around `frame`, and where the function begins there.
fn code_at(trace: &Trace, function: &Function, frame: FrameId) -> Option<(Code, u64)> {
    let address = trace.stacks.frame(frame)?.address;
    let start = address.checked_sub(trace.names.locations(frame).last()?.offset)?;
    let code = trace.names.code(|c| {
        let length = trace.text(c.bytes).len() as u64 / 2;
        c.function == function.name && c.module == function.module && address.wrapping_sub(c.start) < length
    })?;
    (code.start >= start).then_some((code, start))
}

fn with_code(
    trace: &Trace,
    code: &Code,
    start: u64,
    places: &BTreeMap<u64, Place>,
    disassembler: &dyn Disassembler,
    found: &mut Annotated,
) {
    let Some(bytes) = decode_build_id(trace.text(code.bytes)) else { return };
    let kept = bytes.len() >> 10;
    let decoding = Decoding::of(trace, disassembler, bytes, code.start);
    let Disassembly { instructions: decoded, loops: short } = &decoding.found;
    let lines: Vec<LineRow> = trace.names.lines(code).collect();
    let text = |i: &Decoded| decoding.text(trace, disassembler, i.address);
    let mut rows: Vec<InstructionRow> = decoded
        .iter()
        .map(|i| InstructionRow { text: text(i), ..instruction(trace, i, code.start, start, &lines) })
        .collect();
    for (offset, place) in places {
        // A sample lies on an instruction; if not, in one.
        let at = rows.partition_point(|r| r.offset <= *offset);
        let Some(row) = at.checked_sub(1).map(|at| &mut rows[at]) else { continue };
        row.samples += place.samples;
        row.share = row.samples as f64 / found.samples.max(1) as f64;
        if row.file.is_empty() {
            set_source(trace, row, (place.inner.file, place.inner.line));
            row.inlined = inlined(trace, place);
        }
    }
    found.has_code = !rows.is_empty();
    found.loops = loops::describe(decoded, short, &mut rows, found.samples);
    found.notes = skid(decoded, &rows);
    let whole = rows.iter().map(|r| r.samples).sum::<u64>();
    if whole < found.samples {
        let part = found.samples - whole;
        found.notes.push(format!("{part} samples lie outside the {kept} KB of its code that are kept"));
    }
    found.instructions = rows;
}

fn instruction(trace: &Trace, i: &Decoded, code: u64, start: u64, lines: &[LineRow]) -> InstructionRow {
    let mut row = InstructionRow {
        address: format!("{:#x}", i.address),
        offset: i.address.wrapping_sub(start),
        ..InstructionRow::default()
    };
    let after = lines.partition_point(|l| code + u64::from(l.offset) <= i.address);
    if let Some(line) = after.checked_sub(1).map(|at| &lines[at]) {
        set_source(trace, &mut row, (line.file, line.line));
        row.inlined = trace.text(line.inlined).to_owned();
    }
    row
}

fn set_source(trace: &Trace, row: &mut InstructionRow, (file, line): (StringId, u32)) {
    row.file = trace.text(file).to_owned();
    row.line = line;
    row.source = label::file_line(&row.file, line);
}

fn inlined(trace: &Trace, place: &Place) -> String {
    if place.is_inlined { trace.text(place.inner.function).to_owned() } else { String::new() }
}

fn without_code(trace: &Trace, hottest: Option<FrameId>, places: &BTreeMap<u64, Place>, found: &mut Annotated) {
    let frame = hottest.and_then(|f| Some((trace.stacks.frame(f)?, trace.names.locations(f).last()?)));
    let start = frame.map_or(0, |(f, l)| f.address.wrapping_sub(l.offset));
    found.instructions = places
        .iter()
        .map(|(&offset, place)| {
            let mut row = InstructionRow {
                address: format!("{:#x}", start.wrapping_add(offset)),
                offset,
                samples: place.samples,
                share: place.samples as f64 / found.samples.max(1) as f64,
                inlined: inlined(trace, place),
                ..InstructionRow::default()
            };
            set_source(trace, &mut row, (place.inner.file, place.inner.line));
            row
        })
        .collect();
    let why = match frame {
        Some((f, _)) if f.space == SpaceId::KERNEL => {
            "the kernel's code is not in the trace: it is kept where the recorder may read /proc/kcore"
        }
        _ => "the code of this function is not in the trace: its file was not at hand when names were looked up",
    };
    found.notes.push(why.to_owned());
}

/// Which instruction really took the time.
fn skid(code: &[Decoded], rows: &[InstructionRow]) -> Vec<String> {
    let general = "a sample lies on the instruction behind the one that took the time: an interrupt is taken only \
                   when an instruction is done";
    let mut notes = vec![general.to_owned()];
    for (before, pair) in code.iter().zip(rows.windows(2)) {
        let row = &pair[1];
        if row.share >= HOT && (before.pause || before.atomic) {
            let what = operation(&pair[0].text);
            notes.push(format!("the {:.0} % at {} belong to the `{what}` before it", 100.0 * row.share, row.address));
        }
    }
    notes
}
