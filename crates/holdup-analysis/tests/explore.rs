//! The group-by kernel against the obvious way, filters, and each table on a small schedule.

mod common;

use std::collections::HashMap;
use std::sync::Arc;

use common::{FUTEX, SLEEP, Schedule, ns};
use holdup_analysis::explore::filter::Filter;
use holdup_analysis::explore::group::{Keys, MOST_GROUPS, Spread, distinct, tally};
use holdup_analysis::explore::relation::{Column, Data, MISSING, Rows, Text, Unit};
use holdup_analysis::explore::{Answer, Error, Explorer, Measure, PRESETS, Process, Query, Stop, TableKind};
use holdup_trace::{Cpu, ExitEvent, ForkEvent, NameEvent, Nanos, SampleEvent, SpanEvent, SpanOutcome, Trace};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn numbers(name: &str, values: Vec<u64>) -> Column {
    Column { name: name.into(), unit: Unit::Id, doc: "", data: Data::Numbers(values) }
}

fn text(name: &str, ids: Vec<u32>, values: u32) -> Column {
    let values = Arc::new((0..values).map(|i| format!("t{i}").into()).collect());
    Column { name: name.into(), unit: Unit::Text, doc: "", data: Data::Text(Text { ids, values }) }
}

/// Count, known values, sum, greatest, and all values of each group.
type Naive = HashMap<(u32, u64), (u64, u64, u64, u64, Vec<u64>)>;

#[test]
fn the_kernel_agrees_with_a_hash_map() {
    let mut random = Random(42);
    for (texts, ids, rows) in [(1, 1, 1), (7, 3, 1000), (300, 5_000_000_000, 5000), (50, 40, 200_000)] {
        let a: Vec<u32> = (0..rows).map(|_| random.below(texts) as u32).collect();
        let b: Vec<u64> = (0..rows).map(|_| random.below(ids)).collect();
        let v: Vec<u64> =
            (0..rows).map(|_| if random.below(10) == 0 { MISSING } else { random.below(1 << 40) }).collect();
        let chosen: Vec<u32> = (0..rows as u32).filter(|_| random.below(3) > 0).collect();
        let (a, b) = (text("a", a, texts as u32), numbers("b", b));
        for rows in [Rows::All(rows), Rows::Some(&chosen)] {
            compare(&a, &b, &v, rows);
        }
    }
}

fn compare(a: &Column, b: &Column, v: &[u64], rows: Rows) {
    let (Data::Text(texts), Data::Numbers(ids)) = (&a.data, &b.data) else { unreachable!() };
    let mut naive = Naive::new();
    for row in rows.to_vec() {
        let row = row as usize;
        let group = naive.entry((texts.ids[row], ids[row])).or_default();
        group.0 += 1;
        if v[row] != MISSING {
            group.1 += 1;
            group.2 += v[row];
            group.3 = group.3.max(v[row]);
            group.4.push(v[row]);
        }
    }
    let stop = Stop::default();
    let keys = Keys::of(&[a, b], rows, &stop).expect("few groups");
    let cells = tally(&keys, Some(v), rows, &stop).expect("not stopped");
    let first = keys.first_rows(rows, naive.len());
    let mut spread = Spread::new(&keys, &cells, v, rows, &stop).expect("not stopped");
    assert_eq!(cells.iter().filter(|c| c.rows > 0).count(), naive.len());
    for (group, cell) in cells.iter().enumerate().filter(|(_, c)| c.rows > 0) {
        let row = first[group] as usize;
        let wanted = naive.get_mut(&(texts.ids[row], ids[row])).expect("the same groups");
        assert_eq!((cell.rows, cell.known, cell.sum, cell.max), (wanted.0, wanted.1, wanted.2, wanted.3));
        wanted.4.sort_unstable();
        for p in [0.0, 50.0, 99.0, 100.0] {
            let rank = ((p / 100.0 * wanted.4.len() as f64).ceil() as usize).max(1) - 1;
            assert_eq!(spread.percentile(group, p), wanted.4.get(rank).copied().unwrap_or(MISSING));
        }
    }
}

