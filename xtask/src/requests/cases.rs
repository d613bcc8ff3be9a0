//! The servers.

use std::time::Duration;

use anyhow::{Context, Result};

use super::{Case, Cause, Recorded};
use crate::real::scene::{Missing, Scene, number_after};
use crate::real::servers::{postgres, redis};

/// All of them.
pub const ALL: &[Case] = &[POSTGRES, REDIS, OWN, MARKED, PYTHON];

const USDT: &str = "usdt:postgresql:query__start(str) ~~ query__done";

/// One in a hundred transactions keeps a row for 50 ms.
const POSTGRES: Case = Case {
    name: "postgres_usdt",
    title: "PostgreSQL under pgbench, 8 clients, by its built-in probes",
    spans: USDT,
    needs: &["postgres", "pgbench", "psql"],
    truth: "One in a hundred transactions sleeps for 50 ms with a row that the others update. The longest update by `log_min_duration_statement`",
    right: Cause { what: "waited-for|timer", process: "^postgres", function: "WaitEventSetWait|WaitLatch|pg_sleep" },
    record: |scene| {
        let server = postgres::Server::start(scene, "log_min_duration_statement = 10\nlog_destination = stderr")?;
        scene.write("fast.sql", "\\set id random(1, 20)\nupdate t set n = n + 1 where id = :id;\n")?;
        scene.write(
            "slow.sql",
            "begin;\n\\set id random(1, 20)\nupdate t set n = n + 1 where id = :id;\nselect pg_sleep(0.05);\ncommit;\n",
        )?;
        let load =
            format!("env {} pgbench -n -c 8 -j 2 -T {} -f fast.sql@99 -f slow.sql@1", server.at, scene.load_seconds());
        let _load = scene.start(&load)?;
        let skip = log_lines(scene)?;
        let (trace, _) = scene.record_spans(server.running.pid(), USDT, || Ok(String::new()))?;
        let log = std::fs::read_to_string(scene.dir.join("log"))?;
        let updates = log.lines().skip(skip).filter(|line| line.contains("statement: update t"));
        let longest = updates.filter_map(|line| number_after(line, "duration: ").ok()).fold(0.0, f64::max);
        Ok(Recorded {
            trace,
            spans: spans(&["query__start", "--argument", "update t"]),
            longest_s: longest / 1e3,
            what: "",
        })
    },
};

/// What the server said before the recording.
fn log_lines(scene: &Scene) -> Result<usize> {
    std::thread::sleep(Duration::from_millis(500));
    Ok(std::fs::read_to_string(scene.dir.join("log"))?.lines().count())
}

/// `KEYS` once a second stops everybody else.
const REDIS: Case = Case {
    name: "redis_net",
    title: "Redis under redis-benchmark, 20 clients, on its socket",
    spans: "net(str)",
    needs: &["redis-server", "redis-cli", "redis-benchmark"],
    truth: "All clients stand still while its one thread is in keysCommand, once a second. The longest `KEYS` by SLOWLOG",
    right: Cause { what: "waited-for|ran", process: "^redis-server", function: "^keysCommand$" },
    record: |scene| {
        let server = redis::Server::start(scene, "--appendonly no")?;
        server.ask(scene, "eval \"for i = 1, 1000000 do redis.call('set', 'key:' .. i, i) end\" 0")?;
        let _load = server.benchmark(scene, "get")?;
        let _keys = scene.start(&format!("redis-cli -p {} -r -1 -i 1 keys 'none*'", server.port))?;
        let (trace, log) = scene.record_spans(server.running.pid(), "net(str)", || {
            // Those that lie in the recording.
            std::thread::sleep(Duration::from_millis(700));
            server.ask(scene, "slowlog reset")?;
            std::thread::sleep(Duration::from_secs_f64(scene.seconds - 1.0));
            server.ask(scene, "slowlog get 20")
        })?;
        let lines: Vec<&str> = log.lines().collect();
        let keys = lines.windows(2).filter(|w| w[1].eq_ignore_ascii_case("keys")).filter_map(|w| w[0].parse().ok());
        let longest = keys.fold(0.0, f64::max) / 1e6;
        Ok(Recorded {
            trace,
            spans: spans(&[&format!("tcp:{}", server.port)]),
            longest_s: longest,
            what: "ran|waited-for",
        })
    },
};

