//! The example for continuous integration: two commits of a benchmark, recorded and compared.

mod recording;

use std::path::Path;
use std::process::Command;

use holdup_testing::{Need, has};
use recording::can_record;

/// The example for continuous integration, on a repository with a commit that makes one function five times as long.
#[test]
fn a_slower_commit_fails_the_job() {
    let Some(_one) = can_record() else { return };
    for need in ["git", "cc"] {
        if !has(Need::Program(need)) {
            return;
        }
    }
    let folder = tempfile::tempdir().expect("folder");
    let dir = folder.path();
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"];
        let done = Command::new("git").current_dir(dir).args(identity).args(args).output().expect("git");
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    for rounds in [30_000_000_u64, 150_000_000] {
        let program = format!(
            "__attribute__((noinline)) unsigned long sum(unsigned long n) {{ unsigned long s = 1; while (n--) s = s * 3 ^ n; return s; }}\n\
             int main(void) {{ return sum({rounds}UL) == 1; }}\n"
        );
        std::fs::write(dir.join("bench.c"), program).expect("program");
        git(&["add", "bench.c"]);
        git(&["commit", "-q", "-m", "rounds"]);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/ci/compare-commits.sh");
    let compared = |base: &str| {
        let args = [base, "HEAD", "cc -O1 -g -o bench bench.c", "./bench"];
        let envs = [("RUNS", "3"), ("FAIL_ON", "80%"), ("HOLDUP", env!("CARGO_BIN_EXE_holdup"))];
        let done = Command::new(&script).current_dir(dir).args(args).envs(envs).output().expect("the script runs");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        (done.status.code(), said, String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, said, err) = compared("HEAD~1");
    assert!(code == Some(1) && said.contains("sum"), "{code:?} {said} {err}");
    assert!(
        ["before-1.holdup", "after-3.holdup", "diff.svg", "diff.txt"]
            .iter()
            .all(|f| dir.join("holdup-ci").join(f).is_file())
    );
    let (code, said, err) = compared("HEAD");
    assert_eq!(code, Some(0), "{said} {err}");
    assert_eq!(compared("nothing").0, Some(128), "git's own: there is no such commit");
    let left = std::fs::read_dir(dir.join(".git/worktrees")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "no checkout stays");
}
