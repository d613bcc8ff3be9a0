//! Tables of spans: a line of names, and a line for each span.

use holdup_trace::{Error, Result, Timestamp};

use super::{Added, Clock, MOST_SPANS, Told, Whom};

/// Columns, the clock of their times, and whether these are seconds.
const TIMES: [(&str, &str, Clock, bool); 4] = [
    ("start_s", "end_s", Clock::Trace, true),
    ("start_ns", "end_ns", Clock::Machine, false),
    ("start_unix_ns", "end_unix_ns", Clock::Day, false),
    ("start_unix_s", "end_unix_s", Clock::Day, true),
];

/// Where the columns are.
struct Columns {
    start: usize,
    end: usize,
    clock: Clock,
    are_seconds: bool,
    name: usize,
    argument: Option<usize>,
    thread: Option<usize>,
    process: Option<usize>,
}

/// Reads a table.
pub(super) fn read(bytes: &[u8], added: &mut Added) -> Result<Vec<Told>> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(bytes);
    let columns = columns(reader.byte_headers().map_err(|e| Error::Input(format!("is not a table: {e}")))?)?;
    let mut told = Vec::new();
    for record in reader.byte_records() {
        let record = record.map_err(|e| Error::Input(format!("is not a table: {e}")))?;
        if told.len() >= MOST_SPANS {
            added.leave_out("are more than can be read");
            continue;
        }
        match one(&record, &columns) {
            Some(span) => told.push(span),
            None => added.leave_out("have times that are no numbers"),
        }
    }
    Ok(told)
}

fn columns(names: &csv::ByteRecord) -> Result<Columns> {
    let at = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted.as_bytes()));
    let times =
        TIMES.iter().find_map(|&(start, end, clock, are_seconds)| Some((at(start)?, at(end)?, clock, are_seconds)));
    let (Some((start, end, clock, are_seconds)), Some(name)) = (times, at("name")) else {
        return Err(Error::Input(
            "is neither OTLP in JSON nor a table of spans: the first line of one names the columns name, start_s and end_s (seconds since the trace \
             began; or start_unix_ns and end_unix_ns, start_unix_s and end_unix_s, start_ns and end_ns by the machine's clock), and if you like \
             thread, process, argument"
                .into(),
        ));
    };
    Ok(Columns {
        start,
        end,
        clock,
        are_seconds,
        name,
        argument: at("argument"),
        thread: at("thread"),
        process: at("process"),
    })
}

fn one(record: &csv::ByteRecord, columns: &Columns) -> Option<Told> {
    let text = |at: usize| record.get(at).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let time = |at: usize| nanos(&text(at)?, columns.are_seconds);
    let (start, end) = (time(columns.start)?, time(columns.end)?);
    let whose = |at: Option<usize>| at.and_then(text).filter(|text| !text.is_empty());
    let (thread, process) = (whose(columns.thread), whose(columns.process));
    let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
    let (tid, pid) = (number(&thread), number(&process));
    let whom = Whom {
        tid,
        thread: thread.filter(|_| tid.is_none()),
        pid,
        process: process.filter(|_| pid.is_none()),
        is_sure: true,
    };
    let (name, argument) = (text(columns.name)?, columns.argument.and_then(text).unwrap_or_default());
    Some(Told { start, end, clock: columns.clock, whom, name, argument })
}

/// Whole numbers are read as such: a double has no room for nanoseconds since 1970.
fn nanos(text: &str, are_seconds: bool) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !are_seconds {
        return whole.parse().ok();
    }
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    whole.parse::<u64>().ok()?.checked_mul(Timestamp::from_seconds(1.0).nanos())?.checked_add(digits.parse().ok()?)
}
