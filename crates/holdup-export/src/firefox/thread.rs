//! A thread of a profile.

use holdup_trace::tables::Thread;
use holdup_trace::{Timestamp, Trace};
use serde::Serialize;

use super::follow::Row;
use super::frames::{FrameTable, FuncTable, ResourceTable, StackTable, Tables};
use super::markers::Markers;
use super::shared::{Strings, ms};
use crate::stacks::{Unit, period};

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadTrack {
    process_type: &'static str,
    process_startup_time: f64,
    process_shutdown_time: Option<f64>,
    register_time: f64,
    unregister_time: Option<f64>,
    paused_ranges: [u8; 0],
    show_markers_in_timeline: bool,
    name: String,
    process_name: String,
    is_main_thread: bool,
    pid: String,
    tid: u32,
    samples: Samples,
    markers: Markers,
    stack_table: StackTable,
    frame_table: FrameTable,
    func_table: FuncTable,
    resource_table: ResourceTable,
    native_symbols: NativeSymbols,
}

/// None: functions have their names.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct NativeSymbols {
    lib_index: [u8; 0],
    address: [u8; 0],
    name: [u8; 0],
    function_size: [u8; 0],
    length: usize,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Samples {
    stack: Vec<Option<u32>>,
    time: Vec<f64>,
    weight: Vec<f64>,
    weight_type: &'static str,
    #[serde(rename = "threadCPUDelta")]
    thread_cpu_delta: Vec<u64>,
    length: usize,
}

/// A thread of the trace.
pub(super) fn of_trace(
    trace: &Trace,
    strings: &mut Strings,
    row: &Thread,
    rows: &[Row],
    markers: impl FnOnce(&mut Strings, &mut Tables) -> Markers,
) -> ThreadTrack {
    let mut tables = Tables::default();
    let samples = samples(trace, strings, &mut tables, rows);
    let markers = markers(strings, &mut tables);
    let ended = (row.end < Timestamp::MAX).then(|| ms(row.end.nanos()));
    let Tables { stacks, frames, funcs, resources, .. } = tables;
    ThreadTrack {
        process_type: "default",
        register_time: ms(row.start.nanos()),
        unregister_time: ended,
        name: trace.text(row.name).to_owned(),
        process_name: trace.text(row.process).to_owned(),
        is_main_thread: row.tid == row.pid,
        pid: row.pid.to_string(),
        tid: row.tid,
        samples,
        markers,
        stack_table: stacks,
        frame_table: frames,
        func_table: funcs,
        resource_table: resources,
        ..ThreadTrack::default()
    }
}

/// A track with nothing but markers.
pub(super) fn of_markers(name: &str, markers: Markers) -> ThreadTrack {
    ThreadTrack {
        process_type: "default",
        show_markers_in_timeline: true,
        name: name.to_owned(),
        process_name: name.to_owned(),
        is_main_thread: true,
        // No process of a trace has the number of the idle task.
        pid: "0".to_owned(),
        samples: Samples { weight_type: "samples", ..Samples::default() },
        markers,
        ..ThreadTrack::default()
    }
}

fn samples(trace: &Trace, strings: &mut Strings, tables: &mut Tables, rows: &[Row]) -> Samples {
    let (period, unit) = period(trace);
    let (weight, weight_type) = match unit {
        Unit::Nanoseconds => (ms(period), "tracing-ms"),
        Unit::None => (1.0, "samples"),
    };
    let mut samples = Samples { weight_type, length: rows.len(), ..Samples::default() };
    let mut before = 0;
    for row in rows {
        samples.stack.push(tables.stack(trace, strings, row.stack, row.waits));
        samples.time.push(ms(row.t));
        samples.weight.push(if row.waits.is_some() { 0.0 } else { weight });
        samples.thread_cpu_delta.push(row.ran.saturating_sub(before));
        before = row.ran;
    }
    samples
}
