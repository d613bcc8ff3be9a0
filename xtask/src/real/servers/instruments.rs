//! What `strace` and `/proc` say of a server or a load.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::real::case::{Client, Expect, Is, Recorded};
use crate::real::scene::{Running, Scene, number_after};

/// Loads what listens on `port` by eight connections for so many seconds.
pub fn wrk(port: u16, seconds: u64) -> String {
    format!("wrk -t 1 -c 8 -d {seconds}s http://127.0.0.1:{port}/")
}

/// How many requests of eight connections are answered each second.
pub fn requests(scene: &Scene, port: u16) -> Result<f64> {
    number_after(&scene.run(&wrk(port, 3))?, "Requests/sec:")
}

/// Who loads a server so waits for it.
pub const fn wrk_waits_for(right: &'static [Is]) -> Option<Client> {
    Some(Client { process: "wrk", expect: Expect { right, vague: &[], nothing: false } })
}

/// A server under that load, which writes how long it slept into a file `clock`.
pub fn by_its_clock(scene: &Scene, (server, port): (Running, u16), focus: &'static str) -> Result<Recorded> {
    let _load = scene.start(&wrk(port, scene.load_seconds()))?;
    let (trace, _) = scene.record_pid(server.pid(), || Ok(String::new()))?;
    Ok(Recorded { trace, truth: scene.run("cat clock")?.trim().to_owned(), focus })
}

/// In which of `calls` the shell command `load` and all it starts spend how many seconds of the clock, by `strace -f -w`.
pub fn strace_wall(scene: &Scene, load: &str, calls: &[&str]) -> Result<String> {
    let script = scene.write("traced.sh", load)?;
    scene.run(&format!("strace -f -c -w -o strace.out sh {}", script.display()))?;
    summary(scene, calls)
}

/// The same of the running process `pid`, for two seconds.
pub fn attach_wall(scene: &Scene, pid: u32, calls: &[&str]) -> Result<String> {
    // It ends by the signal of `timeout`, which is no failure.
    scene.run(&format!("timeout -s INT 2 strace -f -c -w -o strace.out -p {pid} || true"))?;
    summary(scene, calls)
}

fn summary(scene: &Scene, calls: &[&str]) -> Result<String> {
    let text = std::fs::read_to_string(scene.dir.join("strace.out")).context("strace.out")?;
    // Columns: share, seconds, µs a call, calls, errors or nothing, name.
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let name = cells.last().filter(|name| calls.contains(name))?;
        Some(format!("{name} {} s in {} calls", cells.get(1)?, cells.get(3)?))
    });
    Ok(rows.collect::<Vec<_>>().join(", "))
}

/// The share of one CPU that the processes of the group of `pid` use, over `seconds`.
pub fn cpu_share(pid: u32, seconds: u64) -> Result<String> {
    let before = ticks(pid);
    sleep(Duration::from_secs(seconds));
    // A tick is 10 ms: USER_HZ is 100 on every Linux that holdup runs on.
    Ok(format!("{} % of a CPU", (ticks(pid) - before) / seconds.max(1)))
}

fn ticks(group: u32) -> u64 {
    let stats = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let texts = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let of_group = texts.filter_map(|text| {
        let fields: Vec<u64> =
            text.rsplit_once(')')?.1.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        // After the name: state, parent, group, …, with user and system time as 12th and 13th.
        (fields.get(2) == Some(&u64::from(group)))
            .then(|| fields.get(11).copied().unwrap_or(0) + fields.get(12).copied().unwrap_or(0))
    });
    of_group.sum()
}
