//! The document of results, by what the trace and the analysis say otherwise.

#![allow(missing_docs)]

use holdup_analysis::lanes::Doing;
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_export::{Source, json};
use holdup_synth::{Shape, Spec, generate};
use holdup_trace::Destination;
use serde_json::Value;

#[test]
fn it_is_the_explanation_with_accounts_that_add_up() {
    let spec = Spec { shape: Shape::Lock, cpus: 4, threads: 24, events: 300_000, seed: 7, losses: 1 };
    let trace = generate(&spec, &Destination::Memory).unwrap().trace;
    let options = Options::default();
    let source = Source { trace: &trace, name: "made", options: &options, disassembler: &NoDisassembler };
    let mut bytes = Vec::new();
    json::write(&source, &mut bytes).unwrap();
    let found: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(found["schema"], "holdup.export/1");
    assert_eq!(found["losses"].as_array().map(Vec::len), Some(trace.losses().unwrap().len()));
    assert_eq!(found["meta"]["rows"]["switch"], trace.switches.rows());

    let all = Options { top: usize::MAX, ..Options::default() };
    let explained = explain(&trace, "made", &all, &NoDisassembler).unwrap();
    let printed: Value = serde_json::from_slice(&serde_json::to_vec(&explained).unwrap()).unwrap();
    assert_eq!(found["explanation"], printed);

    // CPU time of threads is what was busy, and nobody did more than there was time.
    let threads = found["threads"].as_array().unwrap();
    assert_eq!(threads.len() + 1, trace.threads.tid.len());
    let of = |thread: &Value, doing: Doing| thread["seconds"][doing.name()].as_f64().unwrap_or(0.0);
    let ran: f64 = threads.iter().map(|t| of(t, Doing::Runs) + of(t, Doing::Spins)).sum();
    let cpu = explained.cpu_seconds;
    let busy = cpu.busy + cpu.spin + cpu.other;
    // A part of a CPU's time is lost: what ran there is not known.
    assert!(ran >= busy - 1e-3 * cpu.total && ran <= busy + cpu.lost + 1e-3 * cpu.total, "{ran} {busy} {}", cpu.lost);
    let length = trace.meta.duration().seconds();
    for thread in threads {
        let sum: f64 = thread["seconds"].as_object().unwrap().values().map(|s| s.as_f64().unwrap()).sum();
        assert!(sum <= length + 1e-6, "{thread}");
    }
}
