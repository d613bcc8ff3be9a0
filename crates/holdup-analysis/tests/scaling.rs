//! (a run with one thread, a run with two, expected causes of the loss)

use std::rc::Rc;

use holdup_analysis::diff::facts::{AtWork, Chain, Facts, Family, Held, Place, Ran, Spot};
use holdup_analysis::diff::scaling::{At, Attribution, LossCause, Machine, attribute};
use holdup_analysis::report::FindingKind;

const S: f64 = 1e9;

fn place(function: &str) -> Place {
    Place { process: "".into(), function: function.into() }
}

/// A quiet run on two CPUs; `functions` tell their seconds, and how many of these are on atomic instructions.
fn run(functions: &[(&str, f64, f64)]) -> Facts {
    let mut facts = Facts { elapsed_ns: S, cpus: 2, period_ns: 1e6, ..Facts::default() };
    for &(name, seconds, atomic) in functions {
        let ran = Ran { ns: seconds * S, atomic_ns: atomic * S, samples: seconds * 1e3, ..Ran::default() };
        facts.ran_ns += ran.ns;
        facts.functions.insert(name.into(), ran);
        facts.lines.insert((place(name), Rc::from("work.rs:7")), (seconds - atomic) * S);
        facts.lines.insert((place(name), Rc::from("work.rs:9")), atomic * S);
        facts.spots.insert(spot(name, 0x10, "add"), (seconds - atomic) * S);
        facts.spots.insert(spot(name, 0x20, "lock xadd"), atomic * S);
    }
    facts
}

fn spot(name: &str, offset: u64, text: &str) -> Spot {
    Spot { place: place(name), code: name.into(), offset, text: text.into(), behind_pause: false }
}

fn waits(mut facts: Facts, family: Family, culprit: &str, seconds: f64) -> Facts {
    facts.held.push(Held {
        kind: FindingKind::LockHeld,
        family,
        function: culprit.into(),
        waits_at: "enqueue".into(),
        wait_ns: seconds * S,
        blame_ns: seconds * S,
        ..Held::default()
    });
    facts
}

/// One thread against two, the second side doing three times the work.
fn between(one: Facts, two: Facts, work: [f64; 2]) -> Attribution {
    on(Machine::default(), one, two, work)
}

fn on(machine: Machine, one: Facts, two: Facts, work: [f64; 2]) -> Attribution {
    let (one, two) = (At { n: 1, work: work[0], runs: &[one] }, At { n: 2, work: work[1], runs: &[two] });
    attribute(&one, &two, machine)
}

fn only(answer: &Attribution) -> &LossCause {
    assert_eq!(answer.causes.len(), 1, "{answer:#?}");
    &answer.causes[0]
}

#[test]
fn what_costs_the_same_scales() {
    let parse = |seconds| run(&[("parse", seconds, 0.0)]);
    let answer = between(parse(1.0), parse(3.0), [100.0, 300.0]);
    assert_eq!((answer.verdict.name(), answer.causes.len()), ("scales", 0), "{answer:#?}");
    assert!((answer.cost_s_per_unit[1] - 0.01).abs() < 1e-9 && answer.loss.abs() < 1e-9);
}

#[test]
fn atomic_instructions_that_grow_are_coherence() {
    let answer = between(
        run(&[("parse", 1.0, 0.0), ("count", 0.2, 0.1)]),
        run(&[("parse", 1.0, 0.0), ("count", 1.2, 1.1)]),
        [100.0, 100.0],
    );
    let cause = only(&answer);
    assert_eq!((answer.verdict.name(), cause.law.name(), cause.name.as_str()), ("coherence", "kappa", "count"));
    assert_eq!((cause.source.as_str(), cause.instruction.as_str()), ("work.rs:9", "count+0x20: lock xadd"));
    assert!((answer.kappa - 1.0 / 2.2).abs() < 1e-9, "{answer:#?}");
    assert!(answer.advice.contains("work.rs:9"));
}

#[test]
fn growth_at_one_plain_instruction_is_coherence_too() {
    let with_store = |seconds: f64| {
        let mut facts = run(&[("count", 1.0 + seconds, 0.0)]);
        facts.spots.insert(spot("count", 0x10, "add"), S);
        facts.spots.insert(spot("count", 0x18, "mov"), seconds * S);
        facts
    };
    let answer = between(with_store(0.01), with_store(1.5), [1.0, 1.0]);
    assert_eq!((answer.verdict.name(), only(&answer).law.name()), ("coherence", "kappa"), "{answer:#?}");
}

#[test]
fn code_that_grows_alike_is_capacity() {
    let answer = between(run(&[("parse", 1.0, 0.0)]), run(&[("parse", 1.6, 0.0)]), [1.0, 1.0]);
    assert_eq!((answer.verdict.name(), only(&answer).law.name()), ("capacity", "capacity"));
}

