//! What the tests of all drivers do alike.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use holdup_load::driver::{Args, ConnectOptions, Driver, Reply, Value, Want, connect};
use holdup_load::driver::{DriverError, Pending};

/// So long that only a call that hangs takes longer.
const HANGS: Duration = Duration::from_secs(60);

/// Runs as a thread of a load run does.
pub fn thread(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

pub fn options(address: &str) -> ConnectOptions {
    ConnectOptions::new(address.parse().unwrap_or_else(|error| panic!("{error}")))
}

pub async fn connected(options: &ConnectOptions) -> Rc<dyn Driver> {
    connect(options).await.unwrap_or_else(|error| panic!("{error}"))
}

/// A port of 127.0.0.1 where nobody listens for as long as this lives: a socket has it, and does not listen.
pub struct Silent(tokio::net::TcpSocket);

impl Silent {
    pub fn new() -> Silent {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a port can be had");
        Silent(socket)
    }

    pub fn port(&self) -> u16 {
        self.0.local_addr().expect("it has an address").port()
    }
}

pub fn int(int: i64) -> Value {
    Value::Int(int)
}

pub fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

pub fn list<const N: usize>(values: [Value; N]) -> Value {
    Value::List(values.into())
}

pub fn map<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::Map(pairs.into_iter().map(|(name, value)| (text(name), value)).collect())
}

pub fn positional<const N: usize>(values: [Value; N]) -> Args {
    Args::Positional(values.into())
}

/// A frozen server neither answers nor makes the call fail: only the caller's patience ends it.
pub async fn is_pending(call: Pending<'_, Reply>) {
    let outcome = tokio::time::timeout(Duration::from_millis(500), call).await;
    assert!(outcome.is_err(), "a frozen server brought {outcome:?}");
}

/// Calls go on while `kill` ends the server; then each fails in a way that may be over soon, and none hangs.
pub async fn must_break(driver: &dyn Driver, statement: &str, kill: impl FnOnce()) {
    let call = || driver.execute(statement, &Args::None, Want::Nothing);
    call().await.expect("the server is still there");
    kill();
    // A server of many processes may still answer while they learn of the end of the first one.
    let first = async {
        loop {
            if let Err(error) = call().await {
                return error;
            }
        }
    };
    let first = tokio::time::timeout(HANGS, first).await.expect("a call hangs, or the server lives on");
    assert!(first.is_transient, "{first:?}");
    for _ in 0..3 {
        let error = fails(call()).await;
        assert!(error.is_transient, "{error:?}");
    }
}

/// The error of a call that has to end.
pub async fn fails(call: Pending<'_, Reply>) -> DriverError {
    tokio::time::timeout(HANGS, call).await.expect("the call hangs").expect_err("the server is gone")
}
