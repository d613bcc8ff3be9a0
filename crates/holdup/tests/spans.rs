//! Spans of real programs, against the times that these take themselves.

mod outside;
mod recording;

use std::path::{Path, PathBuf};
use std::process::Command;

use holdup_testing::{Need, skip};
use holdup_trace::{SpanOutcome, Table, Trace};
use outside::{code, err, json, run};
use recording::can_record;

/// Handles requests on two threads and prints what each took by its own clock. Each fifth request handles another one within; one
/// is left by a jump, and one never ends.
const SERVER: &str = r#"
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static jmp_buf back;
__attribute__((noinline)) void handle_request(long id, const char *what, long ns[]) {
	if (id == 777) longjmp(back, 1);
	if (id == 888) sleep(100);
	usleep(id % 7 * 500);
	if (id % 5 == 0 && id < 1000) { long t = now(); handle_request(id + 1000, "inner", ns); ns[id + 1000] = now() - t; }
	asm volatile("" ::: "memory");
}
static long taken[3000];
static volatile long sum;
static void *work(void *from) {
	for (long id = (long)from; id < 200; id += 2) {
		const char *volatile what = id % 2 ? "odd" : "even";
		sum += *what; /* as any server that has just received it */
		long t = now();
		handle_request(id, what, taken);
		taken[id] = now() - t;
	}
	return 0;
}
static void *hang(void *unused) { handle_request(888, "hangs", taken); return unused; }
int main(void) {
	pthread_t a, b, c;
	pthread_create(&a, 0, work, (void *)0);
	pthread_create(&b, 0, work, (void *)1);
	pthread_join(a, 0);
	pthread_join(b, 0);
	if (!setjmp(back)) handle_request(777, "jumps", taken);
	pthread_create(&c, 0, hang, 0);
	usleep(50000);
	for (int id = 0; id < 3000; id++) if (taken[id]) printf("%d %ld\n", id, taken[id]);
	fflush(stdout);
	_exit(0);
}
"#;

/// Builds the server; none where there is no compiler.
fn server(dir: &Path, options: &[&str]) -> Option<PathBuf> {
    build(dir, SERVER, options)
}

/// Builds a program; none where there is no compiler.
fn build(dir: &Path, text: &str, options: &[&str]) -> Option<PathBuf> {
    if !Need::Program("cc").is_here() {
        skip(Need::Program("cc"), "nothing is built to be recorded");
        return None;
    }
    let (source, program) = (dir.join("server.c"), dir.join("server"));
    std::fs::write(&source, text).expect("source");
    let built =
        Command::new("cc").args(["-O2", "-pthread"]).args(options).arg("-o").arg(&program).arg(&source).status();
    assert!(built.expect("cc").success());
    Some(program)
}

fn argument(trace: &Trace, id: holdup_trace::StringId) -> (usize, String) {
    let (id, what) = trace.text(id).split_once(", ").expect("both arguments");
    (id.parse().expect("a number"), what.to_owned())
}

#[test]
fn calls_of_a_function_take_as_long_as_the_program_says() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let Some(program) = server(dir.path(), &[]) else { return };
    let (out, program) = (dir.path().join("t.holdup"), program.display().to_string());
    let spec = format!("u:{program}:handle_request(int,str)");
    let o = run(&["record", "-o", &out.display().to_string(), "--budget", "100%", "--span", &spec, "--", &program]);
    assert_eq!(code(&o), 0, "{}", err(&o));
    let own: Vec<(usize, u64)> = String::from_utf8_lossy(&o.stdout)
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(id, ns)| (id.parse().expect("id"), ns.parse().expect("ns")))
        .collect();
    assert_eq!(own.len(), 240, "200 requests, and 40 within others");

    let trace = holdup_trace::file::read(&out).expect("trace");
    let spans = trace.spans.load().expect("spans");
    let complete: Vec<_> = spans.rows().filter(|s| s.outcome == SpanOutcome::Complete).collect();
    assert_eq!(complete.len(), own.len());
    for span in &complete {
        assert_eq!((trace.text(span.name), span.weight), ("handle_request", 1));
        let (id, what) = argument(&trace, span.argument);
        let (_, ns) = own.iter().find(|(own, _)| *own == id).expect("a request of the program");
        let seen = span.t.nanos() - span.start.nanos();
        // The program's own clock is read outside of the call, and the call's breakpoints are within.
        assert!(seen <= *ns, "request {id}: {seen} ns, and {ns} by its own clock");
        let expected = if id >= 1000 {
            "inner"
        } else if id % 2 == 1 {
            "odd"
        } else {
            "even"
        };
        assert_eq!(what, expected, "request {id}");
    }
    let total = |all: &mut dyn Iterator<Item = u64>| all.sum::<u64>() as f64;
    let seen = total(&mut complete.iter().map(|s| s.t.nanos() - s.start.nanos()));
    let by_itself = total(&mut own.iter().map(|(_, ns)| *ns));
    assert!(seen > 0.5 * by_itself, "{seen} of {by_itself}");
    let info = json(&run(&["info", &out.display().to_string(), "--json"]));
    assert_eq!(info["events"]["span"], 242, "two were left or never ended");
    let others: Vec<_> = spans
        .rows()
        .filter(|s| s.outcome != SpanOutcome::Complete)
        .map(|s| (argument(&trace, s.argument).0, s.thread))
        .collect();
    assert_eq!(others.iter().map(|(id, _)| *id).collect::<std::collections::BTreeSet<_>>(), [777, 888].into());
}

