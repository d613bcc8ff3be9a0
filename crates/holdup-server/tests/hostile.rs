//! Requests of those who are not invited, and of those who ask too much.

#![allow(missing_docs)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use holdup_analysis::NoDisassembler;
use holdup_synth::{Shape, Spec, generate};
use holdup_trace::Destination;
use holdup_view::{Gallery, Item, Model};

/// A server with a small trace.
struct Served {
    port: u16,
    token: String,
}

fn serve() -> Served {
    let server = holdup_server::bind(0).unwrap();
    let (port, url) = (server.port(), server.url());
    let token = url.trim_end_matches('/').rsplit('/').next().unwrap().to_owned();
    let gallery = Arc::new(Gallery::default());
    let id = gallery.add("made");
    let spec = Spec { shape: Shape::Lock, cpus: 4, threads: 20, events: 20_000, seed: 1, losses: 0 };
    let trace = generate(&spec, &Destination::Memory).unwrap().trace;
    gallery.set(id, Item::Trace(Model::open(trace, "made", Box::new(NoDisassembler)).unwrap().into()));
    std::thread::spawn(move || server.run(gallery).unwrap());
    Served { port, token }
}

impl Served {
    /// The status and the rest of the answer to bytes that are sent as they are.
    fn raw(&self, request: &[u8]) -> std::io::Result<(u16, Vec<u8>)> {
        self.raw_within(request, Duration::from_secs(60))
    }

    fn raw_within(&self, request: &[u8], patience: Duration) -> std::io::Result<(u16, Vec<u8>)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(patience))?;
        // A server that has heard enough may hang up before all is said.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(e) if answer.is_empty() => return Err(e),
            _ => {}
        }
        let line = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
        Ok((line.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0), answer))
    }

    fn get(&self, path: &str, headers: &str) -> (u16, Vec<u8>) {
        let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        self.raw(request.as_bytes()).unwrap()
    }

    fn ask(&self, question: &str) -> std::io::Result<(u16, Vec<u8>)> {
        let length = question.len();
        let head = format!(
            "POST /{}/api/ask HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n",
            self.token
        );
        self.raw(format!("{head}{question}").as_bytes())
    }
}

const HOST: &str = "Host: 127.0.0.1\r\n";

