//! SQLite: writers that nap while another one writes, and one that waits for its disk. `strace -w` says where time goes.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{Disk, LockHeld, SleepPolling};

use super::instruments::strace_wall;
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::{Scene, number_after};

const WRITER: &str = "\
import sqlite3, sys, time
seconds, journal, synchronous = float(sys.argv[1]), sys.argv[2], sys.argv[3]
db = sqlite3.connect('q.db', timeout=60, isolation_level=None)
db.execute(f'pragma journal_mode={journal}')
db.execute(f'pragma synchronous={synchronous}')
db.execute('create table if not exists t(a, b)')
end, n = time.monotonic() + seconds, 0
while time.monotonic() < end:
    db.execute('begin immediate')
    db.execute('insert into t values(?, ?)', (n, 'x' * 100))
    db.execute('commit')
    n += 1
print('commits', n)
";

/// Four processes write; SQLite's busy handler naps for longer and longer.
pub const WRITERS: Case = Case {
    name: "sqlite_writers",
    title: "SQLite, four writer processes",
    command: "4 × python3: begin immediate; insert; commit (timeout 60 s)",
    needs: &["/usr/bin/python3", "sqlite3", "strace"],
    truth: "Three of four processes nap in the busy handler (1 to 100 ms) while the fourth has the file's lock, mostly in \
            fdatasync. strace -f -w:",
    expect: Expect {
        right: &[Is {
            kinds: &[SleepPolling, LockHeld, Disk],
            hung: "nanosleep|usleep|Sleep|BusyCallback|invokeBusy",
            ..Is::ANY
        }],
        vague: &[Is { kinds: &[Disk], function: "sqlite3.*Commit|PagerSync|unixSync|fdatasync", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| record(scene, 4),
    fix: Some(Fix {
        what: "journal_mode = wal",
        rate: |scene, fixed| commits(scene, 4, if fixed { "wal" } else { "delete" }, "full"),
    }),
};

/// One process, whose every commit waits for the disk.
pub const FSYNC: Case = Case {
    name: "sqlite_fsync",
    title: "SQLite, a commit for each row",
    command: "python3: begin immediate; insert; commit",
    truth: "Its one process waits in fdatasync of its commits. strace -f -w:",
    expect: Expect {
        right: &[Is { kinds: &[Disk], function: "sqlite3.*Commit|PagerSync|unixSync|fdatasync", ..Is::ANY }],
        vague: &[Is { kinds: &[Disk], ..Is::ANY }],
        nothing: false,
    },
    record: |scene| record(scene, 1),
    fix: Some(Fix {
        what: "synchronous = off",
        rate: |scene, fixed| commits(scene, 1, "delete", if fixed { "off" } else { "full" }),
    }),
    ..WRITERS
};

fn record(scene: &Scene, writers: usize) -> Result<Recorded> {
    let load = load(scene, writers, scene.seconds, "delete", "full")?;
    let truth = strace_wall(scene, &load, &["clock_nanosleep", "fdatasync", "fsync"])?;
    let trace = scene.record_command(&load)?;
    Ok(Recorded { trace, truth, focus: "python3" })
}

fn commits(scene: &Scene, writers: usize, journal: &str, synchronous: &str) -> Result<f64> {
    let said = scene.run(&load(scene, writers, 3.0, journal, synchronous)?)?;
    let each = said.lines().map(|line| number_after(line, "commits"));
    Ok(each.sum::<Result<f64>>()? / 3.0)
}

fn load(scene: &Scene, writers: usize, seconds: f64, journal: &str, synchronous: &str) -> Result<String> {
    scene.run("rm -f q.db*")?;
    scene.write("writer.py", WRITER)?;
    let one = format!("/usr/bin/python3 writer.py {seconds} {journal} {synchronous}");
    scene.run(&format!("/usr/bin/python3 writer.py 0 {journal} {synchronous}"))?;
    Ok(vec![one; writers].join(" & ") + "; wait")
}
