//! The driver of PostgreSQL against a real server.

#![cfg(feature = "postgres")]

mod calls;
mod servers;

use std::path::PathBuf;

use calls::{Silent, connected, int, is_pending, list, map, must_break, options, positional, text, thread};
use holdup_load::driver::{Args, Driver, TlsOptions, Value, Want, connect};
use servers::Server;

#[track_caller]
fn server() -> Option<Server> {
    servers::postgres::start(None).inspect_err(|why| servers::skip("PostgreSQL", servers::postgres::NEEDS, why)).ok()
}

fn address(server: &Server) -> String {
    format!("postgres://ana:secret@127.0.0.1:{}/postgres", server.port)
}

async fn run(driver: &dyn Driver, statement: &str) {
    driver.execute(statement, &Args::None, Want::Nothing).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
}

#[test]
fn rows_come_back() {
    let Some(server) = server() else { return };
    thread(async {
        let mut options = options(&address(&server));
        options.connections = 3;
        let driver = connected(&options).await;
        let about = driver.server().expect("a server that tells its version").to_string();
        assert!(about.starts_with("PostgreSQL 1") && !about.contains("compiled"), "{about}");
        run(&*driver, "CREATE TABLE wide (a int PRIMARY KEY, b text); CREATE TABLE other (a int)").await;
        driver.prepare("insert", "INSERT INTO wide (a, b) VALUES ($1, $2)").await.expect("prepared");
        for number in 0..1000 {
            let args = positional([int(number), text(&format!("row {number}"))]);
            let reply = driver.execute_prepared("insert", &args, Want::Nothing).await.expect("inserted");
            assert_eq!((reply.rows, reply.values), (0, None));
        }
        driver.prepare("one", "SELECT a, b FROM wide WHERE a = $1").await.expect("prepared");
        let reply = driver.execute_prepared("one", &positional([int(7)]), Want::Values).await.expect("read");
        assert_eq!((reply.rows, reply.values), (1, Some(list([map([("a", int(7)), ("b", text("row 7"))])]))));
        let all = "SELECT a FROM wide ORDER BY a";
        let reply = driver.execute(all, &Args::None, Want::Nothing).await.expect("read");
        assert_eq!((reply.rows, reply.values), (1000, None));
        let reply = driver.execute(all, &Args::None, Want::Values).await.expect("read");
        assert_eq!(reply.values, Some(Value::List((0..1000).map(|a| map([("a", int(a))])).collect())));
        // The same key with another text, on all connections.
        driver.prepare("one", "SELECT b FROM wide WHERE a = $1 + 1").await.expect("prepared again");
        for _ in 0..6 {
            let reply = driver.execute_prepared("one", &positional([int(7)]), Want::Values).await.expect("read");
            assert_eq!(reply.values, Some(list([map([("b", text("row 8"))])])));
        }
    });
}

