//! Perfetto's traces, for its page and its trace processor: what the kernel's tracepoints would have told, the stacks of waits,
//! wakers and samples as those of a profiler, and tracks of our own for what was found and for where the CPUs' time went.
//!
//! ```text
//!   tables ─ rows ─┬▶ kernel  bundles of ftrace's events, by CPU     ┐
//!                  └▶ stacks  samples, with what their stacks hold   ├▶ packets
//!   analysis ──────▶ tracks   findings as slices, CPUs as counters   ┤
//!   spans ─────────▶ spans    slices of their names                  ┘
//! ```
//!
//! What is written comes in rounds, at whose end stands that all buffers were read, so that a reader need not hold more than a
//! few of them. What no event of the schema can tell is left out: futexes and their owners, limits and places of threads.

mod kernel;
mod message;
mod packet;
mod rows;
mod spans;
mod stacks;
mod tracks;

use std::io::Write;

use holdup_trace::{StackId, Table, ThreadIdx, Timestamp, Trace};
use rustc_hash::FxHashMap;

use crate::study::studied;
use crate::{Result, Source};
use kernel::Kernel;
use message::Message;
use packet::{Writer, first, timed, untimed};
use rows::{Row, Rows};
use stacks::{Places, Taken, Told};

/// `CLOCK_BOOTTIME`, by which the trace's times are told.
const BOOTTIME: u64 = 6;
/// Tracepoints of which events are written.
const EVENTS: [&str; 6] = [
    "sched/sched_switch",
    "sched/sched_waking",
    "task/task_newtask",
    "task/task_rename",
    "raw_syscalls/sys_enter",
    "raw_syscalls/sys_exit",
];
/// Rows of a round.
const ROUND: usize = 1 << 15;

/// Writes the trace.
///
/// # Errors
/// If the trace is damaged, if the focus names no process, or if `out` takes no more.
pub fn write(source: &Source, out: &mut dyn Write) -> Result<()> {
    // A time of 0 is none.
    let base = source.trace.meta.start_ns.max(1);
    let mut buffer = Message::default();
    head(source.trace, base, &mut buffer);
    studied(source, |study| {
        let found = holdup_analysis::explain_study(study, source.name, source.options, source.disassembler)?.0;
        tracks::write(study, &found, base, &mut buffer)
    })?;
    spans::write(source.trace, base, &mut buffer)?;
    Exporter::new(source.trace, base)?.write(buffer, out)
}

/// What is true of the trace as a whole, and the defaults of all writers.
fn head(trace: &Trace, base: u64, out: &mut Message) {
    untimed(out, Writer::Service, |packet| {
        packet.message(6, |snapshot| {
            snapshot.message(1, |clock| {
                clock.number(1, BOOTTIME);
                clock.number(2, base);
            });
            snapshot.number(2, BOOTTIME);
        });
    });
    let host = &trace.meta.host;
    untimed(out, Writer::Service, |packet| {
        packet.message(45, |system| {
            system.message(1, |uname| {
                uname.text(1, "Linux");
                uname.text(3, &host.os);
                uname.text(4, &host.arch);
            });
            system.text(17, &host.name);
            system.number(8, trace.meta.cpus.into());
        });
    });
    untimed(out, Writer::Service, |packet| {
        packet.message(67, |info| (0..trace.meta.cpus).for_each(|_| info.message(1, |cpu| cpu.text(1, &host.cpu))));
    });
    // What would have had to be asked for, to record this.
    untimed(out, Writer::Service, |packet| {
        packet.message(33, |config| {
            config.message(2, |source| {
                source.message(1, |config| {
                    config.text(1, "linux.ftrace");
                    config.message(100, |ftrace| EVENTS.iter().for_each(|event| ftrace.text(1, event)));
                });
            });
        });
    });
    for (writer, tracepoint) in [(Writer::Switches, "sched:sched_switch"), (Writer::Wakes, "sched:sched_waking")] {
        first(out, writer, |defaults| {
            defaults.message(12, |perf| perf.message(1, |base| base.message(3, |point| point.text(1, tracepoint))));
        });
    }
    const CPU_CLOCK: u64 = 1;
    first(out, Writer::Samples, |defaults| {
        defaults.message(12, |perf| {
            perf.message(1, |base| {
                base.number(4, CPU_CLOCK);
                if trace.meta.sample_period_ns > 0 {
                    base.number(1, trace.meta.sample_period_ns);
                }
            });
        });
    });
    processes(trace, base, out);
}

/// Processes and threads: first those that were there from the beginning, then each of the others when it came.
fn processes(trace: &Trace, base: u64, out: &mut Message) {
    let threads = || trace.threads.rows().skip(1);
    let old = |start: Timestamp| start == Timestamp::ZERO;
    let mut leaders: FxHashMap<u32, holdup_trace::tables::Thread> = FxHashMap::default();
    for thread in threads().filter(|thread| old(thread.start)) {
        leaders.entry(thread.pid).or_insert(thread);
    }
    let mut leaders: Vec<_> = leaders.into_values().collect();
    leaders.sort_unstable_by_key(|thread| thread.pid);
    untimed(out, Writer::Service, |packet| {
        packet.message(2, |tree| {
            for leader in &leaders {
                tree.message(1, |process| {
                    let parent = trace.thread(leader.parent).map_or(0, |parent| parent.pid);
                    process.number(1, leader.pid.into());
                    process.number(2, parent.into());
                    process.text(3, trace.text(leader.process));
                });
            }
            for thread in threads().filter(|thread| old(thread.start) && thread.tid != thread.pid) {
                tree.message(2, |message| task(message, &thread, trace));
            }
        });
    });
    for thread in threads().filter(|thread| !old(thread.start)) {
        timed(out, Writer::Service, base.saturating_add(thread.start.nanos()), |packet| {
            packet.message(2, |tree| tree.message(2, |message| task(message, &thread, trace)));
        });
    }
}

