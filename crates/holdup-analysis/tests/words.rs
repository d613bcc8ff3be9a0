//! What a finding calls things, where stacks tell it: locks by the names that people know, code without symbols, the
//! program that works.

mod common;

use std::sync::Arc;

use common::{FUTEX, MS, Schedule, ns};
use holdup_analysis::report::{Explanation, Finding, FindingKind};
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_trace::{
    ChainId, Cpu, Image, Location, LockId, LockKey, LockKind, MapEvent, NameEvent, SampleEvent, SwitchEvent,
    SwitchState, Symbolizer, WakeContext,
};

/// Functions by the address where each begins, with the file that holds its code.
const CODE: &[(u64, &str, &str)] = &[
    (0x1000, "worker_main", "/bin/app"),
    (0x2000, "my_hook", "/bin/app"),
    (0x3000, "deflate", "/bin/app"),
    (0x4000, "produce", "/bin/app"),
    (0x5000, "gzip+0x5000", "/bin/gzip"),
    (0x6000, "gzip+0x6000", "/bin/gzip"),
    (0x7000, "malloc", "/lib/libc.so.6"),
    (0x8000, "__lll_lock_wait_private", "/lib/libc.so.6"),
    (0x9000, "pthread_mutex_lock", "/lib/libc.so.6"),
    (0xa000, "take_gil", "/bin/python3"),
    (0xb000, "pthread_cond_timedwait", "/lib/libc.so.6"),
    (0xc000, "read", "/lib/libc.so.6"),
    (0xd000, "XactLockTableWait", "/bin/postgres"),
    (0xe000, "epoll_wait", "/lib/libc.so.6"),
    (0xf000, "FileLock.acquire", "/bin/app"),
];
const KERNEL: &[(u64, &str)] = &[
    (0x1000, "schedule"),
    (0x2000, "rwsem_down_write_slowpath"),
    (0x3000, "down_write_killable"),
    (0x4000, "__vm_munmap"),
    (0x5000, "down_interruptible"),
    (0x6000, "main_loop"),
    (0x7000, "kthread"),
];
const KERNEL_BASE: u64 = 0xffff_ffff_8000_0000;

struct Namer;

