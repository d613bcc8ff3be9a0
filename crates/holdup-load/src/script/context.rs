//! `ctx`: what a script's functions get to talk to the server with.

use std::rc::Rc;
use std::time::Instant;

use rune::runtime::{Object, Ref};
use rune::{Any, ContextError, Module, Value};

use super::failure::Failure;
use super::values::{from_script, to_script};
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
    module.function_meta(elapsed_secs)?;
    Ok(())
}
