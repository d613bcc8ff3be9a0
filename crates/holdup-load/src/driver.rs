//! What a workload talks to: one trait, and a file for each kind of server behind it.
//!
//! A driver belongs to one thread. Nothing of it is shared with another: each thread of a run has its own connections, which
//! its own runtime drives. No driver retries a call or ends it for being late: what calls it does, and counts both.
//!
//! | server | statement | placeholders |
//! |---|---|---|
//! | CQL | one of CQL | `?`, or `:name` by name |
//! | PostgreSQL | one of SQL; several at once without arguments and with [`Want::Nothing`] | `$1`, `$2`, … |
//! | HTTP | `METHOD /target`, lines of `Header: value`, a blank line, a body | `{}`, or `{name}`; `{{` is a brace |
//! | Redis | words, with quotes as in a shell | as for HTTP; a list alone in a word is many words |
//!
//! Where a server has no type of ours, a timestamp is milliseconds since 1970, a date days since then, a time of day
//! nanoseconds since midnight, and a decimal number of any length its digits as a text. Texts in ISO 8601 can be bound to the
//! first three.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

mod about;
mod address;
mod connect;
mod value;

pub use about::ServerInfo;
pub use address::{Address, Kind};
pub use connect::connect;
pub use value::Value;

#[cfg(feature = "cql")]
mod cql;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod slots;
#[cfg(any(feature = "postgres", feature = "http", feature = "redis"))]
mod stream;
#[cfg(any(feature = "http", feature = "redis"))]
mod template;
#[cfg(any(feature = "cql", feature = "postgres"))]
mod time;
#[cfg(any(feature = "cql", feature = "postgres", feature = "http", feature = "redis"))]
mod tls;

/// What an answer of a driver comes as. It stays on its thread.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, DriverError>> + 'a>>;

/// The connections of one thread to the system under test.
pub trait Driver {
    /// Keeps `statement` under `key` for [`Driver::execute_prepared`], prepared as far as the server can. What stands under
    /// the key already is replaced.
    fn prepare<'a>(&'a self, key: &'a str, statement: &'a str) -> Pending<'a, ()>;

    /// Runs a statement once.
    fn execute<'a>(&'a self, statement: &'a str, args: &'a Args, want: Want) -> Pending<'a, Reply>;

    /// Runs what was kept under `key`.
    ///
    /// # Errors
    /// [`DriverError::is_transient`] tells whether the same call can succeed later. A key that was never prepared, a wrong
    /// number of arguments and an argument of the wrong type are not transient.
    fn execute_prepared<'a>(&'a self, key: &'a str, args: &'a Args, want: Want) -> Pending<'a, Reply>;

    /// Runs several that were kept, as one: all or none.
    ///
    /// # Errors
    /// As for [`Driver::execute_prepared`], and that this kind of server has no batches.
    fn batch_prepared<'a>(&'a self, statements: &'a [(String, Args)]) -> Pending<'a, Reply> {
        let _ = statements;
        Box::pin(async { Err(DriverError::fatal("only CQL has batches: send the statements one by one")) })
    }

    /// What the server has said of itself so far; none if it does not tell.
    fn server(&self) -> Option<ServerInfo> {
        None
    }

    /// The datacenters of the cluster, by name.
    ///
    /// # Errors
    /// This kind of server has none.
    fn datacenters(&self) -> Result<Vec<String>, DriverError> {
        Err(DriverError::fatal("only a server of CQL has datacenters"))
    }
}

/// What the script passes with a statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Args {
    /// Nothing.
    #[default]
    None,
    /// One value for each placeholder, in their order.
    Positional(Vec<Value>),
    /// Values by the names of placeholders.
    Named(Vec<(String, Value)>),
}

/// How much of the reply the script looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Only that it came. All of it is still received.
    Nothing,
    /// Its rows or its body, as values.
    Values,
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Rows (SQL, CQL), elements of an array (Redis), or 1 for a body (HTTP).
    pub rows: u64,
    /// With [`Want::Values`]: a list with a map of names for each row (SQL, CQL), the reply itself (Redis), or a map of `status`
    /// and `body` (HTTP).
    pub values: Option<Value>,
}

/// Why a call failed: a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    /// What happened, in the words of a user.
    pub message: String,
    /// Whether the same call can succeed later: a timeout, a lost connection, an overloaded server. A wrong statement is not.
    pub is_transient: bool,
}

impl DriverError {
    /// An error that trying again can't mend.
    pub fn fatal(message: impl fmt::Display) -> DriverError {
        DriverError { message: message.to_string(), is_transient: false }
    }

    /// An error that may be over soon.
    pub fn transient(message: impl fmt::Display) -> DriverError {
        DriverError { message: message.to_string(), is_transient: true }
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DriverError {}

/// How to connect.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// To what.
    pub address: Address,
    /// Connections of each thread (to each host, for CQL; for HTTP those before the first call, since each call at the same
    /// time as others takes one for itself).
    pub connections: usize,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// Overrides the user of the address.
    pub user: Option<String>,
    /// Overrides the password of the address.
    pub password: Option<String>,
    /// Encryption, if asked for.
    pub tls: Option<TlsOptions>,
    /// CQL: the consistency by its name, such as `LOCAL_QUORUM`. The driver says which names there are.
    pub consistency: Option<String>,
    /// CQL: the datacenter that is asked, and no other.
    pub datacenter: Option<String>,
    /// CQL: rows in a page.
    pub page_size: Option<i32>,
}

impl ConnectOptions {
    /// The defaults for an address: one connection for each thread, 10 s to connect, no TLS unless the address says so.
    pub fn new(address: Address) -> ConnectOptions {
        ConnectOptions {
            address,
            connections: 1,
            connect_timeout: Duration::from_secs(10),
            user: None,
            password: None,
            tls: None,
            consistency: None,
            datacenter: None,
            page_size: None,
        }
    }
}

/// TLS of a connection.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Certificates to trust, PEM. Without one the system's are trusted.
    pub ca: Option<PathBuf>,
    /// The client's certificate chain, PEM.
    pub certificate: Option<PathBuf>,
    /// The client's key, PEM.
    pub key: Option<PathBuf>,
    /// Accept any certificate.
    pub insecure: bool,
}

#[cfg(any(feature = "cql", feature = "postgres", feature = "http", feature = "redis"))]
fn never_prepared(key: &str) -> DriverError {
    DriverError::fatal(format!("Nothing was prepared under {key:?}: call prepare first."))
}