#[test]
fn too_many_groups_and_stopped_questions_are_errors() {
    let rows = MOST_GROUPS + 2;
    for step in [1, 1 << 40] {
        let column = numbers("start", (0..rows as u64).map(|i| i * step).collect());
        let error = Keys::of(&[&column], Rows::All(rows), &Stop::default()).expect_err("too many").to_string();
        assert!(error.contains("grouping by start") && error.contains("--where"), "{error}");
    }
    let stop = Stop::default();
    stop.stop();
    let column = numbers("cpu", vec![0; 10]);
    assert!(matches!(Keys::of(&[&column], Rows::All(10), &stop), Err(Error::Stopped)));
}

/// `owner` holds a lock from 0 to 5 ms, `waiter` waits for it from 2 to 5 ms and runs again at 5.5 ms.
fn schedule() -> Trace {
    let mut schedule = Schedule::new(2, 12.0)
        .thread(10, "owner")
        .thread(11, "waiter")
        .runs(10, 0, 0.0, 10.0, SLEEP)
        .runs(11, 1, 1.0, 2.0, FUTEX)
        .futex(2.0, 11, 10)
        .by(5.0, 0, 10, 11)
        .runs(11, 1, 5.5, 7.0, SLEEP);
    schedule.builder.meta_mut().sample_period_ns = 1_000_000;
    for (t, ip) in [(3.0, 0x1234), (4.0, 0x1234), (6.0, 0x1240)] {
        let chain = schedule.builder.chain(1, &[], &[ip, 0x999]);
        schedule.builder.push(ns(t), SampleEvent { cpu: Cpu(0), tid: 10, ip, bp: 0, chain });
    }
    let (name, argument) = (schedule.builder.string("request"), schedule.builder.string("/page"));
    for (start, end, weight, outcome) in [
        (1.0, 2.0, 1, SpanOutcome::Complete),
        (1.0, 6.0, 1, SpanOutcome::Complete),
        (6.0, 7.0, 98, SpanOutcome::Complete),
        (6.5, 12.0, 1, SpanOutcome::Open),
    ] {
        let length = Nanos(ns(end) - ns(start));
        let (tid, end_tid, key) = (11, 11, 0);
        let span = SpanEvent { tid, end_tid, length, queued: Nanos(0), name, argument, key, outcome, weight };
        schedule.builder.push(ns(end), span);
    }
    schedule.finish()
}

fn ask(trace: &Trace, change: impl FnOnce(&mut Query), table: TableKind) -> Answer {
    let mut query = Query::new(table);
    change(&mut query);
    Explorer::new(trace).run(&query, &Stop::default()).expect("an answer")
}

fn words(names: &[&str]) -> Vec<String> {
    names.iter().map(|&n| n.to_owned()).collect()
}

/// The rows as text, `-` for unknown numbers.
fn show(answer: &Answer) -> Vec<String> {
    let cell = |c: &Column, row: usize| match &c.data {
        Data::Text(t) => t.get(row).to_owned(),
        Data::Numbers(n) if n[row] == MISSING => "-".to_owned(),
        Data::Numbers(n) => n[row].to_string(),
        Data::Reals(r) => format!("{:.2}", r[row]),
    };
    (0..answer.len()).map(|row| answer.columns.iter().map(|c| cell(c, row)).collect::<Vec<_>>().join(" ")).collect()
}

fn rows(table: TableKind, columns: &[&str]) -> Vec<String> {
    show(&ask(&schedule(), |q| q.columns = words(columns), table))
}

#[test]
fn waits_have_their_wakers() {
    let found = rows(TableKind::Waits, &["id", "thread", "start", "wait", "ready", "kind", "waker-thread", "open"]);
    assert_eq!(found[0], "0 waiter 2000000 3000000 500000 lock owner no");
    assert_eq!(found.len(), 3);
    assert!(found[1].starts_with("1 waiter 7000000 ") && found[1].ends_with(" yes"), "{}", found[1]);
}

