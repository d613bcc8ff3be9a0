//! What the page says of answers made by hand: every kind of it fits one screen.

use holdup_analysis::report::{
    Caveat, Confidence, CpuSeconds, Culprit, Explanation, Finding, Hot, Smaller, Stall, TraceFacts, Waiters, WorkedOn,
};

use super::*;

/// Lines and columns of the smallest terminal.
const SCREEN: (usize, usize) = (24, 80);

fn page_of(answer: &Explanation, file: Option<&str>) -> String {
    let notes = [Note::new(NoteKind::NoNames, "nothing calls /usr/bin/x by name")];
    let page = Page { answer, notes: &notes, file, options: String::new() };
    let mut bytes = Vec::new();
    page.write(&mut screen::plain(&mut bytes)).expect("memory");
    let text = String::from_utf8(bytes).expect("text");
    assert!(text.lines().count() <= SCREEN.0, "{text}");
    let widest = text.lines().map(|l| l.chars().count()).max().unwrap_or(0);
    assert!(widest <= SCREEN.1, "{widest} columns:\n{text}");
    text
}

fn answer() -> Explanation {
    Explanation {
        trace: TraceFacts {
            path: "demo.holdup".into(),
            duration_s: 2.02,
            cpus: 2,
            focus: "holdup (pid 22459)".into(),
            ..TraceFacts::default()
        },
        cpu_seconds: CpuSeconds {
            total: 4.04,
            busy: 2.4,
            held_up: 0.7,
            runnable_idle: 0.14,
            other: 0.3,
            no_work: 0.5,
            ..CpuSeconds::default()
        },
        ..Explanation::default()
    }
}

fn held() -> Finding {
    Finding {
        id: "f1".into(),
        kind: FindingKind::LockHeld,
        title: "bitmap-scan kept one lock for 696.0 ms; 12 threads stood still".into(),
        culprit: Culprit {
            function: "holdup::demo::program::find_free_block".into(),
            source: "program.rs:80".into(),
            called_by: "holdup::demo::program::reserve_space".into(),
            ..Culprit::default()
        },
        waiters: Waiters {
            threads: 12,
            waits: 12,
            names: vec!["compiler-00 … compiler-11".into()],
            function: "holdup::demo::program::write_object".into(),
            source: "program.rs:61".into(),
            ..Waiters::default()
        },
        blame_cpu_s: 0.7,
        share_of_held_up: 0.9,
        gain_at_most: Some(1.53),
        windows: vec![[0.62, 1.32]],
        confidence: Confidence::High,
        advice: "Do the work of holdup::demo::program::find_free_block before taking the lock.".into(),
        ..Finding::default()
    }
}

fn small(id: &str, kind: FindingKind) -> Finding {
    let title = format!("{id} did little").into();
    let share_of_held_up = if kind == FindingKind::IdleByDesign { 0.0 } else { 0.001 };
    Finding { id: id.into(), kind, title, blame_cpu_s: 0.001, share_of_held_up, ..Finding::default() }
}

#[test]
fn a_kept_lock() {
    let findings = vec![held(), small("f2", FindingKind::Serial), small("f3", FindingKind::IdleByDesign)];
    let smaller = Smaller { causes: 37, blame_cpu_s: 0.05 };
    let text = page_of(&Explanation { findings, smaller, ..answer() }, Some("demo.holdup"));
    let wanted = "\
demo.holdup: holdup (pid 22459), 2.02 s on 2 CPUs
  bitmap-scan kept one lock for 696.0 ms; 12 threads stood still.
  It ran    find_free_block  program.rs:80  (called by reserve_space)
  They hung write_object     program.rs:61  (compiler-00 … compiler-11)
  Try       Do the work of find_free_block before taking the lock. If nobody had
            to wait for it, at best 2.02 s → 1.32 s.
  0 s ················╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳╳·················· 2.02 s   (0.62–1.32 s)
  CPU time   59 % your program worked    17 % stood still, waiting for the above
              3 % ready, but not scheduled     7 % other programs
             12 % nothing to do
  Sure?     high; no events lost. Not shown: 1 place of idle waiting (--all).
  Also      38 smaller causes: 51.0 ms of CPU time in all (--all)
  More      holdup explain demo.holdup --why 1   stacks, instructions, evidence
            holdup explain demo.holdup --all     every cause, the sum, the notes
            holdup view demo.holdup              all of it in the browser
";
    assert_eq!(text, wanted);
}

