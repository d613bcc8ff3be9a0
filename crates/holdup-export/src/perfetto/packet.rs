//! Packets, each of a writer: interned data belong to the writer that told them.

use holdup_base::named;

use super::message::Message;

named! {
    /// Who writes a packet. Each has numbers and defaults of its own.
    pub enum Writer {
        /// What is true of the trace as a whole.
        Service = "service",
        /// Events of the kernel.
        Ftrace = "ftrace",
        /// Stacks of threads that leave their CPUs.
        Switches = "switches",
        /// Stacks of threads that wake others.
        Wakes = "wakes",
        /// CPU samples.
        Samples = "samples",
        /// Tracks of our own.
        Tracks = "tracks",
    }
}

impl Writer {
    fn number(self) -> u64 {
        self as u64 + 1
    }
}

/// A packet begins the writer's state anew.
const CLEARED: u64 = 1;
/// A packet refers to what its writer told before.
const NEEDS_STATE: u64 = 2;

/// A packet without a time.
pub fn untimed(out: &mut Message, writer: Writer, write: impl FnOnce(&mut Message)) {
    out.message(1, |packet| {
        packet.number(10, writer.number());
        write(packet);
    });
}

/// A packet at `time` nanoseconds of the trace's clock.
pub fn timed(out: &mut Message, writer: Writer, time: u64, write: impl FnOnce(&mut Message)) {
    untimed(out, writer, |packet| {
        packet.number(8, time);
        write(packet);
    });
}

/// The first packet of a writer with state; the defaults of its other packets.
pub fn first(out: &mut Message, writer: Writer, defaults: impl FnOnce(&mut Message)) {
    untimed(out, writer, |packet| {
        packet.number(13, CLEARED);
        packet.message(59, defaults);
    });
}

/// A packet that refers to what its writer told before.
pub fn with_state(out: &mut Message, writer: Writer, time: u64, write: impl FnOnce(&mut Message)) {
    timed(out, writer, time, |packet| {
        packet.number(13, NEEDS_STATE);
        write(packet);
    });
}
