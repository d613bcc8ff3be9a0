//! What fetching may cost, with small limits so that they are met.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use super::{Fetch, Limits};

const LIMITS: Limits =
    Limits { file: 10_000, all: 25_000, file_time: Duration::from_secs(60), all_time: Duration::from_secs(60) };

/// A server that hears each request out, and answers it so.
fn server(answer: impl Fn(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut seen = Vec::new();
            let mut byte = [0];
            while !seen.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                seen.push(byte[0]);
            }
            answer(&mut stream);
        }
    });
    format!("http://{address}")
}

fn get(fetch: &Fetch, server: &str, folder: &Path, name: &str) -> bool {
    fetch.get(server, &[name], &folder.join(name), &mut |_| Ok(())).is_some()
}

fn body(size: usize) -> impl Fn(&mut TcpStream) + Send {
    move |stream| _ = stream.write_all(&[b"HTTP/1.1 200 OK\r\n\r\n", &vec![b'x'; size][..]].concat())
}

#[test]
fn a_body_without_an_end_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let endless = server(|stream| {
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    });
    let parts = server(|stream| {
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while stream.write_all(b"4\r\nxxxx\r\n").is_ok() {}
    });
    for server in [endless, parts] {
        let fetch = Fetch::new(LIMITS);
        assert!(!get(&fetch, &server, dir.path(), "a"));
        assert!(fetch.notes()[0].contains("more than the 10000 bytes"), "{:?}", fetch.notes());
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn all_files_have_one_limit() {
    let dir = tempfile::tempdir().unwrap();
    let (server, fetch) = (server(body(9000)), Fetch::new(LIMITS));
    let got = ["a", "b", "c", "d"].map(|name| get(&fetch, &server, dir.path(), name));
    assert_eq!(got, [true, true, false, false]);
    let notes = fetch.notes();
    assert!(
        notes[0].ends_with("gave 2 files with names, 18 KiB") && notes[1].contains("more than the 7000 bytes"),
        "{notes:?}"
    );
}

#[test]
fn a_server_that_keeps_one_waiting_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let silent = server(|_| std::thread::sleep(Duration::from_secs(3600)));
    let drips = server(|stream| {
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    for server in [silent, drips] {
        let fetch = Fetch::new(Limits { file_time: Duration::from_millis(200), ..LIMITS });
        assert!(!get(&fetch, &server, dir.path(), "a"));
        assert!(fetch.notes()[0].contains("it takes too long"), "{:?}", fetch.notes());
    }
    let server = server(body(10));
    let fetch = Fetch::new(Limits { all_time: Duration::ZERO, ..LIMITS });
    assert!(
        !get(&fetch, &server, dir.path(), "a") && fetch.notes()[0].contains("fetching took"),
        "{:?}",
        fetch.notes()
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn what_is_not_accepted_is_not_kept_and_links_are_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (server, fetch) = (server(body(10)), Fetch::new(LIMITS));
    let (kept, other) = (dir.path().join("a"), dir.path().join("other"));
    std::fs::write(&other, "").unwrap();
    let refused = fetch.get(&server, &["a"], &kept, &mut |path| {
        assert_eq!(std::fs::read(path).unwrap().len(), 10);
        Err("is not it".into())
    });
    assert!(refused.is_none() && !kept.exists() && fetch.notes()[0].contains("what the server gave is not it"));
    std::os::unix::fs::symlink("nowhere", &kept).unwrap();
    assert!(get(&fetch, &server, dir.path(), "a"));
    assert!(std::fs::symlink_metadata(&kept).unwrap().is_file());
    assert_eq!(std::fs::read(&other).unwrap(), b"");
}
