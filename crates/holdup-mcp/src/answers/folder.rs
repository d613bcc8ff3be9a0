//! What there is to ask about.

use serde_json::{Value, json};

use crate::arguments::Nothing;
use crate::desk::Desk;
use crate::folder::Entry;
use crate::shape::Answer;

pub(crate) fn list_traces(desk: &Desk, _: &Nothing) -> Result<Value, String> {
    let (found, is_all) = desk.folder.list();
    let age = |entry: &Entry| entry.modified.elapsed().map_or(0, |age| age.as_secs());
    let files: Vec<Value> =
        found.iter().map(|entry| json!({"trace": entry.name, "bytes": entry.bytes, "age_s": age(entry)})).collect();
    let answer = Answer::new().with("files", &files).with("is_all", is_all);
    let first = found.first().map(|entry| json!({"trace": entry.name}));
    Ok(match first {
        Some(trace) => answer.next("explain", "what held the cores up", &trace).finish(),
        None => answer.with("note", "the folder holds no file").finish(),
    })
}