#[test]
fn the_page_is_for_who_has_the_address() {
    let served = serve();
    let page = format!("/{}/", served.token);
    let (status, answer) = served.get(&page, HOST);
    assert_eq!(status, 200);
    let answer = String::from_utf8_lossy(&answer).to_lowercase();
    for header in [
        "content-security-policy: default-src 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "frame-ancestors 'none'",
    ] {
        assert!(answer.contains(header), "{header}");
    }
    assert_eq!(served.ask(r#"{"ask":"summary"}"#).unwrap().0, 200);
    let other: String = served.token.chars().rev().collect();
    let strangers = [
        ("/".to_owned(), HOST, 404),
        ("/api/ask".to_owned(), HOST, 404),
        (format!("/{other}/"), HOST, 404),
        (format!("/{}", served.token), HOST, 404),
        (page.clone(), "", 403),
        (page.clone(), "Host: evil.example\r\n", 403),
        (page.clone(), "Host: 127.0.0.1\r\nOrigin: http://evil.example\r\n", 403),
        (page.clone(), "Host: 127.0.0.1\r\nOrigin: null\r\n", 403),
        (page.clone(), "Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\n", 403),
        (format!("{page}api/ask"), HOST, 404),
        (format!("{page}../../etc/passwd"), HOST, 404),
        (format!("{page}%2e%2e/%2e%2e/etc/passwd"), HOST, 404),
        (format!("{page}..%2f..%2fetc%2fpasswd"), HOST, 404),
        (format!("{page}app.js%00.html"), HOST, 404),
        (format!("{page}/app.js"), HOST, 404),
    ];
    for (path, headers, wanted) in strangers {
        let (status, answer) = served.get(&path, headers);
        // An HTTP library may refuse a missing host before we do.
        assert!(status == wanted || headers.is_empty() && status == 400, "{path} with {headers:?}: {status}");
        assert!(!String::from_utf8_lossy(&answer).contains("root:"), "{path}");
    }
    let put = format!("PUT {page}app.js HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(served.raw(put.as_bytes()).unwrap().0, 405);
}

#[test]
fn too_much_at_once_is_refused() {
    let served = serve();
    let huge = "x".repeat(1 << 20);
    match served.ask(&huge) {
        Ok((status, _)) => assert_eq!(status, 413),
        // It hung up while we were still talking.
        Err(e) => {
            assert!(matches!(e.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe), "{e}");
        }
    }
    let headers: String = (0..5000).map(|i| format!("X-{i}: {i}\r\n")).collect();
    let (status, _) = served.get(&format!("/{}/", served.token), &format!("{HOST}{headers}"));
    assert!(matches!(status, 400 | 431), "{status}");
    let chunked = format!(
        "POST /{}/api/ask HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
        served.token
    );
    let mut bytes = chunked.into_bytes();
    (0..64).for_each(|_| bytes.extend([b"8000\r\n".as_slice(), &[b'x'; 0x8000], b"\r\n"].concat()));
    if let Ok((status, _)) = served.raw(&bytes) {
        assert_eq!(status, 413);
    }
    for nonsense in ["", "{", "null", "\u{0}", r#"{"ask":"use","window":[0,1e9],"px":99999999999}"#] {
        let (status, answer) = served.ask(nonsense).unwrap();
        assert!(status == 200 && String::from_utf8_lossy(&answer).contains("\"error\""), "{nonsense:?}: {status}");
    }
    assert_eq!(served.ask(r#"{"ask":"summary"}"#).unwrap().0, 200, "it is still there");
}

/// A thousand at once: each is answered or refused, and the memory of the process stays what it was.
#[test]
fn a_flood_is_served_or_refused() {
    let served = Arc::new(serve());
    served.ask(r#"{"ask":"explain"}"#).unwrap();
    let before = resident_kb();
    let (answered, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let most = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..50 {
            let (served, answered, refused, most) = (&served, &answered, &refused, &most);
            scope.spawn(move || {
                for i in 0..20 {
                    let from = (thread * 20 + i) * 1000;
                    let question = format!(r#"{{"ask":"use","window":[{from},1e9],"px":100}}"#);
                    match served.ask(&question) {
                        Ok((200, answer)) if !String::from_utf8_lossy(&answer).contains("\"error\"") => {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok((200 | 503, _)) | Err(_) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok((status, _)) => panic!("{status}"),
                    }
                    most.fetch_max(resident_kb(), Ordering::Relaxed);
                }
            });
        }
    });
    let (answered, refused) = (answered.into_inner(), refused.into_inner());
    assert_eq!(answered + refused, 1000);
    assert!(answered > 100, "only {answered} were answered");
    let grown = most.into_inner().saturating_sub(before);
    assert!(grown < 200 << 10, "the flood took {grown} kB");
}

/// More than there is room for connect and say nothing: the page is answered all the same, and at once.
#[test]
fn who_keeps_silent_takes_no_place() {
    let served = serve();
    let silent: Vec<_> = (0..200).map(|_| TcpStream::connect(("127.0.0.1", served.port)).unwrap()).collect();
    // Half of what the server's patience with each of them is.
    let request = format!("GET /{}/ HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n", served.token);
    let (status, _) = served.raw_within(request.as_bytes(), Duration::from_secs(15)).unwrap();
    assert_eq!(status, 200);
    drop(silent);
}

/// Of one gesture only the newest question is answered.
#[test]
fn a_newer_gesture_takes_the_place_of_an_older_one() {
    let served = serve();
    let question = |turn: u32| format!(r#"{{"ask":"summary","gesture":"zoom","turn":{turn}}}"#);
    assert_eq!(served.ask(&question(7)).unwrap().0, 200);
    let (status, answer) = served.ask(&question(6)).unwrap();
    assert_eq!(status, 409);
    assert!(String::from_utf8_lossy(&answer).contains(r#"{"cancelled":true}"#));
    assert_eq!(served.ask(&question(8)).unwrap().0, 200);
}

fn resident_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
