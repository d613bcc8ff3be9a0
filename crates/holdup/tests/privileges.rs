//! Capabilities of the binary's file give its user recordings, and nothing else; limits; addresses of the kernel.

mod recording;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use holdup_testing::{Need, has, skip};
use holdup_trace::{FrameId, SpaceId, Trace, file};
use recording::can_record;

const BINARY: &str = env!("CARGO_BIN_EXE_holdup");
const NOBODY: &str = "65534";

/// Without what is for debuggers where that can be had: a third is less for a disk that several tests fill at once.
const COPY: &str = "strip -g -o \"$2\" \"$1\" 2>/dev/null || cp \"$1\" \"$2\"";

/// A copy of the binary with capabilities, in a folder where nobody may run it, and a folder of nobody's beside it.
struct Copy {
    dir: tempfile::TempDir,
    binary: PathBuf,
    own: PathBuf,
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

impl Copy {
    /// `None`, and the reason printed, where that cannot be made.
    #[track_caller]
    fn with(capabilities: &str) -> Option<Copy> {
        if !has(Need::FileCapabilities) {
            return None;
        }
        let dir = tempfile::tempdir().expect("dir");
        let (binary, own) = (dir.path().join("holdup"), dir.path().join("own"));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("mode");
        fs::create_dir(&own).expect("folder");
        std::os::unix::fs::chown(&own, Some(65534), Some(65534)).expect("owner");
        // By a process of its own, as in `attach`: else another test's child may hold it open for writing.
        let (generator, copies) = (env!("CARGO_BIN_EXE_holdup-load"), [&binary, &dir.path().join("holdup-load")]);
        for (from, to) in [BINARY, generator].into_iter().zip(copies) {
            let copied = Command::new("sh").args(["-c", COPY, "sh", from]).arg(to).status();
            assert!(copied.expect("sh").success());
        }
        let given = format!("{capabilities}=ep");
        let given = Command::new("setcap").args(copies.iter().flat_map(|to| [given.as_ref(), to.as_os_str()])).status();
        let copy = Copy { dir, binary, own };
        let works = given.is_ok_and(|s| s.success()) && copy.nobody(&["--version"]).is_ok_and(|o| o.status.success());
        if !works {
            skip(Need::FileCapabilities, "a copy of the binary has none, or cannot be run");
        }
        works.then_some(copy)
    }

    fn nobody(&self, args: &[&str]) -> std::io::Result<Output> {
        let user = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
        Command::new("setpriv")
            .args(user)
            .arg(&self.binary)
            .args(args)
            .current_dir(&self.own)
            .env("HOME", &self.own)
            .output()
    }

