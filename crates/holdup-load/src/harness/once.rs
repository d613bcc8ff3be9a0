//! The parts of a run that happen once: connecting, compiling, `schema`, `erase`, `prepare`.

use std::rc::Rc;
use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use super::RunError;
use super::watch::{self, Beat, on_a_thread};
use crate::driver::{self, ConnectOptions};
use crate::script::{self, FunctionInfo, ParamInfo, Script, ScriptError, Source};
use crate::session::{About, Patience, Session};

/// The runtime of one thread.
pub(super) fn runtime() -> Result<Runtime, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| RunError::System(format!("no runtime could be started: {e}")))
}

/// Beats for as long as the thread's tasks run: whenever the script waits for something, this task has its turn.
pub(super) fn keep_beating(beat: &Arc<Beat>) {
    let beat = Arc::clone(beat);
    tokio::task::spawn_local(async move {
        loop {
            beat.beat();
            tokio::time::sleep(watch::EVERY).await;
        }
    });
}

/// Compiles the script and connects. A wrong script is told before any connection is made.
pub(super) async fn set_up(
    source: &Source,
    connect: Option<&ConnectOptions>,
    patience: Patience,
    about: About,
    beat: &Beat,
) -> Result<(Rc<Session>, Rc<dyn Script>), RunError> {
    beat.doing("compiling it");
    // Compiled on this thread and dropped again: cheap beside connecting, and no server is needed to learn of a typing error.
    if connect.is_some() {
        check(script::compile(source, &Rc::new(Session::new(None, patience)))?, source)?;
    }
    let driver = match connect {
        Some(options) => Some(driver::connect(options).await.map_err(|e| RunError::Connect(e.to_string()))?),
        None => None,
    };
    let session = Rc::new(Session::of(driver, patience, about));
    let script = check(script::compile(source, &session)?, source)?;
    Ok((session, script))
}

/// Every parameter of the command line has to be one of the script's.
fn check(script: Rc<dyn Script>, source: &Source) -> Result<Rc<dyn Script>, ScriptError> {
    let known: Vec<&str> = script.params().iter().map(|param| param.name.as_str()).collect();
    match source.params.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        Some((name, _)) if known.is_empty() => {
            Err(ScriptError::new(None, format!("the script has no parameters, so none called `{name}`")))
        }
        Some((name, _)) => {
            Err(ScriptError::new(None, format!("the script has no parameter `{name}`, but {}", known.join(", "))))
        }
        None => Ok(script),
    }
}

/// Calls a function of the script, if it has it. Whether it has.
pub(super) async fn call_if_there(script: &dyn Script, function: &str, beat: &Beat) -> Result<bool, ScriptError> {
    if !script.functions().iter().any(|info| info.name == function) {
        return Ok(false);
    }
    beat.doing(format!("`{function}`"));
    script.caller(function)?.call(0).await.map_err(|error| *error)?;
    Ok(true)
}

/// What was called of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called<'a> {
    /// The functions, without those that it does not have.
    pub functions: Vec<&'a str>,
    /// How often it wants `load` to be called, if it said so.
    pub load_count: Option<u64>,
}

/// Connects, and calls functions of a script once, in order. Those that the script does not have are left out.
///
/// # Errors
/// The script is wrong, the server can't be reached, or a function failed.
pub fn run_once<'a>(
    source: &Source,
    connect: Option<&ConnectOptions>,
    patience: Patience,
    functions: &[&'a str],
) -> Result<Called<'a>, RunError> {
    let (its, options) = (source.clone(), connect.cloned());
    let wanted: Vec<String> = functions.iter().map(|function| (*function).to_owned()).collect();
    let (called, load_count) = on_a_thread(source, move |beat| {
        let runtime = runtime()?;
        LocalSet::new().block_on(&runtime, async {
            keep_beating(beat);
            let (_session, script) = set_up(&its, options.as_ref(), patience, About::default(), beat).await?;
            let mut called = Vec::new();
            for function in wanted {
                if call_if_there(&*script, &function, beat).await? {
                    called.push(function);
                }
            }
            Ok((called, script.load_count()))
        })
    })?;
    let functions = functions.iter().copied().filter(|function| called.iter().any(|name| name == function)).collect();
    Ok(Called { functions, load_count })
}

/// The functions and parameters of a script. Nothing is called.
///
/// # Errors
/// The script is wrong.
pub fn describe(source: &Source) -> Result<(Vec<FunctionInfo>, Vec<ParamInfo>), RunError> {
    let its = source.clone();
    on_a_thread(source, move |beat| {
        beat.doing("compiling it");
        let script = script::compile(&its, &Rc::new(Session::new(None, Patience::default())))?;
        let script = check(script, &its)?;
        Ok((script.functions().to_vec(), script.params().to_vec()))
    })
}