/// Of `waiter`: one from 1 to 6 ms, in which it waits for the lock for 3 ms, one within it of 1 ms, and one of 1 ms that stands for 98.
#[test]
fn spans_count_as_often_as_they_stand_for_and_add_up() {
    let trace = schedule();
    let columns = ["id", "length", "argument", "parent", "depth", "ran", "ready", "waited-lock", "unknown", "outcome"];
    let found = show(&ask(&trace, |q| q.columns = words(&columns), TableKind::Spans));
    assert_eq!(
        found,
        [
            "0 1000000 /page 1 1 1000000 0 0 0 complete",
            "1 5000000 /page - 0 1500000 500000 3000000 0 complete",
            "2 1000000 /page - 0 1000000 0 0 0 complete",
            "3 - /page - 0 500000 0 0 0 open",
        ]
    );
    let by = |q: &mut Query| {
        q.by = words(&["name"]);
        q.measures = words(&["count", "sum:length", "mean:length", "p50:length", "p99:length", "p100:length", "share"]);
    };
    // 101 spans, of which 100 were seen whole.
    let sums = ["request 101 104000000 1040000.00 1000000 1000000 5000000 1.00"];
    assert_eq!(show(&ask(&trace, by, TableKind::Spans)), sums);
    let found = show(&ask(
        &trace,
        |q| q.columns = words(&["length", "ran", "ready", "waited", "unknown", "start", "end"]),
        TableKind::Spans,
    ));
    for row in found {
        let n: Vec<u64> = row.split(' ').map(|n| n.parse().unwrap_or(0)).collect();
        assert_eq!(n[1] + n[2] + n[3] + n[4], n[6] - n[5], "{row}");
    }
}

#[test]
fn switches_know_what_was_before() {
    let columns = ["t", "thread", "Time Since Last", "Ready", "on-cpu", "New Wait Reason", "Readying Thread Id"];
    assert_eq!(
        rows(TableKind::Switches, &columns),
        [
            "0 owner - - 10000000 unknown -",
            "1000000 waiter - - 1000000 unknown -",
            "5500000 waiter 3500000 500000 1500000 lock 10"
        ]
    );
}

#[test]
fn wakes_samples_and_locks_are_there() {
    assert_eq!(rows(TableKind::Wakes, &["t", "waker-thread", "thread"]), ["5000000 owner waiter"]);
    let columns = ["wait", "hand-off", "hold", "owner", "thread", "kind"];
    assert_eq!(rows(TableKind::Locks, &columns), ["3000000 500000 - owner waiter futex"]);
    let samples = rows(TableKind::Cpu, &["thread", "address", "depth:1", "inner:1", "depth:9", "weight"]);
    assert_eq!(samples[2], "owner 4672 0x998 0x1240  1000000");
    let by = |q: &mut Query| (q.by, q.measures) = (words(&["address"]), words(&["count", "sum:weight", "share"]));
    assert_eq!(show(&ask(&schedule(), by, TableKind::Cpu)), ["4660 2 2000000 0.67", "4672 1 1000000 0.33"]);
}

#[test]
fn groups_are_sorted_and_cut() {
    let trace = schedule();
    let by = |q: &mut Query| {
        q.by = words(&["thread", "open"]);
        q.measures = words(&["Count:Waits", "sum:wait", "mean:wait", "max:wait", "p50:wait"]);
        q.sort = words(&["-sum:wait"]);
        q.top = Some(2);
    };
    let answer = ask(&trace, by, TableKind::Waits);
    assert_eq!((answer.total, answer.matched, answer.len()), (3, 3, 2));
    assert_eq!(show(&answer)[0], "waiter yes 1 5000000 5000000.00 5000000 5000000");
    let window = |q: &mut Query| (q.window, q.columns) = (Some((0.0, 0.0025)), words(&["id"]));
    assert_eq!(show(&ask(&trace, window, TableKind::Waits)), ["0"]);
    let empty = |q: &mut Query| q.filters = words(&["thread == nobody"]);
    assert!(ask(&trace, empty, TableKind::Waits).is_empty());
}

