//! What recording takes from real servers: their throughput under recorders, each run between two bare ones.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::{Bench, median};
use crate::holdup::perf_events;
use crate::real::scene::{Missing, Running, Scene, free_port, number_after, program};
use crate::real::servers::{postgres, redis};
use crate::table;

/// Seconds of each run.
const SECONDS: &str = "4";

/// What goes on until it is dropped, and the command that drives it.
type Started = (Vec<Running>, String);

/// A server, or none, and what drives it.
struct Load {
    name: &'static str,
    needs: &'static [&'static str],
    start: fn(&Scene, &str) -> Result<Started>,
    /// What stands before the throughput in what the driver prints.
    before: &'static str,
    /// The processors of all of it, for taskset; empty for all.
    pinned: &'static str,
}

/// Drivers print their throughput; `pin` stands before each command.
const LOADS: [Load; 6] = [
    Load { name: "pgbench", needs: POSTGRES, start: postgres, before: "tps =", pinned: "" },
    Load { name: "pgbench, one CPU", needs: POSTGRES, start: postgres, before: "tps =", pinned: "taskset -c 0" },
    Load {
        name: "redis-benchmark",
        needs: &["redis-server", "redis-benchmark"],
        start: redis,
        before: "SET: ",
        pinned: "",
    },
    Load { name: "nginx, wrk", needs: &["nginx", "wrk"], start: nginx, before: "Requests/sec:", pinned: "" },
    Load {
        name: "sysbench threads",
        needs: &["sysbench"],
        start: sysbench,
        before: "total number of events:",
        pinned: "",
    },
    Load { name: "build, make -j2", needs: &["make", "gcc"], start: build, before: "per second:", pinned: "" },
];

const POSTGRES: &[&str] = &["initdb", "postgres", "pgbench", "psql"];

/// A way to record, and what came of it.
struct Way {
    name: &'static str,
    recorder: Vec<String>,
    trace: Option<PathBuf>,
    rates: Vec<f64>,
    /// Each rate in those of the bare runs before and after it: a guest is fast now and slow then.
    shares: Vec<f64>,
    cost: Vec<f64>,
    lost: u64,
}

pub fn run(bench: &Bench) -> Result<()> {
    println!(
        "\nthroughput of servers under recorders of the whole machine, medians of {} rounds of {SECONDS} s",
        bench.rounds
    );
    let mut rows = Vec::new();
    let wanted = |load: &&Load| bench.load.as_ref().is_none_or(|part| load.name.contains(part.as_str()));
    for load in LOADS.iter().filter(wanted) {
        let scene = match Scene::new(&bench.holdup, &bench.scratch.join("server"), 0.0, load.needs) {
            Err(e) if e.is::<Missing>() => {
                eprintln!("{}: {e}", load.name);
                continue;
            }
            other => other?,
        };
        let ways = measure(bench, load, &scene)?;
        rows.extend(ways.iter().map(|way| row(bench, load, way)).collect::<Result<Vec<_>>>()?);
    }
    table::print(
        &["load", "recorder", "per second", "of bare", "from", "to", "cost by info", "lost", "first finding"],
        &rows,
    );
    Ok(())
}

fn measure(bench: &Bench, load: &Load, scene: &Scene) -> Result<Vec<Way>> {
    let (_servers, driver) = (load.start)(scene, load.pinned)?;
    let mut ways = ways(bench);
    // The first run warms caches up, and counts for nobody.
    rate(scene, load, &[], &driver)?;
    let mut before = rate(scene, load, &[], &driver)?;
    for round in 0..bench.rounds {
        eprintln!("{}: round {} of {}", load.name, round + 1, bench.rounds);
        for way in &mut ways {
            let own = rate(scene, load, &way.recorder, &driver)?;
            let after = rate(scene, load, &[], &driver)?;
            way.rates.push(own);
            way.shares.push(own / before.midpoint(after));
            before = after;
            if let Some(trace) = &way.trace {
                let info = bench.holdup.info(trace)?;
                way.cost.push(info.cost());
                way.lost += info.lost();
            }
        }
    }
    Ok(ways)
}

impl Way {
    fn new(name: &'static str, recorder: Vec<String>, trace: Option<PathBuf>) -> Way {
        Way { name, recorder, trace, rates: Vec::new(), shares: Vec::new(), cost: Vec::new(), lost: 0 }
    }
}

fn ways(bench: &Bench) -> Vec<Way> {
    let holdup = |name, file: &str, options: &[&str]| {
        let trace = bench.file(file);
        let words = [&[bench.holdup.path(), "record", "-a", "-o", &trace], options].concat();
        Way::new(name, words.into_iter().map(str::to_owned).collect(), Some(trace.into()))
    };
    let perf = |name, options: &[&str]| {
        let file = bench.file("server.perf.data");
        let words = [&["perf", "record", "-a", "-q", "-o", &file], options].concat();
        let words = words.into_iter().map(str::to_owned);
        Way::new(name, words.chain(perf_events().map(str::to_owned)).collect(), None)
    };
    vec![
        Way::new("none", Vec::new(), None),
        holdup("holdup record", "server.holdup", &[]),
        holdup("holdup, --budget 1%", "server-1.holdup", &["--budget", "1%"]),
        holdup("holdup, --budget 100%", "server-100.holdup", &["--budget", "100%"]),
        perf("perf record", &[]),
        perf("perf record -g", &["-g"]),
    ]
}

