//! Processes that run the same script, of which one has most of the work. One tick is a millisecond.

#![allow(missing_docs)]

mod common;

use common::traffic::explained;
use common::*;
use holdup_analysis::report::FindingKind;
use holdup_trace::{ForkEvent, NameEvent, SubjectEvent};

/// What is to be done about a build whose second job runs for 80 ms and the first one for 10 ms, of what they were seen to run; the second is made by
/// `parent`. Beside it, and not in focus, somebody else has started the first script, too.
fn advice(scripts: [&str; 2], parent: u32) -> String {
    let mut s = Schedule::new(2, 100.0);
    s.builder.meta_mut().focus_pids = vec![5];
    let make = s.builder.string("make");
    s.builder.push(0, NameEvent { pid: 5, tid: 5, name: make });
    for (pid, parent, script) in [(10, 5, scripts[0]), (11, parent, scripts[1]), (12, 1, scripts[0])] {
        s.builder.push(ns(0.1), ForkEvent { parent_pid: parent, parent, pid, tid: pid });
        let (name, what) = (s.builder.string("python3"), s.builder.string(script));
        s.builder.push(ns(0.2), NameEvent { pid, tid: pid, name });
        s.builder.push(ns(0.2), SubjectEvent { pid, what });
    }
    let s = s.waits_at(5, 0, [0.0, 0.5], WAIT4, &[0x10]).runs(10, 0, 1.0, 11.0, EXIT).runs(11, 1, 1.0, 81.0, EXIT);
    let answer = explained(&s.by(80.9, 1, 11, 5).runs(5, 0, 81.0, 82.0, -1).finish(), None);
    let first = &answer.findings[0];
    assert_eq!((first.kind, first.culprit.pid), (FindingKind::Serial, 11), "{}", first.title);
    first.advice.clone()
}

#[test]
fn who_has_most_of_what_several_do_is_said() {
    let said = advice(["align.py", "align.py"], 5);
    assert!(said.starts_with("Of 2 python3 processes that run align.py, this one ran for 80"), "{said}");
    assert!(said.contains("none of the others for more than 10"), "{said}");
}

#[test]
fn who_runs_something_else_or_was_made_by_it_is_no_sibling() {
    for (scripts, parent) in [(["sort.py", "align.py"], 5), (["", ""], 5), (["align.py", "align.py"], 10)] {
        let said = advice(scripts, parent);
        assert!(!said.contains("processes that run"), "{said}");
    }
}
