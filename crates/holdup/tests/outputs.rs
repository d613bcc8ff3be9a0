//! Where results are written: no planted link is followed, what cannot be written is said before the work, and a run
//! that fails leaves an older result as it was.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn fixture() -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../holdup-import/tests/fixtures");
    folder.join("task.perf.data").display().to_string()
}

fn holdup(args: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    command.args(args).stdin(Stdio::null()).output().expect("the binary starts")
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// A command that writes OUT, and the same with an input that makes it fail.
struct Case {
    good: Vec<String>,
    bad: Vec<String>,
}

impl Case {
    fn new(good: &str, bad: &str) -> Case {
        let trace = fixture();
        let [good, bad] = [good, bad].map(|line| words(line).iter().map(|w| w.replace("TRACE", &trace)).collect());
        Case { good, bad }
    }

    fn of(args: &[String], folder: &Path, out: &Path) -> Vec<String> {
        let put =
            |w: &String| w.replace("OUT", &out.display().to_string()).replace("DIR", &folder.display().to_string());
        args.iter().map(put).collect()
    }
}

fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::new("table TRACE switches --format csv -o OUT", "table DIR/none switches --format csv -o OUT"),
        Case::new("table TRACE switches --format arrow -o OUT", "table DIR/none switches --format arrow -o OUT"),
        Case::new("table TRACE waits --flame OUT", "table DIR/none waits --flame OUT"),
        Case::new("explain TRACE --flame OUT", "explain DIR/none --flame OUT"),
        Case::new("diff TRACE --vs TRACE --flame OUT", "diff TRACE --vs DIR/none --flame OUT"),
        Case::new(
            "lab run counters --quick --threads 1 --set rounds=2 -o OUT",
            "lab run counters --quick --threads 1 --set rounds=2 -o OUT --plots DIR/file/below",
        ),
        Case::new(
            "scale --threads 1,2 --runs 1 --plot OUT -- touch DIR/ran{n}",
            "scale --threads 1,2 --runs 1 --plot OUT -- false {n}",
        ),
    ];
    if cfg!(feature = "script") {
        let run = |option: &str| {
            let good = format!("load run DIR/good.rn -d 3 -w 0 -t 1 --concurrency 1 {option} OUT");
            Case::new(&good, &good.replace("good.rn", "bad.rn"))
        };
        cases.extend(["-o", "--plot", "--hdr-log"].map(run));
        cases.push(Case::new("load show DIR/report.json --plot OUT", "load show DIR/good.rn --plot OUT"));
    }
    cases
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("good.rn"), "pub async fn run(ctx, i) { Ok(()) }").expect("a script");
    fs::write(at("bad.rn"), "pub async fn run(ctx, i) { nonsense( }").expect("a script");
    fs::write(at("file"), "").expect("a file");
    if cfg!(feature = "script") {
        let run = words("load run DIR/good.rn -d 3 -w 0 -t 1 --concurrency 1 -o DIR/report.json");
        let output = holdup(&Case::of(&run, folder.path(), Path::new("")));
        assert!(output.status.success(), "{}", error(&output));
    }
    folder
}

