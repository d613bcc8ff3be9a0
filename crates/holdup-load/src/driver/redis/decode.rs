//! Replies of Redis as values of a script.

use ::redis::Value as Answer;

use crate::driver::{ServerInfo, Value};

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

/// What `INFO server` tells: kin of Redis keep its field for clients that look for it, and have another of their own.
pub(super) fn about(info: &str) -> Option<ServerInfo> {
    let field =
        |name: &str| info.lines().find_map(|line| line.split_once(':').filter(|pair| pair.0 == name)).map(|p| p.1);
    let software = field("server_name").unwrap_or("redis");
    Some(ServerInfo::new(software, field(&format!("{software}_version"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_what_it_calls_itself() {
        for (info, wanted) in [
            ("# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:0\r\n", Some("redis 7.0.15")),
            ("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n", Some("valkey 8.1.1")),
            ("# Server\r\n", None),
        ] {
            assert_eq!(about(info).map(|about| about.to_string()).as_deref(), wanted);
        }
    }
}