    /// A file of root's, for root alone.
    fn secret(&self, content: &str) -> String {
        let path = self.dir.path().join("secret");
        fs::write(&path, content).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mode");
        path.display().to_string()
    }
}

const EVERYTHING: &str =
    "cap_bpf,cap_perfmon,cap_syslog,cap_sys_ptrace,cap_dac_read_search,cap_dac_override,cap_sys_admin";

#[test]
fn no_command_reads_what_its_user_may_not() {
    let Some(copy) = Copy::with(EVERYTHING) else { return };
    let secret = copy.secret("root's password is swordfish");
    for args in [
        &["info", &secret][..],
        &["explain", &secret],
        &["threads", &secret],
        &["table", &secret, "switches"],
        &["chain", &secret, "--at", "1"],
        &["disasm", &secret, "main"],
        &["diff", &secret, "--vs", &secret],
        &["load", "run", &secret],
        &["lab", "compare", &secret, &secret],
    ] {
        let o = copy.nobody(args).expect("runs");
        assert!(!o.status.success(), "{args:?}");
        let text = format!("{}{}", err(&o), String::from_utf8_lossy(&o.stdout));
        assert!(text.contains("ermission denied") && !text.contains("swordfish"), "{args:?}: {text}");
    }
}

/// A script is a program of its own: whatever it may call, it calls it as its user.
#[test]
fn a_script_reads_nothing_of_roots() {
    let Some(copy) = Copy::with(EVERYTHING) else { return };
    for (mode, denied) in [(0o644, false), (0o600, true)] {
        let words = copy.own.join("words");
        fs::write(&words, "swordfish").expect("write");
        fs::set_permissions(&words, fs::Permissions::from_mode(mode)).expect("mode");
        let script = copy.own.join("w.rn");
        let text = format!("pub fn run(ctx, i) {{ panic!(\"{{}}\", fs::read_to_string(\"{}\")?) }}", words.display());
        fs::write(&script, text).expect("write");
        let o = copy.nobody(&["load", "run", script.to_str().expect("text"), "-d", "1s"]).expect("runs");
        let text = format!("{}{}", err(&o), String::from_utf8_lossy(&o.stdout));
        assert_eq!((text.contains("ermission denied"), text.contains("swordfish")), (denied, !denied), "{text}");
    }
}

#[test]
fn no_command_writes_where_its_user_may_not() {
    let Some(copy) = Copy::with(EVERYTHING) else { return };
    let target = copy.dir.path().join("planted.holdup").display().to_string();
    for args in [&["record", "-o", &target, "--", "true"][..], &["explain", "--keep", &target, "--", "true"]] {
        let o = copy.nobody(args).expect("runs");
        assert_eq!(o.status.code(), Some(3), "{args:?}: {}", err(&o));
        assert!(err(&o).contains("cannot be written: Permission denied"), "{args:?}: {}", err(&o));
        assert!(!Path::new(&target).exists());
    }
}

#[test]
fn a_user_with_the_advised_capabilities_records_and_the_command_has_none() {
    let Some(_one) = can_record() else { return };
    // The advised ones are enough; all of them are no worse.
    for capabilities in ["cap_bpf,cap_perfmon,cap_syslog", EVERYTHING] {
        let Some(copy) = Copy::with(capabilities) else { return };
        let o = copy.nobody(&["record", "-o", "a.holdup", "--", "grep", "Cap", "/proc/self/status"]).expect("runs");
        assert!(o.status.success(), "{}", err(&o));
        let status = String::from_utf8_lossy(&o.stdout).into_owned();
        for line in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert!(status.contains(&format!("{line}:\t0000000000000000")), "{status}");
        }
        let path = copy.own.join("a.holdup");
        let data = fs::metadata(&path).expect("result");
        assert_eq!((data.uid(), data.permissions().mode() & 0o777), (65534, 0o600));
        let trace = file::read(&path).expect("trace");
        assert!(trace.switches.rows() > 0);
        assert!(kernel_names(&trace) > 0, "kernel functions have names");
        assert_addresses(&trace, 65534);
    }
}

/// These two are enough; what the third adds is the kernel's names, where it hides them.
#[test]
fn two_capabilities_are_enough_to_record() {
    let Some(_one) = can_record() else { return };
    let Some(copy) = Copy::with("cap_bpf,cap_perfmon") else { return };
    let script = "sleep 0.1; grep CapEff /proc/$PPID/status; ls -R /usr/bin > /dev/null";
    let o = copy.nobody(&["record", "-o", "a.holdup", "--", "sh", "-c", script]).expect("runs");
    assert!(o.status.success(), "{}", err(&o));
    assert!(!String::from_utf8_lossy(&o.stdout).is_empty());
    let trace = file::read(&copy.own.join("a.holdup")).expect("trace");
    assert!(trace.switches.rows() > 0 && trace.wakes.rows() > 0 && trace.samples.rows() > 0);
    let waits = trace.waits.load().expect("waits");
    assert!(waits.stack.iter().any(|&stack| stack != holdup_trace::StackId::NONE), "waits have stacks");
    assert_addresses(&trace, 65534);
}

/// While it drains, the recorder has nothing in effect; its command sees it.
#[test]
fn the_recorder_has_no_capability_in_effect_while_it_records() {
    let Some(_one) = can_record() else { return };
    let Some(copy) = Copy::with(EVERYTHING) else { return };
    let o = copy.nobody(&["record", "-o", "a.holdup", "--", "sh", "-c", "grep Cap /proc/$PPID/status"]).expect("runs");
    let status = String::from_utf8_lossy(&o.stdout).into_owned();
    assert!(o.status.success() && status.contains("CapEff:\t0000000000000000"), "{status}{}", err(&o));
    // BPF, PERFMON, SYSLOG and SYS_PTRACE are held; nothing that opens files.
    let held = status.lines().find_map(|l| l.strip_prefix("CapPrm:\t")).expect("held");
    assert_eq!(u64::from_str_radix(held, 16), Ok(1 << 39 | 1 << 38 | 1 << 34 | 1 << 19));
}