/// Calls of a function of a server of our own.
const OWN: Case = Case {
    name: "own_uprobe",
    title: "A server with four threads, by its function",
    spans: "u:./server:handle_request(int,int)",
    needs: &["cc"],
    truth: "Each 50th request of a thread rebuilds an index for 25 ms with a lock that all need. The longest wait for it by the server's clock",
    right: Cause { what: "waited-for|ran", process: "^server", function: "^(rebuild_index|work)$" },
    record: |scene| {
        scene.write("server.c", include_str!("server.c"))?;
        scene.run("cc -O2 -pthread -o server server.c")?;
        let span = format!("u:{}:handle_request(int,int)", scene.dir.join("server").display());
        let trace = scene.record_command_with("./server > longest", &[&span])?;
        let longest_s = printed(scene)?;
        Ok(Recorded { trace, spans: spans(&["handle_request"]), longest_s, what: "waited-for" })
    },
};

/// Steps of a shell script, which marks them itself.
const MARKED: Case = Case {
    name: "script_marker",
    title: "A shell script's steps, by lines to trace_marker",
    spans: "marker",
    needs: &["sh", "sleep", "date"],
    truth: "Each tenth of 100 steps sleeps for 50 ms. The longest by the script's own clock",
    right: Cause { what: "waited-for|timer", process: "^sleep", function: "" },
    record: |scene| {
        let marker = "/sys/kernel/tracing/trace_marker";
        if !std::path::Path::new(marker).exists() {
            return Err(Missing("trace_marker".into()).into());
        }
        scene.write("steps.sh", &format!("exec 9>{marker}\n{STEPS}"))?;
        let trace = scene.record_command_with("sh steps.sh > longest", &["marker"])?;
        let longest_s = printed(scene)?;
        Ok(Recorded { trace, spans: spans(&["step", "--slow", "10%"]), longest_s, what: "" })
    },
};

/// A line that the kernel's own buffer does not take is an error that does not matter.
const STEPS: &str = "\
longest=0
for i in $(seq 100); do
    from=$(date +%s%N)
    echo \"B|$$|step\" >&9
    case $i in *9) sleep 0.05;; *) true;; esac
    echo E >&9
    took=$(( $(date +%s%N) - from ))
    [ $took -gt $longest ] && longest=$took
done 2>/dev/null
echo \"$longest\" | awk '{ print $1 / 1e9 }'
";

/// A web server's own tracing.
const PYTHON: Case = Case {
    name: "python_otlp",
    title: "Python's ThreadingHTTPServer, by OpenTelemetry's export",
    spans: "explain --spans otel.jsonl",
    needs: &["python3"],
    truth: "A request in a hundred recounts for 40 ms with a lock that all need. The longest wait for it by the server's clock",
    right: Cause { what: "waited-for", process: "^python", function: "^recount$" },
    record: |scene| {
        // As scripts/install-real.sh makes one, in the folder `target`.
        let own = scene.dir.ancestors().map(|above| above.join("real-python/bin/python")).find(|path| path.is_file());
        let python = own.map_or_else(|| "python3".to_owned(), |path| path.display().to_string());
        if scene
            .run(&format!("{python} -c 'import opentelemetry.sdk, opentelemetry.exporter.otlp.proto.common'"))
            .is_err()
        {
            return Err(
                Missing("Python with opentelemetry-sdk and opentelemetry-exporter-otlp-proto-common".into()).into()
            );
        }
        scene.write("server.py", include_str!("server.py"))?;
        let trace = scene.record_command_with(&format!("{python} server.py > longest"), &[])?;
        let otel = scene.dir.join("otel.jsonl").display().to_string();
        let longest_s = printed(scene)?;
        Ok(Recorded { trace, spans: spans(&[&otel, "--argument", "/item"]), longest_s, what: "waited-for" })
    },
};

fn spans(rest: &[&str]) -> Vec<String> {
    std::iter::once(&"--spans").chain(rest).map(|&word| word.to_owned()).collect()
}

/// What the program itself measured, in seconds.
fn printed(scene: &Scene) -> Result<f64> {
    let text = std::fs::read_to_string(scene.dir.join("longest"))?;
    text.trim().parse().with_context(|| format!("expected seconds: {text}"))
}
