//! The driver of CQL against a real Cassandra.

#![cfg(feature = "cql")]

mod calls;
mod servers;

use std::path::Path;

use calls::{Silent, connected, int, is_pending, list, must_break, options, positional, text, thread};
use holdup_load::driver::{Args, Driver, TlsOptions, Value, Want, connect};
use servers::certificate::Certificate;

/// One node serves all of it, since it takes long to start; the last step kills it.
#[test]
fn cassandra() {
    let certificate = servers::certificate::make()
        .inspect_err(|why| servers::skip("certificate", servers::certificate::NEEDS, why))
        .ok();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let server = match servers::cassandra::start(cache, certificate.as_ref()) {
        Ok(server) => server,
        Err(why) => return servers::skip("Cassandra", &servers::cassandra::needs(cache), &why),
    };
    thread(async {
        let mut options = options(&format!("cql://127.0.0.1:{}", server.port));
        options.consistency = Some("ONE".into());
        options.page_size = Some(100);
        let driver = connected(&options).await;
        a_table(&*driver).await;
        rows_come_back(&*driver).await;
        each_type(&*driver).await;
        names(&*driver).await;
        mistakes(&*driver).await;

        options.address = format!("cql://127.0.0.1:{}/tried", server.port).parse().expect("an address");
        let driver = connected(&options).await;
        let reply = driver.execute("SELECT b FROM wide WHERE a = 7", &Args::None, Want::Values).await.expect("a row");
        assert_eq!(reply.rows, 1, "the keyspace of the address is the default one");
        options.address = format!("cql://127.0.0.1:{}/absent", server.port).parse().expect("an address");
        let error = connect(&options).await.err().expect("there is no such keyspace");
        assert!(error.message.contains("absent") && !error.is_transient, "{error:?}");

        if let Some(certificate) = &certificate {
            tls(server.port, certificate).await;
        }
        let select = "SELECT b FROM wide WHERE a = 7";
        server.freeze();
        is_pending(driver.execute(select, &Args::None, Want::Nothing)).await;
        server.thaw();
        driver.execute(select, &Args::None, Want::Nothing).await.expect("it answers again");
        must_break(&*driver, select, || server.kill()).await;
    });
}

async fn run(driver: &dyn Driver, statement: &str) {
    driver.execute(statement, &Args::None, Want::Nothing).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
}

async fn a_table(driver: &dyn Driver) {
    let about = driver.server().expect("a server that tells its version").to_string();
    assert!(about.starts_with("Cassandra 5.") && about.ends_with("\""), "{about}");
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    run(driver, &format!("CREATE KEYSPACE tried WITH replication = {replication}")).await;
    run(driver, "CREATE TABLE tried.wide (a int PRIMARY KEY, b text)").await;
    run(driver, "CREATE TYPE tried.point (x int, y double)").await;
    run(
        driver,
        "CREATE TABLE tried.types (id uuid PRIMARY KEY, ti tinyint, si smallint, bi bigint, vi varint, f float, d double, \
         de decimal, t text, ai ascii, bo boolean, bl blob, tu timeuuid, ts timestamp, da date, tm time, du duration, \
         ip inet, li list<int>, se set<text>, ma map<text, bigint>, tp tuple<int, text>, ve vector<float, 3>, po point)",
    )
    .await;
    run(driver, "CREATE TABLE tried.counts (id int PRIMARY KEY, n counter)").await;
}

