//! A connection as bytes: TCP, with TLS where it is asked for.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::DriverError;

/// What bytes go over.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A TCP connection that sends small requests at once.
pub(super) async fn tcp(host: &str, port: u16) -> Result<TcpStream, DriverError> {
    let mut refused = None;
    let addresses = tokio::net::lookup_host((host, port)).await.map_err(|error| {
        DriverError::fatal(format!("The host {host} has no IP address that can be found: {error}."))
    })?;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Only delays would be lost with it.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => refused = Some(error),
        }
    }
    let why = refused.map_or_else(|| "it has no IP address".to_owned(), |error| error.to_string());
    Err(DriverError::transient(format!("There is no connection to {host}:{port}: {why}.")))
}

/// TCP, and TLS over it if there is a configuration.
#[cfg(any(feature = "http", feature = "redis"))]
pub(super) async fn open(host: &str, port: u16, tls: Option<&Arc<ClientConfig>>) -> Result<Stream, DriverError> {
    let stream = tcp(host, port).await?;
    match tls {
        None => Ok(Stream::Plain(stream)),
        Some(config) => secure(stream, host, Arc::clone(config)).await.map_err(|error| handshake(host, port, &error)),
    }
}

/// TLS over a connection that is there.
pub(super) async fn secure(stream: TcpStream, host: &str, config: Arc<ClientConfig>) -> io::Result<Stream> {
    let name =
        ServerName::try_from(host.to_owned()).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let stream = TlsConnector::from(config).connect(name, stream).await?;
    Ok(Stream::Tls(Box::new(stream)))
}

/// A server that breaks off may be starting; one whose certificate is wrong stays so.
#[cfg(any(feature = "http", feature = "redis"))]
fn handshake(host: &str, port: u16, error: &io::Error) -> DriverError {
    let is_wrong = matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput);
    DriverError { message: format!("There is no TLS with {host}:{port}: {error}."), is_transient: !is_wrong }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, into),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
