//! `holdup export --dataset`: what was found in a trace, beside what was found in others.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

use holdup_base::output::{Readers, Tree};
use holdup_export::dataset::{ABOUT, Origin, Parcel, parcel};
use holdup_trace::Error;

use super::{Part, export};
use crate::cli::Export;
use crate::commands::beside;
use crate::text::screen::say;

/// Adds a trace. A store behind an address is reached by the program beside this one: what may run as root speaks to no network.
pub fn add(args: &Export, dataset: &str) -> anyhow::Result<ExitCode> {
    let (part, label) = (Part::of(args), args.label.as_str());
    if !dataset.contains("://") {
        add_to(&part, label, args.with_recording, Path::new(dataset))?;
        say!("holdup: {} → {dataset}", args.trace.display());
        return Ok(ExitCode::SUCCESS);
    }
    let folder = tempfile::tempdir()?;
    add_to(&part, label, args.with_recording, folder.path())?;
    beside::ship(folder.path(), dataset)
}

/// Adds what was recorded into the file `trace` to a data set in a folder; with the recording itself, if it is wanted.
pub fn add_recorded(trace: &Path, dataset: &Path, with_recording: bool) -> anyhow::Result<()> {
    let whole = Part { trace, window: None, focus: None, redact: false };
    add_to(&whole, "", with_recording, dataset)
}

/// Adds a trace to a data set in a folder, which is made if it isn't there.
fn add_to(part: &Part, label: &str, with_recording: bool, dataset: &Path) -> anyhow::Result<()> {
    let file = if part.redact { String::new() } else { whole(part.trace) };
    let changed_ns = std::fs::metadata(part.trace).map_or(0, |m| m.mtime().saturating_mul(1_000_000_000));
    let origin = Origin { file: &file, changed_ns, label, with_recording };
    let parcel = export(part, dataset, |source| parcel(source, &origin))?;
    put(&parcel, part.trace, dataset).map_err(|e| Error::Input(e.to_string()).into())
}

/// The path as others find it, too.
fn whole(trace: &Path) -> String {
    trace.canonicalize().unwrap_or_else(|_| trace.to_owned()).display().to_string()
}

fn put(parcel: &Parcel, trace: &Path, dataset: &Path) -> std::io::Result<()> {
    let tree = Tree::create(dataset)?;
    tree.put(ABOUT.0, Readers::Owner, ABOUT.1.as_bytes())?;
    if !parcel.recording.is_empty() {
        tree.put(&parcel.recording, Readers::Owner, std::fs::File::open(trace)?)?;
    }
    parcel.objects.iter().try_for_each(|o| tree.put(&o.key, Readers::Owner, o.bytes.as_slice()).map(drop))
}
