//! A recording from beginning to end.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdup_base::Claim;
use holdup_spool::{Footer, Header, Side};
use holdup_trace::{Nanos, Result};

use crate::attach::{self, Watched};
use crate::bpf::{Programs, Sizes};
use crate::budget::Budget;
use crate::caps::Raised;
use crate::child::Child;
use crate::drain::Buffers;
use crate::kernel::Kernel;
use crate::layout::{CHUNK, Config, Control, MAX_CHUNKS};
use crate::limits::Limits;
use crate::listening::{self, Looks, Whom};
use crate::options::{Options, Outcome, Status, Target};
use crate::perf::{Event, Mappings};
use crate::placement::Placements;
use crate::proc::Scanner;
use crate::signals::Signals;
use crate::sink::Sink;
use crate::{clock, limits, privilege, proc, signals};

/// How long a command that was told to end is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Records into `spool` until the command or process ends, the time is over, a signal comes or `stop`
/// is set. `on_status` is called about ten times a second.
///
/// SIGINT, SIGTERM, SIGHUP and SIGUSR1 are caught meanwhile. With a command they are passed on to it, and recording
/// ends when it does; a second signal, or SIGUSR1, ends recording at once.
///
/// The spool is handed back, so that nobody takes it for one that was left behind while it is converted. It is removed
/// if recording cannot begin.
///
/// # Errors
/// [`Error::Unsupported`](holdup_trace::Error::Unsupported) says what the machine or the user lacks; `Error::Input`
/// that the command or the spool's path is unusable. A disk that fills up is no error: what was written is kept and
/// a note says so.
pub fn record(
    options: &Options,
    spool: Claim,
    on_status: &mut dyn FnMut(&Status),
    stop: &AtomicBool,
) -> Result<(Outcome, Claim)> {
    let mut began = false;
    match session(options, &spool, on_status, stop, &mut began) {
        Ok(outcome) => Ok((outcome, spool)),
        Err(error) => {
            if !began {
                let _ = spool.remove();
            }
            Err(error)
        }
    }
}

/// `began` is set once there is something in the spool.
fn session(
    options: &Options,
    spool: &Claim,
    on_status: &mut dyn FnMut(&Status),
    stop: &AtomicBool,
    began: &mut bool,
) -> Result<Outcome> {
    let kernel = privilege::check()?;
    let watched = match &options.target {
        Target::Pids(pids) => Some(Watched::new(pids)?),
        _ => None,
    };
    let signals = Signals::install();
    let mut child = match &options.target {
        Target::Command { argv } => Some(Child::prepare(argv)?),
        _ => None,
    };
    // From here on nothing is inherited by the command.
    let raised = Raised::all();
    // Before anything tells of events: the trace begins with the first.
    let listening = listening::look(Whom::All, listening::OUTSIDE, &raised);
    let sizes = sizes(options)?;
    let cpus = proc::online_cpus().len();
    let limits = Limits::raise(cpus);
    limits::check_files(cpus)?;
    let mut programs = Programs::load(&kernel, &config(options, &kernel, sizes), sizes)?;
    let (mappings, samples) = open_events(options, &mut programs)?;
    let (stacks, blocks) = (programs.map("stacks")?, RefCell::default());
    let buffers = Buffers::new(programs.rings(sizes)?, &stacks, &blocks, mappings)?;

    let mut scanner = Scanner::default();
    let mut placements = Placements::new();
    let mut side = Vec::new();
    let mut header = header(options, &programs, child.as_ref(), sizes);
    header.sample_period_ns = if samples.is_empty() { 0 } else { 1_000_000_000 / u64::from(options.freq) };
    let mut sink = Sink::create(spool, options.ring, &header)?;
    scanner.scan(header.start_ns, &mut side);
    side.extend(listening.into_iter().map(|found| found.at(header.start_ns)));
    placements.look_at_all(header.start_ns, &mut side);
    let budget = Budget::new(options.budget, cpus);
    programs.control(&control(&budget, 0));
    programs.attach()?;
    samples.iter().try_for_each(|event| programs.attach_sampling(event))?;
    scanner.scan(clock::now(), &mut side);
    drop(raised);
    // Loading the programs is not yet recording.
    let (cpu_before, stolen_before) = (clock::cpu_seconds(), proc::stolen_seconds());
    if let Some(child) = &mut child {
        child.start()?;
    }
    *began = true;
    sink.begin();
    let recording = Recording {
        options,
        programs,
        buffers,
        sink,
        header,
        side,
        placements,
        child,
        watched,
        looks: Looks::new(options.budget),
        signals,
        budget,
        epoch: 0,
        cpu_before,
        stolen_before,
        _limits: limits,
    };
    recording.run(on_status, stop)
}

