//! Workload scripts, behind a trait: what a run needs of an engine, and nothing of how it works.
//!
//! A script is compiled once for each thread, because engines count references in what they share: two threads that call one
//! compiled script write one cache line with every call. A [`Script`] therefore stays on the thread that compiled it.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;

use crate::session::Session;

#[cfg(feature = "script")]
mod beneath;
#[cfg(feature = "script")]
mod binary;
#[cfg(feature = "script")]
mod context;
#[cfg(feature = "script")]
mod data;
#[cfg(feature = "script")]
mod failure;
#[cfg(feature = "script")]
mod files;
pub(crate) mod limits;
#[cfg(feature = "script")]
mod numbers;
#[cfg(feature = "script")]
mod param;
#[cfg(feature = "script")]
mod presets;
#[cfg(feature = "script")]
mod printing;
#[cfg(feature = "script")]
mod rune;
#[cfg(feature = "script")]
mod split_lines;
#[cfg(feature = "script")]
mod texts;
#[cfg(feature = "script")]
mod values;
#[cfg(feature = "script")]
mod wordlists;

pub use limits::Limits;

/// A script's text and what the command line adds to it. The same for all threads.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// Values for the script's parameters, by name, as they were written.
    pub params: Vec<(String, String)>,
    /// What it may use of the machine.
    pub limits: Limits,
}

impl Source {
    /// A script without parameters, and with the default limits.
    pub fn new(path: impl Into<PathBuf>) -> Source {
        Source { path: path.into(), params: Vec::new(), limits: Limits::default() }
    }
}

/// A compiled script. It belongs to the thread that compiled it.
pub trait Script {
    /// The public functions at the top of the script, by name.
    fn functions(&self) -> &[FunctionInfo];

    /// The parameters that the script asks for.
    fn params(&self) -> &[ParamInfo];

    /// A place to call `function` from, for one call at a time. Costs some kilobytes.
    ///
    /// # Errors
    /// There is no such function, or it takes neither `ctx` nor `ctx, i`.
    fn caller(&self, function: &str) -> Result<Box<dyn Caller>, ScriptError>;

    /// How many cycles `load` needs, once `prepare` has run: `ctx.load_cycle_count`, or the constant `LOAD_COUNT`.
    fn load_count(&self) -> Option<u64>;
}

/// A call under way. The error has a box of its own: calls that succeed should not carry its size around.
pub type Calling<'a> = Pin<Box<dyn Future<Output = Result<(), Box<ScriptError>>> + 'a>>;

/// A place for one call at a time.
pub trait Caller {
    /// Calls the function for a cycle.
    ///
    /// # Errors
    /// What the script returned as an error, or why it stopped; with its line.
    fn call(&mut self, cycle: i64) -> Calling<'_>;
}

/// A function of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Its name.
    pub name: String,
    /// How many arguments it takes.
    pub args: usize,
}

/// A parameter of a script.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct ParamInfo {
    /// Its name.
    pub name: String,
    /// What the script says it is without a word on the command line, as written there.
    pub default: String,
    /// What the command line says.
    pub value: Option<String>,
}

/// A place in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// Why a script could not be compiled, or a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Where in the script, if that is known.
    pub place: Option<Place>,
    /// What, in a sentence.
    pub message: String,
    /// Whether the same call can succeed later.
    pub is_transient: bool,
    /// Whether the script came to one of its [`Limits`].
    pub is_limit: bool,
}

impl ScriptError {
    /// An error that trying again can't mend.
    pub(crate) fn new(place: Option<Place>, message: impl fmt::Display) -> ScriptError {
        let message = limits::shortened(message.to_string());
        ScriptError { place, message, is_transient: false, is_limit: false }
    }

    /// A limit that the script came to.
    pub(crate) fn limit(place: Option<Place>, message: impl fmt::Display) -> ScriptError {
        ScriptError { is_limit: true, ..ScriptError::new(place, message) }
    }

    /// An error of the engine that no script should be able to cause.
    #[cfg(feature = "script")]
    #[allow(clippy::needless_pass_by_value)] // As `map_err` gives it.
    fn internal(error: impl fmt::Display) -> ScriptError {
        ScriptError::new(None, format!("the script engine could not be set up: {error}"))
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ScriptError {}

/// Compiles a script for the calling thread. Its `ctx` runs statements through `session`.
///
/// # Errors
/// The file can't be read, or the script is wrong: file, line and what was expected. Without the feature `script`, that.
pub fn compile(source: &Source, session: &Rc<Session>) -> Result<Rc<dyn Script>, ScriptError> {
    #[cfg(feature = "script")]
    return rune::compile(source, session);
    #[cfg(not(feature = "script"))]
    {
        let _ = (source, session);
        Err(ScriptError::new(
            None,
            "this holdup was built without scripts: `make build` makes one that has them (the feature `script`)",
        ))
    }
}

/// Runs `body`, in which scripts are compiled and called on this thread, with so many bytes for their values.
pub(crate) fn within<T>(memory: usize, body: impl FnOnce() -> T) -> T {
    #[cfg(feature = "script")]
    return rune::within(memory, body);
    #[cfg(not(feature = "script"))]
    {
        let _ = memory;
        body()
    }
}

#[cfg(all(test, feature = "script"))]
#[path = "script_tests.rs"]
mod tests;

#[cfg(all(test, feature = "script"))]
#[path = "script_limits_tests.rs"]
mod limits_tests;
