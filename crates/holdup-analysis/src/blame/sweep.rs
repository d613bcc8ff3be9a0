//! The sweep over one part of the trace.

mod charge;
mod ends;
mod judge;
mod link;
mod off;
mod queued;
mod running;

pub(super) use charge::counted;
use holdup_trace::{Cpu, ThreadIdx};
use rustc_hash::FxHashMap;

use super::cells::Cells;
use super::census::Census;
use super::charged::Charged;
use super::clock::Clock;
use super::course::{Asked, Course};
use super::forest::{Forest, NONE};
use super::locks::Locks;
use super::processors::Processors;
use super::ready::{Reading, Ready};
use super::recorder::Recorder;
use super::study::Study;
use crate::classify::WaitKind;
use crate::intervals::{Chunk, Extra, State, Wait};

/// Sweeps one part backwards.
pub(super) fn sweep(study: &Study, chunk: &Chunk) -> Charged {
    let mut sweep = Sweep::new(study, chunk);
    sweep.run();
    sweep.finish()
}

/// Sweeps one part backwards and says when what was charged; with the first step of which it tells.
pub(super) fn record<'a>(study: &'a Study<'a>, chunk: &'a Chunk, asked: &'a Asked<'a>) -> Option<(usize, Course)> {
    let mut sweep = Sweep::new(study, chunk);
    sweep.recorder = Some(Box::new(Recorder::new(asked, (chunk.from, chunk.to), study.timeline.cpus)?));
    sweep.run();
    sweep.end();
    let recorder = sweep.recorder.take()?;
    Some(recorder.finish(&sweep.clock))
}

impl Sweep<'_> {
    /// Follows all changes back to the part's beginning.
    fn run(&mut self) {
        let sweep = self;
        sweep.start();
        let chunk = sweep.chunk;
        let (steps, inserted, extras, samples) = (chunk.steps(), chunk.inserted(), &chunk.extras, chunk.samples());
        let (mut step, mut late, mut extra, mut sample) = (steps.len(), inserted.len(), extras.len(), samples.len());
        loop {
            let step_t = step.checked_sub(1).map_or(0, |i| steps[i].t);
            let late_t = late.checked_sub(1).map_or(0, |i| inserted[i].t);
            let extra_t = extra.checked_sub(1).map_or(0, |i| extras[i].0);
            let sample_t = sample.checked_sub(1).map_or(0, |i| samples[i].t.nanos());
            // Going backwards a sample at a switch belongs to what ran before it: steps first, and the late ones before them.
            let rest = extra_t.max(sample_t);
            if step > 0 && step_t >= rest && (late == 0 || step_t > late_t) {
                step -= 1;
                sweep.advance(step_t);
                sweep.set_state(steps[step].thread.0, steps[step].before());
            } else if late > 0 && late_t >= rest {
                late -= 1;
                sweep.advance(late_t);
                sweep.set_state(inserted[late].thread.0, inserted[late].before());
            } else if extra > 0 && extra_t >= sample_t {
                extra -= 1;
                sweep.advance(extra_t);
                sweep.extra(extras[extra].1);
            } else if sample > 0 {
                sample -= 1;
                sweep.advance(sample_t);
                sweep.sample(&samples[sample]);
            } else {
                break;
            }
        }
    }

    /// Goes back to `t`, by way of the borders of the steps that are recorded.
    #[inline]
    fn advance(&mut self, t: u64) {
        if let Some(recorder) = &mut self.recorder {
            while let Some(border) = recorder.border_behind(t) {
                self.clock.advance(border);
                recorder.cross(&self.clock);
            }
        }
        if self.census.is_due(t) {
            self.look(t);
        }
        self.clock.advance(t);
    }

    /// Looks who asks whom, at the instants that lie between this one and `t`.
    fn look(&mut self, t: u64) {
        let Sweep { census, forest, study, chunk, .. } = self;
        let pid = |i: u32| study.trace.threads.pid.get(i as usize).copied().unwrap_or_default();
        census.look(t, forest, pid, |w| &chunk.waits()[w as usize]);
    }
}

