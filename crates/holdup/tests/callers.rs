//! Who called what was running, where stacks look alike.
#![cfg(target_arch = "x86_64")]

mod recording;

use std::process::Command;

use holdup_testing::{Need, has};
use recording::can_record;

#[test]
fn what_an_earlier_call_left_on_the_stack_is_nobodys_caller() {
    let Some(_one) = can_record() else { return };
    if !has(Need::Program("cc")) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (source, program, out, folded) = (file("callers.c"), file("calling"), file("t.holdup"), file("t.folded"));
    std::fs::write(&source, include_str!("callers.c")).expect("source");
    assert!(Command::new("cc").args(["-O2", "-o", &program, &source]).status().expect("cc").success());
    for args in [&["record", "-o", &out, "--", &program][..], &["export", &out, "--format", "folded", "-o", &folded]] {
        let done = Command::new(env!("CARGO_BIN_EXE_holdup")).args(args).output().expect("starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let text = std::fs::read_to_string(folded).expect("stacks");
    let weight = |way: &str| -> u64 {
        let stacks = text.lines().filter_map(|line| line.rsplit_once(' '));
        stacks.filter(|(stack, _)| stack.ends_with(way)).map(|(_, weight)| weight.parse::<u64>().expect("µs")).sum()
    };
    let (far, near) = (weight(";main;way;far"), weight(";main;near"));
    assert!(far > 300_000 && near > 300_000, "{far} {near}\n{text}");
    assert_eq!((weight(";way;near"), weight(";main;far")), (0, 0), "{text}");
}
