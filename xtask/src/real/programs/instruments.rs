//! Other instruments than holdup: what they say of a load that runs unrecorded.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use regex::Regex;

use crate::real::scene::{Scene, shares};

/// How often thread states are read.
const TICK: Duration = Duration::from_millis(20);
/// How often stacks are taken: each stops the program for some 100 ms.
const STACKS: usize = 12;

/// Which processes had threads that ran or could, sampled from `/proc` until the shell `command` ends.
pub fn at_once(scene: &Scene, command: &str) -> Result<String> {
    let script = scene.write("at-once.sh", command)?;
    let load = scene.start(&format!("sh {}", script.display()))?;
    let mut seen = String::new();
    while Path::new(&format!("/proc/{}/stat", load.pid())).exists() && !has_ended(load.pid()) {
        let mut names = runnable(load.pid());
        names.sort();
        seen += &match names.as_slice() {
            [] => "nobody\n".to_owned(),
            [one] => format!("{one} alone\n"),
            several => several.join("+") + "\n",
        };
        sleep(TICK);
    }
    load.wait()?;
    Ok(format!("/proc/PID/task/*/stat: {}.", shares(&seen, 4)))
}

/// The names of the threads' processes in the process group `group` that run or could.
fn runnable(group: u32) -> Vec<String> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten().map(|e| e.path());
    let of_group = all.filter(|p| fields(&p.join("stat")).is_some_and(|f| f.get(2) == Some(&group.to_string())));
    let running = |process: std::path::PathBuf| {
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default().trim().to_owned();
        let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
        let running = threads.filter(|t| fields(&t.path().join("stat")).is_some_and(|f| f[0] == "R")).count();
        std::iter::repeat_n(name, running)
    };
    of_group.flat_map(running).collect()
}

fn has_ended(pid: u32) -> bool {
    fields(Path::new(&format!("/proc/{pid}/stat"))).is_none_or(|f| f[0] == "Z")
}

/// What follows the name in a `stat` of `/proc`: state, parent, process group.
fn fields(stat: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(stat).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
    (fields.len() > 2).then_some(fields)
}

/// The innermost function of each thread's stack whose name `of_interest` matches, or else its library without names, by
/// gdb, while the program `name` runs in the shell `command`.
pub fn stacks(scene: &Scene, command: &str, name: &str, of_interest: &str) -> Result<String> {
    let load = scene.start(command)?;
    let function = Regex::new(&format!(r"^#\d+ .*?\b({of_interest}) ?\("))?;
    let nameless = Regex::new(r"\?\? \(\) from .*/([^/]*)$")?;
    let mut seen = String::new();
    for _ in 0..STACKS {
        sleep(Duration::from_millis(50));
        let Some(pid) = newest(name, load.pid()).map(|pid| pid.to_string()) else { continue };
        let output = Command::new("gdb").args(["-p", &pid, "-batch", "-ex", "thread apply all bt"]).output()?;
        for thread in String::from_utf8_lossy(&output.stdout).split("\nThread ").skip(1) {
            let nameless = |line: &str| Some(nameless.captures(line)?[1].to_owned());
            let found = thread.lines().find_map(|line| Some(function.captures(line)?[1].to_owned()));
            let found = found.or_else(|| thread.lines().find_map(nameless));
            seen += &(found.unwrap_or_else(|| "elsewhere".to_owned()) + "\n");
        }
    }
    Ok(format!("gdb: {}.", shares(&seen, 4)))
}

/// The last process called `name` of the group `group`.
fn newest(name: &str, group: u32) -> Option<u32> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |pid: &u32| {
        let at = format!("/proc/{pid}");
        fs::read_to_string(format!("{at}/comm")).is_ok_and(|comm| comm.trim() == name)
            && fields(Path::new(&format!("{at}/stat"))).is_some_and(|f| f[2] == group.to_string())
    };
    pids.filter(is_it).max()
}

/// A pipeline of `stages` (name, shell command), each with the CPU time that bash counts for it: its last line tells.
pub fn cpu_of_stages(scene: &Scene, stages: &[(&str, &str)]) -> Result<String> {
    let timed = |(name, command): &(&str, &str)| {
        format!("{{ {{ TIMEFORMAT='{name} %P %%'; time {command} 2>&3; }} 3>&2 2>>times; }}")
    };
    let pipeline = stages.iter().map(timed).collect::<Vec<_>>().join(" | ");
    scene.write("stages.sh", &format!("exec 3>&2; : >times\n{pipeline}\n"))?;
    scene.run("bash stages.sh >/dev/null")?;
    let times = fs::read_to_string(scene.dir.join("times"))?;
    Ok(format!("bash's time, of one CPU: {}.", times.lines().collect::<Vec<_>>().join(", ")))
}
