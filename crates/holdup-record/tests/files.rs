//! Locks that programs set on files.

mod common;

use std::collections::BTreeMap;

use common::{may_record, open, run};
use holdup_record::{Options, Target};
use holdup_trace::{LockKind, StringId, Table, Trace};

/// How often a thread waited for each lock of a file, by the lock's address and the thread's name; and how often these waits ended.
fn waited(trace: &Trace) -> BTreeMap<(u64, String), [usize; 2]> {
    let mut waited: BTreeMap<_, [usize; 2]> = BTreeMap::new();
    let rows = trace.kernel_locks.load().expect("kernel locks");
    let of_files = |row: &holdup_trace::tables::KernelLock| trace.locks.kind[row.lock.index()] == LockKind::File;
    for row in (0..rows.t.len()).map(|i| rows.row(i)).filter(of_files) {
        let name: StringId = trace.threads.name[row.thread.index()];
        let key = (trace.locks.address[row.lock.index()], trace.text(name).to_owned());
        waited.entry(key).or_default()[usize::from(!row.begin)] += 1;
    }
    waited
}

#[test]
fn each_file_has_its_own() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let run_in = "flock a sleep 0.4 & flock b sleep 0.4 & sleep 0.1; flock a true & flock a true & flock b true & wait";
    let argv = ["sh", "-c", &format!("cd {}; {run_in}", dir.path().display())].map(Into::into);
    let options = Options { target: Target::Command { argv: argv.into() }, ..Options::default() };
    let path = dir.path().join("spool");
    run(&options, &path).expect("recording");
    let waited = waited(&open(&path, None));
    // Both that wait for the first file are woken for it, and one of them waits again.
    let mut begun: Vec<usize> = waited.values().map(|[begun, _]| *begun).collect();
    begun.sort_unstable();
    assert!(begun.len() == 2 && begun[0] == 1 && begun[1] >= 2, "{waited:?}");
    assert!(waited.keys().all(|(address, name)| *address != 0 && name == "flock"), "{waited:?}");
    assert!(waited.values().all(|[begun, ended]| begun == ended), "they have all gone on: {waited:?}");
}
