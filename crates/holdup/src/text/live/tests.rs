use std::time::Duration;

use holdup_analysis::Explanation;
use holdup_analysis::report::{CpuSeconds, Finding, FindingKind};
use holdup_analysis::threads::{ThreadList, ThreadTimes};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Live, Page, Wish};

fn finding(number: usize, function: &str, kind: FindingKind) -> Finding {
    let mut found = Finding {
        id: format!("f{number}"),
        kind,
        title: format!("{function} kept one lock for 1.00 s").into(),
        blame_cpu_s: 1.0,
        share_of_held_up: 0.5,
        advice: format!("Do the work of {function} elsewhere."),
        ..Finding::default()
    };
    found.culprit.function = function.to_owned();
    found
}

fn page(functions: &[&str]) -> Page {
    let cpu = CpuSeconds { total: 4.0, busy: 1.0, held_up: 2.0, no_work: 1.0, ..CpuSeconds::default() };
    let findings = functions.iter().enumerate().map(|(i, f)| finding(i + 1, f, FindingKind::LockHeld)).collect();
    let mut answer = Explanation { cpu_seconds: cpu, findings, ..Explanation::default() };
    (answer.trace.cpus, answer.trace.duration_s) = (2, 2.0);
    let thread = |tid, name: &str, ran_s| ThreadTimes { tid, name: name.into(), ran_s, ..ThreadTimes::default() };
    let threads = ThreadList {
        threads: vec![thread(7, "idler", 0.1), thread(8, "worker", 1.5), thread(9, "\x1b[31mevil\u{202e}", 0.5)],
        ..ThreadList::default()
    };
    Page { answer, threads, took: Duration::from_millis(300) }
}

fn screen(live: &Live, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(100, height)).expect("memory");
    terminal.draw(|frame| live.draw(frame)).expect("memory");
    let buffer = terminal.backend().buffer();
    let row = |y| (0..100).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(row).collect::<Vec<_>>().join("\n")
}

fn press(live: &mut Live, code: KeyCode) -> Wish {
    live.press(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn a_page_has_the_sum_the_causes_and_the_threads() {
    let mut live = Live::default();
    assert!(screen(&live, 24).contains("recording the first seconds"));
    live.show(page(&["scan", "parse"]));
    let text = screen(&live, 24);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("holdup top the whole machine, 2.00 s on 2 CPUs"), "{text}");
    assert_eq!([lines[1].matches('█').count(), lines[1].matches('╳').count()], [25, 50], "{text}");
    assert!(lines[2].contains("25 % worked") && lines[2].contains("50 % stood still"), "{text}");
    assert!(lines[4].contains("1   25.0 %  scan kept one lock"), "{text}");
    assert!(text.contains("It ran    scan") && text.contains("Do the work of scan"), "{text}");
    let place = |name: &str| text.find(name).unwrap_or_else(|| panic!("no {name} in {text}"));
    assert!(place("worker") < place("idler"), "who ran most comes first");
    assert!(text.contains(r"\x1b[31mevil") && !text.contains('\x1b') && !text.contains('\u{202e}'), "{text}");
    // However small the terminal is.
    for height in [1, 3, 8] {
        screen(&live, height);
    }
}

#[test]
fn keys_choose_hold_and_sort() {
    let mut live = Live::default();
    assert_eq!(press(&mut live, KeyCode::Down), Wish::Go, "before the first page");
    live.show(page(&["scan", "parse"]));
    press(&mut live, KeyCode::Down);
    assert!(screen(&live, 24).contains("It ran    parse"));
    // The same cause, though it is the first now.
    live.show(page(&["parse", "scan"]));
    assert!(screen(&live, 24).contains("It ran    parse"));
    press(&mut live, KeyCode::Char('9'));
    press(&mut live, KeyCode::Char('2'));
    assert!(screen(&live, 24).contains("It ran    scan"));
    press(&mut live, KeyCode::Char(' '));
    live.show(page(&["other"]));
    assert!(screen(&live, 24).contains("held") && !screen(&live, 24).contains("other"));
    press(&mut live, KeyCode::Char(' '));
    live.show(page(&[]));
    assert!(screen(&live, 24).contains("Nothing held it up"), "{}", screen(&live, 24));
    for _ in 0..4 {
        press(&mut live, KeyCode::Char('s'));
    }
    let text = screen(&live, 24);
    assert!(text.contains("thread▾") && text.find("idler") < text.find("worker"), "{text}");
    assert_eq!(press(&mut live, KeyCode::Char('q')), Wish::Quit);
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(live.press(ctrl_c), Wish::Quit);
}
