//! Finds the probes that `--span` names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use holdup_base::near;
use holdup_base::text::clean;
use holdup_record::{Argument, ArgumentAt, Probe, Sockets};
use holdup_symbols::{Probeable, Usdt};
use holdup_trace::{Error, Result};

use crate::cli::spans::{Asked, Point, SpanSpec};

/// Most files of running programs that are looked through for a provider's probes.
const MOST_FILES: usize = 4096;

/// The probes of all `specs`; `command` is started by the recording.
///
/// # Errors
/// If one names what is not there, with the nearest name.
pub fn probes(specs: &[SpanSpec], command: &[String]) -> Result<Vec<Probe>> {
    let mut all = Vec::new();
    for spec in specs {
        match spec {
            SpanSpec::Function { path, function } => all.extend(calls(path, function)?),
            SpanSpec::Usdt { path, provider, begin, end } => {
                let (path, found) = file_of(path.as_deref(), provider, command)?;
                for (point, begins) in [(begin, true), (end, false)] {
                    all.extend(usdt(&path, provider, &found, (point, begins), &begin.name)?);
                }
            }
            SpanSpec::Net { .. } | SpanSpec::Marker => {}
        }
    }
    Ok(all)
}

/// Whether requests on sockets are wanted, and what they begin with.
pub fn sockets(specs: &[SpanSpec]) -> Option<Sockets> {
    let of = |spec: &SpanSpec| if let SpanSpec::Net { with_text } = spec { Some(*with_text) } else { None };
    specs.iter().filter_map(of).reduce(|a, b| a || b).map(|with_text| Sockets { with_text })
}

/// Whether what programs write to a `trace_marker` is wanted.
pub fn markers(specs: &[SpanSpec]) -> bool {
    specs.contains(&SpanSpec::Marker)
}

fn open(path: &Path) -> Result<(PathBuf, Probeable)> {
    let path = on_search_path(path);
    let file = Probeable::open(&path).map_err(|e| Error::input(&path, clean(&e)))?;
    Ok((path, file))
}

/// A name without a folder is looked up as a shell does.
fn on_search_path(path: &Path) -> PathBuf {
    if path.components().count() > 1 || path.is_file() {
        return path.to_owned();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| path.is_file());
    found.unwrap_or_else(|| path.to_owned())
}

/// A function's entry and its return.
fn calls(path: &Path, function: &Point) -> Result<[Probe; 2]> {
    let (path, file) = open(path)?;
    let offset = file.function(&function.name).map_err(|e| Error::input(&path, clean(&e)))?;
    let at = |index, asked: Asked| Ok(ArgumentAt::of_function(index, asked.kind, asked.bytes));
    let arguments = arguments(function, at)?;
    let name = function.name.clone();
    let begin = Probe { name, path, offset, semaphore: 0, begins: true, returns: false, arguments };
    let end = Probe { begins: false, returns: true, arguments: [None; 2], ..begin.clone() };
    Ok([begin, end])
}

/// Of the arguments those that are to be read.
fn arguments(
    point: &Point,
    at: impl Fn(usize, Asked) -> Result<Option<ArgumentAt>>,
) -> Result<[Option<ArgumentAt>; 2]> {
    let mut found = [None; 2];
    let wanted = point.arguments.iter().enumerate().filter(|(_, asked)| asked.kind != Argument::None);
    for (place, (index, &asked)) in found.iter_mut().zip(wanted) {
        *place = at(index, asked)?;
    }
    Ok(found)
}

/// All places of one probe: compilers make several of one in an inlined function.
fn usdt(
    path: &Path,
    provider: &str,
    found: &[Usdt],
    (point, begins): (&Point, bool),
    name: &str,
) -> Result<Vec<Probe>> {
    let of_it: Vec<&Usdt> = found.iter().filter(|probe| probe.name == point.name).collect();
    if of_it.is_empty() {
        let names = found.iter().map(|probe| probe.name.as_str());
        let (hint, n) = (near::hint(&point.name, names.clone()), names.collect::<BTreeSet<_>>().len());
        let what = format!("has no probe {} of {provider}{hint}; it has {n} others", point.name);
        return Err(Error::input(path, clean(&what)));
    }
    let probe = |usdt: &Usdt| {
        let notes: Vec<&str> = usdt.arguments.split_whitespace().collect();
        let at = |index: usize, asked: Asked| {
            let place = notes.get(index).and_then(|note| ArgumentAt::of_note(note, asked.kind));
            let what = || match notes.get(index) {
                Some(note) => {
                    format!("argument {} of the probe {} lies where it cannot be read: {note}", index + 1, usdt.name)
                }
                None => format!("the probe {} has {} arguments, not {}", usdt.name, notes.len(), index + 1),
            };
            place.map(Some).ok_or_else(|| Error::input(path, clean(&what())))
        };
        let arguments = arguments(point, at)?;
        let (offset, semaphore, path) = (usdt.offset, usdt.semaphore, path.to_owned());
        Ok(Probe { name: name.to_owned(), path, offset, semaphore, begins, returns: false, arguments })
    };
    of_it.into_iter().map(probe).collect()
}

/// The file that has the provider's probes, and these: the one that is named, or the command, or what runs.
fn file_of(path: Option<&Path>, provider: &str, command: &[String]) -> Result<(PathBuf, Vec<Usdt>)> {
    let of_it = |file: &Probeable| -> Vec<Usdt> {
        file.usdt().into_iter().filter(|probe| probe.provider == provider).collect()
    };
    if let Some(path) = path {
        let (path, file) = open(path)?;
        let found = of_it(&file);
        if found.is_empty() {
            let all = file.usdt();
            let hint = near::hint(provider, all.iter().map(|probe| probe.provider.as_str()));
            return Err(Error::input(&path, clean(&format!("has no probes of {provider}{hint}"))));
        }
        return Ok((path, found));
    }
    let command = command.first().map(|program| on_search_path(Path::new(program)));
    for path in command.into_iter().chain(mapped_files()) {
        let found = Probeable::open(&path).map(|file| of_it(&file)).unwrap_or_default();
        if !found.is_empty() {
            return Ok((path, found));
        }
    }
    let what = format!(
        "no program that runs has probes of {provider} built in: name the file, as in usdt:/usr/sbin/server:{provider}:…"
    );
    Err(Error::Input(clean(&what).into_owned()))
}

/// The files that running processes have mapped as code; those that this user may see.
fn mapped_files() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let Ok(processes) = fs::read_dir("/proc") else { return found };
    for process in processes.flatten() {
        let Ok(maps) = fs::read(process.path().join("maps")) else { continue };
        for line in String::from_utf8_lossy(&maps).lines() {
            let (mut fields, path) = (line.split_whitespace(), line.find('/').map(|at| &line[at..]));
            let is_code = fields.nth(1).is_some_and(|access| access.contains('x'));
            if let Some(path) = path.filter(|_| is_code && found.len() < MOST_FILES) {
                found.insert(PathBuf::from(path));
            }
        }
    }
    found
}
