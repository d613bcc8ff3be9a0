//! Recordings beside others: who may read them, who may record into them, what is left of one that was ended.

mod recording;

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use recording::can_record;

/// Puts something where a file is to be.
type Plant<'a> = &'a dyn Fn(&Path);

const BINARY: &str = env!("CARGO_BIN_EXE_holdup");

/// Switches and wake-ups without samples and stacks: quickly converted.
const LIGHT: [&str; 4] = ["--freq", "0", "--min-wait", "10s"];

fn record(output: &Path, options: &[&str], command: &[&str]) -> Command {
    let mut record = Command::new(BINARY);
    record.stdin(Stdio::null()).arg("record").args(options).arg("-o").arg(output).arg("--").args(command);
    record
}

fn run(mut command: Command) -> Output {
    command.output().expect("it starts")
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

/// Exit code 3 and a sentence with `word`.
fn refused(o: &Output, word: &str) {
    assert_eq!(o.status.code(), Some(3), "{}", err(o));
    assert!(err(o).contains(word) && err(o).trim_end().lines().count() == 1, "{}", err(o));
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("folder").map(|e| e.expect("entry").file_name());
    let mut names: Vec<String> = entries.map(|n| n.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs `holdup` on a trace; its output.
fn ask(args: &[&str], trace: &Path) -> String {
    let o = Command::new(BINARY).args(args).arg(trace).output().expect("it starts");
    assert!(o.status.success(), "{}", err(&o));
    String::from_utf8_lossy(&o.stdout).into_owned()
}

#[test]
fn what_a_recording_writes_is_for_its_owner_alone_from_the_first_byte() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let (folder, seen) = (dir.path().join("made"), dir.path().join("seen"));
    fs::create_dir(&folder).expect("folder");
    // What is recorded looks at the files that the recorder has then; the umask forbids nothing.
    let (all, seen_at) = (folder.display(), seen.display());
    // Of a flight recorder the spool, a segment that is complete and one that is not.
    for (options, least) in [(&["--ring", "400ms"][..], 3), (&LIGHT, 1)] {
        let look = format!(
            "until [ $(ls {all} | wc -l) -ge {least} ]; do sleep 0.05; done; stat -c '%a %u %g %n' {all}/* > {seen_at}"
        );
        let path = folder.join("a.holdup");
        let mut command = Command::new("sh");
        let words = format!("umask 0; exec \"$0\" record {} -o {} -- sh -c \"$1\"", options.join(" "), path.display());
        command.args(["-c", &words, BINARY, &look]).env("SUDO_UID", "12345").env("SUDO_GID", "54321");
        let o = run(command);
        assert!(o.status.success(), "{}", err(&o));
        let text = fs::read_to_string(&seen).expect("seen");
        assert!(text.lines().count() >= least, "{text}");
        assert!(text.lines().all(|l| l.starts_with("600 12345 54321 ") && l.contains(".spool")), "{text}");
        let data = fs::metadata(&path).expect("result");
        assert_eq!((data.permissions().mode() & 0o777, data.uid(), data.gid()), (0o600, 12345, 54321));
        assert_eq!(names(&folder), ["a.holdup"]);
        fs::remove_file(&path).expect("remove");
    }
}

#[test]
fn a_second_recorder_into_the_same_file_is_refused() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let (path, mark) = (dir.path().join("a.holdup"), dir.path().join("mark"));
    let (path_word, mark_word) = (path.display().to_string(), mark.display().to_string());
    // The command that is recorded is the second recorder; what that would record never starts.
    let o = run(record(&path, &LIGHT, &[BINARY, "record", "-o", &path_word, "--", "touch", &mark_word]));
    assert_eq!(o.status.code(), Some(3), "{}", err(&o));
    assert!(err(&o).contains("another holdup is at work on it"), "{}", err(&o));
    assert!(!mark.exists());
    assert!(ask(&["info"], &path).contains("exit code 3"), "the first recorder has its result");
    assert_eq!(names(dir.path()), ["a.holdup"]);
}

#[test]
fn a_run_that_cannot_start_leaves_nothing_and_the_older_result() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("a.holdup");
    fs::write(&path, "older").expect("write");
    for options in [&LIGHT[..], &["--ring", "1s"]] {
        refused(&run(record(&path, options, &["/no/such/program"])), "/no/such/program");
        assert_eq!(fs::read_to_string(&path).expect("read"), "older");
        assert_eq!(names(dir.path()), ["a.holdup"]);
    }
}