/// Who goes on so many times as long as the one that it woke needs to come to its CPU has more to do than to wait for its answer.
const GOES_ON: u64 = 4;

struct Sweep<'a> {
    study: &'a Study<'a>,
    chunk: &'a Chunk,
    clock: Clock,
    processors: Processors,
    ready: Ready<'a>,
    /// What threads that are ready, and counted as such, read when they began to be, going backwards.
    readings: FxHashMap<u32, Reading>,
    forest: Forest,
    locks: Locks,
    cells: Cells,
    census: Census,
    out: Charged,
    /// Whether the states at the end of the part are being set.
    starting: bool,
    /// Cells of a wait that is being counted.
    scratch: Vec<u32>,
    /// Cells that were charged while something was linked, and until when.
    passed: Vec<(u32, u64)>,
    /// Notes when what is charged, if that is wanted.
    recorder: Option<Box<Recorder<'a>>>,
}

impl<'a> Sweep<'a> {
    fn new(study: &'a Study<'a>, chunk: &'a Chunk) -> Self {
        let timeline = study.timeline;
        let window = study.window;
        Sweep {
            study,
            chunk,
            clock: Clock::new(
                window,
                timeline.cpus,
                timeline.peak_parallelism(),
                !study.focus.is_everything(),
                chunk.to.max(chunk.from),
            ),
            processors: Processors::new(&chunk.lost_at_end),
            ready: Ready::new(&timeline.affinity, timeline.cpus),
            readings: FxHashMap::default(),
            forest: Forest::new(chunk.last.len()),
            locks: Locks::new(study.trace.locks.kind.len()),
            cells: Cells::new(study.gap()),
            census: Census::new(window, chunk.to.max(chunk.from), study.trace.threads.pid.len()),
            out: Charged::default(),
            starting: true,
            scratch: Vec::new(),
            passed: Vec::new(),
            recorder: None,
        }
    }

