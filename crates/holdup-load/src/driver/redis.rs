//! Redis, Valkey and their kin: one server, not a cluster.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, ErrorKind, RedisConnectionInfo, RedisError, ServerErrorKind};
use rustls::ClientConfig;

use super::slots::{Live, Slots};
use super::{Args, ConnectOptions, Driver, DriverError, Pending, Reply, ServerInfo, Value, Want, about, stream, tls};
use command::Command;

mod command;
mod decode;

/// One thread's connections. Many calls share each of them, so commands that block it or change its state (`BLPOP`, `MULTI`,
/// `SUBSCRIBE`) have to stay out.
pub(super) struct Redis {
    hosts: Vec<(String, u16)>,
    info: RedisConnectionInfo,
    tls: Option<Arc<ClientConfig>>,
    slots: Slots<Link>,
    commands: RefCell<HashMap<String, Rc<Command>>>,
    server: Option<ServerInfo>,
}

struct Link {
    connection: MultiplexedConnection,
    is_lost: Rc<Cell<bool>>,
}

impl Live for Link {
    fn is_live(&self) -> bool {
        !self.is_lost.get()
    }
}

impl Redis {
    pub(super) async fn connect(options: &ConnectOptions) -> Result<Redis, DriverError> {
        let address = &options.address;
        let mut info = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(user) = options.user.as_ref().or(address.user.as_ref()) {
            info = info.set_username(user);
        }
        if let Some(password) = options.password.as_ref().or(address.password.as_ref()) {
            info = info.set_password(password);
        }
        if let Ok(database) = address.path.parse() {
            info = info.set_db(database);
        }
        let mut driver = Redis {
            hosts: address.hosts.clone(),
            info,
            tls: tls::wanted(options)?,
            slots: Slots::new(options),
            commands: RefCell::default(),
            server: None,
        };
        for _ in 0..driver.slots.len() {
            driver.link().await?;
        }
        driver.server = about::soon(driver.about()).await;
        Ok(driver)
    }

    /// What the server says of itself, if this user may know.
    async fn about(&self) -> Option<ServerInfo> {
        match self.execute("INFO server", &Args::None, Want::Values).await.ok()?.values? {
            Value::Text(text) => decode::about(&text),
            _ => None,
        }
    }

    async fn link(&self) -> Result<Rc<Link>, DriverError> {
        self.slots.get(async |index| self.open(index).await).await
    }

    async fn open(&self, index: usize) -> Result<Link, DriverError> {
        let (host, port) = &self.hosts[index % self.hosts.len()];
        let stream = stream::open(host, *port, self.tls.as_ref()).await?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let (connection, work) =
            MultiplexedConnection::new_with_config(&self.info, stream, config).await.map_err(|error| {
                let error = refused(&error);
                DriverError { message: format!("There is no connection to {host}:{port}: {}", error.message), ..error }
            })?;
        let is_lost = Rc::new(Cell::new(false));
        let lost = Rc::clone(&is_lost);
        tokio::task::spawn_local(async move {
            work.await;
            lost.set(true);
        });
        Ok(Link { connection, is_lost })
    }

    async fn run(&self, command: &Command, args: &Args, want: Want) -> Result<Reply, DriverError> {
        let packed = command.fill(args)?;
        let link = self.link().await?;
        let mut connection = link.connection.clone();
        let value = connection.send_packed_command(&packed).await.map_err(|error| {
            // The task that sees the end of a connection may not have had its turn yet.
            if is_lost(&error) {
                link.is_lost.set(true);
            }
            refused(&error)
        })?;
        let value = value.extract_error().map_err(|error| refused(&error))?;
        let values = (want == Want::Values).then(|| decode::value(&value));
        Ok(Reply { rows: decode::count(&value), values })
    }
}

impl Driver for Redis {
    fn prepare<'a>(&'a self, key: &'a str, statement: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let command = Command::parse(statement)?;
            self.commands.borrow_mut().insert(key.to_owned(), Rc::new(command));
            Ok(())
        })
    }

    fn execute<'a>(&'a self, statement: &'a str, args: &'a Args, want: Want) -> Pending<'a, Reply> {
        Box::pin(async move { self.run(&Command::parse(statement)?, args, want).await })
    }

    fn server(&self) -> Option<ServerInfo> {
        self.server.clone()
    }

    fn execute_prepared<'a>(&'a self, key: &'a str, args: &'a Args, want: Want) -> Pending<'a, Reply> {
        Box::pin(async move {
            let command = self.commands.borrow().get(key).cloned().ok_or_else(|| super::never_prepared(key))?;
            self.run(&command, args, want).await
        })
    }
}

fn is_lost(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Io || error.is_connection_dropped()
}

/// The server's own words begin with a code, such as `WRONGTYPE`.
fn refused(error: &RedisError) -> DriverError {
    if error.kind() == ErrorKind::AuthenticationFailed {
        return DriverError::fatal("The server refused this user and password.");
    }
    let words = match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {}", detail.trim_end_matches('.')),
        _ => error.to_string(),
    };
    if is_lost(error) {
        return DriverError::transient(format!("The connection is lost: {words}."));
    }
    let is_transient = match error.kind() {
        ErrorKind::Server(kind) => matches!(
            kind,
            ServerErrorKind::BusyLoading
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
        ),
        _ => matches!(error.code(), Some("BUSY" | "LOADING" | "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN")),
    };
    DriverError { message: format!("{words}."), is_transient }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(line: &str) -> DriverError {
        let value = ::redis::parse_redis_value(line.as_bytes()).expect("a reply");
        refused(&value.extract_error().expect_err("an error"))
    }

    #[test]
    fn what_may_be_over_soon_is_transient() {
        for (line, is_transient) in [
            ("-BUSY Redis is busy running a script.\r\n", true),
            ("-LOADING Redis is loading the dataset in memory\r\n", true),
            ("-TRYAGAIN Multiple keys request during rehashing of slot\r\n", true),
            ("-CLUSTERDOWN Hash slot not served\r\n", true),
            ("-ERR unknown command 'FOO'\r\n", false),
            ("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", false),
            ("-NOAUTH Authentication required.\r\n", false),
        ] {
            let error = reply(line);
            assert_eq!(error.is_transient, is_transient, "{error:?}");
            assert_eq!(error.message.trim_end_matches('.'), line[1..].trim_end().trim_end_matches('.'));
        }
    }
}