/// Buffers of mappings, each with its CPU.
type MappingsByCpu = Vec<(usize, Mappings)>;

/// Sampling events and buffers of mappings for each CPU. Machines without either are recorded all the same.
fn open_events(options: &Options, programs: &mut Programs) -> Result<(MappingsByCpu, Vec<Event>)> {
    let cpus = proc::online_cpus();
    let cycles = crate::perf::has_cycles();
    let mappings = open_each(&cpus, |cpu| Ok((cpu, Mappings::open(cpu)?)))?;
    let wanted: &[usize] = if options.freq > 0 { &cpus } else { &[] };
    let samples = open_each(wanted, |cpu| Event::sampling(cpu, options.freq, cycles))?;
    if !mappings.is_empty() {
        programs.hooks.push("perf:mmap2".into());
    }
    if !samples.is_empty() {
        programs.hooks.push(format!("perf:{}", if cycles { "cycles" } else { "cpu-clock" }));
    }
    Ok((mappings, samples))
}

/// Opens something for each CPU. Those that cannot are left out, unless it is for want of descriptors.
fn open_each<T>(cpus: &[usize], open: impl Fn(usize) -> std::io::Result<T>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    for &cpu in cpus {
        match open(cpu) {
            Ok(one) => all.push(one),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                return Err(limits::too_many_files(cpus.len(), &format!("is reached ({e})")));
            }
            Err(_) => {}
        }
    }
    Ok(all)
}

fn sizes(options: &Options) -> Result<Sizes> {
    let cpus = libbpf_rs::num_possible_cpus()
        .map_err(|e| holdup_trace::Error::Unsupported(format!("The number of CPUs cannot be read: {e}.")))?;
    let share = proc::memory() / 8 / cpus as u64;
    let bytes = ((options.buffer_mb_per_cpu as u64) << 20).min(share).min(1 << 30);
    let slots = (bytes / 24).max(4096);
    let slots = if slots.is_power_of_two() { slots } else { slots.next_power_of_two() / 2 };
    let stack_bytes = (options.stack_buffer_mb.clamp(1, 1024) as u32) << 20;
    Ok(Sizes { cpus, slots, stack_bytes: stack_bytes.next_power_of_two() })
}

fn config(options: &Options, kernel: &Kernel, sizes: Sizes) -> Config {
    let rate = options.stack_mb_per_s << 20;
    Config {
        slot_mask: sizes.slots - 1,
        side_mask: crate::rings::Rings::side_slots(sizes.slots) - 1,
        min_wait: options.min_wait.0,
        // In units of 2^20 ns, a little more than a millisecond.
        stack_rate: rate / 954,
        stack_burst: rate / 2,
        preempt_delta: kernel.preempt_delta.unwrap_or(0),
        self_tgid: std::process::id(),
        chunks: ((options.stack_kb * 1024).div_ceil(CHUNK) + 1).clamp(2, MAX_CHUNKS) as u32,
        has_state_argument: kernel.has_state_argument.into(),
        skip_frames: crate::bpf::OWN_FRAMES,
        threads_by_tid: kernel.storage_would_sleep.into(),
        no_stacks: kernel.stacks_would_sleep.into(),
    }
}

