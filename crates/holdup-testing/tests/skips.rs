//! What a skip does, seen from outside: this program runs itself with one of its tests as the one that skips.

use std::path::Path;
use std::process::{Command, Output};

use holdup_testing::{NO_SKIPS, Need, SKIPS, has, skip};

/// Which skip the test `skipper` is to make.
const WHICH: &str = "HOLDUP_TEST_SKIP";

#[test]
fn skipper() {
    let absent = Need::Program("no-program-of-this-name");
    match std::env::var(WHICH).as_deref() {
        Ok("lacking") => assert!(!has(absent)),
        Ok("failing") => skip(absent, "it cannot be run"),
        Ok("broken") => skip(Need::Program("sh"), "it says nothing"),
        Ok(other) => panic!("{other}"),
        Err(_) => assert!(has(Need::Program("sh"))),
    }
}

/// Runs `skipper` by itself, and what it left in the list of skips.
fn skipper_with(which: &str, strict: bool) -> (Output, String) {
    let list = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("skips-{which}-{strict}-{}", std::process::id()));
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "skipper", "--nocapture"]).env(WHICH, which).env(SKIPS, &list).env_remove(NO_SKIPS);
    if strict {
        command.env(NO_SKIPS, "1");
    }
    let output = command.output().expect("it runs");
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    let _ = std::fs::remove_file(&list);
    (output, text)
}

#[test]
fn a_skip_is_printed_and_listed() {
    for which in ["lacking", "failing"] {
        for strict in [false, true] {
            let (output, list) = skipper_with(which, strict);
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("no no-program-of-this-name"), "{which}: {said}");
            assert!(list.contains("skips.rs:") && list.lines().count() == 1, "{which}: {list:?}");
        }
    }
}

#[test]
fn what_the_machine_has_may_be_skipped_by_hand_and_not_in_make_test() {
    let (output, list) = skipper_with("broken", false);
    assert!(output.status.success() && list.contains("it says nothing"), "{list}");
    let (output, list) = skipper_with("broken", true);
    assert!(!output.status.success() && list.contains("it says nothing"), "{list}");
}
