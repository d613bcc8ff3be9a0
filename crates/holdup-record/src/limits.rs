//! Limits of this process while it records: open files, locked memory, priority.

use holdup_trace::{Error, Result};
use rustix::process::{Resource, Rlimit, getpriority_process, getrlimit, setpriority_process, setrlimit};

/// Open files for each CPU: buffer of mappings, sampling event, its copy, its link.
const PER_CPU: u64 = 4;
/// Open files for programs, maps and links in the kernel, and for spools.
const BESIDE: u64 = 96;

/// Raised limits. They are as before when this ends: what is started later does not inherit them.
#[derive(Debug)]
pub(crate) struct Limits {
    files: Rlimit,
    locked: Rlimit,
    priority: Option<i32>,
}

impl Limits {
    /// Raises what may be raised. Runs this thread before others, so that a busy machine does not keep it from emptying
    /// the buffers; allows it to lock the memory of maps on old kernels. Either may be refused.
    pub(crate) fn raise(cpus: usize) -> Limits {
        let limits = Limits {
            files: getrlimit(Resource::Nofile),
            locked: getrlimit(Resource::Memlock),
            priority: getpriority_process(None).ok(),
        };
        let hard = limits.files.maximum;
        let enough = hard.map(|hard| hard.max(wanted(cpus)));
        // To go beyond the hard limit is for root.
        for most in [enough, hard] {
            if setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).is_ok() {
                break;
            }
        }
        let _ = setrlimit(Resource::Memlock, Rlimit { current: None, maximum: None });
        let _ = setpriority_process(None, -20);
        limits
    }
}

impl Drop for Limits {
    fn drop(&mut self) {
        let _ = setrlimit(Resource::Nofile, self.files);
        let _ = setrlimit(Resource::Memlock, self.locked);
        if let Some(priority) = self.priority {
            let _ = setpriority_process(None, priority);
        }
    }
}

/// Gives back what was freed: a round that came late takes tens of MB, and the C library would keep them.
pub(crate) fn return_memory() {
    // SAFETY: no argument is a pointer; what is in use stays where it is.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// How many files may have to be open.
fn wanted(cpus: usize) -> u64 {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |folder| folder.count() as u64);
    open + BESIDE + PER_CPU * cpus as u64
}

/// Fails with a sentence if the limit is too low for that many CPUs.
pub(crate) fn check_files(cpus: usize) -> Result<()> {
    let (wanted, limit) = (wanted(cpus), getrlimit(Resource::Nofile).current);
    match limit {
        Some(limit) if limit < wanted => Err(too_many_files(cpus, &format!("is {limit}, and {wanted} are needed"))),
        _ => Ok(()),
    }
}

/// The error where files cannot be opened any more.
pub(crate) fn too_many_files(cpus: usize, how: &str) -> Error {
    Error::Unsupported(format!(
        "Recording opens {PER_CPU} files for each of {cpus} CPUs, and the limit of open files (RLIMIT_NOFILE) {how}: raise \
         it, as with `ulimit -n`, LimitNOFILE= of systemd, or `docker run --ulimit nofile=…`"
    ))
}
