//! A recording from beginning to end.

// Long because a recording is one story: what it opens, what goes on while it lasts, and what is told at its end.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdup_base::Claim;
use holdup_spool::{Footer, Header, Side};
use holdup_trace::{Nanos, Result};

use crate::asking::Asking;
use crate::attach::{self, Watched};
use crate::bpf::Programs;
use crate::budget::{Budget, Reading};
use crate::caps::Raised;
use crate::child::Child;
use crate::costs::Costs;
use crate::drain::{Buffers, Stacks};
use crate::flight::{Flight, Kept, Observer, OnlyStatus, Step, kept_because};
use crate::interpreters::Interpreters;
use crate::layout::{Control, Round};
use crate::limits::Limits;
use crate::listening::{self, Looks, Whom};
use crate::namespace::{Namespace, Place};
use crate::online::Online;
use crate::options::{Left, Options, Outcome, Status, Target};
use crate::perf::Mappings;
use crate::placement::Placements;
use crate::proc::Scanner;
use crate::setup::{config, control, header, open_events, sizes};
use crate::signals::Signals;
use crate::sink::{Recorded, Sink};
use crate::{clock, limits, namespace, perf, privilege, probes, proc, sampling, signals};

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
) -> Result<(Outcome, Recorded)> {
    record_and_keep(options, spool, &mut OnlyStatus(on_status), stop)
}