#[test]
fn one_level_opens_into_the_next() {
    let trace = schedule();
    let (explorer, stop) = (Explorer::new(&trace), Stop::default());
    let query = Query { by: words(&["thread", "kind"]), ..Query::new(TableKind::Waits) };
    let view = explorer.view(&query, &stop).expect("a view");
    let count = [Measure::parse(TableKind::Waits, "count").expect("a measure")];
    let (first, second) = (words(&["thread"]), words(&["kind"]));
    let level = view.group(&first, view.rows(), &count, &stop).expect("a level");
    assert_eq!(show(&level), ["waiter 2", "owner 1"]);
    let inside = view.rows_of(&first, view.rows(), level.groups[0], &stop).expect("rows");
    let mut below = show(&view.group(&second, Rows::Some(&inside), &count, &stop).expect("a level"));
    below.sort();
    assert_eq!(below, ["lock 1", "timer 1"]);
}

#[test]
fn filters_choose_rows() {
    let trace = schedule();
    for (filter, wanted) in [
        ("wait > 3ms", "1"),
        ("wait >= 3ms and thread == waiter", "0 1"),
        ("not (kind == lock) && thread =~ \"^wait\"", "1"),
        ("wait in 2.5ms..3ms", "0"),
        ("start in 6ms .. ", "1 2"),
        ("thread != waiter || kind = lock", "0 2"),
        ("waker-tid != 99", "0"),
        ("'New Thread Id' == 10 or tid == 0xb and open !~ y", "0 2"),
        ("wait < 0", ""),
    ] {
        let query = |q: &mut Query| (q.filters, q.columns) = (words(&[filter]), words(&["id"]));
        assert_eq!(show(&ask(&trace, query, TableKind::Waits)).join(" "), wanted, "{filter}");
    }
}

