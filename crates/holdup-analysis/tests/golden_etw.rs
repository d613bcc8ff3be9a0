//! The golden schedules S1 to S8 as Windows would have recorded them: the same seconds as in `golden.rs`. What ETW does not tell is left
//! out: who holds a lock (S3, S8), and system calls, in whose place stands the reason to wait.

mod common;

use std::path::Path;

use common::{blame_of, ms, near, tid};
use holdup_analysis::blame::{Blame, Key, Terminal};
use holdup_analysis::report::FindingKind;
use holdup_analysis::{NoDisassembler, Options, explain};
use holdup_import::Input;
use holdup_testing::etl::{Log, MS, Packing, reason, state};
use holdup_trace::{Destination, SwitchState, Trace, TraceBuilder, WakeContext};

const PID: u32 = 1;
/// Whom each CPU runs first, and whoever is not of interest.
const IDLE: u32 = 0;
const BLOCKED: (u8, u8) = (state::WAITING, reason::ALERT_BY_THREAD_ID);
const ASLEEP: (u8, u8) = (state::WAITING, reason::DELAY);
const NO_WORK: (u8, u8) = (state::WAITING, reason::QUEUE);
const PREEMPTED: (u8, u8) = (state::READY, reason::PREEMPTED);
const OVER: (u8, u8) = (state::TERMINATED, 0);
/// Where a driver of the network has its routines.
const NDIS: (u64, u64) = (0xffff_f800_0000_0000, 0x10_0000);

/// A schedule in milliseconds, as records.
struct Schedule {
    log: Log,
    end: f64,
}

fn ticks(ms: f64) -> u64 {
    (ms * MS as f64).round() as u64
}

impl Schedule {
    fn new(cpus: u16, end: f64) -> Self {
        let mut log = Log::new(cpus);
        log.process(0, 3, PID, "app.exe");
        log.image(0, 3, 0, NDIS, "\\SystemRoot\\system32\\drivers\\ndis.sys");
        Schedule { log, end }
    }

    fn packed(mut self, packing: Packing) -> Self {
        self.log.packing = packing;
        self
    }

    fn thread(mut self, tid: u32, name: &str) -> Self {
        self.log.thread(0, 3, (PID, tid), name, 4);
        self
    }

    fn switch(mut self, t: f64, cpu: u16, prev: u32, why: (u8, u8), next: u32) -> Self {
        self.log.switch(cpu, ticks(t), prev, why, next);
        self
    }

    /// `tid` runs on `cpu` from `from` to `to`, then leaves.
    fn runs(self, tid: u32, cpu: u16, from: f64, to: f64, why: (u8, u8)) -> Self {
        let last = self.end;
        let schedule = self.switch(from, cpu, IDLE, (state::READY, 0), tid);
        if to < last { schedule.switch(to, cpu, tid, why, IDLE) } else { schedule }
    }

    /// Whoever runs on `cpu` until `t` wakes `tid` then, a tick before leaving: ETW tells the waker by who runs alone.
    fn by(mut self, t: f64, cpu: u16, tid: u32) -> Self {
        self.log.ready(cpu, ticks(t) - 1, tid, false);
        self
    }

    /// A DPC of a kind wakes `tid`: it is logged when it is over, a tick later.
    fn by_dpc(mut self, t: f64, cpu: u16, kind: u8, tid: u32) -> Self {
        self.log.ready(cpu, ticks(t), tid, true);
        self.log.interrupt(cpu, (ticks(t), ticks(t) + 1), kind, NDIS.0 + 0x100);
        self
    }

    fn by_timer(self, t: f64, cpu: u16, tid: u32) -> Self {
        self.by_dpc(t, cpu, 0x45, tid)
    }

    fn by_network(self, t: f64, cpu: u16, tid: u32) -> Self {
        self.by_dpc(t, cpu, 0x44, tid)
    }

    fn blame(mut self) -> (Trace, Blame) {
        // Nothing follows: the log is as long as this says.
        self.log.add(0, ticks(self.end), holdup_testing::etl::Header::System { tid: 0, pid: 0 }, (0x0008, 2), &[]);
        let mut builder = TraceBuilder::new(&Destination::Memory).unwrap();
        Input::from_bytes(Path::new("schedule.etl"), self.log.finish()).unwrap().import(&mut builder).unwrap();
        let trace = builder.finish(None).unwrap();
        assert_eq!(trace.losses.rows(), 0, "{:?}", trace.meta.notes);
        blame_of(trace)
    }
}

fn of(trace: &Trace, blame: &Blame, terminal: Terminal, wanted: u32) -> f64 {
    ms(blame, |k| k.terminal == terminal && tid(trace, k) == wanted)
}

