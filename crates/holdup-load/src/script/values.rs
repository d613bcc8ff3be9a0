//! Values of a script as values of a driver, and back.

use rune::alloc::fmt::TryWrite as _;
use rune::runtime::{Bytes, Formatter, Object, Vec as ScriptVec, VmResult};
use rune::{Any, ContextError, Module, Value};

use super::failure::Failure;
use crate::driver::{self, Args};
use crate::session::Expected;

/// A UUID, as a script sees it.
#[derive(Any, Clone, Copy, Debug, PartialEq, Eq)]
#[rune(item = ::latte)]
pub(super) struct Uuid(pub(super) [u8; 16]);

impl Uuid {
    fn text(self) -> String {
        let hex: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }

    #[rune::function(instance, protocol = DISPLAY_FMT)]
    fn display(&self, f: &mut Formatter) -> VmResult<()> {
        rune::vm_write!(f, "{}", self.text())
    }

    #[rune::function(instance, protocol = DEBUG_FMT)]
    fn debug(&self, f: &mut Formatter) -> VmResult<()> {
        rune::vm_write!(f, "{}", self.text())
    }
}

/// Adds the UUID type.
pub(super) fn install(module: &mut Module) -> Result<(), ContextError> {
    module.ty::<Uuid>()?;
    module.function_meta(Uuid::display)?;
    module.function_meta(Uuid::debug)?;
    Ok(())
}

/// The arguments of a statement: a list or tuple is positional, an object goes by names.
pub(super) fn from_script(args: &Value) -> Result<Args, Failure> {
    if let Ok(object) = args.borrow_ref::<Object>() {
        let pairs = object.iter().map(|(name, value)| Ok((name.as_str().to_owned(), value_of(value)?)));
        return Ok(Args::Named(pairs.collect::<Result<_, Failure>>()?));
    }
    match value_of(args)? {
        driver::Value::Null => Ok(Args::None),
        driver::Value::List(values) => Ok(Args::Positional(values)),
        _ => Err(Failure::new("the arguments of a statement are a list, a tuple or an object #{…}")),
    }
}

/// Statements of a batch: a list of keys, and one of their arguments.
pub(super) fn batch(keys: &Value, args: &Value) -> Result<Vec<(String, Args)>, Failure> {
    let wrong = || Failure::new("a batch is a list of keys, and a list with the arguments of each");
    let (keys, args) = (keys.borrow_ref::<ScriptVec>(), args.borrow_ref::<ScriptVec>());
    let (keys, args) = (keys.map_err(|_| wrong())?, args.map_err(|_| wrong())?);
    if keys.len() != args.len() {
        return Err(Failure::new(format!("a batch of {} keys has {} lists of arguments", keys.len(), args.len())));
    }
    let text = |key: &Value| key.borrow_string_ref().map(|key| key.to_owned()).map_err(|_| wrong());
    keys.iter().zip(args.iter()).map(|(key, args)| Ok((text(key)?, from_script(args)?))).collect()
}

/// The rows that a script expects: `[n]`, `[least, most]`, each with a message behind it if one likes.
pub(super) fn expected_rows(value: &Value) -> Result<Expected, Failure> {
    let wrong = || Failure::new("the rows to expect are [n] or [least, most], with a message behind them if you like");
    let driver::Value::List(mut parts) = value_of(value)? else { return Err(wrong()) };
    let message = match parts.pop() {
        Some(driver::Value::Text(message)) => message,
        Some(other) => {
            parts.push(other);
            String::new()
        }
        None => return Err(wrong()),
    };
    let count = |value: &driver::Value| match value {
        driver::Value::Int(count) => u64::try_from(*count).map_err(|_| wrong()),
        _ => Err(wrong()),
    };
    let rows = match parts.as_slice() {
        [exactly] => count(exactly)?..=count(exactly)?,
        [least, most] => count(least)?..=count(most)?,
        _ => return Err(wrong()),
    };
    if rows.is_empty() { Err(wrong()) } else { Ok(Expected { rows, message }) }
}

