//! The `.holdup` file: a stored (uncompressed) zip of Arrow IPC files, one for each table, and `meta.json`.
//!
//! Batches inside are lz4-compressed and bounded in size. Any Arrow reader opens the tables after `unzip`.

mod older;
mod read;
mod write;

pub use older::kind_of_loss;
pub use read::{is_holdup, read, read_from, read_memory};
pub use write::write_memory;
#[cfg(unix)]
pub use write::{create, write, write_to};

/// Version of the layout. Readers refuse greater ones. Since version 2 a loss has a kind.
pub const VERSION: u32 = 2;
