//! `ctx`: what a script's functions get to talk to the server with.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use rune::runtime::{Object, Ref, VmResult};
use rune::{Any, ContextError, Module, Value, vm_panic, vm_try};

use super::failure::Failure;
use super::presets::Preset;
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
    /// Which thread of the run this is, from 0.
    #[rune(get, copy)]
    worker_id: i64,
    /// How many there are.
    #[rune(get, copy)]
    worker_count: i64,
    presets: RefCell<BTreeMap<String, Preset>>,
}

impl Context {
    pub(super) fn new(session: Rc<Session>) -> Result<Context, rune::alloc::Error> {
        let about = session.about();
        let [worker_id, worker_count] = [about.worker, about.workers].map(|number| number as i64);
        let data = Value::new(data(&about.functions)?)?;
        let presets = RefCell::default();
        let started = Instant::now();
        Ok(Context { session, started, load_cycle_count: 0, data, worker_id, worker_count, presets })
    }
}

/// What `ctx.data` has from the beginning: the functions that the run calls, as pairs of name and weight.
fn data(functions: &[(String, f64)]) -> Result<Object, rune::alloc::Error> {
    let mut pairs = rune::runtime::Vec::new();
    for (name, weight) in functions {
        let name = Value::new(rune::alloc::String::try_from(name.as_str())?)?;
        let pair = rune::runtime::OwnedTuple::try_from(rune::alloc::try_vec![name, Value::from(*weight)])?;
        pairs.push(Value::try_from(pair)?)?;
    }
    let mut data = Object::new();
    data.insert(rune::alloc::String::try_from("functions_to_invoke")?, Value::new(pairs)?)?;
    Ok(data)
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

/// Sets a field of the report.
#[rune::function(instance)]
fn set_report_field(ctx: &Context, name: &str, text: &str) -> VmResult<()> {
    told(ctx.session.set_field(name, text))
}

/// Records a value of one of the script's own metrics.
#[rune::function(instance)]
#[allow(clippy::needless_pass_by_value)] // As the engine passes it.
fn record_metric(ctx: &Context, name: &str, value: Value) -> VmResult<()> {
    let number = value.as_float().or_else(|_| value.as_signed().map(|whole| whole as f64));
    match number {
        Ok(number) => told(ctx.session.record(name, number)),
        Err(_) => vm_panic!(format!("the metric {name:?} is a number, and not of type {}", value.type_info())),
    }
}

/// Says which values of a metric are better: the "higher" or the "lower".
#[rune::function(instance)]
fn declare_metric(ctx: &Context, name: &str, better: &str) -> VmResult<()> {
    told(ctx.session.declare(name, better))
}

fn told(result: Result<(), crate::driver::DriverError>) -> VmResult<()> {
    match result {
        Ok(()) => VmResult::Ok(()),
        Err(error) => vm_panic!(error.message),
    }
}

/// Makes a preset of partitions that differ in size.
#[rune::function(instance)]
async fn init_partition_row_distribution_preset(
    ctx: Ref<Context>,
    name: Ref<str>,
    rows: i64,
    base: i64,
    groups: Ref<str>,
) -> Result<(), Failure> {
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    let preset = Preset::new(count(rows), count(base), &groups)?;
    ctx.session.set_field(&format!("partitions of {}", &*name), &preset.describe())?;
    ctx.presets.borrow_mut().insert(name.to_owned(), preset);
    Ok(())
}

/// Makes batches of its rows; how many cover them all.
#[rune::function(instance)]
async fn set_partition_batch_size(ctx: Ref<Context>, name: Ref<str>, size: i64) -> Result<i64, Failure> {
    let mut presets = ctx.presets.borrow_mut();
    let preset = presets.get_mut(&*name).ok_or_else(|| Failure::new(no_preset(&name)))?;
    let all = preset.set_batch_size(u64::try_from(size).unwrap_or(0))?;
    ctx.session.set_field(&format!("batches of {}", &*name), &all.to_string())?;
    Ok(all.cast_signed())
}

/// The partition of a cycle's row.
#[derive(Any)]
#[rune(item = ::latte)]
struct Partition {
    #[rune(get, set, copy, add_assign, sub_assign)]
    idx: i64,
    #[rune(get, copy)]
    rows_num: i64,
}

impl Context {
    fn partition(&self, name: &str, cycle: i64) -> VmResult<Partition> {
        let Some(place) = self.presets.borrow().get(name).map(|preset| preset.at(cycle.cast_unsigned())) else {
            vm_panic!(no_preset(name))
        };
        VmResult::Ok(Partition { idx: place.partition.cast_signed(), rows_num: place.rows.cast_signed() })
    }
}

fn no_preset(name: &str) -> String {
    format!("there is no preset {name:?}: `prepare` makes it with `init_partition_row_distribution_preset`")
}

/// Its number, and how many rows it has.
#[rune::function(instance)]
async fn get_partition_info(ctx: Ref<Context>, name: Ref<str>, cycle: i64) -> VmResult<Partition> {
    ctx.partition(&name, cycle)
}

/// Its number.
#[rune::function(instance)]
async fn get_partition_idx(ctx: Ref<Context>, name: Ref<str>, cycle: i64) -> VmResult<i64> {
    VmResult::Ok(vm_try!(ctx.partition(&name, cycle)).idx)
}

/// The partition of a cycle's batch, and the cycles whose rows it has.
#[rune::function(instance)]
async fn get_partition_batch(ctx: Ref<Context>, name: Ref<str>, cycle: i64) -> VmResult<Result<Object, Failure>> {
    let presets = ctx.presets.borrow();
    let Some(preset) = presets.get(&*name) else { return VmResult::Ok(Err(Failure::new(no_preset(&name)))) };
    let Some((place, cycles)) = preset.batch(cycle.cast_unsigned()) else {
        return VmResult::Ok(Err(Failure::new(format!(
            "{:?} has no batches: `set_partition_batch_size` makes them",
            &*name
        ))));
    };
    let mut rows = rune::runtime::Vec::new();
    for cycle in cycles {
        vm_try!(rows.push(Value::from(cycle.cast_signed())));
    }
    let mut batch = Object::new();
    let key = rune::alloc::String::try_from;
    vm_try!(batch.insert(vm_try!(key("idx")), Value::from(place.partition.cast_signed())));
    vm_try!(batch.insert(vm_try!(key("rows")), vm_try!(Value::new(rows))));
    VmResult::Ok(Ok(batch))
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
    module.ty::<Partition>()?;
    module.function_meta(set_report_field)?;
    module.function_meta(record_metric)?;
    module.function_meta(declare_metric)?;
    module.function_meta(init_partition_row_distribution_preset)?;
    module.function_meta(set_partition_batch_size)?;
    module.function_meta(get_partition_info)?;
    module.function_meta(get_partition_idx)?;
    module.function_meta(get_partition_batch)?;
    Ok(())
}
