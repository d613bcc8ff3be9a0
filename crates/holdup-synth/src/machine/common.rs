//! What is on every machine: its processes and threads, and a main thread that starts a short job now and then.

use holdup_trace::{Event, Host, LockKey, LockKind, TraceBuilder, WakeContext};
use holdup_trace::{ForkEvent, MapEvent, NameEvent};

use super::{MIN_WAIT, Machine, State, Thread};
use crate::cast::{Cast, Next, Place, Site, Who, calls};
use crate::code::{self, Names, kernel};
use crate::random::Random;
use crate::spec::Spec;

/// The first tid, and the pid of the first process.
const FIRST_TID: u32 = 1000;
/// Words of memory on which threads wait.
const WORDS: u64 = 16;
/// Where the planted lock and the words lie.
const LOCK: u64 = 0x5555_0081_2a40;
const FIRST_WORD: u64 = 0x7f00_2000_0040;
/// How often the main thread starts a job, in nanoseconds.
const BETWEEN_JOBS: (u64, u64) = (10_000_000, 30_000_000);

const PLACES: [Place; 3] = [
    Place { process: 0, syscall: calls::NONE, kernel: kernel::NONE, user: &["main"] },
    Place { process: 0, syscall: calls::SLEEP, kernel: kernel::SLEEP, user: &["clock_nanosleep", "main"] },
    Place { process: 0, syscall: calls::NONE, kernel: kernel::NONE, user: &["run_job", "start_thread", "clone3"] },
];
const MAIN_RUNS: usize = 0;
const MAIN_SLEEPS: usize = 1;
const JOB_RUNS: usize = 2;

impl Machine {
    /// Makes processes, threads, places and locks.
    pub(super) fn populate(&mut self, cast: &Cast, builder: &mut TraceBuilder) {
        self.common.next_tid = FIRST_TID;
        self.common.lost = builder.string("records");
        self.common.job = builder.string("job");
        for image in code::images(0) {
            let image = builder.image(image);
            self.record.add(Event::Map(MapEvent { pid: 0, image }));
        }
        for (process, name) in cast.processes.iter().enumerate() {
            let pid = self.add_thread(process, name, builder);
            self.common.pids.push(pid);
            for image in code::images(pid) {
                let image = builder.image(image);
                self.record.add(Event::Map(MapEvent { pid, image }));
            }
        }
        let mut numbered = String::new();
        for crew in &cast.crews {
            for i in 0..crew.count {
                numbered.clear();
                numbered.push_str(crew.name);
                if crew.count > 1 {
                    numbered.push_str(&format!("-{i}"));
                }
                self.add_thread(crew.process, &numbered, builder);
            }
        }
        // One set of leaves for all runs: it has numbers of its own.
        let mut random = Random::new(1);
        self.common.first_site = cast.places.len();
        for &place in cast.places.iter().chain(&PLACES) {
            let pid = self.common.pids[place.process];
            let chains = code::chains(builder, pid, place.kernel, place.user, &mut random);
            self.sites.push(Site { place, chains });
        }
        let mut futex = |address| builder.lock(LockKey { kind: LockKind::Futex, pid: FIRST_TID, address });
        self.lock = futex(LOCK);
        self.words = (0..WORDS).map(|i| futex(FIRST_WORD + 64 * i)).collect();
        self.threads[0].common = true;
        self.timer(0, BETWEEN_JOBS.0);
    }

    fn add_thread(&mut self, process: usize, name: &str, builder: &mut TraceBuilder) -> u32 {
        let tid = self.common.next_tid;
        self.common.next_tid += 1;
        let pid = self.common.pids.get(process).copied().unwrap_or(tid);
        let cpu = (self.threads.len() % self.running.len()) as u16;
        self.threads.push(Thread { cpu, ..fresh(tid) });
        let name = builder.string(name);
        self.record.add(Event::Name(NameEvent { pid, tid, name }));
        tid
    }

    /// The pid of a process by its index.
    pub(crate) fn pid(&self, process: usize) -> u32 {
        self.common.pids[process]
    }

    /// The planted lock's address.
    pub(crate) fn lock_address(&self) -> u64 {
        LOCK
    }

    /// The index of the first thread that is the program's own: before it are the main threads of its processes.
    pub(crate) fn first(&self) -> Who {
        self.common.pids.len() as Who
    }

    /// What a main thread or a job does next.
    pub(super) fn common_step(&mut self, who: Who) -> Next {
        let site = self.common.first_site;
        if who != 0 {
            self.common.free.push(who);
            return Next::Exit;
        }
        self.common.slept = !self.common.slept;
        if self.common.slept {
            self.start_job();
            return Next::Run(self.random.within(20_000, 60_000), site + MAIN_RUNS);
        }
        let ns = self.random.within(BETWEEN_JOBS.0, BETWEEN_JOBS.1);
        self.timer(0, ns);
        Next::Block(site + MAIN_SLEEPS, holdup_trace::LockId::NONE)
    }

    /// The main thread creates a thread.
    fn start_job(&mut self) {
        let (pid, tid) = (self.common.pids[0], self.common.next_tid);
        self.common.next_tid += 1;
        let main = self.threads[0];
        let left = self.random.within(100_000, 400_000);
        let site = (self.common.first_site + JOB_RUNS) as u16;
        let job = Thread { cpu: main.cpu, common: true, left, site, ..fresh(tid) };
        let who = self.common.free.pop().unwrap_or(self.threads.len() as Who);
        match self.threads.get_mut(who as usize) {
            Some(slot) => *slot = job,
            None => self.threads.push(job),
        }
        self.record.add(Event::Fork(ForkEvent { parent_pid: pid, parent: main.tid, pid, tid }));
        self.record.add(Event::Name(NameEvent { pid, tid, name: self.common.job }));
        self.make_ready(who);
    }

    /// Completes the facts about the trace; returns what names its frames.
    pub(crate) fn describe(&self, builder: &mut TraceBuilder, spec: &Spec, period: u64) -> Names {
        let meta = builder.meta_mut();
        meta.format = "holdup".to_owned();
        meta.cpus = spec.cpus;
        meta.host = Host {
            name: "synth".to_owned(),
            os: "Linux 6.8.0".to_owned(),
            arch: "x86_64".to_owned(),
            cpu: "simulated".to_owned(),
        };
        meta.command = vec!["synthd".to_owned(), spec.shape.name().to_owned()];
        (meta.min_wait_ns, meta.sample_period_ns) = (MIN_WAIT, period);
        meta.notes.push(format!("a made trace: shape {}, seed {}", spec.shape.name(), spec.seed).into());
        Names
    }
}

fn fresh(tid: u32) -> Thread {
    Thread {
        tid,
        common: false,
        state: State::Blocked,
        long: false,
        io: false,
        cpu: 0,
        site: 0,
        left: 0,
        turn_ends: 0,
        since: 0,
        context: WakeContext::Timer,
        sector: 0,
    }
}
