//! Connections: taken in order, as many as there is room for.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, Response, StatusCode};
use axum::{Extension, Router};
use holdup_view::Gallery;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::asking::{Asked, Asking};
use crate::token::Token;
use crate::{guard, page};

/// Connections at once; one more takes the place of a stranger's, or waits.
const MOST_CONNECTIONS: usize = 64;
/// The longest question in bytes.
const MOST_BYTES: usize = 256 << 10;
/// What a connection may take to send its headers, also between two requests.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a question may take to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(10);
const FRAMED: &str = "application/octet-stream";

/// A server that listens, and has not begun to answer.
pub struct Server {
    listener: std::net::TcpListener,
    token: Token,
    port: u16,
}

/// Whether a connection has asked anything with the token.
type Known = Arc<AtomicBool>;

/// The connections that there are, the oldest first.
#[derive(Default)]
struct Guests(VecDeque<(Known, AbortHandle)>);

impl Guests {
    /// Closes the oldest connection on which nobody has shown the token: who keeps silent takes no place from the page.
    fn show_out_a_stranger(&mut self) {
        self.0.retain(|(_, task)| !task.is_finished());
        let stranger = self.0.iter().position(|(known, _)| !known.load(Ordering::Relaxed));
        if let Some((_, task)) = stranger.and_then(|at| self.0.remove(at)) {
            task.abort();
        }
    }
}

struct Shared {
    token: Token,
    asking: Asking,
}

/// Listens on the loopback device: on `port`, or on any that is free for 0.
///
/// # Errors
/// If the port is taken, or if there is no randomness for a token.
pub fn bind(port: u16) -> io::Result<Server> {
    let listener = std::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    Ok(Server { listener, token: Token::new()?, port })
}

impl Server {
    /// The address of the page. Who knows it gets in.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Answers until the process ends.
    ///
    /// # Errors
    /// If the system refuses what a server needs.
    pub fn run(self, gallery: Arc<Gallery>) -> io::Result<()> {
        let at_once = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 8));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2 * at_once)
            .thread_name("holdup-view")
            .build()?;
        runtime.block_on(self.accept(Asking::new(gallery, at_once)))
    }

    async fn accept(self, asking: Asking) -> io::Result<()> {
        let listener = TcpListener::from_std(self.listener)?;
        let shared = Arc::new(Shared { token: self.token, asking });
        let router = Router::new().fallback(respond).with_state(shared);
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut guests = Guests::default();
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                // One connection that failed, or no descriptor left: the next may do better.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            };
            if room.available_permits() == 0 {
                guests.show_out_a_stranger();
            }
            let Ok(place) = room.clone().acquire_owned().await else { return Ok(()) };
            let known = Known::default();
            let router = router.clone().layer(Extension(known.clone()));
            let task = tokio::spawn(async move {
                talk(stream, router).await;
                drop(place);
            });
            guests.0.retain(|(_, task)| !task.is_finished());
            guests.0.push_back((known, task.abort_handle()));
        }
    }
}

pub(crate) async fn talk(stream: TcpStream, router: Router) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(64 << 10);
    // Who hangs up in the middle is not our concern.
    let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await;
}

async fn respond(
    State(shared): State<Arc<Shared>>,
    Extension(known): Extension<Known>,
    request: Request,
) -> Response<Body> {
    let path = match guard::admit(&request, &shared.token) {
        Ok(path) => path.to_owned(),
        Err(status) => return page::refuse(status),
    };
    known.store(true, Ordering::Relaxed);
    match (request.method(), path.as_str()) {
        (&Method::POST, "api/ask") => ask(&shared, request.into_body()).await,
        (&Method::GET, "api/traces") => page::answer(StatusCode::OK, FRAMED, Body::from(shared.asking.list())),
        (&Method::GET, path) => page::file(path).unwrap_or_else(|| page::refuse(StatusCode::NOT_FOUND)),
        _ => page::refuse(StatusCode::METHOD_NOT_ALLOWED),
    }
}

async fn ask(shared: &Shared, body: Body) -> Response<Body> {
    let read = tokio::time::timeout(BODY_PATIENCE, to_bytes(body, MOST_BYTES));
    let bytes = match read.await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return page::refuse(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => return page::refuse(StatusCode::REQUEST_TIMEOUT),
    };
    match shared.asking.ask(&bytes).await {
        Asked::Answer(bytes) => page::answer(StatusCode::OK, FRAMED, Body::from(bytes)),
        Asked::Cancelled(bytes) => page::answer(StatusCode::CONFLICT, FRAMED, Body::from(bytes)),
        Asked::Busy => page::refuse(StatusCode::SERVICE_UNAVAILABLE),
    }
}
