//! What is carried to another data set is there whole and once, whatever happens on the way.

#![allow(missing_docs)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{dataset, keys};
use holdup_base::output::Tree;
use holdup_fleet::{Engine, Error, Manner, Place, Question, ship};
use holdup_synth::Fleet;
use holdup_testing::{Need, has};

const MOVE: Manner = Manner { remove: true, patience: Duration::ZERO };

fn small() -> Fleet {
    Fleet { hosts: 3, days: 2, worse_from: 0, worse: 0, events: 2000 }
}

#[test]
fn what_is_moved_is_there_and_not_here() {
    let (from, to) = (dataset(&small()), tempfile::tempdir().unwrap());
    let before = keys(from.path());
    let target = to.path().join("new").to_str().unwrap().to_owned();
    let done = ship(from.path(), &target, MOVE).unwrap().unwrap();
    assert_eq!((done.traces, done.incomplete), (6, 0));
    assert_eq!(keys(&to.path().join("new")), before);
    assert_eq!(keys(from.path()), ["holdup-dataset.json"]);
    // Who carries it again, after a kill between the two, changes nothing.
    let again = dataset(&small());
    ship(again.path(), &target, Manner::default()).unwrap();
    assert_eq!(keys(&to.path().join("new")), before);
    assert_eq!(keys(again.path()), before);
}

#[test]
fn what_is_not_complete_stays() {
    let (from, to) = (dataset(&small()), tempfile::tempdir().unwrap());
    let all = keys(from.path());
    let row = all.iter().find(|key| key.starts_with("trace/")).unwrap();
    fs::remove_file(from.path().join(row)).unwrap();
    let done = ship(from.path(), to.path().to_str().unwrap(), MOVE).unwrap().unwrap();
    assert_eq!((done.traces, done.incomplete), (5, 1));
    // Its six other tables.
    assert_eq!(keys(from.path()).len(), 7);
}

#[test]
fn one_carries_at_a_time() {
    let (from, to) = (dataset(&small()), tempfile::tempdir().unwrap());
    let other = Tree::create(from.path()).unwrap();
    assert!(other.lock().unwrap());
    assert!(ship(from.path(), to.path().to_str().unwrap(), MOVE).unwrap().is_none());
    drop(other);
    assert!(ship(from.path(), to.path().to_str().unwrap(), MOVE).unwrap().is_some());
}

#[test]
fn a_full_disk_loses_nothing() {
    if !has(Need::Mounts) {
        return;
    }
    let (from, to) = (dataset(&small()), tempfile::tempdir().unwrap());
    let all = keys(from.path());
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"]).arg(to.path()).status();
    assert!(mount.unwrap().success());
    let full = ship(from.path(), to.path().to_str().unwrap(), MOVE);
    let there = keys(to.path());
    assert!(Command::new("umount").arg(to.path()).status().unwrap().success());
    assert!(matches!(full, Err(Error::Machine(_))), "{full:?}");
    // Each trace is whole there or whole here.
    let whole = |keys: &[String], id: &str| keys.iter().filter(|key| key.contains(id)).count() == 7;
    let here = keys(from.path());
    for row in all.iter().filter(|key| key.starts_with("trace/")) {
        let id = row.rsplit('/').next().unwrap();
        assert!(whole(&here, id) || whole(&there, id), "{id}");
    }
    let done = ship(from.path(), to.path().to_str().unwrap(), MOVE).unwrap().unwrap();
    assert_eq!(done.traces as usize, here.iter().filter(|key| key.starts_with("trace/")).count());
}

/// A server that speaks S3: the one of Python's `moto`.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start(port: u16) -> Server {
        let process = Command::new(common::python())
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "moto does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        let server = Server { process, port };
        assert!(server.request("PUT", "/fleet").starts_with("HTTP/1.1 200"));
        server
    }

    fn request(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let host = format!("127.0.0.1:{}", self.port);
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        BufReader::new(&mut stream).read_line(&mut answer).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the tests of a store run in a process of their own, whose environment names it.
const STORE: &str = "HOLDUP_TEST_STORE";

#[test]
fn a_store_that_is_away_for_a_while_gets_everything() {
    if !has(Need::Other { name: "Python with moto", is_here: common::python_has("moto.server") }) {
        return;
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "in_a_store", "--ignored", "--nocapture"]).env(STORE, "s3://fleet/traces");
    command.env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")).env("AWS_ALLOW_HTTP", "true");
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test").env("AWS_REGION", "us-east-1");
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    // Nothing listens when it begins.
    std::thread::sleep(Duration::from_secs(3));
    let server = Server::start(port);
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    drop(server);
}

#[test]
#[ignore = "is run by another test, with a store"]
fn in_a_store() {
    let store = std::env::var(STORE).unwrap();
    let from = dataset(&small());
    let recording = from.path().join("recording/date=2026-11-02/host=web-000");
    fs::create_dir_all(&recording).unwrap();
    let id = keys(from.path()).iter().find(|k| k.starts_with("trace/date=2026-11-02/host=web-000/")).unwrap().clone();
    let id = id.rsplit('/').next().unwrap().replace(".parquet", ".holdup");
    // Longer than a part.
    fs::write(recording.join(&id), vec![7; 20 << 20]).unwrap();
    fs::set_permissions(recording.join(&id), fs::Permissions::from_mode(0o600)).unwrap();
    let here = Engine::open(Place::find(from.path().to_str().unwrap()).unwrap()).unwrap();
    here.choose(&holdup_fleet::Chosen::default()).unwrap();
    let answers: Vec<_> = Question::REPORT.iter().map(|q| here.ask(*q).unwrap()).collect();
    let manner = Manner { remove: true, patience: Duration::from_secs(60) };
    let done = ship(from.path(), &store, manner).unwrap().unwrap();
    assert_eq!(done.traces, 6);
    assert!(done.retries > 0, "{done:?}");
    assert_eq!(keys(from.path()), ["holdup-dataset.json"]);
    let there = Engine::open(Place::find(&store).unwrap()).unwrap();
    there.choose(&holdup_fleet::Chosen::default()).unwrap();
    assert_eq!(Question::REPORT.iter().map(|q| there.ask(*q).unwrap()).collect::<Vec<_>>(), answers);
}