#[test]
fn each_type() {
    let Some(server) = server() else { return };
    thread(async {
        let driver = connected(&options(&address(&server))).await;
        run(&*driver, "CREATE TYPE mood AS ENUM ('glad', 'sad'); CREATE DOMAIN small AS int CHECK (value < 10)").await;
        let id = text("00000000-0000-4000-8000-0000000000ff");
        let mut id_bytes = [0; 16];
        (id_bytes[6], id_bytes[8], id_bytes[15]) = (0x40, 0x80, 0xff);
        let numbers = list([int(1), Value::Null, int(-3)]);
        // The type, what is given, and what comes back.
        for (ty, given, back) in [
            ("int2", int(-32768), int(-32768)),
            ("int4", int(7), int(7)),
            ("int8", int(i64::MIN), int(i64::MIN)),
            ("float4", Value::Float(0.5), Value::Float(0.5)),
            ("float8", int(3), Value::Float(3.0)),
            ("numeric", text("-12345678901234567890.0250"), text("-12345678901234567890.0250")),
            ("numeric", Value::Float(0.000_125), text("0.000125")),
            ("numeric", int(100_000_000), text("100000000")),
            ("text", text("naïve"), text("naïve")),
            ("varchar(9)", text("short"), text("short")),
            ("bool", Value::Bool(false), Value::Bool(false)),
            ("bytea", Value::Blob(vec![0, 255]), Value::Blob(vec![0, 255])),
            ("uuid", id, Value::Uuid(id_bytes)),
            ("timestamp", int(-1), int(-1)),
            ("timestamptz", text("2026-11-21T11:06:22.5+01:00"), int(1_795_255_582_500)),
            ("date", text("1969-12-31"), int(-1)),
            ("time", int(1_000), int(1_000)),
            ("json", text("{\"a\":1}"), text("{\"a\":1}")),
            ("jsonb", text("{\"a\":1}"), text("{\"a\": 1}")),
            ("int4[]", numbers.clone(), numbers),
            ("text[]", list([]), list([])),
            ("mood", text("glad"), text("glad")),
            ("small", int(9), int(9)),
            ("int4", Value::Null, Value::Null),
        ] {
            let reply = driver
                .execute(&format!("SELECT $1::{ty} AS v"), &positional([given]), Want::Values)
                .await
                .unwrap_or_else(|error| panic!("{ty}: {error}"));
            assert_eq!(reply.values, Some(list([map([("v", back)])])), "{ty}");
        }
        let reply =
            driver.execute("SELECT '{{1,2},{3,4}}'::int4[] AS v", &Args::None, Want::Values).await.expect("read");
        let square = list([list([int(1), int(2)]), list([int(3), int(4)])]);
        assert_eq!(reply.values, Some(list([map([("v", square)])])));
    });
}

#[test]
fn mistakes() {
    let Some(server) = server() else { return };
    thread(async {
        let driver = connected(&options(&address(&server))).await;
        for (statement, part) in [
            ("SELEC 1", "syntax error at or near \"SELEC\""),
            ("SELECT * FROM absent", "\"absent\" does not exist (42P01)"),
            ("SELECT 1 / 0", "division by zero"),
        ] {
            let error = driver.execute(statement, &Args::None, Want::Nothing).await.expect_err(statement);
            assert!(error.message.contains(part) && !error.is_transient, "{error:?}");
        }
        let error = driver.prepare("wrong", "SELECT nothing FROM pg_class").await.expect_err("no such column");
        assert!(error.message.contains("\"nothing\"") && !error.is_transient, "{error:?}");
        let error = driver.execute_prepared("wrong", &Args::None, Want::Nothing).await.expect_err("not prepared");
        assert!(error.message.contains("prepare"), "{error:?}");

        driver.prepare("add", "SELECT $1::int4 + $2::int4 AS sum").await.expect("prepared");
        for (args, part) in [
            (positional([int(1)]), "2 placeholders, but 1"),
            (Args::None, "2 placeholders, but 0"),
            (positional([int(1), text("x")]), "$2 (int4) can't be bound: a text is not of type int4"),
            (positional([int(1 << 31), int(0)]), "$1 (int4) can't be bound: 2147483648 is out of its range"),
            (Args::Named(vec![("a".into(), int(1))]), "$1, $2"),
        ] {
            let error = driver.execute_prepared("add", &args, Want::Nothing).await.expect_err(part);
            assert!(error.message.contains(part) && !error.is_transient, "{error:?}");
        }
        let reply = driver.execute_prepared("add", &positional([int(1), int(2)]), Want::Values).await.expect("read");
        assert_eq!(reply.values, Some(list([map([("sum", int(3))])])), "the connection is as good as before");
        // What a rival's transaction ruined can be tried again.
        let error = driver
            .execute("DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END $$", &Args::None, Want::Nothing)
            .await
            .expect_err("it raises");
        assert!(error.message.contains("lost (40001)") && error.is_transient, "{error:?}");

        let mut wrong = options(&address(&server));
        wrong.password = Some("guessed".into());
        let error = connect(&wrong).await.err().expect("a wrong password");
        assert!(error.message.contains("password authentication failed") && !error.is_transient, "{error:?}");
        let silent = Silent::new();
        let nobody = options(&format!("postgres://127.0.0.1:{}", silent.port()));
        let error = connect(&nobody).await.err().expect("nobody listens");
        assert!(error.message.contains("127.0.0.1") && error.is_transient, "{error:?}");
    });
}