#[test]
fn what_cannot_be_probed_is_told() {
    let dir = tempfile::tempdir().expect("dir");
    let Some(program) = server(dir.path(), &["-s"]) else { return };
    let program = program.display().to_string();
    let out = dir.path().join("t.holdup").display().to_string();
    let text = dir.path().join("server.c").display().to_string();
    for (spec, exit, says) in [
        ("nonsense".to_owned(), 2, "names no spans"),
        (format!("u:{program}:handle_request"), 3, "stripped"),
        (format!("u:{program}:+0xffffffff"), 3, "has no code at"),
        ("u:/no/such/file:f".to_owned(), 3, "/no/such/file"),
        (format!("u:{text}:f"), 3, "is not an ELF file"),
        (format!("usdt:{program}:p:x ~~ y"), 3, "has no probes of p"),
    ] {
        let o = run(&["record", "-o", &out, "--span", &spec, "--", "true"]);
        assert!(code(&o) == exit && err(&o).contains(says), "{spec}: {} {}", code(&o), err(&o));
        assert!(!Path::new(&out).exists());
    }
    let Some(program) = server(dir.path(), &[]) else { return };
    let o = run(&["record", "-o", &out, "--span", &format!("u:{}:handle_requests", program.display()), "--", "true"]);
    assert!(code(&o) == 3 && err(&o).contains("handle_request"), "{}", err(&o));
}

/// Calls a function as fast as it can, each hundredth for 2 ms, and says how many there were.
const FAST: &str = r#"
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) void call(int is_slow) { if (is_slow) usleep(2000); asm volatile("" ::: "memory"); }
int main(void) {
	long all = 0, slow = 0;
	for (double end = now() + 2; now() < end; all++) {
		int is_slow = all % 100 == 50;
		call(is_slow);
		slow += is_slow;
	}
	printf("%ld %ld\n", all, slow);
}
"#;

#[test]
fn over_the_budget_the_slow_ones_are_kept_and_weights_add_up_to_the_calls() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let Some(program) = build(dir.path(), FAST, &[]) else { return };
    let (out, program) = (dir.path().join("t.holdup"), program.display().to_string());
    let spec = format!("u:{program}:call");
    let o = run(&["record", "-o", &out.display().to_string(), "--budget", "0.1%", "--span", &spec, "--", &program]);
    assert_eq!(code(&o), 0, "{}", err(&o));
    let said = String::from_utf8_lossy(&o.stdout).into_owned();
    let (all, slow) = said.trim().split_once(' ').expect("two numbers");
    let (all, slow): (u64, usize) = (all.parse().expect("calls"), slow.parse().expect("slow ones"));

    let trace = holdup_trace::file::read(&out).expect("trace");
    let spans = trace.spans.load().expect("spans");
    assert!((spans.len() as u64) < all / 2, "{} of {all} were recorded", spans.len());
    let told: u64 = trace.losses.iter().map(|l| l.expect("a loss")).map(|l| l.count).sum();
    let sum: u64 = spans.rows().map(|s| u64::from(s.weight)).sum();
    assert_eq!(sum + told, all);
    let is_slow = |s: &holdup_trace::tables::Span| s.t.nanos() - s.start.nanos() >= 2_000_000;
    // Those of the first moments stand for others where the limit is not known yet; on a busy machine others are slow, too.
    let kept = spans.rows().filter(is_slow).filter(|s| s.weight == 1).count();
    assert!(kept * 10 >= slow * 9, "{kept} of {slow} slow ones");
}
