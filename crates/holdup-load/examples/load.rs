//! One open loop, and its report as JSON: the generator without the rest of the program, built in a minute.
//!
//! `cargo run --release -p holdup-load --features script,redis --example load -- SCRIPT ADDRESS RATE SECONDS WARM-UP CALLS`
//!
//! A rate of 0 is a closed loop. Both times are in seconds; calls are those that are under way at once.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdup_load::driver::ConnectOptions;
use holdup_load::harness::{Length, Plan, run};
use holdup_load::report::Report;
use holdup_load::script::Source;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [script, address, rate, seconds, warm_up, calls] = args.as_slice() else {
        return Err("SCRIPT ADDRESS RATE SECONDS WARM-UP CALLS".into());
    };
    let rate: f64 = rate.parse()?;
    let time = |text: &String| text.parse().map(|seconds| Length::Time(Duration::from_secs_f64(seconds)));
    let plan = Plan {
        connect: Some(ConnectOptions::new(address.parse()?)),
        concurrency: calls.parse()?,
        rate: (rate > 0.0).then_some(rate),
        length: time(seconds)?,
        warm_up: time(warm_up)?,
        slice: Duration::from_millis(100),
        ..Plan::new(Source::new(script))
    };
    let outcome = run(&plan, &AtomicBool::new(false), &mut |_| ())?;
    println!("{}", serde_json::to_string(&Report::new(&plan, &outcome, Vec::new()))?);
    Ok(())
}
