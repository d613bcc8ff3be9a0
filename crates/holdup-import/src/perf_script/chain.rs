//! The call chain of an event, and the names that its frames come with.

use holdup_trace::{ChainId, Location, TraceBuilder};
use rustc_hash::FxHashSet;

use super::line::Frame;

/// Addresses from here on are the kernel's.
const KERNEL: u64 = 1 << 63;

/// The frames of the event at hand.
#[derive(Debug, Default)]
pub struct Chain {
    kernel: Vec<u64>,
    user: Vec<u64>,
    /// Functions without a frame of their own, inside the next frame.
    inlined: Vec<Location>,
    /// Addresses of each process that have names.
    named: FxHashSet<(u32, u64)>,
}

impl Chain {
    /// Forgets the frames.
    pub fn clear(&mut self) {
        self.kernel.clear();
        self.user.clear();
        self.inlined.clear();
    }

    /// The next frame, a caller of the one before it, in process `pid`.
    pub fn push(&mut self, f: &Frame, pid: u32, to: &mut TraceBuilder) {
        let is_kernel = f.address >= KERNEL;
        let module = if is_kernel { "[kernel]" } else { f.module };
        let location = Location {
            function: f.function.to_owned(),
            module: module.to_owned(),
            offset: f.offset,
            ..Location::default()
        };
        if f.module == "inlined" {
            self.inlined.push(location);
            return;
        }
        let part = if is_kernel { &mut self.kernel } else { &mut self.user };
        // The builder moves a caller's return address into the call, and that is where it has its name.
        let named_at = if part.is_empty() { f.address } else { f.address.saturating_sub(1) };
        part.push(f.address);
        let inlined = std::mem::take(&mut self.inlined);
        let owner = if is_kernel { 0 } else { pid };
        if !f.function.is_empty() && self.named.insert((owner, named_at)) {
            let module = location.module.clone();
            let inner = inlined.into_iter().map(|inlined| Location { module: module.clone(), ..inlined });
            to.name(owner, named_at, inner.chain([location]).collect());
        }
    }

    /// The chain of what was pushed.
    pub fn take(&self, pid: u32, to: &mut TraceBuilder) -> ChainId {
        if self.kernel.is_empty() && self.user.is_empty() {
            return ChainId::NONE;
        }
        to.chain(pid, &self.kernel, &self.user)
    }

    /// The first instruction; 0 if there is none.
    pub fn leaf(&self) -> u64 {
        self.kernel.first().or(self.user.first()).copied().unwrap_or(0)
    }
}