#[test]
fn a_set_user_id_binary_does_nothing() {
    let Some(copy) = Copy::with("cap_bpf") else { return };
    fs::set_permissions(&copy.binary, fs::Permissions::from_mode(0o4755)).expect("mode");
    let o = copy.nobody(&["info", "--schema"]).expect("runs");
    assert_eq!(o.status.code(), Some(4), "{}", err(&o));
    assert!(o.stdout.is_empty() && err(&o).contains("chmod ug-s"), "{}", err(&o));
}

fn kernel_names(trace: &Trace) -> usize {
    let frames = (0..).map(FrameId).take_while(|&f| trace.stacks.frame(f).is_some());
    frames
        .filter(|&f| trace.stacks.frame(f).is_some_and(|f| f.space == SpaceId::KERNEL))
        .filter(|&f| trace.names.locations(f).next().is_some())
        .count()
}

/// Addresses of the kernel are in the trace only if its owner may see them.
fn assert_addresses(trace: &Trace, owner: u32) {
    let number = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).expect("a setting of the kernel");
        text.trim().parse::<i32>().expect("a number")
    };
    let visible = match number("kptr_restrict") {
        0 => owner == 0 || number("perf_event_paranoid") <= 1,
        1 => owner == 0,
        _ => false,
    };
    let mut addresses = trace.locks.address.clone();
    addresses.extend(trace.samples.load().expect("samples").ip);
    addresses.extend((0..).map_while(|i| trace.stacks.frame(FrameId(i))).map(|f| f.address));
    let found = addresses.iter().filter(|&&a| a >> 47 == 0x1ffff).count();
    assert_eq!((trace.meta.kernel_addresses_hidden, found > 0), (!visible, visible), "{found} addresses");
}

#[test]
fn kernel_addresses_are_for_those_who_may_see_them() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("a.holdup");
    for owner in [65534, 0] {
        let mut record = Command::new(BINARY);
        record.args(["record", "-o"]).arg(&path).args(["--", "sh", "-c", "sleep 0.1; ls -lR /usr/bin > /dev/null"]);
        if owner != 0 {
            record.env("SUDO_UID", owner.to_string()).env("SUDO_GID", owner.to_string());
        }
        let o = record.output().expect("runs");
        assert!(o.status.success(), "{}", err(&o));
        let trace = file::read(&path).expect("trace");
        assert!(kernel_names(&trace) > 0);
        assert_addresses(&trace, owner);
    }
}

#[test]
fn the_limit_of_open_files_is_raised_for_the_recorder_alone() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("a.holdup").display().to_string();
    let script =
        "ulimit -Sn 30; exec \"$0\" record -o \"$1\" -- sh -c 'ulimit -Sn; nice; grep open.files /proc/$PPID/limits'";
    let o = Command::new("sh").args(["-c", script, BINARY, &path]).output().expect("runs");
    assert!(o.status.success(), "{}", err(&o));
    let text = String::from_utf8_lossy(&o.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    // Niceness is what it was, whatever this test is run with.
    let nice = Command::new("nice").output().expect("runs").stdout;
    assert_eq!(lines[..2], ["30", String::from_utf8_lossy(&nice).trim()], "{text}");
    let raised: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!(raised[3], raised[4], "{text}");
    assert_ne!(raised[3], "30");
}

#[test]
fn too_few_files_are_a_sentence() {
    let Some(_one) = can_record() else { return };
    let Some(copy) = Copy::with("cap_bpf,cap_perfmon") else { return };
    let user = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
    let mut limited = Command::new("prlimit");
    limited.arg("--nofile=40:40").arg("setpriv").args(user).arg(&copy.binary);
    let o = limited
        .args(["record", "-o", "a.holdup", "--", "true"])
        .current_dir(&copy.own)
        .env("HOME", &copy.own)
        .output()
        .expect("runs");
    assert_eq!(o.status.code(), Some(4), "{}", err(&o));
    assert!(err(&o).contains("RLIMIT_NOFILE") && err(&o).contains("40"), "{}", err(&o));
    assert_eq!(fs::read_dir(&copy.own).expect("folder").count(), 0);
}
