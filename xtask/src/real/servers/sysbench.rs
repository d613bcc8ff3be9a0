//! sysbench's own tests of locks; what they do stands in its source.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{Convoy, LockHeld};

use super::instruments::strace_wall;
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::{Scene, number_after};

/// One lock, kept while its owner yields the CPU.
pub const THREADS: Case = Case {
    name: "sysbench_threads",
    title: "sysbench threads",
    command: "sysbench threads --threads=8 --thread-locks=1 run",
    needs: &["sysbench", "strace"],
    truth: "Each event is 1,000 times lock, sched_yield, unlock, of one lock (tests/threads/sb_threads.c). strace -f -w:",
    expect: Expect {
        right: &[Is { kinds: &[Convoy, LockHeld], function: "sysbench\\+|yield", hung: "sysbench\\+", ..Is::ANY }],
        vague: &[Is { kinds: &[Convoy, LockHeld], ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        let load = threads(scene.seconds, 1);
        let truth = strace_wall(scene, &threads(2.0, 1), &["futex", "sched_yield"])?;
        Ok(Recorded { trace: scene.record_command(&load)?, truth, focus: "sysbench" })
    },
    fix: Some(Fix {
        what: "64 locks",
        rate: |scene, fixed| {
            let said = scene.run(&threads(3.0, if fixed { 64 } else { 1 }))?;
            number_after(&said, "total number of events:")
        },
    }),
};

fn threads(seconds: f64, locks: usize) -> String {
    format!("sysbench threads --threads=8 --thread-locks={locks} --time={} run", seconds.round())
}

/// Two threads that do nothing but take one lock.
pub const MUTEX: Case = Case {
    name: "sysbench_mutex",
    title: "sysbench mutex",
    command: "sysbench mutex --threads=2 --mutex-num=1 --mutex-loops=0 run",
    truth: "Both threads lock and unlock one mutex all the time: its line goes to and fro between the CPUs; they rarely sleep. \
            strace -f -w:",
    expect: Expect {
        right: &[Is {
            kinds: &[Convoy, LockHeld],
            function: "sysbench\\+|mutex_lock|mutex_unlock|lll_lock",
            ..Is::ANY
        }],
        vague: &[Is { function: "sysbench\\+|mutex_lock|mutex_unlock|lll_lock", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        let truth = strace_wall(scene, &mutex(10_000_000, 1), &["futex"])?;
        let load = mutex((scene.seconds * 12e6) as u64, 1);
        Ok(Recorded { trace: scene.record_command(&load)?, truth, focus: "sysbench" })
    },
    fix: Some(Fix { what: "4,096 locks", rate: |scene, fixed| locked(scene, if fixed { 4096 } else { 1 }) }),
    ..THREADS
};

fn mutex(times: u64, locks: usize) -> String {
    format!("sysbench mutex --threads=2 --mutex-num={locks} --mutex-locks={times} --mutex-loops=0 run")
}

fn locked(scene: &Scene, locks: usize) -> Result<f64> {
    Ok(1.0 / number_after(&scene.run(&mutex(30_000_000, locks))?, "total time:")?)
}
