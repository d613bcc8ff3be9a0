//! Which CPUs there are, and on which of them a thread may run.

use crate::{Error, Result};

/// The CPUs that the calling thread may run on, in order.
pub fn allowed() -> Vec<usize> {
    let mut set = empty();
    // SAFETY: `set` is a valid mask of the size we pass; 0 is the calling thread.
    let done = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if done != 0 {
        return (0..std::thread::available_parallelism().map_or(1, usize::from)).collect();
    }
    // SAFETY: the index is below the mask's number of bits.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// Lets the calling thread run on these CPUs alone.
///
/// # Errors
/// A CPU that does not exist or that this process may not use.
pub fn pin(cpus: &[usize]) -> Result<()> {
    let mut set = empty();
    for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
        // SAFETY: the index is below the mask's number of bits.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: `set` is a valid mask of the size we pass; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) } {
        0 => Ok(()),
        _ => Err(Error::Usage(format!("no thread may run on CPUs {cpus:?}; this process has CPUs {:?}", allowed()))),
    }
}

/// The CPU that runs the calling thread at this moment.
pub fn current_cpu() -> usize {
    // SAFETY: the call takes nothing and changes nothing.
    let cpu = unsafe { libc::sched_getcpu() };
    usize::try_from(cpu).unwrap_or(0)
}

fn empty() -> libc::cpu_set_t {
    // SAFETY: a mask of zero bits is a valid value of this plain struct.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_there() {
        std::thread::spawn(|| {
            let cpu = *allowed().last().expect("at least one CPU");
            pin(&[cpu]).expect("an allowed CPU");
            assert_eq!(current_cpu(), cpu);
            assert!(pin(&[1_000_000]).is_err());
        })
        .join()
        .expect("the thread's assertions");
    }
}
