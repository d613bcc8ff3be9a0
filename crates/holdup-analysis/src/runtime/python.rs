//! CPython: 3.8 and newer.

use super::row::Runtime;
use crate::known::Known;

pub(super) const PYTHON: Runtime = Runtime {
    modules: &["libpython2", "libpython3"],
    is_own: |module, function| is_interpreter(module) || is_of_library(module) || function.starts_with("_PyEval_"),
    language: "Python",
    nameless: "Python code without names",
    interprets: |module| is_interpreter(module) || is_library_of_interpreter(module),
    locks: &[Known::of_language("Python's interpreter lock (GIL)", &["take_gil", "drop_gil"])],
    // Its other locks are semaphores.
    conditions: |module, _| if is_interpreter(module) || is_library_of_interpreter(module) { "take_gil" } else { "" },
    ambiguous: &["lock_PyThread_acquire_lock", "rlock_acquire", "lock_acquire"],
    // What was compiled from a text has a name in brackets: `<string>`, `<dynamic-code>`.
    is_language: |module, _| module.ends_with(".py") || (module.starts_with('<') && module.ends_with('>')),
    packages: PACKAGES,
    begins: |module, function| function.ends_with("_bootstrap") && module.ends_with("/multiprocessing/process.py"),
    signals: &[
        ("wait", "/threading.py"),
        ("wait_for", "/threading.py"),
        ("join", "/threading.py"),
        ("_wait_for_tstate_lock", "/threading.py"),
    ],
    results: &[
        ("result", "/concurrent/futures/_base.py"),
        ("exception", "/concurrent/futures/_base.py"),
        ("get", "/multiprocessing/pool.py"),
    ],
    ..Runtime::NONE
};

const PACKAGES: &[&str] = &["/site-packages/", "/dist-packages/"];

/// Whether a file is the interpreter's program: `python3`, `python3.11`, but no `python3-config.py`.
fn is_interpreter(module: &str) -> bool {
    let base = module.rsplit('/').next().unwrap_or(module);
    base.strip_prefix("python").is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

fn is_library_of_interpreter(module: &str) -> bool {
    module.rsplit('/').next().is_some_and(|base| base.starts_with("libpython3"))
}

/// Whether a file, in Python or compiled, comes with the language.
fn is_of_library(module: &str) -> bool {
    let in_library = ["/lib/python3", "/lib/python2", "/lib64/python3"].iter().any(|folder| module.contains(folder));
    let is_installed = || PACKAGES.iter().any(|folder| module.contains(folder));
    in_library && !is_installed() || module.starts_with("<frozen ")
}
