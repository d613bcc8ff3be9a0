//! Numbers of CPUs as perf writes them.

use holdup_trace::Cpu;

/// No Linux has more CPUs; a larger number is damage.
pub const MAX_CPUS: u16 = 8192;

/// perf's number of a CPU in the model's terms.
#[inline]
pub fn cpu(number: u32) -> Cpu {
    if number < MAX_CPUS.into() { Cpu(number as u16) } else { Cpu::NONE }
}
