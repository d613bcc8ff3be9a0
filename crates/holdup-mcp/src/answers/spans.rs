//! Units of work: which there are, and why the slow ones are slow.

use holdup_analysis::annotate::annotate;
use holdup_analysis::spans::{self, Cause, Done, NamedSpans, OneSpan};
use serde_json::{Value, json};

use crate::arguments;
use crate::desk::Desk;
use crate::shape::Answer;

/// Names, causes and pieces that are shown; the others are counted.
const NAMES: usize = 12;
const CAUSES: usize = 5;
const PIECES: usize = 8;
/// The share that is called slow if nobody says.
const SLOW: f64 = 0.01;

pub(crate) fn spans(desk: &Desk, asked: &arguments::Spans) -> Result<Value, String> {
    match (asked.id, &asked.name) {
        (Some(id), _) => one(desk, &asked.trace, id),
        (None, Some(name)) => slow_ones(desk, asked, name),
        (None, None) => names(desk, &asked.trace),
    }
}

fn names(desk: &Desk, path: &str) -> Result<Value, String> {
    let trace = desk.trace(path)?;
    let mut names = spans::names(&trace).map_err(|e| e.to_string())?;
    if names.is_empty() {
        return Ok(Answer::new().with("spans", "none").with("note", "record with --span to have some").finish());
    }
    let further = names.len().saturating_sub(NAMES);
    // How much longer the slow ones take, all together.
    let tail = |n: &NamedSpans| (n.p99_s - n.p50_s).max(0.0) * n.count as f64;
    names.sort_by(|a, b| tail(b).total_cmp(&tail(a)).then_with(|| a.name.cmp(&b.name)));
    names.truncate(NAMES);
    let mut answer = Answer::new().with("spans", &names).with("further_names", further);
    for name in names.iter().filter(|n| n.count > n.open).take(2) {
        answer = answer.next("spans", "why the slow ones are slow", &json!({"trace": path, "name": name.name}));
    }
    let table = json!({"trace": path, "table": "spans", "by": ["name", "argument"], "top": 10});
    Ok(answer.next("table", "what they were about", &table).finish())
}

fn slow_ones(desk: &Desk, asked: &arguments::Spans, name: &str) -> Result<Value, String> {
    let (path, slow) = (asked.trace.as_str(), asked.slow.unwrap_or(SLOW));
    if !(slow > 0.0 && slow <= 0.5) {
        return Err("slow: which share is called slow, above 0 and at most 0.5, such as 0.01".into());
    }
    let trace = desk.trace(path)?;
    let options = spans::Options { name: name.to_owned(), argument: asked.argument.clone().unwrap_or_default(), slow };
    let found = spans::explain(&trace, path, &options).map_err(|e| e.to_string())?;
    let causes: Vec<&Cause> = found.causes.iter().take(CAUSES).collect();
    let open = found.names.iter().find(|n| n.name == found.name).map_or(0, |n| n.open);
    let mut answer = Answer::new()
        .with("name", &found.name)
        .with("slow", &found.slow)
        .with("typical", &found.typical)
        .with("causes", causes)
        .with("further_causes", found.causes.len().saturating_sub(CAUSES))
        .with("confidence", found.confidence)
        .with("doubt", &found.doubt)
        .with("not_seen_whole", open)
        .with("unaccounted", found.unaccounted)
        .with("worst", found.worst.iter().map(shown).collect::<Vec<_>>());
    if let Some(worst) = found.worst.first() {
        answer = answer.next("spans", "the slowest one, piece by piece", &json!({"trace": path, "id": worst.id}));
    }
    if let Some(chain) = found.worst.iter().find_map(|worst| longest_wait(path, worst)) {
        answer = answer.next("chain", "what a slow one waited for, hop by hop", &chain);
    }
    // What a function calls may have had all the samples.
    let has_samples = |cause: &&Cause| annotate(&trace, path, &cause.function, desk.workplace.disassembler()).is_ok();
    if let Some(cause) = found.causes.first().filter(|c| !c.function.is_empty()).filter(has_samples) {
        let function = json!({"trace": path, "function": cause.function});
        answer = answer.next("disasm", "the function of the first cause", &function);
    }
    Ok(answer.finish())
}

fn one(desk: &Desk, path: &str, id: u64) -> Result<Value, String> {
    let trace = desk.trace(path)?;
    let found = spans::one(&trace, path, id).map_err(|e| e.to_string())?;
    let until = found.span.start_s + found.span.length_s;
    let window = json!({"trace": path, "window": [found.span.start_s, until]});
    let mut answer = Answer::new().with("name", &found.name).with("outcome", found.outcome).with("span", &found.span);
    if let Some(chain) = longest_wait(path, &found.span) {
        answer = answer.next("chain", "its longest wait, hop by hop", &chain);
    }
    Ok(answer.next("explain", "what held the machine up meanwhile", &window).finish())
}

/// A span with its longest pieces.
fn shown(span: &OneSpan) -> Value {
    let mut lengths: Vec<f64> = span.pieces.iter().map(|p| p.length_s).collect();
    lengths.sort_by(|a, b| b.total_cmp(a));
    let least = lengths.get(PIECES - 1).copied().unwrap_or(0.0);
    let (told, short): (Vec<_>, Vec<_>) = span.pieces.iter().partition(|p| p.length_s >= least);
    let rest = span.rest_s + short.iter().map(|p| p.length_s).sum::<f64>();
    json!({
        "id": span.id, "start_s": span.start_s, "length_s": span.length_s, "who": span.who, "argument": span.argument,
        "pieces": told, "rest_s": rest,
    })
}

/// Where to ask for the chain of its longest wait: at the middle of the longest piece that another thread or a device had, if there is one.
fn longest_wait(path: &str, span: &OneSpan) -> Option<Value> {
    let is_wait = |what| !matches!(what, Done::Ran | Done::Behind | Done::Unknown);
    // A request that lay in a queue while its own thread ran did not wait by a thread of its own.
    let waits =
        span.pieces.iter().filter(|p| is_wait(p.what) && (p.what != Done::WaitedFor || p.who.tid != span.who.tid));
    let longest = waits.max_by(|a, b| a.length_s.total_cmp(&b.length_s))?;
    let middle = span.start_s + longest.from_s + longest.length_s / 2.0;
    Some(json!({"trace": path, "at_s": middle, "thread": span.who.tid.to_string()}))
}
