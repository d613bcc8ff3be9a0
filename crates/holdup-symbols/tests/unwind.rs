//! Stacks of real blocked threads, unwound to the end.

mod common;

use std::time::Instant;

use common::{Program, assert_order, compile, names};
use holdup_symbols::{Kernel, StackUnwinder, Symbols};
use holdup_trace::Unwinder;

const STACK: u64 = 16 << 10;

/// The threads of `waits.c`.
const WAITS: [&str; 7] = ["lock", "cond", "read", "sleep", "signal", "realign", "waits"];

struct Checker {
    unwinder: StackUnwinder,
    symbols: Symbols,
}

impl Checker {
    fn new() -> Checker {
        Checker { unwinder: StackUnwinder::new(), symbols: Symbols::new(Kernel::Live) }
    }

    fn check(&mut self, program: &Program, thread: &str, wanted: &[&str]) {
        let (images, raw) = (program.images(), program.stack(thread, STACK));
        let (names, complete) = names(&mut self.unwinder, &mut self.symbols, &images, &raw);
        assert_order(&names, wanted);
        assert!(complete, "{thread} is cut: {names:#?} {:?}", self.unwinder.notes());
    }
}

#[test]
fn c_threads_without_frame_pointers_are_complete() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut checker) = (dir.path().join("waits"), Checker::new());
    for extra in ["-g", "-g0"] {
        let args = ["-O2", "-fomit-frame-pointer", "-pthread", "-w", extra];
        if compile("gcc", &args, &["waits.c"], &path).is_none() {
            return;
        }
        let program = Program::start(&path, &WAITS);
        checker.check(&program, "lock", &["lock_inner", "lock_outer", "lock_thread"]);
        checker.check(&program, "cond", &["cond_inner", "cond_outer", "cond_thread"]);
        checker.check(&program, "read", &["read_inner", "read_outer", "read_thread"]);
        checker.check(&program, "sleep", &["sleep_inner", "sleep_outer", "sleep_thread"]);
        checker.check(&program, "signal", &["sleep_inner", "sleep_outer", "handler", "signal_inner", "signal_thread"]);
        checker.check(&program, "realign", &["sleep_inner", "realign_inner", "realign_thread"]);
        checker.check(&program, "waits", &["wait_for_ever", "main", "_start"]);
    }
}

#[test]
fn a_short_copy_is_cut_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("waits");
    if compile("gcc", &["-O2", "-pthread", "-w"], &["waits.c"], &path).is_none() {
        return;
    }
    let program = Program::start(&path, &WAITS);
    let (mut unwinder, mut symbols) = (StackUnwinder::new(), Symbols::new(Kernel::None));
    let images = program.images();
    let raw = program.stack("lock", 256);
    let (names, complete) = names(&mut unwinder, &mut symbols, &images, &raw);
    assert!(!complete, "{names:?}");
    assert_order(&names, &["lock_inner"]);
    assert!(!names.iter().any(|n| n == "lock_thread"));
}

#[test]
fn stripped_programs_unwind_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("waits");
    if compile("gcc", &["-O2", "-pthread", "-w", "-s"], &["waits.c"], &path).is_none() {
        return;
    }
    let program = Program::start(&path, &WAITS);
    let (mut unwinder, mut symbols) = (StackUnwinder::new(), Symbols::new(Kernel::None));
    let (names, complete) = names(&mut unwinder, &mut symbols, &program.images(), &program.stack("lock", STACK));
    assert!(complete, "{names:?}");
    assert_eq!(names.iter().filter(|n| n.starts_with("waits+0x")).count(), 3, "{names:?}");
}

#[test]
fn cpp_threads_inside_a_shared_library() {
    let dir = tempfile::tempdir().unwrap();
    let (library, path) = (dir.path().join("libengine.so"), dir.path().join("host"));
    if compile("g++", &["-O2", "-fPIC", "-shared", "-pthread"], &["engine.cpp"], &library).is_none() {
        return;
    }
    let at = format!("-L{}", dir.path().display());
    compile("g++", &["-O2", "-pthread", &at, "-lengine"], &["host.cpp"], &path);
    let (program, mut checker) = (Program::start(&path, &["engine", "host"]), Checker::new());
    checker.check(&program, "engine", &["engine::Queue<int>::pop", "engine::Engine::step", "run_engine"]);
    checker.check(&program, "host", &["main", "_start"]);
}

#[test]
fn rust_threads() {
    let dir = tempfile::tempdir().unwrap();
    let (path, mut checker) = (dir.path().join("threads"), Checker::new());
    // What each way of mangling makes of the method's name.
    let ways = [("-g", "legacy"), ("-Cdebuginfo=0", "v0")];
    for (debug, mangling) in ways {
        let mangling_arg = format!("-Csymbol-mangling-version={mangling}");
        let mut args = vec!["-O", "--edition=2024", debug];
        // It is the default of the stable compiler, which does not let one ask for it.
        if mangling != "legacy" {
            args.push(&mangling_arg);
        }
        if compile("rustc", &args, &["threads.rs"], &path).is_none() {
            return;
        }
        let program = Program::start(&path, &["lock", "cond", "recv", "threads"]);
        let names = ["threads::Receiver<T>::next_item", "<threads::Receiver<u64>>::next_item"];
        let receive = names[usize::from(mangling == "v0")];
        checker.check(&program, "lock", &["threads::wait_for_lock"]);
        checker.check(&program, "cond", &["threads::wait_for_signal"]);
        checker.check(&program, "recv", &[receive]);
        checker.check(&program, "threads", &["threads::main", "main", "_start"]);
    }
}

/// What makes warm stacks fast: neither the process nor its program is looked at again. `cargo test --release -- --nocapture
/// warm` for the figure.
#[test]
fn warm_stacks_need_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("waits");
    if compile("gcc", &["-O2", "-pthread", "-w"], &["waits.c"], &path).is_none() {
        return;
    }
    let program = Program::start(&path, &WAITS);
    let (mut unwinder, images) = (StackUnwinder::new(), program.images());
    let stacks = ["lock", "cond", "read", "sleep", "signal", "realign"].map(|t| program.stack(t, STACK));
    let first = Instant::now();
    stacks.iter().for_each(|raw| _ = unwinder.unwind(&images, raw));
    let first = first.elapsed();
    drop(program);
    std::fs::remove_file(&path).unwrap();
    let (rounds, begin) = (2000, Instant::now());
    let mut frames = 0;
    for raw in stacks.iter().cycle().take(rounds * stacks.len()) {
        let (found, complete) = unwinder.unwind(&images, raw);
        assert!(complete);
        frames += found.len();
    }
    let each = begin.elapsed() / (rounds * stacks.len()) as u32;
    println!("first 6 stacks {first:?}; warm {each:?} a stack of {} frames", frames / rounds / stacks.len());
}