impl Symbolizer for Namer {
    fn locate(&mut self, kernel: bool, _: &[Arc<Image>], address: u64) -> Vec<Location> {
        let (function, module) = if kernel {
            let found = KERNEL.iter().rev().find(|f| address >= KERNEL_BASE + f.0);
            found.map_or(("", ""), |f| (f.1, "[kernel]"))
        } else {
            CODE.iter().rev().find(|f| address >= f.0).map_or(("", ""), |f| (f.1, f.2))
        };
        vec![Location { function: function.into(), module: module.into(), ..Location::default() }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        None
    }
}

fn schedule(cpus: u16, pids: &[u32]) -> Schedule {
    let mut s = Schedule::new(cpus, 1000.0);
    s.builder.meta_mut().sample_period_ns = MS;
    for pid in pids {
        let image = Image { start: 0, end: 0x10000, path: "/bin/gzip".into(), pid: *pid, ..Image::default() };
        let image = s.builder.image(image);
        s.builder.push(0, MapEvent { pid: *pid, image });
    }
    s
}

fn explained(s: Schedule) -> Explanation {
    explain(&s.finish_with(&mut Namer), "x", &Options::default(), &NoDisassembler).unwrap()
}

fn chain(s: &mut Schedule, pid: u32, kernel: &[u64], user: &[u64]) -> ChainId {
    let kernel: Vec<u64> = kernel.iter().map(|f| KERNEL_BASE + f + 4).collect();
    let user: Vec<u64> = user.iter().map(|f| f + 4).collect();
    s.builder.chain(pid, &kernel, &user)
}

/// `holder` keeps a lock for 900 ms for which `waiter` waits at a stack.
fn waits_at(kernel: &[u64], user: &[u64]) -> Explanation {
    let mut s = schedule(2, &[1]).thread(10, "holder").thread(11, "waiter").runs(10, 0, 0.0, 1000.0, -1);
    s = s.futex(50.0, 11, 10).switch(0.0, 1, 0, SwitchState::Runnable, -1, 11);
    let chain = chain(&mut s, 1, kernel, user);
    let (state, lock) = (SwitchState::Sleeping, LockId::NONE);
    let leaves = SwitchEvent { cpu: Cpu(1), prev: 11, next: 0, state, io_wait: false, syscall: FUTEX, lock, chain };
    s.builder.push(ns(50.0), leaves);
    explained(s.by(950.0, 0, 10, 11).switch(950.0, 1, 0, SwitchState::Runnable, -1, 11))
}

fn lock_name(answer: &Explanation) -> &str {
    answer.findings[0].lock.as_ref().map_or("", |l| l.name.as_str())
}

#[test]
fn locks_have_the_names_that_people_know() {
    let answer = waits_at(&[], &[0x8000, 0x7000, 0x1000]);
    assert_eq!(lock_name(&answer), "malloc's arena lock", "{:#?}", answer.findings);
    assert!(answer.findings[0].title.contains("kept malloc's arena lock for 900"), "{}", answer.findings[0].title);
    let answer = waits_at(&[0x1000, 0x2000, 0x3000, 0x4000], &[0x1000]);
    assert_eq!(lock_name(&answer), "the lock on the process's memory map (mmap_lock)");
    let answer = waits_at(&[], &[0xb000, 0xa000, 0x1000]);
    assert_eq!(lock_name(&answer), "Python's interpreter lock (GIL)");
}

/// The driver of a GPU has a thread that waits so for work.
#[test]
fn a_thread_of_the_kernel_that_waits_for_work_with_a_semaphore_waits_for_no_lock() {
    let found = |kernel: &[u64]| {
        let mut s = schedule(2, &[1]).thread(10, "app").thread(11, "open_queue").runs(10, 0, 0.0, 1000.0, -1);
        s = s.switch(40.0, 1, 0, SwitchState::Runnable, -1, 11);
        let lock = s.builder.lock(LockKey { kind: LockKind::Other, pid: 0, address: 0x9000 });
        let chain = chain(&mut s, 1, kernel, &[]);
        let state = SwitchState::Sleeping;
        let leaves = SwitchEvent { cpu: Cpu(1), prev: 11, next: 0, state, io_wait: false, syscall: -1, lock, chain };
        s.builder.push(ns(50.0), leaves);
        explained(s).findings.iter().any(|f| f.kind == FindingKind::LockHeld)
    };
    assert!(found(&[0x1000, 0x5000, 0x6000]), "of a program it is a lock");
    assert!(!found(&[0x1000, 0x5000, 0x6000, 0x7000]));
}

/// `tid` waits at a stack from `from` on.
fn waits(mut s: Schedule, (pid, tid, cpu): (u32, u32, u16), from: f64, syscall: i16, user: &[u64]) -> Schedule {
    let chain = chain(&mut s, pid, &[], user);
    let (state, lock) = (SwitchState::Sleeping, LockId::NONE);
    s = s.switch(from - 0.1, cpu, 0, SwitchState::Runnable, -1, tid);
    let leaves = SwitchEvent { cpu: Cpu(cpu), prev: tid, next: 0, state, io_wait: false, syscall, lock, chain };
    s.builder.push(ns(from), leaves);
    s
}

/// Each waits for a row of the other one, until the time is over after which one of them looks for a circle.
#[test]
fn who_has_a_lock_and_waits_for_another_is_not_just_asleep() {
    let at = [0xe000, 0xd000, 0x1000];
    let s = schedule(2, &[1]).thread(10, "first").thread(11, "second");
    let s = waits(waits(s, (1, 10, 0), 1.0, common::POLL, &at), (1, 11, 1), 2.0, common::POLL, &at);
    let s = s.wakes(900.0, 0, 0, 10, WakeContext::Timer, 0).switch(900.0, 0, 0, SwitchState::Runnable, -1, 10);
    let answer = explained(s.by(950.0, 0, 10, 11).switch(950.0, 1, 0, SwitchState::Runnable, -1, 11));
    let first = &answer.findings[0];
    assert!(first.title.contains("waiting for another lock until a time-out"), "{}", first.title);
    assert!(first.advice.contains("deadlock"), "{}", first.advice);
}

/// Whoever has the lock that so many wait for waits for another program's sleep, in this function.
fn lock_kept_for_a_sleep(waiters: &[u32], sleeps_in: u64, focus: &[u32]) -> Explanation {
    let mut s = schedule(3, &[1, 2, 3]).thread(9, "writer");
    s.builder.meta_mut().focus_pids = focus.to_vec();
    for tid in waiters {
        s = s.thread(*tid, "waiter");
    }
    let name = s.builder.string("reader");
    s.builder.push(0, NameEvent { pid: 2, tid: 20, name });
    s.builder.push(0, NameEvent { pid: 3, tid: 30, name });
    s = waits(s, (2, 20, 2), 0.5, common::SLEEP, &[sleeps_in, 0x1000]);
    // Another process of its program does something else meanwhile.
    s = waits(s, (3, 30, 0), 0.6, common::SLEEP, &[0x2000, 0x1000]).wakes(890.0, 0, 0, 30, WakeContext::Timer, 0);
    s = waits(s, (1, 9, 1), 1.0, 1, &[0xc000, 0x4000, 0x1000]);
    for (i, &tid) in waiters.iter().enumerate() {
        let from = 3.0 + i as f64;
        s = waits(s.futex(from, tid, 9), (1, tid, 0), from, FUTEX, &[0xb000, 0xa000, 0x1000]);
    }
    s = s.wakes(900.0, 2, 0, 20, WakeContext::Timer, 0).switch(900.0, 2, 0, SwitchState::Runnable, -1, 20);
    s = s.by(910.0, 2, 20, 9).switch(910.0, 1, 0, SwitchState::Runnable, -1, 9);
    for (i, &tid) in waiters.iter().enumerate() {
        s = s.by(920.0 + i as f64, 1, 9, tid).runs(tid, 0, 920.0 + i as f64, 920.5 + i as f64, FUTEX);
    }
    explained(s)
}

#[test]
fn a_sleep_is_not_for_the_lock_that_others_wait_for_meanwhile() {
    let said = |waiters: &[u32], sleeps_in: u64| {
        let answer = lock_kept_for_a_sleep(waiters, sleeps_in, &[1]);
        let sleep = answer.findings.into_iter().find(|f| f.kind == FindingKind::SleepPolling).expect("the sleep");
        assert_eq!(sleep.culprit.thread, "reader");
        (sleep.title.to_string(), sleep.advice)
    };
    let (title, advice) = said(&[], 0x2000);
    assert!(title.contains("while others waited for it"), "{title}");
    assert!(advice.starts_with("See why reader sleeps in my_hook before it answers"), "{advice}");
    let (title, advice) = said(&[10, 11, 12], 0x2000);
    assert!(title.contains("while a lock was kept for it"), "{title}");
    assert!(advice.starts_with("Let the lock go before waiting for reader"), "{advice}");
    // What it sleeps for is somebody else's doing.
    let (title, advice) = said(&[], 0xf000);
    assert!(title.contains("in tries to get a lock;"), "{title}");
    assert!(advice.starts_with("See who has that lock meanwhile"), "{advice}");
}

/// Who may have it is another process of the program that sleeps for as long, if both are looked at.
#[test]
fn who_sleeps_while_others_try_to_get_a_lock_may_have_it() {
    let of = |focus: &[u32]| {
        let answer = lock_kept_for_a_sleep(&[], 0xf000, focus);
        answer.findings.into_iter().find(|f| f.kind == FindingKind::SleepPolling).expect("the sleep").title.to_string()
    };
    let (all, apart) = (of(&[1, 2, 3]), of(&[1]));
    assert!(all.contains("in tries to get a lock, while another one slept in my_hook"), "{all}");
    assert!(!apart.contains("my_hook"), "{apart}");
}

/// A function of the program that malloc calls has a lock of its own.
#[test]
fn a_lock_of_the_program_is_not_that_of_the_library_below_it() {
    assert_eq!(lock_name(&waits_at(&[], &[0x9000, 0x2000, 0x7000, 0x1000])), "");
}

/// Threads by (pid, tid, cpu, function, caller), each running from 0 to `until` ms.
fn busy(threads: &[(u32, u32, u16, u64, u64, u64)], names: &[(u32, &str)]) -> Schedule {
    let pids: Vec<u32> = names.iter().map(|n| n.0).collect();
    let mut s = schedule(4, &pids);
    for (pid, name) in names {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid: *pid, tid: *pid, name });
    }
    for &(pid, tid, cpu, leaf, caller, until) in threads {
        let name = s.builder.string("thread");
        if pid != tid {
            s.builder.push(0, NameEvent { pid, tid, name });
        }
        let chain = chain(&mut s, pid, &[], &[leaf, caller]);
        for t in 1..until {
            s.builder.push(t * MS, SampleEvent { cpu: Cpu(cpu), tid, ip: leaf + 4, bp: 0, chain });
        }
        s = s.runs(tid, cpu, 0.0, until as f64, FUTEX);
    }
    s
}

