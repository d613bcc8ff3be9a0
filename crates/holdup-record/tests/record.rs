//! Recordings of real programs, where this user may record.

mod common;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use common::{claim, may_record, open, run, run_until};
use holdup_record::{Options, Ring, Status, Target, record};
use holdup_trace::{Error, Image, RawStack, Table, Unwinder};

/// What the child of a test is to do: record into this spool.
const CHILD: &str = "HOLDUP_TEST_SPOOL";

fn command(words: &[&str]) -> Target {
    Target::Command { argv: words.iter().map(OsString::from).collect() }
}

/// A link to `sleep` under a name of its own: others on the machine may sleep as well.
fn link_to_sleep(folder: &Path) -> std::path::PathBuf {
    let sleep = ["/usr/bin/sleep", "/bin/sleep"].into_iter().find(|path| Path::new(path).exists()).expect("sleep");
    let nap = folder.join(NAP);
    std::os::unix::fs::symlink(sleep, &nap).expect("a link");
    nap
}

/// What [`link_to_sleep`] is called; one recording at a time has it.
const NAP: &str = "nap-of-a-test";

/// Whether a process of that name is in `clock_nanosleep`.
fn is_napping() -> bool {
    let read = |process: &Path, name: &str| std::fs::read_to_string(process.join(name)).unwrap_or_default();
    let processes = std::fs::read_dir("/proc").expect("processes").flatten().map(|entry| entry.path());
    let mut naps = processes.filter(|process| read(process, "comm").trim() == NAP);
    naps.any(|process| read(&process, "syscall").starts_with("230 "))
}

#[test]
fn a_command_is_recorded_and_its_exit_code_kept() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("spool");
    let nap = link_to_sleep(dir.path());
    let script = format!("{0} 0.1; {0} 0.1; exit 7", nap.display());
    let options = Options { target: command(&["sh", "-c", &script]), ..Options::default() };
    let outcome = run(&options, &path).expect("recording");
    assert_eq!((outcome.exit_code, outcome.signal, outcome.status.lost), (Some(7), None, 0));
    let trace = open(&path, None);
    assert_eq!((trace.meta.format.as_str(), trace.meta.exit_code), ("holdup", Some(7)));
    let names: Vec<&str> = trace.threads.name.iter().map(|&n| trace.text(n)).collect();
    assert_eq!(names.iter().filter(|&&n| n == NAP).count(), 2, "{names:?}");
    let waits = trace.waits.load().expect("waits");
    let sleeps = (0..waits.t.len()).filter(|&i| {
        let long = waits.t[i].nanos() - waits.start[i].nanos() > 90_000_000;
        long && trace.thread(waits.thread[i]).is_some_and(|t| trace.text(t.name) == NAP) && waits.syscall[i] == 230
    });
    assert_eq!(sleeps.count(), 2);
    assert_eq!(trace.losses.rows(), 0, "{:?}", trace.losses());
}

#[test]
fn who_listens_is_told() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("spool");
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("socket");
    let holder = |input: Stdio| Command::new("sleep").arg("1000").stdin(input).spawn().expect("sleep");
    let (mut server, mut client) = (holder(std::os::fd::OwnedFd::from(socket).into()), holder(Stdio::null()));
    let options = Options { duration: Some(Duration::from_millis(100)), ..Options::default() };
    let outcome = run(&options, &path);
    for child in [&mut server, &mut client] {
        child.kill().expect("kill");
        child.wait().expect("wait");
    }
    outcome.expect("recording");
    let trace = open(&path, None);
    let rows: Vec<_> = trace.listeners.load().expect("listeners").rows().collect();
    for (child, listens) in [(&server, true), (&client, false)] {
        let pid = |thread| trace.thread(thread).map(|t| t.pid);
        let mut of_it = rows.iter().filter(|row| pid(row.thread) == Some(child.id())).peekable();
        assert!(of_it.peek().is_some(), "it was there all the time");
        assert!(of_it.all(|row| row.listens == listens && pid(row.parent) == Some(std::process::id())));
    }
}

#[test]
fn what_scripts_are_run_is_told() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let (path, script) = (dir.path().join("spool"), dir.path().join("nightly.sh"));
    std::fs::write(&script, "sleep $1 # and not at once\n").expect("script");
    let mut before = Command::new("sh").arg(&script).arg("1000").process_group(0).spawn().expect("sh");
    let words = [OsString::from("sh"), script.into(), "0.3".into(), "secret".into()];
    let options = Options { target: Target::Command { argv: words.into() }, ..Options::default() };
    let outcome = run(&options, &path);
    Command::new("kill").args(["--", &format!("-{}", before.id())]).status().expect("kill");
    before.wait().expect("wait");
    outcome.expect("recording");
    let trace = open(&path, None);
    let rows: Vec<_> = trace.subjects.load().expect("subjects").rows().collect();
    let ours: Vec<_> = rows.iter().filter(|row| trace.text(row.what) == "nightly.sh").collect();
    let all: Vec<_> = rows.iter().map(|row| (trace.text(row.what), row.t)).collect();
    assert!(ours.len() >= 2, "both were told: {all:?}");
    assert!(ours.iter().any(|row| trace.thread(row.thread).is_some_and(|t| t.pid == before.id())));
    assert!(!trace.strings.iter().any(|text| text == "secret"));
}