async fn rows_come_back(driver: &dyn Driver) {
    driver.prepare("insert", "INSERT INTO tried.wide (a, b) VALUES (?, ?)").await.expect("prepared");
    for number in 0..1000 {
        let args = positional([int(number), text(&format!("row {number}"))]);
        let reply = driver.execute_prepared("insert", &args, Want::Nothing).await.expect("inserted");
        assert_eq!((reply.rows, reply.values), (0, None));
    }
    driver.prepare("one", "SELECT a, b FROM tried.wide WHERE a = ?").await.expect("prepared");
    let reply = driver.execute_prepared("one", &positional([int(7)]), Want::Values).await.expect("read");
    let row = Value::Map(vec![(text("a"), int(7)), (text("b"), text("row 7"))]);
    assert_eq!((reply.rows, reply.values), (1, Some(list([row]))));

    let all = "SELECT a FROM tried.wide";
    let reply = driver.execute(all, &Args::None, Want::Nothing).await.expect("read");
    assert_eq!((reply.rows, reply.values), (1000, None), "ten pages are counted and not kept");
    let reply = driver.execute(all, &Args::None, Want::Values).await.expect("read");
    let Some(Value::List(rows)) = reply.values else { panic!("no rows") };
    let mut numbers: Vec<i64> = rows
        .into_iter()
        .map(|row| match row {
            Value::Map(pairs) if matches!(pairs[..], [(_, Value::Int(_))]) => match pairs[0].1 {
                Value::Int(number) => number,
                _ => unreachable!(),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
}

async fn each_type(driver: &dyn Driver) {
    let v1 = [0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x00];
    let point = |x, y| Value::Map(vec![(text("x"), x), (text("y"), y)]);
    // What is given, and what comes back.
    let cases: Vec<(&str, Value, Value)> = vec![
        ("id", text("00000000-0000-4000-8000-0000000000ff"), {
            let mut id = [0; 16];
            (id[6], id[8], id[15]) = (0x40, 0x80, 0xff);
            Value::Uuid(id)
        }),
        ("ti", int(-128), int(-128)),
        ("si", int(32767), int(32767)),
        ("bi", int(i64::MIN), int(i64::MIN)),
        ("vi", text("-170141183460469231731687303715884105728"), text("-170141183460469231731687303715884105728")),
        ("f", Value::Float(0.5), Value::Float(0.5)),
        ("d", int(3), Value::Float(3.0)),
        ("de", Value::Float(-12.25), text("-12.25")),
        ("t", text("naïve"), text("naïve")),
        ("ai", text("plain"), text("plain")),
        ("bo", Value::Bool(true), Value::Bool(true)),
        ("bl", Value::Blob(vec![0, 255]), Value::Blob(vec![0, 255])),
        ("tu", Value::Uuid(v1), Value::Uuid(v1)),
        ("ts", text("2026-11-21T10:06:22.5Z"), int(1_795_255_582_500)),
        ("da", int(-1), int(-1)),
        ("tm", text("00:00:00.000000001"), int(1)),
        ("du", int(-1_000_000), int(-1_000_000)),
        ("ip", text("::1"), text("::1")),
        ("li", list([int(2), int(1)]), list([int(2), int(1)])),
        ("se", list([text("b"), text("a")]), list([text("a"), text("b")])),
        ("ma", Value::Map(vec![(text("k"), int(1))]), list([list([text("k"), int(1)])])),
        ("tp", list([int(1), Value::Null]), list([int(1), Value::Null])),
        ("ve", list([int(1), Value::Float(0.5), int(-2)]), list([1.0, 0.5, -2.0].map(Value::Float))),
        ("po", Value::Map(vec![(text("x"), int(4))]), point(int(4), Value::Null)),
    ];
    let names: Vec<&str> = cases.iter().map(|(name, ..)| *name).collect();
    let marks = vec!["?"; names.len()].join(", ");
    let insert = format!("INSERT INTO tried.types ({}) VALUES ({marks})", names.join(", "));
    driver.prepare("types", &insert).await.expect("prepared");
    let given = Args::Positional(cases.iter().map(|(_, given, _)| given.clone()).collect());
    driver.execute_prepared("types", &given, Want::Nothing).await.expect("inserted");
    let select = format!("SELECT {} FROM tried.types", names.join(", "));
    let reply = driver.execute(&select, &Args::None, Want::Values).await.expect("read");
    let row: Vec<_> = cases.into_iter().map(|(name, _, back)| (text(name), back)).collect();
    assert_eq!(reply.values, Some(list([Value::Map(row)])));

    driver.prepare("count", "UPDATE tried.counts SET n = n + ? WHERE id = 1").await.expect("prepared");
    for _ in 0..3 {
        driver.execute_prepared("count", &positional([int(5)]), Want::Nothing).await.expect("counted");
    }
    let reply = driver.execute("SELECT n FROM tried.counts", &Args::None, Want::Values).await.expect("read");
    assert_eq!(reply.values, Some(list([Value::Map(vec![(text("n"), int(15))])])));
}

async fn names(driver: &dyn Driver) {
    driver.prepare("named", "INSERT INTO tried.wide (a, b) VALUES (:key, :word)").await.expect("prepared");
    let args = Args::Named(vec![("word".into(), text("by name")), ("key".into(), int(5000))]);
    driver.execute_prepared("named", &args, Want::Nothing).await.expect("inserted");
    let args = positional([int(5000)]);
    let reply = driver.execute("SELECT b FROM tried.wide WHERE a = ?", &args, Want::Values).await.expect("read");
    assert_eq!(reply.values, Some(list([Value::Map(vec![(text("b"), text("by name"))])])));
    for (args, part) in [
        (vec![("key".to_owned(), int(1))], "\"word\""),
        (vec![("kye".to_owned(), int(1)), ("word".to_owned(), text("x"))], "no placeholder \"kye\""),
    ] {
        let error = driver.execute_prepared("named", &Args::Named(args), Want::Nothing).await.expect_err(part);
        assert!(error.message.contains(part) && !error.is_transient, "{error:?}");
    }
}

async fn mistakes(driver: &dyn Driver) {
    for (statement, part) in [
        ("SELEC 1", "no viable alternative"),
        ("SELECT * FROM tried.absent", "absent"),
        ("SELECT * FROM nowhere.wide", "nowhere"),
        ("SELECT nothing FROM tried.wide", "nothing"),
    ] {
        let error = driver.execute(statement, &Args::None, Want::Nothing).await.expect_err(statement);
        assert!(error.message.contains(part) && !error.is_transient, "{error:?}");
        let error = driver.prepare("wrong", statement).await.expect_err(statement);
        assert!(error.message.contains(part) && !error.is_transient, "{error:?}");
    }
    for (args, part) in [
        (positional([text("7"), text("x")]), "`a` (int)"),
        (positional([int(1 << 31), text("x")]), "2147483648 is out of its range"),
        (positional([int(1)]), "2 placeholders, but 1"),
        (Args::None, "2 placeholders, but 0"),
    ] {
        let error = driver.execute_prepared("insert", &args, Want::Nothing).await.expect_err(part);
        assert!(error.message.contains(part) && !error.is_transient, "{error:?}");
    }
    let error = driver.execute_prepared("never", &Args::None, Want::Nothing).await.expect_err("never prepared");
    assert!(error.message.contains("\"never\"") && !error.is_transient, "{error:?}");
}

async fn tls(port: u16, certificate: &Certificate) {
    let mut options = options(&format!("cql://127.0.0.1:{port}"));
    options.tls = Some(TlsOptions { ca: Some(certificate.chain.clone()), ..TlsOptions::default() });
    let select = "SELECT b FROM tried.wide WHERE a = 7";
    let reply = connected(&options).await.execute(select, &Args::None, Want::Nothing).await.expect("read over TLS");
    assert_eq!(reply.rows, 1);
    let other = servers::certificate::make().expect("made before");
    options.tls = Some(TlsOptions { ca: Some(other.chain.clone()), ..TlsOptions::default() });
    let error = connect(&options).await.err().expect("nobody trusts it");
    assert!(error.message.contains("certificate") && !error.is_transient, "{error:?}");
}

#[test]
fn nobody_listens() {
    thread(async {
        let silent = Silent::new();
        let options = options(&format!("cql://127.0.0.1:{}", silent.port()));
        let error = connect(&options).await.err().expect("nobody is there");
        let address = options.address.to_string();
        assert!(error.message.contains(&address) && error.is_transient, "{error:?}");
    });
}
