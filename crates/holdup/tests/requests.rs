//! Requests on sockets, against the times that clients measure themselves.

mod outside;
mod recording;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use holdup_testing::{Need, skip};
use holdup_trace::tables::Span;
use holdup_trace::{SpanOutcome, Table};
use outside::{code, err, json, run};
use recording::can_record;

/// A thread that serves a port and a local socket, and its clients: `slow` requests take it 20 ms, during which others wait for it. Clients print
/// what each request took by their own clocks.
const PROGRAM: &str = include_str!("requests.c");

/// How long the requests took by the clients' clocks, in ns, by their text; and the server's port.
fn by_clients(stdout: &[u8]) -> (HashMap<String, u64>, String) {
    let text = String::from_utf8_lossy(stdout);
    let mut lines = text.lines();
    let port = lines.next().and_then(|line| line.strip_prefix("port ")).expect("a port").to_owned();
    let own = |line: &str| line.rsplit_once(' ').map(|(what, ns)| (what.to_owned(), ns.parse().expect("ns")));
    (lines.filter_map(own).collect(), port)
}

#[test]
fn requests_take_what_clients_measure_and_those_behind_others_waited_for_them() {
    let Some(_one) = can_record() else { return };
    if !Need::Program("cc").is_here() {
        skip(Need::Program("cc"), "nothing is built to be recorded");
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (source, program, socket, out) = (file("requests.c"), file("server"), file("s"), file("t.holdup"));
    std::fs::write(&source, PROGRAM).expect("source");
    let built = Command::new("cc").args(["-O2", "-pthread", "-o", &program, &source]).status();
    assert!(built.expect("cc").success());

    let spans = ["--budget", "100%", "--span", "net(str)", "--"];
    let o = run(&[&["record", "-o", &out][..], &spans, &[&program, &socket]].concat());
    if code(&o) == 4 && err(&o).contains("sock_recv_length") {
        skip(Need::Other { name: "tracepoints of sockets", is_here: false }, "no request is recorded");
        return;
    }
    assert_eq!(code(&o), 0, "{}", err(&o));
    let (own, port) = by_clients(&o.stdout);
    assert_eq!(own.len(), 25);

    let trace = holdup_trace::file::read(out.as_ref()).expect("trace");
    let all = trace.spans.load().expect("spans");
    let (tcp, unix) = (format!("tcp:{port}"), format!("unix:{socket}"));
    let ours: Vec<Span> =
        all.rows().filter(|s| [&tcp[..], &unix[..63.min(unix.len())]].contains(&trace.text(s.name))).collect();
    assert_eq!(ours.len(), own.len(), "no client's side is a request");
    for span in &ours {
        let text = trace.text(span.argument);
        let (seen, queued) = (span.t.nanos() - span.start.nanos(), span.queued.0);
        let by_client = own.get(text).unwrap_or_else(|| panic!("{text}"));
        assert!(seen < *by_client && queued <= seen, "{text}: {seen} ns, and {by_client} by the client");
        assert_eq!((span.outcome, trace.text(span.name) == unix), (SpanOutcome::Complete, text.starts_with("local")));
        assert!(seen - queued >= 19_000_000 || !text.starts_with("slow"), "{text}: its own work is not queueing");
    }
    let waited = ours.iter().filter(|s| s.queued.0 > 5_000_000).count();
    assert!(waited > 0, "the first two come while the server is busy");

    let report = json(&run(&["explain", &out, "--spans", &tcp, "--argument", "fast", "--slow", "5%", "--json"]));
    // Beside other work the CPU is what they had to wait for as well.
    let mut causes = report["causes"].as_array().expect("causes").iter();
    let cause = causes.find(|cause| cause["what"] != "behind").expect("a cause");
    assert_eq!((cause["what"].as_str(), cause["function"].as_str()), (Some("waited-for"), Some("scan")), "{report}");
    assert!(report["unaccounted"].as_f64().is_some_and(|share| share < 1e-3));
    let account = &report["slow"]["account"];
    let [ran, waited] = ["ran_s", "waited_s"].map(|of| account[of].as_f64().expect("seconds"));
    assert!(waited > 5.0 * ran, "its thread worked for others: {account}");

    let per = |name: &str| run(&["diff", &out, "--vs", &out, "--json", "--per", name]);
    let both = json(&per(&format!("span:{tcp}")));
    assert_eq!((both["before"]["work"].as_f64(), both["after"]["work"].as_f64()), (Some(20.0), Some(20.0)), "{both}");
    let o = per("span:nothing");
    assert!(code(&o) == 3 && err(&o).contains("no spans named") && err(&o).contains(&tcp), "{}", err(&o));
}

/// A server of HTTP on one thread: each fiftieth request takes it 20 ms. It ends with the test.
fn http_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("address").port();
    thread::spawn(move || {
        let mut number = 0;
        for connection in listener.incoming() {
            let mut connection = connection.expect("a connection");
            let mut request = [0; 4096];
            while connection.read(&mut request).is_ok_and(|bytes| bytes > 0) {
                number += 1;
                let began = Instant::now();
                while number % 50 == 0 && began.elapsed() < Duration::from_millis(20) {}
                connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("an answer");
            }
        }
    });
    port
}

