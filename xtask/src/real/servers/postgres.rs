//! PostgreSQL: who waits is known from `pg_stat_activity`, sampled while the recorder runs.

use std::path::Path;

use anyhow::{Context, Result};
use holdup_analysis::report::FindingKind::{Convoy, Disk, LockHeld, Serial};

use crate::real::case::{Case, Client, Expect, Fix, HELD_UP, Is, Recorded};
use crate::real::scene::{Running, Scene, free_port, number_after, program, run_as, shares};

const NEEDS: &[&str] = &["initdb", "postgres", "pgbench", "psql"];
/// What an author of PostgreSQL calls a backend's wait for a row, a transaction or an advisory lock.
const FOR_A_LOCK: &str =
    "^(ProcSleep|WaitOnLock|LockAcquireExtended|LockAcquire|XactLockTableWait|LockTuple|heap_update)$";
/// The same, for a table.
const FOR_A_TABLE: &str = "^(ProcSleep|WaitOnLock|LockAcquireExtended|LockAcquire|LockRelationOid)$";
/// What the owner of the row is in: the log's way to the disk.
const COMMIT: &str = "XLogFlush|XLogWrite|issue_xlog_fsync|CommitTransaction";
/// Of pgbench, which only waits for answers, the same is right, or that it waits for the server at all.
const FOR_POSTGRES: Is = Is { kinds: HELD_UP, who: "postgres", ..Is::ANY };

/// Eight clients update one row, each until its commit is on the disk.
pub const HOT_ROW: Case = Case {
    name: "pg_hot_row",
    title: "PostgreSQL, hot row",
    command: "pgbench -c 8 -f one-row.sql",
    needs: NEEDS,
    truth: "7 of 8 clients wait for the row (Lock/transactionid, Lock/tuple); its owner is in the fsync of its commit. \
            pg_stat_activity:",
    expect: Expect {
        right: &[
            Is { kinds: &[LockHeld, Convoy, Disk], hung: FOR_A_LOCK, function: COMMIT, ..Is::ANY },
            Is { kinds: &[Disk, LockHeld], function: COMMIT, who: "postgres", ..Is::ANY },
        ],
        vague: &[Is { hung: FOR_A_LOCK, ..Is::ANY }, Is { function: COMMIT, ..Is::ANY }],
        nothing: false,
    },
    client: Some(Client { process: "pgbench", expect: Expect { right: &[FOR_POSTGRES], vague: &[], nothing: false } }),
    record: |scene| record(scene, "", &ONE_ROW.replace("ROW", "1")),
    fix: Some(Fix {
        what: "8 rows",
        rate: |scene, fixed| rate(scene, "", &ONE_ROW.replace("ROW", if fixed { ":client_id + 1" } else { "1" })),
    }),
};

const ONE_ROW: &str = "\\set row ROW\nupdate t set n = n + 1 where id = :row;\n";