/// Silence would be taken for an all-clear.
#[test]
fn what_the_trace_cannot_tell_comes_first() {
    let record = vec!["holdup record -- CMD".to_owned(), holdup_base::PERF.to_owned()];
    let caveat = Caveat { what: "There are no context switches in this trace.".into(), record };
    let hot = Hot { process: "perf".into(), module: "/bin/perf".into(), share: 0.79, ..Hot::default() };
    let text = page_of(&Explanation { caveats: vec![caveat], hot: vec![hot], ..answer() }, Some("perf.data"));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "  There are no context switches in this trace.");
    assert_eq!(lines[2], "  Record it holdup record -- CMD");
    assert!(lines[3].starts_with("  or        perf record") && lines[3].ends_with('\\'), "{text}");
    assert!(text.contains("  What ran   79 %  perf             (in perf)"), "{text}");
    assert!(!text.contains("Nothing held it up") && !text.contains("high"), "{text}");
}

#[test]
fn a_program_that_is_merely_busy() {
    let title = "4.05 s of CPU time went into work, 39 % of it in a::b::<c>::run of rustc".to_owned();
    let culprit = Culprit { function: "a::b::<c>::run".into(), ..Culprit::default() };
    let busy = Finding {
        title: title.into(),
        culprit,
        kind: FindingKind::CpuBound,
        gain_at_most: None,
        confidence: Confidence::High,
        ..held()
    };
    let text = page_of(&Explanation { findings: vec![Finding { windows: vec![], ..busy }], ..answer() }, Some("x"));
    assert!(text.contains("39 % of it in run of rustc."), "{text}");
    assert!(!text.contains("They hung") && !text.contains("at best"), "{text}");
}

#[test]
fn what_runs_below_a_function_stands_beside_it() {
    let of = |kernel, named: &str, below_share| Hot { kernel, below: named.into(), below_share, ..Hot::default() };
    assert!(below(&of(0.1, "a::copy", 0.2)).is_empty());
    assert_eq!(below(&of(0.1, "a::copy", 0.4)), ["  (copy 40 %)"]);
    assert_eq!(below(&of(0.97, "", 0.0)), ["  (kernel 97 %)"]);
    let long = Hot { process: "wis".into(), function: "read_one_page".into(), share: 1.0, ..of(0.97, "", 0.0) };
    let page = |below: &str| {
        let hot = Hot { below: below.into(), below_share: 0.4, ..long.clone() };
        page_of(&Explanation { findings: vec![small("f1", FindingKind::CpuBound)], hot: vec![hot], ..answer() }, None)
    };
    assert!(page("read").contains("  read_one_page  (kernel 97 %; read 40 %)\n"), "{}", page("read"));
    // A name that does not fit is left out, not cut.
    let text = page("filemap_get_read_batch_and_more");
    assert!(text.contains("  read_one_page  (kernel 97 %)\n"), "{text}");
}

#[test]
fn the_command_tells_what_it_worked_on() {
    let on = |what: &str, share| WorkedOn { what: what.into(), share };
    let of = |process: &str, works_on| Culprit { process: process.into(), works_on, ..Culprit::default() };
    assert_eq!(command(&of("python3", vec![])), None);
    assert_eq!(command(&of("python3", vec![on("manage.py", 0.97)])).as_deref(), Some("python3 manage.py"));
    let several =
        vec![on("server.c", 0.5), on("t_\u{1b}zset.c", 0.3), on("a.c", 0.1), on("b.c", 0.06), on("c.c", 0.04)];
    assert_eq!(
        command(&of("cc1", several)).as_deref(),
        Some("cc1: server.c 50 %, t_\\x1bzset.c 30 %, a.c 10 %, 2 others")
    );
    let culprit = Culprit { function: "parse".into(), ..of("ruby", vec![on("app.rb", 1.0)]) };
    let text = page_of(&Explanation { findings: vec![Finding { culprit, ..held() }], ..answer() }, Some("x"));
    assert!(text.contains("\n  Command   ruby app.rb\n"), "{text}");
}

