//! Opens any supported trace. The kind is told from the content, never from the name.

use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use holdup_base::scratch;
use holdup_record::{CompiledCode, Left};
use holdup_symbols::{Kernel, Sources, StackUnwinder, Symbols};
use holdup_trace::{
    COMPILED, Destination, Error, Host, Location, Result, Timestamp, Trace, TraceBuilder, compact, cut, file, redact,
};

use crate::text::progress::Progress;
use crate::text::screen::say;

/// As many first bytes tell a file of holdup from all others.
const HEAD: u64 = 64;

/// Opens `path`, or standard input for `-`: a file, or a pipe with any of its formats. Foreign traces of this machine get
/// their names from it.
pub fn open(path: &Path) -> Result<Trace> {
    if path == Path::new("-") {
        return from_input();
    }
    let file = File::open(path).map_err(|e| Error::input(path, format!("cannot be opened: {e}")))?;
    match file.metadata() {
        Ok(there) if there.is_file() && is_packed(&file) => from_pipe(path, holdup_import::unpack(file)),
        // Links to standard input, and what a shell makes of <(COMMAND).
        Ok(there) if !there.is_file() && !there.is_dir() => from_pipe(path, Box::new(file)),
        _ => from_file(path, file),
    }
}

/// The bytes of a file that stands beside a trace, of at most `most`.
pub fn small(path: &Path, most: u64) -> Result<Vec<u8>> {
    let bad = |what: String| Error::input(path, what);
    // Opening a pipe would wait for who writes to it.
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(bad("is not a file".into()));
    }
    let file = File::open(path).map_err(|e| bad(format!("cannot be opened: {e}")))?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|e| bad(format!("cannot be read: {e}")))?;
    match bytes.len() as u64 > most {
        true => Err(bad(format!("has more than {} MB: cut it to the time of the trace", most >> 20))),
        false => Ok(bytes),
    }
}

/// The trace at `path`, or the window of it that is asked for, without what tells of people and places where that is.
pub fn part(path: &Path, window: Option<(f64, f64)>, redacted: bool) -> Result<Trace> {
    let mut trace = open(path)?;
    if let Some((from, to)) = window {
        trace = self::window(&trace, from, to)?;
    }
    if redacted {
        redact(&mut trace)?;
    }
    Ok(trace)
}

/// What lies between two times, in seconds since the trace's start, as a trace of its own.
pub fn window(trace: &Trace, from: f64, to: f64) -> Result<Trace> {
    let mut part = cut::window(trace, Timestamp::from_seconds(from), Timestamp::from_seconds(to))?;
    compact(&mut part, |_| true)?;
    Ok(part)
}

/// Whether `path` is what a recorder left that was killed, or is still at work. A pipe is not looked at: it can be read
/// only once, and opening it waits for a writer.
pub fn is_spool(path: &Path) -> bool {
    let is_file = path.metadata().is_ok_and(|there| there.is_file());
    let begins_so = |mut file: File| head(path, &mut file).is_ok_and(|head| holdup_spool::is_spool(&head));
    is_file && File::open(path).is_ok_and(begins_so)
}

/// Where `--symbols` says that names are.
static SYMBOLS: OnceLock<String> = OnceLock::new();

/// Looks for names there, too, from now on: a symbol path.
pub fn look_for_names_in(path: Option<String>) {
    if let Some(path) = path {
        SYMBOLS.get_or_init(|| path);
    }
}

fn sources() -> Sources {
    let variable = |name: &str| std::env::var(name).ok();
    let (path, urls) = (variable("_NT_SYMBOL_PATH"), variable("DEBUGINFOD_URLS"));
    Sources::new(SYMBOLS.get().map(String::as_str), path.as_deref(), urls.as_deref())
}

/// Completes a trace with the names that this machine knows.
pub fn finish(builder: TraceBuilder) -> Result<Trace> {
    finish_with(builder, Left::default())
}

/// Numbers of functions of interpreters that the recorder gave begin with 1, and are no more than this.
const GIVEN: u32 = 1 << 31;

/// What unwinds stacks of processes that told of their code; functions that their interpreters ran get their names in `builder`.
pub fn unwinder(left: &mut Left, builder: &mut TraceBuilder) -> StackUnwinder {
    let mut unwinder = StackUnwinder::new().holding(left.held.clone());
    let mut next = GIVEN;
    for CompiledCode { pid, frames, methods, .. } in &mut left.code {
        let mut methods: Vec<_> = std::mem::take(methods).into_iter().collect();
        methods.sort_unstable_by_key(|(at, _)| *at);
        let methods = methods.into_iter().map(|(at, name)| {
            next += 1;
            let location = Location { function: name.to_string(), module: COMPILED.into(), ..Location::default() };
            builder.interpreted(next, location);
            (at, next)
        });
        unwinder.told_by(*pid, std::mem::take(frames), methods.collect());
    }
    unwinder
}