fn rate(scene: &Scene, load: &Load, recorder: &[String], driver: &str) -> Result<f64> {
    let quoted: Vec<String> = recorder.iter().map(|word| format!("'{word}'")).collect();
    let under = if quoted.is_empty() { String::new() } else { quoted.join(" ") + " -- " };
    let rate = number_after(&scene.run(&format!("{under}{driver}"))?, load.before)?;
    ensure!(rate > 0.0, "{}: no throughput", load.name);
    Ok(rate)
}

fn row(bench: &Bench, load: &Load, way: &Way) -> Result<Vec<String>> {
    let ends = |pick: fn(f64, f64) -> f64| way.shares.iter().copied().reduce(pick).unwrap_or(f64::NAN);
    let shares = [median(&way.shares), ends(f64::min), ends(f64::max)].map(|share| format!("{share:.3}"));
    let mut row = vec![load.name.to_owned(), way.name.to_owned(), format!("{:.0}", median(&way.rates))];
    row.extend(shares);
    if let Some(trace) = &way.trace {
        let explained = bench.holdup.explain(trace)?;
        let first = explained.findings.first().map_or("none".to_owned(), |f| format!("{} {}", f.kind, f.function()));
        row.extend([format!("{:.1} %", 100.0 * median(&way.cost)), way.lost.to_string(), first]);
    }
    Ok(row)
}

/// Eight clients insert a row each, without waiting for the disk.
fn postgres(scene: &Scene, pin: &str) -> Result<Started> {
    let server = postgres::Server::start_under(scene, pin, "fsync = off")?;
    scene.write("insert.sql", "insert into log(n) values (1);\n")?;
    let driver = format!("env {} {pin} pgbench -n -c 8 -j 2 -T {SECONDS} -f insert.sql", server.at);
    Ok((vec![server.running], driver))
}

fn redis(scene: &Scene, pin: &str) -> Result<Started> {
    let server = redis::Server::start(scene, "--bind 127.0.0.1 --appendonly no")?;
    // About as long as the others; `-q` prints how it goes in one line, parted by carriage returns.
    let driver =
        format!("{pin} redis-benchmark -p {} -t set -n 300000 -c 50 --csv | sed 's/^\"SET\",\"/SET: /'", server.port);
    Ok((vec![server.running], format!("sh -c \"{}\"", driver.replace('"', "\\\""))))
}

fn nginx(scene: &Scene, pin: &str) -> Result<Started> {
    let port = free_port()?;
    let folder = scene.dir.display();
    scene.write("index.html", "<p>hello</p>\n")?;
    let conf = scene.write(
        "nginx.conf",
        &format!(
            "daemon off;\npid {folder}/pid;\nerror_log {folder}/errors;\nworker_processes 2;\nevents {{}}\nhttp {{\n\
             access_log off;\nserver {{ listen 127.0.0.1:{port}; root {folder}; }}\n}}\n"
        ),
    )?;
    let command = format!("{pin} {} -c {}", program("nginx").unwrap_or_default().display(), conf.display());
    let url = format!("http://127.0.0.1:{port}/");
    let server = scene.start_until(&command, &format!("wrk -t1 -c1 -d1s {url} | grep -q Requests/sec"))?;
    Ok((vec![server], format!("{pin} wrk -t2 -c32 -d{SECONDS}s {url}")))
}

fn sysbench(_: &Scene, pin: &str) -> Result<Started> {
    let driver =
        format!("{pin} sysbench threads --threads=16 --thread-locks=4 --thread-yields=100 --time={SECONDS} run");
    Ok((Vec::new(), driver))
}

/// Sixty small files in C, compiled by two at a time: many short processes.
fn build(scene: &Scene, pin: &str) -> Result<Started> {
    let objects: Vec<String> = (0..60).map(|i| format!("f{i}.o")).collect();
    scene.write("common.h", "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n")?;
    for i in 0..60 {
        let text = format!(
            "#include \"common.h\"\nint f{i}(int x) {{ printf(\"%d\", x); return (int)strlen(\"{i}\") + x; }}\n"
        );
        scene.write(&format!("f{i}.c"), &text)?;
    }
    scene.write("Makefile", &format!("all: {}\n%.o: %.c\n\t@gcc -O2 -c $< -o $@\n", objects.join(" ")))?;
    scene.write(
        "build.sh",
        &format!(
            "rm -f *.o\na=$(date +%s%N)\n{pin} make -s -j2\nb=$(date +%s%N)\n\
             echo \"per second: $((60000000000000 / (b - a))) thousandths\"\n"
        ),
    )?;
    Ok((Vec::new(), "sh build.sh".to_owned()))
}
