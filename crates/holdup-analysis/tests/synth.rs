//! The culprit that is planted in a made trace is the first finding.

#![allow(missing_docs)]

use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_synth::{Made, Shape, Spec, generate};
use holdup_trace::Destination;
use serde_json::Value;

fn make(shape: Shape, losses: u32) -> Made {
    let spec = Spec { shape, cpus: 8, threads: 64, events: 25_000, seed: 3, losses };
    generate(&spec, &Destination::Memory).unwrap()
}

/// The answer as the user gets it.
fn explained(made: &Made) -> Value {
    let answer = explain(&made.trace, "made", &Options::default(), &NoDisassembler).unwrap();
    serde_json::to_value(answer).unwrap()
}

fn first_is_planted(shape: Shape, losses: u32) {
    let made = make(shape, losses);
    let answer = explained(&made);
    let (first, truth) = (&answer["findings"][0], &made.truth);
    let shown = serde_json::to_string_pretty(first).unwrap();
    assert_eq!(first["kind"], truth.kind.expect("a culprit is planted").name(), "{shown}");
    let culprit = &first["culprit"];
    assert_eq!(culprit["function"], truth.function.as_str(), "{shown}");
    assert_eq!(culprit["process"], truth.process.as_str(), "{shown}");
    if truth.tid != 0 {
        assert_eq!(culprit["thread"], truth.thread.as_str(), "{shown}");
        assert_eq!(culprit["tid"], truth.tid, "{shown}");
    }
    match truth.lock {
        Some(address) => assert_eq!(first["lock"]["address"], format!("{address:#x}"), "{shown}"),
        None => assert!(first["lock"].is_null(), "{shown}"),
    }
    let others: f64 =
        answer["findings"].as_array().unwrap()[1..].iter().map(|f| f["blame_cpu_s"].as_f64().unwrap()).sum();
    assert!(first["blame_cpu_s"].as_f64().unwrap() > others, "the planted one is most of it: {answer:#}");
    let lost = answer["cpu_seconds"]["lost"].as_f64().unwrap();
    assert_eq!(lost > 0.0, losses > 0, "{lost} s are lost");
}

#[test]
fn a_lock_held_in_phases() {
    first_is_planted(Shape::Lock, 0);
    first_is_planted(Shape::Lock, 3);
}

#[test]
fn a_hub() {
    first_is_planted(Shape::Hub, 0);
    first_is_planted(Shape::Hub, 3);
}

#[test]
fn a_convoy() {
    first_is_planted(Shape::Chain, 0);
    first_is_planted(Shape::Chain, 3);
}

#[test]
fn an_idle_pool_holds_nobody_up() {
    let answer = explained(&make(Shape::Pool, 0));
    let (held_up, total) = (&answer["cpu_seconds"]["held_up"], &answer["cpu_seconds"]["total"]);
    assert!(held_up.as_f64().unwrap() < 0.05 * total.as_f64().unwrap(), "{answer:#}");
}
