//! `fs::…`: files of a workload, and its resources. Paths are relative to the script's folder.

use std::path::Path;

use rune::alloc::limit;
use rune::runtime::VmResult;
use rune::{ContextError, Module, Value, vm_try};

use super::beneath::Files;
use super::failure::Failure;
use super::{binary, split_lines, wordlists};

/// The module `fs` for a script that may read these files.
pub(super) fn module(files: &Files) -> Result<Module, ContextError> {
    let mut module = Module::with_crate("fs")?;
    for (name, read) in [("read_to_string", read as Read), ("read_resource_to_string", resource as Read)] {
        let files = files.clone();
        module.function(name, move |file: &str| whole(read(&files, file))).build()?;
    }
    for (name, read) in [("read_lines", read as Read), ("read_resource_lines", resource as Read)] {
        let files = files.clone();
        module.function(name, move |file: &str| list(read(&files, file), |text| Box::new(text.lines()))).build()?;
    }
    for (name, read) in [("read_words", read as Read), ("read_resource_words", resource as Read)] {
        let files = files.clone();
        module.function(name, move |file: &str| list(read(&files, file), |text| Box::new(words_of(text)))).build()?;
    }
    split_lines::install(&mut module, files)?;
    binary::install(&mut module, files)?;
    Ok(module)
}

type Read = fn(&Files, &str) -> Result<String, Failure>;

/// What a function of a script returns here: errors of the machine stop the script, others it may look at.
type Returned<T> = VmResult<Result<T, Failure>>;

fn read(files: &Files, file: &str) -> Result<String, Failure> {
    files.text(Path::new(file), limit::get()).map_err(|refusal| Failure::new(refusal.sentence()))
}

fn resource(files: &Files, name: &str) -> Result<String, Failure> {
    wordlists::resource(files, name, limit::get()).map_err(Failure::new)
}

fn whole(text: Result<String, Failure>) -> Returned<rune::alloc::String> {
    match text {
        Ok(text) => VmResult::Ok(Ok(vm_try!(rune::alloc::String::try_from(text.as_str())))),
        Err(failure) => VmResult::Ok(Err(failure)),
    }
}

/// The parts of a text, in memory that the engine counts.
fn list(
    text: Result<String, Failure>,
    parts: fn(&str) -> Box<dyn Iterator<Item = &str> + '_>,
) -> Returned<rune::runtime::Vec> {
    let text = match text {
        Ok(text) => text,
        Err(failure) => return VmResult::Ok(Err(failure)),
    };
    let mut list = rune::runtime::Vec::new();
    for part in parts(&text) {
        let part = vm_try!(rune::alloc::String::try_from(part));
        vm_try!(list.push(vm_try!(Value::new(part))));
    }
    VmResult::Ok(Ok(list))
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty())
}
