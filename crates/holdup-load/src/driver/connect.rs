//! Connecting: which driver an address asks for.

use std::rc::Rc;

use super::{ConnectOptions, Driver, DriverError, Kind};

/// Connects one thread. It has to run inside a `LocalSet` on a runtime of that thread, since connections are tasks of it.
///
/// # Errors
/// A sentence with the address: unreachable or no answer within [`ConnectOptions::connect_timeout`] (transient), refused
/// login, wrong options, a driver that was not built in (not transient).
pub async fn connect(options: &ConnectOptions) -> Result<Rc<dyn Driver>, DriverError> {
    if options.connections == 0 {
        return Err(DriverError::fatal("A thread needs at least one connection."));
    }
    match tokio::time::timeout(options.connect_timeout, open(options)).await {
        Ok(opened) => opened,
        Err(_) => Err(DriverError::transient(format!(
            "{} did not answer within {} s: see whether it runs and whether the address is right, or wait longer.",
            options.address,
            options.connect_timeout.as_secs_f64()
        ))),
    }
}

async fn open(options: &ConnectOptions) -> Result<Rc<dyn Driver>, DriverError> {
    match options.address.kind {
        #[cfg(feature = "cql")]
        Kind::Cql => Ok(Rc::new(super::cql::Cql::connect(options).await?)),
        #[cfg(feature = "postgres")]
        Kind::Postgres => Ok(Rc::new(super::postgres::Postgres::connect(options).await?)),
        #[cfg(feature = "http")]
        Kind::Http => Ok(Rc::new(super::http::Http::connect(options).await?)),
        #[cfg(feature = "redis")]
        Kind::Redis => Ok(Rc::new(super::redis::Redis::connect(options).await?)),
        #[cfg(not(all(feature = "cql", feature = "postgres", feature = "http", feature = "redis")))]
        kind => Err(DriverError::fatal(not_built(kind))),
    }
}

#[cfg(not(all(feature = "cql", feature = "postgres", feature = "http", feature = "redis")))]
fn not_built(kind: Kind) -> String {
    let (name, feature) = match kind {
        Kind::Cql => ("CQL", "cql"),
        Kind::Postgres => ("PostgreSQL", "postgres"),
        Kind::Http => ("HTTP", "http"),
        Kind::Redis => ("Redis", "redis"),
    };
    format!("This holdup was built without {name}: build it with --features {feature}.")
}
