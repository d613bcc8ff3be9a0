//! One text over HTTP, for programs that fetch it again and again: `/metrics`.
//!
//! Without a secret it is for this machine alone, and only under names that no other site can have. Elsewhere who asks has to
//! show the secret.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, Response, StatusCode, header};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::guard::is_of_this_machine;
use crate::page;
use crate::serve::talk;
use crate::token::Token;

/// Connections at once; others wait.
const MOST_CONNECTIONS: usize = 16;

/// What is fetched: the last text that was put up.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<Arc<str>>>);

impl Board {
    /// Puts up another text.
    pub fn put_up(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text.into();
    }

    fn text(&self) -> Arc<str> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Who may fetch, and what.
struct Shared {
    board: Board,
    media_type: &'static str,
    secret: Option<Token>,
    /// Whether it listens for this machine alone.
    at_home: bool,
}

/// A board that listens, and has not begun to answer.
pub struct Scraped {
    listener: std::net::TcpListener,
    shared: Shared,
}

/// On a socket that listens. With a `secret`, who fetches sends `Authorization: Bearer SECRET`.
///
/// # Errors
/// If it is no such socket.
pub fn on(
    listener: std::net::TcpListener,
    secret: Option<String>,
    board: Board,
    media_type: &'static str,
) -> io::Result<Scraped> {
    listener.set_nonblocking(true)?;
    let at_home = listener.local_addr()?.ip().is_loopback();
    let shared = Shared { board, media_type, secret: secret.map(Token::of), at_home };
    Ok(Scraped { listener, shared })
}

impl Scraped {
    /// Answers until the process ends.
    ///
    /// # Errors
    /// If the system refuses what a server needs.
    pub fn run(self) -> io::Result<()> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().thread_name("holdup-metrics").build()?;
        runtime.block_on(accept(self.listener, self.shared))
    }
}

async fn accept(listener: std::net::TcpListener, shared: Shared) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let router = Router::new().fallback(respond).with_state(Arc::new(shared));
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return Ok(()) };
        let Ok((stream, _)) = listener.accept().await else {
            // One connection that failed, or no descriptor left: the next may do better.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let router = router.clone();
        tokio::spawn(async move {
            talk(stream, router).await;
            drop(place);
        });
    }
}

async fn respond(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    if let Err(status) = admit(&shared, &request) {
        return page::refuse(status);
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => {
            page::answer(StatusCode::OK, shared.media_type, Body::from(shared.board.text().to_string()))
        }
        (&Method::GET, _) => page::refuse(StatusCode::NOT_FOUND),
        _ => page::refuse(StatusCode::METHOD_NOT_ALLOWED),
    }
}

fn admit(shared: &Shared, request: &Request) -> Result<(), StatusCode> {
    let Some(secret) = &shared.secret else {
        let known = !shared.at_home || is_of_this_machine(request.headers());
        return if known { Ok(()) } else { Err(StatusCode::FORBIDDEN) };
    };
    let shown = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let is_it = shown.and_then(|shown| shown.strip_prefix("Bearer ")).is_some_and(|shown| secret.is(shown));
    if is_it { Ok(()) } else { Err(StatusCode::UNAUTHORIZED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(shared: &Shared, headers: &[(&str, &str)]) -> Result<(), StatusCode> {
        let mut request = Request::get("/metrics");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        admit(shared, &request.body(Body::empty()).unwrap())
    }

    #[test]
    fn who_does_not_belong_here_gets_nothing() {
        let of = |secret: Option<&str>, at_home| Shared {
            board: Board::default(),
            media_type: "text/plain",
            secret: secret.map(|s| Token::of(s.to_owned())),
            at_home,
        };
        let here = of(None, true);
        assert_eq!(asked(&here, &[("host", "127.0.0.1:9464")]), Ok(()));
        for headers in
            [&[][..], &[("host", "evil.example")], &[("host", "localhost:1"), ("origin", "http://evil.example")]]
        {
            assert_eq!(asked(&here, headers), Err(StatusCode::FORBIDDEN), "{headers:?}");
        }
        let afar = of(Some("sesame"), false);
        assert_eq!(asked(&afar, &[("host", "node7:9464"), ("authorization", "Bearer sesame")]), Ok(()));
        for headers in [&[("host", "node7")][..], &[("authorization", "Bearer sesam")], &[("authorization", "sesame")]]
        {
            assert_eq!(asked(&afar, headers), Err(StatusCode::UNAUTHORIZED), "{headers:?}");
        }
    }
}
