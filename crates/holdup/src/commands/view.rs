//! `holdup view`: the page in the browser.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use holdup_view::{Gallery, Item, Model};

use crate::cli::View;
use crate::open;
use crate::text::screen::say;
use holdup_view::Machine;

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
    gallery.set(first.0, Item::Trace(Arc::new(read(&first.1)?)));
    let (port, url) = (server.port(), server.url());
    say!("holdup: the view is at {url}");
    say!("holdup: from another machine: ssh -L {port}:127.0.0.1:{port} {}, then the same address", host());
    say!("holdup: Ctrl-C ends it");
    let (later, rest) = (gallery.clone(), rest.to_vec());
    std::thread::spawn(move || {
        for (id, path) in rest {
            let item =
                read(&path).map_or_else(|e| Item::Failed(format!("{e:#}")), |model| Item::Trace(Arc::new(model)));
            later.set(id, item);
        }
    });
    server.run(gallery)?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<Model> {
    let trace = open::open(path)?;
    Model::open(trace, &path.display().to_string(), Box::new(Machine)).map_err(|e| match e {
        holdup_view::Error::Trace(e) => e.into(),
        other => anyhow::anyhow!("{}: {other}", path.display()),
    })
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
