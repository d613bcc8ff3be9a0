//! HTTP/1.1.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, HOST, HeaderValue, SERVER};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;

use super::{Args, ConnectOptions, Driver, DriverError, Pending, Reply, ServerInfo, Value, Want, stream, tls};
use message::Message;

mod message;

/// Of an error's body, how much a message shows, in bytes.
const SHOWN: usize = 300;

/// One thread's connections, kept alive between calls. A call has one for itself: it takes one that is idle or opens another,
/// so that there are as many as calls at once ever were. `connections` of the options are opened before the first call.
pub(super) struct Http {
    hosts: Vec<(String, u16)>,
    prefix: String,
    login: Option<HeaderValue>,
    tls: Option<Arc<ClientConfig>>,
    idle: RefCell<Vec<Link>>,
    opened: Cell<usize>,
    messages: RefCell<HashMap<String, Rc<Message>>>,
    /// Of the first answer.
    server: OnceCell<Option<ServerInfo>>,
}

struct Link {
    sender: SendRequest<Full<Bytes>>,
    host: HeaderValue,
    /// Whether a call has been answered over it: then the server may have closed it for being idle.
    is_used: bool,
}

/// Why a request brought no reply, and whether the same may be sent again.
struct Unanswered {
    error: hyper::Error,
    was_sent: bool,
}

impl Http {
    pub(super) async fn connect(options: &ConnectOptions) -> Result<Http, DriverError> {
        let address = &options.address;
        let user = options.user.as_ref().or(address.user.as_ref());
        let password = options.password.as_ref().or(address.password.as_ref());
        let driver = Http {
            hosts: address.hosts.clone(),
            prefix: if address.path.is_empty() { String::new() } else { format!("/{}", address.path) },
            login: user.map(|user| message::basic(user, password.map_or("", String::as_str))).transpose()?,
            tls: tls::wanted(options)?,
            idle: RefCell::default(),
            opened: Cell::new(0),
            messages: RefCell::default(),
            server: OnceCell::new(),
        };
        for _ in 0..options.connections {
            let link = driver.open().await?;
            driver.idle.borrow_mut().push(link);
        }
        Ok(driver)
    }

    async fn open(&self) -> Result<Link, DriverError> {
        let index = self.opened.replace(self.opened.get() + 1);
        let (host, port) = &self.hosts[index % self.hosts.len()];
        let stream = stream::open(host, *port, self.tls.as_ref()).await?;
        let default_port = if self.tls.is_some() { 443 } else { 80 };
        let brackets = if host.contains(':') { ("[", "]") } else { ("", "") };
        let mut name = format!("{}{host}{}", brackets.0, brackets.1);
        if *port != default_port {
            name.push_str(&format!(":{port}"));
        }
        let name = HeaderValue::from_str(&name)
            .map_err(|_| DriverError::fatal(format!("The host {host:?} can't stand in a request.")))?;
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| DriverError::transient(format!("There is no connection to {host}:{port}: {error}.")))?;
        tokio::task::spawn_local(async move {
            // Its end is the end of the call that is on it, which tells why.
            let _ = connection.await;
        });
        Ok(Link { sender, host: name, is_used: false })
    }

    /// An idle connection that is still there, the one used last first, so that those beyond need grow old.
    async fn take(&self) -> Result<Link, DriverError> {
        loop {
            let Some(mut link) = self.idle.borrow_mut().pop() else { return self.open().await };
            if link.sender.ready().await.is_ok() {
                return Ok(link);
            }
        }
    }

    async fn call(&self, message: &Message, args: &Args, want: Want) -> Result<Reply, DriverError> {
        let mut request = message.request(&self.prefix, args)?;
        if let Some(login) = &self.login
            && !request.headers().contains_key(AUTHORIZATION)
        {
            request.headers_mut().insert(AUTHORIZATION, login.clone());
        }
        let mut link = self.take().await?;
        let response = match link.send(&request).await {
            Ok(response) => response,
            // A server may close an idle connection at any time: what it can't have acted upon is sent once more.
            Err(failed) if link.is_used && (!failed.was_sent || request.method().is_idempotent()) => {
                link = self.open().await?;
                link.send(&request).await.map_err(|failed| lost(&failed.error))?
            }
            Err(failed) => return Err(lost(&failed.error)),
        };
        self.server.get_or_init(|| response.headers().get(SERVER).and_then(|value| about(value.to_str().ok()?)));
        let reply = receive(&request, response, want).await?;
        link.is_used = true;
        self.idle.borrow_mut().push(link);
        reply
    }
}

