//! The tool that records, where that is allowed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::Whom;
use crate::arguments::Record;
use crate::desk::Desk;
use crate::shape::Answer;

/// How long a recording may take, in seconds.
const LONGEST: f64 = 60.0;
const SHORTEST: f64 = 0.1;

pub(crate) fn record(desk: &Desk, asked: &Record) -> Result<Value, String> {
    if !desk.may_record {
        return Err("this server was started without --allow-record".into());
    }
    if !(SHORTEST..=LONGEST).contains(&asked.seconds) {
        return Err(format!("seconds: {SHORTEST} to {LONGEST}"));
    }
    let whom = match (&asked.command, &asked.process) {
        (Some(_), Some(_)) => return Err("give a command or a process, not both".into()),
        (Some(command), None) if command.first().is_none_or(String::is_empty) => {
            return Err("the command is empty".into());
        }
        (Some(command), None) => Whom::Command(command.clone()),
        (None, Some(process)) => Whom::Processes(process.clone()),
        (None, None) => Whom::All,
    };
    let output = desk.folder.place(&asked.name)?;
    desk.workplace.record(&whom, Duration::from_secs_f64(asked.seconds), &output)?;
    let name = output.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let next = json!({"trace": name});
    Ok(Answer::new().with("trace", &name).next("explain", "what held the cores up", &next).finish())
}