#[test]
fn plain_writes_to_shared_lines_are_told_by_exclusion() {
    let noting = |seconds: f64, memory: f64| {
        let mut facts = run(&[("note", seconds, 0.0)]);
        facts.functions.values_mut().for_each(|ran| ran.memory_ns = memory * ran.ns);
        facts
    };
    let machine = |arithmetic, fits_cache| Machine { arithmetic: Some(arithmetic), fits_cache, ..Machine::default() };
    let law = |machine, memory| on(machine, noting(1.0, memory), noting(2.0, memory), [1.0, 1.0]).causes[0].law.name();
    assert_eq!(law(machine(1.05, Some(true)), 0.8), "kappa");
    // CPUs that share a core, more memory than cache, code that touches none, and nothing known.
    assert_eq!(law(machine(1.9, Some(true)), 0.8), "capacity");
    assert_eq!(law(machine(1.05, Some(false)), 0.8), "capacity");
    assert_eq!(law(machine(1.05, None), 0.8), "capacity");
    assert_eq!(law(machine(1.05, Some(true)), 0.2), "capacity");
    assert_eq!(law(Machine::default(), 0.8), "capacity");
}

#[test]
fn a_recorded_run_that_was_disturbed_does_not_speak_for_the_others() {
    let work = || run(&[("parse", 0.4, 0.0), ("merge", 0.6, 0.0)]);
    let machine = |efficiency| Machine { efficiency: Some(efficiency), ..Machine::default() };
    let verdict = |machine| on(machine, work(), waits(work(), Family::Lock, "merge", 0.4), [10.0, 10.0]);
    assert_eq!(verdict(machine(0.7)).verdict.name(), "contention");
    let disturbed = verdict(machine(0.97));
    assert_eq!((disturbed.verdict.name(), disturbed.notes.len()), ("scales", 1), "{disturbed:#?}");
}

#[test]
fn code_of_a_lock_is_contention_and_counted_with_the_lock() {
    let locking = |seconds: f64| {
        let mut facts = run(&[("parse", 1.0, 0.0)]);
        let ns = seconds * S;
        let ran = Ran { ns, lock_ns: ns, kernel_ns: ns, samples: ns / 1e6, ..Ran::default() };
        facts.functions.insert("merge".into(), ran);
        facts.ran_ns += ns;
        facts
    };
    let alone = between(locking(0.0), locking(0.3), [1.0, 1.0]);
    assert_eq!((only(&alone).law.name(), only(&alone).what.name()), ("sigma", "function"));
    let waited_for = between(locking(0.0), waits(locking(0.3), Family::Lock, "merge", 0.4), [1.0, 1.0]);
    let lock = only(&waited_for);
    assert_eq!((lock.law.name(), lock.what.name()), ("sigma", "lock"));
    assert!((lock.share - 0.7 / 1.7).abs() < 1e-9 && (lock.s_per_unit[1] - 0.7).abs() < 1e-9, "{lock:#?}");
}

#[test]
fn growth_in_the_kernel_says_what_it_does_there() {
    let mapping = |seconds: f64, interrupt: f64| {
        let mut facts = run(&[("parse", 1.0, 0.0)]);
        let ns = seconds * S;
        let ran = Ran { ns, kernel_ns: ns, interrupt_ns: interrupt * ns, samples: ns / 1e6, ..Ran::default() };
        facts.functions.insert("unmap".into(), ran);
        facts.ran_ns += ns;
        facts
    };
    let law = |interrupt| between(mapping(0.1, interrupt), mapping(0.9, interrupt), [1.0, 1.0]).causes[0].law.name();
    assert_eq!((law(0.6), law(0.0)), ("kappa", "capacity"));
    let machine = |arithmetic| Machine { arithmetic: Some(arithmetic), ..Machine::default() };
    let answer = |machine| on(machine, mapping(0.5, 0.0), mapping(1.2, 0.0), [1.0, 1.0]);
    assert_eq!((answer(machine(1.0)).verdict.name(), answer(machine(2.2)).verdict.name()), ("coherence", "capacity"));
    assert!(answer(machine(1.0)).advice.contains("Ask the kernel for less in `unmap`"));
}

/// `seconds` of elapsed time in which `threads` are at work and run these functions, the innermost first.
fn at_work(mut facts: Facts, threads: usize, functions: &[&str], seconds: f64) -> Facts {
    let functions = functions.iter().map(|f| Rc::from(*f)).collect();
    let time = AtWork { ran_ns: threads as f64 * seconds * S, elapsed_ns: seconds * S };
    facts.at_work.insert((threads, Chain { process: "".into(), functions }), time);
    facts
}

/// A third of the work is done before the other thread begins.
fn with_serial_part(threads: usize) -> Facts {
    let facts = at_work(run(&[("mix", 3.0, 0.0)]), 1, &["mix", "load_model", "main"], 1.0);
    at_work(facts, threads, &["mix", "work"], 2.0 / threads as f64)
}

#[test]
fn a_serial_part_is_contention_and_a_helper_gives_way_to_it() {
    let answer = between(with_serial_part(1), with_serial_part(2), [1.0, 1.0]);
    let cause = only(&answer);
    assert_eq!(
        (answer.verdict.name(), cause.law.name(), cause.what.name(), cause.name.as_str()),
        ("contention", "sigma", "serial", "load_model")
    );
    assert!((cause.share - 0.25).abs() < 1e-9 && (answer.cost_s_per_unit[1] - 4.0).abs() < 1e-9, "{answer:#?}");
    assert!(cause.because.contains("1 thread has something to do") && answer.advice.contains("over the threads"));
}

