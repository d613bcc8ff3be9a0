//! Programs that could run, were they let: quota, affinity, neighbours.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use holdup_analysis::report::FindingKind::{CpuStarved, OwnerNotRunning, RunnableWhileIdle, Throttled};

use super::{ready, recorded, speed};
use crate::real::case::{Case, Expect, Fix, Is};
use crate::real::scene::{Missing, Running, Scene};

const TAR: &str = "tar chf - -C /usr bin lib 2>/dev/null | head -c 40000000 >in.tar";

/// A control group that may use a fifth of a CPU.
pub const QUOTA: Case = Case {
    name: "quota",
    title: "zstd -T2 under a CPU quota",
    command: "(cpu.max 20000 100000) zstd -T2 -4 in.tar",
    needs: &["tar", "zstd"],
    truth: "The control group may use a fifth of a CPU. cpu.stat:",
    expect: Expect {
        right: &[Is { kinds: &[Throttled], ..Is::ANY }, Is { title: "quota", ..Is::ANY }],
        vague: &[Is { kinds: &[CpuStarved, OwnerNotRunning, RunnableWhileIdle], ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        let group = Group::new(20_000)?;
        let mut recorded = recorded(scene, TAR, &group.inside("zstd -T2 -4 -q -c in.tar"), "zstd", String::new())?;
        recorded.truth = group.throttled()?;
        Ok(recorded)
    },
    fix: Some(Fix {
        what: "no quota",
        rate: |scene, fixed| {
            let group = Group::new(if fixed { 1_000_000 } else { 20_000 })?;
            speed(scene, TAR, &group.inside("zstd -T2 -4 -q -c in.tar"))
        },
    }),
};

/// Two threads that may run on one CPU.
pub const PINNED: Case = Case {
    name: "pinned",
    title: "xz -T2 on one CPU",
    command: "taskset -c 0 xz -1 -T2 in.tar",
    needs: &["tar", "xz", "taskset"],
    truth: "Both threads may run on one CPU only, and wait for each other there while the second CPU has nothing to do. \
            /proc/PID/schedstat:",
    expect: Expect {
        right: &[Is {
            kinds: &[RunnableWhileIdle, OwnerNotRunning, CpuStarved],
            title: "(?i)affinity|pinned|may run|only on|CPU 0|allowed",
            ..Is::ANY
        }],
        vague: &[Is { kinds: &[OwnerNotRunning, RunnableWhileIdle, CpuStarved], who: "^xz$", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        ready(scene, TAR)?;
        let truth = delays(scene, &pinned(false))?;
        recorded(scene, TAR, &pinned(false), "xz", truth)
    },
    fix: Some(Fix { what: "both CPUs", rate: |scene, fixed| speed(scene, TAR, &pinned(fixed)) }),
    ..QUOTA
};

fn pinned(free: bool) -> String {
    // Not every machine lets us run on its first CPU.
    let first = "taskset -c $(taskset -cp $$ | sed 's/.*: //; s/[,-].*//') ";
    format!("{}xz -1 -T2 -c in.tar >/dev/null", if free { "" } else { first })
}

/// Others use the CPUs.
pub const NEIGHBOURS: Case = Case {
    name: "neighbours",
    title: "xz -T2 beside sha256sum on every CPU",
    command: "xz -1 -T2 in.tar, beside: sha256sum /dev/zero",
    needs: &["tar", "xz", "sha256sum"],
    truth: "xz's threads are ready half of the time and wait for a CPU that sha256sum uses. /proc/PID/schedstat:",
    expect: Expect {
        right: &[Is { kinds: &[CpuStarved, OwnerNotRunning], title: "sha256sum", ..Is::ANY }],
        vague: &[Is { kinds: &[CpuStarved, OwnerNotRunning], ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        ready(scene, TAR)?;
        let _hogs = hogs(scene)?;
        let truth = delays(scene, &pinned(true))?;
        recorded(scene, TAR, &pinned(true), "xz", truth)
    },
    fix: Some(Fix {
        what: "no neighbours",
        rate: |scene, fixed| {
            let _hogs = if fixed { Vec::new() } else { hogs(scene)? };
            speed(scene, TAR, &pinned(true))
        },
    }),
    ..QUOTA
};

/// One for each CPU.
fn hogs(scene: &Scene) -> Result<Vec<Running>> {
    let cpus = std::thread::available_parallelism()?.get();
    (0..cpus).map(|_| scene.start("sha256sum /dev/zero")).collect()
}

/// How long the threads of `command` ran, and how long they were ready and did not, within its first second.
fn delays(scene: &Scene, command: &str) -> Result<String> {
    let load = scene.start(&format!("sh -c '{}; :'", command.replace('\'', "'\\''")))?;
    sleep(Duration::from_secs(1));
    let xz = scene.run(&format!("cat $(pgrep -g {} xz | sed 's,.*,/proc/&/task/*/schedstat,')", load.pid()))?;
    let column = |n| {
        let nanoseconds = |line: &str| line.split(' ').nth(n)?.parse::<f64>().ok();
        xz.lines().filter_map(nanoseconds).sum::<f64>() / 1e9
    };
    Ok(format!("ran for {:.2} s, ready for {:.2} s.", column(0), column(1)))
}

/// A control group of our own; it ends with this value.
struct Group(PathBuf);

impl Group {
    /// One that may use `quota` microseconds of 100,000, in the second version of control groups or in the first.
    fn new(quota: u64) -> Result<Group> {
        let two = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
        let two = two.into_iter().find(|g| {
            fs::read_to_string(g.join("cgroup.subtree_control")).is_ok_and(|c| c.split_whitespace().any(|c| c == "cpu"))
        });
        let one = Path::new("/sys/fs/cgroup/cpu");
        let root = two.unwrap_or(one);
        let group = Group(root.join("holdup-real"));
        let missing = || Missing("control group that can be written".to_owned());
        if !group.0.exists() {
            fs::create_dir(&group.0).with_context(missing)?;
        }
        match two {
            Some(_) => fs::write(group.0.join("cpu.max"), format!("{quota} 100000")),
            None => fs::write(group.0.join("cpu.cfs_quota_us"), quota.to_string()),
        }
        .with_context(missing)?;
        Ok(group)
    }

    /// The shell `command`, run in the group.
    fn inside(&self, command: &str) -> String {
        format!("sh -c 'echo $$ >{}/cgroup.procs; exec {command} >/dev/null'", self.0.display())
    }

    /// What the kernel says of it.
    fn throttled(&self) -> Result<String> {
        let stat = fs::read_to_string(self.0.join("cpu.stat"))?;
        let lines = stat.lines().filter(|l| l.starts_with("nr_periods") || l.contains("throttled"));
        Ok(lines.collect::<Vec<_>>().join(", ") + ".")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It can't be removed while a process is left in it.
        let _ = fs::remove_dir(&self.0);
    }
}
