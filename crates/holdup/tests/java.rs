//! Stacks of Java programs as they are installed: through what the machine compiled and interpreted, without flags.

mod recording;

use std::path::Path;
use std::process::Command;

use holdup_testing::{Need, has};
use recording::can_record;

/// Calls 25 methods deep, in an order that is known: `a`, `b`, `c`, `a`, …, and then computes.
const SOURCE: &str = "public class Deep {
  interface Step { long go(int n, long x); }
  static long spin(long x) { long s = x; for (int i = 0; i < 2000; i++) s = s * 31 + i; return s; }
  static long a(int n, long x) { return n == 0 ? spin(x) : b(n - 1, x + 1) + 1; }
  static long b(int n, long x) { Step s = Deep::c; return n == 0 ? spin(x) : s.go(n - 1, x ^ 3) * 3; }
  static synchronized long c(int n, long x) { return n == 0 ? spin(x) : a(n - 1, (long) (x * 1.5)) + 2; }
  public static void main(String[] v) throws Exception {
    Thread t = new Thread(() -> {
      long end = System.nanoTime() + 5_000_000_000L, s = 0;
      while (System.nanoTime() < end) s += a(24, s);
      System.out.println(s);
    }, \"walker\");
    t.start();
    t.join();
  }
}";

fn run(program: &str, args: &[&str], folder: &Path) {
    let done = Command::new(program).args(args).current_dir(folder).output().expect("starts");
    assert!(done.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The samples of a class's main method, as stacks with weights, a line each.
fn sampled(class: &str, source: &str, flags: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join(format!("{class}.java")), source).expect("source");
    run("javac", &[&format!("{class}.java")], folder.path());
    let holdup = env!("CARGO_BIN_EXE_holdup");
    run(holdup, &[&["record", "-o", "run.holdup", "--", "java"], flags, &[class]].concat(), folder.path());
    run(holdup, &["export", "run.holdup", "--format", "folded", "-o", "run.folded"], folder.path());
    std::fs::read_to_string(folder.path().join("run.folded")).expect("stacks")
}

/// `outer` is called once, and so interpreted; `twist` and `turn` are compiled into `middle`.
const INSIDE: &str = "public class Inside {
  static long twist(long x) { long s = x; for (int i = 0; i < 5000; i++) s = s * 31 + i; return s; }
  static long turn(long x) { return twist(x) ^ 7; }
  static long middle() {
    long end = System.nanoTime() + 5_000_000_000L, s = 0;
    while (System.nanoTime() < end) for (int i = 0; i < 100; i++) s += turn(s);
    return s;
  }
  static long outer() { return middle() + 1; }
  public static void main(String[] v) { System.out.println(outer()); }
}";

#[test]
fn methods_that_are_interpreted_or_compiled_into_others_have_names() {
    let Some(_one) = can_record() else { return };
    if !has(Need::Program("javac")) {
        return;
    }
    let folded = sampled("Inside", INSIDE, &[]);
    let weights = |part: &str| -> u64 {
        let weight = |line: &str| line.rsplit_once(' ').and_then(|(_, weight)| weight.parse::<u64>().ok());
        folded.lines().filter(|line| line.contains(part)).filter_map(weight).sum()
    };
    let all = weights("Inside.middle");
    assert!(all > 0, "{folded}");
    for part in ["Inside.main;Inside.outer;Inside.middle", "Inside.middle;Inside.turn;Inside.twist"] {
        assert!(weights(part) * 2 > all, "{part} in {} of {all}:\n{folded}", weights(part));
    }
}

#[test]
fn stacks_lead_through_compiled_methods_to_the_threads_entry() {
    let Some(_one) = can_record() else { return };
    if !has(Need::Program("javac")) {
        return;
    }
    // What is inlined has no frame of its own.
    let folded = sampled("Deep", SOURCE, &["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Deep.*"]);
    let (mut all, mut whole, mut wrong) = (0, 0, 0);
    for line in folded.lines() {
        let (stack, weight) = line.rsplit_once(' ').expect("weight");
        let weight: u64 = weight.parse().expect("a number");
        let names: Vec<&str> = stack.split(';').collect();
        let own: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix("Deep.")).collect();
        if own.iter().any(|name| ["a", "b", "c", "spin"].contains(name)) {
            all += weight;
            whole += if own.len() == 27 && own[26] == "spin" && names[1].starts_with("clone") { weight } else { 0 };
            let follows = |pair: &[&str]| !["ab", "bc", "ca"].contains(&&*pair.concat());
            let of_three: Vec<&str> = own.into_iter().filter(|name| name.len() == 1).collect();
            wrong += if of_three.windows(2).any(follows) { weight } else { 0 };
        }
    }
    // Not all methods are compiled from the beginning, and few samples lie elsewhere than in the innermost one.
    assert!(all > 0 && whole * 2 > all, "{whole} of {all} are whole:\n{folded}");
    assert!(wrong * 50 <= all, "{wrong} of {all} lack a frame:\n{folded}");
}