#[test]
fn nothing_is_said_to_hold_up_what_had_nothing_to_do() {
    let cpu_seconds = CpuSeconds { total: 4.0, busy: 0.3, no_work: 3.7, ..CpuSeconds::default() };
    let idle = |n| Finding { blame_cpu_s: 3.7, title: "curl waited".into(), ..small(n, FindingKind::IdleByDesign) };
    let findings = vec![small("f1", FindingKind::Serial), idle("f2"), idle("f3")];
    let answer = Explanation { cpu_seconds, findings, mostly_idle: true, ..answer() };
    let text = page_of(&answer, None);
    assert!(text.contains("Nothing held it up: 92 % of the CPU time there was nothing to do; curl waited."), "{text}");
    assert!(text.contains("Not shown: 1 place of idle waiting"), "{text}");
    assert!(text.contains("--keep FILE"), "{text}");
    // What is too small for the page is not; what is not comes behind the idleness.
    let held = Finding { blame_cpu_s: 0.1, ..held() };
    let some = page_of(&Explanation { findings: vec![held.clone(), idle("f2")], ..answer.clone() }, Some("x"));
    assert!(some.contains("Little held it up: 92 %") && some.contains("Also      1. bitmap-scan kept"), "{some}");
    let little =
        page_of(&Explanation { findings: vec![held.clone()], mostly_idle: false, ..answer.clone() }, Some("x"));
    assert!(
        little
            .contains("Little held it up: 92 % of the CPU time there was nothing to do; the most:\n  bitmap-scan kept"),
        "{little}"
    );
    // Who set itself a time waited for that.
    let mut asleep = idle("f2");
    asleep.culprit.activity = Activity::Slept;
    let slept = page_of(&Explanation { findings: vec![asleep.clone()], ..answer.clone() }, Some("x"));
    assert!(slept.contains("\n  curl waited; 92 % of the CPU time there was nothing to do."), "{slept}");
    let cpu_seconds = CpuSeconds { no_work: 0.0, ..answer.cpu_seconds };
    let beside = page_of(&Explanation { findings: vec![asleep], cpu_seconds, ..answer.clone() }, Some("x"));
    assert!(beside.contains("\n  curl waited.\n"), "where others used the CPUs: {beside}");
    // A machine has no work of its own to wait for.
    let machine = page_of(&Explanation { mostly_idle: false, ..answer }, None);
    assert!(machine.contains("Nothing held it up: 92 % of the CPU time there was nothing to do."), "{machine}");
    assert!(machine.contains("Not shown: 2 places of idle waiting"), "{machine}");
}

/// Neighbours used the CPUs that the program left: nothing was idle, and it stood still all the same.
#[test]
fn neighbours_do_not_hide_a_standstill() {
    let cpu_seconds = CpuSeconds { total: 4.04, busy: 1.0, other: 3.04, ..CpuSeconds::default() };
    let doubts = vec!["the host took 12 % of the CPUs".to_owned()];
    let findings = vec![Finding { doubts, confidence: Confidence::Medium, ..held() }];
    let text = page_of(&Explanation { cpu_seconds, findings, ..answer() }, Some("x"));
    assert!(text.contains("75 % other programs, also where yours stood still"), "{text}");
    assert!(text.contains("Sure?     medium: the host took 12 % of the CPUs."), "{text}");
}

#[test]
fn long_names_and_many_causes_fit() {
    let long = "x".repeat(300);
    let mut first = held();
    (first.culprit.function, first.culprit.source) = (long.clone(), format!("{long}.c:1"));
    first.waiters.names = vec![long.clone(), long.clone()];
    let more = (2..40).map(|i| Finding { id: format!("f{i}"), title: long.clone().into(), ..held() });
    let mut answer = Explanation { findings: std::iter::once(first).chain(more).collect(), ..answer() };
    (answer.trace.path, answer.trace.focus) = (long.clone(), format!("{} (pid 1)", &long[..20]));
    let text = page_of(&answer, Some("a b'c.holdup"));
    assert!(text.contains("'a b'\\''c.holdup' --why 1"), "{text}");
    assert!(text.contains("35 smaller causes: 24.50 s of CPU time in all"), "{text}");
}

/// What users feel is on the page, as far as it is one screen.
#[test]
fn stalls_have_lines_that_causes_leave() {
    let stall = |n: usize| Stall {
        title: format!("{n} stalls of 98–105 ms: `redis-benchmark` waited for `redis-server` in `a::b::keysCommand`"),
        culprit: Culprit { function: "a::b::keysCommand".into(), ..Culprit::default() },
        ..Stall::default()
    };
    let stalls: Vec<Stall> = (3..20).map(stall).collect();
    let text = page_of(&Explanation { findings: vec![held()], stalls: stalls.clone(), ..answer() }, Some("x"));
    let wanted = "  Stalls    3 stalls of 98–105 ms: `redis-benchmark` waited for `redis-server`
            in `keysCommand`\n";
    assert!(text.contains(wanted), "{text}");
    assert_eq!(text.matches(" stalls of ").count(), 2, "{text}");
    let findings = (1..9).map(|i| Finding { id: format!("f{i}"), ..held() }).collect();
    let text = page_of(&Explanation { findings, stalls, ..answer() }, Some("x"));
    assert_eq!(text.matches(" stalls of ").count(), 1, "{text}");
}