#[test]
fn outputs_are_checked_before_the_run() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let mark = dir.path().join("mark");
    let touch = ["touch", mark.to_str().expect("text")];
    for (path, word) in [
        (dir.path().join("none/a.holdup"), "there is no folder"),
        (dir.path().to_owned(), "it is a folder"),
        ("/proc/a.holdup".into(), "cannot be written"),
        ("/dev/stdout".into(), "is no file"),
        ("/dev/null".into(), "is no file"),
        (dir.path().join("x".repeat(252)), "cannot be written"),
    ] {
        refused(&run(record(&path, &LIGHT, &touch)), word);
        assert!(!mark.exists(), "{}: the command ran", path.display());
    }
}

#[test]
fn what_is_planted_is_refused_or_replaced_and_never_followed() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let shared = dir.path().join("shared");
    fs::create_dir(&shared).expect("folder");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("mode");
    let (victim, path, spool) = (dir.path().join("victim"), shared.join("a.holdup"), shared.join("a.holdup.spool"));
    fs::write(&victim, "precious").expect("write");
    let plants: [(&str, Plant); 5] = [
        ("a symbolic link", &|at| symlink(&victim, at).expect("link")),
        ("a file with a second name", &|at| fs::hard_link(&victim, at).expect("link")),
        ("a pipe", &|at| assert!(Command::new("mkfifo").arg(at).status().expect("mkfifo").success())),
        ("a folder", &|at| fs::create_dir(at).expect("folder")),
        ("a file of another user", &|at| {
            fs::write(at, "holdspl1").expect("write");
            std::os::unix::fs::chown(at, Some(65534), None).expect("owner");
        }),
    ];
    for (what, plant) in plants {
        plant(&spool);
        let before = fs::symlink_metadata(&spool).expect("planted");
        refused(&run(record(&path, &LIGHT, &["true"])), what);
        let after = fs::symlink_metadata(&spool).expect("still there");
        assert_eq!((before.ino(), before.len()), (after.ino(), after.len()), "{what}");
        if after.is_dir() { fs::remove_dir(&spool) } else { fs::remove_file(&spool) }.expect("remove");
    }
    // The result itself: links are replaced, others refused.
    for (what, plant) in &plants[..2] {
        plant(&path);
        assert!(run(record(&path, &LIGHT, &["true"])).status.success(), "{what}");
        assert!(fs::symlink_metadata(&path).expect("result").is_file());
        fs::remove_file(&path).expect("remove");
    }
    let foreign = Command::new("mkfifo").arg(&path).status().expect("mkfifo");
    assert!(foreign.success() && fs::metadata(&path).expect("pipe").file_type().is_fifo());
    std::os::unix::fs::chown(&path, Some(65534), None).expect("owner");
    refused(&run(record(&path, &LIGHT, &["true"])), "pipe");
    assert_eq!(fs::read_to_string(&victim).expect("read"), "precious");
}

/// Kills the recorder from what it records; what it leaves is in `path`.spool, or in segments.
fn killed_recording(path: &Path, options: &[&str], after: &str) {
    let o = run(record(path, options, &["sh", "-c", &format!("{after}; kill -9 $PPID")]));
    assert_eq!(o.status.code(), None, "it was killed");
}

#[test]
fn what_a_killed_recorder_left_is_set_aside_and_can_be_completed() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("a.holdup");
    for n in 1..=2 {
        killed_recording(&path, &LIGHT, "sleep 0.2");
        assert!(ask(&["info"], &dir.path().join("a.holdup.spool")).contains("copies of stack memory"));
        let o = run(record(&path, &LIGHT, &["true"]));
        assert!(o.status.success(), "{}", err(&o));
        let aside = dir.path().join(format!("a.holdup.spool.{n}"));
        assert!(err(&o).contains(&format!("is now {}", aside.display())), "{}", err(&o));
        assert!(ask(&["info"], &aside).contains("ended from outside"));
    }
    let (aside, kept) = (dir.path().join("a.holdup.spool.1"), dir.path().join("kept.holdup"));
    ask(&["explain", "--keep", kept.to_str().expect("text")], &aside);
    assert!(!ask(&["info"], &kept).contains("stack memory"));
    assert_eq!(fs::metadata(&kept).expect("kept").permissions().mode() & 0o777, 0o600);
    assert_eq!(names(dir.path()), ["a.holdup", "a.holdup.spool.1", "a.holdup.spool.2", "kept.holdup"]);
}

