//! Who is in focus, by what one asks for.

mod common;

use common::Schedule;
use holdup_analysis::focus::Focus;
use holdup_trace::{NameEvent, Table, ThreadIdx};

/// Numbers of the processes that are in focus, by name.
fn found(wanted: &str) -> Vec<u32> {
    let threads = [(10, "php-fpm8.2"), (11, "job1"), (12, "job12"), (13, "cargo-fmt")];
    let mut s = Schedule::new(2, 100.0);
    s.builder.meta_mut().focus_pids = vec![13];
    for (tid, name) in threads {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid: tid, tid, name });
        s = s.runs(tid, 0, f64::from(tid), f64::from(tid) + 1.0, -1);
    }
    let trace = s.finish();
    let focus = Focus::find(&trace, Some(wanted)).unwrap_or_else(|_| Focus::new(&trace, Some(wanted)));
    let pids = (1..trace.threads.len()).filter(|&i| focus.contains(ThreadIdx(i as u32)));
    pids.map(|i| trace.threads.row(i).pid).collect()
}

#[test]
fn programs_are_found_without_their_version_if_none_is_called_so() {
    assert_eq!(found("php-fpm"), [10]);
    assert_eq!(found("job1"), [11], "job12 is another one");
    assert_eq!(found("job"), [11, 12]);
    assert_eq!(found("cargo"), [0; 0], "cargo-fmt is another program");
}

#[test]
fn a_star_is_everybody() {
    assert_eq!(found("*"), [10, 11, 12, 13]);
}
