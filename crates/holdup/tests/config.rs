//! The file of settings: defaults that the command line wins over, sentences for what cannot be, and whose file it is.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use holdup_testing::{Need, has};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../holdup-import/tests/fixtures/task.perf.data");

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    let o = command.args(args).stdin(Stdio::null()).env("XDG_CONFIG_HOME", folder).output().expect("starts");
    assert!(!err(&o).contains("panicked"), "{}", err(&o));
    o
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

fn lines(folder: &Path, args: &[&str]) -> usize {
    let o = run(folder, args);
    assert_eq!(o.status.code(), Some(0), "{args:?}: {}", err(&o));
    String::from_utf8_lossy(&o.stdout).lines().count()
}

fn written(folder: &Path, text: &str) {
    let path = folder.join("holdup.toml");
    fs::write(&path, text).expect("write");
    fs::set_permissions(path, PermissionsExt::from_mode(0o600)).expect("mode");
}

#[test]
fn defaults_come_from_the_file_and_the_command_line_wins() {
    let dir = tempfile::tempdir().expect("dir");
    let table = ["table", TRACE, "switches"];
    let without = lines(dir.path(), &table);
    written(dir.path(), "[table]\nformat = \"csv\"\ntop = 3\n");
    assert!(without > 4);
    assert_eq!(lines(dir.path(), &table), 1 + 3);
    assert_eq!(lines(dir.path(), &[&table[..], &["--top", "2"]].concat()), 1 + 2);
    let help = run(dir.path(), &["record", "--help"]);
    assert!(!String::from_utf8_lossy(&help.stdout).contains("[default: 99]"));
    written(dir.path(), "freq = 99\n");
    let help = run(dir.path(), &["record", "--help"]);
    assert!(String::from_utf8_lossy(&help.stdout).contains("[default: 99]"));
}

#[test]
fn mistakes_are_sentences_with_their_line() {
    let dir = tempfile::tempdir().expect("dir");
    for (text, says) in [
        ("frq = 99\n", "line 1: there is no setting \"frq\" (did you mean freq?)"),
        ("\n\nfreq = 'much'\n", "line 3: freq: invalid value 'much'"),
        ("[explain]\ntop = \n", "line 2: "),
    ] {
        written(dir.path(), text);
        let o = run(dir.path(), &["info", TRACE]);
        assert_eq!(o.status.code(), Some(2), "{text}: {}", err(&o));
        assert!(err(&o).contains(says) && err(&o).contains("holdup.toml"), "{text}: {}", err(&o));
        assert_eq!(err(&o).trim_end().lines().count(), 1);
        // What helps to mend it goes on.
        for args in [&["--help"][..], &["table", "--help"], &["completions", "bash"], &["schema"]] {
            assert_eq!(run(dir.path(), args).status.code(), Some(0), "{args:?}");
        }
    }
}

#[test]
fn root_takes_no_settings_from_others() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("holdup.toml");
    if !has(Need::Root) {
        return;
    }
    chown(dir.path(), Some(65534), None).expect("chown");
    let table = ["table", TRACE, "switches"];
    let without = lines(dir.path(), &table);
    // That of the user who called sudo, where their HOME is kept.
    written(dir.path(), "top = 3\n");
    chown(&path, Some(65534), None).expect("chown");
    let o = run(dir.path(), &table);
    assert!(err(&o).contains("is not read: it is not root's own"), "{}", err(&o));
    assert_eq!(String::from_utf8_lossy(&o.stdout).lines().count(), without);
    // A link to a file of root's: its text must not reach anybody.
    fs::remove_file(&path).expect("remove");
    let secret = dir.path().join("secret");
    fs::write(&secret, "password = hunter2\n").expect("write");
    symlink(&secret, &path).expect("link");
    let o = run(dir.path(), &table);
    assert!(err(&o).contains("symbolic link") && !err(&o).contains("hunter2"), "{}", err(&o));
    assert_eq!(o.status.code(), Some(0));
}

#[test]
fn a_pipe_in_its_place_keeps_nobody_waiting() {
    let dir = tempfile::tempdir().expect("dir");
    assert!(Command::new("mkfifo").arg(dir.path().join("holdup.toml")).status().expect("mkfifo").success());
    let o = run(dir.path(), &["info", TRACE]);
    assert!(o.status.code() == Some(0) && err(&o).contains("it is not a file"), "{}", err(&o));
}
