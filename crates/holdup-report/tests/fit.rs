//! A report holds the whole recording, or the stretches that tell the most.

#![allow(missing_docs)]

use holdup_analysis::{Explanation, NoDisassembler, Options, explain};
use holdup_report::{Shown, Source, gunzip};
use holdup_synth::{Made, Shape, Spec, generate};
use holdup_trace::{Destination, Trace, file};

fn made() -> Made {
    let spec = Spec { shape: Shape::Lock, cpus: 8, threads: 64, events: 16_000, seed: 3, losses: 0 };
    generate(&spec, &Destination::Memory).expect("a made trace")
}

fn explained(trace: &Trace) -> Explanation {
    explain(trace, "made", &Options::default(), &NoDisassembler).expect("explanation")
}

fn unpacked(shown: &Shown) -> Trace {
    let bytes = gunzip(&shown.packed).expect("gzip");
    file::read_memory(bytes, "made".as_ref()).expect("trace")
}

fn fit(trace: &Trace, window: Option<(f64, f64)>, room: usize) -> holdup_trace::Result<Vec<Shown>> {
    Source { trace, name: "made", explanation: &explained(trace), window }.fit(room)
}

#[test]
fn what_fits_is_whole_and_says_the_same() {
    let made = made();
    let shown = fit(&made.trace, None, 5_000_000).expect("report");
    assert_eq!((shown.len(), shown[0].part.is_null()), (1, true));
    let [before, after] =
        [&made.trace, &unpacked(&shown[0])].map(|t| serde_json::to_value(explained(t)).expect("json"));
    assert_eq!(before, after);
}

#[test]
fn of_what_is_too_long_the_culprit_stays() {
    let made = made();
    let whole = fit(&made.trace, None, usize::MAX).expect("report")[0].size();
    let room = whole / 3;
    let shown = fit(&made.trace, None, room).expect("report");
    let size: usize = shown.iter().map(Shown::size).sum();
    assert!(size <= room && size > room / 4, "{size} of {room} bytes");
    let part = &shown[0].part;
    let windows = part["windows"][0].as_array().expect("a window");
    let [from, to] = [&windows[0], &windows[1]].map(|t| t.as_u64().expect("ns"));
    let main = unpacked(&shown[0]);
    assert_eq!(to - from, main.meta.duration_ns, "{part}");
    assert_eq!(part["of"]["duration_s"], made.trace.meta.duration().seconds());
    // What is said of the whole is kept beside.
    let first = |findings: &serde_json::Value| findings[0]["culprit"]["function"].clone();
    assert_eq!(first(&part["explain"]["findings"]), made.truth.function.as_str());
    let alone = serde_json::to_value(explained(&main)).expect("json");
    assert_eq!(first(&alone["findings"]), made.truth.function.as_str(), "in the stretch that was chosen");
}

#[test]
fn a_window_is_kept_to() {
    let made = made();
    let end = made.trace.meta.duration().seconds();
    let shown = fit(&made.trace, Some((end * 0.25, end * 0.5)), 5_000_000).expect("report");
    let length = unpacked(&shown[0]).meta.duration().seconds();
    assert!((length - end * 0.25).abs() < 1e-6, "{length} of {end} s");
    let error = fit(&made.trace, None, 1_000).expect_err("nothing fits").to_string();
    assert!(error.contains("fits into a report"), "{error}");
}