#[test]
fn a_load_with_a_trace_says_what_the_server_did() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (workload, out) = (file("page.rn"), file("t.holdup"));
    std::fs::write(&workload, "pub async fn run(ctx, i) { ctx.execute(\"GET /\").await?; }\n").expect("workload");
    let port = http_server();
    let (address, trace) = (format!("http://127.0.0.1:{port}"), format!("--trace={out}"));
    let o = run(&["load", "run", &trace, "-d", "300", "-w", "0", "--concurrency", "1", &workload, &address]);
    if code(&o) == 4 && err(&o).contains("sock_recv_length") {
        skip(Need::Other { name: "tracepoints of sockets", is_here: false }, "no request is recorded");
        return;
    }
    assert_eq!(code(&o), 0, "{}", err(&o));
    let said = String::from_utf8_lossy(&o.stdout).into_owned();
    assert!(said.contains("throughput") && said.contains(&format!("tcp:{port}, 300 spans")), "{said}");
    let is_marked = std::path::Path::new("/sys/kernel/tracing/trace_marker").exists();
    assert_eq!(said.contains("call:run, 300 spans"), is_marked, "{said}");
    let trace = holdup_trace::file::read(out.as_ref()).expect("trace");
    let all = trace.spans.load().expect("spans");
    let ours: Vec<Span> = all.rows().filter(|s| trace.text(s.name) == format!("tcp:{port}")).collect();
    let slow = ours.iter().filter(|s| s.t.nanos() - s.start.nanos() >= 20_000_000).map(|s| s.weight).sum::<u32>();
    assert!(slow >= 6, "{slow} slow ones");
}

#[test]
fn spans_of_a_table_are_added_and_kept() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (out, table, kept) = (file("t.holdup"), file("s.csv"), file("k.holdup"));
    let o = run(&["record", "-o", &out, "--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]);
    assert_eq!(code(&o), 0, "{}", err(&o));
    // When it ran for certain, whatever else the machine had to do.
    let trace = holdup_trace::file::read(out.as_ref()).expect("trace");
    let samples = trace.samples.load().expect("samples");
    let of_shell = |thread| trace.thread(thread).is_some_and(|t| trace.text(t.name) == "sh");
    let ran: Vec<f64> = samples.rows().filter(|s| of_shell(s.thread)).map(|s| s.t.seconds()).collect();
    let (first, last) = (ran.first().expect("a sample"), ran.last().expect("a sample"));
    assert!(first < last, "it took 0.2 s");
    let rows = format!("name,start_s,end_s,argument,process\nloop,{first},{last},x,sh\nloop,{first},900,y,sh\n");
    std::fs::write(&table, rows).expect("table");
    let report = run(&["explain", &out, "--spans", &table, "--keep", &kept, "--json"]);
    assert_eq!(code(&report), 0, "{}", err(&report));
    assert!(
        err(&report).contains("1 spans of") && err(&report).contains("1 ended after the trace"),
        "{}",
        err(&report)
    );
    let report = json(&report);
    assert_eq!(report["name"], "loop");
    let trace = holdup_trace::file::read(kept.as_ref()).expect("trace");
    assert_eq!(trace.spans.rows(), 1);
    std::fs::write(&table, "a,b\n1,2\n").expect("table");
    let o = run(&["explain", &out, "--spans", &table]);
    assert!(code(&o) == 3 && err(&o).contains("nor a table of spans"), "{}", err(&o));
}