fn control(budget: &Budget, epoch: u64) -> Control {
    Control {
        epoch,
        allowance: budget.allowance(),
        sample_allowance: budget.sample_allowance(),
        always: budget.is_unlimited().into(),
    }
}

fn header(options: &Options, programs: &Programs, child: Option<&Child>, sizes: Sizes) -> Header {
    let (command, focus_pids) = match &options.target {
        Target::System => (Vec::new(), Vec::new()),
        Target::Pids(pids) => (Vec::new(), attach::with_descendants(pids)),
        Target::Command { argv } => {
            let argv = argv.iter().map(|a| a.to_string_lossy().into_owned()).collect();
            (argv, child.iter().map(|c| c.pid()).collect())
        }
    };
    Header {
        start_ns: clock::now(),
        host: proc::host(),
        cpus: proc::online_cpus().into_iter().max().map_or(sizes.cpus, |n| n + 1) as u16,
        hooks: programs.hooks.clone(),
        min_wait_ns: options.min_wait.0,
        sample_period_ns: 0,
        command,
        focus_pids,
        recorder_pid: std::process::id(),
    }
}

/// A recording that is active.
struct Recording<'a> {
    options: &'a Options,
    programs: Programs,
    buffers: Buffers<'a>,
    sink: Sink,
    header: Header,
    side: Vec<Side>,
    placements: Placements,
    child: Option<Child>,
    watched: Option<Watched>,
    looks: Looks,
    signals: Signals,
    budget: Budget,
    /// Of the hashes of stacks.
    epoch: u64,
    cpu_before: f64,
    stolen_before: Option<f64>,
    _limits: Limits,
}

