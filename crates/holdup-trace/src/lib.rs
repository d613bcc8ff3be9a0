//! The trace model of holdup.
//!
//! Live recordings and every importer push [`Event`]s into one [`TraceBuilder`]; what comes out is a [`Trace`]:
//! columnar tables, dictionaries of strings, stacks, threads and locks, and the losses that limit what can be
//! concluded. The rest of the program cannot tell where a trace came from.
//!
//! What this crate is *not* for: deciding who is to blame (holdup-analysis), or turning addresses into names
//! (holdup-symbols implements [`Symbolizer`] and [`Unwinder`]).

mod arrow;
mod background;
mod builder;
mod bytes;
mod column;
mod compact;
pub mod cut;
mod dict;
mod error;
mod event;
mod event_tables;
pub mod file;
mod filler;
mod ids;
mod meta;
mod names;
mod naming;
mod note;
mod pdb_id;
mod raw_stack;
mod redact;
mod refer;
mod run_time;
mod store;
mod syscall;
mod table;
pub mod tables;
mod thin;
mod trace;
mod units;

pub use arrow::RawBatch;
pub use builder::{Destination, TraceBuilder};
pub use column::Column;
pub use compact::compact;
pub use dict::{Dictionary, Image, Location, LockKey, SourceLine, Stacks, Symbolizer, decode_build_id};
pub use error::{Error, Result};
pub use event::{BlockIoEvent, BlockedEvent, Event, ExecEvent, ExitEvent, ForkEvent, FutexEvent, KernelLockEvent};
pub use event::{
    LATE_ACK, LOST_STACKS, ListenerEvent, LossKind, LostEvent, MapEvent, NameEvent, Pairing, ParentEvent,
    PlacementEvent, ProcessEvent, QuotaEvent, SampleEvent, SpanEdgeEvent, SpanEvent, SpanOutcome, StandingEvent,
    SubjectEvent, SwitchEvent, WakeContext, WakeEvent,
};
pub use event_tables::{EventTables, TakeTables, table_docs};
pub use ids::{ChainId, Cpu, FrameId, LockId, LockKind, SpaceId, StackId, StringId, SwitchState, ThreadIdx};
pub use meta::{Host, Loss, Meta, Part, RecorderCost};
pub use names::Names;
pub use note::{Note, NoteKind};
pub use pdb_id::PdbId;
pub use raw_stack::{Interpreted, InterpretedFrame, Leaf, PointedFrame, RawStack, Unwinder};
pub use redact::redact;
pub use refer::Refer;
pub use run_time::{COMPILED, interpreted_address, is_interpreted, is_made_at_run_time};
pub use store::{Batches, Chunks, Store};
pub use syscall::Syscall;
pub use table::{ColumnDoc, Table, TableDoc};
pub use thin::thinned;
pub use trace::Trace;
pub use units::{Amount, Nanos, Timestamp};
