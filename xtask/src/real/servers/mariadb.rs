//! MariaDB: InnoDB's row locks; `information_schema` says who waits.

use anyhow::{Context, Result};
use holdup_analysis::report::FindingKind::{Convoy, Disk, LockHeld};

use crate::real::case::{Case, Client, Expect, Fix, HELD_UP, Is, Recorded};
use crate::real::scene::{Running, Scene, program, run_as, shares};

/// What an author of InnoDB calls a wait for a row.
const FOR_A_ROW: &str = "lock_wait|lock_rec|row_mysql_handle_errors|row_upd|row_search|ha_innobase";

/// Eight clients update one row, each until its commit is on the disk.
pub const HOT_ROW: Case = Case {
    name: "mariadb_hot_row",
    title: "MariaDB, hot row",
    command: "mysqlslap --concurrency=8 --query='update t set n = n + 1 where id = 1'",
    needs: &["mariadbd|mysqld", "mariadb-install-db|mysql_install_db", "mariadb|mysql", "mariadb-slap|mysqlslap"],
    truth: "7 of 8 connections wait for the row; its owner is in its commit. innodb_trx:",
    expect: Expect {
        right: &[
            Is { kinds: &[LockHeld, Convoy, Disk], hung: FOR_A_ROW, ..Is::ANY },
            Is {
                kinds: &[LockHeld, Disk],
                function: "log_write_up_to|trx_commit|log_t|ha_commit|fdatasync|fsync",
                ..Is::ANY
            },
        ],
        vague: &[Is { hung: FOR_A_ROW, ..Is::ANY }, Is { kinds: &[LockHeld, Convoy, Disk], ..Is::ANY }],
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
        let server = Server::start(scene)?;
        let _load = scene.start(&format!("sh -c 'while :; do {}; done'", server.slap("1", 20_000)?))?;
        let (trace, seen) = scene.record_pid(server.running.pid(), || {
            let mut seen = String::new();
            for _ in 0..(scene.seconds * 4.0) as usize {
                seen += &server.ask(scene, "select trx_state from information_schema.innodb_trx")?;
                std::thread::sleep(std::time::Duration::from_millis(150));
            }
            Ok(seen)
        })?;
        Ok(Recorded { trace, truth: shares(&seen, 3), focus: "mariadbd" })
    },
    fix: Some(Fix {
        what: "8 rows",
        rate: |scene, fixed| {
            let server = Server::start(scene)?;
            let row = if fixed { "1 + connection_id() % 8" } else { "1" };
            let begun = std::time::Instant::now();
            scene.run(&server.slap(row, 4000)?)?;
            Ok(4000.0 / begun.elapsed().as_secs_f64())
        },
    }),
};

struct Server {
    running: Running,
    socket: String,
}

impl Server {
    fn start(scene: &Scene) -> Result<Server> {
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
            "{user} {} --no-defaults --datadir={} --skip-networking --socket={socket} --pid-file={}/pid",
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

    fn slap(&self, row: &str, queries: usize) -> Result<String> {
        let slap = program("mariadb-slap|mysqlslap").context("mysqlslap")?;
        Ok(format!(
            "{} --no-defaults -uroot -S {} --create-schema=b --no-drop --concurrency=8 --number-of-queries={queries} \
             --query=\"update t set n = n + 1 where id = {row}\"",
            slap.display(),
            self.socket
        ))
    }
}