fn task(message: &mut Message, thread: &holdup_trace::tables::Thread, trace: &Trace) {
    message.number(1, thread.tid.into());
    message.number(3, thread.pid.into());
    message.text(2, trace.text(thread.name));
}

/// Writes rows as they come.
struct Exporter<'a> {
    trace: &'a Trace,
    kernel: Kernel<'a>,
    places: Places<'a>,
    switches: Told,
    wakes: Told,
    samples: Told,
    /// Samples of this round.
    taken: Message,
    /// What was told of the present instant: a wait may repeat what its switch and its wake-up say.
    told: Vec<(Writer, u64, ThreadIdx, StackId)>,
}

impl<'a> Exporter<'a> {
    fn new(trace: &'a Trace, base: u64) -> Result<Self> {
        Ok(Exporter {
            trace,
            kernel: Kernel::new(trace, base)?,
            places: Places::new(trace)?,
            switches: Told::default(),
            wakes: Told::default(),
            samples: Told::default(),
            taken: Message::default(),
            told: Vec::new(),
        })
    }

    fn write(mut self, mut buffer: Message, out: &mut dyn Write) -> Result<()> {
        let mut losses = Vec::new();
        for loss in self.trace.losses.iter() {
            let loss = loss?;
            if loss.kind.is_of_events() {
                losses.push((loss.to, loss.cpu));
            }
        }
        losses.sort_unstable();
        let mut losses = losses.into_iter().peekable();
        for (count, row) in Rows::new(self.trace)?.enumerate() {
            let (t, row) = row?;
            if losses.peek().is_some_and(|(to, _)| *to <= t) {
                // A bundle says of its beginning that events are missing before.
                self.kernel.flush(&mut buffer);
                while let Some((_, cpu)) = losses.next_if(|(to, _)| *to <= t) {
                    self.kernel.lost(cpu, self.trace.meta.cpus);
                }
            }
            self.row(t, row);
            if (count + 1) % ROUND == 0 {
                self.round(t, &mut buffer);
                out.write_all(buffer.bytes())?;
                buffer.clear();
            }
        }
        self.round(Timestamp::from_nanos_since_start(self.trace.meta.duration_ns), &mut buffer);
        Ok(out.write_all(buffer.bytes())?)
    }

    fn round(&mut self, t: Timestamp, out: &mut Message) {
        self.kernel.flush(out);
        out.append(&self.taken);
        self.taken.clear();
        // Flushed twice, then read: who reads this may let go of what is older than the last such place.
        const FLUSHED: u32 = 3;
        const READ: u32 = 4;
        for done in [FLUSHED, FLUSHED, READ] {
            timed(out, Writer::Service, self.kernel.time(t), |packet| {
                packet.message(69, |event| event.number(done, 1));
            });
        }
    }

    fn row(&mut self, t: Timestamp, row: Row) {
        let time = self.kernel.time(t);
        match row {
            Row::Fork(thread) => self.kernel.fork(thread),
            Row::Rename(thread, name) => self.kernel.rename(time, thread, name),
            Row::Exit(thread) => self.kernel.exit(thread),
            Row::Lock(lock) => self.kernel.lock(&lock),
            Row::Block(request) => self.kernel.block(&request),
            Row::Switch(s) => {
                self.kernel.switch(&s);
                self.stack(Writer::Switches, time, Some(s.cpu.0), (s.prev, s.stack));
            }
            Row::Blocked(thread, stack) if !self.told.contains(&(Writer::Switches, time, thread, stack)) => {
                self.stack(Writer::Switches, time, None, (thread, stack));
            }
            Row::Waker(thread, stack) if !self.told.contains(&(Writer::Wakes, time, thread, stack)) => {
                self.stack(Writer::Wakes, time, None, (thread, stack));
            }
            Row::Blocked(..) | Row::Waker(..) => {}
            Row::Wake(w) => {
                self.kernel.wake(&w);
                self.stack(Writer::Wakes, time, Some(w.cpu.0), (w.waker, w.stack));
            }
            Row::Sample(s) => {
                let taken = Taken { time, cpu: Some(s.cpu.0), task: self.kernel.task(s.thread), stack: s.stack };
                self.samples.sample(Writer::Samples, &taken, &self.places, &mut self.taken);
            }
        }
    }

    fn stack(&mut self, writer: Writer, time: u64, cpu: Option<u16>, (thread, stack): (ThreadIdx, StackId)) {
        if stack != StackId::NONE && thread != ThreadIdx::NONE {
            let taken = Taken { time, cpu, task: self.kernel.task(thread), stack };
            let told = if writer == Writer::Wakes { &mut self.wakes } else { &mut self.switches };
            told.sample(writer, &taken, &self.places, &mut self.taken);
            self.told.retain(|(_, at, ..)| *at == time);
            self.told.push((writer, time, thread, stack));
        }
    }
}