#[test]
fn serial_parts_below_main_are_told_apart() {
    let phases = |threads| {
        let facts = at_work(with_serial_part(threads), 1, &["save_model", "main"], 0.8);
        at_work(facts, 1, &["main"], 0.02)
    };
    let answer = between(phases(1), phases(2), [1.0, 1.0]);
    let names: Vec<&str> = answer.causes.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["load_model", "save_model"], "{answer:#?}");
}

#[test]
fn uneven_ends_are_no_fault_of_a_program_whose_cpus_were_taken() {
    let ends = |threads| at_work(at_work(run(&[("mix", 3.0, 0.0)]), 1, &["mix"], 1.0), threads, &["mix"], 2.0);
    let uneven = |stolen| {
        let after = at_work(at_work(run(&[("mix", 3.0, 0.0)]), 2, &["mix"], 1.1), 1, &["mix"], 0.8);
        between(ends(1), Facts { stolen, elapsed_ns: 1.9 * S, ..after }, [1.0, 1.0])
    };
    assert_eq!((uneven(0.0).verdict.name(), uneven(0.0).causes[0].name.as_str()), ("contention", "mix"));
    assert_eq!((uneven(0.4).verdict.name(), uneven(0.4).causes.len()), ("scales", 0), "{:#?}", uneven(0.4));
}

#[test]
fn who_waits_beside_all_that_can_run_loses_nothing() {
    let beside = |threads| {
        let mut facts = waits(run(&[("parse", 1.0, 0.0)]), Family::Lock, "parse", 1.0 / threads as f64);
        facts.waiting.insert((threads, 1), S / threads as f64);
        facts
    };
    let answer = between(beside(1), beside(2), [1.0, 1.0]);
    assert_eq!((answer.verdict.name(), answer.causes.len()), ("scales", 0), "{answer:#?}");
    assert!((answer.cost_s_per_unit[0] - 1.0).abs() < 1e-9);
}

#[test]
fn a_loss_without_a_cause_is_called_so() {
    let parts = |factor: f64| {
        let names: Vec<String> = (0..50).map(|i| format!("f{i}")).collect();
        let parts: Vec<_> = names.iter().map(|name| (name.as_str(), 0.02 * factor, 0.0)).collect();
        run(&parts)
    };
    let answer = between(parts(1.0), parts(1.5), [1.0, 1.0]);
    assert_eq!((answer.verdict.name(), answer.causes.len()), ("unexplained", 0), "{answer:#?}");
}

#[test]
fn waits_for_a_lock_are_contention() {
    let work = || run(&[("parse", 0.4, 0.0), ("merge", 0.6, 0.0)]);
    let answer = between(work(), waits(work(), Family::Lock, "merge", 0.4), [10.0, 10.0]);
    let cause = only(&answer);
    assert_eq!(
        (answer.verdict.name(), cause.law.name(), cause.what.name(), cause.name.as_str()),
        ("contention", "sigma", "lock", "merge")
    );
    assert!((answer.sigma - 0.4 / 1.4).abs() < 1e-9 && cause.because.contains("`enqueue`"), "{answer:#?}");
}

#[test]
fn spinning_is_contention_unless_it_retries() {
    let spinning = |seconds: f64, pause: f64, atomic: f64| {
        let mut facts = run(&[("parse", 1.0, 0.0)]);
        let [ns, pause_ns, atomic_ns] = [seconds, pause * seconds, atomic * seconds].map(|s| s * S);
        facts.functions.insert(
            "acquire".into(),
            Ran { ns, spin_ns: ns, pause_ns, atomic_ns, samples: ns / 1e6, ..Ran::default() },
        );
        facts.ran_ns += ns;
        facts
    };
    let waiting = between(spinning(0.0, 0.9, 0.1), spinning(0.8, 0.9, 0.1), [1.0, 1.0]);
    assert_eq!((waiting.verdict.name(), only(&waiting).name.as_str()), ("contention", "acquire"));
    let retrying = between(spinning(0.1, 0.0, 0.9), spinning(0.9, 0.0, 0.9), [1.0, 1.0]);
    assert_eq!(retrying.verdict.name(), "coherence");
}

#[test]
fn waiting_for_all_to_be_done_is_no_loss() {
    let joined = |waited| waits(run(&[("parse", 1.0, 0.0)]), Family::Thread, "parse", waited);
    let answer = between(joined(1.0), joined(0.5), [1.0, 1.0]);
    assert_eq!((answer.verdict.name(), answer.causes.len()), ("scales", 0), "{answer:#?}");
}

#[test]
fn neighbours_do_not_become_a_cause() {
    let mut busy = waits(run(&[("parse", 1.0, 0.0)]), Family::Scheduler, "parse", 2.0);
    busy.other_ns = S;
    let answer = between(run(&[("parse", 1.0, 0.0)]), busy, [1.0, 1.0]);
    assert_eq!((answer.verdict.name(), answer.notes.len()), ("scales", 1), "{answer:#?}");
}
