//! One run of a command: its CPUs, its time, its end.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::signal::{Signal, killpg};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use super::{Error, Result};

/// How often Ctrl-C is looked for.
const GLANCE: Duration = Duration::from_millis(50);

/// A command with its count in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// A variable of its environment.
    pub env: Option<(String, String)>,
    /// The only CPUs that it may use; `None` for those of this process.
    pub cpus: Option<Vec<usize>>,
}

/// What a run took.
pub(super) struct Used {
    pub(super) elapsed_s: f64,
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    pub(super) resident: Option<u64>,
}

/// The CPUs that the calling thread may use, in order.
pub fn allowed_cpus() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0));
    let listed = |set: CpuSet| (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect();
    set.map_or_else(|_| (0..thread::available_parallelism().map_or(1, usize::from)).collect(), listed)
}

/// Lets the calling thread, and what it starts from now on, use these CPUs alone.
///
/// # Errors
/// A CPU that does not exist, or that this process may not use.
pub fn restrict_to(cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    let done = cpus.iter().try_for_each(|&cpu| set.set(cpu)).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    done.map_err(|e| {
        Error::Usage(format!("nothing may run on CPUs {cpus:?} here ({e}); give some of {:?}", allowed_cpus()))
    })
}

impl Launch {
    /// The command as a shell would show it.
    pub(super) fn says(&self, what: &str) -> String {
        let env = self.env.as_ref().map_or(String::new(), |(name, value)| format!("{name}={value} "));
        format!("`{env}{}` {what}", self.argv.join(" "))
    }

    /// Runs it with its output in `output`, or nowhere. `None` if `stop` ended it.
    pub(super) fn run(
        &self,
        output: Option<&File>,
        timeout: Option<Duration>,
        stop: &AtomicBool,
    ) -> Result<Option<Used>> {
        // No other child of this process ends meanwhile: what all of them used grows by what this one used.
        let before = children()?;
        let began = Instant::now();
        let mut child = self.spawn(output)?;
        let pid = Pid::from_raw(child.id() as i32);
        let mut resident = None;
        let ended = wait_until(pid, timeout.map(|t| began + t), stop, &mut || {
            resident = resident.max(super::resident::of(pid));
        });
        if !matches!(ended, Ended::Itself(_)) {
            // It leads a group of its own and is not yet reaped, so that nobody else can be meant.
            let _ = killpg(pid, Signal::SIGKILL);
        }
        let status = child.wait().map_err(|e| Error::Failed(self.says(&format!("cannot be waited for: {e}"))))?;
        let at = match ended {
            Ended::Itself(at) => at,
            Ended::Stopped => return Ok(None),
            Ended::Late => {
                let limit = timeout.unwrap_or_default().as_secs_f64();
                return Err(Error::Failed(self.says(&format!("took longer than {limit} s; --timeout allows more"))));
            }
        };
        // Ctrl-C of a terminal may have reached it by way of a shell.
        if stop.load(Relaxed) {
            return Ok(None);
        }
        self.succeeded(status)?;
        let after = children()?;
        let grown = |of: fn(&Usage) -> f64| (of(&after) - of(&before)).max(0.0);
        let elapsed_s = (at - began).as_secs_f64().max(1e-9);
        Ok(Some(Used { elapsed_s, user_s: grown(user_s), system_s: grown(system_s), resident }))
    }

    fn spawn(&self, output: Option<&File>) -> Result<std::process::Child> {
        let cannot = |e: &dyn std::fmt::Display| Error::Failed(self.says(&format!("cannot be run: {e}")));
        let stdout = match output {
            Some(file) => file.try_clone().map_err(|e| cannot(&e))?.into(),
            None => Stdio::null(),
        };
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).envs(self.env.clone()).stdin(Stdio::null()).stdout(stdout).process_group(0);
        let Some(cpus) = self.cpus.clone() else { return command.spawn().map_err(|e| cannot(&e)) };
        // A child has the CPUs of the thread that starts it.
        let start = move || restrict_to(&cpus).map(|()| command.spawn());
        thread::spawn(start).join().expect("the thread does not panic")?.map_err(|e| cannot(&e))
    }

    fn succeeded(&self, status: ExitStatus) -> Result<()> {
        let failed = |what: String| Err(Error::Failed(self.says(&what)));
        match (status.code(), status.signal()) {
            (Some(0), _) => Ok(()),
            (Some(code), _) => {
                failed(format!("failed with exit code {code}; what it wrote to standard error is above"))
            }
            (None, signal) => failed(format!("was ended by signal {}", signal.unwrap_or(0))),
        }
    }
}

enum Ended {
    Itself(Instant),
    Late,
    Stopped,
}

/// Waits for a child's end without reaping it, at most until `deadline` or `stop`. Calls `look` now and then meanwhile.
fn wait_until(pid: Pid, deadline: Option<Instant>, stop: &AtomicBool, look: &mut dyn FnMut()) -> Ended {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(pid), flags) == Err(nix::errno::Errno::EINTR) {}
        // Nobody listens any more if the time was over.
        let _ = tell.send(Instant::now());
    });
    loop {
        let left = deadline.map_or(GLANCE, |d| d.saturating_duration_since(Instant::now()).min(GLANCE));
        match told.recv_timeout(left) {
            Ok(at) => return Ended::Itself(at),
            Err(RecvTimeoutError::Disconnected) => return Ended::Itself(Instant::now()),
            Err(RecvTimeoutError::Timeout) if stop.load(Relaxed) => return Ended::Stopped,
            Err(RecvTimeoutError::Timeout) if deadline.is_some_and(|d| d <= Instant::now()) => return Ended::Late,
            Err(RecvTimeoutError::Timeout) => look(),
        }
    }
}

fn children() -> Result<Usage> {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|e| Error::Failed(format!("the CPU time of commands is unknown: {e}")))
}

fn user_s(usage: &Usage) -> f64 {
    usage.user_time().num_microseconds() as f64 / 1e6
}

fn system_s(usage: &Usage) -> f64 {
    usage.system_time().num_microseconds() as f64 / 1e6
}
