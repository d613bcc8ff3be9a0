//! Conversions of numbers, as methods.
//!
//! A script has one integer and one floating-point type, and a driver binds them to what the statement asks for. These methods
//! say what a workload means, and check that it fits.

use rune::{ContextError, Module};

/// Adds the conversions to the script's integers and floating-point numbers.
pub(super) fn install(module: &mut Module) -> Result<(), ContextError> {
    module.associated_function("to_i64", |x: f64| x as i64)?;
    module.associated_function("to_i32", |x: f64| fits(x as i64, i64::from(i32::MIN), i64::from(i32::MAX)))?;
    module.associated_function("to_i16", |x: f64| fits(x as i64, i64::from(i16::MIN), i64::from(i16::MAX)))?;
    module.associated_function("to_i8", |x: f64| fits(x as i64, i64::from(i8::MIN), i64::from(i8::MAX)))?;
    module.associated_function("to_f32", |x: f64| f64::from(x as f32))?;
    module.associated_function("clamp", |x: f64, low: f64, high: f64| x.max(low).min(high))?;

    module.associated_function("to_i32", |x: i64| fits(x, i64::from(i32::MIN), i64::from(i32::MAX)))?;
    module.associated_function("to_i16", |x: i64| fits(x, i64::from(i16::MIN), i64::from(i16::MAX)))?;
    module.associated_function("to_i8", |x: i64| fits(x, i64::from(i8::MIN), i64::from(i8::MAX)))?;
    module.associated_function("to_f32", |x: i64| f64::from(x as f32))?;
    module.associated_function("to_f64", |x: i64| x as f64)?;
    module.associated_function("clamp", |x: i64, low: i64, high: i64| x.max(low).min(high))?;
    Ok(())
}

/// The number, or none if it is out of range.
fn fits(x: i64, low: i64, high: i64) -> Option<i64> {
    (low..=high).contains(&x).then_some(x)
}
