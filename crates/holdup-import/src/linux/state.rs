//! What the bits of `prev_state` mean in this trace.
//!
//! They moved with the kernels: 0x10 is "zombie" in 3.x and "dead" in 4.14 and later, "preempted" is the bit above
//! the highest state. The tracepoint's own print format lists them, so it is asked, not the kernel's version.

use holdup_trace::SwitchState;

/// Masks of the states.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateBits {
    /// Still runnable although the state says something else.
    preempted: u64,
    sleeping: u64,
    uninterruptible: u64,
    idle: u64,
    no_load: u64,
    stopped: u64,
    dead: u64,
    parked: u64,
}

impl StateBits {
    /// From the print format of `sched_switch`; the bits of current kernels where it lists none.
    pub fn from_print_format(print: &str) -> Self {
        let mut bits = StateBits::default();
        let mut highest = 0;
        // { 0x0001, "S" }, { 1, "S"} , …
        for entry in print.split('{').skip(1) {
            let Some((value, name)) = entry.split_once(',') else { continue };
            let (Some(value), Some(name)) = (parse_number(value), name.split('"').nth(1)) else { continue };
            highest = highest.max(value);
            let mask = match name {
                "S" => &mut bits.sleeping,
                "D" => &mut bits.uninterruptible,
                "I" => &mut bits.idle,
                "N" => &mut bits.no_load,
                "T" | "t" => &mut bits.stopped,
                "Z" | "X" | "x" => &mut bits.dead,
                "P" => &mut bits.parked,
                _ => continue,
            };
            *mask |= value;
        }
        if highest == 0 {
            return StateBits::current();
        }
        bits.preempted = if print.contains("\"+\"") { highest.saturating_mul(2) } else { 0 };
        bits
    }

    /// The bits of kernels since 4.14.
    pub const fn current() -> Self {
        StateBits {
            preempted: 0x100,
            sleeping: 0x01,
            uninterruptible: 0x02,
            idle: 0x80,
            no_load: 0,
            stopped: 0x0c,
            dead: 0x30,
            parked: 0x40,
        }
    }

    /// The state that `bits` say.
    #[inline]
    pub fn state(&self, bits: u64) -> SwitchState {
        let has = |mask: u64| bits & mask != 0;
        if bits == 0 || has(self.preempted) {
            SwitchState::Runnable
        } else if has(self.sleeping) {
            SwitchState::Sleeping
        } else if has(self.idle) || has(self.parked) || has(self.no_load) {
            SwitchState::Idle
        } else if has(self.uninterruptible) {
            SwitchState::Uninterruptible
        } else if has(self.stopped) {
            SwitchState::Stopped
        } else if has(self.dead) {
            SwitchState::Dead
        } else {
            SwitchState::Unknown
        }
    }
}

fn parse_number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SwitchState::*;

    const OLD: &str = r#"REC->prev_state & (2048-1) ? __print_flags(REC->prev_state & (2048-1), "|", { 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "K" }, { 256, "W" }, { 512, "P" }, { 1024, "N" }) : "R", REC->prev_state & 2048 ? "+" : """#;
    const NEW: &str = r#"__print_flags(REC->prev_state & ((((0x00000000 | 0x00000001) + 1) << 1) - 1), "|", { 0x00000001, "S" }, { 0x00000002, "D" }, { 0x00000004, "T" }, { 0x00000008, "t" }, { 0x00000010, "X" }, { 0x00000020, "Z" }, { 0x00000040, "P" }, { 0x00000080, "I" }) : "R", REC->prev_state & (((0x1) + 1) << 1) ? "+" : """#;

    #[test]
    fn current_kernels() {
        let bits = StateBits::from_print_format(NEW);
        assert_eq!(bits, StateBits::current());
        let states = [0, 1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x100].map(|b| bits.state(b));
        let expected = [Runnable, Sleeping, Uninterruptible, Stopped, Stopped, Dead, Dead, Idle, Idle, Runnable];
        assert_eq!(states, expected);
    }

    #[test]
    fn old_kernels() {
        let bits = StateBits::from_print_format(OLD);
        let states = [0, 1, 2, 130, 64, 32, 1026, 2048, 2049].map(|b| bits.state(b));
        let expected = [Runnable, Sleeping, Uninterruptible, Uninterruptible, Dead, Dead, Idle, Runnable, Runnable];
        assert_eq!(states, expected);
    }
}
