//! Functions that make data of a cycle's number: the same number gives the same data, on any machine and thread.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Normal, Uniform};
use rune::runtime::{Function, VmError, VmResult};
use rune::{ContextError, Module, Value, vm_panic, vm_try};

use super::values::Uuid;

/// A bijection of 64-bit numbers that spreads neighbours (the finaliser of MurmurHash3, by Appleby).
fn spread(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// A hash of one number, from 0 to 2⁶³ − 1. The constant keeps 0 from being its own hash.
fn hash_of(i: i64) -> i64 {
    (spread(i.cast_unsigned() ^ 0x9e37_79b9_7f4a_7c15) >> 1).cast_signed()
}

fn hash_of_two(a: i64, b: i64) -> i64 {
    hash_of(spread(a.cast_unsigned().wrapping_add(0x632b_e59b_d9b4_e019)).cast_signed() ^ b)
}

/// A generator for a cycle. Seeds that differ by one give unrelated streams, because they are spread first.
fn random(seed: i64) -> SmallRng {
    SmallRng::seed_from_u64(hash_of(seed).cast_unsigned())
}

#[rune::function]
fn hash(i: i64) -> i64 {
    hash_of(i)
}

#[rune::function]
fn hash2(a: i64, b: i64) -> i64 {
    hash_of_two(a, b)
}

#[rune::function]
fn hash_range(i: i64, max: i64) -> VmResult<i64> {
    match hash_of(i).checked_rem(max) {
        Some(value) if max > 0 => VmResult::Ok(value),
        _ => vm_panic!(format!("hash_range wants a range above 0, not {max}")),
    }
}

#[rune::function]
fn hash_select(i: i64, collection: &[Value]) -> VmResult<Value> {
    if collection.is_empty() {
        vm_panic!("hash_select got an empty list");
    }
    let at = hash_of(i).cast_unsigned() % collection.len() as u64;
    VmResult::Ok(collection[at as usize].clone())
}

/// A random UUID (version 4) of a cycle.
#[rune::function]
fn uuid(i: i64) -> Uuid {
    let mut bytes = random(i).random::<[u8; 16]>();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uuid(bytes)
}

#[rune::function]
fn normal(i: i64, mean: f64, deviation: f64) -> VmResult<f64> {
    match Normal::new(mean, deviation) {
        Ok(normal) => VmResult::Ok(normal.sample(&mut random(i))),
        Err(e) => vm_panic!(format!("normal({i}, {mean}, {deviation}): {e}")),
    }
}

#[rune::function]
fn uniform(i: i64, low: f64, high: f64) -> VmResult<f64> {
    match Uniform::new(low, high) {
        Ok(uniform) => VmResult::Ok(uniform.sample(&mut random(i))),
        Err(e) => vm_panic!(format!("uniform({i}, {low}, {high}): {e}")),
    }
}

/// The same from a distribution whose numbers a server may keep in four bytes.
#[rune::function]
fn normal_f32(i: i64, mean: f64, deviation: f64) -> VmResult<f64> {
    match Normal::new(mean, deviation) {
        Ok(normal) => VmResult::Ok(f64::from(normal.sample(&mut random(i)) as f32)),
        Err(e) => vm_panic!(format!("normal_f32({i}, {mean}, {deviation}): {e}")),
    }
}

/// So many numbers of a normal distribution, as for a vector column.
#[rune::function]
fn normal_vec(i: i64, length: usize, mean: f64, deviation: f64) -> VmResult<rune::runtime::Vec> {
    match Normal::new(mean, deviation) {
        Ok(normal) => sampled(i, length, &normal),
        Err(e) => vm_panic!(format!("normal_vec({i}, {length}, {mean}, {deviation}): {e}")),
    }
}

/// So many numbers from `low` up to and without `high`.
#[rune::function]
fn uniform_vec(i: i64, length: usize, low: f64, high: f64) -> VmResult<rune::runtime::Vec> {
    match Uniform::new(low, high) {
        Ok(uniform) => sampled(i, length, &uniform),
        Err(e) => vm_panic!(format!("uniform_vec({i}, {length}, {low}, {high}): {e}")),
    }
}

/// Numbers of one stream: the first is what the function for a single number gives.
fn sampled(i: i64, length: usize, of: &impl Distribution<f64>) -> VmResult<rune::runtime::Vec> {
    let mut random = random(i);
    let mut values = vm_try!(rune::runtime::Vec::with_capacity(length));
    for _ in 0..length {
        vm_try!(values.push(Value::from(of.sample(&mut random))));
    }
    VmResult::Ok(values)
}

/// Whether a value of a row is null.
#[rune::function]
#[allow(clippy::needless_pass_by_value)] // As the engine passes it.
fn is_none(value: Value) -> bool {
    value.borrow_ref::<Option<Value>>().is_ok_and(|option| option.is_none())
}

/// Bytes of a cycle.
#[rune::function]
fn blob(i: i64, length: usize) -> VmResult<rune::runtime::Bytes> {
    // In memory that the engine counts, as below: the length is the script's.
    let mut bytes = rune::alloc::Vec::new();
    vm_try!(bytes.try_resize(length, 0_u8));
    random(i).fill(bytes.as_mut_slice());
    VmResult::Ok(rune::runtime::Bytes::from_vec(bytes))
}

/// Printable text of a cycle.
#[rune::function]
fn text(i: i64, length: usize) -> VmResult<rune::alloc::String> {
    let mut random = random(i);
    let mut text = vm_try!(rune::alloc::String::try_with_capacity(length));
    for _ in 0..length {
        vm_try!(text.try_push(char::from(random.random_range(b'!'..=b'~'))));
    }
    VmResult::Ok(text)
}

/// A list of what a function makes of 0, 1, ….
#[rune::function]
#[allow(clippy::needless_pass_by_value)] // As the engine passes it.
fn vector(length: usize, make: Function) -> VmResult<rune::runtime::Vec> {
    let mut values = vm_try!(rune::runtime::Vec::with_capacity(length));
    for i in 0..length {
        vm_try!(values.push(vm_try!(make.call::<Value>((i as u64,)))));
    }
    VmResult::Ok(values)
}

/// Texts in one, with a separator.
#[rune::function]
fn join(collection: &[Value], separator: &str) -> VmResult<rune::alloc::String> {
    let mut joined = rune::alloc::String::new();
    for (i, value) in collection.iter().enumerate() {
        if i > 0 {
            vm_try!(joined.try_push_str(separator));
        }
        vm_try!(joined.try_push_str(&vm_try!(value.borrow_string_ref().map_err(VmError::from))));
    }
    VmResult::Ok(joined)
}

/// Seconds since 1970.
#[rune::function]
fn now_timestamp() -> i64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs().cast_signed())
}

/// Adds all of them.
pub(super) fn install(module: &mut Module) -> Result<(), ContextError> {
    module.function_meta(hash)?;
    module.function_meta(hash2)?;
    module.function_meta(hash_range)?;
    module.function_meta(hash_select)?;
    module.function_meta(uuid)?;
    module.function_meta(normal)?;
    module.function_meta(uniform)?;
    module.function_meta(normal_f32)?;
    module.function_meta(normal_vec)?;
    module.function_meta(uniform_vec)?;
    module.function_meta(is_none)?;
    module.function_meta(blob)?;
    module.function_meta(text)?;
    module.function_meta(vector)?;
    module.function_meta(join)?;
    module.function_meta(now_timestamp)?;
    Ok(())
}
