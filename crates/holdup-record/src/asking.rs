//! Asks Java virtual machines for the names of the functions that they compiled, while they live: what ran in a process that
//! has ended has no names.
//!
//! A machine is asked a quarter of a second after it was first seen, whenever a quarter of its age has passed, and when recording ends:
//! one that ends by itself has been asked in the last fifth of its life. A thread of its own asks, as the machine, or who made its /tmp,
//! may keep it waiting.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use holdup_runtime::jvm::{self, Answer, CompiledFrame, Insides, Met, Refusal};
use holdup_spool::Side;
use rustix::thread::Gid;

use crate::attach;
use crate::caps;
use crate::options::{BUDGET, CompiledCode};

/// When a machine is asked first, after it was seen.
const FIRST: Duration = Duration::from_millis(250);
/// It is asked again after one of so many parts of its age.
const PART: u32 = 4;
/// How long one may take to answer while recording goes on,
const MEANWHILE: Duration = Duration::from_secs(2);
/// when it ends, and all of them together then.
const AT_END: Duration = Duration::from_secs(1);
const ALL_AT_END: Duration = Duration::from_secs(3);
/// A machine is asked again after so many times the CPU time that the last answer cost, of the usual budget.
const APART: u32 = 200;
/// So many machines are asked.
const MACHINES: usize = 64;
/// So many bytes of maps are kept.
const KEPT: usize = 256 << 20;
/// After so many threads that did not come back nobody is asked any more.
const STUCK: u32 = 2;
/// So many refusals are told of.
const TOLD: usize = 8;
/// From a process up to one that is meant there are no more steps than this.
const STEPS: usize = 64;
/// What a machine maps.
pub(crate) const LIBRARY: &str = "/libjvm.so";

/// A machine that was seen.
#[derive(Debug)]
struct Machine {
    seen: Instant,
    /// When it is asked next; `None` for never again.
    due: Option<Instant>,
    text: Vec<u8>,
    frames: Vec<CompiledFrame>,
    insides: Insides,
    /// What its stacks held since it was asked.
    met: Met,
    refused: Option<String>,
}

impl Machine {
    fn new(seen: Instant) -> Machine {
        let (text, frames, insides, met) = Default::default();
        Machine { seen, due: Some(seen + FIRST), text, frames, insides, met, refused: None }
    }
}

/// What comes back, with what the machine had told before, and what its memory tells by now.
type Reply = (Told, Result<Answer, Refusal>, Insides);
/// A map, and the frames of its code.
type Told = (Vec<u8>, Vec<CompiledFrame>);

#[derive(Debug)]
struct Pending {
    pid: u32,
    until: Instant,
    reply: Receiver<Reply>,
}

/// Who is asked, and what was answered.
#[derive(Debug)]
pub(crate) struct Asking {
    machines: BTreeMap<u32, Machine>,
    pending: Option<Pending>,
    apart: u32,
    /// CPU seconds of the processes that were asked.
    spent_s: f64,
    stuck: u32,
    left_out: usize,
}

impl Asking {
    /// `budget` is the share of the machine that recording may cost.
    pub(crate) fn new(budget: f64) -> Asking {
        let apart = (f64::from(APART) * (BUDGET / budget).clamp(1.0, 100.0)) as u32;
        Asking { machines: BTreeMap::new(), pending: None, apart, spent_s: 0.0, stuck: 0, left_out: 0 }
    }

    /// CPU seconds of the processes that were asked.
    pub(crate) fn spent_s(&self) -> f64 {
        self.spent_s
    }

    /// Looks for machines in what was told of mappings.
    pub(crate) fn see(&mut self, side: &[Side]) {
        for item in side {
            let Side::Map { image, .. } = item else { continue };
            if !image.path.ends_with(LIBRARY) || self.machines.contains_key(&image.pid) {
                continue;
            }
            if self.machines.len() >= MACHINES {
                self.left_out += 1;
                continue;
            }
            let seen = Instant::now();
            self.machines.insert(image.pid, Machine::new(seen));
        }
    }

    /// Takes what stacks held since the last time.
    pub(crate) fn meet(&mut self, met: impl Iterator<Item = (u32, Met)>) {
        for (pid, met) in met {
            let Some(machine) = self.machines.get_mut(&pid) else { continue };
            machine.met.code.extend(met.code);
            machine.met.methods.extend(met.methods);
        }
    }

    /// Takes an answer, if there is one, and asks who is due, of those that `roots` made; of all if it is empty. Never waits.
    pub(crate) fn step(&mut self, roots: &[u32]) {
        self.take(Instant::now());
        if self.pending.is_some() || self.stuck >= STUCK {
            return;
        }
        let now = Instant::now();
        let due = |machine: &Machine| machine.due.is_some_and(|due| due <= now);
        let Some(pid) = self.machines.iter().find(|(_, machine)| due(machine)).map(|(&pid, _)| pid) else { return };
        if !is_meant(pid, roots) {
            self.machines.remove(&pid);
            return;
        }
        self.ask(pid, MEANWHILE);
    }

    /// Asks all once more, and waits for them. What could not be had is a sentence each.
    pub(crate) fn end(&mut self, roots: &[u32]) -> (Vec<CompiledCode>, Vec<String>) {
        let end = Instant::now() + ALL_AT_END;
        self.wait(end);
        let pids: Vec<u32> = self.machines.iter().filter(|(_, m)| m.due.is_some()).map(|(&pid, _)| pid).collect();
        for pid in pids {
            let limit = AT_END.min(end.saturating_duration_since(Instant::now()));
            if limit.is_zero() || self.stuck >= STUCK {
                break;
            }
            if is_meant(pid, roots) {
                self.ask(pid, limit);
                self.wait(end);
            }
        }
        let notes = self.notes(roots);
        let code = |(pid, Machine { text, frames, insides: Insides { inlined, methods, .. }, .. }): (u32, Machine)| {
            CompiledCode { pid, text, frames, inlined, methods }
        };
        (std::mem::take(&mut self.machines).into_iter().map(code).filter(|code| !code.text.is_empty()).collect(), notes)
    }

