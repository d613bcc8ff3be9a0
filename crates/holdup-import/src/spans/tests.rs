use holdup_trace::{
    ChainId, Destination, LockId, NameEvent, SpanOutcome, SwitchEvent, SwitchState, Table, TraceBuilder,
};

use super::*;

const DAY: u64 = 1_700_000_000_000_000_000;
const MS: u64 = 1_000_000;

/// Two CPUs: threads 10 and 11 of one process take turns on the first, each for 10 ms of 40; 20 of another process runs all the time on the second.
fn trace() -> Trace {
    let mut b = TraceBuilder::new(&Destination::Memory).expect("builder");
    b.meta_mut().time_of_day_ns = Some(DAY);
    let [a, other] = ["server", "hog"].map(|name| b.string(name));
    for (pid, tid, name) in [(10, 10, a), (10, 11, a), (20, 20, other)] {
        b.push(5 * MS, NameEvent { pid, tid, name });
    }
    let mut switch = |t: u64, cpu: u16, prev, next| {
        let (state, lock) = (SwitchState::Sleeping, LockId::NONE);
        let chain = ChainId::NONE;
        b.push(
            5 * MS + t * MS,
            SwitchEvent { cpu: Cpu(cpu), prev, next, state, io_wait: false, syscall: -1, lock, chain },
        );
    };
    switch(0, 1, 0, 20);
    for turn in 0..2 {
        switch(turn * 20, 0, if turn == 0 { 0 } else { 11 }, 10);
        switch(turn * 20 + 10, 0, 10, 11);
    }
    switch(40, 0, 11, 0);
    b.finish(None).expect("trace")
}

fn json(spans: &[(&str, f64, f64, &str)]) -> String {
    let one = |(name, from, to, more): &(&str, f64, f64, &str)| {
        let at = |ms: f64| (DAY + 5 * MS).saturating_add_signed((ms * MS as f64) as i64);
        format!(
            r#"{{"name":"{name}","startTimeUnixNano":"{}","endTimeUnixNano":{},"attributes":[{{"key":"http.route","value":{{"stringValue":"/x"}}}}{more}]}}"#,
            at(*from),
            at(*to)
        )
    };
    let all: Vec<String> = spans.iter().map(one).collect();
    let resource = r#"{"attributes":[{"key":"process.pid","value":{"intValue":"10"}}]}"#;
    format!(
        r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{{}},"spans":[{}]}}]}}]}}"#,
        all.join(",")
    )
}

fn added(text: &str) -> (Vec<(u32, u64, String, String)>, Added) {
    let mut trace = trace();
    let added = add(&mut trace, text.as_bytes()).expect("spans");
    let spans = trace.spans.load().expect("spans");
    let row = |s: Span| {
        assert_eq!(s.outcome, SpanOutcome::Complete);
        let tid = trace.thread(s.thread).expect("thread").tid;
        (tid, s.t.since(s.start).0, trace.text(s.name).to_owned(), trace.text(s.argument).to_owned())
    };
    (spans.rows().map(row).collect(), added)
}

