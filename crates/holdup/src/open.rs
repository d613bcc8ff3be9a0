//! Opens any supported trace. The kind is told from the content, never from the name.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use holdup_symbols::{Kernel, StackUnwinder, Symbols};
use holdup_trace::{Destination, Error, Result, Trace, TraceBuilder, file, spool};

/// Opens `path`, or standard input for `-`. Foreign traces of this machine get their names from it.
pub fn open(path: &Path) -> Result<Trace> {
    let head = if path == Path::new("-") { Vec::new() } else { head(path)? };
    if file::is_holdup(&head) {
        return file::read(path);
    }
    let mut builder = TraceBuilder::new(&Destination::Memory)?;
    builder.set_unwinder(Box::new(StackUnwinder::new()));
    if spool::is_spool(&head) {
        spool::read(path, &mut builder)?;
    } else {
        holdup_import::open(path)?.import(&mut builder)?;
    }
    finish(builder)
}

/// Whether `path` is what a recorder left that was killed, or is still at work.
pub fn is_spool(path: &Path) -> bool {
    path != Path::new("-") && head(path).is_ok_and(|head| spool::is_spool(&head))
}

/// Completes a trace with the names that this machine knows.
pub fn finish(mut builder: TraceBuilder) -> Result<Trace> {
    let here = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // perf writes the release alone, the recorder the system before it.
    let same_kernel = !here.is_empty() && builder.meta_mut().host.os.ends_with(here.trim());
    let mut symbols = Symbols::new(if same_kernel { Kernel::Live } else { Kernel::None });
    let mut trace = builder.finish(Some(&mut symbols))?;
    trace.meta.notes.extend(symbols.notes().iter().cloned());
    Ok(trace)
}

fn head(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|e| Error::input(path, format!("cannot be opened: {e}")))?;
    let mut head = Vec::new();
    file.take(64).read_to_end(&mut head).map_err(|e| Error::input(path, format!("cannot be read: {e}")))?;
    if head.is_empty() {
        return Err(Error::at(path, 0, "the file is empty; expected a trace, such as a .holdup file or perf.data"));
    }
    Ok(head)
}
