//! Folded stacks and speedscope files of made traces: what their weights come to, by other questions about the same trace.

#![allow(missing_docs)]

use holdup_analysis::explore::relation::Data;
use holdup_analysis::explore::{Explorer, Query, Stop, TableKind};
use holdup_analysis::{NoDisassembler, Options};
use holdup_export::{Choice, Kind, Result, Source, folded, speedscope};
use holdup_synth::{Shape, Spec, generate};
use holdup_trace::{Destination, Trace};
use serde_json::Value;

const LONG: u64 = 300_000;

fn made(shape: Shape, events: u64) -> Trace {
    let spec = Spec { shape, cpus: 4, threads: 24, events, seed: 7, losses: 0 };
    generate(&spec, &Destination::Memory).unwrap().trace
}

type Writer = fn(&Source, &Choice, &mut dyn std::io::Write) -> Result<()>;

fn exported(trace: &Trace, write: Writer, choice: &Choice) -> String {
    let options = Options::default();
    let source = Source { trace, name: "made", options: &options, disassembler: &NoDisassembler };
    let mut out = Vec::new();
    write(&source, choice, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn lines(trace: &Trace, kind: Kind, per_thread: bool) -> Vec<(String, u64)> {
    let text = exported(trace, folded::write, &Choice { kinds: vec![kind], per_thread });
    let line = |line: &str| {
        let (path, weight) = line.rsplit_once(' ').unwrap();
        (path.to_owned(), weight.parse().unwrap())
    };
    text.lines().map(line).collect()
}

fn weight(lines: &[(String, u64)]) -> f64 {
    lines.iter().map(|(_, us)| *us as f64 / 1e6).sum()
}

/// The sum of a column of `holdup table`, in seconds.
fn table(trace: &Trace, table: TableKind, column: &str) -> f64 {
    let query = Query { columns: vec![column.to_owned()], ..Query::new(table) };
    let answer = Explorer::new(trace).run(&query, &Stop::default()).unwrap();
    let Data::Numbers(numbers) = &answer.columns[0].data else { panic!("{column} is of numbers") };
    numbers.iter().map(|&ns| ns as f64 / 1e9).sum()
}

/// Each line is rounded to a microsecond.
fn assert_near(found: f64, meant: f64, lines: usize) {
    assert!(meant > 0.0 && (found - meant).abs() <= 1e-6 * lines as f64 + 1e-9 * meant, "{found} {meant} {lines}");
}

#[test]
fn what_ran_comes_to_samples_times_their_period() {
    let trace = made(Shape::Lock, LONG);
    let meant = trace.samples.rows() as f64 * trace.meta.sample_period_ns as f64 / 1e9;
    assert_near(table(&trace, TableKind::Cpu, "weight"), meant, 1);
    for per_thread in [false, true] {
        let lines = lines(&trace, Kind::OnCpu, per_thread);
        assert_near(weight(&lines), meant, lines.len());
    }
}

#[test]
fn waits_and_wakers_come_to_the_waits_of_the_table() {
    for (shape, events) in [(Shape::Lock, LONG), (Shape::Hub, 50_000)] {
        let trace = made(shape, events);
        let meant = table(&trace, TableKind::Waits, "wait");
        for (kind, per_thread) in [(Kind::OffCpu, false), (Kind::OffCpu, true), (Kind::Wakers, false)] {
            let lines = lines(&trace, kind, per_thread);
            assert_near(weight(&lines), meant, lines.len());
        }
    }
}

#[test]
fn blame_comes_to_the_causes_of_the_explanation() {
    let trace = made(Shape::Lock, LONG);
    let options = Options { top: usize::MAX, ..Options::default() };
    let explained = holdup_analysis::explain(&trace, "made", &options, &NoDisassembler).unwrap();
    let causes = explained.findings.iter().filter(|f| f.is_cause()).map(|f| f.blame_cpu_s).sum::<f64>();
    let lines = lines(&trace, Kind::Blame, false);
    let charged = causes + explained.smaller.blame_cpu_s;
    assert!((weight(&lines) - charged).abs() < 0.001 * charged, "{} {charged}", weight(&lines));
    // The first finding's thread has the most of it.
    let mut threads: Vec<(String, u64)> = Vec::new();
    for (path, us) in &lines {
        let thread = path.split(';').nth(1).unwrap().to_owned();
        match threads.iter_mut().find(|(t, _)| *t == thread) {
            Some((_, sum)) => *sum += us,
            None => threads.push((thread, *us)),
        }
    }
    let (most, _) = threads.iter().max_by_key(|(_, us)| *us).unwrap();
    let culprit = &explained.findings[0].culprit;
    assert_eq!(*most, format!("{} ({})", culprit.thread, culprit.tid));
}

#[test]
fn threads_are_apart_if_asked_for() {
    let trace = made(Shape::Lock, 50_000);
    let together = lines(&trace, Kind::OnCpu, false);
    let apart = lines(&trace, Kind::OnCpu, true);
    assert!(apart.len() > together.len());
    let second = |path: &str| path.split(';').nth(1).unwrap().to_owned();
    assert!(apart.iter().all(|(path, _)| second(path).ends_with(')') && second(path).contains(" (")));
    assert!(together.iter().all(|(path, _)| !second(path).contains(" (")));
}

#[test]
fn several_kinds_in_one_file_are_told_apart() {
    let trace = made(Shape::Hub, 50_000);
    let kinds = vec![Kind::OnCpu, Kind::OffCpu];
    let text = exported(&trace, folded::write, &Choice { kinds, per_thread: false });
    assert!(text.lines().all(|l| l.starts_with("on-cpu;") || l.starts_with("off-cpu;")));
    assert!(text.lines().any(|l| l.starts_with("off-cpu;")) && text.starts_with("off-cpu;"));
}

/// The rules of `https://www.speedscope.app/file-format-schema.json`, for sampled profiles.
fn check_speedscope(file: &Value) {
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = file["shared"]["frames"].as_array().unwrap();
    assert!(frames.iter().all(|f| f["name"].is_string() && (f.get("file").is_none() || f["file"].is_string())));
    for profile in file["profiles"].as_array().unwrap() {
        assert_eq!(profile["type"], "sampled");
        assert!(profile["name"].is_string());
        let units = ["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"];
        assert!(units.contains(&profile["unit"].as_str().unwrap()));
        let [samples, weights] = ["samples", "weights"].map(|key| profile[key].as_array().unwrap());
        assert_eq!(samples.len(), weights.len());
        let known = |id: &Value| id.as_u64().is_some_and(|id| id < frames.len() as u64);
        assert!(samples.iter().all(|s| s.as_array().is_some_and(|s| !s.is_empty() && s.iter().all(known))));
        let sum: u64 = weights.iter().map(|w| w.as_u64().unwrap()).sum();
        assert_eq!((profile["startValue"].as_u64(), profile["endValue"].as_u64()), (Some(0), Some(sum)));
    }
}

#[test]
fn speedscope_files_follow_its_schema_and_add_up() {
    let trace = made(Shape::Lock, LONG);
    let file: Value = serde_json::from_str(&exported(&trace, speedscope::write, &Choice::default())).unwrap();
    check_speedscope(&file);
    let profiles = file["profiles"].as_array().unwrap();
    let names: Vec<&str> = profiles.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, Kind::ALL.iter().map(|k| k.name()).collect::<Vec<_>>());
    let seconds = |i: usize| profiles[i]["endValue"].as_f64().unwrap() / 1e9;
    assert_near(seconds(0), table(&trace, TableKind::Cpu, "weight"), 1);
    assert_near(seconds(1), table(&trace, TableKind::Waits, "wait"), 1);
    assert_near(seconds(2), seconds(1), 1);

    let apart = exported(&trace, speedscope::write, &Choice { kinds: vec![Kind::OnCpu], per_thread: true });
    let apart: Value = serde_json::from_str(&apart).unwrap();
    check_speedscope(&apart);
    let profiles = apart["profiles"].as_array().unwrap();
    assert!(profiles.len() > 4 && profiles.iter().all(|p| p["name"].as_str().unwrap().ends_with("): on-cpu")));
    let sum: f64 = profiles.iter().map(|p| p["endValue"].as_f64().unwrap() / 1e9).sum();
    assert_near(sum, seconds(0), 1);
}

#[test]
fn a_trace_without_events_has_no_stacks() {
    let trace = Trace::default();
    assert_eq!(exported(&trace, folded::write, &Choice::default()), "");
    check_speedscope(&serde_json::from_str(&exported(&trace, speedscope::write, &Choice::default())).unwrap());
}
