//! Where a frame of a call stack lies, and what it is called.

use holdup_trace::Location;

/// A frame where it lies.
#[derive(Debug)]
pub struct Place {
    /// Whether it is the kernel's.
    pub kernel: bool,
    /// The address, or one that stands for a name alone.
    pub address: u64,
    /// What it is called, where that is said.
    pub location: Option<Location>,
}

impl Place {
    fn function(&self) -> &str {
        self.location.as_ref().map_or("", |location| &location.function)
    }

    /// Whether the other is the function into which this is inlined: another one at the same address.
    pub fn is_inlined_in(&self, outer: &Place) -> bool {
        (self.kernel, self.address) == (outer.kernel, outer.address) && self.function() != outer.function()
    }

    /// Whether it belongs to the tracepoint at which the stack was taken.
    pub fn is_of_a_probe(&self) -> bool {
        self.kernel && is_of_a_probe(self.function())
    }
}

/// Functions of the tracepoint at which the stack was taken, on top of where the thread was.
fn is_of_a_probe(function: &str) -> bool {
    ["__traceiter_", "perf_trace_", "__perf_event_", "perf_tp_event", "bpf_trace_run", "__bpf_trace_", "bpf_prog_"]
        .iter()
        .any(|prefix| function.starts_with(prefix))
}
