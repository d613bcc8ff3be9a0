//! Perfetto's traces: a row of packets, each a message of protocol buffers, of Android, Linux and what else writes them.
//!
//! ```text
//! bytes ─ packets ─▶ session ─┬▶ ftrace, compact ─────────┐
//!            ▲          │     ├▶ processes, system        ├▶ linux::Kernel ─▶ TraceBuilder
//!            └─ unpack ◀┘     └▶ sequence ▶ stacks ▶ join ┘
//! ```
//!
//! Read are ftrace's events, process trees, the samples of profilers with their interned stacks, clock snapshots, and what
//! the service and ftrace say of losses. Numbers of fields are those of the published schema.
//!
//! Packets of different writers are in no order. What is older than the last flush but one is complete when the service says
//! that it has read all its buffers: there a round ends. A trace that never says so is held until its end.

mod calls;
mod clocks;
mod compact;
mod detect;
mod finish;
mod ftrace;
mod join;
mod names;
mod packets;
mod place;
mod processes;
mod sequence;
mod session;
mod stacks;
mod system;
mod wire;

use holdup_trace::{Error, Result, TraceBuilder};

use crate::input::Input;
use packets::{Packets, Part};
use session::Session;

pub(crate) use detect::is_perfetto;

pub(crate) fn import(input: Input, builder: &mut TraceBuilder) -> Result<()> {
    let path = input.path().to_owned();
    "perfetto".clone_into(&mut builder.meta_mut().format);
    let mut session = Session::new(builder);
    let mut packets = Packets::new(input.into_stream()?);
    let mut any = false;
    loop {
        let at = packets.offset();
        match packets.next() {
            Ok(Some(Part::Packet(packet))) => {
                any = true;
                session.packet(packet)?;
            }
            Ok(Some(Part::TooLong)) => session.lost.damaged += 1,
            Ok(Some(Part::Other)) => {}
            Ok(None) => break,
            Err(stop) if any => {
                session.kernel.sink.lost_behind(1, "packets behind damage (at least)");
                let note = format!("{stop} at byte {at}; what follows was left out, record again if it matters");
                session.kernel.sink.builder.meta_mut().notes.push(note.into());
                break;
            }
            Err(stop) => return Err(Error::at(&path, at, format!("{stop}; record again"))),
        }
    }
    finish::finish(session)
}