fn value_of(value: &Value) -> Result<driver::Value, Failure> {
    if let Some(plain) = plain(value) {
        return Ok(plain);
    }
    if let Ok(list) = value.borrow_ref::<ScriptVec>() {
        return Ok(driver::Value::List(list.iter().map(value_of).collect::<Result<_, _>>()?));
    }
    if let Ok(tuple) = value.borrow_tuple_ref() {
        return Ok(driver::Value::List(tuple.iter().map(value_of).collect::<Result<_, _>>()?));
    }
    if let Ok(object) = value.borrow_ref::<Object>() {
        let pairs =
            object.iter().map(|(key, value)| Ok((driver::Value::Text(key.as_str().to_owned()), value_of(value)?)));
        return Ok(driver::Value::Map(pairs.collect::<Result<_, Failure>>()?));
    }
    if let Ok(option) = value.borrow_ref::<Option<Value>>() {
        return match &*option {
            Some(value) => value_of(value),
            None => Ok(driver::Value::Null),
        };
    }
    Err(Failure::new(format!("a value of type {} can't be sent to a server", value.type_info())))
}

fn plain(value: &Value) -> Option<driver::Value> {
    if let Ok(number) = value.as_signed() {
        return Some(driver::Value::Int(number));
    }
    if let Ok(number) = value.as_float() {
        return Some(driver::Value::Float(number));
    }
    if let Ok(number) = value.as_unsigned() {
        return i64::try_from(number).ok().map(driver::Value::Int);
    }
    if let Ok(is) = value.as_bool() {
        return Some(driver::Value::Bool(is));
    }
    if let Ok(text) = value.borrow_string_ref() {
        return Some(driver::Value::Text(text.to_owned()));
    }
    if let Ok(uuid) = value.borrow_ref::<Uuid>() {
        return Some(driver::Value::Uuid(uuid.0));
    }
    if let Ok(bytes) = value.borrow_ref::<Bytes>() {
        return Some(driver::Value::Blob(bytes.as_slice().to_vec()));
    }
    value.into_unit().is_ok().then_some(driver::Value::Null)
}

/// A reply as a script sees it: rows are objects.
pub(super) fn to_script(value: driver::Value) -> Result<Value, Failure> {
    let made = match value {
        driver::Value::Null => rune::to_value(None::<Value>),
        driver::Value::Bool(is) => rune::to_value(is),
        driver::Value::Int(number) => rune::to_value(number),
        driver::Value::Float(number) => rune::to_value(number),
        driver::Value::Text(text) => rune::to_value(text),
        // As a text it can be compared with others, and sent again.
        driver::Value::Uuid(bytes) => rune::to_value(Uuid(bytes).text()),
        driver::Value::Blob(bytes) => {
            let bytes = rune::alloc::Vec::try_from(bytes.as_slice()).map_err(|e| Failure::new(e.to_string()))?;
            rune::to_value(Bytes::from_vec(bytes))
        }
        driver::Value::List(values) => {
            rune::to_value(values.into_iter().map(to_script).collect::<Result<Vec<Value>, Failure>>()?)
        }
        driver::Value::Map(pairs) => return object(pairs),
    };
    made.map_err(|e| Failure::new(e.to_string()))
}

fn object(pairs: Vec<(driver::Value, driver::Value)>) -> Result<Value, Failure> {
    let mut object = Object::new();
    for (key, value) in pairs {
        let key = match key {
            driver::Value::Text(text) => text,
            other => format!("{other:?}"),
        };
        let key = rune::alloc::String::try_from(key).map_err(|e| Failure::new(e.to_string()))?;
        object.insert(key, to_script(value)?).map_err(|e| Failure::new(e.to_string()))?;
    }
    rune::to_value(object).map_err(|e| Failure::new(e.to_string()))
}
