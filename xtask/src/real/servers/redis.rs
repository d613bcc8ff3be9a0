//! Redis: one thread that stands still for all its clients. SLOWLOG and `strace -w` say why.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{CpuBound, Disk, Serial};

use super::instruments::attach_wall;
use crate::real::case::{Case, Client, Expect, Fix, HELD_UP, Is, Recorded};
use crate::real::scene::{Running, Scene, free_port, number_after, run_as};

const KEYS: usize = 1_000_000;

/// `KEYS` once a second stops everybody else.
pub const KEYS_COMMAND: Case = Case {
    name: "redis_keys",
    title: "Redis, KEYS once a second",
    command: "redis-benchmark -c 20 -t get; redis-cli -r -1 -i 1 keys 'none*'",
    needs: &["redis-server", "redis-cli", "redis-benchmark"],
    truth: "All 20 clients stand still while the one thread is in keysCommand. SLOWLOG, in µs:",
    expect: Expect {
        right: &[
            Is { stall: "keysCommand", ..Is::ANY },
            Is { kinds: &[CpuBound, Serial], function: "keysCommand", who: "redis-server", ..Is::ANY },
        ],
        vague: &[Is { kinds: &[CpuBound, Serial], who: "redis-server", ..Is::ANY }],
        nothing: false,
    },
    client: Some(Client {
        process: "redis-benchmark",
        expect: Expect {
            right: &[
                Is { stall: "redis-server|keysCommand", ..Is::ANY },
                Is { kinds: HELD_UP, who: "redis-server", ..Is::ANY },
            ],
            vague: &[],
            nothing: false,
        },
    }),
    record: |scene| {
        let server = Server::start(scene, "--appendonly no")?;
        let fill = format!("for i = 1, {KEYS} do redis.call('set', 'key:' .. i, i) end");
        server.ask(scene, &format!("eval \"{fill}\" 0"))?;
        let _load = server.benchmark(scene, "get")?;
        let _keys = scene.start(&format!("redis-cli -p {} -r -1 -i 1 keys 'none*'", server.port))?;
        let (trace, truth) = scene.record_pid(server.running.pid(), || {
            std::thread::sleep(std::time::Duration::from_secs_f64(scene.seconds - 0.5));
            let log = server.ask(scene, "slowlog get 4")?;
            let lines: Vec<&str> = log.lines().collect();
            let times =
                lines.windows(2).filter(|w| w[1].eq_ignore_ascii_case("keys")).map(|w| format!("keys {}", w[0]));
            Ok(times.collect::<Vec<_>>().join(", "))
        })?;
        Ok(Recorded { trace, truth, focus: "redis-server" })
    },
    fix: None,
};

/// Each write is on the disk before anybody is answered.
pub const FSYNC: Case = Case {
    name: "redis_fsync",
    title: "Redis, appendfsync always",
    command: "redis-benchmark -c 20 -t set",
    needs: &["redis-server", "redis-cli", "redis-benchmark", "strace"],
    truth: "Its one thread waits for the disk in flushAppendOnlyFile, its clients for it. strace -w:",
    expect: Expect {
        right: &[Is {
            kinds: &[Disk],
            function: "flushAppendOnlyFile|fdatasync|beforeSleep",
            who: "redis-server",
            ..Is::ANY
        }],
        vague: &[Is { kinds: &[Disk], who: "redis-server", ..Is::ANY }],
        nothing: false,
    },
    client: Some(Client {
        process: "redis-benchmark",
        expect: Expect { right: &[Is { kinds: HELD_UP, who: "redis-server", ..Is::ANY }], vague: &[], nothing: false },
    }),
    record: |scene| {
        let server = Server::start(scene, "--appendonly yes --appendfsync always")?;
        let _load = server.benchmark(scene, "set")?;
        let truth = attach_wall(scene, server.running.pid(), &["fdatasync", "epoll_wait"])?;
        let (trace, _) = scene.record_pid(server.running.pid(), || Ok(String::new()))?;
        Ok(Recorded { trace, truth, focus: "redis-server" })
    },
    fix: Some(Fix {
        what: "appendfsync everysec",
        rate: |scene, fixed| {
            let policy = if fixed { "everysec" } else { "always" };
            let server = Server::start(scene, &format!("--appendonly yes --appendfsync {policy}"))?;
            let count = if fixed { 200_000 } else { 40_000 };
            let said =
                scene.run(&format!("redis-benchmark -p {} -c 20 -n {count} -t set --csv | tail -n 1", server.port))?;
            number_after(&said.replace('"', ""), "SET,")
        },
    }),
};

/// A server of the case's own.
pub struct Server {
    /// Its process.
    pub running: Running,
    /// Where it listens.
    pub port: u16,
}

impl Server {
    /// With `options` on its command line.
    pub fn start(scene: &Scene, options: &str) -> Result<Server> {
        scene.run("rm -rf appendonlydir data; mkdir data")?;
        let (port, user) = (free_port()?, run_as("redis"));
        if !user.is_empty() {
            scene.run("chown redis data")?;
        }
        let dir = scene.dir.join("data");
        let command = format!("{user} redis-server --port {port} --save '' --dir {} {options}", dir.display());
        let running = scene.start_until(&command, &format!("redis-cli -p {port} ping | grep -q PONG"))?;
        Ok(Server { running, port })
    }

    /// What its client prints of `command`.
    pub fn ask(&self, scene: &Scene, command: &str) -> Result<String> {
        scene.run(&format!("redis-cli -p {} {command}", self.port))
    }

    /// Its 20 clients, without an end.
    pub fn benchmark(&self, scene: &Scene, test: &str) -> Result<Running> {
        scene.start(&format!("redis-benchmark -p {} -c 20 -n 1000000000 -t {test} -q", self.port))
    }
}