#[test]
fn a_planted_link_is_replaced_and_not_followed() {
    let folder = folder();
    let (victim, link) = (folder.path().join("victim"), folder.path().join("out.svg"));
    for case in cases() {
        fs::write(&victim, "precious").expect("a victim");
        let _ = fs::remove_file(&link);
        symlink(&victim, &link).expect("a link");
        let args = Case::of(&case.good, folder.path(), &link);
        let output = holdup(&args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", error(&output));
        assert_eq!(fs::read_to_string(&victim).expect("the victim"), "precious", "{args:?}");
        let result = fs::symlink_metadata(&link).expect("a result");
        assert!(result.is_file() && result.len() > 0, "{args:?}");
    }
}

#[test]
fn what_cannot_be_written_is_said_before_the_work() {
    let folder = folder();
    for case in cases() {
        let args = Case::of(&case.good, folder.path(), &folder.path().join("none/out.svg"));
        let output = holdup(&args);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {}", error(&output));
        let said = error(&output);
        assert!(said.contains("there is no folder") && said.trim_end().lines().count() == 1, "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    assert!(!folder.path().join("ran1").exists(), "the command was run");
}

#[test]
fn a_run_that_fails_leaves_the_older_result() {
    let folder = folder();
    let out = folder.path().join("out.svg");
    for case in cases() {
        fs::write(&out, "older").expect("an older result");
        let args = Case::of(&case.bad, folder.path(), &out);
        let output = holdup(&args);
        assert!(output.status.code().is_some_and(|code| code != 0), "{args:?}");
        assert_eq!(fs::read_to_string(&out).expect("the older result"), "older", "{args:?}: {}", error(&output));
    }
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("the folder").map(|e| e.expect("a file").file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".out.svg")), "{left:?}");
}

#[test]
fn plots_of_the_lab_go_into_a_folder() {
    let folder = folder();
    let (victim, plots) = (folder.path().join("victim"), folder.path().join("new/plots"));
    fs::create_dir_all(&plots).expect("a folder");
    fs::write(&victim, "precious").expect("a victim");
    symlink(&victim, plots.join("counters.svg")).expect("a link");
    let run = words("lab run counters --quick --threads 1 --set rounds=2 --plots OUT");
    let output = holdup(&Case::of(&run, folder.path(), &plots));
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert_eq!(fs::read_to_string(&victim).expect("the victim"), "precious");
    assert!(fs::symlink_metadata(plots.join("counters.svg")).expect("a plot").is_file());
    let output = holdup(&Case::of(&run, folder.path(), &folder.path().join("file/plots")));
    assert_eq!(output.status.code(), Some(3), "{}", error(&output));
    assert!(output.stdout.is_empty());
}

#[test]
fn two_servers_in_turns_write_where_they_can() {
    let folder = folder();
    let run = words("load run DIR/good.rn redis://127.0.0.1:1 --vs redis://127.0.0.1:1 -d 1 -w 0 -o OUT");
    let output = holdup(&Case::of(&run, folder.path(), &folder.path().join("none/r.json")));
    if cfg!(all(feature = "script", feature = "redis")) {
        assert_eq!(output.status.code(), Some(3), "{}", error(&output));
        assert!(error(&output).contains("there is no folder"), "{}", error(&output));
    }
}

#[test]
fn man_pages_follow_no_link() {
    let folder = folder();
    let (victim, pages) = (folder.path().join("victim"), folder.path().join("man"));
    fs::create_dir(&pages).expect("a folder");
    fs::write(&victim, "precious").expect("a victim");
    for name in ["holdup.1", "holdup-table.1", "holdup-load-run.1"] {
        symlink(&victim, pages.join(name)).expect("a link");
    }
    let output = holdup(&["man".to_owned(), pages.display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert_eq!(fs::read_to_string(&victim).expect("the victim"), "precious");
    let page = fs::read_to_string(pages.join("holdup-load-run.1")).expect("a page");
    assert!(
        page.contains(".TH holdup-load-run 1")
            && fs::symlink_metadata(pages.join("holdup.1")).expect("a page").is_file()
    );
    let output = holdup(&["man".to_owned(), folder.path().join("none").display().to_string()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(error(&output).contains("there is no folder"), "{}", error(&output));
}

#[test]
fn standard_output_can_be_named() {
    let folder = folder();
    let table =
        words("table TRACE switches --format csv").iter().map(|w| w.replace("TRACE", &fixture())).collect::<Vec<_>>();
    let printed = holdup(&table).stdout;
    assert!(printed.len() > 100);
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let output = holdup(&[table.clone(), words(&format!("-o {name}"))].concat());
        assert_eq!((output.status.code(), output.stdout == printed), (Some(0), true), "{name}: {}", error(&output));
    }
    let output = holdup(&[table, words("-o /dev/null")].concat());
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    drop(folder);
}
