//! More calls due than a server can serve: what is measured is the server, whatever went before.

#![cfg(all(feature = "http", feature = "script"))]

mod calls;
mod servers;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdup_load::harness::{Length, Plan, run};
use holdup_load::report::Report;
use holdup_load::script::Source;
use servers::http;

/// What one server that serves 250 calls a second made of an open loop of a second, and how many requests it saw itself.
fn measured(rate: f64, warm_up: Length) -> (Report, u64) {
    let folder = servers::directory("saturation");
    let path = folder.path().join("w.rn");
    std::fs::write(&path, "pub async fn run(ctx, i) { ctx.execute(\"GET /paced\").await?; Ok(()) }").expect("written");
    let server = http::start();
    let plan = Plan {
        connect: Some(calls::options(&format!("http://127.0.0.1:{}", server.port))),
        concurrency: 8,
        rate: Some(rate),
        length: Length::Time(Duration::from_secs(1)),
        warm_up,
        slice: Duration::from_millis(100),
        ..Plan::new(Source::new(path))
    };
    let outcome = run(&plan, &AtomicBool::new(false), &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    (Report::new(&plan, &outcome, Vec::new()), server.seen("GET /paced") as u64)
}

/// Every call that was due is measured, served in the warm-up, or told as dropped: the server's own count says so, however busy
/// the machine is.
#[test]
fn a_queue_of_the_warm_up_is_dropped_and_told() {
    let seconds = 0.8;
    for rate in [500.0, 2_000.0, 8_000.0] {
        for warm_up in [Length::Time(Duration::from_millis(800)), Length::Cycles((rate * seconds) as u64)] {
            let (report, seen) = measured(rate, warm_up);
            let told = format!("{rate}/s after {warm_up:?}: {:?}", report.warnings);
            assert_eq!((report.errors, report.unfinished, report.retries), (0, 0, 0), "{told}");
            let in_warm_up = seen - report.cycles + report.warmup_unserved;
            assert!(in_warm_up.abs_diff((rate * seconds) as u64) <= 1, "{in_warm_up} were due in it, {told}");
            assert!(
                report.warnings.iter().any(|warning| warning.contains("due in the warm-up were not begun")),
                "{told}"
            );
            assert_eq!((report.requests, report.saturated), (report.cycles, true), "{told}");
            let due = report.due.expect("an open loop");
            assert!(due.abs_diff(rate as u64) <= 1, "{due} due, {told}");
        }
    }
}
