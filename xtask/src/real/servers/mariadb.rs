//! MariaDB: InnoDB's log; `information_schema` says who waits.

use anyhow::{Context, Result};
use holdup_analysis::report::FindingKind::{Convoy, Disk, LockHeld, SleepPolling};

use crate::real::case::{Case, Client, Expect, Fix, HELD_UP, Is, Recorded};
use crate::real::scene::{Running, Scene, program, run_as, shares};

/// Eight clients update a row each, and wait for its commit to be on the disk. One row for all of them is no slower: InnoDB
/// lets a row go before the log is written (`Innodb_row_lock_time`).
pub const COMMIT: Case = Case {
    name: "mariadb_commit",
    title: "MariaDB, a commit for each row",
    command: "mysqlslap --concurrency=8 --query='update t set n = n + 1 where id = 1'",
    needs: &["mariadbd|mysqld", "mariadb-install-db|mysql_install_db", "mariadb|mysql", "mariadb-slap|mysqlslap"],
    truth: "Its connections wait for the log to be on the disk (state Commit). information_schema.processlist:",
    expect: Expect {
        right: &[Is { kinds: &[Disk], function: LOG, ..Is::ANY }],
        vague: &[Is { kinds: &[LockHeld, Convoy, Disk], ..Is::ANY }],
        nothing: false,
    },
    client: Some(Client {
        process: "mariadb-slap",
        expect: Expect {
            right: &[Is { kinds: HELD_UP, who: "mariadbd|mysqld", ..Is::ANY }],
            vague: &[],
            nothing: false,
        },
    }),
    record: |scene| {
        let server = Server::start(scene, "")?;
        let _load = scene.start(&format!("sh -c 'while :; do {}; done'", server.slap(20_000)?))?;
        server.recorded(scene)
    },
    fix: Some(Fix {
        what: "innodb_flush_log_at_trx_commit = 0",
        rate: |scene, fixed| {
            let server = Server::start(scene, if fixed { "--innodb-flush-log-at-trx-commit=0" } else { "" })?;
            let begun = std::time::Instant::now();
            scene.run(&server.slap(8000)?)?;
            Ok(8000.0 / begun.elapsed().as_secs_f64())
        },
    }),
};

/// One session keeps the table, and sleeps.
pub const METADATA: Case = Case {
    name: "mariadb_metadata",
    title: "MariaDB, a table that a sleeping session has locked",
    command: "mysqlslap --concurrency=6 --query='insert into t …', beside: lock tables t write; do sleep(0.2); unlock tables",
    truth: "Its connections wait for the table's metadata lock, whose owner sleeps. information_schema.processlist:",
    expect: Expect {
        right: &[
            Is {
                kinds: &[LockHeld, SleepPolling],
                hung: "MDL_|metadata",
                function: "sleep|Interruptible_wait",
                ..Is::ANY
            },
            Is { kinds: &[LockHeld], hung: "MDL_|metadata", title: "asleep", ..Is::ANY },
        ],
        vague: &[Is { hung: "MDL_", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        let server = Server::start(scene, "--innodb-flush-log-at-trx-commit=0")?;
        server.ask(scene, "create table b.m (n int) engine = innodb")?;
        let client = program("mariadb|mysql").context("mariadb")?;
        let _owner = scene.start(&format!(
            "sh -c 'while :; do echo \"lock tables m write; do sleep(0.2); unlock tables; do sleep(0.02);\"; done | {} --no-defaults -uroot -S {} b'",
            client.display(),
            server.socket
        ))?;
        let _load = scene.start(&server.insert(10_000_000)?)?;
        server.recorded(scene)
    },
    fix: None,
    ..COMMIT
};

/// What InnoDB calls the log's way to the disk.
const LOG: &str = "log_write_up_to|log_t::|log_flush|trx_flush_log|trx_commit|ha_commit|trans_commit|fdatasync|fsync";

struct Server {
    running: Running,
    socket: String,
}

impl Server {
    fn start(scene: &Scene, option: &str) -> Result<Server> {
        let user = run_as("mysql");
        scene.run(&format!(
            "rm -rf data; mkdir data; {}",
            if user.is_empty() { "true" } else { "chown mysql data ." }
        ))?;
        let data = scene.dir.join("data");
        // A socket's path must be short.
        let socket = format!("/tmp/holdup-real-{}.sock", std::process::id());
        let tool = |names: &str| program(names).map(|p| p.display().to_string()).context(names.to_owned());
        let install = tool("mariadb-install-db|mysql_install_db")?;
        scene.run(&format!(
            "{user} {install} --no-defaults --datadir={} --auth-root-authentication-method=normal --skip-test-db",
            data.display()
        ))?;
        let command = format!(
            "{user} {} --no-defaults --datadir={} --skip-networking --socket={socket} --pid-file={}/pid {option}",
            tool("mariadbd|mysqld")?,
            data.display(),
            data.display(),
        );
        let client = tool("mariadb|mysql")?;
        let running =
            scene.start_until(&command, &format!("{client} --no-defaults -uroot -S {socket} -e 'select 1'"))?;
        let server = Server { running, socket };
        server.ask(scene, "create database b; use b; create table t(id int primary key, n bigint) engine = innodb")?;
        server.ask(scene, "insert into b.t values (1,0),(2,0),(3,0),(4,0),(5,0),(6,0),(7,0),(8,0)")?;
        Ok(server)
    }

    fn ask(&self, scene: &Scene, sql: &str) -> Result<String> {
        let client = program("mariadb|mysql").context("mariadb")?;
        scene.run(&format!("{} --no-defaults -uroot -N -S {} -e '{sql}'", client.display(), self.socket))
    }

    /// Records it, and samples what its connections wait for.
    fn recorded(&self, scene: &Scene) -> Result<Recorded> {
        let states =
            "select state from information_schema.processlist where command <> \"Sleep\" and id <> connection_id()";
        let (trace, seen) = scene.record_pid(self.running.pid(), || {
            let mut seen = String::new();
            for _ in 0..(scene.seconds * 4.0) as usize {
                seen += &self.ask(scene, states)?;
                std::thread::sleep(std::time::Duration::from_millis(150));
            }
            Ok(seen)
        })?;
        Ok(Recorded { trace, truth: shares(&seen, 3), focus: "mariadbd" })
    }

    fn slap(&self, queries: usize) -> Result<String> {
        self.clients(8, queries, "update t set n = n + 1 where id = 1")
    }

    fn insert(&self, queries: usize) -> Result<String> {
        self.clients(6, queries, "insert into m values (1)")
    }

    fn clients(&self, clients: usize, queries: usize, sql: &str) -> Result<String> {
        let slap = program("mariadb-slap|mysqlslap").context("mysqlslap")?;
        Ok(format!(
            "{} --no-defaults -uroot -S {} --create-schema=b --no-drop --concurrency={clients} \
             --number-of-queries={queries} --query=\"{sql}\"",
            slap.display(),
            self.socket
        ))
    }
}
