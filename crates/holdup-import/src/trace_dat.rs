//! `trace.dat` of trace-cmd, versions 6 and 7: the kernel's own ring buffers, with the formats of their events.
//!
//! ```text
//! head ─┬─ version6 ─┬▶ Description ─▶ cpu_stream (one for each CPU) ─ pages ─ merge ─▶ linux::Kernel ─▶ TraceBuilder
//!       └─ version7 ─┘
//! ```
//!
//! Memory holds the descriptions and one piece of each CPU's data: a few pages, or what was packed at once.

mod cpu_stream;
mod description;
mod file;
mod finish;
mod functions;
mod merge;
mod options;
mod pages;
mod points;
mod version6;
mod version7;

use std::io::Read;

use holdup_trace::{Error, Result, TraceBuilder};

use crate::input::Input;
use file::{Damage, File};

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

pub(crate) fn is_trace_dat(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

pub(crate) fn import(input: Input, builder: &mut TraceBuilder) -> Result<()> {
    let path = input.path().to_owned();
    "trace.dat".clone_into(&mut builder.meta_mut().format);
    let mut file =
        File::new(input.into_seekable()?).map_err(|e| Error::input(&path, format!("cannot be read: {e}")))?;
    let damaged = |d: Damage| Error::at(&path, d.at, format!("{}; record again", d.what));
    let head = file.take_head(MAGIC.len() as u64).map_err(damaged)?;
    if head.big_endian {
        let what = "was recorded on a big-endian machine, which holdup does not read";
        return Err(Error::Unsupported(format!("{}: {what}", path.display())));
    }
    let description = match head.version {
        6 => version6::read(&mut file, &head),
        7 => version7::read(&mut file, &head),
        other => {
            let what =
                format!("is trace.dat version {other}; holdup reads 6 and 7, and `trace-cmd convert` writes them");
            return Err(Error::Unsupported(format!("{}: {what}", path.display())));
        }
    };
    let description = description.map_err(damaged)?;
    if description.buffers.iter().all(|b| b.cpus.is_empty()) {
        return Err(damaged(Damage { at: file.len(), what: "it holds no CPU's events".to_owned() }));
    }
    finish::finish(merge::read(file, description, builder)?)
}
