//! A machine that is honest, and those that are not: the listener is this process, so its credentials are the target's.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::*;

const LIMIT: Duration = Duration::from_millis(300);

fn me() -> u32 {
    std::process::id()
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn own() -> Target {
    Target::for_test(me(), rustix::process::geteuid().as_raw())
}

fn map_in(dir: &Path) -> PathBuf {
    dir.join(format!("perf-{}.map", me()))
}

/// Asks a machine in `dir` that does `serve` with whom it accepts.
fn asked(
    dir: &Path,
    target: &Target,
    serve: impl FnOnce(UnixStream, &Path) + Send + 'static,
) -> Result<Vec<u8>, Refusal> {
    let listener = UnixListener::bind(dir.join(format!(".java_pid{}", me()))).unwrap();
    let place = dir.to_owned();
    std::thread::spawn(move || {
        if let Ok((stream, _)) = listener.accept() {
            serve(stream, &place);
        }
    });
    ask(target, File::open(dir).unwrap().as_fd(), Instant::now() + LIMIT)
}

fn take_command(stream: &mut UnixStream) {
    let wanted = b"1\0jcmd\0Compiler.perfmap\0\0\0";
    let mut got = [0; 26];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(&got, wanted);
}

#[test]
fn an_honest_map_is_read_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let got = asked(dir.path(), &own(), |mut s, dir| {
        take_command(&mut s);
        std::fs::write(map_in(dir), "1000 10 int A::b(int)\n").unwrap();
        s.write_all(b"0\n").unwrap();
    });
    assert_eq!(got.unwrap(), b"1000 10 int A::b(int)\n");
    assert!(!map_in(dir.path()).exists());
}

#[test]
fn one_that_never_answers_or_dies_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let silent = asked(dir.path(), &own(), |s, _| {
        std::thread::sleep(LIMIT * 20);
        drop(s);
    });
    assert!(matches!(silent, Err(Refusal::Silent(_))), "{silent:?}");
    let dir = tempfile::tempdir().unwrap();
    let dead = asked(dir.path(), &own(), |mut s, _| take_command(&mut s));
    assert!(matches!(dead, Err(Refusal::Silent(_))), "{dead:?}");
}

#[test]
fn an_endless_reply_and_one_byte_by_byte_end() {
    let dir = tempfile::tempdir().unwrap();
    let endless = asked(dir.path(), &own(), |mut s, _| while s.write_all(&[b'x'; 4096]).is_ok() {});
    assert!(matches!(endless, Err(Refusal::Command(text)) if text.len() == 64 << 10));
    let dir = tempfile::tempdir().unwrap();
    let slow = asked(dir.path(), &own(), |mut s, _| {
        while s.write_all(b"0").is_ok() {
            std::thread::sleep(LIMIT / 10);
        }
    });
    assert!(matches!(slow, Err(Refusal::Silent(_))), "{slow:?}");
}

#[test]
fn a_refusal_and_an_unknown_command_are_told() {
    for reply in [&b"101\nno\n"[..], b"0\njava.lang.IllegalArgumentException: Unknown diagnostic command\n"] {
        let dir = tempfile::tempdir().unwrap();
        let got = asked(dir.path(), &own(), |mut s, _| {
            take_command(&mut s);
            s.write_all(reply).unwrap();
        });
        assert!(matches!(got, Err(Refusal::Command(_))), "{got:?}");
    }
}

#[test]
fn a_link_for_a_map_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    std::fs::write(&secret, "1000 10 secret\n").unwrap();
    let got = asked(dir.path(), &own(), |mut s, dir| {
        take_command(&mut s);
        std::os::unix::fs::symlink(dir.join("secret"), map_in(dir)).unwrap();
        s.write_all(b"0\n").unwrap();
    });
    assert!(matches!(got, Err(Refusal::System(_))), "{got:?}");
    assert!(secret.exists());
}

#[test]
fn a_huge_map_is_refused_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let got = asked(dir.path(), &own(), |mut s, dir| {
        take_command(&mut s);
        File::create(map_in(dir)).unwrap().set_len(MAP_LIMIT + 1).unwrap();
        s.write_all(b"0\n").unwrap();
    });
    assert!(matches!(got, Err(Refusal::Huge(_))), "{got:?}");
    assert!(!map_in(dir.path()).exists());
}

#[test]
fn what_listens_must_be_the_process_itself() {
    let dir = tempfile::tempdir().unwrap();
    // The socket's owner and place are right; who listens is another process.
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let uid = rustix::process::geteuid().as_raw();
    let target = {
        let mut target = Target::for_test(other.id(), uid);
        target.inner = me();
        target
    };
    let got = asked(dir.path(), &target, |_, _| {});
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(matches!(got, Err(Refusal::Planted(_))), "{got:?}");
    // And a file or another user's socket is not talked to at all.
    let dir = tempfile::tempdir().unwrap();
    let got = asked(dir.path(), &Target::for_test(me(), uid + 1), |_, _| panic!("was connected to"));
    assert!(matches!(got, Err(Refusal::Planted(_))), "{got:?}");
}

#[test]
fn a_process_that_would_die_of_it_is_not_signalled() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().unwrap();
    let target = Target::for_test(child.id(), rustix::process::geteuid().as_raw());
    let got = ask(&target, File::open(dir.path()).unwrap().as_fd(), Instant::now() + LIMIT);
    assert!(matches!(got, Err(Refusal::Uncaught(_))), "{got:?}");
    assert!(child.try_wait().unwrap().is_none());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_map_that_is_there_stays() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(map_in(dir.path()), "1000 10 f\n").unwrap();
    let got = asked(dir.path(), &own(), |_, _| panic!("was connected to"));
    assert!(matches!(got, Err(Refusal::MapExists)), "{got:?}");
    assert!(map_in(dir.path()).exists());
}

#[test]
fn only_java_is_asked() {
    assert!(matches!(perf_map(me(), user(), LIMIT), Err(Refusal::NotJava(_))));
    assert!(matches!(perf_map(u32::MAX, user(), LIMIT), Err(Refusal::NotJava(_))));
}

#[test]
fn another_file_in_the_maps_place_stays() {
    let dir = tempfile::tempdir().unwrap();
    let tmp = File::open(dir.path()).unwrap();
    std::fs::write(dir.path().join("m"), "1000 10 f\n").unwrap();
    let written = statat(&tmp, "m", AtFlags::SYMLINK_NOFOLLOW).unwrap();
    // Beside the old one, which keeps its inode.
    std::fs::rename(dir.path().join("m"), dir.path().join("old")).unwrap();
    std::fs::write(dir.path().join("m"), "another's").unwrap();
    remove_same(tmp.as_fd(), "m", &written);
    assert!(dir.path().join("m").exists());
    remove_same(tmp.as_fd(), "old", &written);
    assert!(!dir.path().join("old").exists());
}

#[test]
fn another_user_is_not_asked() {
    let got = perf_map(me(), user() + 1, LIMIT);
    assert!(matches!(got, Err(Refusal::OtherUser { .. })), "{got:?}");
}
