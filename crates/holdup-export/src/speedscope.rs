//! A file for speedscope: <https://www.speedscope.app/file-format-schema.json>.
//!
//! One profile for each kind of stacks, or for each kind and thread. What took the same path is one sample with its weight, so
//! the view "Left Heavy" is the one to look at; the order of the samples is that of their names, not of time.

use std::io::Write;

use holdup_analysis::label;
use holdup_base::named;
use holdup_trace::Trace;
use serde::Serialize;

use crate::stacks::{Choice, Group, Kind, NameId, Named, Unit, weigh};
use crate::study::studied;
use crate::{Result, Source};

named! {
    /// What a profile is made of.
    enum Type {
        /// Stacks with weights.
        Sampled = "sampled",
    }
}

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: &'a str,
    shared: Shared<'a>,
    profiles: Vec<Profile<'a>>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile<'a> {
    #[serde(rename = "type")]
    of: Type,
    name: String,
    unit: Unit,
    start_value: u64,
    end_value: u64,
    samples: Vec<&'a [NameId]>,
    weights: Vec<u64>,
}

/// Writes the file.
///
/// # Errors
/// If the trace is damaged, if the focus names no process, or if `out` takes no more.
pub fn write(source: &Source, choice: &Choice, out: &mut dyn Write) -> Result<()> {
    let kinds = if choice.kinds.is_empty() { Kind::ALL } else { choice.kinds.as_slice() };
    let found = studied(source, |study| weigh(study, kinds, choice.per_thread))?;
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("holdup ", env!("CARGO_PKG_VERSION")),
        name: source.name,
        shared: Shared { frames: found.names.iter().map(frame).collect() },
        profiles: found.groups.iter().map(|group| profile(source.trace, group)).collect(),
    };
    serde_json::to_writer(&mut *out, &file)?;
    Ok(out.write_all(b"\n")?)
}

/// The file of a function's source; else its module, which speedscope shows and colours by.
fn frame(named: &Named) -> Frame<'_> {
    let file = if named.file.is_empty() { &named.module } else { &named.file };
    Frame { name: &named.name, file }
}

fn profile<'a>(trace: &Trace, group: &'a Group) -> Profile<'a> {
    let weights: Vec<u64> = group.paths.iter().map(|(_, weight)| *weight).collect();
    let name = match group.thread {
        Some(thread) => {
            let tid = trace.thread(thread).map_or(0, |t| t.tid);
            let [process, name] = [label::process_name(trace, thread), label::thread_name(trace, thread)];
            format!("{process}/{name} ({tid}): {}", group.kind)
        }
        None => group.kind.name().to_owned(),
    };
    Profile {
        of: Type::Sampled,
        name,
        unit: group.unit,
        start_value: 0,
        end_value: weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(*weight)),
        samples: group.paths.iter().map(|(path, _)| path.as_slice()).collect(),
        weights,
    }
}
