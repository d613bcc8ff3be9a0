//! trace.dat: what is written comes back, in all layouts; real files agree with trace-cmd.

mod common;

use common::trace_dat::*;
use common::{import_bytes, import_file, native};
use holdup_testing::damage::{Random, mutate};
use holdup_testing::shared_trace;
use holdup_trace::{SwitchState, Trace};

/// Two CPUs: `seven` sleeps, `eight` wakes it from the other CPU, later 5 events are missing there.
fn cpus() -> Vec<Vec<Vec<u8>>> {
    let first = page(
        &[
            (1000, futex(7, 0x7f00_0000_1000, 0x80)),
            (1000, switch((7, "seven", 1), (0, "swapper/0"))),
            (1000, stack(7, &[0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020])),
            (3000, switch((0, "swapper/0", 0), (7, "seven"))),
        ],
        None,
    );
    let waker = page(&[(2000, waking(8, (7, "seven"), 0)), (2500, new_task(8, (9, "nine"), true))], None);
    let late = page(&[(5000, switch((8, "eight", 2), (9, "nine")))], Some(5));
    vec![vec![first], vec![waker, late]]
}

fn check(trace: &Trace) {
    let counts = ["sched_switch", "sched_waking", "kernel_stack", "task_newtask", "sys_enter_futex"];
    assert_eq!(counts.map(|n| native(trace, n)), [3, 1, 1, 1, 1]);
    let switches: Vec<_> = trace.switches.iter().map(|s| s.expect("a row")).collect();
    let what: Vec<_> = switches.iter().map(|s| (s.t.nanos(), s.cpu.0, s.state, s.stack.0 != 0)).collect();
    let (sleeping, runnable) = (SwitchState::Sleeping, SwitchState::Runnable);
    let expected = [(0, 0, sleeping, true), (2000, 0, runnable, false), (4000, 1, SwitchState::Uninterruptible, false)];
    assert_eq!(what, expected);
    let futex = trace.futexes.iter().next().expect("one").expect("a row");
    assert_eq!((futex.lock, futex.thread), (switches[0].lock, switches[0].prev));
    assert_eq!(trace.locks.address[futex.lock.index()], 0x7f00_0000_1000);
    let stack = switches[0].stack;
    let frames: Vec<_> =
        trace.stacks.frames(stack).flat_map(|f| trace.names.locations(f)).map(|l| trace.text(l.function)).collect();
    assert_eq!(frames, ["leaf", "caller"]);
    let wakes: Vec<_> = trace.wakes.iter().map(|w| w.expect("a row")).collect();
    assert_eq!((wakes.len(), wakes[0].t.nanos(), wakes[0].wakee), (1, 1000, switches[0].prev));
    let nine = trace.threads.tid.iter().position(|&tid| tid == 9).expect("a thread");
    assert_eq!(trace.threads.pid[nine], 8, "a thread of its maker's process");
    let lost: Vec<_> = trace.losses().expect("losses").iter().map(|l| (l.cpu, l.count)).collect();
    assert_eq!(lost, [(Some(1), 5)]);
    assert_eq!(trace.meta.cpus, 2);
}

#[test]
fn all_layouts_say_the_same() {
    for bytes in [version6(&cpus()), version7(&cpus(), false), version7(&cpus(), true)] {
        check(&import_bytes(bytes).expect("it can be read"));
    }
}

#[test]
fn what_is_cut_off_is_said() {
    for whole in [version6(&cpus()), version7(&cpus(), true)] {
        for len in (0..whole.len()).step_by(7) {
            if let Err(e) = import_bytes(whole[..len].to_vec()) {
                assert!(e.to_string().len() > 20, "{e}");
            }
        }
    }
}

#[test]
fn damage_is_survived() {
    let mut random = Random::new(5);
    for whole in [version6(&cpus()), version7(&cpus(), false), version7(&cpus(), true)] {
        let mut readable = 0;
        for _ in 0..1500 {
            let mut bytes = whole.clone();
            for _ in 0..=random.below(4) {
                mutate(&mut bytes, &mut random, true);
            }
            readable += u32::from(import_bytes(bytes).is_ok());
        }
        assert!(readable > 30, "{readable}");
    }
}

#[test]
fn a_bomb_is_refused() {
    let mut bytes = version7(&cpus(), true);
    // The first section's plain length, behind its head of 16 bytes.
    let at = bytes.windows(12).position(|w| w == [16, 0, 1, 0, 0, 0, 0, 0, 253, 0, 0, 0]);
    let at = at.unwrap_or_else(|| bytes.windows(4).position(|w| w == [16, 0, 1, 0]).expect("a section")) + 20;
    bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let e = import_bytes(bytes).map(drop).expect_err("nothing of it can be used");
    assert!(e.to_string().contains("not plausible"), "{e}");
}

#[test]
fn six_cpus_of_a_board() {
    let Some(path) = shared_trace("tracecmd6-6cpu-rtapp.dat") else { return };
    let trace = import_file(&path).expect("it can be read");
    assert_eq!((native(&trace, "sched_switch"), native(&trace, "bprint")), (1552, 6242));
    assert_eq!((trace.meta.cpus, trace.switches.rows()), (6, 1552));
    // All that `trace-cmd report` prints.
    let all = [("bprint", 6242), ("cpu_frequency", 12), ("print", 14), ("sched_switch", 1552)];
    let found: Vec<_> = trace.meta.native_events.iter().map(|(name, &n)| (name.as_str(), n)).collect();
    assert_eq!(found, all);
}