    fn wait(&self, w: u32) -> &'a Wait {
        &self.chunk.waits()[w as usize]
    }

    fn contains(&self, i: u32) -> bool {
        self.study.focus.contains(ThreadIdx(i))
    }

    /// What is known at the end.
    fn start(&mut self) {
        self.clock.present.lost = self.chunk.lost_at_end.iter().filter(|&&lost| lost).count();
        for span in &self.chunk.owners_at_end {
            self.locks.set_owner(span.lock, span.owner.0);
        }
        for (lock, by) in &self.chunk.releasers {
            if self.locks.has(*lock) {
                self.locks.set_releaser(*lock, by.0);
            }
        }
        let is_last = self.chunk.to >= self.study.timeline.end;
        for (i, state) in self.states_at_end() {
            self.set_state(i, state);
            self.forest.at_mut(i).crossing = !is_last && state.wait().is_some();
        }
        for (i, _) in self.chunk.last.iter().enumerate().filter(|(_, state)| matches!(state, State::Gone)) {
            if self.forest.at(i as u32).first_queue != NONE {
                self.set_state(i as u32, State::Gone);
            }
        }
        self.starting = false;
        if !is_last {
            // The circles of the end were counted where they closed.
            self.out.cycles = 0;
        }
    }

    /// What the threads do just before the end: those that run first; those that wait as they would have come from what follows, the one that
    /// is woken last first.
    fn states_at_end(&self) -> Vec<(u32, State)> {
        let states = self.chunk.last.iter().enumerate().skip(1);
        let known = states.filter(|(_, state)| !matches!(state, State::Unknown | State::Gone));
        let mut states: Vec<(u32, State)> = known.map(|(i, &state)| (i as u32, state)).collect();
        states.sort_by_key(|&(i, state)| match state {
            State::Waiting(w) => (2, std::cmp::Reverse(self.wait(w).woken), i),
            State::Running(_) => (0, std::cmp::Reverse(0), i),
            _ => (1, std::cmp::Reverse(0), i),
        });
        states
    }

    fn extra(&mut self, extra: Extra) {
        match extra {
            Extra::Lost(cpu, before) => self.set_lost(cpu, before),
            Extra::OwnerEnds(lock, owner) => self.own(lock, owner.0),
            Extra::OwnerBegins(lock, owner) => {
                if self.locks.has(lock) && self.locks.owner(lock) == owner.0 {
                    self.own(lock, NONE);
                }
            }
        }
    }

    /// Changes what a thread does before this instant, and with it what all behind it wait for.
    fn set_state(&mut self, i: u32, state: State) {
        let old = self.forest.at(i).state;
        let waits = self.forest.at(i).queue != NONE;
        if let (State::Woken(w), State::Waiting(same)) = (old, state)
            && w == same
            && waits
        {
            self.forest.at_mut(i).state = state;
            return;
        }
        if let State::Running(cpu) = old {
            self.set_running(cpu, i, false);
        } else if self.is_ready(i, old) && !waits {
            self.clock.present.runnable -= 1;
        }
        if let State::Woken(w) = old {
            self.count_latency(i, w);
        }
        if self.forest.at(i).queue != NONE {
            self.leave(i);
        } else {
            self.discharge(i);
        }
        self.unstarve(i, old);
        let thread = self.forest.at_mut(i);
        thread.state = state;
        thread.crossing &= state.wait().is_some();
        match state {
            State::Running(cpu) => self.set_running(cpu, i, true),
            State::Waiting(w) => self.start_waiting(i, w),
            State::Gone => self.pass_on(i),
            State::Woken(w) if self.goes_on_writing(w) => {
                self.start_waiting(i, w);
                let ready = self.is_ready(i, state) && self.forest.at(i).queue == NONE;
                self.clock.present.runnable += usize::from(ready);
            }
            _ => {
                self.clock.present.runnable += usize::from(self.is_ready(i, state));
                self.charge_self(i);
            }
        }
        if self.forest.at(i).queue == NONE && self.forest.at(i).first_queue != NONE {
            self.rekey_all(i);
        }
    }

    /// Whether who woke a thread that reads goes on for long after that has come to run: it has more to write, so that the way to the CPU
    /// delays nothing, and it is still waited for. Who asks, and waits for an answer, stops.
    fn goes_on_writing(&self, w: u32) -> bool {
        let wait = self.wait(w);
        let waker = wait.waker.index();
        if wait.kind != WaitKind::Read || !wait.waker.is_real() || waker >= self.forest.threads.len() {
            return false;
        }
        let State::Running(cpu) = self.forest.at(waker as u32).state else { return false };
        let way = wait.resumed.saturating_sub(wait.woken);
        self.processors.has_run(cpu, self.clock.total.t) >= way.saturating_mul(GOES_ON)
    }

    fn unstarve(&mut self, i: u32, old: State) {
        if let State::Runnable(cpu) | State::Yields(cpu) = old {
            self.processors.set_starving(cpu, i, false, self.clock.total.t);
        }
    }

    fn is_handoff(&self, w: u32) -> bool {
        let wait = self.wait(w);
        wait.kind == WaitKind::Lock && !wait.exempt
    }

    /// Whether it is a thread of the focus that could run and does not.
    fn is_ready(&self, i: u32, state: State) -> bool {
        let ready = match state {
            State::Runnable(_) => true,
            State::Woken(w) => !self.is_handoff(w),
            _ => false,
        };
        ready && self.contains(i)
    }

    fn set_lost(&mut self, cpu: Cpu, lost: bool) {
        let Some(running) = self.processors.running(cpu) else { return };
        if self.processors.is_lost(cpu) == lost {
            return;
        }
        if running != NONE {
            self.charge_serial(cpu, running);
            self.count_running(running, false, !lost);
        }
        self.processors.set_lost(cpu, lost);
        self.set_use(cpu, if lost { NONE } else { running });
        let present = &mut self.clock.present;
        present.lost = if lost { present.lost + 1 } else { present.lost - 1 };
    }
}