/// What a CPU switches to is what it switches from next: nothing is missing in between.
#[test]
fn every_switch_is_there() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("spool");
    let players = PingPong::start();
    let outcome = run_until(&Options::default(), &path, &mut |status| status.events > 20_000).expect("recording");
    drop(players);
    assert_eq!(outcome.status.lost, 0, "the buffers hold all of it");
    let trace = open(&path, None);
    let mut running = std::collections::HashMap::new();
    let mut breaks = 0;
    for switch in trace.switches.iter().map(|s| s.expect("switch")) {
        breaks += usize::from(running.insert(switch.cpu, switch.next).is_some_and(|next| next != switch.prev));
    }
    assert!(trace.switches.rows() > 1000, "{}", trace.switches.rows());
    assert_eq!(breaks, 0, "of {}", trace.switches.rows());
}

/// Two threads that wake each other as fast as they can, until this is dropped.
struct PingPong {
    busy: Arc<AtomicBool>,
    players: Vec<std::thread::JoinHandle<()>>,
}

impl PingPong {
    fn start() -> PingPong {
        let busy = Arc::new(AtomicBool::new(true));
        let ((to_a, a), (to_b, b)) = (mpsc::channel::<()>(), mpsc::channel::<()>());
        to_a.send(()).expect("first");
        let play =
            |mine: mpsc::Receiver<()>, other: mpsc::Sender<()>, busy: Arc<AtomicBool>| {
                std::thread::spawn(move || {
                    while busy.load(Ordering::Relaxed) && mine.recv().is_ok() && other.send(()).is_ok() {}
                })
            };
        let players = vec![play(a, to_b, busy.clone()), play(b, to_a, busy.clone())];
        PingPong { busy, players }
    }
}

impl Drop for PingPong {
    fn drop(&mut self) {
        self.busy.store(false, Ordering::Relaxed);
        self.players.drain(..).for_each(|player| player.join().expect("player"));
    }
}

#[test]
fn what_finds_no_room_is_counted() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("spool");
    let options = Options {
        buffer_mb_per_cpu: 0,
        stack_buffer_mb: 1,
        drain_every: Duration::from_millis(400),
        ..Options::default()
    };
    let players = PingPong::start();
    let outcome = run_until(&options, &path, &mut |status| status.lost > 0).expect("recording");
    drop(players);
    assert!(outcome.status.lost > 0, "{outcome:?}");
    let losses = open(&path, None).losses().expect("losses");
    let counted: u64 = losses.iter().filter(|l| l.what.starts_with("records")).map(|l| l.count).sum();
    assert_eq!(counted, outcome.status.lost);
    assert!(losses.iter().all(|l| l.to_s >= l.from_s));
}

/// A copied stack and the images of its process.
type Copy = (Vec<Arc<Image>>, RawStack);

/// Notes the copies that it is given.
struct Copies(Arc<Mutex<Vec<Copy>>>);

impl Unwinder for Copies {
    fn unwind(&mut self, images: &[Arc<Image>], raw: &RawStack) -> (Vec<u64>, bool) {
        self.0.lock().expect("copies").push((images.to_vec(), raw.clone()));
        (vec![raw.ip], true)
    }
}

#[test]
fn copied_stacks_hold_return_addresses() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("spool");
    // Room for the stacks of all the machine, whatever else it does.
    let target = command(&["sleep", "0.1"]);
    let options = Options { target, budget: 1.0, stack_mb_per_s: 1000, stack_buffer_mb: 256, ..Options::default() };
    let outcome = run(&options, &path).expect("recording");
    assert_eq!((outcome.status.lost_stacks, outcome.status.limited_stacks), (0, 0));
    let copies = Arc::default();
    open(&path, Some(Box::new(Copies(Arc::clone(&copies)))));
    let copies = copies.lock().expect("copies");
    let from_sleep = copies.iter().filter(|(images, raw)| {
        let image = |address: u64| images.iter().find(|i| i.start <= address && address < i.end);
        let words = raw.bytes.as_chunks::<8>().0.iter().map(|w| u64::from_ne_bytes(*w));
        let called_from = |name: &str| words.clone().filter_map(image).any(|i| i.path.ends_with(name));
        image(raw.ip).is_some_and(|i| i.path.contains("libc")) && called_from("/sleep") && called_from("libc.so.6")
    });
    assert!(from_sleep.count() > 0, "{} copies", copies.len());
}