/// The same with what processes told of the code that they compiled.
pub fn finish_with(mut builder: TraceBuilder, left: Left) -> Result<Trace> {
    let here = is_here(&builder.meta_mut().host);
    let sources = sources();
    if !sources.servers().is_empty() && rustix::process::geteuid().is_root() {
        say!("holdup: note: as root, names are asked for at {}", sources.servers().join(", "));
    }
    let symbols = if here { Symbols::new(Kernel::Live) } else { Symbols::new(Kernel::None).of_another_machine() };
    let mut symbols = symbols.with(&sources).holding(left.held);
    for CompiledCode { pid, text, inlined, .. } in left.code {
        symbols.told_by(pid, text, inlined);
    }
    left.named.into_iter().for_each(|pid| symbols.has_names(pid));
    let mut trace = builder.finish(Some(&mut symbols))?;
    // The unwinder reads the same files, and says the same of what it cannot read.
    let notes = &mut trace.meta.notes;
    for note in symbols.notes().iter() {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    Ok(trace)
}

/// Whether a trace was made here, with the kernel that runs.
fn is_here(host: &Host) -> bool {
    let read = |what: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{what}")).unwrap_or_default();
    let (release, name) = (read("osrelease"), read("hostname"));
    // perf writes the release alone, the recorder the system before it.
    let same_kernel = !release.is_empty() && host.os.ends_with(release.trim());
    // Many machines run the same kernel.
    same_kernel && (host.name.is_empty() || host.name == name.trim())
}

fn from_input() -> Result<Trace> {
    static READ: AtomicBool = AtomicBool::new(false);
    let path = Path::new("standard input");
    let input = io::stdin();
    if input.is_terminal() {
        return Err(Error::input(path, "is a terminal: pipe a trace into this command, or name a file"));
    }
    if READ.swap(true, Ordering::Relaxed) {
        return Err(Error::input(path, "can be read only once: write one of the traces to a file"));
    }
    let cannot = |e| Error::input(path, format!("cannot be read: {e}"));
    let mut file = File::from(input.as_fd().try_clone_to_owned().map_err(cannot)?);
    // `holdup info - < trace.holdup` has the file itself.
    let is_whole = file.metadata().is_ok_and(|m| m.is_file()) && file.stream_position().is_ok_and(|at| at == 0);
    if is_whole && !is_packed(&file) { from_file(path, file) } else { from_pipe(path, Box::new(file)) }
}

/// `path` is the file's name in messages.
fn from_file(path: &Path, mut file: File) -> Result<Trace> {
    let cannot = |e| Error::input(path, format!("cannot be read: {e}"));
    let head = head(path, &mut file)?;
    file.seek(SeekFrom::Start(0)).map_err(cannot)?;
    let progress = Progress::of_file(&format!("reading {}", name(path)), &file);
    if file::is_holdup(&head) {
        return file::read_from(file, path);
    }
    let mut builder = builder()?;
    if holdup_spool::is_spool(&head) {
        holdup_spool::read_opened(file, path, &mut builder)?;
    } else {
        holdup_import::from_file(path, file)?.import(&mut builder)?;
    }
    progress.next("naming functions");
    finish(builder)
}

/// What can be read only once. A `.holdup` file is read from its end, so it is copied first.
fn from_pipe(path: &Path, mut pipe: Box<dyn Read>) -> Result<Trace> {
    let progress = Progress::of_step(&format!("reading {}", name(path)));
    let mut head = head(path, &mut pipe)?;
    if holdup_import::is_gzip(&head) {
        pipe = holdup_import::unpack(Cursor::new(head).chain(pipe));
        head = self::head(path, &mut pipe)?;
    }
    let whole = Cursor::new(head.clone()).chain(pipe);
    if file::is_holdup(&head) {
        let copy = scratch::copy(whole).map_err(|e| Error::input(path, format!("cannot be read: {e}")))?;
        return file::read_from(copy, path);
    }
    let mut builder = builder()?;
    if holdup_spool::is_spool(&head) {
        holdup_spool::read_from(whole, path, &mut builder)?;
    } else {
        holdup_import::from_reader(path, Box::new(whole))?.import(&mut builder)?;
    }
    progress.next("naming functions");
    finish(builder)
}

fn builder() -> Result<TraceBuilder> {
    let mut builder = TraceBuilder::new(&Destination::MemoryThenFolder(std::env::temp_dir()))?;
    builder.set_unwinder(Box::new(StackUnwinder::new().with(&sources())));
    Ok(builder)
}

/// Whether a file is gzip of something; it is at its beginning then, as before.
fn is_packed(mut file: &File) -> bool {
    let mut head = Vec::new();
    let read = file.take(HEAD).read_to_end(&mut head);
    file.seek(SeekFrom::Start(0)).is_ok() && read.is_ok() && holdup_import::is_gzip(&head)
}

/// The first bytes; the importer has the sentence about folders.
fn head(path: &Path, file: &mut impl Read) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    match file.take(HEAD).read_to_end(&mut head) {
        Err(e) if e.kind() != io::ErrorKind::IsADirectory => Err(Error::input(path, format!("cannot be read: {e}"))),
        Ok(0) => Err(Error::at(path, 0, "it is empty; expected a trace, such as a .holdup file or perf.data")),
        _ => Ok(head),
    }
}

/// A name that fits into a line.
fn name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
