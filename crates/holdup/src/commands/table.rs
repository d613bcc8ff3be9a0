//! `holdup table`: rows and groups of a trace, as asked.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use holdup_analysis::explore::relation::Unit;
use holdup_analysis::explore::{self, Answer, Explorer, PRESETS, Preset, Process, Query, Stop, TableKind};
use holdup_base::near;
use holdup_base::output::{Output, Readers};
use holdup_base::text::clean;
use holdup_trace::Trace;

use super::{Usage, flame};
use crate::cli::{Format, Table};
use crate::open;
use crate::text::answer;
use crate::text::screen::{self, say};
use holdup_view::Machine;

/// Rows of text if nobody says how many.
const TOP: usize = 40;

/// Runs the command.
pub fn run(args: &Table) -> anyhow::Result<ExitCode> {
    let format = if args.json { Format::Json } else { args.format };
    if format == Format::Arrow && args.output.is_none() && screen::is_terminal() {
        return Err(Usage("an Arrow file is not for the terminal: name a file with -o".into()).into());
    }
    let mut query = query(args)?;
    let file = args.output.as_ref().map(|path| Output::create(path, Readers::Umask)).transpose()?;
    let flame = args.flame.as_ref().map(|path| Output::create(path, Readers::Umask)).transpose()?;
    if format == Format::Text {
        query.top.get_or_insert(TOP);
    }
    let trace = open::open(&args.trace)?;
    let explorer = Explorer::new(&trace).with_disassembler(&Machine);
    if let Some(flame) = flame {
        return draw(flame, &explorer, &query, &args.trace);
    }
    let answer = match &args.around {
        Some(function) => explorer.around(&query, function, &Stop::default()),
        None => explorer.run(&query, &Stop::default()),
    };
    let answer = answer.map_err(usage)?;
    notes(&trace, &answer)?;
    let empty = (answer.total == 0).then(|| nothing(&trace, &args.trace, &query));
    if let (Some(why), true) = (&empty, format != Format::Text) {
        say!("holdup: {why}");
    }
    match file {
        Some(mut file) => {
            let path = file.path().to_owned();
            print(&answer, empty.as_deref(), format, &mut file)
                .with_context(|| format!("{} cannot be written", path.display()))?;
            file.commit()?;
        }
        None => print(&answer, empty.as_deref(), format, &mut screen::bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(answer: &Answer, empty: Option<&str>, format: Format, out: &mut impl Write) -> anyhow::Result<()> {
    let mut out = BufWriter::new(out);
    match (format, empty) {
        (Format::Text, Some(why)) => writeln!(screen::plain(&mut out), "{why}")?,
        (Format::Text, None) => answer::grid::write(answer, &mut screen::plain(&mut out))?,
        (Format::Csv, _) => answer::csv::write(answer, &mut screen::plain(&mut out))?,
        (Format::Json, _) => answer::json::write(answer, &mut screen::json(&mut out))?,
        (Format::Arrow, _) => answer::arrow::write(answer, &mut out)?,
    }
    Ok(out.flush()?)
}

/// The stacks of the rows as a picture.
fn draw(file: Output, explorer: &Explorer, query: &Query, path: &Path) -> anyhow::Result<ExitCode> {
    let (lines, unit) = explorer.folded(query, &Stop::default()).map_err(usage)?;
    anyhow::ensure!(!lines.is_empty(), "{}: no flame graph, because no row has a stack", path.display());
    let (what, ran) = match query.table {
        TableKind::Cpu => ("what ran", "µs of CPU"),
        _ => ("where threads waited", "µs of waiting"),
    };
    flame::draw(file, &lines, what, if unit == Unit::Nanos { ran } else { "samples" })?;
    Ok(ExitCode::SUCCESS)
}

/// A question that makes no sense is bad usage.
fn usage(error: explore::Error) -> anyhow::Error {
    match error {
        explore::Error::Trace(e) => e.into(),
        other => Usage(other.to_string()).into(),
    }
}

/// The question as the arguments have it.
fn query(args: &Table) -> anyhow::Result<Query> {
    let table = TableKind::ALL.into_iter().find(|t| t.name() == args.table);
    let mut query = match (table, Preset::find(&args.table)) {
        (Some(table), _) => Query::new(table),
        (None, Some(preset)) => preset.query(),
        (None, None) => return Err(Usage(no_table(&args.table)).into()),
    };
    if !args.by.is_empty() {
        query.by.clone_from(&args.by);
    }
    if query.by.is_empty() && !args.show.is_empty() {
        return Err(Usage("--show is about groups: add --by COL, or choose columns with --columns".into()).into());
    }
    if !args.columns.is_empty() {
        query.by.clear();
        query.columns.clone_from(&args.columns);
    }
    if !args.show.is_empty() {
        query.measures.clone_from(&args.show);
    } else if !args.sum.is_empty() {
        query.measures = args.sum.iter().map(|c| format!("sum:{c}")).chain(["count".to_owned()]).collect();
    }
    if !args.sort.is_empty() {
        query.sort.clone_from(&args.sort);
    }
    query.filters.extend(args.filter.iter().cloned());
    (query.top, query.window) = (args.top, args.window);
    match &args.focus {
        Some(name) => query.process = Process::Named(name.clone()),
        None if args.all => query.process = Process::All,
        None => {}
    }
    Ok(query)
}

fn no_table(asked: &str) -> String {
    let tables = TableKind::ALL.map(TableKind::name);
    let names = || tables.into_iter().chain(PRESETS.iter().map(|p| p.name));
    let hint = near::hint(asked, names());
    format!("there is no table {asked}{hint}; there are {}", names().collect::<Vec<_>>().join(", "))
}

/// Why there is no row.
fn nothing(trace: &Trace, path: &Path, query: &Query) -> String {
    let path = path.display();
    let (rows, what, how) = match query.table {
        TableKind::Cpu => (trace.samples.rows(), "CPU samples", "record with --freq 999, or perf with -e cpu-clock"),
        TableKind::Wakes => {
            (trace.wakes.rows(), "wake-ups", "holdup records them; with perf add -e sched:sched_waking")
        }
        TableKind::Spans => (trace.spans.rows(), "spans", "record with --span, see holdup record --help"),
        _ => (
            trace.switches.rows(),
            "context switches",
            "holdup records them; with perf add -e sched:sched_switch -e sched:sched_waking",
        ),
    };
    if rows == 0 {
        return format!("{path} has no {what}, so table {} is empty: {how}", query.table.name());
    }
    let asked = [
        (!query.filters.is_empty()).then_some("the filter"),
        query.window.is_some().then_some("the window"),
        (query.process != Process::All).then_some("the focus"),
    ];
    let asked: Vec<&str> = asked.into_iter().flatten().collect();
    match (query.table, asked.is_empty()) {
        (TableKind::Locks, true) => format!("{path}: no thread was seen to wait for a lock"),
        (_, true) => format!("{path}: table {} is empty", query.table.name()),
        _ => format!("{path}: no row of table {} passes {}", query.table.name(), asked.join(", ")),
    }
}

/// What limits the answer, on standard error.
fn notes(trace: &Trace, answer: &Answer) -> anyhow::Result<()> {
    let mut lost: Vec<(String, u64)> = Vec::new();
    for loss in trace.losses()?.into_iter().filter(|l| l.count > 0) {
        match lost.iter_mut().find(|(what, _)| *what == loss.what) {
            Some((_, count)) => *count = count.saturating_add(loss.count),
            None => lost.push((loss.what, loss.count)),
        }
    }
    for (what, count) in lost {
        say!("note: the trace lacks {count} {} (`holdup info` says when): the numbers are lower bounds", clean(&what));
    }
    let blank: Vec<&str> = answer.columns.iter().filter(|c| c.is_blank()).map(|c| c.name.as_str()).collect();
    if !blank.is_empty() && answer.total > 0 {
        say!("note: the trace does not tell {} of these rows", blank.join(", "));
    }
    Ok(())
}
