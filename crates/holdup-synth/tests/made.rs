//! What is made is what was asked for, twice the same, and possible.

#![allow(missing_docs)]

use std::collections::HashMap;

use holdup_synth::{Shape, Spec, generate};
use holdup_trace::{Destination, SwitchState, Trace};

fn spec(shape: Shape) -> Spec {
    Spec { shape, cpus: 16, threads: 200, events: 200_000, seed: 7, losses: 0 }
}

fn make(spec: &Spec) -> Trace {
    generate(spec, &Destination::Memory).unwrap().trace
}

/// All switches, wake-ups, waits and samples as text.
fn all(trace: &Trace) -> Vec<String> {
    let switches = trace.switches.iter().map(|r| format!("{:?}", r.unwrap()));
    let wakes = trace.wakes.iter().map(|r| format!("{:?}", r.unwrap()));
    let waits = trace.waits.iter().map(|r| format!("{:?}", r.unwrap()));
    let samples = trace.samples.iter().map(|r| format!("{:?}", r.unwrap()));
    switches.chain(wakes).chain(waits).chain(samples).collect()
}

#[test]
fn one_seed_one_trace() {
    for shape in Shape::ALL {
        let small = Spec { events: 20_000, losses: 3, ..spec(shape) };
        let (first, again) = (all(&make(&small)), all(&make(&small)));
        assert!(first == again, "{shape:?}");
        assert!(first != all(&make(&Spec { seed: 8, ..small })), "{shape:?}");
    }
}

#[test]
fn there_is_as_much_as_was_asked_for() {
    for shape in Shape::ALL {
        let trace = make(&spec(shape));
        assert_eq!(trace.switches.rows() + trace.wakes.rows(), 200_000, "{shape:?}");
        assert_eq!(trace.meta.cpus, 16);
        let from_the_start = trace.threads.start.iter().filter(|t| t.nanos() == 0).count();
        assert_eq!(from_the_start, 201, "with the idle task");
        let samples = trace.samples.rows();
        assert!((100..400).contains(&samples), "{shape:?}: {samples} samples");
        assert!(trace.waits.rows() > 1000, "{shape:?}: long waits have stacks");
        assert!(trace.threads.end.iter().any(|t| t.nanos() < trace.meta.duration_ns), "{shape:?}: nobody ended");
        assert_eq!(trace.losses.rows(), 0);
    }
}

#[test]
fn losses_are_gaps_of_their_cpu() {
    let trace = make(&Spec { losses: 5, ..spec(Shape::Lock) });
    let losses: Vec<_> = trace.losses.iter().map(Result::unwrap).collect();
    assert_eq!(losses.len(), 5);
    for loss in losses {
        let inside = |t: holdup_trace::Timestamp, cpu| cpu == loss.cpu && t > loss.from && t < loss.to;
        assert!(loss.count > 0);
        assert!(!trace.switches.iter().map(Result::unwrap).any(|s| inside(s.t, s.cpu)));
        assert!(!trace.wakes.iter().map(Result::unwrap).any(|w| inside(w.t, w.cpu)));
    }
}

/// Without losses each switch takes away who was running there, nobody runs twice, and nobody who waits runs before it is woken.
#[test]
fn what_happens_is_possible() {
    for shape in Shape::ALL {
        let trace = make(&spec(shape));
        let (mut on_cpu, mut asleep) = (HashMap::new(), HashMap::new());
        let mut wakes = trace.wakes.iter().map(Result::unwrap).peekable();
        let mut last = 0;
        for switch in trace.switches.iter().map(Result::unwrap) {
            // Of one instant the wake-up came first: who is woken needs time to come onto a CPU, who wakes may sleep at once.
            while let Some(wake) = wakes.next_if(|w| w.t <= switch.t) {
                assert_ne!(
                    asleep.insert(wake.wakee, false),
                    Some(false),
                    "{shape:?}: {wake:?} of one who does not wait"
                );
                let runs = on_cpu.get(&wake.cpu).is_none_or(|running| *running == wake.waker);
                assert!(runs, "{shape:?}: {wake:?} by one who does not run");
            }
            assert!(switch.t.nanos() >= last);
            last = switch.t.nanos();
            let before = on_cpu.insert(switch.cpu, switch.next);
            assert!(before.is_none_or(|before| before == switch.prev), "{shape:?}: {switch:?} after {before:?}");
            if switch.prev.is_real() && switch.state != SwitchState::Runnable {
                asleep.insert(switch.prev, true);
            }
            assert_ne!(asleep.get(&switch.next), Some(&true), "{shape:?}: {switch:?} without being woken");
        }
    }
}

#[test]
fn what_cannot_be_made_is_refused() {
    let refused = |spec: Spec| match generate(&spec, &Destination::Memory) {
        Ok(_) => panic!("{spec:?} was made"),
        Err(e) => e.to_string(),
    };
    let good = spec(Shape::Hub);
    assert_eq!(refused(Spec { cpus: 513, ..good }), "a made trace has 1 to 512 CPUs");
    assert_eq!(refused(Spec { threads: 7, ..good }), "a made trace has 8 to 100000 threads");
    assert_eq!(refused(Spec { events: 0, ..good }), "a made trace has 1 to 1000000000 events");
}

#[test]
fn the_smallest_and_the_largest_machine_run() {
    for shape in Shape::ALL {
        for (cpus, threads) in [(1, 8), (512, 8), (1, 2000), (512, 20_000)] {
            let trace = make(&Spec { cpus, threads, events: 60_000, losses: 2, ..spec(shape) });
            assert_eq!(trace.switches.rows() + trace.wakes.rows(), 60_000, "{shape:?}");
        }
    }
}