#[test]
fn waits_that_go_on_have_a_stack() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("spool");
    let nap = link_to_sleep(dir.path());
    let options = Options { target: command(&[&nap.display().to_string(), "1000"]), ..Options::default() };
    let outcome = run_until(&options, &path, &mut |_| is_napping()).expect("recording");
    assert_eq!((outcome.exit_code, outcome.signal), (Some(143), Some(15)), "told to end with the recording");
    let trace = open(&path, None);
    let waits = trace.waits.load().expect("waits");
    let open = (0..waits.t.len()).find(|&i| {
        let thread = trace.thread(waits.thread[i]).expect("thread");
        trace.text(thread.name) == NAP && waits.syscall[i] == 230
    });
    assert_ne!(waits.stack[open.expect("the wait")], holdup_trace::StackId::NONE);
}

#[test]
fn a_flight_recorder_keeps_the_end() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("spool");
    // Without stacks: packing them takes a debug build too long on a busy machine.
    let options = Options {
        freq: Some(0),
        min_wait: holdup_trace::Nanos(1_000_000_000),
        ring: Some(Ring { time: Some(Duration::from_millis(500)), bytes: None }),
        ..Options::default()
    };
    let (mut before, mut longest, mut whole) = (0.0, 0.0_f64, 0.0);
    run_until(&options, &path, &mut |status| {
        whole = status.elapsed.as_secs_f64();
        longest = longest.max(whole - before);
        before = whole;
        // Long enough to leave out most of it, also where others keep the recorder from its rounds.
        whole > 3.0 + 8.0 * longest
    })
    .expect("recording");
    let seconds = open(&path, None).meta.duration().seconds();
    // Two halves of the ring, the one that is being written, and what the recorder is late for each.
    assert!(seconds > 0.45 && seconds < 1.0 + 4.0 * longest, "{seconds} of {whole}, late by up to {longest}");
    assert_eq!(std::fs::read_dir(dir.path()).expect("dir").count(), 4, "the spool and three segments");
}

#[test]
fn unusable_commands_and_paths_are_errors() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let options = Options { target: command(&["/no/such/program"]), ..Options::default() };
    let error = run(&options, &dir.path().join("spool")).expect_err("no program");
    assert!(matches!(&error, Error::Input(text) if text.contains("/no/such/program")), "{error}");
    let options = Options { target: command(&["true"]), ..Options::default() };
    let error = run(&options, &dir.path().join("no/folder")).expect_err("no folder");
    assert!(matches!(&error, Error::Input(_)), "{error}");
}

/// Not a test of its own: records until it is killed, if a test says so.
#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let mut told = false;
    let options = Options { duration: Some(Duration::from_secs(120)), ..Options::default() };
    let on_status = &mut |status: &Status| {
        let enough = status.elapsed > Duration::from_millis(300) && status.events > 5000;
        if enough && !std::mem::replace(&mut told, true) {
            println!("recording");
        }
    };
    let spool = claim(Path::new(&path)).expect("a folder for everybody");
    if let Err(error) = record(&options, spool, on_status, &AtomicBool::new(false)) {
        println!("{error}");
    }
}

/// Starts this binary, or a copy, to record into a spool.
fn start_child(binary: &mut Command, path: &Path) -> std::process::Child {
    binary.args(["--exact", "child", "--nocapture"]).env(CHILD, path).stdout(Stdio::piped());
    binary.spawn().expect("child")
}

#[test]
fn a_killed_recording_is_readable() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("spool");
    let players = PingPong::start();
    let mut child = start_child(&mut Command::new(std::env::current_exe().expect("this")), &path);
    let mut output = std::io::BufReader::new(child.stdout.take().expect("stdout"));
    let mut line = String::new();
    while !line.contains("recording") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut output, &mut line).expect("line") > 0, "it never began");
    }
    child.kill().expect("kill");
    child.wait().expect("wait");
    drop(players);
    let trace = open(&path, None);
    assert!(trace.switches.rows() > 10 && trace.meta.duration_ns > 200_000_000);
    assert!(
        trace.meta.notes.iter().any(|n| n.text.contains("ended from outside") || n.text.contains("cut")),
        "{:?}",
        trace.meta.notes
    );
}

#[test]
fn without_privilege_it_says_what_is_missing() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    // The other user may make a spool there.
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("mode");
    // The build's folder may be closed to others.
    let copy = dir.path().join("tests");
    std::fs::copy(std::env::current_exe().expect("this"), &copy).expect("copy");
    let child = start_child(Command::new(copy).uid(65534).gid(65534), &dir.path().join("spool"));
    let output = child.wait_with_output().expect("output");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("CAP_BPF") && text.contains("sudo") && text.contains("perf record -a -g -c 1"), "{text}");
}