#[test]
fn a_span_is_of_the_thread_that_ran_when_it_began_and_when_it_ended() {
    let all = [("a", 1.0, 9.0, ""), ("b", 12.0, 38.0, ""), ("a", 2.0, 25.0, ""), ("c", 5.0, 15.0, "")];
    let (rows, added) = added(&json(&all));
    let own = |tid, ms: u64, name: &str| (tid, ms * MS, name.to_owned(), "/x".to_owned());
    assert_eq!(rows, [own(10, 8, "a"), own(10, 23, "a"), own(11, 26, "b")]);
    assert_eq!((added.spans, added.names), (3, vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(added.left_out.into_values().collect::<Vec<_>>(), [1], "one began on one thread and ended on another");
}

#[test]
fn what_lies_outside_or_lies_is_counted() {
    let all = [("a", 1.0, 9.0, ""), ("late", 30.0, 900.0, ""), ("early", -900.0, 3.0, ""), ("back", 9.0, 1.0, "")];
    let (rows, added) = added(&json(&all));
    assert_eq!(rows.len(), 1);
    assert_eq!(added.left_out.values().sum::<u64>(), 3, "{:?}", added.left_out);
    let mut trace = trace();
    add(&mut trace, json(&all).as_bytes()).expect("spans");
    assert_eq!(trace.losses().expect("losses").iter().map(|l| l.count).sum::<u64>(), 3);
}

#[test]
fn documents_may_stand_in_lines_and_the_last_be_cut_off() {
    let line = json(&[("a", 1.0, 9.0, "")]);
    let text = format!("{line}\n{line}\n{}", &line[..100]);
    let (rows, added) = added(&text);
    assert_eq!((rows.len(), added.left_out.values().sum::<u64>()), (2, 1));
}

#[test]
fn tables_name_their_columns() {
    let (rows, added) =
        added("name,start_s,end_s,argument,process\nq, 0.0010 ,0.009,\"a, b\",10\nq,0.02,x,,\nq,0.001,0.009,,\n");
    assert_eq!(rows, [(10, 8 * MS, "q".to_owned(), "a, b".to_owned())]);
    assert_eq!(added.left_out.len(), 2, "one is no time, and at both ends of the other two processes ran");
}

#[test]
fn tables_may_name_threads() {
    let text = "Thread,Start_S,End_S,Name,process\n11,0.001,0.009,by number,\nhog,0.001,0.0395,by name,\n,0.001,0.009,by process,server\n99,0,0.1,nobody,\n";
    let (rows, added) = added(text);
    let found: Vec<(u32, &str)> = rows.iter().map(|(tid, _, name, _)| (*tid, name.as_str())).collect();
    assert_eq!(found, [(11, "by number"), (10, "by process"), (20, "by name")]);
    assert_eq!(added.left_out.len(), 1);
}

#[test]
fn what_is_no_source_is_told() {
    for (text, says) in [
        ("", "is empty"),
        ("{\"resourceSpans\": 5}", "is not an OTLP export"),
        ("{\"traceEvents\": []}", "has no spans: expected OTLP"),
        ("{\"resourceSpans\": []}", "has no spans"),
        ("a,b\n1,2\n", "neither OTLP in JSON nor a table"),
        ("name,start_unix_ns,end_unix_ns\nx,1,2\n", "no span that lies within the trace"),
        (&format!("{{\"resourceSpans\":{}", "[".repeat(100_000)), "is not an OTLP export"),
    ] {
        let said = add(&mut trace(), text.as_bytes()).expect_err(text.get(..20).unwrap_or(text)).to_string();
        assert!(said.contains(says), "{said}");
    }
    let mut blind = trace();
    blind.meta.time_of_day_ns = None;
    let said = add(&mut blind, json(&[("a", 1.0, 9.0, "")]).as_bytes()).expect_err("no time of day").to_string();
    assert!(said.contains("does not tell which time of day"), "{said}");
}

#[test]
fn clocks_that_differ_are_told() {
    // All lie in the trace; by their own clock they are of the first process, which then never runs at both ends.
    let off: Vec<(&str, f64, f64, &str)> = (0..20).map(|_| ("a", 5.0, 15.0, "")).collect();
    let said = add(&mut trace(), json(&off).as_bytes()).expect_err("another clock").to_string();
    assert!(said.contains("its clock is not that of the trace"), "{said}");
}

/// A document with one span, whose begin and end thread 10 ran.
fn with(attributes: &str, end: &str) -> String {
    let start = DAY + 6 * MS;
    let spans = format!(r#"[{{"name":"x","startTimeUnixNano":{start},{end}"attributes":{attributes}}}]"#);
    format!(r#"{{"resourceSpans":[{{"resource":null,"scopeSpans":[{{"spans":{spans}}}]}}]}}"#)
}

fn attribute(key: &str, value: u32) -> String {
    format!(r#"{{"key":"{key}","value":{{"intValue":"{value}"}}}}"#)
}

#[test]
fn numbers_of_threads_are_believed_only_if_these_ran() {
    let end = format!("\"endTimeUnixNano\":\"{}\",", DAY + 9 * MS);
    let of = |all: &[(&str, u32)]| {
        let all: Vec<String> = all.iter().map(|(key, value)| attribute(key, *value)).collect();
        let mut trace = trace();
        let result = add(&mut trace, with(&format!("[{}]", all.join(",")), &end).as_bytes());
        result.map(|_| trace.thread(trace.spans.load().unwrap().row(0).thread).unwrap().tid).map_err(|e| e.to_string())
    };
    assert_eq!(of(&[("thread.id", 10)]), Ok(10));
    assert_eq!(of(&[("thread.id", 20)]), Ok(20), "it ran, too");
    assert_eq!(of(&[("thread.id", 3), ("process.pid", 10)]), Ok(10), "a runtime's own number");
    assert!(of(&[("thread.id", 11)]).is_err_and(|e| e.contains("no thread ran")), "it did not run then");
    assert!(of(&[("process.pid", 7)]).is_err_and(|e| e.contains("that the trace does not have")));
}

#[test]
fn one_odd_span_is_left_out_alone() {
    let good = json(&[("a", 1.0, 9.0, "")]);
    for odd in [with("null", ""), with("null", "\"endTimeUnixNano\":\"0\","), r#"{"resourceMetrics":[]}"#.to_owned()] {
        let (rows, added) = added(&format!("{good}\n{odd}\n"));
        assert_eq!(rows.len(), 1, "{odd}");
        assert_eq!(added.left_out.values().sum::<u64>(), u64::from(odd.contains("resourceSpans")), "{odd}");
    }
}
