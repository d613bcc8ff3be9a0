//! The driver of Redis against a real server.

#![cfg(feature = "redis")]

mod calls;
mod servers;

use calls::{Silent, connected, int, is_pending, list, must_break, options, positional, text, thread};
use holdup_load::driver::{Args, TlsOptions, Value, Want, connect};
use servers::Server;

#[track_caller]
fn server(password: Option<&str>) -> Option<Server> {
    servers::redis::start(password, None).inspect_err(|why| servers::skip("Redis", servers::redis::NEEDS, why)).ok()
}

fn address(server: &Server) -> String {
    format!("redis://127.0.0.1:{}/2", server.port)
}

#[test]
fn values_come_back() {
    let Some(server) = server(None) else { return };
    thread(async {
        let mut options = options(&address(&server));
        options.connections = 2;
        let driver = connected(&options).await;
        let about = driver.server().expect("a server that tells its version");
        assert_eq!(about.software, "redis");
        assert!(about.version.starts_with(|digit: char| digit.is_ascii_digit()), "{about}");
        driver.prepare("set", "SET user:{} \"row {}\"").await.expect("prepared");
        driver.prepare("get", "GET user:{id}").await.expect("prepared");
        for number in 0..1000 {
            let reply = driver.execute_prepared("set", &positional([int(number), int(number)]), Want::Nothing).await;
            let reply = reply.expect("set");
            assert_eq!((reply.rows, reply.values), (1, None));
        }
        let get = async |id: i64| {
            let args = Args::Named(vec![("id".into(), int(id))]);
            driver.execute_prepared("get", &args, Want::Values).await.expect("read")
        };
        for number in 0..1000 {
            assert_eq!(get(number).await.values, Some(text(&format!("row {number}"))));
        }
        let reply = get(1000).await;
        assert_eq!((reply.rows, reply.values), (0, Some(Value::Null)));
        let reply = driver.execute("DBSIZE", &Args::None, Want::Values).await.expect("read");
        assert_eq!(reply.values, Some(int(1000)));
        let keys = list([text("user:1"), text("user:none"), text("user:2")]);
        let reply = driver.execute("MGET {}", &positional([keys]), Want::Values).await.expect("read");
        assert_eq!((reply.rows, reply.values), (3, Some(list([text("row 1"), Value::Null, text("row 2")]))));
        let reply = driver.execute("INFO keyspace", &Args::None, Want::Values).await.expect("read");
        assert!(format!("{:?}", reply.values).contains("db2:keys=1000"), "{reply:?}");
        let blob = Value::Blob(vec![0, 159, 146, 150]);
        driver.execute("SET b {}", &positional([blob.clone()]), Want::Nothing).await.expect("set");
        let reply = driver.execute("GET b", &Args::None, Want::Values).await.expect("read");
        assert_eq!(reply.values, Some(blob));
    });
}

#[test]
fn mistakes() {
    let Some(server) = server(None) else { return };
    thread(async {
        let driver = connected(&options(&address(&server))).await;
        driver.execute("LPUSH l a", &Args::None, Want::Nothing).await.expect("pushed");
        for (line, part) in [
            ("FLY away", "unknown command 'FLY'"),
            ("GET l", "WRONGTYPE"),
            ("GET", "wrong number of arguments"),
            ("GET 'l", "closing '"),
        ] {
            let error = driver.execute(line, &Args::None, Want::Nothing).await.expect_err(line);
            assert!(error.message.contains(part) && !error.is_transient, "{error:?}");
        }
        let error = driver.prepare("get", "GET {a").await.expect_err("a brace");
        assert!(error.message.contains("no placeholder") && !error.is_transient, "{error:?}");
        driver.prepare("get", "GET {}").await.expect("prepared");
        for (args, part) in [
            (Args::None, "1 placeholders, but 0"),
            (positional([Value::Null]), "nothing cannot be a word"),
            (Args::Named(vec![("a".into(), int(1))]), "in order"),
        ] {
            let error = driver.execute_prepared("get", &args, Want::Nothing).await.expect_err(part);
            assert!(error.message.contains(part) && !error.is_transient, "{error:?}");
        }
        let silent = Silent::new();
        let nobody = options(&format!("redis://127.0.0.1:{}", silent.port()));
        let error = connect(&nobody).await.err().expect("nobody listens");
        assert!(error.message.contains("127.0.0.1") && error.is_transient, "{error:?}");
    });
}

#[test]
fn passwords() {
    let Some(server) = server(Some("secret")) else { return };
    thread(async {
        let driver = connected(&options(&format!("redis://:secret@127.0.0.1:{}", server.port))).await;
        driver.execute("PING", &Args::None, Want::Nothing).await.expect("it answers");
        let wrong = options(&format!("redis://:guessed@127.0.0.1:{}", server.port));
        let error = connect(&wrong).await.err().expect("a wrong password");
        assert!(error.message.contains("refused this user") && !error.is_transient, "{error:?}");
    });
}

#[test]
fn a_lost_connection_comes_back() {
    let Some(server) = server(None) else { return };
    thread(async {
        let driver = connected(&options(&address(&server))).await;
        driver.execute("PING", &Args::None, Want::Nothing).await.expect("it answers");
        let other = connected(&options(&address(&server))).await;
        other.execute("CLIENT KILL TYPE normal SKIPME yes", &Args::None, Want::Nothing).await.expect("killed");
        // The first call may find out that the connection is lost; the second has a new one.
        if let Err(error) = driver.execute("PING", &Args::None, Want::Nothing).await {
            assert!(error.is_transient, "{error:?}");
        }
        driver.execute("PING", &Args::None, Want::Nothing).await.expect("connected again");
    });
}

#[test]
fn frozen_and_killed() {
    let Some(server) = server(None) else { return };
    thread(async {
        let driver = connected(&options(&address(&server))).await;
        server.freeze();
        is_pending(driver.execute("PING", &Args::None, Want::Nothing)).await;
        server.thaw();
        driver.execute("PING", &Args::None, Want::Nothing).await.expect("it answers again");
        must_break(&*driver, "PING", || server.kill()).await;
    });
}

#[test]
fn tls() {
    let certificate = match servers::certificate::make() {
        Ok(certificate) => certificate,
        Err(why) => return servers::skip("certificate", servers::certificate::NEEDS, &why),
    };
    let server = match servers::redis::start(None, Some(&certificate)) {
        Ok(server) => server,
        Err(why) => return servers::skip("Redis with TLS", &servers::redis::needs_of_tls(), &why),
    };
    thread(async {
        let mut options = options(&format!("rediss://localhost:{}", server.port));
        let error = connect(&options).await.err().expect("not trusted");
        assert!(error.message.contains("certificate") && !error.is_transient, "{error:?}");
        options.tls = Some(TlsOptions { ca: Some(certificate.chain.clone()), ..TlsOptions::default() });
        let reply = connected(&options).await.execute("PING", &Args::None, Want::Values).await.expect("it answers");
        assert_eq!(reply.values, Some(text("PONG")));
    });
}
