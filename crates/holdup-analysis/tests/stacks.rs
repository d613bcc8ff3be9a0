//! What stacks took: callers and callees of one function, and lines for a flame graph.

mod common;

use common::{Namer, Schedule, blame_of, near, ns};
use holdup_analysis::explore::relation::{Column, Data, Unit};
use holdup_analysis::explore::{Answer, Explorer, Query, Stop, TableKind};
use holdup_trace::{Cpu, SampleEvent};

/// The rows as text.
fn show(answer: &Answer) -> Vec<String> {
    let cell = |c: &Column, row: usize| match &c.data {
        Data::Text(t) => t.get(row).to_owned(),
        Data::Numbers(n) => n[row].to_string(),
        Data::Reals(r) => format!("{:.2}", r[row]),
    };
    (0..answer.len()).map(|row| answer.columns.iter().map(|c| cell(c, row)).collect::<Vec<_>>().join(" ")).collect()
}

/// Callers are looked up one byte before their return address.
const NAMES: Namer = Namer(&[(0x10, "main"), (0x20, "f"), (0x30, "g"), (0x40, "h")]);

/// main → f (1 sample), main → f → g (2), main → g → f → f → h (4; recursion counts once), main → g (8).
#[test]
fn callers_and_callees_add_up_to_the_function() {
    let mut schedule = Schedule::new(1, 20.0).thread(10, "app");
    schedule.builder.meta_mut().sample_period_ns = 1_000_000;
    let mut t = 1.0;
    let stacks: [(&[u64], usize); 4] = [(&[2, 1], 1), (&[3, 2, 1], 2), (&[4, 2, 2, 3, 1], 4), (&[3, 1], 8)];
    for (stack, times) in stacks {
        for _ in 0..times {
            let frames: Vec<u64> = stack.iter().map(|f| f << 4 | 8).collect();
            let chain = schedule.builder.chain(1, &[], &frames);
            schedule.builder.push(ns(t), SampleEvent { cpu: Cpu(0), tid: 10, ip: frames[0], bp: 0, chain });
            t += 1.0;
        }
    }
    let trace = schedule.finish_with(&mut { NAMES });
    let explorer = Explorer::new(&trace);
    let answer = explorer.around(&Query::new(TableKind::Cpu), "f", &Stop::default()).expect("an answer");
    let wanted = [
        "whole f 7 7000000 1.00",
        "caller g 4 4000000 0.57",
        "caller main 3 3000000 0.43",
        "itself f 1 1000000 0.14",
        "callee h 4 4000000 0.57",
        "callee g 2 2000000 0.29",
    ];
    assert_eq!(show(&answer), wanted);
    let outermost = explorer.around(&Query::new(TableKind::Cpu), "main", &Stop::default()).expect("an answer");
    assert!(show(&outermost)[1].starts_with("caller [outermost] 15 "), "{:?}", show(&outermost));
    assert!(explorer.around(&Query::new(TableKind::Cpu), "nowhere", &Stop::default()).is_err());
    assert!(explorer.around(&Query::new(TableKind::Wakes), "f", &Stop::default()).is_err());
    let (lines, unit) = explorer.folded(&Query::new(TableKind::Cpu), &Stop::default()).expect("lines");
    assert_eq!(unit, Unit::Nanos);
    assert!(lines.iter().any(|l| l.ends_with(";main;g;f;f;h 4000")) && lines.len() == 4, "{lines:?}");
}

/// Of 13 samples 7 lost their callers to the budget: of f, 2, for which f's others stand (main → f, 3; main → g → f, 1); of h, which has no others,
/// and of one that tells nothing at all, 2, for which stand those of the same file (as above, and main → g, 2); of g in the other thread, which kept
/// none, 3, for which nobody does.
#[test]
fn samples_without_callers_count_as_those_that_have_them() {
    let sums = |bare_samples: u64| {
        let mut schedule = Schedule::new(1, 30.0).thread(10, "app").thread(11, "other");
        schedule.builder.meta_mut().sample_period_ns = 1_000_000;
        schedule.builder.meta_mut().recorder.bare_samples = bare_samples;
        let stacks: [(u32, &[u64], usize); 7] = [
            (10, &[2, 1], 3),
            (10, &[2, 3, 1], 1),
            (10, &[3, 1], 2),
            (10, &[2], 2),
            (10, &[4], 1),
            (10, &[], 1),
            (11, &[3], 3),
        ];
        let mut t = 1.0;
        for (tid, stack, times) in stacks {
            for _ in 0..times {
                let frames: Vec<u64> = stack.iter().map(|f| f << 4 | 8).collect();
                let chain = schedule.builder.chain(1, &[], &frames);
                schedule.builder.push(
                    ns(t),
                    SampleEvent { cpu: Cpu(0), tid, ip: frames.first().copied().unwrap_or(0x28), bp: 0, chain },
                );
                t += 1.0;
            }
        }
        let (trace, blame) = blame_of(schedule.finish_with(&mut { NAMES }));
        let name = |frame| trace.names.locations(frame).next().map_or("", |l| trace.text(l.function));
        let path = |stack| trace.stacks.frames(stack).map(name).collect::<Vec<_>>().join(" ");
        let mut sums: Vec<(String, f64)> = blame.profile.iter().map(|((_, s), ns)| (path(*s), ns / 1e6)).collect();
        sums.sort_by(|a, b| a.0.cmp(&b.0));
        sums
    };
    let measured = [("", 1.0), ("f", 2.0), ("f g main", 1.0), ("f main", 3.0), ("g", 3.0), ("g main", 2.0), ("h", 1.0)];
    // h's and the bare one in the proportions of 3, 1 and 2.
    let shared = [("f g main", 1.5 + 2.0 / 6.0), ("f main", 4.5 + 6.0 / 6.0), ("g", 3.0), ("g main", 2.0 + 4.0 / 6.0)];
    for (bare, wanted) in [(0, &measured[..]), (7, &shared[..])] {
        let sums = sums(bare);
        assert_eq!(
            sums.iter().map(|s| s.0.as_str()).collect::<Vec<_>>(),
            wanted.iter().map(|w| w.0).collect::<Vec<_>>()
        );
        sums.iter().zip(wanted).for_each(|(found, wanted)| near(found.1, wanted.1));
    }
}