impl Recording<'_> {
    fn run(mut self, on_status: &mut dyn FnMut(&Status), stop: &AtomicBool) -> Result<Outcome> {
        let began = self.header.start_ns;
        let mut told = began;
        let mut signalled = false;
        let mut failure = None;
        loop {
            if !self.buffers.is_pressed() {
                signals::sleep(self.options.drain_every);
            }
            let t = clock::now();
            self.placements.look_at_some(&self.header.focus_pids, t, &mut self.side);
            let over = self.is_over(t - began, stop, &mut signalled);
            if !over {
                let whom = self.child.as_ref().map_or(Whom::All, |child| Whom::Tree(child.pid()));
                self.looks.again(whom, listening::MEANWHILE, t, &mut self.side);
            }
            if !over && let Err(error) = self.buffers.round(t, &mut self.side, &mut self.sink.writer) {
                failure = Some(format!("recording ended early: the spool cannot be written ({error})"));
                break;
            }
            if t - told > 100_000_000 {
                told = t;
                self.keep_to_budget(t - began);
                on_status(&self.status(t - began));
            }
            if over {
                break;
            }
            if self.sink.is_segment_full(t)
                && let Err(error) = self.rotate(t)
            {
                failure = Some(format!("recording ended early: {error}"));
                break;
            }
        }
        self.end(failure)
    }

    fn keep_to_budget(&mut self, elapsed: u64) {
        let reading = self.buffers.reading(clock::cpu_seconds() - self.cpu_before);
        self.budget.adjust(reading, Nanos(elapsed).seconds());
        self.programs.control(&control(&self.budget, self.epoch));
    }

    fn status(&self, elapsed: u64) -> Status {
        let elapsed = Duration::from_nanos(elapsed);
        Status { elapsed, bytes: self.sink.writer.bytes(), ..self.buffers.status() }
    }

    /// Whether recording ends now; passes signals on.
    fn is_over(&mut self, elapsed: u64, stop: &AtomicBool, signalled: &mut bool) -> bool {
        if let Some(signal) = self.signals.take() {
            let Some(child) = self.child.as_ref().filter(|_| !*signalled && signal.number != libc::SIGUSR1) else {
                return true;
            };
            *signalled = true;
            if signal.pass_on {
                child.signal(signal.number);
            }
        }
        let time_over = self.options.duration.is_some_and(|d| u128::from(elapsed) >= d.as_nanos());
        let target_over = match (&mut self.child, &mut self.watched) {
            (Some(child), _) => child.ended().is_some(),
            (None, Some(watched)) => watched.are_over(),
            (None, None) => false,
        };
        time_over || target_over || stop.load(Ordering::Relaxed)
    }

    /// The new segment stands for itself: names, mappings and stacks are told again.
    fn rotate(&mut self, t: u64) -> Result<()> {
        let _raised = Raised::all();
        self.header.start_ns = t;
        // Of a segment's threads only the names are told again, not who forked them.
        attach::follow(&mut self.header.focus_pids);
        let number = self.sink.rotate(&self.header)?;
        self.epoch = number as u64;
        self.programs.control(&control(&self.budget, self.epoch));
        Scanner::default().scan(t, &mut self.side);
        self.looks = Looks::new(self.options.budget);
        self.placements.forget();
        self.placements.look_at_all(t, &mut self.side);
        Ok(())
    }

    /// `failure` says why it ended early: then nothing more can be written.
    fn end(mut self, failure: Option<String>) -> Result<Outcome> {
        let end_ns = clock::now();
        self.placements.look_at_all(end_ns, &mut self.side);
        let failed = failure.is_some();
        let mut notes: Vec<String> = self.programs.lacks.take().into_iter().chain(failure).collect();
        if !failed {
            let _raised = Raised::all();
            self.programs.take_open_waits();
        }
        self.programs.detach();
        let listening = listening::look(Whom::All, listening::OUTSIDE, &Raised::all());
        self.side.extend(listening.into_iter().map(|found| found.at(end_ns)));
        // After a round that failed, another would hide that there is a hole.
        if !failed && let Err(error) = self.buffers.round(clock::now(), &mut self.side, &mut self.sink.writer) {
            notes.push(format!("the end of the recording is missing: the spool cannot be written ({error})"));
        }
        let (exit_code, signal) = self.wait_for_command(failed, &mut notes);
        let status = self.status(end_ns - self.header.start_ns);
        if status.limited_stacks > 0 {
            notes.push(format!("{} stacks were left out to limit the rate of copies", status.limited_stacks));
        }
        let cost = self.budget.cost(self.buffers.reading(clock::cpu_seconds() - self.cpu_before));
        let stolen_cpu_s = proc::stolen_seconds().zip(self.stolen_before).map(|(now, before)| now - before);
        let footer = Footer { end_ns, exit_code, recorder: cost, stolen_cpu_s, notes: notes.clone() };
        // Without a footer, as on a full disk, the spool reads as one that was ended from outside.
        let _ = self.sink.writer.footer(&footer);
        let hooks = std::mem::take(&mut self.programs.hooks);
        let bytes = self.sink.finish()?;
        let status = Status { bytes, ..status };
        Ok(Outcome { exit_code, signal, cost, status, hooks, notes })
    }

    /// A command that outlives the time it was given is told to end. One that outlives its recording only because
    /// the disk is full is waited for: that is no fault of its own.
    fn wait_for_command(&mut self, failed: bool, notes: &mut Vec<String>) -> (Option<i32>, Option<i32>) {
        let Some(child) = &mut self.child else { return (None, None) };
        if child.ended().is_none() && !failed {
            child.signal(libc::SIGTERM);
        }
        let give_up = clock::now() + PATIENCE.as_nanos() as u64;
        loop {
            if let Some((code, signal)) = child.ended() {
                return (Some(code), signal);
            }
            if let Some(signal) = self.signals.take().filter(|s| s.pass_on) {
                child.signal(signal.number);
            }
            if clock::now() > give_up && !failed {
                notes.push(format!("the command (pid {}) still runs", child.pid()));
                return (None, None);
            }
            signals::sleep(Duration::from_millis(10));
        }
    }
}
