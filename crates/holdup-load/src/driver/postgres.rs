//! PostgreSQL.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, SimpleQueryMessage, Statement};

use super::slots::{Live, Slots};
use super::stream::{Stream, secure, tcp};
use super::{Args, ConnectOptions, Driver, DriverError, Pending, Reply, ServerInfo, Want, about, tls};

mod bind;
mod decode;
mod refuse;

/// One thread's connections. Many calls share each of them: requests follow each other without waiting for answers.
pub(super) struct Postgres {
    hosts: Vec<(String, u16)>,
    config: Config,
    tls: Option<Arc<ClientConfig>>,
    slots: Slots<Link>,
    statements: RefCell<HashMap<String, Rc<str>>>,
    server: Option<ServerInfo>,
}

/// A connection with what is prepared on it.
struct Link {
    client: Client,
    /// The text beside its statement: under a key there may meanwhile be another text.
    prepared: RefCell<HashMap<String, (Rc<str>, Statement)>>,
    /// Why the connection ended, in the server's words if it had any.
    end: Rc<OnceCell<String>>,
    /// Whether the server said that it ends the session, which it does a little later.
    is_ending: Cell<bool>,
}

impl Live for Link {
    fn is_live(&self) -> bool {
        !self.is_ending.get() && !self.client.is_closed()
    }
}

impl Postgres {
    pub(super) async fn connect(options: &ConnectOptions) -> Result<Postgres, DriverError> {
        let address = &options.address;
        let tls = tls::wanted(options)?;
        let mut config = Config::new();
        config.application_name("holdup");
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        // As psql has it: the user of the operating system, and a database of the user's name.
        let system = std::env::var("USER").unwrap_or_else(|_| "postgres".to_owned());
        config.user(options.user.as_ref().or(address.user.as_ref()).unwrap_or(&system));
        if let Some(password) = options.password.as_ref().or(address.password.as_ref()) {
            config.password(password);
        }
        if !address.path.is_empty() {
            config.dbname(&address.path);
        }
        let mut driver = Postgres {
            hosts: address.hosts.clone(),
            config,
            tls,
            slots: Slots::new(options),
            statements: RefCell::default(),
            server: None,
        };
        for _ in 0..driver.slots.len() {
            driver.link().await?;
        }
        driver.server = about::soon(driver.about()).await;
        Ok(driver)
    }

    /// What the server says of itself: `PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu, compiled by …`.
    async fn about(&self) -> Option<ServerInfo> {
        let messages = self.link().await.ok()?.client.simple_query("SELECT version()").await.ok()?;
        let words = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        })?;
        let (software, version) = words.split(" on ").next()?.split_once(' ')?;
        Some(ServerInfo::new(software, version))
    }

    async fn link(&self) -> Result<Rc<Link>, DriverError> {
        self.slots.get(async |index| self.open(index).await).await
    }

    async fn open(&self, index: usize) -> Result<Link, DriverError> {
        let (host, port) = &self.hosts[index % self.hosts.len()];
        let stream = tcp(host, *port).await?;
        let upgrade = Upgrade { host: host.clone(), tls: self.tls.clone() };
        let (client, connection) = self
            .config
            .connect_raw(stream, upgrade)
            .await
            .map_err(|error| refuse::connection(&error, &format!("{host}:{port}")))?;
        let end = Rc::new(OnceCell::new());
        let told = Rc::clone(&end);
        tokio::task::spawn_local(async move {
            if let Err(error) = connection.await {
                let _ = told.set(refuse::words(&error));
            }
        });
        Ok(Link { client, prepared: RefCell::default(), end, is_ending: Cell::new(false) })
    }

    /// The statement of `key` on this connection, prepared now if the connection is new or the text is.
    async fn statement(&self, link: &Link, key: &str) -> Result<Statement, DriverError> {
        let text = self.statements.borrow().get(key).cloned().ok_or_else(|| super::never_prepared(key))?;
        if let Some((kept, statement)) = link.prepared.borrow().get(key)
            && Rc::ptr_eq(kept, &text)
        {
            return Ok(statement.clone());
        }
        let statement = link.client.prepare(&text).await.map_err(|error| link.refused(&error))?;
        link.prepared.borrow_mut().insert(key.to_owned(), (text, statement.clone()));
        Ok(statement)
    }
}

impl Link {
    async fn query(&self, statement: &Statement, args: &Args, want: Want) -> Result<Reply, DriverError> {
        let values = bind::values(statement, args)?;
        let bound: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        let rows = self.client.query(statement, &bound).await.map_err(|error| self.refused(&error))?;
        let values = (want == Want::Values).then(|| decode::rows(&rows)).transpose()?;
        Ok(Reply { rows: rows.len() as u64, values })
    }

    /// Without arguments and without a look at the rows: one exchange, and several statements at once if need be.
    async fn simple(&self, statement: &str) -> Result<Reply, DriverError> {
        let messages = self.client.simple_query(statement).await.map_err(|error| self.refused(&error))?;
        let rows = messages.iter().filter(|message| matches!(message, SimpleQueryMessage::Row(_))).count();
        Ok(Reply { rows: rows as u64, values: None })
    }

    fn refused(&self, error: &tokio_postgres::Error) -> DriverError {
        if refuse::ends_session(error) {
            self.is_ending.set(true);
        }
        refuse::call(error, self.end.get().map(String::as_str))
    }
}

impl Driver for Postgres {
    fn prepare<'a>(&'a self, key: &'a str, statement: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let before = self.statements.borrow_mut().insert(key.to_owned(), statement.into());
            // On all connections at once, so that no measured call has to.
            for _ in 0..self.slots.len() {
                let link = self.link().await?;
                if let Err(error) = self.statement(&link, key).await {
                    let mut statements = self.statements.borrow_mut();
                    match before {
                        Some(before) => statements.insert(key.to_owned(), before),
                        None => statements.remove(key),
                    };
                    return Err(error);
                }
            }
            Ok(())
        })
    }

    fn execute<'a>(&'a self, statement: &'a str, args: &'a Args, want: Want) -> Pending<'a, Reply> {
        Box::pin(async move {
            let link = self.link().await?;
            if want == Want::Nothing && *args == Args::None {
                return link.simple(statement).await;
            }
            let prepared = link.client.prepare(statement).await.map_err(|error| link.refused(&error))?;
            link.query(&prepared, args, want).await
        })
    }

    fn server(&self) -> Option<ServerInfo> {
        self.server.clone()
    }

    fn execute_prepared<'a>(&'a self, key: &'a str, args: &'a Args, want: Want) -> Pending<'a, Reply> {
        Box::pin(async move {
            let link = self.link().await?;
            let statement = self.statement(&link, key).await?;
            link.query(&statement, args, want).await
        })
    }
}

/// TLS in the place where the protocol begins it.
struct Upgrade {
    host: String,
    tls: Option<Arc<ClientConfig>>,
}

impl TlsConnect<TcpStream> for Upgrade {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>>>>;

    fn connect(self, stream: TcpStream) -> Self::Future {
        Box::pin(async move {
            match self.tls {
                Some(config) => secure(stream, &self.host, config).await,
                None => Ok(Stream::Plain(stream)),
            }
        })
    }
}

impl TlsStream for Stream {
    /// Passwords are then checked without being tied to the channel, which every server accepts.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
