//! Traces of any size with a planted truth.
//!
//! A small machine is simulated ([`machine`]): CPUs with one run queue, threads that run, wait and wake each other. A
//! *shape* ([`Shape`]) is the program that its threads execute, with one culprit planted in it. What a recorder would
//! have seen is pushed through [`TraceBuilder`], so that a made trace is stored, read and explained like any other.
//!
//! The same [`Spec`] always gives the same trace: there is no clock and no randomness but that of its seed. Memory is
//! bounded by CPUs and threads, not by events.
//!
//! What this is *not* for: judging how well holdup explains real programs. `scenarios/` are for that.

#![forbid(unsafe_code)]

mod cast;
mod code;
mod fleet;
mod machine;
mod random;
mod shapes;
mod spec;

use std::path::Path;
use std::sync::mpsc::sync_channel;

use cast::Program;
pub use fleet::Fleet;
use holdup_trace::{Destination, Error, Event, Result, Trace, TraceBuilder};
use machine::Machine;
pub use spec::{MOST_CPUS, MOST_EVENTS, MOST_THREADS, Planted, Shape, Spec, Truth};

/// Events between two rounds of the builder.
const ROUND: usize = 100_000;
/// Events from which the sampling period is found.
const TRIAL: u64 = 100_000;
/// Switches and wake-ups for each sample.
const EVENTS_PER_SAMPLE: u64 = 1000;

/// What was made.
pub struct Made {
    /// The trace.
    pub trace: Trace,
    /// What is planted in it.
    pub truth: Truth,
}

/// Makes a trace; its tables are collected in `to`.
///
/// Fails if `spec` is out of bounds, or if the folder of `to` cannot take temporary files.
pub fn generate(spec: &Spec, to: &Destination) -> Result<Made> {
    check(spec)?;
    // A first, short run tells how busy the CPUs are, and with it how often to sample.
    let mut trial = TraceBuilder::new(&Destination::Memory)?;
    let short = Spec { events: TRIAL.min(spec.events), losses: 0, ..*spec };
    let mut machine = Machine::new(&short, &shapes::cast(&short), 0, &mut trial);
    let mut program = shapes::program(spec.shape, &mut machine);
    while machine.run(&mut *program, ROUND) {
        machine.events().clear();
    }
    let period = (machine.busy_ns() * EVENTS_PER_SAMPLE / machine.made().max(1)).max(100_000);

    let mut builder = TraceBuilder::new(to)?;
    let mut machine = Machine::new(spec, &shapes::cast(spec), period, &mut builder);
    let mut program = shapes::program(spec.shape, &mut machine);
    build(&mut machine, &mut *program, &mut builder)?;
    let truth = program.truth(&machine);
    let names = machine.describe(&mut builder, spec, period);
    Ok(Made { trace: builder.finish(Some(&mut { names }))?, truth })
}

/// Runs the machine on a thread of its own, one round ahead of the builder.
fn build(machine: &mut Machine, program: &mut dyn Program<Machine>, builder: &mut TraceBuilder) -> Result<()> {
    let (full, rounds) = sync_channel::<Vec<(u64, Event)>>(1);
    let (empty, emptied) = sync_channel::<Vec<(u64, Event)>>(3);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut more = true;
            while more {
                more = machine.run(program, ROUND);
                let next = emptied.try_recv().unwrap_or_default();
                if full.send(std::mem::replace(machine.events(), next)).is_err() {
                    // The builder has failed, and says why.
                    return;
                }
            }
        });
        for mut round in rounds {
            round.drain(..).for_each(|(t, event)| builder.push(t, event));
            builder.finish_round()?;
            // Where there is no room for it, it is simply dropped.
            let _ = empty.try_send(round);
        }
        Ok(())
    })
}

fn check(spec: &Spec) -> Result<()> {
    let wrong =
        |what: &str, least: u64, most: u64| Err(Error::Input(format!("a made trace has {least} to {most} {what}")));
    match spec {
        s if s.cpus == 0 || s.cpus > MOST_CPUS => wrong("CPUs", 1, MOST_CPUS.into()),
        s if s.threads < 8 || s.threads > MOST_THREADS => wrong("threads", 8, MOST_THREADS.into()),
        s if s.events == 0 || s.events > MOST_EVENTS => wrong("events", 1, MOST_EVENTS),
        _ => Ok(()),
    }
}

/// Makes a trace in the file `path`, with temporary tables in the same folder.
pub fn write(spec: &Spec, path: &Path) -> Result<Truth> {
    let output = holdup_trace::file::create(path)?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = generate(spec, &Destination::Folder(folder.to_owned()))?;
    holdup_trace::file::write_to(&made.trace, output)?;
    Ok(made.truth)
}