/// The same row, kept while the transaction computes.
pub const HOT_WORK: Case = Case {
    name: "pg_hot_work",
    title: "PostgreSQL, row kept while its transaction computes",
    command: "pgbench -c 8 -f update-then-sum.sql",
    truth: "7 of 8 clients wait for the row; its owner sums up 20,000 others, 2 ms. pg_stat_activity:",
    expect: Expect {
        right: &[Is {
            kinds: &[LockHeld, Convoy],
            hung: FOR_A_LOCK,
            function: "Exec|Portal|PostgresMain|secure_read|pq_getbyte",
            ..Is::ANY
        }],
        vague: &[Is { hung: FOR_A_LOCK, who: "postgres", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| record(scene, ASYNC, &THEN_SUM.replace("ROW", "1")),
    fix: Some(Fix {
        what: "8 rows",
        rate: |scene, fixed| rate(scene, ASYNC, &THEN_SUM.replace("ROW", if fixed { ":client_id + 1" } else { "1" })),
    }),
    ..HOT_ROW
};

/// A transaction locks the whole table, and computes.
pub const TABLE_LOCK: Case = Case {
    name: "pg_table_lock",
    title: "PostgreSQL, a table that a computing transaction has locked",
    command: "pgbench -c 6 -f insert.sql; pgbench: begin, lock table … in share mode, select sum(…), commit, 50 ms of nothing",
    truth: "The inserting clients wait for the table; its owner sums up, on one of two CPUs. pg_stat_activity:",
    expect: Expect {
        right: &[Is {
            kinds: &[LockHeld, Convoy, Serial],
            hung: FOR_A_TABLE,
            function: "Exec|Portal|advance|generate_series|numeric|int8",
            ..Is::ANY
        }],
        vague: &[Is { hung: FOR_A_TABLE, ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| {
        let server = Server::start(scene, ASYNC)?;
        let _owner = server.lock_table(scene, false)?;
        let _load = server.pgbench(scene, 6)?;
        server.recorded(scene)
    },
    fix: Some(Fix {
        what: "summed up before the lock",
        rate: |scene, fixed| {
            let server = Server::start(scene, ASYNC)?;
            let _owner = server.lock_table(scene, fixed)?;
            server.rate(scene, 6)
        },
    }),
    ..HOT_ROW
};

const ASYNC: &str = "synchronous_commit = off";
const THEN_SUM: &str =
    "\\set row ROW\nbegin;\nupdate t set n = n + 1 where id = :row;\nselect sum(id) from t;\ncommit;\n";

/// The row's owner waits for its client, who sleeps between update and commit.
pub const IDLE_TRANSACTION: Case = Case {
    name: "pg_idle_transaction",
    title: "PostgreSQL, row kept by an idle transaction",
    command: "pgbench -c 7 -f one-row.sql; psql: begin, update, 0.4 s of nothing, commit",
    truth: "7 clients wait for the row, which a session that is \"idle in transaction\" keeps. pg_stat_activity:",
    expect: Expect {
        right: &[
            Is {
                hung: FOR_A_LOCK,
                function: "secure_read|pq_getbyte|SocketBackend|ReadCommand|PostgresMain",
                who: "postgres",
                ..Is::ANY
            },
            Is { hung: FOR_A_LOCK, title: "client|input|outside|psql", ..Is::ANY },
        ],
        vague: &[Is { hung: FOR_A_LOCK, ..Is::ANY }],
        nothing: false,
    },
    record: |scene| {
        let server = Server::start(scene, ASYNC)?;
        scene.write("load.sql", &ONE_ROW.replace("ROW", "1"))?;
        let _load = server.pgbench(scene, 7)?;
        let _idle = scene.start(&format!(
            "sh -c 'while :; do echo \"begin; update t set n = n + 1 where id = 1;\"; sleep 0.4; echo \"commit;\"; sleep \
             0.1; done | {} psql -qX >psql.log 2>&1'",
            server.at
        ))?;
        server.recorded(scene)
    },
    fix: None,
    ..HOT_ROW
};

/// Each commit waits for the disk, one at a time for all that came meanwhile.
pub const GROUP_COMMIT: Case = Case {
    name: "pg_group_commit",
    title: "PostgreSQL, group commit",
    command: "pgbench -c 8 -f insert.sql",
    truth: "Most clients wait for the one that writes the log (LWLock/WALWrite), which waits for the disk (IO/WALSync). \
            pg_stat_activity:",
    expect: Expect {
        right: &[Is { kinds: &[Disk], function: COMMIT, ..Is::ANY }],
        vague: &[Is { kinds: &[LockHeld, Convoy], hung: "LWLockAcquireOrWait|XLogFlush", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| record(scene, "", INSERT),
    fix: Some(Fix {
        what: "synchronous_commit = off",
        rate: |scene, fixed| rate(scene, if fixed { ASYNC } else { "" }, INSERT),
    }),
    ..HOT_ROW
};

const INSERT: &str = "insert into log(n) values (1);\n";

/// A lock of the application's own, around a computation.
pub const ADVISORY: Case = Case {
    name: "pg_advisory",
    title: "PostgreSQL, advisory lock around a query",
    command: "pgbench -c 8 -f lock-then-sum.sql",
    truth: "7 of 8 clients wait in Lock/advisory, the eighth runs its query on one of two CPUs. pg_stat_activity:",
    expect: Expect {
        right: &[Is {
            kinds: &[LockHeld, Convoy],
            hung: FOR_A_LOCK,
            function: "ExecutorRun|PortalRun|ExecAgg|heap",
            ..Is::ANY
        }],
        vague: &[Is { function: "ExecutorRun|PortalRun|ExecAgg|heap", ..Is::ANY }],
        nothing: false,
    },
    record: |scene| record(scene, ASYNC, &SUM.replace("LOCK", LOCK)),
    fix: Some(Fix {
        what: "a lock for each client",
        rate: |scene, fixed| rate(scene, ASYNC, &SUM.replace("LOCK", if fixed { OWN_LOCK } else { LOCK })),
    }),
    ..HOT_ROW
};

const LOCK: &str = "select pg_advisory_xact_lock(7);";
/// The same work, and nobody waits.
const OWN_LOCK: &str = "select pg_advisory_xact_lock(:client_id);";
const SUM: &str = "begin;\nLOCK\nselect sum(id) from t where n < 1000000;\ncommit;\n";

/// A server of the case's own.
pub struct Server {
    /// Its first process.
    pub running: Running,
    /// Where it is, for the environment of psql and pgbench.
    pub at: String,
}

impl Server {
    /// With `conf` in its configuration, and the tables `t` of 20,000 rows and `log`.
    pub fn start(scene: &Scene, conf: &str) -> Result<Server> {
        Server::start_under(scene, "", conf)
    }

    /// The same, started by the command `under`, such as taskset.
    pub fn start_under(scene: &Scene, under: &str, conf: &str) -> Result<Server> {
        let (data, port, user) = (scene.dir.join("data"), free_port()?, run_as("postgres"));
        let _ = std::fs::remove_dir_all(&data);
        std::fs::create_dir(&data)?;
        if !user.is_empty() {
            scene.run(&format!("chown postgres {}", data.display()))?;
        }
        let tool = |name: &str| Ok::<_, anyhow::Error>(program(name).context(name.to_owned())?.display().to_string());
        scene.run(&format!("{user} {} -D {} -U postgres -A trust -N", tool("initdb")?, data.display()))?;
        let conf = format!(
            "{conf}\nlisten_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = ''\nshared_buffers = 64MB\n"
        );
        let main = Path::new(&data).join("postgresql.conf");
        std::fs::write(&main, std::fs::read_to_string(&main)? + &conf)?;
        let at = format!("PGHOST=127.0.0.1 PGPORT={port} PGUSER=postgres PGDATABASE=postgres");
        let command = format!("{under} {user} {} -D {}", tool("postgres")?, data.display());
        let running = scene.start_until(&command, &format!("{at} psql -c 'select 1'"))?;
        let server = Server { running, at };
        server.query(scene, "create table t(id int primary key, n bigint) with (fillfactor = 50)")?;
        server.query(scene, "insert into t select g, 0 from generate_series(1, 20000) g")?;
        server.query(scene, "create table log(id serial primary key, n bigint)")?;
        Ok(server)
    }

    fn query(&self, scene: &Scene, sql: &str) -> Result<String> {
        scene.run(&format!("{} psql -qAtX -v ON_ERROR_STOP=1 -c \"{sql}\"", self.at))
    }

    fn pgbench(&self, scene: &Scene, clients: usize) -> Result<Running> {
        let seconds = scene.load_seconds();
        scene.start(&format!("env {} pgbench -n -c {clients} -j 2 -T {seconds} -f load.sql", self.at))
    }

    /// Starts who locks the table again and again, and sums up with the lock or `before` it; writes what others do meanwhile.
    fn lock_table(&self, scene: &Scene, before: bool) -> Result<Running> {
        let sum = "select sum(i::bigint * i) from generate_series(1, 400000) i;";
        let lock = "lock table log in share mode;";
        let [first, second] = if before { [sum, lock] } else { [lock, sum] };
        scene.write("lock.sql", &format!("begin;\n{first}\n{second}\ncommit;\nselect pg_sleep(0.05);\n"))?;
        scene.write("load.sql", "insert into log(n) values (1);\n")?;
        let seconds = scene.load_seconds();
        scene.start(&format!("env {} pgbench -n -c 1 -T {seconds} -f lock.sql", self.at))
    }

    /// Transactions of the load each second.
    fn rate(&self, scene: &Scene, clients: usize) -> Result<f64> {
        let said = scene.run(&format!("{} pgbench -n -c {clients} -j 2 -T 3 -f load.sql", self.at))?;
        number_after(&said, "tps =")
    }

    /// Records the server, and samples what its backends wait for.
    fn recorded(&self, scene: &Scene) -> Result<Recorded> {
        let sample = "select coalesce(wait_event_type || '/' || wait_event, 'CPU') || case when state like 'idle in%' then \
                      ', idle in transaction' else '' end from pg_stat_activity where backend_type = 'client backend' \
                      and pid <> pg_backend_pid()";
        let (trace, seen) = scene.record_pid(self.running.pid(), || {
            let mut seen = String::new();
            for _ in 0..(scene.seconds * 5.0) as usize {
                seen += &self.query(scene, sample)?;
                std::thread::sleep(std::time::Duration::from_millis(150));
            }
            Ok(seen)
        })?;
        Ok(Recorded { trace, truth: shares(&seen, 4), focus: "postgres" })
    }
}

fn record(scene: &Scene, conf: &str, script: &str) -> Result<Recorded> {
    let server = Server::start(scene, conf)?;
    scene.write("load.sql", script)?;
    let _load = server.pgbench(scene, 8)?;
    server.recorded(scene)
}

fn rate(scene: &Scene, conf: &str, script: &str) -> Result<f64> {
    let server = Server::start(scene, conf)?;
    scene.write("load.sql", script)?;
    server.rate(scene, 8)
}