#[test]
fn s1_chains_end_at_the_network_not_at_every_hop() {
    let s = Schedule::new(2, 110.0).thread(10, "user").thread(11, "parser");
    let s = s.switch(0.0, 1, 10, BLOCKED, IDLE).runs(11, 0, 0.0, 20.0, NO_WORK);
    let s = s.by_network(100.0, 0, 11).runs(11, 0, 100.0, 105.0, NO_WORK);
    let (trace, blame) = s.by(105.0, 0, 10).runs(10, 1, 105.0, 110.0, BLOCKED).blame();
    near(of(&trace, &blame, Terminal::Running, 11), 25.0);
    near(ms(&blame, |k| k.terminal == Terminal::IdleByDesign), 165.0);
}

#[test]
fn s2_three_waiters_charge_the_holder_three_times() {
    for packing in [Packing::Plain, Packing::Lz77, Packing::Huffman] {
        let mut s = Schedule::new(4, 1000.0).packed(packing).thread(10, "holder");
        s = s.thread(11, "a").thread(12, "b").thread(13, "c").runs(10, 0, 0.0, 1000.0, PREEMPTED);
        for w in 11..14 {
            s = s.runs(w, w as u16 - 10, 0.0, 10.0, BLOCKED);
        }
        for w in 11..14 {
            s = s.by(1000.0, 0, w);
        }
        let (trace, blame) = s.blame();
        near(of(&trace, &blame, Terminal::Running, 10), 2970.0);
        near(ms(&blame, |_| true), 2970.0);
    }
}

#[test]
fn s3_a_convoy_charges_who_runs() {
    let mut s = Schedule::new(1, 90.0).thread(10, "a").thread(11, "b").thread(12, "c");
    for w in 11..13 {
        s = s.switch(0.0, 0, w, BLOCKED, IDLE);
    }
    for turn in 0..90_u32 {
        let (t, now, next) = (f64::from(turn), 10 + turn % 3, 10 + (turn + 1) % 3);
        s = s.switch(t, 0, IDLE, (state::READY, 0), now);
        let end = t + 1.0;
        if turn < 89 {
            s = s.by(end, 0, next);
        }
        s = s.switch(end, 0, now, if turn + 3 >= 90 { OVER } else { BLOCKED }, IDLE);
    }
    let (trace, blame) = s.blame();
    near(of(&trace, &blame, Terminal::Running, 10), 60.0);
    near(of(&trace, &blame, Terminal::Running, 11), 59.0);
    near(of(&trace, &blame, Terminal::Running, 12), 58.0);
}

#[test]
fn s4_waiting_for_a_sleeper_is_waiting_for_a_timer() {
    let s = Schedule::new(2, 102.0).thread(10, "consumer").thread(11, "producer");
    let s = s.switch(0.0, 0, 10, BLOCKED, IDLE).switch(0.0, 1, 11, ASLEEP, IDLE);
    let s = s.by_timer(100.0, 1, 11).runs(11, 1, 100.0, 101.0, ASLEEP);
    let (trace, blame) = s.by(101.0, 1, 10).runs(10, 0, 101.0, 102.0, BLOCKED).by_timer(102.0, 1, 11).blame();
    near(of(&trace, &blame, Terminal::Running, 11), 1.0);
    let timers = |k: &Key| matches!(k.terminal, Terminal::Timer | Terminal::IdleByDesign);
    near(ms(&blame, timers), 201.0);
}

#[test]
fn s5_a_preempted_holder_is_not_the_hogs_fault_alone() {
    let s = Schedule::new(3, 100.0).thread(10, "hog").thread(11, "holder").thread(12, "waiter");
    let s = s.runs(10, 0, 0.0, 100.0, PREEMPTED).runs(12, 1, 0.0, 5.0, BLOCKED);
    let s = s.runs(11, 2, 0.0, 10.0, PREEMPTED).runs(11, 2, 60.0, 70.0, ASLEEP);
    let (trace, blame) = s.by(70.0, 2, 12).runs(12, 1, 70.0, 100.0, PREEMPTED).by_timer(100.0, 2, 11).blame();
    near(of(&trace, &blame, Terminal::NotRunning, 11), 50.0);
    near(of(&trace, &blame, Terminal::Running, 11), 15.0);
    near(of(&trace, &blame, Terminal::IdleByDesign, 11), 30.0);
}

#[test]
fn s6_an_owner_that_does_not_run_is_not_runnable_but_idle() {
    let s = Schedule::new(2, 100.0).thread(10, "hog").thread(11, "owner").thread(12, "waiter");
    let s = s.switch(0.0, 1, 11, PREEMPTED, 10).switch(0.0, 0, 12, BLOCKED, IDLE);
    let (trace, blame) = s.switch(60.0, 1, 10, OVER, 11).by(100.0, 1, 12).blame();
    let cpu = |t: Terminal| {
        let own = blame.cells.iter().filter(|(k, _)| k.terminal == t && tid(&trace, k) == 11);
        own.map(|(_, c)| c.cpu_ns).sum::<f64>() / common::MS as f64
    };
    near(blame.cpu.running / common::MS as f64, 100.0);
    near(cpu(Terminal::NotRunning), 60.0);
    near(cpu(Terminal::Running), 40.0);
    near(blame.cpu.runnable_idle / common::MS as f64, 0.0);
}