    fn ask(&mut self, pid: u32, limit: Duration) {
        let Some(machine) = self.machines.get_mut(&pid) else { return };
        let before = (std::mem::take(&mut machine.text), std::mem::take(&mut machine.frames));
        let (mut insides, met) = (std::mem::take(&mut machine.insides), std::mem::take(&mut machine.met));
        let (send, reply) = channel();
        let name = std::thread::Builder::new().name("holdup-asks".into());
        let asked = name.spawn(move || {
            let answer = as_its_user(pid, limit).map(|new| {
                let (text, frames) = (jvm::merge(&before.0, new.text), jvm::merge_frames(before.1.clone(), new.frames));
                Answer { text, frames, ..new }
            });
            insides.learn(pid, met, Instant::now() + limit);
            let _ = send.send((before, answer, insides));
        });
        match asked {
            Ok(_) => self.pending = Some(Pending { pid, until: Instant::now() + limit * 2, reply }),
            Err(_) => machine.due = None,
        }
    }

    /// Waits for the answer that is due, no longer than `end`.
    fn wait(&mut self, end: Instant) {
        while let Some(pending) = &self.pending {
            let until = pending.until.min(end);
            match pending.reply.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(reply) => self.answered(reply),
                Err(RecvTimeoutError::Disconnected) => self.pending = None,
                Err(RecvTimeoutError::Timeout) => self.give_up(),
            }
        }
    }

    fn take(&mut self, now: Instant) {
        let Some(pending) = &self.pending else { return };
        match pending.reply.try_recv() {
            Ok(reply) => self.answered(reply),
            Err(_) if now > pending.until => self.give_up(),
            Err(_) => {}
        }
    }

    /// The thread waits for what has no time limit: a file system that the process itself serves.
    fn give_up(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        self.stuck += 1;
        if let Some(machine) = self.machines.get_mut(&pending.pid) {
            machine.due = None;
            machine.refused = Some(format!("the Java process {} did not answer in time", pending.pid));
        }
    }

    fn answered(&mut self, (before, answer, insides): Reply) {
        let Some(Pending { pid, .. }) = self.pending.take() else { return };
        let others: usize = self.machines.values().map(|machine| machine.text.len()).sum();
        let Some(machine) = self.machines.get_mut(&pid) else { return };
        machine.insides = insides;
        let now = Instant::now();
        let age = now - machine.seen;
        match answer {
            Ok(Answer { text, frames, spent }) => {
                self.spent_s += spent.as_secs_f64();
                machine.due = Some(now + (age / PART).max(spent * self.apart));
                machine.refused = None;
                if others + text.len() <= KEPT {
                    (machine.text, machine.frames) = (text, frames);
                } else {
                    machine.due = None;
                    machine.refused = Some(format!("the perf map of process {pid} is left out: there are too many"));
                }
            }
            Err(refusal) => {
                (machine.text, machine.frames) = before;
                machine.due = refusal.may_change().then_some(now + age);
                machine.refused = (!refusal.is_gone()).then(|| refusal.to_string());
            }
        }
    }

    fn notes(&self, roots: &[u32]) -> Vec<String> {
        // Who has told once has names for the most of its time.
        let untold = self.machines.iter().filter(|(pid, machine)| machine.text.is_empty() && is_meant(**pid, roots));
        let mut notes: Vec<String> = untold.filter_map(|(_, machine)| machine.refused.clone()).collect();
        let more = notes.len().saturating_sub(TOLD) + self.left_out;
        notes.truncate(TOLD);
        notes.extend((more > 0).then(|| format!("{more} more Java processes told no names of their methods")));
        notes
    }
}

/// Whether a process, or one that made it, is among `roots`. What has ended was: it could not be asked otherwise.
fn is_meant(pid: u32, roots: &[u32]) -> bool {
    let up = std::iter::successors(Some(pid), |&pid| Some(attach::parent(pid)).filter(|&parent| parent > 1));
    roots.is_empty() || attach::parent(pid) == 0 || up.take(STEPS).any(|pid| roots.contains(&pid))
}

/// Asks with the rights of the process's user: files are made and read, and the socket is reached, as that user. For a thread that does
/// nothing else. Signals of that user do not reach it, as they would if it changed its effective user.
fn as_its_user(pid: u32, limit: Duration) -> Result<Answer, Refusal> {
    let me = rustix::process::geteuid();
    if !me.is_root() {
        caps::give_up_in_child();
        return jvm::perf_map(pid, me.as_raw(), limit);
    }
    let Some((user, group)) = owner(pid) else { return Err(Refusal::NotJava(pid)) };
    if user != 0 {
        rustix::thread::set_thread_groups(&[Gid::from_raw(group)])?;
        // SAFETY: plain calls, which change this thread alone and cannot fail but by leaving it as it was.
        let is_other = unsafe {
            libc::setfsgid(group);
            libc::setfsuid(user);
            libc::setfsuid(u32::MAX).cast_unsigned() == user
        };
        if !is_other {
            return Err(Refusal::OtherUser { pid, owner: user });
        }
    }
    jvm::perf_map(pid, user, limit)
}

/// The user and group for whom a process makes files.
fn owner(pid: u32) -> Option<(u32, u32)> {
    let status = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let last = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().nth(3)?.parse().ok()
    };
    Some((last("Uid:")?, last("Gid:")?))
}

#[cfg(test)]
mod tests;
