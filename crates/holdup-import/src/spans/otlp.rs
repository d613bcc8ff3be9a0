//! OpenTelemetry's exports in JSON: one document, or one each line as the collector's file exporter writes.
//! <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>

use holdup_trace::{Error, Result};
use serde::Deserialize;
use serde_json::Value;

use super::{Added, Clock, MOST_SPANS, Told, Whom};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Export {
    // Lines of another signal have none.
    #[serde(default)]
    resource_spans: Option<Vec<ResourceSpans>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans {
    #[serde(default)]
    resource: Option<Resource>,
    #[serde(default, alias = "instrumentationLibrarySpans")]
    scope_spans: Option<Vec<ScopeSpans>>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(default)]
    attributes: Option<Vec<Attribute>>,
}

#[derive(Deserialize)]
struct ScopeSpans {
    #[serde(default)]
    spans: Option<Vec<OtlpSpan>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OtlpSpan {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    start_time_unix_nano: Value,
    #[serde(default)]
    end_time_unix_nano: Value,
    #[serde(default)]
    attributes: Option<Vec<Attribute>>,
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
        for resource in document.resource_spans.iter().flatten() {
            let of_resource = resource.resource.as_ref().and_then(|resource| resource.attributes.as_deref());
            let scopes = resource.scope_spans.iter().flatten();
            for span in scopes.flat_map(|scope| scope.spans.iter().flatten()) {
                if told.len() >= MOST_SPANS {
                    added.leave_out("are more than can be read");
                    continue;
                }
                match one(span, of_resource.unwrap_or_default()) {
                    Some(span) => told.push(span),
                    None => added.leave_out("have no begin or no end"),
                }
            }
        }
    }
    Ok(told)
}

fn one(span: &OtlpSpan, resource: &[Attribute]) -> Option<Told> {
    let time = |value: &Value| number(value).filter(|&time| time > 0);
    let (start, end) = (time(&span.start_time_unix_nano)?, time(&span.end_time_unix_nano)?);
    let own = span.attributes.as_deref().unwrap_or_default();
    let of = |key: &str| [own, resource].iter().find_map(|all| find(all, key));
    let id = |key: &str| of(key).and_then(number).and_then(|n| u32::try_from(n).ok());
    let whom = Whom { tid: id("thread.id"), thread: None, pid: id("process.pid"), process: None, is_sure: false };
    let argument = ARGUMENTS.iter().find_map(|key| find(own, key)).map(text).unwrap_or_default();
    Some(Told { start, end, clock: Clock::Day, whom, name: named(span.name.as_deref()), argument })
}

fn named(name: Option<&str>) -> String {
    name.filter(|name| !name.is_empty()).unwrap_or("(unnamed)").to_owned()
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
