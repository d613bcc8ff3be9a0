//! Perfetto's traces of made and of recorded ones: read again, they are the same; Perfetto's own classes read them.

#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdup_analysis::{NoDisassembler, Options};
use holdup_export::{Source, perfetto};
use holdup_synth::{Shape, Spec, generate};
use holdup_testing::{Need, has, shared_trace};
use holdup_trace::{Destination, StackId, SwitchState, Table, ThreadIdx, Trace, TraceBuilder, WakeContext};

fn made(events: u64) -> Trace {
    let spec = Spec { shape: Shape::Lock, cpus: 4, threads: 24, events, seed: 7, losses: 0 };
    generate(&spec, &Destination::Memory).unwrap().trace
}

fn exported(trace: &Trace) -> Vec<u8> {
    let options = Options::default();
    let source = Source { trace, name: "made", options: &options, disassembler: &NoDisassembler };
    let mut out = Vec::new();
    perfetto::write(&source, &mut out).unwrap();
    out
}

fn imported(input: holdup_import::Input) -> Trace {
    let mut builder = TraceBuilder::new(&Destination::Memory).unwrap();
    input.import(&mut builder).unwrap();
    builder.finish(None).unwrap()
}

fn again(trace: &Trace) -> Trace {
    imported(holdup_import::Input::from_bytes(Path::new("made.pftrace"), exported(trace)).unwrap())
}

fn tid(trace: &Trace, thread: ThreadIdx) -> u32 {
    trace.thread(thread).map_or(0, |row| row.tid)
}

/// Addresses and names of a stack's frames. Frames of the kernel without a place have numbers of their own in each trace.
fn frames(trace: &Trace, stack: StackId) -> Frames {
    let names = |frame| trace.names.locations(frame).map(|l| trace.text(l.function).to_owned()).collect();
    trace.stacks.frames(stack).map(|f| (trace.stacks.frame(f).map_or(0, |f| f.address), names(f))).collect()
}

type Frames = Vec<(u64, Vec<String>)>;
type SwitchRow = (u64, u16, u32, SwitchState, u32, i16);
type WakeRow = (u64, u16, u32, WakeContext, u16, u32, u16);

/// Switches in order, from the first one on.
fn switches(trace: &Trace) -> Vec<SwitchRow> {
    let mut rows: Vec<_> = trace.switches.iter().map(|s| s.unwrap()).collect();
    let first = rows[0].t;
    // Which of two CPUs was first at one instant, nobody knows.
    rows.sort_by_key(|s| (s.t, s.cpu));
    rows.iter()
        .map(|s| (s.t.since(first).0, s.cpu.0, tid(trace, s.prev), s.state, tid(trace, s.next), s.syscall))
        .collect()
}

fn wakes(trace: &Trace) -> Vec<WakeRow> {
    let first = trace.switches.iter().next().unwrap().unwrap().t.nanos();
    let mut rows: Vec<_> = trace.wakes.iter().map(|w| w.unwrap()).collect();
    rows.sort_by_key(|w| (w.t, w.cpu));
    let row = |w: holdup_trace::tables::Wake| {
        // Whose wake-up it was is not known, so nothing else is told of it.
        let known = w.context != WakeContext::Unknown;
        let waker = if known { tid(trace, w.waker) } else { 0 };
        let source = match w.context {
            WakeContext::HardIrq | WakeContext::SoftIrq => w.source,
            _ => 0,
        };
        (w.t.nanos().wrapping_sub(first), w.cpu.0, waker, w.context, source, tid(trace, w.wakee), w.target.0)
    };
    rows.into_iter().map(row).collect()
}

/// The stacks of threads that left their CPUs, by when and who, whether the switch or the wait has them.
fn stacks(trace: &Trace) -> BTreeMap<(u64, u32), Frames> {
    let first = trace.switches.iter().next().unwrap().unwrap().t.nanos();
    let of_switches = trace.switches.iter().map(|s| s.unwrap()).map(|s| (s.t, s.prev, s.stack));
    let of_waits = trace.waits.iter().map(|w| w.unwrap()).map(|w| (w.start, w.thread, w.stack));
    let all = of_switches.chain(of_waits).filter(|(.., stack)| *stack != StackId::NONE);
    all.map(|(t, thread, stack)| ((t.nanos().wrapping_sub(first), tid(trace, thread)), frames(trace, stack))).collect()
}

fn samples(trace: &Trace) -> Vec<(u16, u32, u64, Frames)> {
    let rows = trace.samples.iter().map(|s| s.unwrap());
    rows.map(|s| (s.cpu.0, tid(trace, s.thread), s.ip, frames(trace, s.stack))).collect()
}

/// Says the first difference, not all rows.
fn assert_rows<T: PartialEq + std::fmt::Debug>(one: &[T], other: &[T]) {
    one.iter().zip(other).for_each(|(a, b)| assert_eq!(a, b));
    assert_eq!(one.len(), other.len());
}

fn assert_same(one: &Trace, other: &Trace) {
    assert_rows(&switches(one), &switches(other));
    assert_rows(&wakes(one), &wakes(other));
    let (a, b) = (stacks(one), stacks(other));
    assert_eq!(a.len(), b.len(), "stacks");
    for (key, frames) in &a {
        assert_eq!(Some(frames), b.get(key), "{key:?}");
    }
    assert_rows(&samples(one), &samples(other));
    let named = |trace: &Trace| -> Vec<(u32, u32, String)> {
        let mut rows: Vec<_> =
            trace.threads.rows().skip(1).map(|t| (t.tid, t.pid, trace.text(t.name).to_owned())).collect();
        rows.sort();
        rows
    };
    assert_eq!(named(one), named(other));
    assert_eq!((one.meta.cpus, one.meta.sample_period_ns), (other.meta.cpus, other.meta.sample_period_ns));
}

