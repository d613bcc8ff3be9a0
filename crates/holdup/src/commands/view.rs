//! `holdup view`: the page in the browser.

mod browser;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use holdup_view::{Gallery, Item, Model, Plots};

use crate::cli::View;
use crate::open;
use crate::text::screen::say;
use holdup_view::Machine;

/// Longest document and source file that is read, in bytes.
const TEXT_LIMIT: u64 = 16 << 20;

/// Runs the command, until it is interrupted.
pub fn run(args: &View) -> anyhow::Result<ExitCode> {
    let server = holdup_server::bind(args.port).with_context(|| {
        format!("port {} of this machine cannot be listened on; --port 0 takes any that is free", args.port)
    })?;
    let gallery = Arc::new(Gallery::default());
    let files: Vec<(usize, PathBuf)> =
        args.traces.iter().map(|path| (gallery.add(&name(path)), path.clone())).collect();
    let (first, rest) = files.split_first().context("no trace was named")?;
    // What cannot be read at all is an error of this command, not of the page.
    gallery.set(first.0, read(&first.1)?);
    let (port, url) = (server.port(), server.url());
    say!("holdup: the view is at {url}");
    say!("holdup: from another machine: ssh -L {port}:127.0.0.1:{port} {}, then the same address", host());
    say!("holdup: Ctrl-C ends it");
    let _door = if args.no_open { None } else { browser::open(&url) };
    let (later, rest) = (gallery.clone(), rest.to_vec());
    std::thread::spawn(move || {
        for (id, path) in rest {
            later.set(id, read(&path).unwrap_or_else(|e| Item::Failed(format!("{e:#}"))));
        }
    });
    server.run(gallery)?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<Item> {
    let name = path.display().to_string();
    if let Some(plots) = plots(path, &name)? {
        return Ok(Item::Plots(Arc::new(plots)));
    }
    let trace = open::open(path)?;
    let model = Model::open(trace, &name, Box::new(Machine)).map_err(unreadable)?;
    let model = Arc::new(model.with_sources(Box::new(|path| source(Path::new(path)))));
    let ahead = model.clone();
    // Whoever asks is told of a damaged table; here nobody is.
    std::thread::spawn(move || ahead.prepare().is_ok());
    Ok(Item::Trace(model))
}

/// The results of measurements, if the file is a JSON document.
fn plots(path: &Path, name: &str) -> anyhow::Result<Option<Plots>> {
    let is_file = path.metadata().is_ok_and(|m| m.is_file() && m.len() <= TEXT_LIMIT);
    let Some(bytes) = is_file.then(|| std::fs::read(path)).transpose()?.filter(|b| Plots::is_json(b)) else {
        return Ok(None);
    };
    Ok(Some(Plots::read(&bytes, name).map_err(unreadable)?))
}

fn unreadable(error: holdup_view::Error) -> anyhow::Error {
    match error {
        holdup_view::Error::Trace(e) => e.into(),
        other => holdup_trace::Error::Input(other.to_string()).into(),
    }
}

/// The text of a regular file; `None` if there is none, or a device, or one that is too long to be source.
fn source(path: &Path) -> Option<String> {
    std::fs::metadata(path).ok().filter(|m| m.is_file() && m.len() <= TEXT_LIMIT)?;
    Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned())
}

/// The file's name without its folders.
fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

/// By what name one may reach this machine.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "THIS-MACHINE".to_owned() } else { name.trim().to_owned() }
}
