//! `ctx`: what a script's functions get to talk to the server with.

use std::rc::Rc;
use std::time::Instant;

use rune::runtime::{Object, Ref};
use rune::{Any, ContextError, Module, Value};

use super::failure::Failure;
use super::values::{batch, expected_rows, from_script, to_script};
use crate::driver::Want;
use crate::session::Session;

/// The script's way to the server, and what it keeps between calls. One for each thread.
#[derive(Any)]
#[rune(item = ::latte)]
pub(super) struct Context {
    session: Rc<Session>,
    started: Instant,
    /// How many cycles `load` runs.
    #[rune(get, set, add_assign, copy)]
    pub(super) load_cycle_count: u64,
    /// What the script likes to keep.
    #[rune(get, set)]
    data: Value,
}

impl Context {
    pub(super) fn new(session: Rc<Session>) -> Result<Context, rune::alloc::Error> {
        Ok(Context { session, started: Instant::now(), load_cycle_count: 0, data: Value::new(Object::new())? })
    }
}

/// Runs a statement.
#[rune::function(instance)]
async fn execute(ctx: Ref<Context>, statement: Ref<str>) -> Result<(), Failure> {
    ctx.session.execute(&statement, &crate::driver::Args::None, Want::Nothing).await?;
    Ok(())
}

/// Runs a statement and returns its rows, or its reply.
#[rune::function(instance)]
async fn execute_with_result(ctx: Ref<Context>, statement: Ref<str>) -> Result<Value, Failure> {
    let reply = ctx.session.execute(&statement, &crate::driver::Args::None, Want::Values).await?;
    to_script(reply.values.unwrap_or(crate::driver::Value::Null))
}

/// Prepares a statement and keeps it under a key.
#[rune::function(instance)]
async fn prepare(ctx: Ref<Context>, key: Ref<str>, statement: Ref<str>) -> Result<(), Failure> {
    Ok(ctx.session.prepare(&key, &statement).await?)
}

/// Runs what is kept under a key.
#[rune::function(instance)]
async fn execute_prepared(ctx: Ref<Context>, key: Ref<str>, args: Value) -> Result<(), Failure> {
    ctx.session.execute_prepared(&key, &from_script(&args)?, Want::Nothing).await?;
    Ok(())
}

/// Runs what is kept under a key and returns its rows, or its reply.
#[rune::function(instance)]
async fn execute_prepared_with_result(ctx: Ref<Context>, key: Ref<str>, args: Value) -> Result<Value, Failure> {
    let reply = ctx.session.execute_prepared(&key, &from_script(&args)?, Want::Values).await?;
    to_script(reply.values.unwrap_or(crate::driver::Value::Null))
}

/// Runs a statement that should return so many rows: `[n]`, `[least, most]`, each with a message if one likes.
#[rune::function(instance)]
async fn execute_with_validation(ctx: Ref<Context>, statement: Ref<str>, expected: Value) -> Result<(), Failure> {
    let expected = expected_rows(&expected)?;
    ctx.session.execute_expecting(&statement, &crate::driver::Args::None, &expected).await?;
    Ok(())
}

/// Runs what is kept under a key, which should return so many rows.
#[rune::function(instance)]
async fn execute_prepared_with_validation(
    ctx: Ref<Context>,
    key: Ref<str>,
    args: Value,
    expected: Value,
) -> Result<(), Failure> {
    let expected = expected_rows(&expected)?;
    ctx.session.execute_prepared_expecting(&key, &from_script(&args)?, &expected).await?;
    Ok(())
}

/// Runs what is kept under several keys as one batch, each with its arguments.
#[rune::function(instance)]
async fn batch_prepared(ctx: Ref<Context>, keys: Value, args: Value) -> Result<(), Failure> {
    ctx.session.batch_prepared(&batch(&keys, &args)?).await?;
    Ok(())
}

/// The datacenters of the cluster.
#[rune::function(instance)]
async fn get_datacenters(ctx: Ref<Context>) -> Result<Vec<String>, Failure> {
    Ok(ctx.session.datacenters()?)
}

/// Ends the run with an error of the script's own.
#[rune::function(instance)]
async fn signal_failure(_ctx: Ref<Context>, message: Ref<str>) -> Result<(), Failure> {
    Err(Failure::new(message.to_owned()))
}

/// Seconds since the script was compiled.
#[rune::function(instance)]
fn elapsed_secs(ctx: &Context) -> f64 {
    ctx.started.elapsed().as_secs_f64()
}

/// Adds `ctx`.
pub(super) fn install(module: &mut Module) -> Result<(), ContextError> {
    module.ty::<Context>()?;
    module.function_meta(execute)?;
    module.function_meta(execute_with_result)?;
    module.function_meta(prepare)?;
    module.function_meta(execute_prepared)?;
    module.function_meta(execute_prepared_with_result)?;
    module.function_meta(execute_with_validation)?;
    module.function_meta(execute_prepared_with_validation)?;
    module.function_meta(batch_prepared)?;
    module.function_meta(get_datacenters)?;
    module.function_meta(signal_failure)?;
    module.function_meta(elapsed_secs)?;
    Ok(())
}