#[test]
fn s7_a_pool_woken_only_to_exit_is_not_held_up() {
    let mut s = Schedule::new(2, 100.1).thread(10, "main").thread(11, "worker");
    for pool in 20..44 {
        s = s.thread(pool, "pool").switch(0.0, 0, pool, BLOCKED, IDLE);
    }
    s = s.switch(0.0, 0, 10, BLOCKED, IDLE).runs(11, 1, 0.0, 100.0, OVER);
    for wakee in (20..44).chain([10]) {
        s = s.by(100.0, 1, wakee);
    }
    s.log.thread(ticks(100.0), 2, (PID, 11), "", 11);
    for pool in 20..44 {
        s = s.switch(100.05, 0, IDLE, (state::READY, 0), pool);
        s.log.thread(ticks(100.06), 2, (PID, pool), "", pool);
        s = s.switch(100.06, 0, pool, OVER, IDLE);
    }
    let (_, blame) = s.blame();
    let cpu = |ns: f64| ns / common::MS as f64;
    near(cpu(blame.cpu.running), 100.0);
    near(cpu(blame.cpu.held_up), 0.0);
    assert!((cpu(blame.cpu.no_work) - 100.0).abs() < 0.3, "{:?}", blame.cpu);
}

/// Without the lock's name each timed wait is one for its timer, from any source: only who ends the last one can be told.
#[test]
fn s8_timed_rewaits_are_as_from_any_source_that_knows_no_lock() {
    let mut s = Schedule::new(2, 50.0).thread(10, "owner").thread(11, "waiter").runs(10, 0, 0.0, 50.0, PREEMPTED);
    let mut other = common::Schedule::new(2, 50.0).thread(10, "owner").thread(11, "waiter").runs(10, 0, 0.0, 50.0, -1);
    let mut t = 0.0;
    while t < 50.0 {
        s = s.switch(t, 1, 11, BLOCKED, IDLE);
        other = other.switch(t, 1, 11, SwitchState::Sleeping, common::FUTEX, 0);
        if t + 5.0 < 50.0 {
            s = s.by_timer(t + 5.0, 1, 11).switch(t + 5.0, 1, IDLE, (state::READY, 0), 11);
            other = other.wakes(t + 5.0, 1, 0, 11, WakeContext::Timer, 0);
            other = other.switch(t + 5.0, 1, 0, SwitchState::Runnable, -1, 11);
        }
        t += 5.1;
    }
    let (trace, blame) = s.by(50.0, 0, 11).blame();
    near(of(&trace, &blame, Terminal::Running, 10), 4.1);
    let (other_trace, other_blame) = other.by(50.0, 0, 10, 11).blame();
    for terminal in [Terminal::Running, Terminal::Timer, Terminal::IdleByDesign, Terminal::NotRunning] {
        for thread in [10, 11] {
            near(of(&trace, &blame, terminal, thread), of(&other_trace, &other_blame, terminal, thread));
        }
    }
}

/// A log of samples alone, of idle CPUs too: what ran is known, and nobody is said to have waited.
#[test]
fn samples_alone_tell_what_ran() {
    let mut log = Log::new(2);
    log.process(0, 3, PID, "app.exe");
    log.thread(0, 3, (PID, 10), "", 4);
    log.thread(0, 3, (PID, 11), "", 4);
    // Two threads in turns on one CPU, with idle time between them; the other CPU is idle.
    for ms in 0..1000 {
        let tid = [10, IDLE, 11, IDLE][ms as usize / 10 % 4];
        log.sample(0, ms * MS, tid, 0x40_0000);
        log.sample(1, ms * MS, IDLE, NDIS.0);
    }
    let mut builder = TraceBuilder::new(&Destination::Memory).unwrap();
    let mut body = [0_u32, 10_000, 10_000].map(u32::to_le_bytes).concat();
    body.extend([0, 0]);
    log.add(0, 0, holdup_testing::etl::Header::System { tid: 0, pid: 0 }, (0x0f4a, 3), &body);
    Input::from_bytes(Path::new("samples.etl"), log.finish()).unwrap().import(&mut builder).unwrap();
    let trace = builder.finish(None).unwrap();
    let answer = explain(&trace, "x", &Options::default(), &NoDisassembler).unwrap();
    let cpu = &answer.cpu_seconds;
    assert!((cpu.busy - 0.5).abs() < 0.01 && (cpu.no_work - 1.5).abs() < 0.01, "{cpu:?}");
    let waited = answer.findings.iter().filter(|finding| finding.kind != FindingKind::CpuBound);
    assert_eq!(waited.map(|finding| &*finding.title).collect::<Vec<_>>(), [] as [&str; 0]);
    assert!(answer.stalls.is_empty(), "{:?}", answer.stalls);
    assert!(answer.caveats[0].record.iter().any(|line| line.starts_with("xperf -on ")), "{:?}", answer.caveats);
}