#[test]
fn the_busy_function_is_that_of_the_busy_program() {
    let threads =
        [(10, 10, 0, 0x4000, 0x1000, 900), (20, 21, 1, 0x3000, 0x1000, 700), (20, 22, 2, 0x3000, 0x1000, 600)];
    let answer = explained(busy(&threads, &[(10, "cpuprod"), (20, "pigz")]));
    let first = &answer.findings[0];
    assert_eq!(first.kind, FindingKind::CpuBound);
    assert_eq!(
        (first.culprit.process.as_str(), first.culprit.function.as_str()),
        ("pigz", "deflate"),
        "{}",
        first.title
    );
}

/// Four threads of a program, each for a quarter of a second, begin so many milliseconds after the one before.
fn begins_every(ms: u64) -> Finding {
    let mut s = schedule(4, &[1]).thread(1, "thumbs");
    for (i, tid) in (10..14).enumerate() {
        s = s.thread(tid, "resizer");
        let (from, cpu) = (i as u64 * ms, i as u16);
        let chain = chain(&mut s, 1, &[], &[0x3000, 0x1000]);
        for t in from + 1..from + 250 {
            s.builder.push(t * MS, SampleEvent { cpu: Cpu(cpu), tid, ip: 0x3004, bp: 0, chain });
        }
        s = s.runs(tid, cpu, from as f64, from as f64 + 250.0, FUTEX);
    }
    explained(s).findings.into_iter().find(|f| f.kind == FindingKind::CpuBound).expect("what ran")
}

