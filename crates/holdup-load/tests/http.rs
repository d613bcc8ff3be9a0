//! The driver of HTTP against servers of the test's own.

#![cfg(feature = "http")]

mod calls;
mod servers;

use std::time::Duration;

use calls::{Silent, connected, fails, int, is_pending, map, must_break, options, positional, text, thread};
use holdup_load::driver::{Args, Driver, TlsOptions, Value, Want, connect};
use servers::{Server, http};

async fn body(driver: &dyn Driver, statement: &str) -> String {
    let reply = driver.execute(statement, &Args::None, Want::Values).await.unwrap_or_else(|error| panic!("{error}"));
    let Some(Value::Map(pairs)) = reply.values else { panic!("no values") };
    match &pairs[..] {
        [(_, Value::Int(_)), (_, Value::Text(body))] => body.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn bodies_come_back() {
    let server = http::start();
    thread(async {
        let driver = connected(&options(&format!("http://127.0.0.1:{}", server.port))).await;
        assert_eq!(driver.server(), None, "nothing was asked yet");
        driver.prepare("post", "POST /store\n\n{{\"id\": {}, \"name\": \"{}\"}}").await.expect("prepared");
        for number in 0..1000 {
            let args = positional([int(number), text(&format!("row {number}"))]);
            let reply = driver.execute_prepared("post", &args, Want::Nothing).await.expect("posted");
            assert_eq!((reply.rows, reply.values), (1, None));
        }
        assert_eq!(driver.server().map(|about| about.to_string()).as_deref(), Some("holdup-test 1.2 (here)"));
        let all = body(&*driver, "GET /store").await;
        let lines: Vec<String> = (0..1000).map(|id| format!("{{\"id\": {id}, \"name\": \"row {id}\"}}")).collect();
        assert_eq!(all, lines.join("\n"));
        assert_eq!(server.accepted(), 1, "one connection served all calls, one after the other");
        let reply = driver.execute("GET /status/404", &Args::None, Want::Values).await.expect("the script looks");
        let values = map([("status", int(404)), ("body", text("because the test says so"))]);
        assert_eq!((reply.rows, reply.values), (1, Some(values)));
    });
}

#[test]
fn a_request_is_what_was_written() {
    let server = http::start();
    thread(async {
        let driver = connected(&options(&format!("http://ana:pw@127.0.0.1:{}/echo/v1/", server.port))).await;
        let echo = body(&*driver, "PUT /a?b=c\n  X-Own: d e\n\nbody\n").await;
        let mut lines: Vec<&str> = echo.lines().collect();
        assert_eq!(lines.remove(0), "PUT /echo/v1/a?b=c HTTP/1.1");
        let host = format!("host: 127.0.0.1:{}", server.port);
        for header in ["x-own: d e", "content-length: 5", "authorization: Basic YW5hOnB3", &host] {
            assert!(lines.contains(&header), "{header} is not among {lines:?}");
        }
        assert_eq!(lines.last(), Some(&"body"));
    });
}

#[test]
fn statuses() {
    let server = http::start();
    thread(async {
        let driver = connected(&options(&format!("http://127.0.0.1:{}", server.port))).await;
        for (status, want, is_transient) in [
            (404, Want::Nothing, false),
            (400, Want::Nothing, false),
            (408, Want::Nothing, true),
            (429, Want::Nothing, true),
            (500, Want::Nothing, true),
            (503, Want::Values, true),
        ] {
            let error = driver.execute(&format!("GET /status/{status}"), &Args::None, want).await.expect_err("refused");
            let said = format!("GET /status/{status} was answered by {status}");
            assert!(error.message.starts_with(&said), "{error:?}");
            assert!(error.message.ends_with(": because the test says so."), "{error:?}");
            assert_eq!(error.is_transient, is_transient, "{error:?}");
        }
        driver.execute("GET /status/204", &Args::None, Want::Nothing).await.expect("no content is content enough");
        assert_eq!(server.accepted(), 1, "a refusal costs no connection");
        let error = driver.execute("GET /noise", &Args::None, Want::Nothing).await.expect_err("no HTTP");
        assert!(error.message.contains("not HTTP/1.1") && !error.is_transient, "{error:?}");
        let error = driver.execute("GET", &Args::None, Want::Nothing).await.expect_err("no request");
        assert!(error.message.contains("\"GET\"") && !error.is_transient, "{error:?}");
        driver.prepare("get", "GET /{}").await.expect("prepared");
        for args in [Args::None, positional([Value::Null]), Args::Named(vec![("a".into(), int(1))])] {
            let error = driver.execute_prepared("get", &args, Want::Nothing).await.expect_err("wrong arguments");
            assert!(error.message.contains("placeholder") && !error.is_transient, "{error:?}");
        }
        let silent = Silent::new();
        let nobody = options(&format!("http://127.0.0.1:{}", silent.port()));
        let error = connect(&nobody).await.err().expect("nobody listens");
        assert!(error.message.contains("127.0.0.1") && error.is_transient, "{error:?}");
    });
}

#[test]
fn a_closed_connection_is_replaced() {
    let server = http::start();
    thread(async {
        let driver = connected(&options(&format!("http://127.0.0.1:{}", server.port))).await;
        for _ in 0..5 {
            driver.execute("GET /close", &Args::None, Want::Nothing).await.expect("answered, then closed");
        }
        assert_eq!(server.seen("GET /close"), 5);

        // Over a connection that was used: what may be done twice is sent twice, what may not is not.
        for (method, times) in [("GET", 2), ("POST", 1), ("DELETE", 2)] {
            driver.execute("GET /echo", &Args::None, Want::Nothing).await.expect("a connection is there and used");
            let request = format!("{method} /drop");
            let error = fails(driver.execute(&request, &Args::None, Want::Nothing)).await;
            assert!(error.is_transient, "{error:?}");
            assert_eq!(server.seen(&request), times, "{request}");
        }
        // An answer that has begun is not asked for again.
        driver.execute("GET /echo", &Args::None, Want::Nothing).await.expect("a connection is there and used");
        let error = fails(driver.execute("GET /part", &Args::None, Want::Nothing)).await;
        assert!(error.is_transient, "{error:?}");
        assert_eq!(server.seen("GET /part"), 1);
    });
}

#[test]
fn calls_at_once_have_a_connection_each() {
    let server = http::start();
    thread(async {
        let mut options = options(&format!("http://127.0.0.1:{}", server.port));
        options.connections = 2;
        let driver = connected(&options).await;
        server.wait_for(2);
        let mut calls = Vec::new();
        for _ in 0..5 {
            let driver = driver.clone();
            calls.push(tokio::task::spawn_local(async move {
                driver.execute("GET /echo", &Args::None, Want::Nothing).await.expect("answered");
            }));
        }
        for call in calls {
            call.await.expect("it did not panic");
        }
        let most = server.accepted();
        assert!((2..=5).contains(&most), "{most} connections for 5 calls");
        for _ in 0..20 {
            driver.execute("GET /echo", &Args::None, Want::Nothing).await.expect("answered");
        }
        assert_eq!(server.accepted(), most, "calls one by one open no more");
    });
}

#[test]
fn silent_and_killed() {
    let server = http::start();
    thread(async {
        let driver = connected(&options(&format!("http://127.0.0.1:{}", server.port))).await;
        is_pending(driver.execute("GET /never", &Args::None, Want::Nothing)).await;
        must_break(&*driver, "GET /echo", || server.kill()).await;
    });
}

#[test]
fn tls() {
    let certificate = match servers::certificate::make() {
        Ok(certificate) => certificate,
        Err(why) => return servers::skip("certificate", servers::certificate::NEEDS, &why),
    };
    let port = servers::free_port();
    let (chain, key) = (certificate.chain.display().to_string(), certificate.key.display().to_string());
    let accept = format!("127.0.0.1:{port}");
    let line = ["openssl", "s_server", "-www", "-accept", &accept, "-cert", &chain, "-key", &key].map(str::to_owned);
    let server = Server::start(&line, servers::directory("https"), port, Duration::from_secs(30)).expect("it starts");
    thread(async {
        let trusted = TlsOptions { ca: Some(certificate.chain.clone()), ..TlsOptions::default() };
        let insecure = TlsOptions { insecure: true, ..TlsOptions::default() };
        for (host, tls) in [("localhost", trusted.clone()), ("127.0.0.1", trusted), ("127.0.0.1", insecure)] {
            let mut options = options(&format!("https://{host}:{}", server.port));
            options.tls = Some(tls);
            let driver = connected(&options).await;
            let page = body(&*driver, "GET /").await;
            assert!(page.contains("TLSv1.3"), "{page}");
        }
        let error = connect(&options(&format!("https://localhost:{}", server.port))).await.err().expect("not trusted");
        assert!(error.message.contains("certificate") && !error.is_transient, "{error:?}");
    });
}
