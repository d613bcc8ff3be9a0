//! A request as a text: `POST /path?x={}` and `Name: value` lines, a blank line, a body, with places for values.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use serde_json::{Map, Number, Value as Json};

use crate::driver::template::{Places, Template};
use crate::driver::{Args, DriverError, Value, value};

/// A request with its places.
#[derive(Debug)]
pub(super) struct Message {
    method: Method,
    target: Template,
    headers: Vec<(HeaderName, Template)>,
    body: Template,
    places: Places,
}

impl Message {
    pub(super) fn parse(text: &str) -> Result<Message, DriverError> {
        let text = text.trim_start();
        let first = text.lines().next().unwrap_or_default().trim();
        let wrong = |why: String| DriverError::fatal(format!("The request {first:?} {why}."));
        let (method, target) = first
            .split_once(char::is_whitespace)
            .ok_or_else(|| wrong("is not a method and a target, such as GET /path".into()))?;
        let target = target.trim().trim_end_matches("HTTP/1.1").trim_end();
        let method: Method = method.parse().map_err(|_| wrong(format!("has no method {method:?}")))?;
        if !target.starts_with('/') || target.contains(char::is_whitespace) {
            return Err(wrong(format!("has the target {target:?}: it starts with a slash and has no blanks")));
        }
        let (head, body) = split_body(text);
        let mut places = Places::default();
        let target = Template::parse(target, &mut places).map_err(wrong)?;
        let mut headers = Vec::new();
        for line in head.lines().skip(1).map(str::trim) {
            let (name, value) =
                line.split_once(':').ok_or_else(|| wrong(format!("has the header {line:?} without a colon")))?;
            let name = name.trim().parse().map_err(|_| wrong(format!("has a header that can't be named {name:?}")))?;
            headers.push((name, Template::parse(value.trim(), &mut places).map_err(wrong)?));
        }
        let body = Template::parse(body, &mut places).map_err(wrong)?;
        places.check_kinds().map_err(wrong)?;
        Ok(Message { method, target, headers, body, places })
    }

    /// The request itself; `prefix` goes before its target.
    pub(super) fn request(&self, prefix: &str, args: &Args) -> Result<Request<Full<Bytes>>, DriverError> {
        self.places.check(args)?;
        let mut target = prefix.as_bytes().to_vec();
        self.target.fill(args, &mut target, encoded)?;
        let uri = Uri::try_from(&target[..]).map_err(|error| {
            DriverError::fatal(format!("The target {:?} can't be sent: {error}.", String::from_utf8_lossy(&target)))
        })?;
        let mut body = Vec::new();
        self.body.fill(args, &mut body, verbatim)?;
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        for (name, value) in &self.headers {
            let mut bytes = Vec::new();
            value.fill(args, &mut bytes, verbatim)?;
            let value = HeaderValue::from_bytes(&bytes).map_err(|_| {
                DriverError::fatal(format!(
                    "The header {name} can't be sent: its value has characters such as a line end."
                ))
            })?;
            request.headers_mut().append(name, value);
        }
        Ok(request)
    }
}

/// The header of a user and a password.
pub(super) fn basic(user: &str, password: &str) -> Result<HeaderValue, DriverError> {
    let mut value = HeaderValue::from_str(&format!("Basic {}", base64(format!("{user}:{password}").as_bytes())))
        .map_err(|_| DriverError::fatal(format!("User and password can't stand in the header {AUTHORIZATION}.")))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The body begins behind the first blank line.
fn split_body(text: &str) -> (&str, &str) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim().is_empty() {
            return (&text[..at], &text[at + line.len()..]);
        }
        at += line.len();
    }
    (text, "")
}

fn encoded(value: &Value, into: &mut Vec<u8>) -> Result<(), String> {
    let mut plain = Vec::new();
    verbatim(value, &mut plain)?;
    for byte in plain {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(byte);
        } else {
            into.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    Ok(())
}

/// As people write it; lists and maps are JSON.
fn verbatim(value: &Value, into: &mut Vec<u8>) -> Result<(), String> {
    match value {
        Value::Null => return Err("nothing has no text".into()),
        Value::Text(text) => into.extend_from_slice(text.as_bytes()),
        Value::Blob(bytes) => into.extend_from_slice(bytes),
        Value::Uuid(bytes) => into.extend_from_slice(value::show_uuid(bytes).as_bytes()),
        Value::Float(float) => into.extend_from_slice(float.to_string().as_bytes()),
        other => into.extend_from_slice(json(other)?.to_string().as_bytes()),
    }
    Ok(())
}

fn json(value: &Value) -> Result<Json, String> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(bool) => Json::Bool(*bool),
        Value::Int(int) => Json::Number((*int).into()),
        Value::Float(float) => Json::Number(Number::from_f64(*float).ok_or_else(|| format!("JSON has no {float}"))?),
        Value::Text(text) => Json::String(text.clone()),
        Value::Uuid(bytes) => Json::String(value::show_uuid(bytes)),
        Value::Blob(_) => return Err("JSON has no bytes".into()),
        Value::List(items) => Json::Array(items.iter().map(json).collect::<Result<_, _>>()?),
        Value::Map(pairs) => {
            let mut map = Map::new();
            for (key, value) in pairs {
                let Value::Text(key) = key else { return Err(format!("{} cannot be a key of JSON", key.kind())) };
                map.insert(key.clone(), json(value)?);
            }
            Json::Object(map)
        }
    })
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().enumerate().fold(0_u32, |bits, (index, byte)| bits | u32::from(*byte) << (16 - 8 * index));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