#[test]
fn wrong_filters_say_where() {
    for (filter, at, what) in [
        ("wiat > 1ms", 1, "did you mean wait?"),
        ("wait > ", 8, "expected a value"),
        ("wait > fast", 8, "no time"),
        ("pid == one", 8, "no number"),
        ("kind > lock", 6, "is text"),
        ("wait =~ 3", 6, "is a number"),
        ("kind =~ '('", 9, "no regular expression"),
        ("(kind == lock", 14, "expected `)`"),
        ("kind == lock wait", 14, "expected `and`"),
        ("kind == \"lock", 9, "not closed"),
        ("kind == lock & wait > 1", 14, "means nothing"),
        ("", 1, "expected a column"),
        ("wait in 3ms", 9, "no range"),
    ] {
        let error = Filter::parse(TableKind::Waits, filter).expect_err(filter).to_string();
        assert!(error.contains(&format!("character {at}:")) && error.contains(what), "{filter}: {error}");
    }
    let deep = format!("{}wait > 1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(Filter::parse(TableKind::Waits, &deep).is_err());
}

#[test]
fn wrong_questions_say_what_would_be_right() {
    let trace = schedule();
    let wrong = |change: &dyn Fn(&mut Query)| {
        let mut query = Query::new(TableKind::Waits);
        change(&mut query);
        Explorer::new(&trace).run(&query, &Stop::default()).expect_err("an error").to_string()
    };
    assert!(wrong(&|q| q.by = words(&["proces"])).contains("did you mean process?"));
    assert!(wrong(&|q| (q.by, q.measures) = (words(&["kind"]), words(&["sum:tid"]))).contains("not a quantity"));
    assert!(wrong(&|q| (q.by, q.measures) = (words(&["kind"]), words(&["total"]))).contains("not a measure"));
    assert!(wrong(&|q| (q.by, q.sort) = (words(&["kind"]), words(&["start"]))).contains("cannot sort by start"));
    assert!(wrong(&|q| q.window = Some((5.0, 6.0))).contains("nothing lies between"));
    assert!(wrong(&|q| q.process = Process::Named("nobody".into())).contains("nobody"));
}

#[test]
fn every_preset_and_default_has_an_answer() {
    let (full, empty) = (schedule(), Trace::default());
    for preset in PRESETS {
        for trace in [&full, &empty] {
            let answer = Explorer::new(trace).run(&preset.query(), &Stop::default()).expect(preset.name);
            assert!(
                answer.total > 0
                    || trace.switches.rows() == 0
                    || ["readying-stacks", "hot-kernel"].contains(&preset.name),
                "{}",
                preset.name
            );
        }
    }
    for table in TableKind::ALL {
        for column in table.columns() {
            let name = column.name.replace(":N", ":1");
            let answer = ask(&full, |q| q.by = words(&[&name]), table);
            assert!(answer.total > 0, "{} {name}", table.name());
            assert!(ask(&empty, |q| q.columns = words(&[&name]), table).is_empty());
        }
    }
}

#[test]
fn different_values_are_counted_once() {
    let mut random = Random(7);
    let rows = 20_000;
    let a: Vec<u32> = (0..rows).map(|_| random.below(40) as u32).collect();
    let b: Vec<u64> = (0..rows).map(|_| if random.below(9) == 0 { MISSING } else { random.below(700) << 40 }).collect();
    let mut naive: HashMap<u32, std::collections::HashSet<u64>> = HashMap::new();
    for (group, value) in a.iter().zip(&b).filter(|(_, v)| **v != MISSING) {
        naive.entry(*group).or_default().insert(*value);
    }
    let (a, b) = (text("a", a, 40), numbers("b", b));
    let stop = Stop::default();
    let keys = Keys::of(&[&a], Rows::All(rows), &stop).expect("few groups");
    let counts = distinct(&keys, &b, Rows::All(rows), &stop).expect("few values");
    assert!((0..40).all(|g| counts[g as usize] == naive[&g].len() as u64), "{counts:?}");
    let by = |q: &mut Query| (q.by, q.measures) = (words(&["pid"]), words(&["count", "distinct:tid", "distinct:lock"]));
    // Three waits, of two threads, one of them for a lock.
    let answer = ask(&schedule(), by, TableKind::Waits);
    assert!(show(&answer) == ["1 3 2 1"], "{:?}", show(&answer));
    assert!(Measure::parse(TableKind::Waits, "distinct:nothing").is_err());
}

/// Process 20 with two threads, whose number another process has later; process 30 is there to the end.
#[test]
fn processes_have_lifetimes() {
    let mut schedule = Schedule::new(2, 12.0);
    let name = schedule.builder.string("old");
    schedule.builder.push(0, NameEvent { pid: 10, tid: 10, name });
    let fork = |pid, tid| ForkEvent { parent_pid: 10, parent: 10, pid, tid };
    let begin = [(1.0, 20, 20), (2.0, 20, 21), (6.0, 20, 20), (7.0, 30, 30)];
    let end = [(3.0, 20), (5.0, 21), (8.0, 20)];
    let mut events: Vec<(f64, Option<ForkEvent>, u32)> = Vec::new();
    events.extend(begin.map(|(t, pid, tid)| (t, Some(fork(pid, tid)), 0)));
    events.extend(end.map(|(t, tid)| (t, None, tid)));
    events.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (t, new, old) in events {
        match new {
            Some(new) => schedule.builder.push(ns(t), new),
            None => schedule.builder.push(ns(t), ExitEvent { tid: old }),
        };
    }
    let trace = schedule.runs(21, 0, 2.0, 4.5, SLEEP).finish();
    let preset = PRESETS.iter().find(|p| p.name == "process-lifetimes").expect("a question");
    let mut query = preset.query();
    query.columns = words(&["pid", "start", "end", "lifetime", "threads", "on-cpu", "parent-pid", "began", "ended"]);
    let answer = Explorer::new(&trace).run(&query, &Stop::default()).expect("an answer");
    let wanted = [
        "20 1000000 5000000 4000000 2 2500000 10 yes yes",
        "20 6000000 8000000 2000000 1 0 10 yes yes",
        "10 0 12000000 12000000 1 0 - no no",
        "30 7000000 12000000 5000000 1 0 10 yes no",
    ];
    assert_eq!(show(&answer), wanted);
}
