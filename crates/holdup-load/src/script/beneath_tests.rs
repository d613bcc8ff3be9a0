//! Ways out of a script's folder, each of which has to be refused.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use super::*;

/// A folder with a script's folder `in` and a file beside it that is none of the script's business.
fn folders() -> (tempfile::TempDir, Files) {
    let root = tempfile::tempdir().unwrap();
    let inside = root.path().join("in");
    std::fs::create_dir_all(inside.join("sub")).unwrap();
    std::fs::write(root.path().join("secret"), "secret").unwrap();
    std::fs::write(inside.join("mine"), "mine").unwrap();
    std::fs::write(inside.join("sub/deep"), "deep").unwrap();
    symlink("../secret", inside.join("out")).unwrap();
    symlink(root.path().join("secret"), inside.join("absolute")).unwrap();
    symlink("..", inside.join("up")).unwrap();
    symlink("/proc/self/cwd", inside.join("magic")).unwrap();
    symlink("sub/deep", inside.join("within")).unwrap();
    symlink("loop", inside.join("loop")).unwrap();
    let files = Files::of(&inside.join("work.rn"), false);
    (root, files)
}

#[test]
fn what_lies_in_the_folder_is_read() {
    let (root, files) = folders();
    let read = |file: &str| files.text(Path::new(file), 100).map_err(Refusal::sentence);
    assert_eq!(read("mine").unwrap(), "mine");
    assert_eq!(read("./sub/../mine").unwrap(), "mine");
    assert_eq!(read("within").unwrap(), "deep");
    let whole = root.path().join("in/sub/deep");
    assert_eq!(read(&whole.display().to_string()).unwrap(), "deep");
    assert!(matches!(files.text(Path::new("none"), 100), Err(Refusal::Missing(why)) if why.contains("in/none")));
}

#[test]
fn no_way_leads_out() {
    let (root, files) = folders();
    let secret = root.path().join("secret").display().to_string();
    let ways = ["../secret", "sub/../../secret", "out", "absolute", "up/secret", "magic/Cargo.toml", "loop", &secret];
    for way in ways.into_iter().chain(["/etc/hostname", "/proc/self/environ", "/proc/self/fd/0", "/dev/zero"]) {
        let why = files.text(Path::new(way), 100).map_err(Refusal::sentence).unwrap_err();
        assert!(why.starts_with(way) && why.contains("--allow-fs") && why.contains("/in,"), "{way}: {why}");
    }
    let any = Files { any: true, ..files };
    assert_eq!(any.text(Path::new("out"), 100).map_err(Refusal::sentence).unwrap(), "secret");
}

#[test]
fn without_the_kernels_help_no_way_leads_out_either() {
    let (_root, files) = folders();
    let open = |file: &str| below_by_steps(File::open(files.folder()).unwrap(), Path::new(file));
    assert!(open("./sub/deep").is_ok() && open("mine").is_ok());
    for way in ["../secret", "sub/../../secret", "out", "absolute", "up/secret", "magic/Cargo.toml", "/etc/hostname"] {
        let error = open(way).unwrap_err();
        // A link in place of a folder is "not a folder" to the kernel.
        assert!(leads_out(&error) || error.kind() == io::ErrorKind::NotADirectory, "{way}: {error}");
    }
}

#[test]
fn what_is_no_plain_file_is_refused_at_once() {
    let (root, files) = folders();
    let inside = root.path().join("in");
    assert!(Command::new("mkfifo").arg(inside.join("pipe")).status().unwrap().success());
    let _socket = UnixListener::bind(inside.join("socket")).unwrap();
    for (file, word) in [("pipe", "not a plain file"), ("sub", "not a plain file"), ("socket", "socket: ")] {
        let why = files.text(Path::new(file), 100).map_err(Refusal::sentence).unwrap_err();
        assert!(why.contains(word), "{file}: {why}");
    }
    let why = Files { any: true, ..files }.text(Path::new("/dev/zero"), 100).map_err(Refusal::sentence).unwrap_err();
    assert!(why.contains("/dev/zero: it is not a plain file"), "{why}");
}

#[test]
fn long_files_and_bytes_are_refused_with_their_size_and_place() {
    let (root, files) = folders();
    let path = root.path().join("in/huge");
    File::create(&path).unwrap().set_len(3 << 30).unwrap();
    let read = |most| files.text(Path::new("huge"), most).map_err(Refusal::sentence).unwrap_err();
    assert!(read(1 << 20).contains("it has 3 GiB, and 1 MiB is the most"), "{}", read(1 << 20));
    std::fs::write(&path, b"abc\xff").unwrap();
    assert!(read(100).contains("byte 3 is not UTF-8"), "{}", read(100));
    // Files of the kernel say that they are empty.
    let any = Files { any: true, ..files };
    let why = any.text(Path::new("/proc/self/maps"), 10).map_err(Refusal::sentence).unwrap_err();
    assert!(why.contains("11 bytes, and 10 bytes"), "{why}");
}