#[test]
fn a_made_trace_comes_back() {
    let trace = made(100_000);
    let back = again(&trace);
    assert!(!stacks(&trace).is_empty() && trace.samples.rows() > 100, "there is something to compare");
    assert_same(&trace, &back);
    assert_eq!(back.losses.rows(), 0, "{:?}", back.losses());
}

#[test]
fn a_recording_of_perf_comes_back() {
    let fixture =
        |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../holdup-import/tests/fixtures").join(name);
    for name in ["task.perf.data", "contexts.perf.data.gz"] {
        let trace = imported(holdup_import::open(&fixture(name)).unwrap());
        let back = again(&trace);
        assert_same(&trace, &back);
        let rows = |trace: &Trace| (trace.block_ios.rows(), trace.kernel_locks.rows());
        assert_eq!(rows(&trace), rows(&back), "{name}");
    }
}

#[test]
fn a_trace_of_perfetto_comes_back() {
    let Some(path) = shared_trace("android12-4cpu-switch-stacks.pftrace") else { return };
    let trace = imported(holdup_import::open(&path).unwrap());
    let back = again(&trace);
    assert_rows(&switches(&trace), &switches(&back));
    assert_rows(&wakes(&trace), &wakes(&back));
    // Frames of the kernel without a place have numbers of their own in each trace.
    let names = |trace: &Trace| -> Vec<_> {
        let all = stacks(trace).into_iter();
        all.map(|(key, stack)| (key, stack.into_iter().map(|(_, names)| names).collect::<Vec<_>>())).collect()
    };
    assert_rows(&names(&trace), &names(&back));
}

#[test]
fn perfettos_own_classes_read_it() {
    let here =
        Command::new("python3").args(["-c", "import perfetto.protos.perfetto.trace.perfetto_trace_pb2"]).output();
    let is_here = here.is_ok_and(|o| o.status.success());
    if !has(Need::Other { name: "Python with perfetto", is_here }) {
        return;
    }
    const SCRIPT: &str = "
import collections, json, sys
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
trace = pb.Trace.FromString(open(sys.argv[1], 'rb').read())
counts, last = collections.Counter(), {}
for p in trace.packet:
    counts[p.WhichOneof('data')] += 1
    b = p.ftrace_events
    for e in b.event:
        counts[e.WhichOneof('event')] += 1
        assert last.get(b.cpu, 0) <= e.timestamp, (b.cpu, e)
        last[b.cpu] = e.timestamp
    if p.HasField('track_event'):
        counts[pb.TrackEvent.Type.Name(p.track_event.type)] += 1
    assert len(UnknownFieldSet(p)) == 0
frames = {f.iid for p in trace.packet for f in p.interned_data.frames if p.trusted_packet_sequence_id == 5}
for p in trace.packet:
    if p.trusted_packet_sequence_id == 5:
        assert all(f in frames for c in p.interned_data.callstacks for f in c.frame_ids)
print(json.dumps(counts))
";
    let trace = made(60_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.pftrace");
    std::fs::write(&path, exported(&trace)).unwrap();
    let o = Command::new("python3").args(["-c", SCRIPT]).arg(&path).output().unwrap();
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    let counts: BTreeMap<String, u64> = serde_json::from_slice(&o.stdout).unwrap();
    let count = |name: &str| counts.get(name).copied().unwrap_or(0);
    assert_eq!((count("sched_switch"), count("sched_waking")), (trace.switches.rows(), trace.wakes.rows()));
    assert!(
        count("perf_sample") >= trace.samples.rows() && count("TYPE_SLICE_BEGIN") > 0 && count("TYPE_COUNTER") > 100
    );
    assert_eq!(count("TYPE_SLICE_BEGIN"), count("TYPE_SLICE_END"));
}

/// Spans that overlap on one thread, as requests do that wait for it.
fn with_spans() -> Trace {
    let mut trace = made(2_000);
    let [name, argument] = ["GET", "/item"].map(|text| trace.strings.intern(text));
    let at = holdup_trace::Timestamp::from_nanos_since_start;
    let span = |i: u64| holdup_trace::tables::Span {
        t: at(1_000 + 100 * i),
        thread: ThreadIdx(1),
        start: at(500 + 10 * i),
        end_thread: ThreadIdx(1),
        name,
        argument,
        key: 0,
        outcome: holdup_trace::SpanOutcome::Complete,
        weight: 1,
        queued: holdup_trace::Nanos(20),
    };
    trace.add_spans((0..100).map(span)).unwrap();
    trace
}

#[test]
fn spans_are_slices_on_tracks_of_their_name() {
    let bytes = exported(&with_spans());
    let count = |text: &[u8]| bytes.windows(text.len()).filter(|window| *window == text).count();
    assert_eq!(count(b"/item"), 69, "64 at once, and five where others had ended");
    assert_eq!((count(b"GET 1"), count(b"GET 64"), count(b"GET 65")), (11, 1, 0), "GET 1 is GET 10 to 19 too");
    assert_eq!(count(b"GET: 31 more"), 1);
    assert_eq!(switches(&again(&with_spans())), switches(&with_spans()), "who reads it again does not mind them");
}
