//! `fs::…`: files of a workload, and its resources. Paths are relative to the script's folder.

use std::path::{Path, PathBuf};

use rune::{ContextError, Module};

use super::context::Failure;
use super::words;

/// The module `fs` for a script in `folder`.
pub(super) fn module(folder: &Path) -> Result<Module, ContextError> {
    let mut module = Module::with_crate("fs")?;
    for (name, read) in [("read_to_string", read as Read), ("read_resource_to_string", resource as Read)] {
        let folder = folder.to_owned();
        module.function(name, move |file: &str| read(&folder, file)).build()?;
    }
    for (name, read) in [("read_lines", read as Read), ("read_resource_lines", resource as Read)] {
        let folder = folder.to_owned();
        module.function(name, move |file: &str| read(&folder, file).map(|text| lines(&text))).build()?;
    }
    for (name, read) in [("read_words", read as Read), ("read_resource_words", resource as Read)] {
        let folder = folder.to_owned();
        module.function(name, move |file: &str| read(&folder, file).map(|text| words_of(&text))).build()?;
    }
    Ok(module)
}

type Read = fn(&Path, &str) -> Result<String, Failure>;

/// A file; a path that is found where the program was started counts too, as the shell completes those.
fn read(folder: &Path, file: &str) -> Result<String, Failure> {
    let beside = folder.join(file);
    let path = if beside.exists() { beside } else { PathBuf::from(file) };
    std::fs::read_to_string(&path).map_err(|e| Failure::new(format!("{}: {e}", path.display())))
}

fn resource(folder: &Path, name: &str) -> Result<String, Failure> {
    words::resource(folder, name).map_err(Failure::new)
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn words_of(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
