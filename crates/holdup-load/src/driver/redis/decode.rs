//! Replies of Redis as values of a script.

use ::redis::Value as Answer;

use crate::driver::Value;

/// Elements of an array, a set or a map; 0 for nothing, 1 for anything else.
pub(super) fn count(answer: &Answer) -> u64 {
    match answer {
        Answer::Nil => 0,
        Answer::Array(items) | Answer::Set(items) => items.len() as u64,
        Answer::Map(pairs) => pairs.len() as u64,
        Answer::Attribute { data, .. } => count(data),
        _ => 1,
    }
}

/// Bytes are a text where they are UTF-8.
pub(super) fn value(answer: &Answer) -> Value {
    match answer {
        Answer::Nil => Value::Null,
        Answer::Int(int) => Value::Int(*int),
        Answer::Double(float) => Value::Float(*float),
        Answer::Boolean(bool) => Value::Bool(*bool),
        Answer::Okay => Value::Text("OK".into()),
        Answer::SimpleString(text) | Answer::VerbatimString { text, .. } => Value::Text(text.clone()),
        Answer::BulkString(bytes) | Answer::BigNumber(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Blob(bytes.clone()),
        },
        Answer::Array(items) | Answer::Set(items) => Value::List(items.iter().map(value).collect()),
        Answer::Push { data, .. } => Value::List(data.iter().map(value).collect()),
        Answer::Map(pairs) => Value::Map(pairs.iter().map(|(key, item)| (value(key), value(item))).collect()),
        Answer::Attribute { data, .. } => value(data),
        // Errors inside of a reply were taken out before; a reply that is newer than this driver can't be shown.
        _ => Value::Null,
    }
}
