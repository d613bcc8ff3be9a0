//! Data sets for tests.

#![allow(dead_code)]

use std::fs;
use std::path::Path;
use std::process::Command;

use holdup_analysis::{NoDisassembler, Options};
use holdup_base::output::{Readers, Tree};
use holdup_export::Source;
use holdup_export::dataset::{ABOUT, Origin, Parcel, parcel};
use holdup_synth::Fleet;
use holdup_trace::Trace;

/// 32 hosts on five days; half of them are held up by a lock from the fourth day on.
pub fn fleet() -> Fleet {
    Fleet { hosts: 32, days: 5, worse_from: 4, worse: 16, events: 3000 }
}

/// The Python that has what the tests of others' programs need (scripts/test.sh).
pub fn python() -> String {
    std::env::var("HOLDUP_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// Whether that has a module.
pub fn python_has(module: &str) -> bool {
    let tried = Command::new(python()).args(["-c", &format!("import {module}")]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// What a trace adds.
pub fn rows(trace: &Trace) -> Parcel {
    let options = Options::default();
    let source = Source { trace, name: "made", options: &options, disassembler: &NoDisassembler };
    let origin = Origin { file: "/made.holdup", changed_ns: 0, label: "r1", with_recording: false };
    parcel(&source, &origin).unwrap()
}

/// Adds all traces of a fleet.
pub fn add(fleet: &Fleet, folder: &Path) {
    let tree = Tree::create(folder).unwrap();
    tree.put(ABOUT.0, Readers::Owner, ABOUT.1.as_bytes()).unwrap();
    let put = |trace: Trace| {
        for object in rows(&trace).objects {
            tree.put(&object.key, Readers::Owner, object.bytes.as_slice()).unwrap();
        }
        Ok::<(), holdup_trace::Error>(())
    };
    fleet.each(put).unwrap();
}

/// A data set of a fleet.
pub fn dataset(fleet: &Fleet) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    add(fleet, folder.path());
    folder
}

/// All files below a folder, by their keys, sorted.
pub fn keys(folder: &Path) -> Vec<String> {
    fn walk(at: &Path, root: &Path, all: &mut Vec<String>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => walk(&path, root, all),
                false => all.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()),
            }
        }
    }
    let mut all = Vec::new();
    walk(folder, folder, &mut all);
    all.sort();
    all
}