#[test]
fn many_of_which_one_works_at_a_time_wait_for_whoever_starts_them() {
    let one = begins_every(250);
    assert!(one.title.starts_with("4 threads of "), "{}", one.title);
    assert!(one.title.contains(" worked one at a time: ") && one.title.ends_with("of it in deflate"), "{}", one.title);
    assert!(one.advice.starts_with("Whoever starts them waits for each before the next"), "{}", one.advice);
    let several = begins_every(100);
    assert!(several.title.contains("went into work"), "{}", several.title);
}

/// Two threads work for a second; for a part of it one of them waits for a lock that the other has.
fn works_and_waits(ms: f64) -> FindingKind {
    let mut s = schedule(2, &[1]).thread(10, "holder").thread(11, "waiter").runs(10, 0, 0.0, 1000.0, -1);
    for (cpu, tid) in [(0, 10), (1, 11)] {
        let chain = chain(&mut s, 1, &[], &[0x3000, 0x1000]);
        for t in (1..1000).filter(|&t| tid == 10 || t < 400 || t as f64 > 401.0 + ms) {
            s.builder.push(t * MS, SampleEvent { cpu: Cpu(cpu), tid, ip: 0x3004, bp: 0, chain });
        }
    }
    s = waits(
        s.switch(0.0, 1, 0, SwitchState::Runnable, -1, 11).futex(400.0, 11, 10),
        (1, 11, 1),
        400.0,
        FUTEX,
        &[0x9000, 0x1000],
    );
    let answer = explained(s.by(400.0 + ms, 0, 10, 11).switch(400.0 + ms, 1, 0, SwitchState::Runnable, -1, 11));
    answer.findings[0].kind
}

