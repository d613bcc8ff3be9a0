//! In which context a CPU is: interrupt handlers, softirqs and timers that have begun and not ended.

use holdup_trace::WakeContext;

/// What may interrupt a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// A device's handler.
    Hard,
    /// A softirq.
    Soft,
    /// An expiring timer, in either.
    Timer,
    /// A message of another CPU.
    Ipi,
}

/// "It is not known which interrupt."
pub const UNKNOWN_SOURCE: u16 = u16::MAX;

/// Bits of `common_flags`.
mod flag {
    pub const HARD: u8 = 0x08;
    pub const SOFT: u8 = 0x10;
    pub const NMI: u8 = 0x40;
}

/// Handlers that one CPU is in, the innermost last.
#[derive(Debug, Clone, Copy, Default)]
struct Nest {
    handlers: [Option<(Interrupt, u16)>; 8],
    depth: usize,
}

impl Nest {
    fn innermost(&self) -> (WakeContext, u16) {
        match self.handlers[..self.depth].last().copied().flatten() {
            Some((Interrupt::Timer, source)) => (WakeContext::Timer, source),
            Some((Interrupt::Hard, source)) => (WakeContext::HardIrq, source),
            Some((Interrupt::Ipi, source)) => (WakeContext::Ipi, source),
            Some((Interrupt::Soft, source)) => (WakeContext::SoftIrq, source),
            None => (WakeContext::Task, 0),
        }
    }
}

/// Every CPU's handlers.
#[derive(Debug, Default)]
pub struct Contexts(Vec<Nest>);

impl Contexts {
    /// A handler begins.
    pub fn begin(&mut self, cpu: u32, what: Interrupt, source: u16) {
        if cpu >= super::cpus::MAX_CPUS.into() {
            return;
        }
        let at = cpu as usize;
        self.0.resize(self.0.len().max(at + 1), Nest::default());
        let nest = &mut self.0[at];
        if nest.depth < nest.handlers.len() {
            nest.handlers[nest.depth] = Some((what, source));
            nest.depth += 1;
        }
    }

    /// The innermost handler of this kind ends, and with it all inside it.
    pub fn end(&mut self, cpu: u32, what: Interrupt) {
        let Some(nest) = self.0.get_mut(cpu as usize) else { return };
        let open = nest.handlers[..nest.depth].iter().rposition(|h| h.is_some_and(|(w, _)| w == what));
        if let Some(at) = open {
            nest.depth = at;
        }
    }

    /// Another thread runs on `cpu`: no handler goes on in it.
    pub fn leave(&mut self, cpu: u32) {
        self.0.get_mut(cpu as usize).into_iter().for_each(|nest| nest.depth = 0);
    }

    /// In which context an event was on `cpu`: by its `common_flags`, or where the source has none by the handlers alone.
    #[inline]
    pub fn of(&mut self, cpu: u32, flags: Option<u8>) -> (WakeContext, u16) {
        let nest = self.0.get_mut(cpu as usize);
        let Some(flags) = flags else { return nest.map_or((WakeContext::Task, 0), |nest| nest.innermost()) };
        if flags & (flag::HARD | flag::SOFT | flag::NMI) == 0 {
            // What is still open had its end lost.
            nest.into_iter().for_each(|nest| nest.depth = 0);
            return (WakeContext::Task, 0);
        }
        let hard = flags & (flag::HARD | flag::NMI) != 0;
        let innermost = nest.map_or((WakeContext::Task, 0), |nest| nest.innermost());
        match innermost.0 {
            WakeContext::Timer => innermost,
            WakeContext::HardIrq | WakeContext::Ipi if hard => innermost,
            WakeContext::SoftIrq if !hard => innermost,
            _ if hard => (WakeContext::HardIrq, UNKNOWN_SOURCE),
            _ => (WakeContext::SoftIrq, UNKNOWN_SOURCE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_handler_wakes() {
        let mut c = Contexts::default();
        assert_eq!(c.of(0, Some(0)), (WakeContext::Task, 0));
        assert_eq!(c.of(0, Some(flag::HARD)), (WakeContext::HardIrq, UNKNOWN_SOURCE));
        c.begin(0, Interrupt::Soft, 3);
        c.begin(0, Interrupt::Hard, 27);
        assert_eq!(c.of(0, Some(flag::HARD | flag::SOFT)), (WakeContext::HardIrq, 27));
        c.end(0, Interrupt::Hard);
        assert_eq!(c.of(0, Some(flag::SOFT)), (WakeContext::SoftIrq, 3));
        assert_eq!(c.of(1, Some(flag::SOFT)), (WakeContext::SoftIrq, UNKNOWN_SOURCE));
    }

    #[test]
    fn a_lost_end_is_forgotten_in_thread_context() {
        let mut c = Contexts::default();
        c.begin(0, Interrupt::Timer, 0);
        assert_eq!(c.of(0, Some(flag::HARD)).0, WakeContext::Timer);
        assert_eq!(c.of(0, Some(0)).0, WakeContext::Task);
        assert_eq!(c.of(0, Some(flag::HARD)), (WakeContext::HardIrq, UNKNOWN_SOURCE));
    }
}