/// As [`record`], of a flight recorder too that [keeps](Options::keep) what it has again and again: `observer` gets it. SIGUSR1
/// then asks for what there is, and ends nothing.
///
/// # Errors
/// As [`record`].
pub fn record_and_keep(
    options: &Options,
    spool: Claim,
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<(Outcome, Recorded)> {
    let mut began = false;
    match session(options, &spool, observer, stop, &mut began) {
        Ok((outcome, sink)) => Ok((outcome, sink.finish(spool))),
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
    observer: &mut dyn Observer,
    stop: &AtomicBool,
    began: &mut bool,
) -> Result<(Outcome, Sink)> {
    let kernel = privilege::check()?;
    let namespace = Namespace::of_self()?;
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
    let mut programs = Programs::load(&kernel, &config(options, &kernel, namespace, sizes), sizes)?;
    let place = programs.place(namespace)?;
    // Who wants no samples does not wait for what they cost.
    let interruption = if options.freq == Some(0) { Nanos(0) } else { sampling::interruption(perf::has_cycles()) };
    let freq = options.freq.unwrap_or_else(|| sampling::frequency(options.budget, interruption));
    let (mappings, samples) = open_events(freq, &mut programs)?;
    let incoming = RefCell::new(Stacks::new(Interpreters::new(programs.map("interpreters")?)));
    let stacks = programs.map("stacks")?;
    let buffers = Buffers::new(programs.rings(sizes)?, &stacks, &incoming, mappings)?;

    let mut scanner = Scanner::default();
    let mut placements = Placements::new();
    let mut side = Vec::new();
    let mut header = header(options, &programs, child.as_ref(), sizes);
    header.sample_period_ns = if samples.is_empty() { 0 } else { 1_000_000_000 / u64::from(freq) };
    let flight = Flight::new(options, &header.focus_pids, usize::from(header.cpus), header.start_ns)?;
    let mut sink = Sink::create(spool, options.ring, &header)?;
    probes::tell(&options.spans, header.start_ns, &mut side);
    let budget = Budget::new(options.budget, cpus);
    let first = control(&budget, place, 0, 0);
    programs.control(&first);
    // Between the hooks on births and those on switches: whoever is seen to run was there, or is told to begin.
    programs.attach_births()?;
    scanner.scan(header.start_ns, &mut side);
    side.extend(listening.into_iter().map(|found| found.at(header.start_ns)));
    placements.look_at_all(header.start_ns, &mut side);
    programs.attach(options)?;
    samples.iter().try_for_each(|event| programs.attach_sampling(event))?;
    programs.look_at_all(&first);
    scanner.scan(clock::now(), &mut side);
    drop(raised);
    // Loading the programs is not yet recording.
    let costs = Costs::begin();
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
        asking: Asking::new(options.budget),
        flight,
        online: Online::now(),
        freq,
        interruption,
        signals,
        budget,
        place,
        epoch: 0,
        costs,
        began: clock::now(),
        reasons: Vec::new(),
        interrupted: false,
        _limits: limits,
    };
    recording.run(observer, stop)
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
    asking: Asking,
    flight: Flight,
    online: Online,
    /// CPU samples per second and CPU, and what each takes beside its program.
    freq: u32,
    interruption: Nanos,
    signals: Signals,
    budget: Budget,
    place: Place,
    /// Of the hashes of stacks.
    epoch: u64,
    costs: Costs,
    /// When recording began; the header's time is that of the segment.
    began: u64,
    /// A signal was for the recorder.
    interrupted: bool,
    /// Notes for the end.
    reasons: Vec<String>,
    _limits: Limits,
}

impl Recording<'_> {
    fn run(mut self, observer: &mut dyn Observer, stop: &AtomicBool) -> Result<(Outcome, Sink)> {
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
            let mut over = self.is_over(t - began, stop, &mut signalled, observer);
            if !over {
                let whom = self.child.as_ref().map_or(Whom::All, |child| Whom::Tree(child.pid()));
                self.looks.again(whom, listening::MEANWHILE, t, &mut self.side);
                self.asking.step(&self.options.roots(self.child.as_ref().map(Child::pid)));
            }
            if !over && let Err(error) = self.round(t) {
                failure = Some(format!("recording ended early: the spool cannot be written ({error})"));
                break;
            }
            if t - told > 100_000_000 {
                told = t;
                self.keep_to_budget(t - began);
                self.follow_cpus(t);
                observer.status(&self.status(t - began));
            }
            match self.flight.step(t, || observer.is_busy()) {
                _ if over => {}
                Step::Go => {}
                Step::End(why) => {
                    self.reasons.push(kept_because(&why));
                    over = true;
                }
                Step::Keep(why) => {
                    if let Err(error) = self.keep(t, why, observer) {
                        failure = Some(format!("recording ended early: {error}"));
                        break;
                    }
                    over = self.flight.is_done();
                }
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

    /// Samples and mappings of CPUs that have come back.
    fn follow_cpus(&mut self, t: u64) {
        for cpu in self.online.came() {
            let _raised = Raised::all();
            crate::setup::sample(self.freq, &mut self.programs, cpu);
            if let Ok(mappings) = Mappings::open(cpu) {
                self.buffers.come_back(cpu, mappings, t, &mut self.side);
            }
        }
    }

    fn round(&mut self, t: u64) -> std::io::Result<()> {
        let (interpreters, triggers) = (self.buffers.interpreters().count(), self.flight.triggers());
        self.buffers.round(t, &mut self.side, &mut self.sink.writer, &mut self.asking, triggers)?;
        if self.buffers.interpreters().count() != interpreters {
            self.tell();
        }
        Ok(())
    }

    /// Hands on what there is, with the stacks of those that wait now, and goes on in a new segment.
    fn keep(&mut self, t: u64, why: String, observer: &mut dyn Observer) -> Result<()> {
        self.look_at_the_end();
        let unwritable = |e| holdup_trace::Error::Input(format!("the spool cannot be written ({e})"));
        self.round(clock::now()).map_err(unwritable)?;
        let end_ns = clock::now();
        let footer = self.footer(end_ns, None, vec![kept_because(&why)]);
        self.sink.writer.footer(&footer).map_err(unwritable)?;
        self.rotate(t.max(end_ns))?;
        let parts = self.sink.complete().map_err(|e| holdup_trace::Error::Input(format!("the segments: {e}")))?;
        if let Err(error) = observer.keep(Kept { parts, why }) {
            self.reasons.push(format!("what was to be kept was lost: {error}"));
        }
        Ok(())
    }

    /// What was counted since recording began.
    fn reading(&self) -> Reading {
        let reader_s = self.costs.cpu_s() + self.asking.spent_s();
        self.buffers.reading(reader_s, self.interruption, self.programs.breakpoint)
    }

    fn control(&self) -> Control {
        control(&self.budget, self.place, self.epoch, self.buffers.interpreters().count())
    }

    /// Tells the programs in the kernel what may have changed.
    fn tell(&self) {
        self.programs.control(&self.control());
    }

    /// Takes the waits that are open, and ends all else that is.
    fn look_at_the_end(&self) {
        let _raised = Raised::all();
        self.programs.look_at_all(&Control { round: Round::End as u32, ..self.control() });
        self.tell();
    }

    /// What is known of all that is kept, at its end.
    fn footer(&mut self, end_ns: u64, exit_code: Option<i32>, notes: Vec<String>) -> Footer {
        let now = self.reading();
        let (spent, stolen_cpu_s) = self.costs.since(self.sink.oldest(), &now);
        Footer { end_ns, exit_code, recorder: self.budget.cost(spent), stolen_cpu_s, notes }
    }

    fn keep_to_budget(&mut self, elapsed: u64) {
        let reading = self.reading();
        self.budget.adjust(reading, Nanos(elapsed).seconds());
        self.tell();
    }

    fn status(&self, elapsed: u64) -> Status {
        let elapsed = Duration::from_nanos(elapsed);
        Status { elapsed, bytes: self.sink.bytes(), ..self.buffers.status() }
    }

    /// Whether recording ends now; passes signals on.
    fn is_over(&mut self, elapsed: u64, stop: &AtomicBool, signalled: &mut bool, observer: &mut dyn Observer) -> bool {
        if let Some(signal) = self.signals.take() {
            if signal.number == libc::SIGUSR1 && self.flight.keeps() {
                self.flight.ask(clock::now(), observer.is_busy());
                return false;
            }
            let Some(child) = self.child.as_ref().filter(|_| !*signalled && signal.number != libc::SIGUSR1) else {
                self.interrupted = true;
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
        self.costs.segment(number, self.sink.oldest(), self.reading());
        self.epoch = number;
        self.tell();
        probes::tell(&self.options.spans, t, &mut self.side);
        Scanner::default().scan(t, &mut self.side);
        self.buffers.interpreters().all_functions(&mut self.side);
        self.looks = Looks::new(self.options.budget);
        self.placements.forget();
        self.placements.look_at_all(t, &mut self.side);
        limits::return_memory();
        Ok(())
    }

    /// `failure` says why it ended early: then nothing more can be written.
    fn end(mut self, failure: Option<String>) -> Result<(Outcome, Sink)> {
        let end_ns = clock::now();
        self.placements.look_at_all(end_ns, &mut self.side);
        let failed = failure.is_some();
        let mut notes: Vec<String> = self.programs.lacks.take().into_iter().chain(failure).collect();
        notes.extend((self.place.level > 0).then(|| namespace::NOTE.to_owned()));
        notes.append(&mut self.reasons);
        notes.extend(self.flight.notes());
        notes.extend(self.budget.dear_breakpoints(&self.reading(), Nanos(end_ns - self.began).seconds()));
        if !failed {
            self.look_at_the_end();
        }
        self.side.extend(self.programs.detach(end_ns));
        let listening = listening::look(Whom::All, listening::OUTSIDE, &Raised::all());
        self.side.extend(listening.into_iter().map(|found| found.at(end_ns)));
        // After a round that failed, another would hide that there is a hole.
        if !failed && let Err(error) = self.round(clock::now()) {
            notes.push(format!("the end of the recording is missing: the spool cannot be written ({error})"));
        }
        // They are asked while they live.
        let (code, unnamed) = self.asking.end(&self.options.roots(self.child.as_ref().map(Child::pid)));
        notes.extend(unnamed);
        notes.extend(self.buffers.interpreters().notes());
        let (exit_code, signal) = match &mut self.child {
            Some(child) => child.wait(&mut self.signals, failed, &mut notes),
            None => (None, None),
        };
        let status = self.status(end_ns - self.began);
        if status.limited_stacks > 0 {
            notes.push(format!("{} stacks were left out to limit the rate of copies", status.limited_stacks));
        }
        let footer = self.footer(end_ns, exit_code, notes.clone());
        let cost = footer.recorder;
        // Without a footer, as on a full disk, the spool reads as one that was ended from outside.
        let _ = self.sink.writer.footer(&footer);
        let hooks = std::mem::take(&mut self.programs.hooks);
        let interrupted = self.interrupted | self.signals.take().is_some();
        let status = Status { bytes: self.sink.bytes(), ..status };
        let kept = self.flight.kept();
        let named = self.buffers.interpreters().named();
        let left = Left { code, held: self.buffers.held(), named };
        Ok((Outcome { exit_code, signal, interrupted, cost, status, hooks, kept, left, notes }, self.sink))
    }
}