#[test]
fn a_killed_flight_recorder_leaves_what_it_had() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("a.holdup");
    killed_recording(&path, &["--ring", "400ms", "--ring-size", "64MB"], "sleep 0.7");
    // The spool finds its segments, also under another name, and each stands for itself.
    let whole = ask(&["info"], &dir.path().join("a.holdup.spool"));
    assert!(whole.contains("ended from outside"), "{whole}");
    let segments: Vec<String> = names(dir.path()).into_iter().filter(|n| n.contains(".segment")).collect();
    assert!(segments.len() > 1, "{segments:?}");
    for segment in &segments {
        assert!(ask(&["info"], &dir.path().join(segment)).contains("ended from outside"));
    }
    let o = run(record(&path, &LIGHT, &["true"]));
    let words = err(&o);
    assert!(o.status.success() && words.contains("a.holdup.spool.1") && words.contains("segments"), "{words}");
    assert!(ask(&["info"], &dir.path().join("a.holdup.spool.1")).contains("ended from outside"));
    for segment in segments {
        fs::remove_file(dir.path().join(segment)).expect("remove");
    }
    let gone = Command::new(BINARY).arg("info").arg(dir.path().join("a.holdup.spool.1")).output().expect("it starts");
    refused(&gone, "its segments are gone");
}

/// A recording of the machine that is ended by `signal` again and again until it has ended; its exit and its words.
fn ended_while_converting(path: &Path, signal: &str) -> Output {
    let mut recorder = record(path, &[], &["sleep", "0.3"]);
    let mut child = recorder.stderr(Stdio::piped()).spawn().expect("it starts");
    let pid = child.id().to_string();
    let recorded = || fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    // The command is there, then it is gone; a moment later the recording is converted.
    let nap = || std::thread::sleep(std::time::Duration::from_millis(2));
    while recorded().is_empty() && child.try_wait().expect("child").is_none() {
        nap();
    }
    while !recorded().is_empty() {
        nap();
    }
    while child.try_wait().expect("child").is_none() {
        let _ = Command::new("kill").args([signal, &pid]).stderr(Stdio::null()).status();
    }
    child.wait_with_output().expect("output")
}

#[test]
fn an_interrupted_conversion_leaves_its_spool_and_nothing_else() {
    let Some(_one) = can_record() else { return };
    let mut interrupted = 0;
    for signal in ["-INT", "-TERM", "-HUP", "-KILL"] {
        let dir = tempfile::tempdir().expect("dir");
        let (path, spool) = (dir.path().join("a.holdup"), dir.path().join("a.holdup.spool"));
        let o = ended_while_converting(&path, signal);
        let left: Vec<PathBuf> = names(dir.path()).iter().map(|n| dir.path().join(n)).collect();
        assert!(left.iter().all(|f| *f == path || *f == spool), "{signal}: {left:?}");
        for file in &left {
            ask(&["info"], file);
        }
        if o.status.code().is_some() {
            continue;
        }
        interrupted += 1;
        assert!(spool.exists(), "{signal}: {left:?}");
        if signal != "-KILL" {
            assert!(err(&o).contains("--keep") && err(&o).contains(&spool.display().to_string()), "{}", err(&o));
        }
    }
    assert!(interrupted >= 2, "{interrupted} of 4 were interrupted");
}

#[test]
fn an_explanation_without_keep_leaves_nothing() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let explain = |command: &str| {
        Command::new(BINARY)
            .args(["explain", "--", "sh", "-c", command])
            .env("TMPDIR", dir.path())
            .output()
            .expect("run")
    };
    assert!(explain("sleep 0.1").status.success());
    assert_eq!(names(dir.path()), [""; 0]);
    assert_eq!(explain("sleep 0.1; kill -9 $PPID").status.code(), None);
    assert_eq!(names(dir.path()), [""; 0]);
}

/// A program's own stack and those of what it calls have 512 bytes together, before Linux 6.13: this kernel may allow more, and says
/// what they take.
#[test]
fn the_kernels_programs_fit_older_kernels() {
    let Some(_alone) = can_record() else { return };
    let folder = tempfile::tempdir().expect("folder");
    let mut command = record(&folder.path().join("x.holdup"), &LIGHT, &["true"]);
    command.env("HOLDUP_BPF_LOG", "1");
    let said = err(&run(command));
    let depths: Vec<Vec<u32>> = said
        .lines()
        .filter_map(|line| line.strip_prefix("stack depth "))
        .map(|list| list.split('+').map(|bytes| bytes.parse().expect(list)).collect())
        .collect();
    assert!(depths.len() > 10, "{said}");
    for frames in depths {
        // Each is counted in units of 32 bytes; a callback of a callback is as deep as it gets.
        let taken = |bytes: u32| bytes.max(1).next_multiple_of(32);
        let (own, mut called) = (taken(frames[0]), frames[1..].to_vec());
        called.sort_unstable_by(|a, b| b.cmp(a));
        let deepest = own + called.into_iter().take(2).map(taken).sum::<u32>();
        assert!(deepest <= 512, "{frames:?} take {deepest} bytes");
    }
}