impl Link {
    async fn send(&mut self, request: &Request<Full<Bytes>>) -> Result<Response<Incoming>, Unanswered> {
        let mut request = request.clone();
        if !request.headers().contains_key(HOST) {
            request.headers_mut().insert(HOST, self.host.clone());
        }
        self.sender.try_send_request(request).await.map_err(|mut failed| {
            let was_sent = failed.take_message().is_none();
            Unanswered { error: failed.into_error(), was_sent }
        })
    }
}

/// All of the reply. The outer error is of the connection, the inner one of the server.
async fn receive(
    request: &Request<Full<Bytes>>,
    response: Response<Incoming>,
    want: Want,
) -> Result<Result<Reply, DriverError>, DriverError> {
    let status = response.status();
    let is_transient = status.as_u16() >= 500 || matches!(status.as_u16(), 408 | 429);
    let is_refused = is_transient || (status.is_client_error() && want == Want::Nothing);
    let mut body = response.into_body();
    if want == Want::Nothing && !is_refused {
        while let Some(frame) = body.frame().await {
            frame.map_err(|error| lost(&error))?;
        }
        return Ok(Ok(Reply { rows: 1, values: None }));
    }
    let body = body.collect().await.map_err(|error| lost(&error))?.to_bytes();
    if is_refused {
        let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let colon = if shown.is_empty() { "" } else { ": " };
        let message = format!(
            "{} {} was answered by {status}{colon}{}.",
            request.method(),
            request.uri(),
            shown.trim_end_matches('.')
        );
        return Ok(Err(DriverError { message, is_transient }));
    }
    let body = match String::from_utf8(body.to_vec()) {
        Ok(text) => Value::Text(text),
        Err(bytes) => Value::Blob(bytes.into_bytes()),
    };
    let pairs = [("status", Value::Int(status.as_u16().into())), ("body", body)];
    let values = Value::Map(pairs.into_iter().map(|(name, value)| (Value::Text(name.to_owned()), value)).collect());
    Ok(Ok(Reply { rows: 1, values: Some(values) }))
}

/// `nginx/1.22.1 (Debian)`, or a name alone.
fn about(server: &str) -> Option<ServerInfo> {
    let (software, version) = server.split_once('/').unwrap_or((server, ""));
    (!software.trim().is_empty()).then(|| ServerInfo::new(software, version))
}

fn lost(error: &hyper::Error) -> DriverError {
    let is_not_http = error.is_parse() || error.is_user();
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let why = if is_not_http { "The answer is not HTTP/1.1" } else { "The connection is lost" };
    DriverError { message: format!("{why}: {innermost}."), is_transient: !is_not_http }
}

impl Driver for Http {
    fn prepare<'a>(&'a self, key: &'a str, statement: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let message = Message::parse(statement)?;
            self.messages.borrow_mut().insert(key.to_owned(), Rc::new(message));
            Ok(())
        })
    }

    fn execute<'a>(&'a self, statement: &'a str, args: &'a Args, want: Want) -> Pending<'a, Reply> {
        Box::pin(async move { self.call(&Message::parse(statement)?, args, want).await })
    }

    /// Known from the first answer on: a request that no script sent would be counted on the other side.
    fn server(&self) -> Option<ServerInfo> {
        self.server.get().cloned().flatten()
    }

    fn execute_prepared<'a>(&'a self, key: &'a str, args: &'a Args, want: Want) -> Pending<'a, Reply> {
        Box::pin(async move {
            let message = self.messages.borrow().get(key).cloned().ok_or_else(|| super::never_prepared(key))?;
            self.call(&message, args, want).await
        })
    }
}