#[test]
fn a_lost_connection_comes_back() {
    let Some(server) = server() else { return };
    thread(async {
        let driver = connected(&options(&address(&server))).await;
        driver.prepare("own", "SELECT pg_backend_pid() AS pid").await.expect("prepared");
        let error = driver
            .execute("SELECT pg_terminate_backend(pg_backend_pid())", &Args::None, Want::Nothing)
            .await
            .expect_err("it ends itself");
        assert!(error.message.contains("administrator") && error.is_transient, "{error:?}");
        driver.execute_prepared("own", &Args::None, Want::Nothing).await.expect("connected and prepared again");
    });
}

#[test]
fn frozen_and_killed() {
    let Some(server) = server() else { return };
    thread(async {
        let options = options(&address(&server));
        let driver = connected(&options).await;
        let reply = driver.execute("SELECT pg_backend_pid() AS pid", &Args::None, Want::Values).await.expect("read");
        let Some(Value::List(rows)) = reply.values else { panic!("no rows") };
        let [Value::Map(pairs)] = &rows[..] else { panic!("{rows:?}") };
        let Value::Int(backend) = pairs[0].1 else { panic!("{pairs:?}") };
        // Each connection has a process of its own, which goes on while the first one is frozen.
        servers::signal("-STOP", &backend.to_string());
        is_pending(driver.execute("SELECT 1", &Args::None, Want::Nothing)).await;
        servers::signal("-CONT", &backend.to_string());
        driver.execute("SELECT 1", &Args::None, Want::Nothing).await.expect("it answers again");
        must_break(&*driver, "SELECT 1", || server.kill()).await;
    });
}

#[test]
fn tls() {
    let certificate = match servers::certificate::make() {
        Ok(certificate) => certificate,
        Err(why) => return servers::skip("certificate", servers::certificate::NEEDS, &why),
    };
    let server = match servers::postgres::start(Some((&certificate.chain, &certificate.key))) {
        Ok(server) => server,
        Err(why) => return servers::skip("PostgreSQL", servers::postgres::NEEDS, &why),
    };
    thread(async {
        let select = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let trusted = TlsOptions { ca: Some(certificate.chain.clone()), ..TlsOptions::default() };
        let insecure = TlsOptions { insecure: true, ..TlsOptions::default() };
        for (tls, is_encrypted) in [(None, false), (Some(trusted), true), (Some(insecure), true)] {
            let mut options = options(&address(&server));
            options.tls = tls;
            let driver = connected(&options).await;
            let reply = driver.execute(select, &Args::None, Want::Values).await.expect("read");
            assert_eq!(reply.values, Some(list([map([("ssl", Value::Bool(is_encrypted))])])));
        }
        let mut options = options(&address(&server));
        let other = servers::certificate::make().expect("made before");
        options.tls = Some(TlsOptions { ca: Some(other.chain.clone()), ..TlsOptions::default() });
        let error = connect(&options).await.err().expect("nobody trusts it");
        assert!(error.message.contains("certificate") && !error.is_transient, "{error:?}");
        options.tls = Some(TlsOptions { ca: Some(PathBuf::from("/absent.pem")), ..TlsOptions::default() });
        let error = connect(&options).await.err().expect("no such file");
        assert!(error.message.contains("/absent.pem") && !error.is_transient, "{error:?}");
    });
}