/// A lock that is worth less than a twentieth of the work is not what to begin with.
#[test]
fn what_ran_comes_first_where_next_to_nobody_waits() {
    assert_eq!(works_and_waits(60.0), FindingKind::CpuBound);
    assert_eq!(works_and_waits(200.0), FindingKind::LockHeld);
}

#[test]
fn code_without_symbols_is_shown_by_file_and_not_advised_by_name() {
    let s = busy(&[(10, 10, 0, 0x6000, 0x5000, 900), (10, 11, 1, 0xc000, 0x5000, 300)], &[(10, "gzip")]);
    let answer = explained(s);
    let first = &answer.findings[0];
    assert!(first.culprit.function.starts_with("gzip+0x"), "{first:#?}");
    assert!(!first.advice.contains("+0x") && !first.advice.contains(" read "), "{}", first.advice);
    assert_eq!(answer.nameless[0].path, "/bin/gzip");
}

/// Fifty and more processes of ten milliseconds: what they run matters less than how many they are.
#[test]
fn a_storm_of_processes_is_called_one() {
    a_storm(false);
}

/// A number that is given again is another process.
#[test]
fn processes_are_counted_though_numbers_come_again() {
    let mut s = busy(&[], &[(100, "true"), (101, "true")]);
    for i in 0..60u64 {
        let (pid, from) = (100 + (i % 2) as u32, 1.0 + 12.0 * i as f64);
        let name = s.builder.string("true");
        s.builder.push(ns(from - 0.5), holdup_trace::ForkEvent { parent_pid: 1, parent: 1, pid, tid: pid });
        s.builder.push(ns(from - 0.5), NameEvent { pid, tid: pid, name });
        let chain = chain(&mut s, pid, &[], &[0x3000, 0x1000]);
        for t in 1..10 {
            s.builder.push(ns(from) + t * MS, SampleEvent { cpu: Cpu(0), tid: pid, ip: 0x3004, bp: 0, chain });
        }
        s = s.switch(from, 0, 0, SwitchState::Runnable, -1, pid);
        s = s.switch(from + 10.0, 0, pid, SwitchState::Dead, 60, 0);
    }
    let answer = explained(s);
    // With the two that were there before.
    assert!(answer.findings[0].title.contains("went into 62 true processes of 8.7 ms"), "{}", answer.findings[0].title);
}

/// Each of them finds no CPU for a while, though some stand idle: that is the price of starting it.
#[test]
fn a_storm_of_processes_that_run_late_is_called_one() {
    a_storm(true);
}

fn a_storm(late: bool) {
    let names: Vec<(u32, &str)> = (100..160).map(|pid| (pid, "true")).collect();
    let mut s = busy(&[], &names);
    for (i, (pid, _)) in names.iter().enumerate() {
        let from = 1.0 + 12.0 * i as f64;
        let chain = chain(&mut s, *pid, &[], &[0x3000, 0x1000]);
        for t in 1..10 {
            s.builder.push(ns(from) + t * MS, SampleEvent { cpu: Cpu(0), tid: *pid, ip: 0x3004, bp: 0, chain });
        }
        if late && i > 0 {
            s = s.by(from - 4.0, 0, names[i - 1].0, *pid);
        }
        s = s.switch(from, 0, 0, SwitchState::Runnable, -1, *pid).switch(
            from + 10.0,
            0,
            *pid,
            SwitchState::Dead,
            60,
            0,
        );
    }
    let answer = explained(s);
    let first = &answer.findings[0];
    assert!(first.title.contains("went into 60 true processes of 9"), "{}", first.title);
    assert!(first.advice.starts_with("Start fewer processes"), "{}", first.advice);
}
