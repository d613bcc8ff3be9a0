//! OpenTelemetry's exports in JSON: one document, or one each line as the collector's file exporter writes.
//! <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>

use holdup_trace::{Error, Result};
use serde::Deserialize;
use serde_json::Value;

use super::{Added, Clock, MOST_SPANS, Told, Whom};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Export {
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans {
    #[serde(default)]
    resource: Resource,
    #[serde(default, alias = "instrumentationLibrarySpans")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Default, Deserialize)]
struct Resource {
    #[serde(default)]
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
struct ScopeSpans {
    #[serde(default)]
    spans: Vec<OtlpSpan>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OtlpSpan {
    #[serde(default)]
    name: String,
    start_time_unix_nano: Value,
    end_time_unix_nano: Value,
    #[serde(default)]
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
struct Attribute {
    key: String,
    #[serde(default)]
    value: Value,
}

/// What a span is about, the first that it has.
const ARGUMENTS: [&str; 10] = [
    "url.path",
    "http.target",
    "http.route",
    "url.full",
    "http.url",
    "db.query.text",
    "db.statement",
    "rpc.method",
    "messaging.destination.name",
    "code.function",
];

/// Reads all documents of a file.
pub(super) fn read(bytes: &[u8], added: &mut Added) -> Result<Vec<Told>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut told = Vec::new();
    let mut documents = serde_json::Deserializer::from_slice(bytes).into_iter::<Export>();
    while let Some(document) = documents.next() {
        let document = match document {
            Ok(document) => document,
            // A file that is still written ends in the middle of a line.
            Err(e) if e.is_eof() && !told.is_empty() => {
                added.leave_out("stand in a document that is cut off");
                break;
            }
            Err(e) => {
                let at = documents.byte_offset();
                return Err(Error::Input(format!(
                    "is not an OTLP export in JSON, with resourceSpans, scopeSpans and spans: document at byte {at}: {e}"
                )));
            }
        };
        for resource in &document.resource_spans {
            for span in resource.scope_spans.iter().flat_map(|scope| &scope.spans) {
                if told.len() >= MOST_SPANS {
                    added.leave_out("are more than can be read");
                    continue;
                }
                match one(span, &resource.resource.attributes) {
                    Some(span) => told.push(span),
                    None => added.leave_out("have times that are no numbers"),
                }
            }
        }
    }
    Ok(told)
}

fn one(span: &OtlpSpan, resource: &[Attribute]) -> Option<Told> {
    let (start, end) = (number(&span.start_time_unix_nano)?, number(&span.end_time_unix_nano)?);
    let of = |key: &str| [&span.attributes[..], resource].iter().find_map(|all| find(all, key));
    let id = |key: &str| of(key).and_then(number).and_then(|n| u32::try_from(n).ok());
    let whom = Whom { tid: id("thread.id"), thread: None, pid: id("process.pid"), process: None };
    let argument = ARGUMENTS.iter().find_map(|key| find(&span.attributes, key)).map(text).unwrap_or_default();
    Some(Told { start, end, clock: Clock::Day, whom, name: span.name.clone(), argument })
}

/// An attribute's value, without the object that says of which type it is.
fn find<'a>(attributes: &'a [Attribute], key: &str) -> Option<&'a Value> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    found.value.as_object()?.values().next()
}

/// Numbers of 64 bits stand as texts.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
