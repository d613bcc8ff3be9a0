//! Records and says what was recorded: an aid while working on the recorder.
//!
//! `record [--freq N] [--budget SHARE] [--buffer MB] [--seconds S] [--ring S] [--min-wait NS] [--pid P] [--out FILE] [--read] [-- CMD]`

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdup_base::Claim;
use holdup_record::{Options, Ring, Target, record};
use holdup_trace::{Destination, Nanos, TraceBuilder};

fn main() {
    let mut options = Options::default();
    let mut out = PathBuf::from("/tmp/record.spool");
    let mut read = false;
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().and_then(|v| v.into_string().ok()).unwrap_or_default();
        let mut number = || value().parse::<u64>().expect("a number");
        match argument.to_str().unwrap_or_default() {
            "--freq" => options.freq = Some(number() as u32),
            "--budget" => options.budget = value().parse().expect("a share"),
            "--buffer" => options.buffer_mb_per_cpu = number() as usize,
            "--stack-buffer" => options.stack_buffer_mb = number() as usize,
            "--stack-kb" => options.stack_kb = number() as usize,
            "--stack-rate" => options.stack_mb_per_s = number(),
            "--drain-ms" => options.drain_every = Duration::from_millis(number()),
            "--seconds" => options.duration = Some(Duration::from_secs(number())),
            "--ring" => options.ring = Some(Ring { time: Some(Duration::from_secs(number())), bytes: None }),
            "--ring-mb" => options.ring = Some(Ring { time: None, bytes: Some(number() << 20) }),
            "--min-wait" => options.min_wait = Nanos(number()),
            "--pid" => options.target = Target::Pids(vec![number() as u32]),
            "--out" => out = value().into(),
            "--read" => read = true,
            "--" => options.target = Target::Command { argv: arguments.by_ref().collect() },
            other => panic!("unknown argument {other}"),
        }
    }
    let _ = std::fs::remove_file(&out);
    let outcome = match Claim::take(&out)
        .map_err(|e| holdup_trace::Error::Input(e.to_string()))
        .and_then(|(spool, _)| record(&options, spool, &mut |_| {}, &AtomicBool::new(false)))
    {
        Ok((outcome, _)) => outcome,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(if matches!(error, holdup_trace::Error::Unsupported(_)) { 4 } else { 3 });
        }
    };
    eprintln!("{outcome:#?}");
    if read {
        print_spool(&out);
    }
    std::process::exit(outcome.exit_code.unwrap_or(0));
}

fn print_spool(path: &Path) {
    let mut builder = TraceBuilder::new(&Destination::Memory).expect("builder");
    holdup_spool::read(path, &mut builder).expect("spool");
    let trace = builder.finish(None).expect("trace");
    println!("{:#?}", trace.meta);
    println!("{:?}", trace.row_counts());
    println!("{:?}", trace.losses());
}
